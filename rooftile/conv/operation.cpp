#include "rooftile/conv/operation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "rooftile/conv/derivation.hpp"
#include "rooftile/conv/draw.hpp"
#include "rooftile/conv/fields.hpp"
#include "rooftile/conv/packing.hpp"
#include "rooftile/conv/simulation.hpp"
#include "rooftile/core/derivation.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/report/explain.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/plan_page.hpp"
#include "rooftile/report/suite_table.hpp"

namespace rooftile {
namespace {

const Plan& product_of(const Plan& plan) { return *plan.own.as<ConvPlan>().product; }
/// Null of a product.
const DirectPlan* direct_of(const Plan& plan) {
    const auto& direct = plan.own.as<ConvPlan>().direct;
    return direct ? &*direct : nullptr;
}

const ConvProblem& typed(const Problem& problem) { return problem.own.as<ConvProblem>(); }
const Operation& products() { return *image_products().operation; }

void add_own(Record& out, const DirectConvConfig& c) {
    add_knobs<DirectKnobs>(out, c);
    for (const auto& [key, number] : {std::pair{"lanes", c.lanes}, {"slots", c.slots}, {"load_bytes", c.load_bytes}}) out.emplace_back(key, number);
}
void add_own(Record& out, const StemConvConfig& c) {
    add_knobs<StemKnobs>(out, c);
    for (const auto& [key, number] : {std::pair{"cta_filters", c.cta_filters}, {"copy_bytes", c.copy_bytes}}) out.emplace_back(key, number);
}
void add_own(Record& out, const DepthwiseConvConfig& c) { add_knobs<DepthwiseKnobs>(out, c); }

Record direct_config(const DirectPlan& plan) {
    return plan.visit([](const auto& c) {
        Record out = {{"kernel", kind_of(c).kernel}, {"loads", kind_of(c).loads}, {"taps_per_step", c.taps_x}};
        add_own(out, c);
        return out;
    });
}

std::string label_of(const DirectConvConfig& c) { return fmt::format("direct, {} filters, {}x{} places, {}x{} threads", c.vector, c.rows, c.strip, c.slots, c.lanes); }
std::string label_of(const StemConvConfig& c) { return fmt::format("rows, {}x{} places, {} warps of {} x {} filters", c.tile_y, c.tile_x, c.warps, 16 * c.warp_tiles, c.warp_filters); }
std::string label_of(const DepthwiseConvConfig& c) {
    return fmt::format("planes, {} x {}x{} places in {} rows, {} channels, {} warps", c.images, c.tile_y(), c.tile_x(), c.rows, c.channels, c.warps);
}

/// Cells of a plan's row: filters and places that go together, and threads.
std::array<std::string, 3> cells_of(const DirectConvConfig& c) { return {std::to_string(c.vector), fmt::format("{}x{}", c.rows, c.strip), fmt::format("{}x{}", c.slots, c.lanes)}; }
std::array<std::string, 3> cells_of(const StemConvConfig& c) { return {std::to_string(c.warp_filters), fmt::format("{}x{}", c.tile_y, c.tile_x), fmt::format("{}x32", c.warps)}; }
std::array<std::string, 3> cells_of(const DepthwiseConvConfig& c) { return {std::to_string(c.channels), fmt::format("{}x{}x{}", c.images, c.tile_y(), c.tile_x()), fmt::format("{}x32", c.warps)}; }

Record direct_prediction(const ConvProblem& p, const DirectPlan& plan) {
    const Demand demand = direct_demand(p, plan);
    const auto whole = [](double bytes) { return std::int64_t(std::llround(bytes)); };
    const std::int64_t moved = whole(*demand.dram_bytes), l2 = whole(*demand.l2_bytes);
    return {{"time_us", plan.time_us}, {"tflops", plan.time_us ? Value(p.flops() / *plan.time_us / 1e6) : Value()}, {"bound", plan.bound ? Value(name_of(*plan.bound)) : Value()},
            {"issue_us", plan.issue_us}, {"moved_bytes", moved}, {"dram_bytes", moved}, {"l2_bytes", l2}, {"dram_lower_bound_bytes", moved},
            {"image_bytes", whole(demand.tensors[0].footprint_bytes)}};
}

/// The first flag of the product's plan that a request has, by its name; empty: none.
std::string fixed_of_product(const Given& given) {
    const Given fixed = conv_product_request(given);
    for (const Field& field : conv_fields())
        if (field.key != "top" && field.key != "exhaustive" && fixed.has(field.key)) return given.name(field.key);
    return {};
}

std::vector<Plan> products_of(std::span<const Plan> plans) {
    std::vector<Plan> out;
    for (const Plan& plan : plans) out.push_back(product_of(plan));
    return out;
}

ConvTile tile_of(const Plan& product) {
    const Record config = product.operation->config_record(product);
    const auto number = [&](std::string_view key) { return int(find_as<std::int64_t>(config, key).value_or(1)); };
    return {number("tile_m"), number("tile_n"), number("tile_k"), image_products().images->gathers(product)};
}

/// The names of the image's tensors for the product's.
void rename(Demand& demand, const ConvProblem& p) {
    const std::vector<TensorInfo> ours = conv_tensors(p);
    for (TensorTraffic& tensor : demand.tensors) {
        if (tensor.tensor == "a") tensor.tensor = ours[0].name;
        else if (tensor.tensor == "b") tensor.tensor = ours[1].name;
        else if (tensor.tensor == "c") tensor.tensor = ours.back().name;
    }
}

std::string heading_text(const ConvProblem& p, std::string_view machine_id, std::string_view machine_name, const Terminal& terminal) {
    static constexpr std::string_view layouts[] = {"NWC", "NHWC", "NDHWC", "NCW", "NCHW", "NCDHW"};
    std::string out = terminal.paint(fmt::format("conv {}", short_name(p)), Tone::strong)
                      + fmt::format("  {} {}, fp32 accumulate\n", layouts[std::size_t(p.axes - 1 + (p.channels_first ? 3 : 0))], p.type);
    if (!p.epilogue.empty()) out += p.epilogue + "\n";
    if (is_direct(p)) out += fmt::format("{} places of {} filters, directly\n", places_by_axes(p), p.filters);
    else out += fmt::format("{}{} places of {} filters: the product {} × {} × {}\n", p.gradient == ConvGradient::none ? "" : p.gradient == ConvGradient::data ? "dx from dy of " : "dw from dy of ",
                            places_by_axes(p), p.filters, p.m(), p.n(), p.k());
    out += fmt::format("{}, at least {} to move\n", scaled_text(p.flops(), "FLOP"),
                       scaled_text(p.least_bytes(), "B"));
    return out + fmt::format("on {}  {}\n", terminal.paint(std::string(machine_id), Tone::strong), terminal.paint(std::string(machine_name), Tone::plain));
}

/// What the packing of an image with its channels outermost adds to plans of the packed one.
void pack_first(const std::shared_ptr<const Machine>& machine, PlanSet& set) {
    const ConvProblem& p = typed(set.problem);
    if (!p.channels_first) return;
    const auto packing = packing_us(*machine, p);
    for (Plan& plan : set.plans) {
        const auto rest = plan.time_us;
        plan.time_us = rest && packing ? std::optional(*rest + *packing) : std::nullopt;
        if (rest && packing && *packing > *rest) plan.bound = Bound::dram;
        plan.launches.insert(plan.launches.begin(), {.kernel = "channels_last", .workspace_bytes = packed_image_bytes(p)});
        plan.derivation = Steps([machine, problem = plan.problem, before = plan.derivation] {
            std::vector<Step> steps = {packing_step(*machine, typed(problem))};
            const std::vector<Step>& theirs = before;
            steps.insert(steps.end(), theirs.begin(), theirs.end());
            return steps;
        });
    }
    set.notes.push_back(fmt::format("x has its channels outermost: a kernel packs it first, {} of {}{}; tensors kept channels-last need none",
                                    time_or_unknown(packing), scaled_text(packing_bytes(p), "B"), is_direct(p) ? "" : ", and the table has the product behind it"));
}

class ConvOperation final : public Operation {
  public:
    std::string_view name() const override { return "conv"; }
    std::string_view meaning() const override { return "A convolution of images, channels innermost, as an implicit product"; }
    std::string_view example() const override { return "--batch 32 --channels 64 --height 56 --width 56 --filters 64 --kernel-size 3x3 --padding 1"; }
    std::span<const Field> fields() const override { return conv_fields(); }

    Problem problem(const Given& given) const override { return {this, Own::of(conv_problem(given))}; }
    void add_tensors(Given& given, std::span<const TensorInfo> inputs) const override { add_conv_tensors(given, inputs); }
    std::string_view array_function() const override { return "convolution"; }
    Own request(const Given& given, const PlanDefaults& defaults) const override {
        ConvRequest out{.product = products().request(conv_product_request(given), defaults), .top = defaults.top};
        if (given.has("top")) out.top = int(whole_number(given.name("top"), given.text("top"), 1, 64));
        out.fixed = fixed_of_product(given);
        const auto read = [&]<class Knobs>(Knobs, typename Knobs::Request& request) { read_knobs<Knobs>(given, request), check_knobs<Knobs>(request); };
        read(DirectKnobs(), out.direct), read(StemKnobs(), out.stem), read(DepthwiseKnobs(), out.depthwise);
        const auto note = [&](const auto& knob) { if (given.has(knob.field)) out.fixed_of_direct = given.name(knob.field); };
        DirectKnobs::each(note), StemKnobs::each(note), DepthwiseKnobs::each(note);
        return Own::of(std::move(out));
    }
    PlanSet plans(std::shared_ptr<const Machine> machine, const Problem& problem, const Own& asked) const override {
        PlanSet out = plans_of_packed(machine, problem, asked);
        pack_first(machine, out);
        return out;
    }
    /// Of an image with its channels innermost.
    PlanSet plans_of_packed(const std::shared_ptr<const Machine>& machine, const Problem& problem, const Own& asked) const {
        const auto& request = asked.as<ConvRequest>();
        if (is_direct(typed(problem))) return direct_set(machine, problem, request);
        if (!request.fixed_of_direct.empty()) return refused(*machine, problem, request.fixed_of_direct + " is of direct convolutions; this one is a product, leave it off");
        PlanSet set = products().derive(machine, typed(problem).product, request.product);
        PlanSet out = set;
        out.problem = problem;
        out.own = Own::of(std::move(set));
        for (Plan& plan : out.plans) {
            Plan product = plan;
            plan.operation = this, plan.problem = problem;
            plan.interval.reset();  // of products, whose loads are others
            plan.derivation = Steps([machine, problem, product] {
                std::vector<Step> steps = conv_steps(*machine, typed(problem), tile_of(product));
                const std::vector<Step>& theirs = product.derivation;
                steps.insert(steps.end(), theirs.begin(), theirs.end());
                return steps;
            });
            plan.own = Own::of(ConvPlan{.product = std::move(product), .arch = machine->arch});
        }
        out.why_no_interval.clear();
        return out;
    }

    Given with_work(const Given& given, std::int64_t size) const override { return conv_with_work(given, size); }
    bool zeros_serve(const Problem&) const override { return true; }
    Given given(const Problem& problem) const override { return conv_given(typed(problem)); }
    Record problem_record(const Problem& problem) const override { return conv_record(typed(problem)); }
    Given given_of_record(const Record& record) const override { return conv_given(record); }
    Given given_of_config(const Record& config) const override { return conv_given_of_config(config); }
    std::string short_name(const Problem& problem) const override { return rooftile::short_name(typed(problem)); }
    std::vector<TensorInfo> tensors(const Problem& problem) const override { return conv_tensors(typed(problem)); }
    Record config_record(const Plan& plan) const override {
        if (const DirectPlan* direct = direct_of(plan)) return direct_config(*direct);
        const ConvTile tile = tile_of(product_of(plan));
        return conv_config(products().config_record(product_of(plan)), tile.gathered ? whole_parts(tile.step, typed(plan.problem).image.channels) : 0,
                           typed(plan.problem).gradient);
    }
    Record resources_record(const Plan& plan) const override {
        if (const DirectPlan* direct = direct_of(plan))
            return direct->visit([](const auto& c) {
                Value an_sm = Unused{};
                if constexpr (requires { c.ctas_per_sm; }) an_sm = c.ctas_per_sm;
                return Record{{"threads", c.threads()}, {"accumulator_registers", c.sums()}, {"setmaxnreg", Unused{}}, {"stage_bytes", Unused{}}, {"stages_max", Unused{}},
                              {"shared_bytes", c.shared_bytes()}, {"ctas_per_sm", std::move(an_sm)}};
            });
        return products().resources_record(product_of(plan));
    }
    Record prediction_record(const Plan& plan) const override {
        Record out = prediction_of_packed(plan);
        const ConvProblem& p = typed(plan.problem);
        if (!p.channels_first) return out;
        const auto bytes = std::int64_t(packing_bytes(p));
        for (auto& [key, value] : out) {
            if (key == "time_us") value = plan.time_us;
            else if (key == "bound") value = plan.bound ? Value(name_of(*plan.bound)) : Value();
            else if (key == "tflops") value = plan.time_us ? Value(p.flops() / *plan.time_us / 1e6) : Value();
            else if (key == "dram_bytes" || key == "l2_bytes") value = find_as<std::int64_t>(out, key) ? Value(*find_as<std::int64_t>(out, key) + bytes) : Value();
        }
        out.emplace_back("packing_bytes", bytes);
        return out;
    }
    Record prediction_of_packed(const Plan& plan) const {
        if (const DirectPlan* direct = direct_of(plan)) return direct_prediction(typed(plan.problem), *direct);
        Record out = products().prediction_record(product_of(plan));
        const ImageTraffic t = image_traffic(typed(plan.problem), tile_of(product_of(plan)));
        const ConvProblem& p = typed(plan.problem);
        out.emplace_back("product", Record{{"m", p.m()}, {"n", p.n()}, {"k", p.k()}});
        out.emplace_back("image_bytes", std::int64_t(std::llround(t.read)));
        out.emplace_back("unrolled_bytes", std::int64_t(std::llround(t.unrolled)));
        out.emplace_back("halo_bytes", std::int64_t(std::llround(t.halo)));
        return out;
    }
    Demand demand(const Machine& machine, const Plan& plan) const override {
        const DirectPlan* direct = direct_of(plan);
        Demand demand = direct ? direct_demand(typed(plan.problem), *direct) : products().demand(machine, product_of(plan));
        if (!direct) rename(demand, typed(plan.problem));
        add_packing(demand, typed(plan.problem));
        return demand;
    }
    bool models_energy() const override { return products().models_energy(); }
    Predictor predictor(const Machine& machine, std::span<const Plan> plans) const override {
        const Predictor packed = predictor_of_packed(machine, plans);
        if (plans.empty() || !typed(plans.front().problem).channels_first) return packed;
        return [packed, problem = plans.front().problem](const Machine& other) {
            std::vector<PredictedRun> runs = packed(other);
            for (PredictedRun& run : runs) run.seconds += packing_us(other, typed(problem)).value_or(std::nan("")) / 1e6;
            return runs;
        };
    }
    Predictor predictor_of_packed(const Machine& machine, std::span<const Plan> plans) const {
        if (plans.empty() || !direct_of(plans.front())) return products().predictor(machine, products_of(plans));
        return [plans = std::vector<Plan>(plans.begin(), plans.end())](const Machine& other) {
            std::vector<PredictedRun> runs;
            for (const Plan& plan : plans)
                runs.push_back({timed(other, typed(plan.problem), *direct_of(plan)).time_us.value_or(std::nan("")) / 1e6, std::nan("")});
            return runs;
        };
    }
    std::vector<RoofStep> roof_steps(const Machine& machine, const Plan& plan) const override {
        return direct_of(plan) || typed(plan.problem).channels_first ? std::vector<RoofStep>{} : products().roof_steps(machine, product_of(plan));
    }
    std::optional<PipelineCycles> pipeline(const Machine& machine, const Plan& plan) const override {
        return direct_of(plan) ? std::nullopt : products().pipeline(machine, product_of(plan));
    }
    std::string label(const Plan& plan) const override {
        const DirectPlan* direct = direct_of(plan);
        return direct ? direct->visit([](const auto& c) { return label_of(c); }) : products().label(product_of(plan));
    }

    PlanPage page(const PlanSet& plans, std::span<const Explanation> explanations, const Terminal& terminal) const override {
        if (direct_of(plans.plans.front())) return direct_page(plans, terminal);
        PlanPage page = products().page(plans.own.as<PlanSet>(), explanations, terminal);
        const ConvProblem& p = typed(plans.problem);
        for (std::string_view& column : page.columns) column = conv_config_key(column, p.gradient);
        page.heading = heading_text(p, plans.machine_id, plans.machine_name, terminal);
        const ImageTraffic t = image_traffic(p, tile_of(product_of(plans.plans.front())));
        page.facts.push_back({"image, plan 1", fmt::format("{} read; {} into shared memory a {} of tiles, tap by tap; {} if tiles kept their margins, {} each",
                                                           scaled_text(t.read, "B"), scaled_text(t.unrolled, "B"), p.gradient == ConvGradient::weights ? "row" : "column", scaled_text(t.halo, "B"), scaled_text(t.tile_halo, "B"))});
        return page;
    }
    std::string heading(const Problem& problem, std::string_view machine_id, std::string_view machine_name, const Terminal& terminal) const override {
        return heading_text(typed(problem), machine_id, machine_name, terminal);
    }

    DrawLaw law(const DrawRequest& request) const override { return conv_law(request); }
    Problem draw(Random& random, const DrawRequest& request) const override { return {this, Own::of(drawn_conv(random, request))}; }
    ProblemTraits traits(const Problem& problem) const override { return conv_traits(typed(problem)); }

    SuiteReporter suite_reporter(SuiteRecord record, const Suite* suite) const override {
        return suite_table_reporter(std::move(record), suite,
                                    {.near = 1.02, .config_key = "loads", .config_heading = "loads", .baseline_key = "copy_us", .baseline_heading = "copy",
                                     .baseline_name = "Copying as many bytes takes"});
    }
    const Facet* facet(const std::type_info& type) const override { return type == typeid(Simulates) ? &conv_simulates() : nullptr; }
    std::string_view baseline() const override { return "copy"; }
    std::span<const std::string_view> baseline_keys() const override {
        static constexpr std::string_view keys[] = {"copy_us"};
        return keys;
    }

  private:
    static PlanSet empty_set(const Machine& machine, const Problem& problem) {
        PlanSet out;
        out.machine_id = machine.id, out.machine_name = machine.name, out.problem = problem;
        return out;
    }
    static PlanSet refused(const Machine& machine, const Problem& problem, std::string why) {
        PlanSet out = empty_set(machine, problem);
        out.refusal = Refusal{Reason::instruction, std::move(why), {}, {}};
        return out;
    }
    PlanSet direct_set(const std::shared_ptr<const Machine>& machine, const Problem& problem, const ConvRequest& request) const {
        if (!request.fixed.empty()) return refused(*machine, problem, request.fixed + " is of convolutions as products; a direct one has no such choice, leave it off");
        PlanSet out = empty_set(*machine, problem);
        if (request.direct.any() + request.stem.any() + request.depthwise.any() > 1)
            return refused(*machine, problem, request.fixed_of_direct + " and the numbers of another direct kernel are fixed; leave one kind off");
        DirectPlans found = plans_of_all(*machine, typed(problem), request);
        out.refusal = std::move(found.refusal), out.rejected = found.rejected, out.unknown = found.unknown;
        for (DirectPlan& direct : found.plans) {
            Plan& plan = out.plans.emplace_back();
            plan.operation = this, plan.problem = problem, plan.rank = int(out.plans.size()), plan.unknown = out.unknown;
            plan.buildable = machine->has("cp_async");  // sm_80 on: what the compiler makes bf16 of
            if (!plan.buildable) plan.why_not = machine->id + " has no instruction that rounds to bf16; sm_80 and newer have";
            plan.time_us = direct.time_us, plan.bound = direct.bound;
            plan.launches = {{.kernel = std::string(direct.visit([](const auto& c) { return kind_of(c).kernel; }))}};
            plan.derivation = Steps([machine, problem, direct] { return direct_steps(*machine, typed(problem), direct); });
            plan.own = Own::of(ConvPlan{.direct = std::move(direct), .arch = machine->arch});
        }
        return out;
    }
    /// Those of all kernels, unless the request is of one.
    static DirectPlans plans_of_all(const Machine& machine, const ConvProblem& p, const ConvRequest& request) {
        DirectPlans out;
        const bool by_matrix = request.stem.any() || request.depthwise.any();
        if (!by_matrix) out = direct_plans(machine, p, request.top, request.direct);
        if (request.direct.any()) return out;
        std::vector<DirectPlan> found;
        if (!request.depthwise.any()) found = stem_plans(machine, p, request.stem, out.rejected);
        if (!request.stem.any()) std::ranges::move(depthwise_plans(machine, p, request.depthwise, out.rejected), std::back_inserter(found));
        if (found.empty() && by_matrix)
            out.refusal = Refusal{Reason::instruction, fmt::format("no kernel {} has these {}: it is of {}, and of what fits shared memory and registers; here are {} channels and {} filters in {} groups, {}x{} taps, stride {}x{}, dilation {}x{}: leave it off", request.stem.any() ? "by rows of pixels" : "by planes", request.fixed_of_direct,
                                                                   request.stem.any() ? "images without groups and of plain taps along x" : "a filter a channel, channels in multiples of 8, and up to 9 x 9 plain taps, a pixel apart",
                                                                   p.image.channels, p.filters, p.groups, p.image.axes[1].taps, p.image.axes[0].taps, p.image.axes[1].stride, p.image.axes[0].stride, p.image.axes[1].dilation, p.image.axes[0].dilation), {}, {}};
        if (found.empty()) return out;
        out.refusal.reset();
        std::ranges::move(found, std::back_inserter(out.plans));
        std::ranges::stable_sort(out.plans, {}, [](const DirectPlan& plan) { return plan.time_us.value_or(0); });
        while (int(out.plans.size()) > request.top) out.plans.pop_back(), out.rejected.add(Reason::dominated);
        return out;
    }
    static PlanPage direct_page(const PlanSet& plans, const Terminal& terminal) {
        using Align = Table::Align;
        const ConvProblem& p = typed(plans.problem);
        PlanPage page{.heading = heading_text(p, plans.machine_id, plans.machine_name, terminal),
                      .table = Table({{"#", Align::right, 0, true}, {"kernel", Align::left}, {"filters", Align::right}, {"places", Align::left}, {"threads", Align::left}, {"predicted", Align::right, 0, true},
                                      {"of DRAM", Align::right, 1, true}, {"limited by", Align::left, 1, true}, {"buildable", Align::left, 2}})};
        for (const Plan& plan : plans.plans) {
            const DirectPlan& direct = *direct_of(plan);
            const auto [filters, places, threads] = direct.visit([](const auto& c) { return cells_of(c); });
            page.table.row({{std::to_string(plan.rank)}, {std::string(direct.visit([](const auto& c) { return kind_of(c).loads; }))}, {filters}, {places}, {threads},
                            {time_or_unknown(plan.time_us)}, {plan.time_us && direct.dram_us ? percent_text(*direct.dram_us / *plan.time_us) : "?"},
                            {plan.bound ? std::string(name_of(*plan.bound)) : "?"}, {plan.buildable ? "yes" : "no"}});
        }
        const std::vector<Step>& steps = plans.plans.front().derivation;
        const DirectPlan& first = *direct_of(plans.plans.front());
        if (first.is<StemConvConfig>()) page.why = {{"why this tile", limit_of(steps, "tile")}, {"what K holds", limit_of(steps, "k_steps")}};
        else if (first.is<DepthwiseConvConfig>()) page.why = {{"why this tile", limit_of(steps, "tile")}, {"what M holds", limit_of(steps, "slots")}};
        else page.why = {{"why no matrix units", limit_of(steps, "group")}, {"why these places", limit_of(steps, "pixels_loaded")}};
        page.walls = {{"registers", limit_of(steps, "registers")}};
        return page;
    }
};

}  // namespace

const Operation& conv_operation() {
    static const ConvOperation operation;
    return operation;
}

}  // namespace rooftile
