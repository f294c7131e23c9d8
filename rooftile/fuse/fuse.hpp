// All of fused expressions for C++ programs: typed problems, plans, kernels and measurements.
#pragma once

#include "rooftile/expression/expression.hpp"
#include "rooftile/expression/tensor_value.hpp"
#include "rooftile/fuse/device/kernel.hpp"
#include "rooftile/fuse/device/measure.hpp"
#include "rooftile/fuse/operation.hpp"
#include "rooftile/fuse/plan.hpp"
