#!/bin/sh
# The source package has all that a build reads: sdist_test.sh ROOT BUILD PYTHON CUDA
# It is configured where the distribution's headers are hidden; every source is preprocessed, to see whose headers it reads, then
# compiled. In make test-all alone, since its tools come from PyPI.
set -eu
root=$1 build=$2 python=$3 cuda=$4
if [ "${ROOFTILE_TEST_ALL:-0}" != 1 ]; then
    echo "the source package is made in make test-all"
    exit 4
fi
work=$build/tests/sdist
rm -rf "$work"
mkdir -p "$work"
"$root/tools/sdist" "$work" "$python"
tar -xzf "$work"/rooftile-*.tar.gz -C "$work" --strip-components 1
[ -e "$work/PKG-INFO" ] && [ ! -e "$work/tests" ] || { echo "not what a source package holds"; exit 1; }
cmake -G Ninja -S "$work/python" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON -DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON \
    -DCMAKE_IGNORE_PATH=/usr/include "-DROOFTILE_CUDA_PATH=$cuda" "-DPython_EXECUTABLE=$python" >"$work/configure.log"
"$python" "$root/tests/python/sdist_sources.py" "$work/build/compile_commands.json" "$work/third_party/include"
# Then all of it, as pip does: as long as make takes.
cmake --build "$work/build" --target rooftile_package >"$work/build.log" || { tail -20 "$work/build.log"; exit 1; }
cmake --install "$work/build" --strip --component python --prefix "$work/installed" >"$work/install.log"
"$work/installed/rooftile/bin/rooftile" plan gemm 4096x14336x4096 --machine h100-sxm >"$work/plan.txt"
grep -q tensor "$work/plan.txt"
