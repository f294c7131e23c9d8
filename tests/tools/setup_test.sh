#!/bin/sh
# tools/setup on machines that are made up: setup_test.sh REPOSITORY
set -eu
repository=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# A copy, so that nothing it might do reaches the checkout.
mkdir -p "$work/checkout/tools" "$work/bin" "$work/bare"
cp "$repository"/tools/setup "$repository"/tools/cuda-wheels*.txt "$repository"/tools/cutlass-wheel.txt "$work/checkout/tools/"

# Whatever would change the machine or use the network leaves a mark instead.
for command in apt-get apt-cache pip sudo; do
    printf '#!/bin/sh\necho "%s $*" >>"%s/called"\nexit 1\n' "$command" "$work" >"$work/bin/$command"
done
printf '#!/bin/sh\necho 1000\n' >"$work/bin/id"  # no root
chmod +x "$work"/bin/*

# setup_with NAME=VALUE...: runs it there; sets $status, $said.
setup_with() {
    rm -f "$work/called"
    status=0
    said=$(env PATH="$work/bin:$PATH" "$@" "$work/checkout/tools/setup" 2>&1) || status=$?
}
expect() {
    if ! eval "$2"; then
        echo "FAILED: $1: $2"
        echo "  status $status, said: $said"
        failures=$((failures + 1))
    fi
}

# A toolkit's folder, complete.
toolkit=$work/toolkit
mkdir -p "$toolkit/include" "$toolkit/lib64"
touch "$toolkit/include/cuda.h" "$toolkit/include/nvrtc.h" "$toolkit/include/cupti_range_profiler.h" \
    "$toolkit/lib64/libnvrtc.so.13"

setup_with ROOFTILE_CUDA_PATH="$toolkit"
expect "complete machine: succeeds" '[ "$status" = 0 ]'
expect "complete machine: silent" '[ -z "$said" ]'
expect "complete machine: calls nothing" '[ ! -e "$work/called" ]'

setup_with ROOFTILE_CUDA_PATH="$toolkit" ROOFTILE_SETUP_ROOT="$work/bare"
expect "bare machine, no rights: exit code 2" '[ "$status" = 2 ]'
expect "bare machine: the line to run is the last" \
    'echo "$said" | tail -1 | grep -q "sudo sh -c .apt-get update && apt-get install .*libcli11-dev.*librapidcheck-dev"'
expect "bare machine: nothing installed" '! grep -q apt-get "$work/called"'

# A toolkit without its compiler library does not count; the wheels are then wanted, and pip is asked for.
rm "$toolkit/lib64/libnvrtc.so.13"
path=$(env CUDA_HOME="$toolkit" CUDA_PATH= ROOFTILE_SETUP_IGNORE_TOOLKIT=1 "$work/checkout/tools/setup" --cuda-path)
status=0 said=$path
expect "no toolkit: the wheel folder" '[ "$path" = "$work/checkout/.cuda/nvidia/cu13" ]'

# Wheels that are in place and current: nothing to do.
if [ ! -e /dev/nvidiactl ] && ! command -v nvidia-smi >/dev/null; then
    mkdir -p "$work/checkout/.cuda"
    cp "$repository/tools/cuda-wheels.txt" "$work/checkout/.cuda/wheels.txt"
    setup_with ROOFTILE_SETUP_IGNORE_TOOLKIT=1
    expect "wheels in place: does nothing" '[ "$status" = 0 ] && [ -z "$said" ] && [ ! -e "$work/called" ]'
fi

# A GPU, wheels without cuBLAS, and no network: a warning of one line, and what is in place stays.
mkdir -p "$work/checkout/.cuda"
cp "$repository/tools/cuda-wheels.txt" "$work/checkout/.cuda/wheels.txt"
printf '#!/bin/sh\ncase "$*" in *pip*) echo "no network" >&2; exit 1 ;; esac\nexec "%s" "$@"\n' "$(command -v python3)" \
    >"$work/bin/python3"
cp "$work/bin/python3" "$work/bin/nvidia-smi"
chmod +x "$work/bin/python3" "$work/bin/nvidia-smi"
setup_with ROOFTILE_SETUP_IGNORE_TOOLKIT=1
expect "no cuBLAS to be had: goes on" '[ "$status" = 0 ] && [ "$(echo "$said" | grep -vc fetching)" = 1 ]'
expect "no cuBLAS to be had: says so" 'echo "$said" | grep -q "cuBLAS could not be fetched"'
expect "no cuBLAS to be had: keeps the rest" 'cmp -s "$repository/tools/cuda-wheels.txt" "$work/checkout/.cuda/wheels.txt"'
expect "no cuBLAS to be had: leaves nothing" '[ -z "$(ls -d "$work"/checkout/.cuda.new.* 2>/dev/null)" ]'
rm -rf "$work/checkout/.cuda"
setup_with ROOFTILE_SETUP_IGNORE_TOOLKIT=1
expect "no wheels to be had: exit code 2" '[ "$status" = 2 ]'

# CUTLASS's headers: the same without network; in place, or named, nothing is done.
run_setup() {
    status=0
    said=$(env PATH="$work/bin:$PATH" "$@" 2>&1) || status=$?
}
run_setup ROOFTILE_CUTLASS= "$work/checkout/tools/setup" --cutlass
expect "no CUTLASS to be had: goes on" '[ "$status" = 0 ] && echo "$said" | grep -q "CUTLASS could not be fetched"'
expect "no CUTLASS to be had: leaves nothing" '[ -z "$(ls -d "$work"/checkout/.cutlass* 2>/dev/null)" ]'
run_setup ROOFTILE_CUTLASS="$work" "$work/checkout/tools/setup" --cutlass
expect "CUTLASS is named: silent" '[ "$status" = 0 ] && [ -z "$said" ]'
mkdir "$work/checkout/.cutlass"
cp "$repository/tools/cutlass-wheel.txt" "$work/checkout/.cutlass/wheel.txt"
run_setup ROOFTILE_CUTLASS= "$work/checkout/tools/setup" --cutlass
expect "CUTLASS in place: silent" '[ "$status" = 0 ] && [ -z "$said" ]'
rm "$work/bin/python3" "$work/bin/nvidia-smi"

setup_with ROOFTILE_CUDA_PATH="$toolkit" ROOFTILE_SETUP_ROOT="$work/bare" ROOFTILE_SETUP_IGNORE_TOOLKIT=0
expect "an incomplete toolkit is named" 'echo "$said" | grep -q "ROOFTILE_CUDA_PATH=.* has no CUDA 13"'

status=0
said=$("$work/checkout/tools/setup" --nonsense 2>&1) || status=$?
expect "unknown argument: exit code 2" '[ "$status" = 2 ]'

[ "$failures" = 0 ] && echo "tools/setup: all as expected"
