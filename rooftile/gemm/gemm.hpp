// All of GEMM for C++ programs: typed problems, plans, kernels and measurements.
#pragma once

#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/measure.hpp"
#include "rooftile/gemm/model.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/gemm/plan_cache.hpp"
#include "rooftile/gemm/problem.hpp"
