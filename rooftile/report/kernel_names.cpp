#include "rooftile/report/kernel_names.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace rooftile {
namespace {

template <class T>
Json value_or_null(const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
}

/// Why a field is not certain; empty where it is.
std::string doubt(const KernelName& name, std::string_view field) {
    for (const std::string& sentence : name.uncertain)
        if (sentence.starts_with(std::string(field) + ": ")) return sentence.substr(field.size() + 2);
    return "";
}

std::string one_name_text(const KernelName& name, const Terminal& terminal) {
    std::vector<Entry> entries;
    const auto add = [&](const char* title, const std::string& value, std::string_view field, std::string remark = "") {
        if (value.empty()) return;
        const std::string why = doubt(name, field);
        entries.push_back({title, value, why.empty() ? std::move(remark) : "uncertain: " + why});
    };
    const auto number = [](const auto& value) { return value ? std::to_string(*value) : std::string(); };
    std::string tile;
    for (const auto& extent : {name.tile_m, name.tile_n, name.tile_k})
        tile += extent ? (tile.empty() ? "" : "x") + std::to_string(*extent) : "";
    std::string shape;
    for (const auto& [title, extent] : {std::pair("m", name.shape_m), std::pair("n", name.shape_n), std::pair("k", name.shape_k)})
        if (extent) shape += fmt::format("{}{} {}", shape.empty() ? "" : ", ", title, *extent);
    add("family", name.family, "family", name.library);
    add("role", name.role, "role");
    add("operation", name.operation, "operation");
    add("arch", name.arch, "arch");
    add("A", name.types.a, "types");
    add("B", name.types.b, "types");
    add("C", name.types.c, "types");
    add("summed in", name.types.accumulate, "types");
    add("shape", shape, "shape", "compiled for it");
    add("tile", tile, "tile");
    add("stages", number(name.stages), "stages");
    if (const auto bytes = expected_shared_bytes(name))
        add("stages' bytes", fmt::format("{} B", *bytes), "stages", "of shared memory, at least");
    if (name.cluster_m && name.cluster_n) add("cluster", fmt::format("{}x{}", *name.cluster_m, *name.cluster_n), "cluster");
    if (name.cta_pair == true) add("CTA pair", "yes", "cta_pair");
    if (name.split_k) add("split K", *name.split_k ? "yes" : "no", "split_k");
    add("layout", name.layout, "layout");
    add("schedule", name.schedule, "schedule");
    add("warpgroups", number(name.consumer_warpgroups), "consumer_warpgroups", "that multiply");
    add("threads", number(name.threads), "threads");
    add("raster", name.raster, "raster");
    add("alignment", name.alignment_bytes ? fmt::format("{} B", *name.alignment_bytes) : "", "alignment");
    add("epilogue", name.epilogue, "epilogue");
    add("instruction", name.instruction, "instruction");
    add("scaling", name.scaling, "scaling");
    return describe(name) + "\n" + entries_text(entries, 2, terminal);
}

}  // namespace

Json kernel_name_json(const KernelName& name) {
    const KernelName::Types& types = name.types;
    return {{"name", displayable(name.name)},
            {"family", name.family},
            {"library", text_or_null(name.library)},
            {"role", text_or_null(name.role)},
            {"operation", text_or_null(name.operation)},
            {"arch", text_or_null(name.arch)},
            {"types",
             {{"a", text_or_null(types.a)},
              {"b", text_or_null(types.b)},
              {"c", text_or_null(types.c)},
              {"accumulate", text_or_null(types.accumulate)}}},
            {"tile_m", value_or_null(name.tile_m)},
            {"tile_n", value_or_null(name.tile_n)},
            {"tile_k", value_or_null(name.tile_k)},
            {"stages", value_or_null(name.stages)},
            {"cluster_m", value_or_null(name.cluster_m)},
            {"cluster_n", value_or_null(name.cluster_n)},
            {"cta_pair", value_or_null(name.cta_pair)},
            {"split_k", value_or_null(name.split_k)},
            {"layout", text_or_null(name.layout)},
            {"schedule", text_or_null(name.schedule)},
            {"shared_operand", text_or_null(name.shared_operand)},
            {"consumer_warpgroups", value_or_null(name.consumer_warpgroups)},
            {"threads", value_or_null(name.threads)},
            {"raster", text_or_null(name.raster)},
            {"alignment_bytes", value_or_null(name.alignment_bytes)},
            {"epilogue", text_or_null(name.epilogue)},
            {"instruction", text_or_null(name.instruction)},
            {"scaling", text_or_null(name.scaling)},
            {"shape_m", value_or_null(name.shape_m)},
            {"shape_n", value_or_null(name.shape_n)},
            {"shape_k", value_or_null(name.shape_k)},
            {"expected_shared_bytes", value_or_null(expected_shared_bytes(name))},
            {"description", describe(name)},
            {"uncertain", name.uncertain}};
}

std::string kernel_names_text(const std::vector<KernelName>& names, const Terminal& terminal) {
    std::string out;
    std::size_t unknown = 0;
    for (const KernelName& name : names) unknown += name.family == "unknown";
    if (names.size() == 1 && unknown == 0) return one_name_text(names[0], terminal);
    if (unknown < names.size()) {
        constexpr std::size_t most = 80;  // of a name: template arguments run to thousands
        Table table({{"says", Table::Align::left}, {"name", Table::Align::left}});
        for (const KernelName& name : names) {
            const std::string shown = name.name.size() > most ? name.name.substr(0, most - 3) + "..." : name.name;
            table.row({{describe(name), name.family == "unknown" ? Tone::faint : Tone::plain}, {displayable(shown, terminal.utf8)}});
        }
        out += table.text(terminal);
    }
    if (unknown == 1 && names.size() == 1) out += "unknown: no known grammar reads this name\n";
    else if (unknown > 0) out += fmt::format("unknown: no known grammar reads {} of {} names\n", unknown, names.size());
    return out;
}

}  // namespace rooftile
