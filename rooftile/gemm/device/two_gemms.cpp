#include "rooftile/gemm/device/two_gemms.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "kernels/gemm/two_gemms_arguments.hpp"
#include "rooftile/elapsed.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/device/code.hpp"
#include "rooftile/gemm/device/sm90_launch.hpp"
#include "rooftile/gemm/packing.hpp"
#include "rooftile/gemm/two_gemms.hpp"
#include "rooftile/runtime/cache.hpp"
#include "rooftile/runtime/in_contexts.hpp"
#include "rooftile/tiled/device/epilogue_source.hpp"

namespace rooftile {
namespace {

constexpr std::string_view spaces[] = {"epilogue_first", "epilogue_second"};

struct Loaded {
    Function function;
    int ctas = 0;
};

std::size_t operands_of(const GemmProblem& p) { return p.epilogue ? p.epilogue->operands.size() : 0; }

class TwoGemms final : public Runnable {
  public:
    TwoGemms(const GemmPlan& first, const GemmPlan& second, const RowChunks& chunks, Source source, CachedCompile compiled, double seconds)
        : first_(first), second_(second), config_(two_gemms_config(first, second)), layout_(two_gemms_layout(first, second, chunks)), tiles_(tiles()),
          source_(std::move(source)), compiled_(std::move(compiled)), seconds_(seconds) {}

    KernelCode code() const override {
        KernelCode code = code_of(source_, compiled_, seconds_);
        code.source = source_.text;
        return code;
    }
    std::string ptx() const override { return compile_to_ptx(source_); }
    std::size_t workspace_bytes() const override { return std::size_t(layout_.bytes); }
    std::int64_t shared_bytes() const override { return config_.shared_bytes(); }
    void load() const override { loaded(); }

    void launch(Stream stream, std::span<void* const> tensors, void* workspace) const override {
        check_pointer("the workspace", workspace, PackedCopy::alignment);
        const std::size_t of_first = operands_of(first_.problem), of_second = operands_of(second_.problem);
        if (tensors.size() != 4 + of_first + of_second)
            throw RequestError(fmt::format("{} tensors are given; these two products have {}", tensors.size(), 4 + of_first + of_second));
        char* const room = static_cast<char*>(workspace);
        void* const between = room + layout_.between;
        GemmPointers a{tensors[0], tensors[1], between, nullptr, tensors.subspan(2, of_first)};
        GemmPointers b{between, tensors[2 + of_first], tensors.back(), nullptr, tensors.subspan(3 + of_first, of_second)};
        const bool all_rows = layout_.room_rows >= first_.problem.m;
        const std::int64_t room_rows = all_rows ? 0 : layout_.room_rows;
        const Sm90Operands one = sm90_operands(first_, config_.first, a, {.c = room_rows}),
                           two = sm90_operands(second_, config_.second, b, {.a = room_rows});
        TwoGemmsArguments arguments{};
        arguments.first = one.arguments, arguments.second = two.arguments;
        arguments.chunks = layout_.chunks, arguments.first_chunk_rows = layout_.first_chunk_rows, arguments.second_chunk_rows = layout_.second_chunk_rows;
        arguments.room_chunks = layout_.room_chunks;
        arguments.chunk_readers = unsigned(layout_.second_chunk_rows * ceil_div(second_.problem.n, std::int64_t{second_.config.tile_n}));
        arguments.room_rows = all_rows ? std::numeric_limits<int>::max() : int(layout_.room_rows);
        if (layout_.chunks > 1)  // of few rows of tiles: weights are read once a chunk
            for (GemmArguments* product : {&arguments.first, &arguments.second}) product->order = int(Order::column), product->group = 1;
        if (!all_rows) arguments.first.last_m = arguments.second.last_m = std::numeric_limits<int>::max();
        arguments.next = reinterpret_cast<unsigned*>(room), arguments.finished = arguments.next + 1;
        arguments.ready = reinterpret_cast<unsigned*>(room + layout_.rows_ready);
        arguments.taken = reinterpret_cast<unsigned*>(room + layout_.chunks_taken);
        std::vector<std::uint64_t> words_a = words(first_.problem, a), words_b = words(second_.problem, b);
        const Loaded& here = loaded();
        Launch launch = launch_of(use());
        launch.grid_x = unsigned(std::min<std::int64_t>(tiles_, here.ctas));
        launch.stream = stream;
        launch.programmatic_dependent = first_.config.programmatic_launch;
        TensorMap maps[] = {one.a, one.b, one.c, two.a, two.b, two.c, one.operand, two.operand};
        void* all[] = {&maps[0], &maps[1], &maps[2], &maps[3], &maps[4], &maps[5], &maps[6], &maps[7], &arguments, words_a.data(), words_b.data()};
        launch_raw(here.function, launch, all);
    }

  private:
    CtaUse use() const { return {config_.first.threads(), config_.shared_bytes(), 1, 1}; }
    const Loaded& loaded() const {
        return contexts_.here(compiled_.compiled, first_.arch, [&](Function function, int device) {
            function.allow_shared(config_.shared_bytes());
            const int ctas = resident_ctas(function, use(), device);
            return Loaded{std::move(function), ctas};
        });
    }
    static std::vector<std::uint64_t> words(const GemmProblem& p, const GemmPointers& pointers) {
        return p.epilogue ? epilogue_words(*p.epilogue, pointers.operands) : std::vector<std::uint64_t>{0};
    }
    std::int64_t tiles() const {
        const auto of = [](const GemmPlan& p) { return ceil_div(p.problem.m, std::int64_t{p.config.tile_m}) * ceil_div(p.problem.n, std::int64_t{p.config.tile_n}); };
        const std::int64_t all = of(first_) + of(second_);
        constexpr std::int64_t room = std::int64_t{1} << 16;  // more than any GPU has CTAs, which ask once more each
        if (all > std::numeric_limits<std::int32_t>::max() - room) throw RequestError(fmt::format("both products have {} tiles; a kernel counts fewer than 2^31", all));
        return all;
    }

    GemmPlan first_, second_;
    TwoGemmsConfig config_;
    TwoGemmsLayout layout_;
    std::int64_t tiles_;
    Source source_;
    CachedCompile compiled_;
    double seconds_;
    InContexts<Loaded> contexts_;
};

Source source_of(const GemmPlan& first, const GemmPlan& second) {
    if (const std::string why = no_two_gemms(first, second); !why.empty()) throw RequestError("no kernel of both: " + why);
    const TwoGemmsConfig config = two_gemms_config(first, second);
    Source source;
    source.name = "sm90_two_gemms";
    const GemmPlan* const plans[] = {&first, &second};
    const Sm90GemmConfig* const configs[] = {&config.first, &config.second};
    std::string classes[2];
    for (std::size_t i = 0; i < 2; ++i) {
        const auto& epilogue = plans[i]->problem.epilogue;
        if (epilogue)
            source.text += epilogue_text(*epilogue, {.header = "kernels/gemm/sm90_gemm.cuh", .prefetches = true, .staged = configs[i]->operand_staged, .space = spaces[i]});
        classes[i] = epilogue ? fmt::format("rooftile::{}::Epilogue", spaces[i]) : "rooftile::NoEpilogue";
    }
    source.text += "#include \"kernels/gemm/sm90_two_gemms.cuh\"\n";
    source.name_expressions = {fmt::format("rooftile::sm90_two_gemms<{}, {}, {}, {}>", sm90_config_text(config.first), sm90_config_text(config.second), classes[0], classes[1])};
    source.arch = nvrtc_arch(first.arch);
    return source;
}

class Device final : public TwoProductsOnDevice {
  public:
    std::shared_ptr<const Runnable> compile(const Plan& first, const Plan& second, const RowChunks& chunks, const CompileOptions& options) const override {
        const auto start = std::chrono::steady_clock::now();
        const GemmPlan &a = first.own.as<GemmPlan>(), &b = second.own.as<GemmPlan>();
        Source source = source_of(a, b);
        source.line_info = options.line_info;
        CachedCompile compiled = compile_as(options, source);
        return std::make_shared<const TwoGemms>(a, b, chunks, std::move(source), std::move(compiled), seconds_since(start));
    }
    Source source(const Plan& first, const Plan& second) const override { return source_of(first.own.as<GemmPlan>(), second.own.as<GemmPlan>()); }
};

}  // namespace

const TwoProductsOnDevice& two_gemms_on_device() {
    static const Device both;
    return both;
}

}  // namespace rooftile
