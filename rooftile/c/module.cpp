#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "rooftile/c/error.hpp"
#include "rooftile/c/on_device.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/measure/source_module.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/rooftile.h"

using namespace rooftile;

struct rooftile_module {
    explicit rooftile_module(SourceModule given) : module(std::move(given)) {
        for (const ModuleFunction& function : module.functions()) {
            auto& views = parameters.emplace_back();
            for (const ModuleParameter& p : function.parameters) views.push_back({p.bytes, name_of(p.kind).data()});
        }
    }
    const std::vector<rooftile_parameter>* parameters_of(int function) const {
        return function >= 0 && std::size_t(function) < parameters.size() ? &parameters[std::size_t(function)] : nullptr;
    }

    SourceModule module;
    std::vector<std::vector<rooftile_parameter>> parameters;
};

namespace {

std::vector<std::string> texts_of(const Json& value, const std::string& key) {
    std::vector<std::string> out;
    if (value.is_array())
        for (const Json& one : value)
            if (one.is_string()) out.push_back(one.get<std::string>());
    if (!value.is_array() || out.size() != value.size())
        throw RequestError(fmt::format("{} is {:.60}; accepted is a list of texts", key, value.dump()));
    return out;
}

SourceModule loaded(const char* text) {
    Json request;
    try {
        request = parsed_line(text);
    } catch (const Json::exception&) {}
    if (!request.is_object()) throw RequestError("the request is no JSON object");
    std::string file, source, machine;
    std::vector<std::string> functions;
    LoadOptions options;
    const std::pair<const char*, std::string*> names[] = {
        {"file", &file}, {"text", &source}, {"arch", &options.arch}, {"machine", &machine}};
    for (const auto& [key, value] : request.items()) {
        const auto* name = std::ranges::find(names, key, [](const auto& n) { return std::string_view(n.first); });
        if (key == "functions") functions = texts_of(value, key);
        else if (key == "include") options.include = texts_of(value, key);
        else if (name == std::end(names))
            throw RequestError(
                fmt::format("the request has no field {}; there are file, text, functions, include, arch, machine", printable(key)));
        else if (!value.is_string() || value.get<std::string>().empty())
            throw RequestError(fmt::format("{} is {:.60}; accepted is a text", key, value.dump()));
        else *name->second = value.get<std::string>();
    }
    if (file.empty() == source.empty()) throw RequestError("file or text says what to compile, one of them");
    if (!machine.empty()) {
        if (!options.arch.empty()) throw RequestError("arch and machine both say what to compile for; give one");
        options.arch = machine_by_id(machine).arch;
        if (options.arch.empty()) throw RequestError(fmt::format("{}: the machine file names no architecture to compile for", machine));
    }
    // What has no line break and no kernel is a path to load(), and a text here.
    return load(source.empty() ? file : source + "\n", std::move(functions), options);
}

/// A size of a launch: three extents, of which those of a grid may be 0.
void read_size(const char* name, const std::int64_t* given, std::array<std::int64_t, 3> most, std::int64_t least, unsigned& x, unsigned& y,
               unsigned& z) {
    unsigned* const to[] = {&x, &y, &z};
    for (std::size_t i = 0; i < 3; ++i) {
        if (given[i] < least || given[i] > most[i])
            throw RequestError(fmt::format("{} is {}x{}x{}; accepted is {}x{}x{} to {}x{}x{}", name, given[0], given[1], given[2], least,
                                           least, least, most[0], most[1], most[2]));
        *to[i] = unsigned(given[i]);
    }
}

}  // namespace

extern "C" {

int rooftile_load_source(const char* request, rooftile_module** module) {
    return c::guarded([&] {
        rooftile_module*& made = c::given(module, "module");
        made = new rooftile_module(loaded(&c::given(request, "request")));
    });
}

void rooftile_free_module(rooftile_module* module) { delete module; }

int rooftile_module_json(const rooftile_module* module, char** json) {
    return c::guarded([&] {
        char*& made = c::given(json, "json");
        const SourceModule& own = c::given(module, "module").module;
        Json out = {{"arch", own.arch()}, {"functions", Json::array()}, {"left_out", Json::array()}};
        for (const ModuleFunction& f : own.functions()) {
            Json parameters = Json::array();
            for (const ModuleParameter& p : f.parameters) parameters.push_back({{"kind", name_of(p.kind)}, {"bytes", p.bytes}});
            out["functions"].push_back({{"name", f.name},
                                        {"registers", f.entry.registers},
                                        {"spill_bytes", f.entry.spill_store_bytes},
                                        {"static_shared_bytes", f.entry.static_shared_bytes},
                                        {"parameters", std::move(parameters)}});
        }
        for (const std::string& what : own.left_out()) out["left_out"].push_back(what);
        made = c::text_of(json_text(out, -1));
    });
}

int rooftile_module_function_count(const rooftile_module* module) { return module ? int(module->parameters.size()) : 0; }
int rooftile_module_parameter_count(const rooftile_module* module, int function) {
    const auto* parameters = module ? module->parameters_of(function) : nullptr;
    return parameters ? int(parameters->size()) : 0;
}
const rooftile_parameter* rooftile_module_parameter_at(const rooftile_module* module, int function, int index) {
    const auto* parameters = module ? module->parameters_of(function) : nullptr;
    return parameters && index >= 0 && std::size_t(index) < parameters->size() ? &(*parameters)[std::size_t(index)] : nullptr;
}

int rooftile_module_load(const rooftile_module* module, int device) {
    return c::guarded([&] {
        const SourceModule& own = c::given(module, "module").module;
        const c::OnDevice here(device);
        own.load();
    });
}

int rooftile_module_launch(const rooftile_module* module, int function, int device, void* stream, const int64_t* grid, const int64_t* block,
                           const int64_t* cluster, size_t shared_bytes, void* const* arguments, const size_t* sizes, int count) {
    return c::guarded([&] {
        const SourceModule& own = c::given(module, "module").module;
        c::given(arguments, "arguments"), c::given(sizes, "sizes");
        Launch launch{.stream = static_cast<Stream>(stream)};
        read_size("grid", &c::given(grid, "grid"), max_grid_extents, 0, launch.grid_x, launch.grid_y, launch.grid_z);
        read_size("block", &c::given(block, "block"), max_block_extents, 1, launch.block_x, launch.block_y, launch.block_z);
        if (cluster) read_size("cluster", cluster, max_cluster_extents, 1, launch.cluster_x, launch.cluster_y, launch.cluster_z);
        if (shared_bytes > max_dynamic_shared)
            throw RequestError(fmt::format("shared is {}; accepted is 0 to {} B", shared_bytes, max_dynamic_shared));
        launch.shared_bytes = unsigned(shared_bytes);
        std::vector<ModuleArgument> all;
        for (int i = 0; i < count; ++i) all.push_back({arguments[i], sizes[i]});
        const c::OnDevice here(device);
        own.launch(function, launch, all);
    });
}

}  // extern "C"
