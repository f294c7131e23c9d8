# Sourced by scripts that take PROGRAM OUT_FOLDER first: sets `program` and `out` as absolute paths (a program that has no
# folder is looked for in PATH) and `gpu`, the id of this machine's file; goes to the repository's root.
case $1 in
    */*) program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") ;;
    *) program=$1 ;;
esac
mkdir -p "$2" || exit 1
out=$(cd "$2" && pwd)
cd "$(dirname "$0")/.." || exit 1
gpu=$("$program" machine show --json) || exit $?
gpu=$(printf '%s\n' "$gpu" | sed -n 's/^  "id": "\([^"]*\)".*/\1/p')
[ -n "$gpu" ] || { echo "$0: cannot tell which machine this is" >&2; exit 1; }
