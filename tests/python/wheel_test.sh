#!/bin/sh
# One wheel in fresh virtual environments of every Python here since 3.11: wheel_test.sh ROOT BUILD PYTHON CUDA
# The library is the one in BUILD, so that it is not compiled again. Needs PyPI for the build backend; with ROOFTILE_TEST_ALL=1
# the wheel is the one that PyPI takes, and needs its tools too.
set -eu
root=$1 build=$2 python=$3 cuda=$4
work=$build/tests/wheel
rm -rf "$work"
mkdir -p "$work"
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONPATH PYTHONHOME

if [ "${ROOFTILE_TEST_ALL:-0}" = 1 ]; then
    "$root/tools/wheel" "$build" "$python"
    set -- "$build"/wheel/dist/*.whl
    platform=manylinux_2_36_x86_64
else
    cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"
    "$python" -m venv "$work/venv"
    "$work/venv/bin/pip" wheel --quiet --no-deps --wheel-dir "$work/dist" "--config-settings=build-dir=$work/build" \
        "--config-settings=cmake.define.ROOFTILE_INSTALLED=$work/prefix" "$root"
    set -- "$work"/dist/*.whl
    platform=linux_x86_64
fi
[ $# = 1 ] || { echo "not one wheel: $*"; exit 1; }
case $1 in
    *-cp311-abi3-"$platform".whl) ;;
    *) echo "$1 is not for every CPython since 3.11 on $platform"; exit 1 ;;
esac
# What it holds: the library once, and its licence by name.
"$python" - "$1" <<'EOF'
import sys, zipfile

wheel = zipfile.ZipFile(sys.argv[1])
sizes = {file.filename: file.file_size for file in wheel.infolist()}
large = [name for name, size in sizes.items() if size > 1 << 20]
assert large == ["rooftile/librooftile_c.so.0"], f"of more than 1 MiB: {large}"
assert {"rooftile/bin/rooftile", "rooftile/_rooftile.abi3.so", "rooftile/py.typed", "rooftile/_rooftile.pyi"} <= set(sizes), list(sizes)
metadata = wheel.read(next(name for name in sizes if name.endswith(".dist-info/METADATA"))).decode()
fields = metadata[: metadata.index("\n\n")].splitlines()
assert "License-Expression: Apache-2.0" in fields and "License-File: LICENSE" in fields, fields
text = metadata[metadata.index("\n\n") :]
assert "](" not in text and len(text.splitlines()) <= 60, "PyPI shows python/README.md, of at most 60 lines, without links that end there"
EOF

tried=
for candidate in "$python" python3.11 python3.12 python3.13 python3.14 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[1-9].*/bin/python3; do
    # A name may be on PATH without a Python behind it.
    version=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    case " $tried " in *" $version "*) continue ;; esac
    "$candidate" -m venv "$work/venv-$version"
    begin=$(date +%s)
    "$work/venv-$version/bin/pip" install --quiet --no-index --no-deps "$1"
    # The program, by the name that pip gives it and by the package's own path.
    for program in "$work/venv-$version/bin/rooftile" "$work/venv-$version"/lib/python*/site-packages/rooftile/bin/rooftile; do
        (cd "$work" && "$program" plan gemm 4096x14336x4096 --machine h100-sxm >"$work/plan.txt")
        grep -q 'tensor' "$work/plan.txt" || { echo "$program does not plan"; exit 1; }
    done
    (cd "$work" && "$work/venv-$version/bin/python" -c '
import rooftile
plan = rooftile.gemm(4096, 14336, 4096, machine="h100-sxm")
plan.tile_map().save("tiles.svg")
assert open("tiles.svg").read().count("<rect") > 10, "no picture"')
    echo "CPython $version: installed, planned three times and drawn in $(($(date +%s) - begin)) s"
    # From another folder, so that nothing of the checkout's is imported.
    (cd "$work" && ROOFTILE_CUDA_PATH=$build/fake ROOFTILE_TEST_CUDA=$cuda \
        "$work/venv-$version/bin/python" -m unittest discover -s "$root/tests/python")
    tried="$tried $version"
done
for version in 3.11 3.12 3.13; do
    case " $tried " in *" $version "*) ;; *) echo "not tried, since it is not here: CPython $version" ;; esac
done
echo "$1 serves Python$tried"
