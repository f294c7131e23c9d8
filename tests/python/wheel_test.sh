#!/bin/sh
# One wheel, as pip makes it, in fresh virtual environments: wheel_test.sh ROOT BUILD PYTHON CUDA
# The library is the one in BUILD, so that it is not compiled again. Needs PyPI for the build backend.
set -eu
root=$1 build=$2 python=$3 cuda=$4
work=$build/tests/wheel
rm -rf "$work"
mkdir -p "$work"
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONPATH PYTHONHOME

cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"
"$python" -m venv "$work/venv"
"$work/venv/bin/pip" wheel --quiet --no-deps --wheel-dir "$work/dist" "--config-settings=build-dir=$work/build" \
    "--config-settings=cmake.define.ROOFTILE_INSTALLED=$work/prefix" "$root"
set -- "$work"/dist/*.whl
[ $# = 1 ] || { echo "not one wheel: $*"; exit 1; }
case $1 in
    *-cp311-abi3-linux_*.whl) ;;
    *) echo "$1 is not for every CPython since 3.11"; exit 1 ;;
esac

tried=
for candidate in "$python" python3.11 python3.12 python3.13 python3.14; do
    # A name may stand on PATH without a Python behind it.
    version=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    case " $tried " in *" $version "*) continue ;; esac
    "$candidate" -m venv "$work/venv-$version"
    "$work/venv-$version/bin/pip" install --quiet --no-index --no-deps "$1"
    # From another folder, so that nothing of the checkout's is imported.
    (cd "$work" && ROOFTILE_CUDA_PATH=$build/fake ROOFTILE_TEST_CUDA=$cuda \
        "$work/venv-$version/bin/python" -m unittest discover -s "$root/tests/python")
    tried="$tried $version"
done
echo "$1 serves Python$tried"
