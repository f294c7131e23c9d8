#include "rooftile/c/plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rooftile/c/error.hpp"
#include "rooftile/c/request.hpp"
#include "rooftile/core/packs.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/emit/emit.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/measure/plan_range.hpp"
#include "rooftile/physics/explanation.hpp"
#include "rooftile/picture/picture.hpp"
#include "rooftile/picture/pictures.hpp"
#include "rooftile/report/explanation_record.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/machine_report.hpp"
#include "rooftile/report/pictured_plan.hpp"
#include "rooftile/report/plan_command.hpp"
#include "rooftile/report/plan_page.hpp"
#include "rooftile/report/plan_range.hpp"
#include "rooftile/weights/pack_stored.hpp"

namespace rooftile::c {
namespace {

const char* kind_name(FieldKind kind) {
    switch (kind) {
        case FieldKind::list:
            return "list";
        case FieldKind::positional:
            return "positional";
        case FieldKind::on:
            return "on";
        case FieldKind::value:
        case FieldKind::text:
            break;
    }
    return "value";
}

Json fields_json(std::span<const Field> fields) {
    Json out = Json::array();
    for (const Field& field : fields)
        if (!field.group.empty())
            out.push_back({{"key", field.key},
                           {"form", field.form},
                           {"meaning", field.meaning},
                           {"group", field.group},
                           {"kind", kind_name(field.kind)}});
    return out;
}

PlanDefaults defaults_of(const Given& given) {
    PlanDefaults defaults;
    defaults.buildable_only = given.has("buildable_only");
    if (given.has("seed")) defaults.seed = seed_number(given.name("seed"), given.text("seed"));
    return defaults;
}

/// The command line that plans the same, as documents have it.
std::string command_of(const Request& request) {
    return plan_command(request.operation->name(), {request.operation->fields(), planning_fields()}, request.given);
}

/// Tensors as a caller describes them.
std::vector<TensorInfo> read_tensors(std::span<const rooftile_tensor> tensors) {
    std::vector<TensorInfo> out;
    for (const rooftile_tensor& t : tensors) {
        TensorInfo& info = out.emplace_back();
        info.name = t.name ? t.name : "";
        info.type = t.type ? t.type : "";
        info.element_bits = t.element_bits;
        info.offset = t.offset;
        if (t.rank < 0 || t.element_bits < 1 || t.offset < 0)
            throw RequestError(
                fmt::format("tensor {}: rank {}, element_bits {}, offset {}: none may be below 0", out.size(),
                            t.rank, t.element_bits, t.offset));
        if (t.rank > 0 && (!t.extents || !t.strides))
            throw RequestError(fmt::format("tensor {}: its {} is null", out.size(), t.extents ? "strides" : "extents"));
        for (int axis = 0; axis < t.rank; ++axis) {
            info.extents.push_back(Extent::of(t.extents[axis]));
            info.strides.push_back(t.strides[axis]);
        }
    }
    return out;
}

/// What a call is given: a text, and a list of so many.
std::string_view request_text(const char* request) {
    if (!request) throw RequestError("the request is null; it is a JSON object with the key op");
    return request;
}
std::span<const rooftile_tensor> tensor_list(const rooftile_tensor* inputs, int count) {
    if (count > 0) given(inputs, "inputs");
    return {inputs, std::size_t(std::max(0, count))};
}

/// The problem of a request and its tensors, or what stands in where a size is 0 and the operation does not plan for none by itself.
std::pair<Given, Problem> problem_of(const Request& request, std::span<const TensorInfo> tensors, std::optional<Nothing>& nothing) {
    try {
        Given given = request.given;
        if (!tensors.empty()) request.operation->add_tensors(given, tensors);
        return {given, request.operation->problem(given)};
    } catch (const RequestError&) {
        std::optional<StandIn> instead = stand_in(request, tensors);
        if (!instead) throw;
        nothing = std::move(instead->nothing);
        return {instead->given, request.operation->problem(instead->given)};
    }
}

std::unique_ptr<rooftile_plans> planned(std::string_view json, std::span<const rooftile_tensor> inputs) {
    Request request = read_request(json);
    if (request.given.has("within"))
        throw RequestError("within is of a range, A..B in the place of a number; there is none");
    const std::vector<TensorInfo> tensors = read_tensors(inputs);
    auto plans = std::make_unique<rooftile_plans>();
    const auto [given, problem] = problem_of(request, tensors, plans->nothing);
    const Own own = request.operation->request(given, defaults_of(given));
    const Target target = target_of(given);
    plans->machine = target.machine;
    request.given = given;
    plans->context = context_of(*target.machine, command_of(request));
    plans->set = request.operation->derive(target.machine, problem, own);
    plans->request = own;
    if (plans->nothing)
        plans->set.notes.insert(plans->set.notes.begin(), plans->nothing->is_launched
                                                              ? "nothing to sum up: the plans are of zeros in its place"
                                                              : "nothing to do: the plans are of another problem, and nothing is launched");
    if (!target.note.empty()) plans->set.notes.insert(plans->set.notes.begin(), target.note);
    if (plans->set.refusal)
        throw Error(ExitCode::no_plan, plans->set.refusal->message,
                    json_text(plan_document(plans->context, plans->set), -1));
    plans->tensors = std::make_unique<const TensorViews>(plans->nothing ? plans->nothing->tensors : request.operation->tensors(problem));
    return plans;
}

/// The document of a request in which one field is a range.
Json planned_range(std::string_view json, std::span<const rooftile_tensor> inputs) {
    const Request request = read_request(json);
    const Operation& operation = *request.operation;
    const std::optional<FieldRange> range = range_in(operation, request.given);
    if (!range) throw RequestError("none of the fields is a range, as in \"1..16384\"");
    Given given = without(operation, request.given, range->key);
    if (!inputs.empty()) operation.add_tensors(given, read_tensors(inputs));
    given = with_text(operation, given, range->key, request.given.text(range->key));
    if (request.given.has("within")) given.add("within", request.given.text("within"));
    const Target target = target_of(request.given);
    PlanRange plans = kernels_for_range(operation, target.machine, given, *range);
    if (!target.note.empty()) plans.notes.push_back(target.note);
    return range_document(context_of(*target.machine, command_of(request)), plans);
}

/// Plan 1 among all; any other by itself, since the story of a set is that of its first.
PlanSet told_of(const rooftile_plans& plans, int rank) {
    const Plan& plan = plan_of(plans, rank);
    PlanSet set = plans.set;
    if (rank > 1) set.plans = {plan};
    return set;
}

std::string explained(const rooftile_plans& plans, int rank, int width) {
    const PlanSet set = told_of(plans, rank);
    const PlanDetail detail{Depth::all};
    return plan_text(set, detail, explain(*plans.machine, set, detail), Terminal{.width = width});
}

List list_of(const std::vector<Remark>& remarks) {
    List out;
    for (const Remark& remark : remarks)
        if (!remark.text.empty()) out.push_back(Record{{"title", remark.title}, {"text", remark.text}});
    return out;
}

/// What explained() says, as data. What would let a plan win is found among all plans.
Json explanation(const rooftile_plans& plans, int rank) {
    const PlanSet set = told_of(plans, rank);
    const std::vector<Explanation> all = explain(*plans.machine, plans.set, {Depth::all});
    const PlanPage page = set.plans.front().operation->page(set, {}, Terminal{});  // what an explanation adds to it is energy alone
    Json out = {{"schema", "rooftile/explanation/1"}, {"rank", rank}};
    out.update(to_json(explanation_record(all.at(std::size_t(rank) - 1))));
    out["reasons"] = to_json(Value(list_of(page.why)));
    out["walls"] = to_json(Value(list_of(page.walls)));
    return out;
}

/// All pictures of a plan, or the one of that name; empty: all.
Json pictures(const rooftile_plans& plans, int rank, std::string_view name) {
    const PlanSet set = told_of(plans, rank);
    const bool maps = name.empty() || name == tile_map_id;
    const Json map = maps ? map_json(plans.machine, set.plans.front(), plans.request) : Json();
    const Json document = pictured_document(plans.context, *plans.machine, set, map);
    return pictures_document(document, pictures_of(document, name, "picture"));
}

}  // namespace

const Plan& plan_of(const rooftile_plans& plans, int rank) {
    const auto count = plans.set.plans.size();
    if (rank < 1 || std::size_t(rank) > count)
        throw RequestError(fmt::format("there is no plan {}; there are 1 to {}", rank, count));
    return plans.set.plans[std::size_t(rank) - 1];
}

}  // namespace rooftile::c

using namespace rooftile;

extern "C" {

int rooftile_operations(char** json) {
    return c::guarded([&] {
        char*& made = c::given(json, "json");
        Json out = Json::array();
        for (const Operation* operation : operations()) {
            Json fields = c::fields_json(operation->fields());
            for (Json& field : fields) {  // what a request gives is no file's name
                constexpr std::string_view of_a_flag = "|FILE";
                auto& form = field["form"].get_ref<std::string&>();
                if (form.ends_with(of_a_flag)) form.resize(form.size() - of_a_flag.size());
            }
            for (Json& field : c::fields_json(c::planning_fields())) fields.push_back(std::move(field));
            out.push_back({{"name", operation->name()},
                           {"meaning", operation->meaning()},
                           {"example", operation->example()},
                           {"array_function", text_or_null(operation->array_function())},
                           {"fields", std::move(fields)}});
        }
        made = c::text_of(json_text(out, -1));
    });
}

namespace {

/// What packs the tensor of a request, and its problem.
std::pair<const rooftile::Packs*, rooftile::Problem> packed_problem(const char* text) {
    using namespace rooftile;
    const c::Request request = c::read_request(c::request_text(text));
    const auto* packs = static_cast<const Packs*>(request.operation->facet(typeid(Packs)));
    if (!packs) throw RequestError(fmt::format("{} packs no tensor", request.operation->name()));
    return {packs, request.operation->problem(request.given)};
}

}  // namespace

int rooftile_packed_bytes(const char* request, size_t* bytes) {
    return c::guarded([&] {
        size_t& out = c::given(bytes, "bytes");
        const auto [packs, problem] = packed_problem(request);
        out = size_t(packs->packed_bytes(problem));
    });
}

int rooftile_pack(const char* request, const rooftile_array* arrays, int count, void* packed, size_t bytes) {
    return c::guarded([&] {
        if (count > 0) c::given(arrays, "arrays");
        auto& to = c::given(static_cast<unsigned char*>(packed), "packed");
        const auto [packs, problem] = packed_problem(request);
        if (const std::int64_t wanted = packs->packed_bytes(problem); std::int64_t(bytes) != wanted)
            throw RequestError(fmt::format("packed has {} bytes; these weights take {}", bytes, wanted));
        std::vector<PlainArray> plain;
        for (const rooftile_array& a : std::span(arrays, std::size_t(std::max(0, count))))
            plain.push_back({a.data, a.type ? a.type : "", a.rows, a.columns});
        packs->pack(problem, plain, {&to, bytes});
    });
}

int rooftile_stored_weights(const char* file, const char* tensor, const char* scale, char** json) {
    return c::guarded([&] {
        char*& made = c::given(json, "json");
        const WeightsFile in(&c::given(file, "file"));
        const auto weights = stored_weights(in, &c::given(tensor, "tensor"));
        made = c::text_of(json_text(pack_json(pack_task(*weights, scale ? scale : ""), *weights), -1));
    });
}

int rooftile_pack_stored(const char* file, const char* tensor, const char* scale, void* packed, size_t bytes) {
    return c::guarded([&] {
        auto& to = c::given(static_cast<unsigned char*>(packed), "packed");
        const WeightsFile in(&c::given(file, "file"));
        const auto weights = stored_weights(in, &c::given(tensor, "tensor"));
        const PackTask task = pack_task(*weights, scale ? scale : "");
        if (std::int64_t(bytes) != task.bytes)
            throw RequestError(fmt::format("packed has {} bytes; these weights take {}", bytes, task.bytes));
        pack_stored(task, *weights, {&to, bytes});
    });
}

int rooftile_machines(char** json) {
    return c::guarded([&] {
        char*& made = c::given(json, "json");
        std::vector<Machine> machines;
        for (const std::string& id : machine_ids()) machines.push_back(machine_by_id(id));
        made = c::text_of(json_text(machines_document(context_of("rooftile machine list"), machines), -1));
    });
}

int rooftile_machine(const char* id, char** json) {
    return c::guarded([&] {
        char*& made = c::given(json, "json");
        const Machine machine = id ? machine_by_id(id) : live_machine().machine;
        const std::string command = "rooftile machine show" + (id ? " " + shell_quoted(id) : std::string());
        made = c::text_of(json_text(machine_document(context_of(machine, command), machine), -1));
    });
}

int rooftile_plan(const char* request, rooftile_plans** plans) {
    return rooftile_plan_tensors(request, nullptr, 0, plans);
}

int rooftile_plan_tensors(const char* request, const rooftile_tensor* inputs, int count,
                          rooftile_plans** plans) {
    return c::guarded([&] {
        rooftile_plans*& made = c::given(plans, "plans");
        made = c::planned(c::request_text(request), c::tensor_list(inputs, count)).release();
    });
}

int rooftile_plan_range(const char* request, const rooftile_tensor* inputs, int count, char** json) {
    return c::guarded([&] {
        char*& made = c::given(json, "json");
        made = c::text_of(json_text(c::planned_range(c::request_text(request), c::tensor_list(inputs, count)), -1));
    });
}

void rooftile_free_plans(rooftile_plans* plans) { delete plans; }
int rooftile_plan_count(const rooftile_plans* plans) { return plans ? int(plans->set.plans.size()) : 0; }

int rooftile_plans_json(const rooftile_plans* plans, char** json) {
    return c::guarded([&] {
        char*& made = c::given(json, "json");
        const rooftile_plans& own = c::given(plans, "plans");
        Json document = plan_document(own.context, own.set);
        if (own.nothing) document["problem"] = own.nothing->problem;
        made = c::text_of(json_text(document, -1));
    });
}

int rooftile_explain(const rooftile_plans* plans, int rank, int width, char** text) {
    return c::guarded([&] {
        char*& made = c::given(text, "text");
        made = c::text_of(c::explained(c::given(plans, "plans"), rank, width));
    });
}

int rooftile_explanation(const rooftile_plans* plans, int rank, char** json) {
    return c::guarded([&] {
        char*& made = c::given(json, "json");
        made = c::text_of(json_text(c::explanation(c::given(plans, "plans"), rank), -1));
    });
}

int rooftile_pictures(const rooftile_plans* plans, int rank, const char* id, char** json) {
    return c::guarded([&] {
        char*& made = c::given(json, "json");
        made = c::text_of(json_text(c::pictures(c::given(plans, "plans"), rank, id ? id : ""), -1));
    });
}

int rooftile_source(const rooftile_plans* plans, int rank, char** text) {
    return c::guarded([&] {
        char*& made = c::given(text, "text");
        const rooftile_plans& from = c::given(plans, "plans");
        made = c::text_of(emit_file(*from.machine, from.set, c::plan_of(from, rank)).text);
    });
}

int rooftile_tensor_count(const rooftile_plans* plans) { return plans ? plans->tensors->count() : 0; }

const rooftile_tensor* rooftile_tensor_at(const rooftile_plans* plans, int index) {
    return plans ? plans->tensors->at(index) : nullptr;
}

}  // extern "C"
