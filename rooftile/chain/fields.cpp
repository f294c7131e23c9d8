#include "rooftile/chain/fields.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "rooftile/chain/knobs.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"

namespace rooftile {
namespace {

constexpr std::string_view acts[] = {"gelu", "silu", "relu", "swiglu"}, types[] = {"bf16", "fp16"},
                           forms[] = {"two_kernels", "carry_over", "persistent", "on_chip"};

std::vector<Field> make_fields() {
    const char *problem = "Problem, Y = act(X W1^T) W2^T", *fixed = "Fixed parameters (the rest is searched)";
    std::vector<Field> fields = {
        {"m", "M", "Rows of X and Y", problem},
        {"d", "D", "Columns of X and Y: a multiple of 8", problem},
        {"ff", "F", "Columns of the intermediate: a multiple of 8", problem},
        {"act", "NAME", "gelu (default, by erf), silu, relu or swiglu (silu(gate) * up, W1 being 2 F x D, gates above ups)", problem},
        {"residual", "", "Y = X + act(X W1^T) W2^T", problem, FieldKind::on},
        {"type", "TYPE", "Type of all tensors and the intermediate: bf16 (default) or fp16; fp32 accumulation", problem},
        {"form", "NAME", "two_kernels, carry_over, persistent or on_chip", fixed},
        {"chunk_rows", "N", "Rows that the persistent form takes through both products together", fixed},
        {"room_chunks", "N", "Times that many rows of the intermediate that the persistent form has room for: 2 or more", fixed},
    };
    std::ranges::move(knob_fields<ChainKnobs>(fixed), std::back_inserter(fields));
    fields.insert(fields.end(), {
        {"exhaustive", "", "Search also what structural rules leave out", fixed, FieldKind::on},
        {"top", "N", "Forms to keep", "Output"},
        {"flips", "", "Note from which m, d, ff, L2 size or DRAM bandwidth another form is ahead (some hundred plans more)", "Output", FieldKind::on},
    });
    return fields;
}

std::int64_t needed(const Given& g, std::string_view key) {
    if (!g.has(key))
        throw RequestError(fmt::format("missing {}: rooftile plan chain --m 65536 --d 1024 --ff 4096 --act gelu", g.name(key)));
    return size_number(g.name(key), g.text(key), max_chain_extent);
}

std::optional<int> number_if(const Given& g, std::string_view key, int most) {
    if (!g.has(key)) return std::nullopt;
    return int(whole_number(g.name(key), g.text(key), 1, most));
}

}  // namespace

std::span<const Field> chain_fields() {
    static const std::vector<Field> fields = make_fields();
    return fields;
}

ChainProblem chain_problem(const Given& g) {
    ChainProblem p;
    p.m = needed(g, "m");
    p.d = needed(g, "d");
    p.ff = needed(g, "ff");
    if (g.has("act")) p.act = ChainAct(one_of(g.name("act"), g.text("act"), acts));
    p.residual = g.has("residual");
    if (g.has("type")) p.type = one_of(g.name("type"), g.text("type"), types) == 0 ? Type::bf16 : Type::fp16;
    check(p);
    return p;
}

ChainRequest chain_request(const Given& g, const PlanDefaults& defaults) {
    constexpr int max_plans = 64, max_small = 1024;
    ChainRequest r;
    r.buildable_only = defaults.buildable_only;
    r.coarse = r.first_only = defaults.one_of_many;
    r.exhaustive = g.has("exhaustive");
    r.flips = g.has("flips");
    if (g.has("form")) r.form = ChainForm(one_of(g.name("form"), g.text("form"), forms));
    if (g.has("chunk_rows")) r.chunk_rows = whole_number(g.name("chunk_rows"), g.text("chunk_rows"), 1, max_chain_extent);
    constexpr int least_room = 2;
    if (g.has("room_chunks")) r.room_chunks = int(whole_number(g.name("room_chunks"), g.text("room_chunks"), least_room, max_small));
    read_knobs<ChainKnobs>(g, r);
    check_knobs<ChainKnobs>(r);
    // What is fixed of one form fixes the form.
    const auto fixes = [&](std::string_view key, ChainForm of) {
        if (!g.has(key)) return;
        if (r.form.value_or(of) != of)
            throw RequestError(fmt::format("{} is of form {}, and {} is asked for", g.name(key), forms[std::size_t(of)], forms[std::size_t(*r.form)]));
        r.form = of;
    };
    for (const char* key : {"chunk_rows", "room_chunks"}) fixes(key, ChainForm::persistent);
    ChainKnobs::each([&](const auto& knob) { fixes(knob.field, ChainForm::on_chip); });
    r.top = number_if(g, "top", max_plans).value_or(defaults.top);
    return r;
}

Given chain_with_work(const Given& asked, std::int64_t size) {
    Given given = asked;
    for (const char* key : {"m", "d", "ff"})
        if (given.has(key)) given.replace(key, with_size_for_zero(given.text(key), size));
    return given;
}

Given chain_given(const ChainProblem& p) {
    Given given(Given::Named::by_key);
    given.add("m", std::to_string(p.m));
    given.add("d", std::to_string(p.d));
    given.add("ff", std::to_string(p.ff));
    given.add("act", std::string(name_of(p.act)));
    if (p.residual) given.add("residual", "");
    given.add("type", std::string(chain_type_name(p.type)));
    return given;
}

Given chain_given(const Record& record) {
    Given given(Given::Named::by_key);
    for (const char* key : {"m", "d", "ff"}) given.add(key, std::to_string(find_as<std::int64_t>(record, key).value_or(0)));
    for (const char* key : {"act", "type"}) given.add(key, find_as<std::string>(record, key).value_or(""));
    if (find_as<bool>(record, "residual").value_or(false)) given.add("residual", "");
    return given;
}

Given chain_given_of_config(const Record& config) {
    const std::string form = find_as<std::string>(config, "form").value_or("");
    Given given = form == name_of(ChainForm::on_chip) ? given_of_knobs<ChainKnobs>(config) : Given(Given::Named::by_key);
    given.add("form", form);
    for (const char* key : {"chunk_rows", "room_chunks"})
        if (const auto number = find_as<std::int64_t>(config, key)) given.add(key, std::to_string(*number));
    return given;
}

void add_chain_tensors(Given& given, std::span<const TensorInfo> inputs) {
    if (inputs.size() != 3) throw RequestError(fmt::format("chain takes X, W1 and W2; {} tensors are given", inputs.size()));
    constexpr const char* names[] = {"X", "W1", "W2"};
    for (std::size_t i = 0; i < 3; ++i) {
        const TensorInfo& t = inputs[i];
        if (t.extents.size() != 2) throw RequestError(fmt::format("{} has {} axes; chain takes matrices", names[i], t.extents.size()));
        if (t.type != inputs[0].type)
            throw RequestError(fmt::format("{} is {} and X {}; chain takes one type", names[i], t.type, inputs[0].type));
        const bool dense = t.strides[1] == 1 && (t.strides[0] == t.extents[1].most || t.extents[0].most == 1) && t.offset % chain_step == 0;
        if (!dense) throw RequestError(fmt::format("{} is not dense from a multiple of 16 bytes on; hand over a copy that is", names[i]));
    }
    const std::int64_t d = inputs[0].extents[1].most, ff = inputs[2].extents[1].most, rows = inputs[1].extents[0].most;
    if (inputs[1].extents[1].most != d || inputs[2].extents[0].most != d || (rows != ff && rows != 2 * ff))
        throw RequestError(fmt::format("X {} x {}, W1 {} x {} and W2 {} x {} do not follow each other", inputs[0].extents[0].most, d,
                                       rows, inputs[1].extents[1].most, inputs[2].extents[0].most, ff));
    const bool pairs = given.has("act") && given.text("act") == "swiglu";
    if (pairs != (rows == 2 * ff))
        throw RequestError(fmt::format("W1 has {} rows where W2 has {} columns; of swiglu W1 has twice as many, else as many", rows, ff));
    const auto add = [&](std::string_view key, std::string text) {
        if (given.has(key)) throw RequestError(fmt::format("{} is given, and the tensors say it too", given.name(key)));
        given.add(key, std::move(text));
    };
    add("m", std::to_string(inputs[0].extents[0].most));
    add("d", std::to_string(d));
    add("ff", std::to_string(ff));
    add("type", inputs[0].type);
}

}  // namespace rooftile
