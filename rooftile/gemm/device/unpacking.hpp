// The launch in front of a product that unpacks its weights: what code of any kernel behind it has of that.
#pragma once

#include "rooftile/gemm/device/code.hpp"
#include "rooftile/gemm/packing.hpp"

namespace rooftile {

/// A launch in front of a product: `ctas` along x by `matrices` along y. Throws RequestError where there are too many.
Launch packing_launch(Stream stream, long long ctas, unsigned matrices, int threads, bool programmatic);

/// Makes the launch the source's second name expression, where the problem's weights are unpacked.
void add_unpacking(Source& source, const GemmProblem& problem);
/// Of the unpacked weights; 0 where none are.
std::size_t unpacked_bytes(const GemmProblem& problem, const GemmShape& shape);
/// As check() of the kernel behind meets it: B is packed weights then, and what that one reads is in the workspace.
/// Throws RequestError where B is not aligned.
void check_unpacking(const GemmProblem& problem, GemmShape& shape, const void*& b);
/// Launches it, with B unpacked from `to` on, and says what the product reads then.
GemmOperands unpack(const Function& unpack, Stream stream, const GemmProblem& problem, const GemmOperands& given, char* to, bool programmatic);

}  // namespace rooftile
