#include "rooftile/chain/device/reference.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "kernels/measure/philox.hpp"
#include "rooftile/runtime/cache.hpp"

namespace rooftile {
namespace {

constexpr unsigned threads = 256;

VerifyArguments product_of(const void* a, const void* b, std::int64_t m, std::int64_t n, std::int64_t k, Type type) {
    VerifyArguments v{};
    v.a = a, v.b = b;
    v.m = m, v.n = n, v.k = k;
    v.a_m_stride = v.b_n_stride = k;
    v.a_k_stride = v.b_k_stride = 1;
    v.c_m_stride = n;
    v.a_type = v.b_type = v.type = type;
    v.model = error_model(k);
    return v;
}

std::string shown(unsigned bits, Type type) {
    const NumberClass kind = class_of_bits(bits, type);
    if (kind == NumberClass::nan) return "NaN";
    if (kind != NumberClass::finite) return kind == NumberClass::infinite ? "+Inf" : "-Inf";
    return fmt::format("{:.9g}", value_of_bits(bits, type));
}

/// The power of two nearest to 1 / sqrt(terms).
double unit_deviation(std::int64_t terms) { return std::exp2(-std::round(std::log2(double(terms)) / 2)); }

}  // namespace

Source chain_reference_source(std::string_view arch) {
    return source_of_header("chain_reference", "kernels/chain/reference.cuh", {"rooftile::chain_round", "rooftile::chain_judge", "rooftile::chain_scale"}, arch);
}

ChainReference::ChainReference(const MeasureKernels& kernels, const ChainProblem& problem, const std::string& arch)
    : kernels_(kernels), problem_(problem) {
    const CachedCompile compiled = compile_cached(chain_reference_source(arch));
    module_ = Module(compiled.compiled.cubin);
    round_ = module_.function(compiled.compiled.lowered_names.at(0));
    judge_ = module_.function(compiled.compiled.lowered_names.at(1));
    scale_ = module_.function(compiled.compiled.lowered_names.at(2));
    // As many rows at a time as half a gigabyte of sums has room for, in whole tiles of the sums' kernel.
    constexpr std::int64_t most_bytes = std::int64_t{1} << 29;
    const std::int64_t row_bytes = std::int64_t(sizeof(Bounded)) * (problem.first_width() + 2 * problem.d) + 4 * problem.ff;
    rows_ = std::min(problem.m, std::max<std::int64_t>(verify_tile, most_bytes / row_bytes / verify_tile * verify_tile));
    const auto buffer = [&](std::int64_t columns, std::size_t bytes) { return DeviceBuffer(std::size_t(rows_ * columns) * bytes); };
    first_sums_ = buffer(problem.first_width(), sizeof(Bounded));
    hidden_ = buffer(problem.ff, ChainProblem::element_bytes);
    slack_ = buffer(problem.ff, ChainProblem::element_bytes);
    sums_ = buffer(problem.d, sizeof(Bounded));
    slack_sums_ = buffer(problem.d, sizeof(Bounded));
    records_ = DeviceBuffer(sizeof(ChainRecord) * std::size_t(kernels.verify_ctas() * verify_max));
}

std::span<const VerifyCase> ChainReference::cases() const {
    static constexpr VerifyCase all[] = {VerifyCase::exact, VerifyCase::random, VerifyCase::special};
    return problem_.act == ChainAct::relu ? std::span(all) : std::span(all).subspan(1);
}

void ChainReference::fill(Stream stream, VerifyCase which, std::uint64_t seed, TensorPointers tensors) const {
    const ChainProblem& p = problem_;
    const std::int64_t rows[] = {p.m, p.first_width(), p.d}, columns[] = {p.d, p.d, p.ff};
    for (std::size_t i = 0; i < 3; ++i) {
        FillArguments fill{};
        fill.to = {tensors[i], rows[i], columns[i], columns[i]};
        fill.seed = seed;
        fill.stream = i;
        fill.fill = which == VerifyCase::exact ? Fill::integer : Fill::normal;
        fill.type = p.type;
        // Of -1, 0 and 1: sums of products of ff columns, whose elements are sums of d, stay below 2^24.
        fill.exact = {.range = 1, .sparsity = 1, .wide = 1, .period = 7};
        fill.of_b = i == 2;
        fill.k_is_width = true;
        kernels_.fill(stream, fill);
    }
    if (which == VerifyCase::exact) return;
    const auto scale = [&](std::size_t tensor, double factor) {
        Launch launch;
        launch.grid_x = unsigned(8 * kernels_.sms());
        launch.block_x = threads;
        launch.stream = stream;
        rooftile::launch(scale_, launch, reinterpret_cast<DevicePointer>(tensors[tensor]), static_cast<long long>(rows[tensor] * columns[tensor]),
                         factor, p.type);
    };
    scale(1, unit_deviation(p.d));
    scale(2, unit_deviation(p.ff));
    if (which != VerifyCase::special) return;
    // A NaN in W1 would be in every row; in X it spoils a row, in W2 a column.
    const FloatFormat f = float_format(p.type);
    const auto infinity = std::uint16_t(f.infinity()), negative = std::uint16_t(f.sign_bit() | f.infinity()),
               nan = std::uint16_t(f.infinity() | 1u << (f.fraction_bits - 1));
    std::uint64_t counter = 0;
    const auto inject = [&](std::size_t tensor, std::uint16_t bits) {
        const PhiloxBlock block = philox(counter++, 11, seed);
        const std::int64_t row = std::int64_t(block.word[0] % std::uint64_t(rows[tensor])),
                           column = std::int64_t(block.word[1] % std::uint64_t(columns[tensor]));
        const DevicePointer at = reinterpret_cast<DevicePointer>(tensors[tensor])
                                 + DevicePointer((row * columns[tensor] + column) * ChainProblem::element_bytes);
        kernels_.inject(stream, at, bits, int(ChainProblem::element_bytes));
    };
    for (const std::uint16_t bits : {nan, infinity, negative}) inject(0, bits), inject(2, bits);
}

void ChainReference::judge_rows(Stream stream, VerifyCase which, std::span<const TensorPointers> results, std::int64_t first,
                                std::int64_t rows) const {
    const ChainProblem& p = problem_;
    const bool exact = which == VerifyCase::exact;
    const TensorPointers inputs = results[0];
    const auto* x = static_cast<const unsigned short*>(inputs[0]);
    auto* const first_sums = reinterpret_cast<Bounded*>(first_sums_.address());
    auto* const sums = reinterpret_cast<Bounded*>(sums_.address());
    auto* const slack_sums = reinterpret_cast<Bounded*>(slack_sums_.address());
    const auto *hidden = reinterpret_cast<const void*>(hidden_.address()), *slack = reinterpret_cast<const void*>(slack_.address());
    kernels_.bounded_sums(stream, product_of(x + first * p.d, inputs[1], rows, p.first_width(), p.d, p.type), exact, first_sums);
    Launch launch;
    launch.grid_x = unsigned(kernels_.verify_ctas());
    launch.block_x = threads;
    launch.stream = stream;
    ChainRoundArguments round{};
    round.sums = first_sums;
    round.hidden = reinterpret_cast<unsigned short*>(hidden_.address());
    round.slack = reinterpret_cast<unsigned short*>(slack_.address());
    round.rows = rows, round.width = p.first_width(), round.ff = p.ff;
    round.act = ChainFunction(p.act), round.type = p.type;
    rooftile::launch(round_, launch, round);
    kernels_.bounded_sums(stream, product_of(hidden, inputs[2], rows, p.d, p.ff, p.type), exact, sums);
    if (!exact) kernels_.bounded_sums(stream, product_of(slack, inputs[2], rows, p.d, p.ff, p.type), false, slack_sums);
    ChainJudgeArguments judge{};
    judge.sums = sums, judge.slack = slack_sums;
    judge.x = p.residual ? x : nullptr;
    for (const TensorPointers& result : results) judge.y[judge.results++] = static_cast<const unsigned short*>(result[3]);
    judge.first_row = first, judge.rows = rows, judge.d = p.d;
    judge.slack_sigmas = random_deviations / error_model(p.ff).most;
    judge.type = p.type, judge.exact = exact;
    rooftile::launch(judge_, launch, judge, records_.address());
}

std::vector<CaseOutcome> ChainReference::judge(Stream stream, VerifyCase which, std::uint64_t,
                                               std::span<const TensorPointers> results) const {
    fill_bytes(records_.address(), 0, records_.bytes(), stream);
    for (std::int64_t first = 0; first < problem_.m; first += rows_)
        judge_rows(stream, which, results, first, std::min(rows_, problem_.m - first));
    synchronize(stream);
    const auto ctas = std::size_t(kernels_.verify_ctas());
    std::vector<ChainRecord> records(ctas * results.size());
    copy_to_host(records.data(), records_.address(), records.size() * sizeof(ChainRecord));
    std::vector<CaseOutcome> outcomes;
    for (std::size_t i = 0; i < results.size(); ++i) outcomes.push_back(outcome_of(std::span(records).subspan(i * ctas, ctas), which));
    return outcomes;
}

CaseOutcome ChainReference::outcome_of(std::span<const ChainRecord> records, VerifyCase which) const {
    CaseOutcome out;
    out.checked = problem_.m * problem_.d;
    ChainRecord worst{};
    for (const ChainRecord& r : records) {
        out.wrong += std::int64_t(r.wrong), out.undecided += std::int64_t(r.undecided);
        if (r.ratio > worst.ratio) worst = r;
    }
    out.ratio = worst.ratio, out.bound = worst.bound;
    // Overflows of what is injected leave open what a row or a column is; elsewhere nothing is open.
    const double most_undecided = which == VerifyCase::special ? 0.5 : 0.001;
    if (out.wrong > 0)
        out.failure = fmt::format("{} of {} elements are wrong; the worst, Y[{}, {}], is {} where it should be {:.9g} +- {:.3g}", out.wrong,
                                  out.checked, worst.row, worst.column, shown(worst.got, problem_.type), worst.reference, worst.bound);
    else if (double(out.undecided) > most_undecided * double(out.checked))
        out.failure = fmt::format("{} of {} elements are undecided", out.undecided, out.checked);
    out.right = out.failure.empty();
    return out;
}

}  // namespace rooftile
