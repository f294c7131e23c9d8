// Formulas and derivations are one: what a derivation prints is listed, what is listed is printed, and an expression gives the value of
// its step.
#include "rooftile/gemm/formulas.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/fields.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/machine/keys.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/report/formulas.hpp"
#include "tests/formula_check.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/draw_request.hpp"

namespace rooftile {
namespace {

std::vector<const Formula*> all_formulas() { return formulas_in(gemm_formulas()); }

std::vector<GemmPlan> plans_of(const Machine& machine, const GemmProblem& problem, GemmRequest request) {
    request.simulate = false;
    const auto derived = derive(machine, problem, request);
    const auto* plans = std::get_if<Plans>(&derived);
    return plans ? plans->plans : std::vector<GemmPlan>();
}

double clock_of(const Machine& machine, const GemmPlan& plan) {
    const auto clock = matrix_clock(machine, rate_name_of(plan.problem.a_type));
    return clock ? clock->clock.value : unknown_number;
}

/// Some formulas are of few problems: the requests below have each of them.
TEST(GemmFormulas, ADerivationPrintsWhatIsListedAndAllOfIt) {
    FormulaCheck checked(all_formulas());
    Random random(from_environment("ROOFTILE_FUZZ_SEED", 7));
    int planned = 0;
    for (std::size_t i = 0, count = from_environment("ROOFTILE_FUZZ_SHAPES", 60); i < count; ++i) {
        static constexpr std::string_view machines[] = {"h100-sxm", "h200-sxm", "a100-80-sxm", "v100-sxm2", "worked-example", "h100-exercise"};
        const Machine machine = machine_by_id(random.one_of(machines));
        const Given given = drawn_request(random, 1500);
        SCOPED_TRACE(fmt::format("{} {}", machine.id, shown(given)));
        try {
            GemmRequest request;
            request.top = 2;
            for (const GemmPlan& plan : plans_of(machine, gemm_problem(given), request)) checked.steps(machine, plan.derivation, clock_of(machine, plan)), ++planned;
        } catch (const RequestError&) {
        }
        if (HasFatalFailure()) return;
    }
    EXPECT_GE(planned, 20);
    // What draws meet seldom.
    const auto also = [&](std::string_view id, std::initializer_list<std::pair<const char*, const char*>> fields) {
        Given given(Given::Named::by_key);
        for (const auto& [key, text] : fields) given.add(key, text);
        GemmAsk ask = gemm_ask(given, 8);
        const Machine machine = machine_by_id(id);
        const auto plans = plans_of(machine, gemm_problem(given), ask.request);
        EXPECT_FALSE(plans.empty()) << id << " " << given.text();
        for (const GemmPlan& plan : plans) checked.steps(machine, plan.derivation, clock_of(machine, plan));
    };
    also("h100-sxm", {{"shape", "4096x4096x4096"}});
    also("h100-sxm", {{"shape", "4096x4096x4096"}, {"schedule", "pingpong"}, {"tile", "64x256x64"}});
    also("h100-sxm", {{"shape", "4096x4096x4096"}, {"swap_ab", "off"}, {"tile", "128x128x64"}, {"ctas_per_sm", "2"}});
    also("h100-sxm", {{"shape", "64x1024x16384"}, {"split_k", "4"}});
    also("h100-sxm", {{"shape", "64x1024x16384"}, {"split_k", "2"}, {"grid_split_k", "2"}});
    also("h100-sxm", {{"shape", "16x4096x4096"}, {"early_weights", "on"}});
    also("h100-sxm", {{"shape", "512x512x512"}, {"lda", "519"}, {"ldb", "519"}});
    also("h100-sxm", {{"shape", "4096x4096x4104"}});
    also("h100-sxm", {{"m", "4096"}, {"n", "4096"}, {"k", "4096"}, {"types", "fp8_e4m3,fp8_e4m3,bf16"}, {"a_major", "m"}, {"b_major", "n"}});
    also("h100-sxm", {{"m", "4096"}, {"n", "4096"}, {"k", "4096"}, {"types", "fp8_e4m3,fp8_e4m3,bf16"}, {"scales", "block"}});
    also("h100-sxm", {{"shape", "32x4096x4096"}, {"swap_ab", "on"}});
    also("h100-sxm", {{"shape", "32x4096x4096"}, {"swap_ab", "on"}, {"epilogue", "d = silu(gate) * up"}, {"pairs", "interleaved"}});
    also("h100-sxm", {{"shape", "4096x4096x4096"}, {"epilogue", "d = gelu(acc + r)"}, {"tensor", "r:bf16[M,N]"}});
    also("h100-sxm", {{"n", "4096"}, {"k", "4096"}, {"groups", "128x[64..512]"}});
    also("a100-80-sxm", {{"shape", "4096x4096x4096"}, {"epilogue", "d = gelu(acc + bias)"}, {"tensor", "bias:bf16[N]"}});
    also("h200-sxm", {{"shape", "5x4096x4099"}});  // in pieces, by rows that begin anywhere
    also("h200-sxm", {{"shape", "1x8192x8192"}, {"types", "bf16,int4,bf16"}});
    also("h200-sxm", {{"shape", "300x8192x8192"}, {"types", "bf16,int4,bf16"}});
    also("h200-sxm", {{"shape", "16x8192x8192"}, {"types", "fp8_e4m3,int4,bf16"}});
    also("v100-sxm2", {{"m", "4096"}, {"n", "4096"}, {"k", "4096"}, {"type", "fp16"}});
    also("worked-example", {{"shape", "4096x4096x4096"}, {"tile", "128x128x32"}});
    also("h100-exercise", {{"shape", "4096x4096x4096"}, {"tile", "128x256x64"}, {"ctas_per_sm", "1"}});
    checked.all_were_met();
}

TEST(GemmFormulas, NameTheMachinesKeysAndOneAnother) {
    for (const Formula* formula : all_formulas()) {
        EXPECT_FALSE(formula->text.empty()) << formula->quantity;
        for (const Symbol& symbol : formula->symbols()) {
            EXPECT_FALSE(symbol.from.empty()) << formula->quantity << " " << symbol.name;
            std::istringstream keys{std::string(symbol.from)};
            if (!symbol.machine) continue;
            for (std::string key; keys >> key;) EXPECT_TRUE(match_key(key).key != nullptr || std::ranges::find(machine_keys(), key, &Key::name) != machine_keys().end()) << key;
        }
    }
}

/// The printed formulas, filled in by hand: M7 by its five numbers, its rate and its clock.
class ByHand {
  public:
    explicit ByHand(std::map<std::string, double, std::less<>> known) : known_(std::move(known)) {}
    /// The line below "N. QUANTITY = ____", filled in; its result is known from then on by its name and its symbol.
    double fill(const std::string& printed, const std::string& quantity, std::string_view when = "") {
        const std::string head = fmt::format(". {} = ________", quantity);
        for (std::size_t at = printed.find(head); at != printed.npos; at = printed.find(head, at + 1)) {
            std::istringstream rest(printed.substr(printed.find('\n', at) + 1));
            const auto next_line = [&rest] {
                std::string line;
                std::getline(rest, line);
                return line.erase(0, line.find_first_not_of(' '));
            };
            std::string line = next_line();
            const bool of_some = line.starts_with("of: ");
            if (!when.empty() && (!of_some || line.find(when) == std::string::npos)) continue;
            if (of_some) line = next_line();
            const auto value = FormulaValue::of(line, [&](std::string_view name) -> std::optional<double> {
                const auto found = known_.find(name);
                return found == known_.end() ? std::nullopt : std::optional(found->second);
            });
            EXPECT_TRUE(value) << quantity << ": " << line;
            if (!value) return unknown_number;
            known_[quantity] = *value;
            if (const auto name = FormulaValue::name_of(line); !name.empty()) known_[std::string(name)] = *value;
            return *value;
        }
        ADD_FAILURE() << "nothing printed for " << quantity << " " << when;
        return unknown_number;
    }

  private:
    std::map<std::string, double, std::less<>> known_;
};

/// Formulas of a page with blanks, as printed on long lines.
std::string printed(std::span<const FormulaPage> pages) {
    return formulas_text(pages, [](std::string_view) { return std::string(); }, {.width = 400});
}

void expect_by_hand(const std::string& page) {
    // M7: b 2, 256 KiB, 65536 registers, 1 TB/s, 50 TFLOP/s, 500 cycles; 500 FLOP a cycle of an SM; tile 128x128x32 on 256 threads.
    const Machine machine = machine_by_id("worked-example");
    const double most = machine.count("sm.max_registers_per_thread").value_or(unknown_number);  // what architecture fixes may be assumed
    ByHand hand({{"tile_m", 128}, {"tile_n", 128}, {"tile_k", 32}, {"b", 2}, {"peak", 50e12}, {"bandwidth", 1e12}, {"threads", 256},
                 {"rest", 40}, {"R", 65536}, {"S_cta", 262144}, {"reserved", 0}, {"barriers", 0}, {"rate", 500}, {"L", 500}, {"stages", 2},
                 {"ctas_per_sm", 1}, {"unit", machine.count("sm.register_allocation_unit").value_or(1)}, {"most", most}});
    const auto plans = plans_of(machine, gemm_problem(4096, 4096, 4096), [] {
        GemmRequest request;
        request.tile_m = 128, request.tile_n = 128, request.tile_k = 32, request.consumer_warpgroups = 2, request.ctas_per_sm = 1;
        return request;
    }());
    ASSERT_FALSE(plans.empty());
    const auto program = [&](std::string_view quantity) {
        for (const Step& step : plans.front().derivation)
            if (step.quantity == quantity) return step.value.value_or(unknown_number);
        return unknown_number;
    };
    struct Line {
        const char *quantity, *when;
        double by_the_method;  // section 2, M7, worked out on paper
    };
    const Line lines[] = {{"tile_flops", "", 1048576},          // 2 * 128 * 128 * 32
                          {"stage_bytes", "", 16384},           // (128 + 128) * 32 * 2
                          {"arithmetic_intensity", "", 64},     // 1048576 / 16384
                          {"intensity_critical", "", 50},       // 50e12 / 1e12
                          {"accumulator_registers", "sm80_gemm", 64},  // 128 * 128 / 256
                          {"registers_per_thread", "", 104},    // 64 + 40
                          {"registers_limit", "all but", min_known(256, most)},  // 65536 / 256
                          {"shared_limit", "one CTA", 262144},
                          {"stages_max", "", 16},            // 262144 / 16384
                          {"ctas_by_shared", "", 8},         // 262144 / (2 * 16384)
                          {"ctas_by_registers", "", 2},      // 65536 / (104 * 256) = 2.46
                          {"tile_compute_cycles", "", 2098}, // 1048576 / 500 = 2097.15
                          {"stages_min", "", 2}};            // ceil(500 / 2098) + 1
    for (const Line& line : lines) {
        EXPECT_EQ(hand.fill(page, line.quantity, line.when), line.by_the_method) << line.quantity;
        EXPECT_EQ(program(line.quantity), line.by_the_method) << line.quantity;
    }
}

TEST(GemmFormulas, WhoeverFillsThemInByHandGetsTheProgramsNumbers) {
    expect_by_hand(printed(gemm_operation().symbols()));
    const std::vector<FormulaPage> forms = gemm_forms();
    expect_by_hand(printed(std::span(forms).first(1)));
}

// A convolution by hand: 8 images of 64 x 64 x 64, 128 filters of 3 x 3; a tile of 8 x 16 pixels whose taps all read the halo.
TEST(GemmFormulas, AConvolutionIsFilledInAsAProduct) {
    const std::vector<FormulaPage> forms = gemm_forms();
    const std::string page = printed(std::span(forms).last(1));
    ByHand hand({{"batch", 8}, {"H_out", 64}, {"W_out", 64}, {"C_out", 128}, {"C_in", 64}, {"K_h", 3}, {"K_w", 3}, {"groups", 1}, {"T_h", 8},
                 {"T_w", 16}, {"stride", 1}, {"C", 64}, {"b", 2}, {"tile_n", 128}, {"tile_k", 64}});
    EXPECT_EQ(hand.fill(page, "gemm_m"), 32768);             // 8 * 64 * 64
    EXPECT_EQ(hand.fill(page, "gemm_n"), 128);
    EXPECT_EQ(hand.fill(page, "gemm_k"), 576);               // 64 * 3 * 3
    EXPECT_EQ(hand.fill(page, "tile_m"), 128);               // 8 * 16
    EXPECT_EQ(hand.fill(page, "halo_bytes"), 23040);         // 10 * 18 * 64 * 2
    EXPECT_EQ(hand.fill(page, "stage_bytes"), 32768);        // (128 + 128) * 64 * 2
    EXPECT_EQ(hand.fill(page, "tile_flops"), 2097152);       // 2 * 128 * 128 * 64
    EXPECT_EQ(hand.fill(page, "arithmetic_intensity"), 64);
}

TEST(GemmFormulas, AnUnknownNumberLeavesItsStepOpen) {
    for (const GemmPlan& plan : plans_of(machine_by_id("a100-exercise"), gemm_problem(4096, 4096, 4096), {})) {
        EXPECT_FALSE(plan.resources.stages_max);  // shared memory is unknown
        for (const Step& step : plan.derivation) {
            if (step.quantity == "stages_max" || step.quantity == "shared_limit") {
                EXPECT_FALSE(step.value) << step.quantity;
            }
            for (const Input& input : step.inputs) EXPECT_TRUE(input.name != "stages_max" || !input.value) << step.quantity;
        }
    }
}

TEST(GemmFormulas, TextAndMarkdownHaveEveryFormulaAndEveryNumberOnce) {
    const auto probe = [](std::string_view key) { return std::string(key == "dram.latency" ? "dram" : ""); };
    const auto pages = gemm_operation().symbols();
    const std::string text = formulas_text(pages, probe, {.width = 0}), markdown = formulas_markdown(pages, probe);
    for (const Formula* formula : all_formulas()) {
        EXPECT_NE(markdown.find(fmt::format("`{}`", formula->text)), std::string::npos) << formula->text;
        EXPECT_NE(text.find(fmt::format(". {} = ________", formula->quantity)), std::string::npos) << formula->quantity;
    }
    const std::string row = "\n| dram.latency |";
    EXPECT_NE(markdown.find(row), std::string::npos);
    EXPECT_EQ(markdown.find(row), markdown.rfind(row));
    for (const int width : {40, 70, 100}) {
        std::istringstream lines(formulas_text(pages, probe, {.utf8 = false, .width = width}));
        for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), std::max(72, width)) << line;
    }
}

}  // namespace
}  // namespace rooftile
