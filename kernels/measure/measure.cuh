// The measure station's kernels that are not the reference itself, as one program: one compile.
#pragma once

#include "kernels/measure/fill.cuh"
#include "kernels/measure/guard.cuh"
#include "kernels/measure/state.cuh"
