#include "rooftile/gemm/device/cublaslt_behind.hpp"

#include <algorithm>
#include <vector>

#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/apart.hpp"
#include "rooftile/measure/device_operation.hpp"

namespace rooftile {
namespace {

constexpr std::size_t least_bytes = 256;

}  // namespace

CublasLtBehind::CublasLtBehind(const GemmProblem& problem, const GemmProblem& product, std::unique_ptr<const CublasLt> library, CompiledKernel behind)
    : sums_(problem.epilogue->sums()),
      half_bytes_(std::size_t(product.m * product.n) * std::size_t(bytes_of(product.c_type))),
      product_(std::move(library)),
      behind_(std::move(behind)),
      sums_memory_(std::max(least_bytes, std::size_t(product.c_bytes()))),
      workspace_(std::max(least_bytes, behind_.workspace_bytes())) {
    fill_bytes(workspace_.address(), 0, workspace_.bytes(), nullptr);
    behind_.load();
}

std::unique_ptr<const CublasLtBehind> CublasLtBehind::open(const GemmProblem& given, std::shared_ptr<const Machine> machine, std::string& missing,
                                                           const CublasLt* before) {
    const GemmProblem problem = as_one_product(given);
    const ProductAlone alone = product_alone(problem, problem.c_type);
    if (!alone.why_not.empty()) {
        missing += "; nor as a kernel after its product: " + alone.why_not;
        return nullptr;
    }
    std::string why;
    std::unique_ptr<const CublasLt> library = CublasLt::open(alone.problem, why, before);
    if (!library) {
        missing += "; nor its product alone: " + why;
        return nullptr;
    }
    try {
        PlanSet behind = plan_behind(problem, problem.c_type, machine);
        if (!behind.plans.empty())
            return std::unique_ptr<const CublasLtBehind>(
                new CublasLtBehind(problem, alone.problem, std::move(library), compile(behind.plans.front())));
        missing += "; nor a kernel after its product" + (behind.refusal ? ": " + behind.refusal->message : std::string());
    } catch (const Error& error) { missing += std::string("; nor a kernel after its product: ") + error.what(); }
    return nullptr;
}

void CublasLtBehind::launch(int index, Stream stream, std::span<void* const> tensors) const {
    void* const of_product[] = {tensors[0], tensors[1], sums_memory_.data()};
    product_->launch(index, stream, of_product);
    std::vector<void*> of_behind;
    for (std::size_t i = 0; i < sums_; ++i) of_behind.push_back(static_cast<char*>(sums_memory_.data()) + i * half_bytes_);
    of_behind.insert(of_behind.end(), tensors.begin() + 2, tensors.end());
    behind_.launch(stream, of_behind, behind_.workspace_bytes() > 0 ? workspace_.data() : nullptr);
}

}  // namespace rooftile
