#include "rooftile/conv/device/direct_kernel.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "kernels/measure/philox.hpp"
#include "rooftile/conv/operation.hpp"
#include "rooftile/elapsed.hpp"
#include "rooftile/measure/product_verdict.hpp"
#include "rooftile/runtime/cache.hpp"
#include "rooftile/runtime/in_contexts.hpp"
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
    std::int64_t shared_bytes() const override { return plan_.config.shared_bytes(); }
    void load() const override { loaded(); }
    void launch(Stream stream, std::span<void* const> tensors, void*) const override {
        if (tensors.size() != 3) throw RequestError(fmt::format("{} tensors are given; this convolution has 3", tensors.size()));
        constexpr int alignment = 16;
        const char* const names[] = {"x", "w", "y"};
        for (std::size_t i = 0; i < 3; ++i) check_pointer(names[i], tensors[i], alignment);
        const DirectConvConfig& c = plan_.config;
        const ImageAxis &x = problem_.image.axes[0], &y = problem_.image.axes[1];
        DirectConvArguments p{};
        p.x = static_cast<const unsigned short*>(tensors[0]), p.w = static_cast<const unsigned short*>(tensors[1]), p.y = static_cast<unsigned short*>(tensors[2]);
        p.height = int(y.extent), p.width = int(x.extent), p.channels = int(problem_.image.channels), p.filters = int(problem_.filters);
        p.places_y = int(y.places()), p.places_x = int(x.places()), p.padding_y = int(y.padding), p.padding_x = int(x.padding);
        p.strips_x = divider((unsigned(p.places_x) + unsigned(c.strip) - 1) / unsigned(c.strip)), p.strips_y = divider((unsigned(p.places_y) + unsigned(c.rows) - 1) / unsigned(c.rows));
        p.strips = unsigned(plan_.strips);
        const Loaded& here = loaded();
        Launch launch;
        launch.grid_y = unsigned((p.filters + c.cta_filters() - 1) / c.cta_filters());
        const std::int64_t wanted = (plan_.strips + c.slots - 1) / c.slots, room = std::max<std::int64_t>(1, here.ctas / int(launch.grid_y));
        launch.grid_x = unsigned(std::min(wanted, room));
        launch.block_x = unsigned(c.threads());
        launch.shared_bytes = unsigned(c.shared_bytes());
        launch.stream = stream;
        rooftile::launch(here.function, launch, p);
    }

  private:
    const Loaded& loaded() const {
        return contexts_.here(compiled_.compiled, source_.arch.substr(0, 5), [&](Function function, int device) {
            function.allow_shared(plan_.config.shared_bytes());
            const int an_sm = function.ctas_per_sm(plan_.config.threads(), plan_.config.shared_bytes());
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
          records_(sizeof(VerifyRecord) * std::size_t(kernels.verify_ctas() * verify_max)) {}

    std::span<const VerifyCase> cases() const override {
        static constexpr VerifyCase all[] = {VerifyCase::exact, VerifyCase::random, VerifyCase::special};
        return all;
    }
    int max_results() const override { return verify_max; }
    void fill(Stream stream, VerifyCase which, std::uint64_t seed, TensorPointers tensors) const override {
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
        const std::int64_t channels = problem_.image.channels / problem_.groups, filters = problem_.filters / problem_.groups, m = problem_.image.rows();
        fill_bytes(records_.address(), 0, records_.bytes(), stream);
        for (std::int64_t group = 0; group < problem_.groups; ++group)
            for (std::int64_t row = 0; row < m; row += rows_.room()) {
                VerifyArguments v{};
                v.m = std::min(rows_.room(), m - row), v.n = filters, v.k = products();
                v.a = rows_.rows_of(stream, results[0][0], row, v.m, group * channels);
                v.b = static_cast<const unsigned short*>(results[0][1]) + group * filters * products();
                for (const TensorPointers& result : results)
                    v.c[v.results++] = static_cast<const unsigned short*>(result[2]) + row * problem_.filters + group * filters;
                v.first_row = row;
                v.a_m_stride = products(), v.a_k_stride = 1, v.b_n_stride = products(), v.b_k_stride = 1, v.c_m_stride = problem_.filters;
                v.a_type = v.b_type = v.type = type_;
                v.model = error_model(products());
                kernels_.verify(stream, v, which == VerifyCase::exact, records_.address());  // each adds to the records
            }
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
    /// Of one sum.
    std::int64_t products() const { return problem_.image.taps() * problem_.image.channels / problem_.groups; }

    const MeasureKernels& kernels_;
    ConvProblem problem_;
    UnrolledImage rows_;
    Type type_;
    DeviceBuffer records_;
};

}  // namespace

Source direct_source(const Plan& plan) {
    const DirectConvConfig& c = plan.own.as<ConvPlan>().direct->config;
    std::string members = fmt::format(".type=rooftile::Type::{}", c.type == Type::bf16 ? "bf16" : "fp16");
    DirectConvConfig::each([&](const char* name, int DirectConvConfig::*member) { members += fmt::format(", .{}={}", name, c.*member); });
    return source_of_header("direct_conv", "kernels/conv/direct_conv.cuh", {fmt::format("rooftile::direct_conv<rooftile::DirectConvConfig{{{}}}>", members)},
                            plan.own.as<ConvPlan>().arch);
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
