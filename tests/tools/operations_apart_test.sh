#!/bin/sh
# Operations stand apart: operations_apart_test.sh ROOT
#   - outside an operation's folders, the table, Python's functions that are written from it, tests and docs nothing names an operation or the library it is
#     measured beside (refuse, fused, confuse and diffuse are English); rooftile/names reads the words of everybody's kernels, and rooftile/layer
#     names the operations that a model's layer is made of; neither includes what is an operation's;
#   - no operation includes another's folder, nor writes a kernel's source that does, and core includes none;
#   - what operations share includes none of them, and alone issues wgmma.
set -eu
root=$1
cd "$root"
operations=$(sed -n 's/^ROOFTILE_OPERATION(\(.*\))$/\1/p' rooftile/operations.def)
[ -n "$operations" ] || { echo "rooftile/operations.def names no operation"; exit 1; }

own='^$'
for operation in $operations; do own="$own|^(rooftile|kernels|cli|tests)/$operation/"; done
files=$(find rooftile cli kernels cmake python CMakeLists.txt pyproject.toml -type f ! -name '*.pyc' ! -name '*.md' | grep -Ev "$own" | grep -vE '^(rooftile/operations.def|python/rooftile/_operations.py|rooftile/(names|layer)/.*)$')
words=$(echo "$operations" | tr '\n' '|')cublaslt
status=0

# English words go first, so that what is left of a line is looked at: (re|con|dif)fuse; chains of dependent instructions, by themselves;
# convert, converge and <charconv>; torch's convolution and conv2d.
for file in $files; do
    found=$(sed -E 's/([Rr]e|[Cc]on|[Dd]if)fus(e|ed|es|al|ing)//g; s/[Ff]used//g; s/alu_chains?//g; s/"chain of/"/g; s/[Cc]har_?conv|[Cc]onver[a-z]+|[Cc]onvolution[a-z_]*|conv[123]d//g; s/(^|[^"/_A-Za-z])[Cc]hains?([^"/_A-Za-z]|$)/\1\2/g' "$file" | grep -niE "$words" || true)
    if [ -n "$found" ]; then
        echo "$file names an operation:"
        echo "$found" | head -3
        status=1
    fi
done

for operation in $operations; do
    for other in $operations; do
        [ "$operation" != "$other" ] || continue
        if grep -rnE "#include \\\\?\"(rooftile|kernels|cli)/$other/" rooftile/"$operation" kernels/"$operation" cli/"$operation" 2>/dev/null; then
            echo "$operation includes what is $other's"
            status=1
        fi
    done
done
shared="kernels/matrix kernels/pipeline kernels/ptx"
for operation in $operations; do
    if grep -rnE "#include \"(rooftile|kernels)/$operation/" $shared; then
        echo "what operations share includes what is $operation's"
        status=1
    fi
done
for operation in $operations; do
    if grep -rnE "#include \"(rooftile|kernels|cli)/$operation/" rooftile/names rooftile/layer; then
        echo "names of kernels are read, or layers listed, with what is $operation's"
        status=1
    fi
done
# One main loop, one issue of products by fragments in registers, one of products of shared memory and one kernel of two products back to back: nobody else issues wgmma, but for
# probes and the ladder of the tutorial.
if grep -rnE 'ptx::wgmma(_registers)?<' kernels | grep -vE '^kernels/(matrix/(main_loop|fragment_products|shared_products|back_to_back)\.cuh|probe/|[a-z]+/ladder/)'; then
    echo "matrix instructions outside kernels/matrix"
    status=1
fi
if grep -rnE '#include "rooftile/(report|measure|runtime|probe)/' rooftile/core; then
    echo "core includes a station"
    status=1
fi
exit $status
