#include "rooftile/attention/device/reference.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/expression/bounded.hpp"
#include "kernels/measure/philox.hpp"
#include "rooftile/attention/device/kernel.hpp"
#include "rooftile/attention/device/score_source.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/runtime/cache.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t reference_step = 16;  // what rows are padded to
constexpr unsigned threads = 256;

/// As kernels/attention/reference.cuh lays shared memory out.
int shared_bytes_of(std::int64_t dim, std::int64_t dim_v) {
    constexpr std::int64_t double_bytes = 8;
    const std::int64_t widest = std::max(dim, dim_v), queries = widest > 256 ? 16 : 32, keys = widest > 256 ? 16 : widest > 128 ? 32 : 64;
    return int(double_bytes * (queries * (dim + 1) + keys * (widest + 1) + queries * (keys + 1)));
}

std::string shown(unsigned bits, Type type) {
    switch (class_of_bits(bits, type)) {
        case NumberClass::nan:
            return "NaN";
        case NumberClass::infinite:
            return "+Inf";
        case NumberClass::negative_infinite:
            return "-Inf";
        case NumberClass::finite:
            break;
    }
    return fmt::format("{:.9g}", value_of_bits(bits, type));
}

/// Numbers as a stream of the seed gives them.
class Numbers {
  public:
    explicit Numbers(std::uint64_t seed) : seed_(seed) {}
    std::int64_t below(std::int64_t extent) {
        constexpr std::uint64_t stream = 7;  // Q, K and V are filled from 0, 1 and 2
        const PhiloxBlock block = philox(counter_++, stream, seed_);
        const auto wide = (std::uint64_t{block.word[0]} << 32) | block.word[1];
        return std::int64_t(wide % std::uint64_t(extent));
    }

  private:
    std::uint64_t seed_, counter_ = 0;
};

/// Arguments of one of unlike sequences as if it were the whole problem; of others that.
AttentionArguments arguments_of_sequence(const AttentionProblem& p, std::int64_t sequence, TensorPointers tensors) {
    AttentionArguments a = attention_arguments(p, 1);
    a.extent = p.extent(sequence);
    a.block_table = p.paged() ? static_cast<const int*>(tensors[table_tensor(p)]) + sequence * a.table_pages : nullptr;
    if (p.cached) {
        a.batches = 1;
        const auto of_batch = [&](std::size_t tensor, const AttentionStrides& strides, bool whole) {
            return static_cast<const unsigned short*>(tensors[tensor]) + (whole ? 0 : sequence * strides.batch);
        };
        a.q = of_batch(0, a.q_strides, false), a.k = of_batch(1, a.k_strides, p.paged()), a.v = of_batch(values_tensor(p), a.v_strides, p.paged());
        return a;
    }
    const auto from = [&](std::size_t tensor, const AttentionStrides& strides) {
        return static_cast<const unsigned short*>(tensors[tensor]) + p.first_row(sequence) * strides.row;
    };
    a.q = from(0, a.q_strides), a.k = from(1, a.k_strides), a.v = from(values_tensor(p), a.v_strides);
    return a;
}

/// Rows of one tensor, so far apart.
struct Matrix {
    unsigned short* first;
    std::int64_t rows, width, pitch;
    std::uint64_t stream;  ///< of random numbers
};

/// A dense tensor is one matrix; another has one a head.
std::vector<Matrix> matrices_of(const AttentionProblem& p, AttentionOperand operand, void* tensor) {
    const bool of_q = operand == AttentionOperand::q;
    const std::int64_t heads = of_q ? p.heads : p.kv_heads, rows = of_q ? p.query_rows() : p.key_rows(),
                       width = operand == AttentionOperand::v ? p.dim_v : p.dim, batches = of_q ? (p.packed() ? 1 : p.batch) : p.key_batches();
    auto* first = static_cast<unsigned short*>(tensor);
    if (!p.strides[std::size_t(operand)]) return {{first, batches * heads * rows, width, width, 0}};
    const AttentionPitch pitch = pitch_of(p, operand);
    std::vector<Matrix> all;
    for (std::int64_t b = 0; b < batches; ++b)
        for (std::int64_t h = 0; h < heads; ++h)
            all.push_back({first + b * pitch.batch + h * pitch.head, rows, width, pitch.row, std::uint64_t(b * heads + h)});
    return all;
}

/// What one part of a problem came to, to what its others did.
void add(CaseOutcome& all, const CaseOutcome& part) {
    const std::int64_t checked = all.checked + part.checked, wrong = all.wrong + part.wrong;
    if (all.checked == 0 || (all.right && !part.right) || (all.right == part.right && part.ratio > all.ratio)) all = part;
    all.checked = checked, all.wrong = wrong;
}

}  // namespace

Source attention_reference_source(const AttentionProblem& p, std::string_view arch) {
    const auto dim = padded_to(p.dim, reference_step), dim_v = padded_to(p.dim_v, reference_step);
    Source source;
    source.name = "attention_reference";
    source.text = p.score ? judged_score_text(*p.score) : "#include \"kernels/attention/reference.cuh\"\n";
    source.name_expressions = {p.score ? fmt::format("rooftile::attention_judge_scored<{}, {}, rooftile::score::JudgedScore>", dim, dim_v)
                                       : fmt::format("rooftile::attention_judge<{}, {}>", dim, dim_v), "rooftile::attention_exact_fill",
                               "rooftile::attention_scale_rows", "rooftile::attention_spoil_tails"};
    source.arch = nvrtc_arch(arch);
    return source;
}

Compiled compiled_attention_reference(const AttentionProblem& p, std::string_view arch) {
    const Source source = attention_reference_source(p, arch);
    try {
        return compile_cached(source).compiled;
    } catch (const SpillError&) {
        return compile_source(source);
    }
}

CaseOutcome judge(std::span<const AttentionRecord> records, const AttentionProblem& p, VerifyCase which, std::int64_t sequence) {
    CaseOutcome outcome;
    const std::int64_t queries = p.extent(sequence).queries;
    outcome.checked = p.heads_counted() * queries * (p.dim_v + (p.log_sum_exp ? 1 : 0));
    WorstElement worst{};
    for (const AttentionRecord& r : records) {
        outcome.wrong += std::int64_t(r.wrong);
        if (r.worst.ratio > worst.ratio) worst = r.worst;
    }
    outcome.ratio = worst.ratio, outcome.bound = worst.bound;
    outcome.right = outcome.wrong == 0;
    if (outcome.right) return outcome;
    const std::int64_t query = worst.row % queries, head = worst.row / queries % p.heads,
                       batch = p.alike() ? worst.row / queries / p.heads : sequence;
    const std::string bound = which == VerifyCase::exact ? "" : fmt::format(" +- {:.3g}", worst.bound);
    if (worst.column < 0)
        outcome.failure = fmt::format("{} of {} elements are wrong; the worst, L[{}, {}, {}], is {:.9g} where it should be {:.9g}{}",
                                      outcome.wrong, outcome.checked, batch, head, query,
                                      double(__builtin_bit_cast(float, worst.got)), worst.reference, bound);
    else
        outcome.failure = fmt::format(
            "{} of {} elements are wrong; the worst, O[{}, {}, {}, {}], is {} where {:.9g}{} rounds to {}", outcome.wrong,
            outcome.checked, batch, head, query, worst.column, shown(worst.got, p.type), worst.reference, bound,
            shown(worst.expected, p.type));
    return outcome;
}

AttentionReference::AttentionReference(const MeasureKernels& kernels, const AttentionProblem& problem, const std::string& arch)
    : kernels_(kernels), problem_(problem) {
    if (problem.pages < problem.batch * problem.pages_of_a_batch())
        throw RequestError(fmt::format("to be verified each of {} batches has {} pages of its own; pages is {}", problem.batch, problem.pages_of_a_batch(), problem.pages));
    const Compiled compiled = compiled_attention_reference(problem, arch);
    module_ = Module(compiled.cubin);
    judge_ = module_.function(compiled.lowered_names.at(0));
    exact_fill_ = module_.function(compiled.lowered_names.at(1));
    scale_rows_ = module_.function(compiled.lowered_names.at(2));
    spoil_tails_ = module_.function(compiled.lowered_names.at(3));
    shared_bytes_ = shared_bytes_of(padded_to(problem.dim, reference_step), padded_to(problem.dim_v, reference_step));
    judge_.allow_shared(shared_bytes_);
    records_ = DeviceBuffer(sizeof(AttentionRecord) * std::size_t(ctas() * verify_max));
}

int AttentionReference::ctas() const { return kernels_.verify_ctas(); }

std::span<const VerifyCase> AttentionReference::cases() const {
    static constexpr VerifyCase all[] = {VerifyCase::exact, VerifyCase::random, VerifyCase::special};
    // Scores that are not plain need not tell the one key from the others.
    return std::span(all).subspan(problem_.score ? 1 : 0);
}

void AttentionReference::fill(Stream stream, VerifyCase which, std::uint64_t seed, TensorPointers tensors) const {
    const AttentionProblem& p = problem_;
    if (p.packed()) {
        std::vector<std::int32_t> bounds{0};
        for (const std::int64_t length : p.lengths) bounds.push_back(bounds.back() + std::int32_t(length));
        copy_to_device(reinterpret_cast<DevicePointer>(tensors[bounds_tensor(p)]), bounds.data(), bounds.size() * sizeof(bounds[0]), stream);
        synchronize(stream);  // `bounds` ends here
    }
    if (p.cached) fill_cache(stream, tensors);
    if (p.score) fill_score(stream, seed, tensors);
    if (which == VerifyCase::exact) {
        fill_exact(stream, seed, tensors);
        return spoil_tails(stream, tensors);
    }
    constexpr AttentionOperand operands[] = {AttentionOperand::q, AttentionOperand::k, AttentionOperand::v};
    for (std::size_t i = 0; i <= values_tensor(p); ++i)
        for (const Matrix& matrix : matrices_of(p, operands[i], tensors[i])) {
            FillArguments fill{};
            fill.to = {matrix.first, matrix.rows, matrix.width, matrix.pitch};
            fill.seed = seed;
            fill.stream = matrix.stream * 3 + i;
            fill.fill = Fill::normal;
            fill.type = p.type;
            kernels_.fill(stream, fill);
        }
    spoil_tails(stream, tensors);
    if (which != VerifyCase::special) return;
    constexpr double factor = 8;
    Launch launch;
    launch.grid_x = unsigned(8 * kernels_.sms());
    launch.block_x = threads;
    launch.stream = stream;
    for (const Matrix& matrix : matrices_of(p, AttentionOperand::q, tensors[0]))
        rooftile::launch(scale_rows_, launch, reinterpret_cast<DevicePointer>(matrix.first), static_cast<long long>(matrix.rows), int(p.dim),
                         static_cast<long long>(matrix.pitch), factor, p.type);
    for (const AttentionInjection& injected : attention_injections(p, seed))
        kernels_.inject(stream,
                        reinterpret_cast<DevicePointer>(tensors[std::size_t(injected.tensor)]) + DevicePointer(2 * injected.element),
                        injected.bits, bytes_of(p.type));
}

/// Lengths as they are planned for, and pages in no order.
void AttentionReference::fill_cache(Stream stream, TensorPointers tensors) const {
    const AttentionProblem& p = problem_;
    const std::vector<std::int32_t> lengths(p.lengths.begin(), p.lengths.end());
    copy_to_device(reinterpret_cast<DevicePointer>(tensors[bounds_tensor(p)]), lengths.data(), lengths.size() * sizeof(lengths[0]), stream);
    std::vector<std::int32_t> table(std::size_t(p.batch * p.pages_of_a_batch()));
    if (p.paged()) {
        std::vector<std::int32_t> pages(std::size_t(std::max(p.pages, std::int64_t(table.size()))));
        std::iota(pages.begin(), pages.end(), 0);
        Random random(7);
        for (std::size_t i = pages.size(); i > 1; --i) std::swap(pages[i - 1], pages[std::size_t(random.whole(0, std::int64_t(i) - 1))]);
        std::copy_n(pages.begin(), table.size(), table.begin());
        copy_to_device(reinterpret_cast<DevicePointer>(tensors[table_tensor(p)]), table.data(), table.size() * sizeof(table[0]), stream);
    }
    synchronize(stream);  // both end here
}

void AttentionReference::spoil_tails(Stream stream, TensorPointers tensors) const {
    const AttentionProblem& p = problem_;
    if (!p.cached || p.keys == 0) return;
    AttentionArguments a = attention_arguments(p, 1);
    a.k = tensors[1], a.v = tensors[values_tensor(p)];
    a.lengths = static_cast<const int*>(tensors[bounds_tensor(p)]);
    a.block_table = p.paged() ? static_cast<const int*>(tensors[table_tensor(p)]) : nullptr;
    if (p.paged()) a.extent.keys = int(p.pages_of_a_batch() * p.page);
    Launch launch;
    launch.grid_x = unsigned(8 * kernels_.sms());
    launch.block_x = threads;
    launch.stream = stream;
    rooftile::launch(spoil_tails_, launch, a, p.type);
}

/// Normal numbers, halved and halved again: what is multiplied by how far apart two places are stays moderate in most heads.
void AttentionReference::fill_score(Stream stream, std::uint64_t seed, TensorPointers tensors) const {
    const AttentionProblem& p = problem_;
    Random random(seed + 1);
    for (std::size_t i = 0; i < p.score->operands.size(); ++i) {
        const ScoreOperand& o = p.score->operands[i];
        std::vector<std::byte> bytes(std::size_t((o.by_head ? p.heads : 1) * bytes_of(o.element)));
        for (std::size_t at = 0; at < bytes.size(); at += std::size_t(bytes_of(o.element))) {
            const double value = random.log_uniform(0x1p-8, 1) * (random.coin() ? 1 : -1);
            if (o.element == Element::fp32) {
                const auto number = float(value);
                std::memcpy(&bytes[at], &number, sizeof number);
            } else {
                const auto bits = std::uint16_t(round_to_bits(value, type_of(o.element)));
                std::memcpy(&bytes[at], &bits, sizeof bits);
            }
        }
        copy_to_device(reinterpret_cast<DevicePointer>(tensors[first_score_tensor(p) + i]), bytes.data(), bytes.size(), stream);
        synchronize(stream);  // `bytes` ends here
    }
}

void AttentionReference::fill_exact(Stream stream, std::uint64_t seed, TensorPointers tensors) const {
    const AttentionProblem& p = problem_;
    for (std::int64_t i = 0; i < p.sequences(); ++i) {
        AttentionExactFill fill{};
        fill.problem = arguments_of_sequence(p, i, tensors);
        fill.type = p.type;
        fill.values_in_keys = p.latent;
        fill.bits = attention_key_bits(fill.problem.extent.keys, int(p.dim));
        // Sequences have numbers of their own, so that none finds its key in another's rows.
        fill.seed = unsigned(seed ^ (seed >> 32)) + 0x9e3779b9u * unsigned(i);
        Launch launch;
        launch.grid_x = unsigned(8 * kernels_.sms());
        launch.block_x = threads;
        launch.stream = stream;
        rooftile::launch(exact_fill_, launch, fill);
    }
}

std::vector<CaseOutcome> AttentionReference::judge(Stream stream, VerifyCase which, std::uint64_t,
                                                   std::span<const TensorPointers> results) const {
    const AttentionProblem& p = problem_;
    std::vector<CaseOutcome> outcomes(results.size());
    for (std::int64_t sequence = 0; sequence < p.sequences(); ++sequence) {
        AttentionJudgeArguments arguments{};
        arguments.problem = arguments_of_sequence(p, sequence, results[0]);
        arguments.scale = p.score_scale();
        arguments.type = p.type;
        arguments.exact = which == VerifyCase::exact;
        arguments.results = int(results.size());
        const std::size_t output = output_tensor(p);
        for (std::size_t i = 0; i < results.size(); ++i) {
            const std::int64_t o = p.cached ? sequence * arguments.problem.o_strides.batch : p.first_row(sequence) * arguments.problem.o_strides.row;
            const std::int64_t l = p.cached ? sequence * p.heads * p.queries : p.first_row(sequence);
            arguments.o[i] = static_cast<const unsigned short*>(results[i][output]) + o;
            arguments.log_sum_exp[i] = p.log_sum_exp ? static_cast<const float*>(results[i][output + 1]) + l : nullptr;
        }
        arguments.log_sum_exp_head = p.query_rows();
        arguments.score_error = error_model(p.dim).most;
        arguments.value_error = error_model(arguments.problem.extent.keys).most;
        fill_bytes(records_.address(), 0, records_.bytes(), stream);
        Launch launch;
        launch.grid_x = unsigned(ctas());
        launch.block_x = threads;
        launch.shared_bytes = unsigned(shared_bytes_);
        launch.stream = stream;
        if (p.score) {
            const auto tensors = results[0].subspan(first_score_tensor(p), output - first_score_tensor(p));
            std::vector<const void*> score(std::max<std::size_t>(tensors.size(), 1));  // an empty class has a byte
            std::ranges::copy(tensors, score.begin());
            DevicePointer records = records_.address();
            void* pointers[] = {&arguments, &records, score.data(), nullptr};
            launch_raw(judge_, launch, pointers);
        } else rooftile::launch(judge_, launch, arguments, records_.address());
        synchronize(stream);
        const auto count = std::size_t(ctas());
        std::vector<AttentionRecord> records(count * results.size());
        copy_to_host(records.data(), records_.address(), records.size() * sizeof(AttentionRecord));
        for (std::size_t i = 0; i < results.size(); ++i)
            add(outcomes[i], rooftile::judge(std::span(records).subspan(i * count, count), p, which, sequence));
    }
    return outcomes;
}

std::vector<AttentionInjection> attention_injections(const AttentionProblem& p, std::uint64_t seed) {
    Numbers numbers(seed);
    const FloatFormat f = float_format(p.type);
    const auto infinity = std::uint16_t(f.infinity()), negative = std::uint16_t(f.sign_bit() | f.infinity());
    const auto nan = std::uint16_t(f.infinity() | 1u << (f.fraction_bits - 1));
    const auto place = [&](int tensor, std::int64_t row, std::uint16_t bits) {
        const std::int64_t heads = tensor == 0 ? p.heads : p.kv_heads, dim = tensor == 2 ? p.dim_v : p.dim;
        const AttentionPitch pitch = pitch_of(p, AttentionOperand(tensor));
        return AttentionInjection{tensor,
                                  numbers.below(tensor == 0 ? (p.packed() ? 1 : p.batch) : p.key_batches()) * pitch.batch + numbers.below(heads) * pitch.head + row * pitch.row
                                      + numbers.below(dim),
                                  bits};
    };
    std::vector<AttentionInjection> all;
    const std::int64_t keys = p.key_rows();
    if (p.query_rows() > 0)
        for (const std::uint16_t bits : {nan, infinity}) all.push_back(place(0, numbers.below(p.query_rows()), bits));
    if (keys == 0) return all;
    // The last keys are those that a causal mask hides from most queries.
    const std::int64_t last = keys - 1, near = std::max<std::int64_t>(0, keys - 3);
    if (p.latent) {
        // What is in a key is in its values: a row of NaN for all that see it, so that others are of another batch, or before it.
        if (p.batch > 1) all.push_back(place(1, numbers.below(keys), nan));
        if (p.batch > 1 || p.mask != AttentionMask::none) all.push_back(place(1, last, nan));
        return all;
    }
    all.push_back(place(1, numbers.below(keys), nan));
    all.push_back(place(1, near, negative));
    all.push_back(place(2, numbers.below(keys), nan));
    all.push_back(place(2, numbers.below(keys), infinity));
    // The first rows of a sequence, which a block at the end of the one before holds too.
    for (std::int64_t i = 1; p.packed() && i < p.sequences() && all.size() < 12; ++i)
        if (p.lengths[std::size_t(i)] > 0) {
            all.push_back(place(1, p.first_row(i), nan));
            all.push_back(place(2, p.first_row(i), nan));
        }
    all.push_back(place(2, last, nan));
    all.push_back(place(2, near, negative));
    return all;
}

}  // namespace rooftile
