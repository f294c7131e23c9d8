#include "rooftile/gemm/device/sm80_few_launch.hpp"

#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/gemm/device/code.hpp"
#include "rooftile/gemm/device/in_front.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/pieces.hpp"
#include "rooftile/gemm/sm80_few_space.hpp"
#include "rooftile/tiled/device/epilogue_source.hpp"

namespace rooftile {
namespace {

/// A's and B's lines begin at elements, or where the kernel takes whole words at every second one.
void check_rows(const char* name, const char* ld_name, const void* pointer, std::int64_t leading, std::int64_t stride,
                bool at_any_element, std::int64_t extent) {
    const int elements = at_any_element ? 1 : 2;
    check_leading(ld_name, leading, extent, elements);
    check_pointer(name, pointer, elements * Sm80FewConfig::element_bytes);
    if (stride % elements != 0)
        throw RequestError(
            fmt::format("{}'s matrices are {} elements apart; this kernel takes rows that begin at words of two elements; plan for this "
                        "distance to get one that does not",
                        name, stride));
}

class Sm80FewCode final : public GemmCode {
  public:
    explicit Sm80FewCode(const GemmPlan& plan)
        : plan_(plan.config), problem_(multiplied(plan)), config_(sm80_few_config(problem_, plan.config)), arch_(plan.arch), epilogue_(plan.problem.epilogue) {}

    Source source() const override {
        Source source = sm80_few_source(config_, arch_);
        add_epilogue(source, epilogue_, "kernels/gemm/sm80_few_gemm.cuh");
        add_in_front(source, problem_);
        return source;
    }
    std::string arch() const override { return arch_; }
    CtaUse cta() const override { return {config_.threads(), config_.shared_bytes(), config_.ctas_per_sm, 1}; }
    bool packs() const override { return has_in_front(problem_); }
    std::size_t workspace_bytes(const GemmShape& s) const override { return std::size_t(pieces(s).bytes()) + in_front_bytes(problem_, s); }
    GemmOperands pack(const Function& pack, Stream stream, const GemmOperands& given, void* workspace) const override {
        check_pointer("the workspace", workspace, PackedCopy::alignment);
        return launch_in_front(pack, stream, problem_, given, static_cast<char*>(workspace) + pieces(given.shape).bytes(), plan_.programmatic_launch);
    }
    void check(const GemmShape& shape, const void* a, const void* b, const void* c) const override {
        GemmShape taken = shape;
        check_in_front(problem_, taken, a, b);
        check_operands(config_, taken, a, b, c);
    }
    ClusterTiles tiles(const GemmShape& shape) const override { return {1, ceil_div(shape.n, config_.tile_n), shape.batch}; }
    int grid(const GemmShape& shape, int) const override {
        ClusterTiles all = tiles(shape);
        all.columns *= plan_.grid_split_k;
        check_tiles(shape, all, 1, config_.tile_m, config_.tile_n);
        return int(all.columns * all.products);
    }
    void launch(const Function& function, const Launch& launch, const GemmShape& s, const GemmPointers& p) const override {
        Sm80FewArguments arguments{.m = int(s.m),
                                   .n = int(s.n),
                                   .k = int(s.k),
                                   .pieces = plan_.grid_split_k,
                                   .lda = s.lda,
                                   .ldb = s.ldb,
                                   .ldc = s.ldc,
                                   .a = p.a,
                                   .b = p.b,
                                   .c = p.c,
                                   .sums = nullptr,
                                   .arrived = nullptr,
                                   .batch = int(s.batch),
                                   .a_stride = s.a_stride,
                                   .b_stride = s.b_stride,
                                   .c_stride = s.c_stride};
        if (config_.in_pieces) {
            check_pointer("the workspace", p.workspace, PackedCopy::alignment);
            arguments.arrived = static_cast<unsigned*>(p.workspace);
            arguments.sums = reinterpret_cast<float*>(static_cast<char*>(p.workspace) + pieces(s).counters);
        }
        Launch configured = launch;
        configured.programmatic_dependent = plan_.programmatic_launch;
        launch_with_epilogue(function, configured, epilogue_, p.operands, arguments);
    }

  private:
    PiecesWorkspace pieces(const GemmShape& s) const { return pieces_workspace(plan_, s.m, s.n, s.batch); }

    GemmConfig plan_;
    GemmProblem problem_;
    Sm80FewConfig config_;
    std::string arch_;
    SharedEpilogue epilogue_;
};

}  // namespace

std::string sm80_few_name_expression(const Sm80FewConfig& c) {
    return fmt::format(
        "rooftile::sm80_few_gemm<rooftile::Sm80FewConfig{{.tile_m={}, .tile_n={}, .tile_k={}, .stages={}, .ctas_per_sm={}, "
        ".type=rooftile::Type::{}, .a_major=rooftile::Major::{}, .b_major=rooftile::Major::{}, .odd_rows={}, .batched={}, .in_pieces={}, .early_weights={}}}>",
        c.tile_m, c.tile_n, c.tile_k, c.stages, c.ctas_per_sm, name_of(c.type), c.a_along_k() ? "k" : "mn", c.along_k() ? "k" : "mn", c.odd_rows, c.batched,
        c.in_pieces, c.early_weights);
}

Source sm80_few_source(const Sm80FewConfig& config, const std::string& arch) {
    return source_of_header("sm80_few_gemm", "kernels/gemm/sm80_few_gemm.cuh", {sm80_few_name_expression(config)}, arch);
}

void check_operands(const Sm80FewConfig& config, const GemmShape& s, const void* a, const void* b, const void* c) {
    check_gemm_size("M", s.m);
    check_gemm_size("N", s.n);
    check_gemm_size("K", s.k);
    if (s.m > config.tile_m)
        throw RequestError(fmt::format("M is {}; this kernel holds {} rows; plan for this M to get one that does", s.m, config.tile_m));
    check_rows("A", "lda", a, s.lda, s.a_matrices() > 1 ? s.a_stride : 0, true, config.a_along_k() ? s.k : s.m);
    check_rows("B", "ldb", b, s.ldb, s.b_matrices() > 1 ? s.b_stride : 0, config.odd_rows, config.along_k() ? s.k : s.n);
    check_leading("ldc", s.ldc, s.n, 1);
    check_pointer("C", c, Sm80FewConfig::element_bytes);
}

std::unique_ptr<const GemmCode> sm80_few_gemm_code(const GemmPlan& plan, Ablation ablated) {
    if (ablated != Ablation::nothing) throw RequestError("sm80_few_gemm cannot be compiled without one of its parts; sm90_gemm can");
    return std::make_unique<const Sm80FewCode>(plan);
}

}  // namespace rooftile
