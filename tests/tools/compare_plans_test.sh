#!/bin/sh
# tools/compare-plans finds a program equal to itself, names what a changed one changed, and takes a rename that is said:
#   compare_plans_test.sh ROOT PROGRAM
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 0; }
root=$1
program=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$1" >&2
    cat "$work/out" >&2
    exit 1
}
compare() {
    status=0
    "$root/tools/compare-plans" "$program" "$@" --problems 8 --per-problem 1 --jobs 1 --quiet --cache "$work/cache" \
        >"$work/out" || status=$?
}

cat >"$work/renamed" <<END
#!/bin/sh
"$program" "\$@" >"$work/document"
status=\$?
sed 's/"shared_bytes":/"bytes_shared":/' "$work/document"
exit \$status
END
chmod +x "$work/renamed"
echo '{"keys": [{"path": "**/resources/shared_bytes", "to": "bytes_shared"}]}' >"$work/renames.json"

echo '{}' >"$work/no_renames.json"

compare "$program" --renames "$work/no_renames.json"
[ $status -eq 0 ] || fail "a program differs from itself"
compare "$work/renamed" --renames "$work/no_renames.json"
[ $status -eq 1 ] || fail "a renamed key goes unnoticed"
grep -q 'plans/\*/resources/bytes_shared' "$work/out" || fail "the renamed key is not named"
compare "$work/renamed" --renames "$work/renames.json"
[ $status -eq 0 ] || fail "a rename that is said does not count"
