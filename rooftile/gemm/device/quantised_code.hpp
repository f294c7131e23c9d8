// The code of kernels by packed weights, as far as they are launched alike: whole or shared tiles by units of K, CTAs and workspace as planned.
#pragma once

#include <algorithm>
#include <string>

#include "rooftile/gemm/device/code.hpp"
#include "rooftile/gemm/device/in_front.hpp"
#include "rooftile/gemm/device/quantised_operands.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/quantised_model.hpp"
#include "rooftile/tiled/device/epilogue_source.hpp"

namespace rooftile {

class QuantisedCode : public GemmCode {
  public:
    explicit QuantisedCode(const GemmPlan& plan)
        : plan_(plan.config), problem_(multiplied(plan)), ctas_(plan.resources.grid_ctas), epilogue_(plan.problem.epilogue) {}

    std::string arch() const override { return "sm_90"; }
    bool packs() const override { return has_in_front(problem_); }
    std::size_t workspace_bytes(const GemmShape& s) const override { return std::size_t(workspace(s).bytes()) + in_front_bytes(problem_, s); }
    GemmOperands pack(const Function& pack, Stream stream, const GemmOperands& given, void* workspace) const override {
        check_pointer("the workspace", workspace, PackedCopy::alignment);
        return launch_in_front(pack, stream, problem_, given, static_cast<char*>(workspace) + this->workspace(given.shape).bytes(),
                               plan_.programmatic_launch);
    }
    void check(const GemmShape& shape, const void* a, const void* b, const void* c) const final {
        GemmShape taken = shape;
        check_in_front(problem_, taken, a, b);
        check_taken(taken, a, b, c);
    }

  protected:
    /// check() of what the kernel itself reads.
    virtual void check_taken(const GemmShape& shape, const void* a, const void* b, const void* c) const = 0;
    /// And with the launch in front.
    Source with_epilogue(Source source, std::string_view header) const {
        add_epilogue(source, epilogue_, header);
        add_in_front(source, problem_);
        return source;
    }
    /// As many CTAs as the workspace was made for, on any GPU: nobody waits for another.
    template <class Config>
    int grid_of(const Config& config, const GemmShape& shape) const {
        const ClusterTiles all = tiles(shape);
        const std::int64_t units = ceil_div(shape.k, std::int64_t{config.tile_k});
        check_tiles(shape, {units * all.rows, all.columns, 1}, 1, config.tile_m, config.tile_n);
        return int(std::min(ctas_, units * all.rows * all.columns));
    }
    /// `arguments` but for what all such kernels have; `rows` is A's map. Throws RequestError where there is no workspace or it is not aligned.
    template <class Arguments>
    void launch_rows(const Function& function, Launch launch, const GemmShape& s, const GemmPointers& p, TensorMap rows,
                     Arguments arguments) const {
        check_pointer("the workspace", p.workspace, PackedCopy::alignment);
        arguments.weights = static_cast<const unsigned char*>(p.b);
        arguments.c = p.c;
        arguments.partials = reinterpret_cast<float*>(static_cast<char*>(p.workspace) + workspace(s).counters);
        arguments.arrived = static_cast<unsigned*>(p.workspace);
        arguments.m = int(s.m), arguments.n = int(s.n), arguments.k = int(s.k);
        arguments.ldc = s.ldc;
        launch.programmatic_dependent = plan_.programmatic_launch;
        launch_with_epilogue(function, launch, epilogue_, p.operands, rows, arguments);
    }

    GemmConfig plan_;
    GemmProblem problem_;

  private:
    QuantisedWorkspace workspace(const GemmShape& s) const { return quantised_workspace(s.n, plan_, ctas_); }

    std::int64_t ctas_;
    SharedEpilogue epilogue_;
};

}  // namespace rooftile
