#!/bin/sh
# The package's types: mypy --strict takes the package and tests/python/types/right.py, and refuses every marked line of wrong.py for its reason.
#   types_test.sh PYTHON_FOLDER
set -u
here=$(cd "$(dirname "$0")" && pwd)
command -v mypy > /dev/null || { echo "mypy is missing: tools/setup installs it"; exit 1; }
packages=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check() { MYPYPATH="$1" mypy --strict --python-version 3.11 --cache-dir "$work/cache" --no-error-summary "$2" 2>&1; }
# torch and pandas need not be here: what comes of them is Any. With torch there, its module of ours is checked, too.
printf '[mypy]\n[mypy-torch.*]\nignore_missing_imports = True\n[mypy-pandas.*]\nignore_missing_imports = True\n[mypy-rooftile.torch]\nignore_errors = True\n' \
    > "$work/mypy.ini"
cd "$work" || exit 1
found=$(check "$packages" "$here/types/right.py") || { echo "$found"; exit 1; }
found=$(check "$packages" "$here/types/wrong.py")
bad=0 marked=0
number=0
while IFS= read -r line; do
    number=$((number + 1))
    case $line in
    *"  # "*)
        marked=$((marked + 1))
        reason=${line##*  \# }
        echo "$found" | grep -F "wrong.py:$number:" | grep -qF -- "$reason" || { echo "line $number is not refused by: $reason"; bad=1; } ;;
    *) echo "$found" | grep -F "wrong.py:$number: error" && { echo "line $number is refused"; bad=1; } ;;
    esac
done < "$here/types/wrong.py"
[ "$marked" -ge 7 ] || { echo "only $marked lines are marked"; bad=1; }
[ "$bad" = 0 ] || { echo "$found"; exit 1; }
