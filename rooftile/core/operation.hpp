// An operation: a kind of problem that can be planned. Everything that plans, shows or lists plans goes through this
// interface and knows no operation by name; rooftile/operations.def is the one list of them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "rooftile/core/demand.hpp"
#include "rooftile/core/draw.hpp"
#include "rooftile/core/field.hpp"
#include "rooftile/core/formula.hpp"
#include "rooftile/core/pictured.hpp"
#include "rooftile/core/plan.hpp"
#include "rooftile/core/suite.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

class Random;
struct Explanation;
struct Terminal;
struct PlanPage;
struct Measurement;
struct SuiteRecord;
struct SuiteReporter;
struct Pick;

/// A library that an operation is measured beside.
struct BaselineLibrary {
    std::string name, soname;
    std::string fix;  ///< what needs it, and where to get it
};

/// How much is explained: nothing; plan 1 in three lines; its roof, walls and runners-up on a page; every step.
enum class Depth : unsigned char { none, reasons, brief, all };

/// What a reader wants to know of plans beyond their figures.
struct PlanDetail {
    Depth depth = Depth::none;
    bool energy = false;  ///< joules of a launch, of an operation that models them
};

/// How a plan is predicted to run. NaN: unknown.
struct PredictedRun {
    double seconds, clock_hz;  ///< of a launch of all of it; of the SMs
};
/// Predicts the runs of certain plans where the machine's numbers are others than those they were planned for.
using Predictor = std::function<std::vector<PredictedRun>(const Machine&)>;

/// What planning takes beside the problem, where the request does not say.
struct PlanDefaults {
    int top = 8;                  ///< plans to keep
    bool buildable_only = false;  ///< leave out what no kernel can be compiled for
    std::uint64_t seed = 1;       ///< of plans that are drawn
    bool one_of_many = false;     ///< of hundreds of problems in a row: what takes long may be told more coarsely; a note says so
    bool closed_form = false;  ///< of thousands: where a model both simulates and has a closed form, that one
};

/// What an operation offers to others beyond the interface below: a class that both know. rooftile/tiled/two_products.hpp has one.
class Facet {
  public:
    virtual ~Facet() = default;
};

class Operation {
  public:
    virtual ~Operation() = default;

    virtual std::string_view name() const = 0;     ///< the verb's word, and `problem.op` of documents
    virtual std::string_view meaning() const = 0;  ///< one line of help
    virtual std::string_view example() const = 0;  ///< a problem as one types it, for help and refusals
    /// Of the problem, of what may be fixed of a plan, and of what else planning can be asked for.
    virtual std::span<const Field> fields() const = 0;

    /// The problem that a request gives. Throws RequestError, one line.
    virtual Problem problem(const Given& given) const = 0;
    /// Adds to a request what tensors say that lie somewhere: their extents, types, strides and offsets. They are the inputs in
    /// the order of tensors(); a name may be empty where the order says it. Throws RequestError, one line, where no problem
    /// of this kind has such tensors.
    virtual void add_tensors(Given& given, std::span<const TensorInfo> inputs) const;
    /// What libraries of arrays call what it computes of its inputs: "matmul"; empty: they have no word for it.
    virtual std::string_view array_function() const { return {}; }
    /// A request with `size` in the place of sizes that are 0, and one row where a list of rows has none: what stands in where there is
    /// nothing to do. The same request where there is something, or the operation plans for none by itself.
    virtual Given with_work(const Given& given, std::int64_t /*size*/) const { return given; }
    /// Whether what is computed of nothing, such as a sum of no products, is what is computed of zeros.
    virtual bool zeros_serve(const Problem&) const { return false; }
    /// What a request fixes of the plan, checked. Throws RequestError.
    virtual Own request(const Given& given, const PlanDefaults& defaults) const = 0;
    /// Never throws for an unknown number: what needs it is empty and named in `unknown`.
    PlanSet derive(const std::shared_ptr<const Machine>& machine, const Problem& problem, const Own& request) const;

    /// The request that gives `problem`: problem(given(p)) is p.
    virtual Given given(const Problem& problem) const = 0;
    virtual Record problem_record(const Problem& problem) const = 0;
    /// The request that gives the problem of a record that problem_record() made.
    virtual Given given_of_record(const Record& record) const = 0;
    /// A problem in one word, to find it by: "4096x14336x4096".
    virtual std::string short_name(const Problem& problem) const = 0;
    virtual std::vector<TensorInfo> tensors(const Problem& problem) const = 0;
    virtual Record config_record(const Plan& plan) const = 0;
    virtual Record resources_record(const Plan& plan) const = 0;
    virtual Record prediction_record(const Plan& plan) const = 0;
    /// What the plan asks of the machine, as work.
    virtual Demand demand(const Machine& machine, const Plan& plan) const = 0;
    /// Of plans of one problem, made for that machine; each keeps its configuration. Only the predictor's calls need be
    /// fast: they may throw RequestError where no machine can have such numbers.
    virtual Predictor predictor(const Machine& machine, std::span<const Plan> plans) const = 0;
    /// From the datasheet's roof to the predicted time by the terms of its own model. None: the stations tell it from the
    /// demand.
    virtual std::vector<RoofStep> roof_steps(const Machine&, const Plan&) const { return {}; }
    /// One CTA's way through a tile by its own model; empty: it has none, or a number is unknown.
    virtual std::optional<PipelineCycles> pipeline(const Machine&, const Plan&) const { return std::nullopt; }
    /// The two keys of a configuration that map() varies; empty: it has no map.
    virtual std::array<std::string_view, 2> map_keys() const { return {}; }
    /// Times and walls of all pairs of values of map_keys() that the planner looks at, with `first`'s among them; the rest is chosen anew for
    /// each. It takes many searches.
    virtual PlanMap map(const std::shared_ptr<const Machine>&, const Plan& /*first*/, const Own& /*request*/) const { return {}; }
    /// A configuration in a few words.
    virtual std::string label(const Plan& plan) const = 0;

    /// Its facet of that type; null: it has none. Ask by facet_of().
    virtual const Facet* facet(const std::type_info&) const { return nullptr; }

    /// Whether its demand holds all that takes energy, so that the joules of a launch follow.
    virtual bool models_energy() const { return false; }
    /// Its part of what a terminal shows of plans, of which there is one at least. `explanations` are of all plans, or none.
    virtual PlanPage page(const PlanSet& plans, std::span<const Explanation> explanations, const Terminal& terminal) const = 0;
    /// Above what is shown of a problem: what is computed, and on what.
    virtual std::string heading(const Problem& problem, std::string_view machine_id, std::string_view machine_name,
                                const Terminal& terminal) const = 0;
    /// What a terminal shows of a measured row beyond what every operation has; may be empty.
    virtual std::string measured_text(const Measurement&, const Terminal&) const { return {}; }

    /// Its derivation without numbers: every formula that a step may have, in order. No page: its steps are not listed.
    virtual std::vector<FormulaPage> symbols() const { return {}; }
    /// The three inequalities as forms for kernels of this kind that somebody else writes.
    virtual std::vector<FormulaPage> forms() const { return {}; }

    /// What draw() draws by. Throws RequestError, one line, where the operation cannot draw what is asked for.
    virtual DrawLaw law(const DrawRequest& request) const = 0;
    /// One problem: the same for the same state of `random`, on every computer. Of a request that law() takes.
    virtual Problem draw(Random& random, const DrawRequest& request) const = 0;
    virtual ProblemTraits traits(const Problem& problem) const = 0;

    /// In words: which configurations space() holds. Empty: it declares none.
    virtual std::string_view space_rule() const { return {}; }
    /// The declared space of a problem (core/space.hpp): buildable plans, one a configuration, few hundred; what the rule
    /// leaves open is the planner's choice.
    virtual std::vector<Plan> space(const std::shared_ptr<const Machine>&, const Problem&) const { return {}; }
    /// Keys of a configuration that the rule speaks of: two with the same values there are one member.
    virtual std::span<const std::string_view> space_keys() const { return {}; }
    /// What the rules of others pick of the problem.
    virtual std::vector<Pick> picks(const Machine&, const Problem&) const;
    /// The request that fixes plans to the configuration of a record that config_record() made.
    virtual Given given_of_config(const Record&) const { return Given(Given::Named::by_key); }

    /// The problems of a suite's file. Throws RequestError: one line naming file, place and what is accepted.
    virtual Suite suite(std::string_view text, std::string_view file_name) const;
    /// What the rows of a suite's run say together; `suite`: what the record should hold, null: what it holds is all.
    virtual SuiteReporter suite_reporter(SuiteRecord record, const Suite* suite) const = 0;
    /// What its kernels are measured beside, in one word: "copy".
    virtual std::string_view baseline() const = 0;
    /// The shared library that the baseline needs, as the doctor looks for it; null where it needs none.
    virtual const BaselineLibrary* baseline_library() const { return nullptr; }
    /// Keys below `baselines` that every measured row has, null where nothing was timed.
    virtual std::span<const std::string_view> baseline_keys() const { return {}; }

  private:
    /// derive() without the intervals of times.
    virtual PlanSet plans(std::shared_ptr<const Machine> machine, const Problem& problem, const Own& request) const = 0;
};

/// Of an operation, or of its device half.
template <class F, class Host>
const F* facet_of(const Host& host) {
    return static_cast<const F*>(host.facet(typeid(F)));
}

/// All operations, in the order in which help lists them.
std::span<const Operation* const> operations();
/// Null where there is none of that name.
const Operation* find_operation(std::string_view name);

/// Operation::problem(), of which every tensor has an element: else there is nothing to do, as whoever asks may not know. Throws
/// RequestError.
Problem problem_with_work(const Operation& operation, const Given& given);

/// Plans of another operation as parts of one's own, by name: no operation includes another. Where the list has none of
/// that name the set is empty and says so. Throws RequestError where the operation refuses what is given.
PlanSet derive_part(std::string_view operation, std::shared_ptr<const Machine> machine, const Given& given);

}  // namespace rooftile
