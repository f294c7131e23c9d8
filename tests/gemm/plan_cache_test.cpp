#include "rooftile/gemm/plan_cache.hpp"

#include <functional>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/knobs.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/report/json.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

std::string text(const PlanCache::Outcome& outcome) { return plan_document({}, gemm_plan_set(outcome)).dump(); }

TEST(PlanCache, GivesWhatDeriveGives) {
    const Machine machine = machine_by_id("h200-sxm");
    PlanCache cache(machine);
    GemmRequest impossible;
    impossible.tile_m = 512;
    for (const auto& problem : {gemm_problem(4096, 4096, 4096), gemm_problem(16, 4096, 4096)})
        for (const GemmRequest& request : {GemmRequest{}, impossible}) {
            const auto first = cache.derive(problem, request);
            EXPECT_EQ(text(*first), text(derive(machine, problem, request)));
            EXPECT_EQ(cache.derive(problem, request), first);  // the very same object
        }
    EXPECT_EQ(cache.derived(), 4u);
    EXPECT_EQ(cache.size(), 4u);
}

TEST(PlanCache, KeepsNothingOfWhatIsRefused) {
    PlanCache cache(machine_by_id("h200-sxm"));
    GemmRequest request;
    request.stages = 1;
    EXPECT_THROW(cache.derive(gemm_problem(64, 64, 64), request), RequestError);
    EXPECT_EQ(cache.size(), 0u);
}

// Every field makes another question. The bindings name all fields: with one more they do not compile, and
// the list below wants it too.
TEST(PlanCache, TellsEveryFieldApart) {
    using Change = std::function<void(GemmProblem&, GemmRequest&)>;
    std::vector<Change> changes{[](GemmProblem&, GemmRequest&) {}};
    const auto change = [&](auto GemmProblem::*field, auto value) {
        changes.push_back([=](GemmProblem& p, GemmRequest&) { p.*field = value; });
    };
    const auto fix = [&](auto GemmRequest::*field, auto value) {
        changes.push_back([=](GemmProblem&, GemmRequest& r) { r.*field = value; });
    };
    const auto [m, n, k, a_type, b_type, c_type, accumulate_type, a_major, b_major, lda, ldb, ldc, a_offset,
                b_offset, c_offset, batch, a_stride, b_stride, c_stride, alpha, beta, accumulation, epilogue, groups, quantised, unpacked, narrow, image,
                image_columns, gathered] = GemmProblem{};
    change(&GemmProblem::m, m + 64);
    change(&GemmProblem::n, n + 64);
    change(&GemmProblem::k, k + 64);
    change(&GemmProblem::a_type, Type::fp16);
    change(&GemmProblem::b_type, Type::fp16);
    change(&GemmProblem::c_type, Type::fp16);
    change(&GemmProblem::accumulate_type, Type::bf16);
    change(&GemmProblem::a_major, Major::mn);
    change(&GemmProblem::b_major, Major::mn);
    change(&GemmProblem::lda, std::int64_t{1024});
    change(&GemmProblem::ldb, std::int64_t{1024});
    change(&GemmProblem::ldc, std::int64_t{1024});
    change(&GemmProblem::a_offset, a_offset + 1);
    change(&GemmProblem::b_offset, b_offset + 1);
    change(&GemmProblem::c_offset, c_offset + 1);
    change(&GemmProblem::batch, std::int64_t{2});
    change(&GemmProblem::a_stride, a_stride + 1);
    change(&GemmProblem::b_stride, b_stride + 1);
    change(&GemmProblem::c_stride, c_stride + 1);
    change(&GemmProblem::alpha, 2.0);
    change(&GemmProblem::beta, 1.0);
    ASSERT_FALSE(groups);
    change(&GemmProblem::groups, SharedGroups({256, 256}));
    ASSERT_EQ(accumulation, Accumulation::fast);
    change(&GemmProblem::accumulation, Accumulation::promoted);
    ASSERT_EQ(quantised, QuantisedLayout{});
    for (const QuantisedLayout& layout : {QuantisedLayout{.weights = WeightType::int4}, {.weights = WeightType::uint4}, {.group = 32}, {.scale = Type::fp16},
                                          {.zeros = ZeroType::integer}, {.zeros = ZeroType::real}})
        change(&GemmProblem::quantised, layout);
    ASSERT_EQ(unpacked, QuantisedLayout{});
    change(&GemmProblem::unpacked, QuantisedLayout{.weights = WeightType::nf4});
    ASSERT_FALSE(narrow);
    change(&GemmProblem::narrow, std::optional(NarrowRows{Type::fp8_e4m3, 64, 0}));
    ASSERT_FALSE(image || image_columns != 0);  // the second follows from the first
    for (const std::int64_t stride : {1, 2}) change(&GemmProblem::image, std::optional(ImageOperand{.axes = {ImageAxis{.extent = 9, .stride = stride}}}));
    std::size_t fixed = 0;  // by knobs: 0 is not the same as nothing
    GemmKnobs::each([&]<class T>(const GemmKnob<T>& knob) {
        const auto try_all = [&](std::initializer_list<T> values) {
            for (const T& value : values) fix(knob.fixed, value);
            fixed += values.size();
        };
        if constexpr (std::is_same_v<T, int>) try_all({0, 1, 2});
        else if constexpr (std::is_same_v<T, EvictFirst>) try_all({{}, {.a = true}, {.b = true}, {.c = true}});
        else try_all({T(0), T(1)});
    });
#define ROOFTILE_KNOB(TYPE, NAME, ...) NAME,
    const auto [kernel,
#include "rooftile/gemm/knobs.def"
#undef ROOFTILE_KNOB
                top, buildable_only, simulate, exhaustive] = GemmRequest{};
    ASSERT_EQ(kernel, nullptr);
    for (const char* name : {"sm90_gemm", "sm80_gemm"}) fix(&GemmRequest::kernel, find_gemm_kernel(name));
    fix(&GemmRequest::top, top + 1);
    fix(&GemmRequest::buildable_only, !buildable_only);
    fix(&GemmRequest::simulate, !simulate);
    fix(&GemmRequest::exhaustive, !exhaustive);

    std::vector<PlanQuestion> questions;
    for (const Change& applied : changes) {
        GemmProblem problem = gemm_problem(512, 512, 512);
        GemmRequest request;
        applied(problem, request);
        const PlanQuestion question(problem, request);
        EXPECT_EQ(question, PlanQuestion(problem, request));
        for (std::size_t i = 0; i < questions.size(); ++i)
            EXPECT_FALSE(question == questions[i]) << "changes " << i << " and " << questions.size();
        questions.push_back(question);
    }
    EXPECT_EQ(questions.size(), 1u + 33 + fixed + 2 + 4);
    EXPECT_GE(fixed, 3u * 12 + 2 + 2 + 8 * 2 + 4);
}

TEST(PlanCache, ForgetsWhatWasAskedForLongestAgo) {
    PlanCache cache(machine_by_id("h200-sxm"), 2);
    const auto a = gemm_problem(64, 64, 64), b = gemm_problem(128, 64, 64), c = gemm_problem(192, 64, 64);
    const auto first = cache.derive(a);
    cache.derive(b);
    EXPECT_EQ(cache.derive(a), first);
    cache.derive(c);  // b goes
    EXPECT_EQ(cache.size(), 2u);
    EXPECT_EQ(cache.derived(), 3u);
    EXPECT_EQ(cache.derive(a), first);
    EXPECT_EQ(cache.derived(), 3u);
    cache.derive(b);
    EXPECT_EQ(cache.derived(), 4u);
    // What was forgotten lives on with who holds it.
    cache.derive(c);
    EXPECT_FALSE(std::get<Plans>(*first).plans.front().derivation.all().empty());
}

TEST(PlanCache, ManyThreadsAskAndRead) {
    PlanCache cache(machine_by_id("h200-sxm"), 4);  // fewer than are asked for: entries come and go
    std::vector<std::string> expected;
    for (int i = 1; i <= 6; ++i)
        expected.push_back(text(derive(cache.machine(), gemm_problem(64 * i, 256, 256))));
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    const int rounds = int(test_count(15, 60));
    for (std::size_t t = 0; t < wrong.size(); ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < rounds; ++i) {
                const int which = int(t + std::size_t(i) * (t + 1)) % 6;
                const auto outcome = cache.derive(gemm_problem(64 * (which + 1), 256, 256));
                wrong[t] += text(*outcome) != expected[std::size_t(which)];
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int>(4, 0));
    EXPECT_LE(cache.size(), 4u);
}

}  // namespace
}  // namespace rooftile
