#include "rooftile/gemm/images.hpp"

#include "rooftile/gemm/fields.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/plan.hpp"

namespace rooftile {
namespace {

class GemmOfImages final : public ProductsOfImages {
  public:
    Problem problem(const Given& given, const ImageOperand& image) const override {
        GemmProblem problem = gemm_problem(given);
        problem.image = image;
        problem.image_columns = double(image.elements_read()) / double(problem.image_is_b() ? problem.n : problem.m);
        return {&gemm_operation(), Own::of(std::move(problem))};
    }
    bool gathers(const Plan& plan) const override { return plan.own.as<GemmPlan>().problem.gathered; }
};

}  // namespace

const ProductsOfImages& gemm_of_images() {
    static const GemmOfImages images;
    return images;
}

}  // namespace rooftile
