#!/bin/sh
# What tiled matrix kernels take of a machine is modelled once, in rooftile/tiled: one_physics_test.sh ROOT
#   - one reader of matrix hardware, one solver of the clock that power leaves, one model of a step, one follower of L2, one rule of registers;
#   - rooftile/tiled includes no operation.
set -eu
cd "$1"
status=0
matrix=$(sed -n 's/^ROOFTILE_OPERATION(\(.*\))$/rooftile\/\1/p' rooftile/operations.def | grep -v '/fuse$')
# once WHAT FILE PATTERN: of tiled, physics and operations on matrix units that file alone has it.
once() {
    found=$(grep -rlE "$3" rooftile/tiled rooftile/physics $matrix --include='*.cpp' --include='*.hpp' || true)
    [ "$found" = "$2" ] && return
    echo "$1 in $2 alone; it is in:" $found
    status=1
}
once "a machine's copies, latencies and energies are read" rooftile/tiled/hardware.cpp \
    '(cycles|number<[A-Za-z]+>)\("(tma|dsmem|energy\.fill|shared|wgmma\.(step|turn|latency))'
once "power is solved for the clock" rooftile/tiled/power.hpp 'pow\(.*(room|watts)|log\(joules'
once "a step waits for its ring" rooftile/tiled/pipeline.hpp 'shown / [a-z_.]*stages|/ \([a-z_.]*stages_? - 1\)\) \*'
once "times overlap in part" rooftile/tiled/pipeline.hpp 'pow\([^;]*1 / (n|exponent)\b'
once "clusters that lag are followed through L2" rooftile/tiled/l2_follower.hpp '\* \(1 \+ [a-z_.]*skew\)'
once "a cache forgets what was used last" rooftile/physics/l2_cache.cpp 'while \(held_ > capacity_\)'
once "a producer's registers go to consumers" rooftile/tiled/registers.cpp 'pool - min_producer'

if grep -rnE --exclude-dir=device '#include "(rooftile|kernels)/' rooftile/tiled | grep -vE '"rooftile/(core|expression|machine|physics|tiled)/|"rooftile/(error|units)|"kernels/(types|pipeline/)'; then
    echo "rooftile/tiled includes what is not below it"
    status=1
fi
exit $status
