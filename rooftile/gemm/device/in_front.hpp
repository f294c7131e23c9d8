// The launch in front of a product by packed weights that unpacks these, or widens rows of A of 8 bits, or both: what code of any kernel after it
// needs for that. Problems are as the kernel meets them (multiplied()).
#pragma once

#include "rooftile/gemm/device/code.hpp"
#include "rooftile/gemm/packing.hpp"

namespace rooftile {

/// A launch in front of a product: `ctas` along x by `matrices` along y. Throws RequestError where there are too many.
Launch packing_launch(Stream stream, long long ctas, unsigned matrices, int threads, bool programmatic);

inline bool has_in_front(const GemmProblem& problem) { return problem.is_unpacked() || problem.narrow; }
/// Makes the launch the source's second name expression, where there is one.
void add_in_front(Source& source, const GemmProblem& problem);
/// What it leaves in the workspace, A's rows first; 0 where there is none.
std::size_t in_front_bytes(const GemmProblem& problem, const GemmShape& shape);
/// Shape and operands as the kernel after it reads them, in the workspace. Throws RequestError naming what the launch cannot address.
void check_in_front(const GemmProblem& problem, GemmShape& shape, const void*& a, const void*& b);
/// Launches it, from `to` on in the workspace, and says what the product reads then.
GemmOperands launch_in_front(const Function& function, Stream stream, const GemmProblem& problem, const GemmOperands& given, char* to,
                             bool programmatic);

}  // namespace rooftile
