#include "rooftile/conv/device/packed_image.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "kernels/conv/channels_last.hpp"
#include "rooftile/conv/operation.hpp"
#include "rooftile/conv/packing.hpp"
#include "rooftile/elapsed.hpp"
#include "rooftile/runtime/cache.hpp"
#include "rooftile/runtime/in_contexts.hpp"
#include "rooftile/runtime/kernel_codes.hpp"

namespace rooftile {
namespace {

constexpr std::size_t most_tensors = 64;  // a launch allocates nothing

std::int64_t pixels_of(const ConvProblem& p) { return p.image.pixels() / p.image.images; }

class PackedFirst final : public Runnable, public SeveralKernels {
  public:
    PackedFirst(const ConvProblem& problem, std::shared_ptr<const Runnable> packed, Source source, CachedCompile compiled, double seconds)
        : problem_(problem), packed_(std::move(packed)), source_(std::move(source)), compiled_(std::move(compiled)), seconds_(seconds) {}
    /// The convolution's: what plans speak of.
    KernelCode code() const override { return packed_->code(); }
    std::vector<KernelCode> codes() const override { return {code_of(source_, compiled_, seconds_), packed_->code()}; }
    std::string ptx() const override { return compile_to_ptx(source_) + packed_->ptx(); }
    std::size_t workspace_bytes() const override { return std::size_t(packed_image_bytes(problem_)) + packed_->workspace_bytes(); }
    std::int64_t shared_bytes() const override { return packed_->shared_bytes(); }
    void load() const override { function(), packed_->load(); }
    void launch(Stream stream, std::span<void* const> tensors, void* workspace) const override {
        if (tensors.size() > most_tensors) throw RequestError(std::to_string(tensors.size()) + " tensors are given; at most 64 are taken");
        if (tensors.empty() || !workspace) throw RequestError("x or the workspace is missing; the packed image is in the workspace");
        constexpr int alignment = 16;
        check_pointer("x", tensors[0], alignment), check_pointer("the workspace", workspace, alignment);
        constexpr std::int64_t tile = ChannelsLastArguments::tile, most_grid = 65535;
        ChannelsLastArguments p{static_cast<const unsigned short*>(tensors[0]), static_cast<unsigned short*>(workspace), problem_.image.images, problem_.image.channels,
                                pixels_of(problem_)};
        Launch launch;
        launch.grid_x = unsigned((p.pixels + tile - 1) / tile);
        launch.grid_y = unsigned(std::min((problem_.image.channels + tile - 1) / tile, most_grid)), launch.grid_z = unsigned(std::min(problem_.image.images, most_grid));
        launch.block_x = ChannelsLastArguments::threads, launch.shared_bytes = ChannelsLastArguments::shared_bytes, launch.stream = stream;
        rooftile::launch(function(), launch, p);
        std::array<void*, most_tensors> of_packed;
        std::ranges::copy(tensors, of_packed.begin());
        of_packed[0] = workspace;
        void* const rest = packed_->workspace_bytes() > 0 ? static_cast<char*>(workspace) + packed_image_bytes(problem_) : nullptr;
        packed_->launch(stream, {of_packed.data(), tensors.size()}, rest);
    }
    const Runnable& packed() const { return *packed_; }

  private:
    const Function& function() const {
        return contexts_.here(compiled_.compiled, source_.arch.substr(0, 5), [](Function function, int) { return function; });
    }
    ConvProblem problem_;
    std::shared_ptr<const Runnable> packed_;
    Source source_;
    CachedCompile compiled_;
    double seconds_;
    InContexts<Function> contexts_;
};

/// Images of either order by a transposition that shares nothing with the kernel under test.
class ChannelsFirstReference final : public Reference {
  public:
    ChannelsFirstReference(const ConvProblem& p, const Reference& of_packed) : problem_(p), of_packed_(of_packed), packed_(std::size_t(packed_image_bytes(p))) {
        const auto device = Driver::instance().device(current_device());
        const CachedCompile made = compile_cached(transpose_source(device.arch()));
        module_ = Module(std::span<const char>(made.compiled.cubin));
        transpose_ = module_.function(made.compiled.lowered_names[0]);
        ctas_ = unsigned(device.sm_count) * 8;
    }
    std::span<const VerifyCase> cases() const override { return of_packed_.cases(); }
    int max_results() const override { return of_packed_.max_results(); }
    void fill(Stream stream, VerifyCase which, std::uint64_t seed, TensorPointers tensors) const override {
        std::vector<void*> of_packed(tensors.begin(), tensors.end());
        of_packed[0] = packed_.data();
        of_packed_.fill(stream, which, seed, of_packed);
        transpose(stream, tensors[0], packed_.data(), pixels_of(problem_), problem_.image.channels);
    }
    std::vector<CaseOutcome> judge(Stream stream, VerifyCase which, std::uint64_t seed, std::span<const TensorPointers> results) const override {
        transpose(stream, packed_.data(), results[0][0], problem_.image.channels, pixels_of(problem_));
        std::vector<std::vector<void*>> of_packed;
        std::vector<TensorPointers> pointers;
        for (const TensorPointers& result : results) {
            of_packed.emplace_back(result.begin(), result.end())[0] = packed_.data();
            pointers.emplace_back(of_packed.back());
        }
        return of_packed_.judge(stream, which, seed, pointers);
    }

  private:
    void transpose(Stream stream, void* to, const void* from, std::int64_t rows, std::int64_t columns) const {
        auto* written = static_cast<unsigned short*>(to);
        const auto* read = static_cast<const unsigned short*>(from);
        long long images = problem_.image.images, down = rows, across = columns;
        launch(transpose_, {.grid_x = ctas_, .block_x = 256, .stream = stream}, written, read, images, down, across);
    }
    ConvProblem problem_;
    const Reference& of_packed_;
    DeviceBuffer packed_;
    Module module_;
    Function transpose_;
    unsigned ctas_;
};

}  // namespace

Source channels_last_source(std::string_view arch) { return source_of_header("channels_last", "kernels/conv/channels_last.cuh", {"rooftile::channels_last"}, arch); }

Source transpose_source(std::string_view arch) { return source_of_header("transpose", "kernels/measure/transpose.cuh", {"rooftile::transpose"}, arch); }

std::shared_ptr<const Runnable> packed_first(const Plan& plan, std::shared_ptr<const Runnable> packed, const CompileOptions& options) {
    const auto start = std::chrono::steady_clock::now();
    Source source = channels_last_source(plan.own.as<ConvPlan>().arch);
    source.line_info = options.line_info;
    CachedCompile compiled = compile_as(options, source);
    return std::make_shared<const PackedFirst>(plan.problem.own.as<ConvProblem>(), std::move(packed), std::move(source), std::move(compiled), seconds_since(start));
}

const Runnable& behind_packing(const Runnable& runnable) {
    const auto* first = dynamic_cast<const PackedFirst*>(&runnable);
    return first ? first->packed() : runnable;
}

std::unique_ptr<Reference> channels_first_reference(const ConvProblem& problem, const Reference& of_packed) {
    return std::make_unique<ChannelsFirstReference>(problem, of_packed);
}

}  // namespace rooftile
