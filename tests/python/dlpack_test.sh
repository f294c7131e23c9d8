#!/bin/sh
# The package's own dlpack.h says of memory what the published header says: dlpack_test.sh ROOT WORK PYTHON
# In make test-all alone, since the published one comes from PyPI, in apache-tvm-ffi, whose publishers are DLPack's.
set -eu
root=$1 work=$2 python=$3
if [ "${ROOFTILE_TEST_ALL:-0}" != 1 ]; then
    echo "DLPack's header is fetched in make test-all"
    exit 4
fi
rm -rf "$work"
mkdir -p "$work"
"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all: --target "$work/published" apache-tvm-ffi==0.1.15.post2
header=$(find "$work/published" -path '*/include/dlpack/dlpack.h' | head -1)
[ -n "$header" ] || { echo "the wheel holds no dlpack.h"; exit 1; }
cc -Wall -Werror "-DHEADER=\"$root/python/src/dlpack.h\"" "$root/tests/python/dlpack_layout.c" -o "$work/own"
cc -Wall -Werror "-DHEADER=\"$header\"" -DPUBLISHED "$root/tests/python/dlpack_layout.c" -o "$work/other"
"$work/own" >"$work/own.txt"
"$work/other" >"$work/other.txt"
diff "$work/own.txt" "$work/other.txt"
echo "$(wc -l <"$work/own.txt") lines alike"
