#include "rooftile/conv/device/direct_kernel.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "kernels/measure/philox.hpp"
#include "rooftile/conv/operation.hpp"
#include "rooftile/elapsed.hpp"
#include "rooftile/measure/expression_reference.hpp"
#include "rooftile/measure/product_verdict.hpp"
#include "rooftile/runtime/cache.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/in_contexts.hpp"
#include "rooftile/tiled/device/epilogue_source.hpp"
#include "rooftile/tiled/device/unrolled_image.hpp"

namespace rooftile {
namespace {

struct Loaded {
    Function function;
    int ctas = 0;
};

class DirectConv final : public Runnable {
  public:
    DirectConv(const Plan& plan, Source source, CachedCompile compiled, double seconds)
        : problem_(plan.problem.own.as<ConvProblem>()), plan_(*plan.own.as<ConvPlan>().direct), source_(std::move(source)), compiled_(std::move(compiled)),
          seconds_(seconds) {}
    KernelCode code() const override { return code_of(source_, compiled_, seconds_); }
    std::string ptx() const override { return compile_to_ptx(source_); }
    std::size_t workspace_bytes() const override { return 0; }
    std::int64_t shared_bytes() const override {
        return plan_.visit([](const auto& c) { return c.shared_bytes(); });
    }
    void load() const override { loaded(); }
    void launch(Stream stream, std::span<void* const> tensors, void*) const override {
        const std::size_t read = problem_.direct_epilogue ? problem_.direct_epilogue->operands.size() : 0;
        if (tensors.size() != 3 + read) throw RequestError(fmt::format("{} tensors are given; this convolution has {}", tensors.size(), 3 + read));
        constexpr int alignment = 16;
        check_pointer("x", tensors[0], alignment), check_pointer("w", tensors[1], alignment), check_pointer("y", tensors.back(), alignment);
        const auto operands = tensors.subspan(2, read);
        if (read > 0) check_operands(operands, tensors.back());
        plan_.visit([&](const auto& c) { launch_as(c, stream, tensors, operands); });
    }

  private:
    /// What every kernel's arguments begin with, and its launch of as many CTAs as `work` pieces take, `columns` of the grid.
    template <class Arguments>
    Arguments arguments(std::span<void* const> tensors) const {
        const ImageAxis &x = problem_.image.axes[0], &y = problem_.image.axes[1];
        Arguments p{};
        p.x = static_cast<const unsigned short*>(tensors[0]), p.w = static_cast<const unsigned short*>(tensors[1]), p.y = static_cast<unsigned short*>(tensors.back());
        p.height = int(y.extent), p.filters = int(problem_.filters), p.places_y = int(y.places()), p.places_x = int(x.places()), p.padding_y = int(y.padding);
        p.rows = unsigned(problem_.image.rows());
        return p;
    }
    void launch_grid(const auto& c, Stream stream, std::span<void* const> operands, auto& p, std::int64_t ctas, std::int64_t columns) const {
        Launch launch;
        launch.grid_x = unsigned(ctas), launch.grid_y = unsigned(columns);
        launch.block_x = unsigned(c.threads());
        launch.shared_bytes = unsigned(c.shared_bytes());
        launch.stream = stream;
        launch_with_epilogue(loaded().function, launch, problem_.direct_epilogue, operands, p);
    }
    /// Of `wanted` those that run at the same time, by columns.
    std::int64_t resident(std::int64_t wanted, std::int64_t columns) const { return std::min(wanted, std::max<std::int64_t>(1, loaded().ctas / columns)); }

    void launch_as(const DirectConvConfig& c, Stream stream, std::span<void* const> tensors, std::span<void* const> operands) const {
        auto p = arguments<DirectConvArguments>(tensors);
        p.width = int(problem_.image.axes[0].extent), p.channels = int(problem_.image.channels), p.padding_x = int(problem_.image.axes[0].padding);
        const std::int64_t strips = strips_of(problem_, c), columns = whole_parts(p.filters, c.cta_filters());
        p.strips_x = divider(unsigned(whole_parts(p.places_x, c.strip))), p.strips_y = divider(unsigned(whole_parts(p.places_y, c.rows))), p.strips = unsigned(strips);
        launch_grid(c, stream, operands, p, resident(whole_parts(strips, c.slots), columns), columns);
    }
    void launch_as(const StemConvConfig& c, Stream stream, std::span<void* const> tensors, std::span<void* const> operands) const {
        auto p = arguments<StemConvArguments>(tensors);
        const ImageAxis& x = problem_.image.axes[0];
        p.row_elements = int(x.extent * problem_.image.channels), p.lead = int(x.padding * problem_.image.channels) + c.front;
        p.tiles_x = divider(unsigned(whole_parts(p.places_x, c.tile_x))), p.tiles_y = divider(unsigned(whole_parts(p.places_y, c.tile_y)));
        p.tiles = unsigned(problem_.image.images) * p.tiles_y.divisor * p.tiles_x.divisor;
        const std::int64_t columns = whole_parts(p.filters, c.cta_filters);
        launch_grid(c, stream, operands, p, resident(p.tiles, columns), columns);
    }
    void launch_as(const DepthwiseConvConfig& c, Stream stream, std::span<void* const> tensors, std::span<void* const> operands) const {
        auto p = arguments<DepthwiseConvArguments>(tensors);
        p.images = int(problem_.image.images), p.width = int(problem_.image.axes[0].extent), p.padding_x = int(problem_.image.axes[0].padding);
        p.columns = divider(unsigned(whole_parts(p.filters, c.channels))), p.tiles_x = divider(unsigned(whole_parts(p.places_x, c.tile_x()))), p.tiles_y = divider(unsigned(whole_parts(p.places_y, c.tile_y())));
        launch_grid(c, stream, operands, p, whole_parts(p.images, c.images) * p.columns.divisor * p.tiles_x.divisor * p.tiles_y.divisor, 1);
    }
    /// Neighbours are read as one word; and a place may be stored before another one of the same strip is read.
    void check_operands(std::span<void* const> operands, const void* y) const {
        const Epilogue& e = *problem_.direct_epilogue;
        const auto begin = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at); };
        for (std::size_t i = 0; i < operands.size(); ++i) {
            const EpilogueOperand& o = e.operands[i];
            const auto bytes = std::uintptr_t(o.elements(1, problem_.image.rows(), problem_.filters)) * std::uintptr_t(bytes_of(o.element));
            check_pointer(o.name.c_str(), operands[i], (o.by_column && e.paired() ? 2 : 1) * bytes_of(o.element));
            if (begin(operands[i]) < begin(y) + std::uintptr_t(problem_.result_bytes()) && begin(y) < begin(operands[i]) + bytes)
                throw RequestError(fmt::format("{} and {} overlap; an epilogue's result needs memory of its own", o.name, e.output()));
        }
    }
    const Loaded& loaded() const {
        return contexts_.here(compiled_.compiled, source_.arch.substr(0, 5), [&](Function function, int device) {
            const auto [threads, bytes] = plan_.visit([](const auto& c) { return std::pair(c.threads(), c.shared_bytes()); });
            function.allow_shared(bytes);
            const int an_sm = function.ctas_per_sm(threads, bytes);
            const int ctas = an_sm * Driver::instance().device(device).sm_count;
            return Loaded{std::move(function), ctas};
        });
    }
    ConvProblem problem_;
    DirectPlan plan_;
    Source source_;
    CachedCompile compiled_;
    double seconds_;
    InContexts<Loaded> contexts_;
};

class DirectReference final : public Reference {
  public:
    DirectReference(const MeasureKernels& kernels, const ConvProblem& p)
        : kernels_(kernels), problem_(p), rows_(p.image, p.image.channels / p.groups), type_(p.type == "bf16" ? Type::bf16 : Type::fp16),
          records_(sizeof(VerifyRecord) * std::size_t(kernels.verify_ctas() * verify_max)) {
        if (p.direct_epilogue) epilogue_ = std::make_unique<ExpressionReference>(p.direct_epilogue->graph, Driver::instance().device(current_device()).arch());
    }

    std::span<const VerifyCase> cases() const override {
        static constexpr VerifyCase all[] = {VerifyCase::exact, VerifyCase::random, VerifyCase::special};
        return all;
    }
    int max_results() const override { return verify_max; }
    void fill(Stream stream, VerifyCase which, std::uint64_t seed, TensorPointers tensors) const override {
        if (epilogue_) {
            constexpr std::uint64_t apart = 0x9e3779b97f4a7c15ull;  // from the numbers of x and w, which alone are whole
            epilogue_->set_made_inputs({[](Stream, std::int64_t, std::int64_t, Bounded*) {}});
            std::vector<void*> inputs = {nullptr};
            inputs.insert(inputs.end(), tensors.begin() + 2, tensors.end() - 1);
            epilogue_->fill(stream, which == VerifyCase::exact ? VerifyCase::random : which, seed ^ apart, inputs);
        }
        const std::int64_t lines[] = {problem_.image.pixels(), problem_.filters}, widths[] = {problem_.image.channels, products()};
        for (std::size_t i = 0; i < 2; ++i) {
            FillArguments fill{};
            fill.to = {tensors[i], lines[i], widths[i], widths[i]};
            fill.seed = seed, fill.stream = i;
            fill.fill = which == VerifyCase::exact ? Fill::integer : Fill::normal;
            fill.type = type_;
            fill.exact = {.range = 8, .sparsity = 1, .wide = 8, .period = 1};  // sums of up to 64 a product stay below 2^24
            fill.of_b = i == 1, fill.k_is_width = true;
            kernels_.fill(stream, fill);
        }
        if (which != VerifyCase::special) return;
        // Two pixels at the border, and a weight: what padding must not hide.
        const FloatFormat f = float_format(type_);
        const auto infinity = std::uint16_t(f.infinity()), nan = std::uint16_t(f.infinity() | 1u << (f.fraction_bits - 1));
        const auto inject = [&](std::size_t tensor, std::int64_t element, std::uint16_t bits) {
            kernels_.inject(stream, reinterpret_cast<DevicePointer>(tensors[tensor]) + DevicePointer(2 * element), bits, 2);
        };
        const std::int64_t channel = std::int64_t(philox(0, 11, seed).word[0] % std::uint64_t(problem_.image.channels));
        inject(0, channel, nan);
        inject(0, problem_.image.elements() - 1 - channel, infinity);
        inject(1, std::int64_t(philox(1, 11, seed).word[0] % std::uint64_t(problem_.filters * products())), infinity);
    }
    std::vector<CaseOutcome> judge(Stream stream, VerifyCase which, std::uint64_t, std::span<const TensorPointers> results) const override {
        if (epilogue_) return judge_epilogue(stream, which, results);
        const std::int64_t m = problem_.image.rows();
        fill_bytes(records_.address(), 0, records_.bytes(), stream);
        each_product(stream, results[0], 0, m, [&](VerifyArguments v, std::int64_t row, std::int64_t first_filter) {
            for (const TensorPointers& result : results)
                v.c[v.results++] = static_cast<const unsigned short*>(result.back()) + row * problem_.filters + first_filter;
            v.first_row = row, v.c_m_stride = problem_.filters;
            kernels_.verify(stream, v, which == VerifyCase::exact, records_.address());  // each adds to the records
        });
        synchronize(stream);
        const auto ctas = std::size_t(kernels_.verify_ctas());
        std::vector<VerifyRecord> records(ctas * results.size());
        copy_to_host(records.data(), records_.address(), records.size() * sizeof(VerifyRecord));
        std::vector<CaseOutcome> outcomes;
        for (std::size_t i = 0; i < results.size(); ++i)
            outcomes.push_back(judge_product(std::span(records).subspan(i * ctas, ctas), {m, problem_.filters, 1, type_, error_model(products())}, which));
        return outcomes;
    }

  private:
    /// visit(arguments, first row, first filter) for each group of rows [first, first + count), in parts that there is room for.
    void each_product(Stream stream, const TensorPointers& tensors, std::int64_t first, std::int64_t count, const auto& visit) const {
        const std::int64_t channels = problem_.image.channels / problem_.groups, filters = problem_.filters / problem_.groups;
        for (std::int64_t group = 0; group < problem_.groups; ++group)
            for (std::int64_t row = first; row < first + count; row += rows_.room()) {
                VerifyArguments v{};
                v.m = std::min(rows_.room(), first + count - row), v.n = filters, v.k = products();
                v.a = rows_.rows_of(stream, tensors[0], row, v.m, group * channels);
                v.b = static_cast<const unsigned short*>(tensors[1]) + group * filters * products();
                v.a_m_stride = products(), v.a_k_stride = 1, v.b_n_stride = products(), v.b_k_stride = 1;
                v.a_type = v.b_type = v.type = type_;
                v.model = error_model(products());
                visit(v, row, group * filters);
            }
    }
    std::vector<CaseOutcome> judge_epilogue(Stream stream, VerifyCase which, std::span<const TensorPointers> results) const {
        const TensorPointers& tensors = results[0];
        epilogue_->set_made_inputs({[&](Stream to, std::int64_t first, std::int64_t rows, Bounded* out) {
            each_product(to, tensors, first, rows, [&](VerifyArguments v, std::int64_t row, std::int64_t first_filter) {
                v.sums_pitch = problem_.filters;
                kernels_.bounded_sums(to, v, which == VerifyCase::exact, out + (row - first) * problem_.filters + first_filter);
            });
        }});
        std::vector<const void*> inputs = {nullptr};  // the sums
        inputs.insert(inputs.end(), tensors.begin() + 2, tensors.end() - 1);
        std::vector<std::span<void* const>> outputs;
        for (const TensorPointers& result : results) outputs.emplace_back(&result.back(), 1);
        return epilogue_->judge(stream, inputs, outputs, undecided_limit(epilogue_->graph(), which));
    }
    /// Of one sum.
    std::int64_t products() const { return problem_.image.taps() * problem_.image.channels / problem_.groups; }

    const MeasureKernels& kernels_;
    ConvProblem problem_;
    UnrolledImage rows_;
    Type type_;
    DeviceBuffer records_;
    std::unique_ptr<ExpressionReference> epilogue_;  ///< where there is one
};

}  // namespace

Source direct_source(const Plan& plan) {
    return plan.own.as<ConvPlan>().direct->visit([&]<class Config>(const Config& c) {
        const DirectKind kind = kind_of(c);
        const std::string header = fmt::format("kernels/conv/{}.cuh", kind.kernel);
        std::string members = fmt::format(".type=rooftile::Type::{}", c.type == Type::bf16 ? "bf16" : "fp16");
        Config::each([&](const char* name, int Config::*member) { members += fmt::format(", .{}={}", name, c.*member); });
        Source source = source_of_header(std::string(kind.kernel), header, {fmt::format("rooftile::{}<rooftile::{}{{{}}}>", kind.kernel, kind.config, members)}, plan.own.as<ConvPlan>().arch);
        add_epilogue(source, plan.problem.own.as<ConvProblem>().direct_epilogue, header);
        return source;
    });
}

std::shared_ptr<const Runnable> compiled_direct(const Plan& plan, const CompileOptions& options) {
    const auto start = std::chrono::steady_clock::now();
    Source source = direct_source(plan);
    source.line_info = options.line_info;
    CachedCompile compiled = compile_as(options, source);
    return std::make_shared<const DirectConv>(plan, std::move(source), std::move(compiled), seconds_since(start));
}

std::unique_ptr<Reference> direct_reference(const MeasureKernels& kernels, const ConvProblem& problem) {
    return std::make_unique<DirectReference>(kernels, problem);
}

}  // namespace rooftile
