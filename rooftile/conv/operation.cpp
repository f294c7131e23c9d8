#include "rooftile/conv/operation.hpp"

#include <fmt/core.h>

#include <cmath>

#include "rooftile/conv/derivation.hpp"
#include "rooftile/conv/draw.hpp"
#include "rooftile/conv/fields.hpp"
#include "rooftile/core/derivation.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/plan_page.hpp"
#include "rooftile/report/suite_table.hpp"

namespace rooftile {
namespace {

const Plan& product_of(const Plan& plan) { return plan.own.as<ConvPlan>().product; }
const ConvProblem& typed(const Problem& problem) { return problem.own.as<ConvProblem>(); }
const Operation& products() { return *image_products().operation; }

std::vector<Plan> products_of(std::span<const Plan> plans) {
    std::vector<Plan> out;
    for (const Plan& plan : plans) out.push_back(product_of(plan));
    return out;
}

ConvTile tile_of(const Plan& product) {
    const Record config = product.operation->config_record(product);
    const auto number = [&](std::string_view key) { return int(find_as<std::int64_t>(config, key).value_or(1)); };
    return {number("tile_m"), number("tile_n"), number("tile_k")};
}

/// The names of the image's tensors for the product's.
void rename(Demand& demand) {
    for (TensorTraffic& tensor : demand.tensors) {
        if (tensor.tensor == "a") tensor.tensor = "x";
        else if (tensor.tensor == "b") tensor.tensor = "w";
        else if (tensor.tensor == "c") tensor.tensor = "y";
    }
}

std::string heading_text(const ConvProblem& p, std::string_view machine_id, std::string_view machine_name, const Terminal& terminal) {
    static constexpr std::string_view layouts[] = {"NWC", "NHWC", "NDHWC"};
    std::string out = terminal.paint(fmt::format("conv {}", short_name(p)), Tone::strong)
                      + fmt::format("  {} {}, fp32 accumulate\n", layouts[std::size_t(p.axes - 1)], p.type);
    if (!p.epilogue.empty()) out += p.epilogue + "\n";
    out += fmt::format("{} places of {} filters: the product {} × {} × {}\n{}, at least {} to move\n", places_by_axes(p), p.filters, p.image.rows(), p.filters,
                       p.image.columns(), scaled_text(p.flops(), "FLOP"),
                       scaled_text(double(p.image.elements_read()) * ConvProblem::element_bytes + p.filter_bytes() + p.result_bytes(), "B"));
    return out + fmt::format("on {}  {}\n", terminal.paint(std::string(machine_id), Tone::strong), terminal.paint(std::string(machine_name), Tone::plain));
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
    Own request(const Given& given, const PlanDefaults& defaults) const override { return products().request(conv_product_request(given), defaults); }
    PlanSet plans(std::shared_ptr<const Machine> machine, const Problem& problem, const Own& request) const override {
        PlanSet set = products().derive(machine, typed(problem).product, request);
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
            plan.own = Own::of(ConvPlan{std::move(product)});
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
    Record config_record(const Plan& plan) const override { return conv_config(products().config_record(product_of(plan))); }
    Record resources_record(const Plan& plan) const override { return products().resources_record(product_of(plan)); }
    Record prediction_record(const Plan& plan) const override {
        Record out = products().prediction_record(product_of(plan));
        const ImageTraffic t = image_traffic(typed(plan.problem), tile_of(product_of(plan)));
        const ImageOperand& image = typed(plan.problem).image;
        out.emplace_back("product", Record{{"m", image.rows()}, {"n", typed(plan.problem).filters}, {"k", image.columns()}});
        out.emplace_back("image_bytes", std::int64_t(std::llround(t.read)));
        out.emplace_back("unrolled_bytes", std::int64_t(std::llround(t.unrolled)));
        out.emplace_back("halo_bytes", std::int64_t(std::llround(t.halo)));
        return out;
    }
    Demand demand(const Machine& machine, const Plan& plan) const override {
        Demand demand = products().demand(machine, product_of(plan));
        rename(demand);
        return demand;
    }
    bool models_energy() const override { return products().models_energy(); }
    Predictor predictor(const Machine& machine, std::span<const Plan> plans) const override { return products().predictor(machine, products_of(plans)); }
    std::vector<RoofStep> roof_steps(const Machine& machine, const Plan& plan) const override { return products().roof_steps(machine, product_of(plan)); }
    std::optional<PipelineCycles> pipeline(const Machine& machine, const Plan& plan) const override { return products().pipeline(machine, product_of(plan)); }
    std::string label(const Plan& plan) const override { return products().label(product_of(plan)); }

    PlanPage page(const PlanSet& plans, std::span<const Explanation> explanations, const Terminal& terminal) const override {
        PlanPage page = products().page(plans.own.as<PlanSet>(), explanations, terminal);
        const ConvProblem& p = typed(plans.problem);
        for (std::string_view& column : page.columns) column = conv_config_key(column);
        page.heading = heading_text(p, plans.machine_id, plans.machine_name, terminal);
        const ImageTraffic t = image_traffic(p, tile_of(product_of(plans.plans.front())));
        page.facts.push_back({"image, plan 1", fmt::format("{} read; {} into shared memory a column of tiles, tap by tap; {} if tiles kept their margins, {} each",
                                                           scaled_text(t.read, "B"), scaled_text(t.unrolled, "B"), scaled_text(t.halo, "B"), scaled_text(t.tile_halo, "B"))});
        return page;
    }
    std::string heading(const Problem& problem, std::string_view machine_id, std::string_view machine_name, const Terminal& terminal) const override {
        return heading_text(typed(problem), machine_id, machine_name, terminal);
    }

    DrawLaw law(const DrawRequest& request) const override { return conv_law(request); }
    Problem draw(Random& random, const DrawRequest&) const override { return {this, Own::of(drawn_conv(random))}; }
    ProblemTraits traits(const Problem& problem) const override { return conv_traits(typed(problem)); }

    SuiteReporter suite_reporter(SuiteRecord record, const Suite* suite) const override {
        return suite_table_reporter(std::move(record), suite,
                                    {.near = 1.02, .config_key = "loads", .config_heading = "loads", .baseline_key = "copy_us", .baseline_heading = "copy",
                                     .baseline_name = "Copying as many bytes takes"});
    }
    std::string_view baseline() const override { return "copy"; }
    std::span<const std::string_view> baseline_keys() const override {
        static constexpr std::string_view keys[] = {"copy_us"};
        return keys;
    }
};

}  // namespace

const Operation& conv_operation() {
    static const ConvOperation operation;
    return operation;
}

}  // namespace rooftile
