// Attention on a GPU: drawn problems of every mask, type, layout and size, each against fp64 at every element.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "kernels/measure/numbers.hpp"
#include "rooftile/attention/device/kernel.hpp"
#include "rooftile/attention/device/reference.hpp"
#include "rooftile/attention/draw.hpp"
#include "rooftile/attention/operation.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/measure/measure.hpp"
#include "tests/device/device.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

class AttentionTest : public DeviceTest {
  protected:
    /// Verified, and timed a little so that launches follow each other; the first `top` plans.
    static void expect_right(const AttentionProblem& problem, const AttentionRequest& request, bool time) {
        SCOPED_TRACE(attention_operation().short_name({&attention_operation(), Own::of(problem)}));
        const Machine machine = live_machine().machine;
        MeasureTask task;
        task.plans = attention_plan_set(derive(std::make_shared<const Machine>(machine), problem, request));
        ASSERT_FALSE(task.plans.plans.empty());
        MeasureOptions options;
        options.mode = Mode::burst;
        options.machine = &machine;
        options.seed = 5;
        options.time = time;
        options.baseline = false;
        options.timing.rounds.least = options.timing.rounds.most = 2;
        options.timing.burst_seconds = 0.005;
        options.timing.idle_seconds = 0.01;
        std::vector<MeasureTask> tasks;
        tasks.push_back(std::move(task));
        for (const Measurement& row : measure(std::move(tasks), options).rows) {
            EXPECT_TRUE(row.verified.ok()) << attention_operation().label(row.plan) << ": " << row.verified.failure;
            if (!problem.score) { EXPECT_EQ(row.verified.exact, true); }
            EXPECT_EQ(row.verified.random, true);
            EXPECT_EQ(row.verified.special, true);
            if (time) { EXPECT_EQ(row.verified.timed, true); }
        }
    }
};

AttentionProblem drawn(Random& random) {
    AttentionProblem p;
    const std::int64_t group = random.whole(1, 4);
    p.batch = random.whole(1, 3), p.kv_heads = random.whole(1, 3), p.heads = p.kv_heads * group;
    const auto rows = [&] { return random.one_in(5) ? random.whole(1, 3) : random.whole(1, 900); };
    p.queries = rows(), p.keys = rows();
    p.dim = 8 * random.whole(1, 32), p.dim_v = random.coin() ? p.dim : 8 * random.whole(1, 32);
    p.mask = AttentionMask(random.pick(3)), p.window = random.whole(1, 600);
    p.type = random.coin() ? Type::bf16 : Type::fp16;
    p.layout = random.coin() ? AttentionLayout::bhsd : AttentionLayout::bshd;
    p.log_sum_exp = random.coin();
    if (random.one_in(3)) {  // rows apart, as views of a projection's result have them
        const auto apart = [&](std::int64_t heads, std::int64_t rows, std::int64_t dim) {
            const std::int64_t head = dim + 8 * random.whole(0, 2), row = heads * head + 8 * random.whole(0, 20);
            return AttentionPitch{.row = row, .head = head, .batch = rows * row + 8 * random.whole(0, 3)};
        };
        p.strides = {apart(p.heads, p.queries, p.dim), apart(p.kv_heads, p.keys, p.dim), apart(p.kv_heads, p.keys, p.dim_v), apart(p.heads, p.queries, p.dim_v)};
    }
    return p;
}

/// As drawn(), in packed sequences, some without rows.
AttentionProblem drawn_packed(Random& random) {
    AttentionProblem p = drawn(random);
    p.batch = random.whole(1, 12), p.strides = {};
    for (std::int64_t i = 0; i < p.batch; ++i) p.lengths.push_back(random.one_in(4) ? random.whole(0, 2) : random.whole(1, 700));
    p.queries = p.keys = *std::max_element(p.lengths.begin(), p.lengths.end());
    return p;
}

TEST_F(AttentionTest, PackedSequences) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 18));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 6); ++i) expect_right(drawn_packed(random), {.top = 1}, i == 0);
}

// Soft-caps, biases by distance, of a head and of all, comparisons of places; packed or not.
TEST_F(AttentionTest, ScoresOfExpressions) {
    struct Score {
        const char* expression;
        std::vector<std::string> tensors;
    };
    const Score scores[] = {{"s = 30 * tanh(s / 30)", {}},
                            {"s = s + slope * (j - i)", {"slope:fp32[H]"}},
                            {"s = 5 * tanh(s * 0.2) + slope * (j - i) * 0.1", {"slope:bf16[H]"}},
                            {"s = where(i - j > 40.5, s * cap, s)", {"cap:fp32[1]"}}};
    Random random(from_environment("ROOFTILE_TEST_SEED", 19));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 8); ++i) {
        AttentionProblem p = random.coin() ? drawn(random) : drawn_packed(random);
        const Score& score = scores[i % std::size(scores)];
        p.score = attention_score(p.heads, score.expression, score.tensors);
        expect_right(p, {.top = 1}, false);
    }
}

// Rows whose first elements are the values, of any heads, lengths and pages; the first are DeepSeek-V3's, of one GPU and of eight.
TEST_F(AttentionTest, LatentRows) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 23));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 12); ++i) {
        AttentionProblem p;
        p.latent = true, p.kv_heads = 1;
        p.heads = i < 2 ? (i == 0 ? 128 : 16) : random.one_in(3) ? random.whole(1, 130) : 8 * random.whole(1, 16);
        p.batch = random.whole(1, 5), p.queries = i < 2 || random.coin() ? 1 : random.whole(2, 6);
        p.keys = random.one_in(4) ? random.whole(1, 70) : random.whole(100, 6000);
        p.dim_v = i < 2 ? 512 : 128 * random.whole(1, 4), p.dim = i < 2 ? 576 : std::min<std::int64_t>(576, p.dim_v + 16 * random.whole(0, 4));
        p.mask = random.coin() ? AttentionMask::causal : AttentionMask::none;
        p.type = random.coin() ? Type::bf16 : Type::fp16;
        p.layout = random.coin() ? AttentionLayout::bhsd : AttentionLayout::bshd;
        p.log_sum_exp = random.coin();
        if (random.coin()) p.scale = 0.06;
        if (random.coin()) {
            p.cached = true;
            for (std::int64_t b = 0; b < p.batch; ++b) p.lengths.push_back(random.one_in(5) ? random.whole(0, 3) : random.whole(0, p.keys));
            if (random.coin()) p.page = 16 << random.pick(4), p.pages = p.batch * p.pages_of_a_batch();
        }
        AttentionRequest request{.top = 2};
        if (random.one_in(4)) request.batch_invariant = true;
        request.combine_apart = i % 2 == 0;
        expect_right(p, request, i < 2);
    }
}

TEST_F(AttentionTest, RandomProblems) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 17));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 6); ++i) expect_right(drawn(random), {.top = 1}, false);
}

// The head dims of models, every tile that fits: the best plans of each, launched again and again.
TEST_F(AttentionTest, TheBestPlansOfModels) {
    for (const std::int64_t dim : {64, 96, 128, 192, 256})
        for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal}) {
            AttentionProblem p;
            p.heads = 6, p.kv_heads = 2, p.queries = p.keys = 1100, p.dim = p.dim_v = dim, p.mask = mask;
            expect_right(p, {.top = 3}, true);
        }
}

// Queries that see nothing, because there is nothing, and a single key.
TEST_F(AttentionTest, NoKeysAndOneKey) {
    for (const std::int64_t keys : {0, 1}) {
        AttentionProblem p;
        p.heads = p.kv_heads = 2, p.queries = 70, p.keys = keys, p.log_sum_exp = true;
        expect_right(p, {.top = 1}, false);
        p.mask = AttentionMask::causal;  // all but the last see nothing
        expect_right(p, {.top = 1}, false);
    }
}

TEST_F(AttentionTest, EveryNumberOfWarpgroupsAndStages) {
    AttentionProblem p;
    p.heads = p.kv_heads = 3, p.queries = 450, p.keys = 1000, p.mask = AttentionMask::causal;
    for (const int tile_q : {64, 128, 192})
        for (const int stages : {1, 2, 3, 4}) expect_right(p, {.tile_q = tile_q, .stages = stages, .top = 2}, false);
}

/// Scores of a problem of one batch, [head][query][key], as fp32 makes them exactly, and its values.
struct ExactScores {
    std::vector<float> scores;
    std::vector<double> values;  ///< [head][key][dim_v]
};

/// Whole numbers in Q and K, times 2^`lift` in K: products whose sums fp32 has exactly. Device tensors in the problem's order.
ExactScores whole_numbers(Random& random, const AttentionProblem& p, int lift, std::vector<DeviceBuffer>& tensors) {
    ExactScores out;
    std::vector<double> q, k;
    const auto put = [&](std::vector<double>& to, std::int64_t count, double scale) {
        std::vector<std::uint16_t> bits;
        for (std::int64_t i = 0; i < count; ++i) {
            to.push_back(double(random.whole(-4, 4)) * scale);
            bits.push_back(std::uint16_t(round_to_bits(to.back(), p.type)));
        }
        copy_to_device(tensors.emplace_back(bits.size() * 2).address(), bits.data(), bits.size() * 2);
    };
    put(q, p.heads * p.queries * p.dim, 1);
    put(k, p.heads * p.keys * p.dim, std::exp2(lift));
    put(out.values, p.heads * p.keys * p.dim_v, 1);
    for (std::int64_t head = 0; head < p.heads; ++head)
        for (std::int64_t i = 0; i < p.queries; ++i)
            for (std::int64_t j = 0; j < p.keys; ++j) {
                double sum = 0;
                for (std::int64_t d = 0; d < p.dim; ++d) sum += q[std::size_t((head * p.queries + i) * p.dim + d)] * k[std::size_t((head * p.keys + j) * p.dim + d)];
                out.scores.push_back(float(sum / 8));  // 1 / sqrt(64)
            }
    return out;
}

/// Against softmax in fp64: what the scores are, however far from 0, is exact.
void expect_softmax(const AttentionProblem& p, const ExactScores& exact, std::span<const std::uint16_t> o, std::span<const float> log_sums) {
    int told = 0;
    for (std::int64_t head = 0; head < p.heads; ++head)
        for (std::int64_t i = 0; i < p.queries && told < 3; ++i) {
            const float* scores = exact.scores.data() + (head * p.queries + i) * p.keys;
            const std::int64_t first = p.extent().first_key(int(i)), end = p.extent().end_key(int(i));
            double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
            for (std::int64_t j = first; j < end; ++j) greatest = std::max(greatest, double(scores[j]));
            std::vector<double> expected(std::size_t(p.dim_v), 0);
            for (std::int64_t j = first; j < end; ++j) {
                const double weight = std::exp(double(scores[j]) - greatest);
                sum += weight;
                for (std::int64_t d = 0; d < p.dim_v; ++d) expected[std::size_t(d)] += weight * exact.values[std::size_t((head * p.keys + j) * p.dim_v + d)];
            }
            const double log_sum = first < end ? greatest + std::log(sum) : greatest;
            const double got_log_sum = double(log_sums[std::size_t(head * p.queries + i)]);
            bool right = first >= end ? got_log_sum == greatest : std::fabs(got_log_sum - log_sum) <= 1e-6 * std::fabs(log_sum) + 1e-4;
            // Weights and the result are rounded to the type, of at most 4.
            for (std::int64_t d = 0; d < p.dim_v; ++d) {
                const double got = value_of_bits(o[std::size_t((head * p.queries + i) * p.dim_v + d)], p.type);
                right &= std::fabs(got - (first < end ? expected[std::size_t(d)] / sum : 0)) <= 0.05;
            }
            told += !right;
            EXPECT_TRUE(right) << "query " << i << " of head " << head << ", greatest score " << greatest << ", log-sum-exp " << got_log_sum << " for "
                               << log_sum;
        }
}

// Finite scores up to fp32's end, every mask, plain and of an expression, all of a row and some of it: none counts as minus infinity.
TEST_F(AttentionTest, ScoresUpToTheEndOfFp32) {
    struct Form {
        std::string expression;
        std::function<float(float s, float i, float j)> of;
        int lift = 0;  ///< of plain scores
    };
    Random random(from_environment("ROOFTILE_TEST_SEED", 47));
    std::vector<Form> forms;
    for (const int exponent : {16, 22, 24, 26, 28, 31, 40, 64, 100, 118}) {
        const double factor = std::exp2(exponent) * (random.coin() ? 1 : -1);
        forms.push_back({fmt::format("s = s * {:.1f}", factor), [factor](float s, float, float) { return s * float(factor); }});
        forms.push_back({"", [](float s, float, float) { return s; }, exponent});
    }
    for (const double far : {-1e5, -1e8, -1e9, -1e20, -1e30, -3.4e38, 3.4e38, 1e12}) {
        forms.push_back({fmt::format("s = s + {:.1f}", far), [far](float s, float, float) { return s + float(far); }});
        forms.push_back({fmt::format("s = where(j > i - 30.5, {:.1f}, s)", far),
                         [far](float s, float i, float j) { return j > i - 30.5f ? float(far) : s; }});
    }
    const Machine machine = live_machine().machine;
    for (const Form& form : forms) {
        AttentionProblem p;
        p.heads = p.kv_heads = 2, p.queries = random.whole(1, 200), p.keys = random.whole(1, 500), p.dim = p.dim_v = 64, p.log_sum_exp = true;
        p.mask = AttentionMask(random.pick(3)), p.window = random.whole(1, 200);
        p.type = form.lift > 0 || random.coin() ? Type::bf16 : Type::fp16;  // fp16 holds no such keys
        if (!form.expression.empty()) p.score = attention_score(p.heads, form.expression, {});
        SCOPED_TRACE(fmt::format("{} 2^{} {} {} of {} queries, {} keys", form.expression, form.lift, name_of(p.mask), int(p.type), p.queries, p.keys));
        std::vector<DeviceBuffer> tensors;
        ExactScores exact = whole_numbers(random, p, form.lift, tensors);
        for (std::size_t at = 0; at < exact.scores.size(); ++at) {
            const auto j = std::int64_t(at) % p.keys, i = std::int64_t(at) / p.keys % p.queries;
            exact.scores[at] = form.of(exact.scores[at], float(p.extent().place(int(i))), float(j));
        }
        std::vector<std::uint16_t> o(std::size_t(p.heads * p.queries * p.dim_v));
        std::vector<float> log_sums(std::size_t(p.heads * p.queries));
        tensors.emplace_back(o.size() * 2);
        tensors.emplace_back(log_sums.size() * 4);
        std::vector<void*> pointers;
        for (const DeviceBuffer& tensor : tensors) pointers.push_back(tensor.data());
        const PlanSet plans = attention_plan_set(derive(std::make_shared<const Machine>(machine), p, {}));
        ASSERT_FALSE(plans.plans.empty());
        std::vector<std::string> refused;  // a plan's registers are an estimate
        const CompiledKernel kernel = compile_first(plans, refused);
        const DeviceBuffer workspace(std::max<std::size_t>(16, kernel.workspace_bytes()));
        fill_bytes(workspace.address(), 0, workspace.bytes(), nullptr);
        kernel.launch(nullptr, pointers, workspace.data());
        synchronize(Stream(nullptr));
        copy_to_host(o.data(), tensors[3].address(), o.size() * 2);
        copy_to_host(log_sums.data(), tensors[4].address(), log_sums.size() * 4);
        expect_softmax(p, exact, o, log_sums);
    }
}

/// Few queries over caches of unlike lengths, some empty, half in pages.
AttentionProblem drawn_cache(Random& random) {
    for (;;)
        if (AttentionProblem p = drawn_attention(random, {.law = "any"}); p.cached && !p.score) return p;
}

TEST_F(AttentionTest, Caches) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 20));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 10); ++i) expect_right(drawn_cache(random), {.top = 1}, i == 0);
}

/// What a launch reads and writes, and the workspace, which is 0.
struct Tensors {
    std::vector<DeviceBuffer> buffers;
    std::vector<void*> pointers;
    DeviceBuffer workspace;
    Tensors(const AttentionProblem& p, const CompiledKernel& kernel) : workspace(std::max<std::size_t>(16, kernel.workspace_bytes())) {
        for (const TensorInfo& t : attention_tensors(p)) {
            std::int64_t elements = 1;
            for (std::size_t axis = 0; axis < t.extents.size(); ++axis) elements += (t.extents[axis].most - 1) * t.strides[axis];
            buffers.emplace_back(std::size_t(elements) * std::size_t(t.element_bits) / 8);
            pointers.push_back(buffers.back().data());
        }
        fill_bytes(workspace.address(), 0, workspace.bytes(), nullptr);
    }
};

CompiledKernel compiled(const Machine& machine, const AttentionProblem& p, const AttentionRequest& request) {
    std::vector<std::string> refused;
    return compile_first(attention_plan_set(derive(std::make_shared<const Machine>(machine), p, request)), refused);
}

// Which lengths there are is read on the device: what was captured serves others, with tables of their own.
TEST_F(AttentionTest, ACaptureServesOtherLengths) {
    const Machine machine = live_machine().machine;
    const MeasureKernels kernels(compile_measure_kernels(machine.arch));
    Random random(from_environment("ROOFTILE_TEST_SEED", 21));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 6); ++i) {
        AttentionProblem p = drawn_cache(random);
        SCOPED_TRACE(attention_operation().short_name({&attention_operation(), Own::of(p)}));
        const CompiledKernel kernel = compiled(machine, p, {});
        const Tensors tensors(p, kernel);
        const std::vector<void*>& pointers = tensors.pointers;
        StreamOwner stream;
        begin_capture(stream);
        kernel.launch(stream, pointers, tensors.workspace.data());
        const Graph graph = end_capture(stream);
        for (const std::int64_t most : {p.keys, std::int64_t{1}, p.keys, std::int64_t{0}, p.keys}) {
            for (std::int64_t& length : p.lengths) length = random.one_in(4) ? most : random.whole(0, most);
            const AttentionReference reference(kernels, p, machine.arch);
            reference.fill(stream, VerifyCase::random, 9, pointers);
            graph.launch(stream);
            const std::vector<TensorPointers> results{pointers};
            const CaseOutcome outcome = reference.judge(stream, VerifyCase::random, 9, results).front();
            EXPECT_TRUE(outcome.right) << "lengths to " << most << ": " << outcome.failure;
        }
    }
}

/// Few queries over caches of a few hundred keys: every dim, mask, type, layout, group of heads and page.
AttentionProblem drawn_request(Random& random) {
    AttentionProblem p;
    p.cached = true;
    p.batch = random.whole(1, 9), p.kv_heads = random.whole(1, 3), p.heads = p.kv_heads * random.whole(1, random.one_in(4) ? 40 : 8);
    p.queries = random.one_in(3) ? 1 : random.whole(1, 16), p.keys = random.one_in(5) ? random.whole(1, 40) : random.whole(1, 900);
    p.dim = 8 * random.whole(1, 32), p.dim_v = random.coin() ? p.dim : 8 * random.whole(1, 32);
    p.mask = AttentionMask(random.pick(3)), p.window = random.whole(1, 400);
    p.type = random.coin() ? Type::bf16 : Type::fp16;
    p.layout = random.coin() ? AttentionLayout::bhsd : AttentionLayout::bshd;
    p.log_sum_exp = random.coin();
    if (random.coin()) p.page = 16 * random.whole(1, 16), p.pages = p.batch * p.pages_of_a_batch() + random.whole(0, 3);
    return p;
}

/// Of a sequence: nothing, one key, all there is room for, up to the end of a page or one key off it, any.
std::int64_t drawn_length(Random& random, const AttentionProblem& p) {
    const std::int64_t edge = p.paged() ? p.page : 64, kinds[] = {0,
                                                                  1,
                                                                  p.keys,
                                                                  random.whole(0, p.keys / edge) * edge + random.whole(-1, 1),
                                                                  random.whole(0, p.keys),
                                                                  random.whole(0, p.keys)};
    return std::clamp<std::int64_t>(random.one_of(kinds), 0, p.keys);
}

// A kernel serves several requests, as compiling it is what takes the time.
TEST_F(AttentionTest, RandomRequests) {
    const std::size_t requests = test_count(24, 1000);
    constexpr std::size_t a_kernel = 6;
    const Machine machine = live_machine().machine;
    const MeasureKernels kernels(compile_measure_kernels(machine.arch));
    StreamOwner stream;
    for (std::size_t first = 0; first < requests; first += a_kernel) {
        Random random(test_seed() * 1'000'003 + first);
        AttentionProblem p = drawn_request(random);
        const auto draw_lengths = [&] {
            p.lengths.clear();
            for (std::int64_t i = 0; i < p.batch; ++i) p.lengths.push_back(drawn_length(random, p));
        };
        draw_lengths();
        SCOPED_TRACE(attention_operation().short_name({&attention_operation(), Own::of(p)})
                     + fmt::format(", ROOFTILE_SAMPLE_SEED={}, from {}", test_seed(), first));
        AttentionRequest request{.top = 1};
        if (random.one_in(4)) request.batch_invariant = true;
        if (random.one_in(2)) {  // long rows leave two CTAs an SM too few registers
            request.ctas_per_sm = 2;
            if (std::holds_alternative<AttentionInfeasible>(derive(std::make_shared<const Machine>(machine), p, request)))
                request.ctas_per_sm.reset();
        }
        const CompiledKernel kernel = compiled(machine, p, request);
        const Tensors tensors(p, kernel);
        for (std::size_t i = first; i < std::min(requests, first + a_kernel); ++i, draw_lengths()) {
            const AttentionReference reference(kernels, p, machine.arch);
            for (const VerifyCase which : reference.cases()) {
                for (std::size_t t = output_tensor(p); t < tensors.buffers.size(); ++t)
                    fill_bytes(tensors.buffers[t].address(), 0xff, tensors.buffers[t].bytes(), stream);
                reference.fill(stream, which, i, tensors.pointers);
                kernel.launch(stream, tensors.pointers, tensors.workspace.data());
                const std::vector<TensorPointers> results{tensors.pointers};
                const CaseOutcome outcome = reference.judge(stream, which, i, results).front();
                EXPECT_TRUE(outcome.right) << "lengths " << lengths_text(p) << ", case " << int(which) << ": " << outcome.failure;
            }
        }
    }
}

/// Q, K and V of one sequence, heads after each other and their rows in them, whatever batch it is in.
struct OneSequence {
    std::int64_t keys;
    std::array<std::vector<std::uint16_t>, 3> numbers;
};

/// Any numbers, quickly made: rows of a pool of drawn ones.
class Numbers {
  public:
    Numbers(Random& random, Type type) : random_(random) {
        for (int i = 0; i < 5000; ++i) pool_.push_back(std::uint16_t(round_to_bits(double(random.whole(-400, 400)) / 128, type)));
    }
    std::vector<std::uint16_t> of(std::size_t count) {
        constexpr std::size_t row = 64;
        std::vector<std::uint16_t> out(count);
        for (std::size_t i = 0; i < count; i += row)
            std::copy_n(pool_.begin() + std::ptrdiff_t(random_.pick(pool_.size() - row)), std::min(row, count - i),
                        out.begin() + std::ptrdiff_t(i));
        return out;
    }

  private:
    Random& random_;
    std::vector<std::uint16_t> pool_;
};

/// O and the logarithms of batch `at` of a launch of which it is that sequence, and all else is drawn.
std::vector<std::uint16_t> bits_among(const Machine& machine, AttentionProblem p, const AttentionRequest& request, std::int64_t at,
                                      const OneSequence& sequence, Random& random, Numbers& numbers) {
    p.lengths[std::size_t(at)] = sequence.keys;
    const CompiledKernel kernel = compiled(machine, p, request);
    const Tensors tensors(p, kernel);
    const std::vector<std::int32_t> lengths(p.lengths.begin(), p.lengths.end());
    copy_to_device(tensors.buffers[bounds_tensor(p)].address(), lengths.data(), lengths.size() * sizeof(lengths[0]));
    std::vector<std::int32_t> table(std::size_t(p.batch * p.pages_of_a_batch()));
    if (p.paged()) {
        std::iota(table.begin(), table.end(), 0);
        for (std::size_t i = table.size(); i > 1; --i) std::swap(table[i - 1], table[random.pick(i)]);
        copy_to_device(tensors.buffers[table_tensor(p)].address(), table.data(), table.size() * sizeof(table[0]));
    }
    for (std::size_t t = 0; t < 3; ++t) {
        std::vector<std::uint16_t> bits = numbers.of(tensors.buffers[t].bytes() / 2);
        const AttentionPitch pitch = pitch_of(p, AttentionOperand(t));
        const std::int64_t heads = t == 0 ? p.heads : p.kv_heads, rows = t == 0 ? p.queries : sequence.keys,
                           width = t == 2 ? p.dim_v : p.dim;
        for (std::int64_t head = 0; head < heads; ++head)
            for (std::int64_t row = 0; row < rows; ++row) {
                const bool in_page = t > 0 && p.paged();
                const std::int64_t batch = in_page ? table[std::size_t(at * p.pages_of_a_batch() + row / p.page)] : at,
                                   own_row = in_page ? row % p.page : row;
                std::copy_n(sequence.numbers[t].begin() + (head * rows + row) * width, width,
                            bits.begin() + batch * pitch.batch + head * pitch.head + own_row * pitch.row);
            }
        copy_to_device(tensors.buffers[t].address(), bits.data(), bits.size() * 2);
    }
    StreamOwner stream;
    const std::size_t output = output_tensor(p);
    for (std::size_t t : {output, output + 1}) fill_bytes(tensors.buffers[t].address(), 0xff, tensors.buffers[t].bytes(), stream);
    kernel.launch(stream, tensors.pointers, tensors.workspace.data());
    synchronize(stream);
    std::vector<std::uint16_t> out;
    std::vector<std::uint16_t> o(tensors.buffers[output].bytes() / 2);
    copy_to_host(o.data(), tensors.buffers[output].address(), o.size() * 2);
    const AttentionPitch pitch = pitch_of(p, AttentionOperand::o);
    for (std::int64_t head = 0; head < p.heads; ++head)
        for (std::int64_t row = 0; row < p.queries; ++row) {
            const auto first = o.begin() + at * pitch.batch + head * pitch.head + row * pitch.row;
            out.insert(out.end(), first, first + p.dim_v);
        }
    std::vector<std::uint16_t> logs(tensors.buffers[output + 1].bytes() / 2);
    copy_to_host(logs.data(), tensors.buffers[output + 1].address(), logs.size() * 2);
    const std::int64_t halves = 2 * p.heads * p.queries;
    out.insert(out.end(), logs.begin() + at * halves, logs.begin() + (at + 1) * halves);
    return out;
}

// A sequence alone, and in batches of others, in other rooms, by other numbers of CTAs and stages.
TEST_F(AttentionTest, BatchInvariantSequencesHaveTheSameBits) {
    const Machine machine = live_machine().machine;
    for (std::size_t i = 0; i < test_count(4, 40); ++i) {
        Random random(test_seed() * 7919 + i);
        AttentionProblem p = drawn_request(random);
        p.log_sum_exp = true, p.batch = 1, p.keys = i % 2 == 0 ? random.whole(1500, 9000) : random.whole(1, 1500);
        Numbers numbers(random, p.type);
        OneSequence sequence{random.whole(1, p.keys), {}};
        for (std::size_t t = 0; t < 3; ++t)
            sequence.numbers[t] =
                numbers.of(std::size_t((t == 0 ? p.heads * p.queries : p.kv_heads * sequence.keys) * (t == 2 ? p.dim_v : p.dim)));
        const auto in_a_batch = [&](std::int64_t batch, std::int64_t room) {
            AttentionProblem b = p;
            b.batch = batch, b.keys = room, b.pages = batch * b.pages_of_a_batch();
            for (std::int64_t s = 0; s < batch; ++s) b.lengths.push_back(random.whole(0, std::min<std::int64_t>(room, 3000)));
            return b;
        };
        SCOPED_TRACE(attention_operation().short_name({&attention_operation(), Own::of(in_a_batch(1, p.keys))})
                     + fmt::format(", {} keys, ROOFTILE_SAMPLE_SEED={}", sequence.keys, test_seed()));
        const auto bits = [&](std::int64_t batch, std::int64_t room, AttentionRequest request, std::int64_t at) {
            request.batch_invariant = true, request.top = 1;
            return bits_among(machine, in_a_batch(batch, room), request, at, sequence, random, numbers);
        };
        const std::vector<std::uint16_t> alone = bits(1, p.keys, {}, 0);
        EXPECT_EQ(std::ranges::count(alone, 0xffff), 0);  // all was written
        EXPECT_TRUE(bits(2, p.keys, {}, 1) == alone);
        EXPECT_TRUE(bits(7, p.keys + 100, {.splits = 19}, 3) == alone);
        EXPECT_TRUE(bits(14, sequence.keys, {.stages = 1}, 9) == alone);
    }
}

}  // namespace
}  // namespace rooftile
