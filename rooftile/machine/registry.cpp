#include "rooftile/machine/registry.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "rooftile/embedded.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/keys.hpp"
#include "rooftile/machine/read.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

constexpr std::string_view machine_folder = "machines/", arch_folder = "machines/arch/",
                           calibration_folder = "machines/calibration/", invented_folder = "machines/invented/";
constexpr std::string_view common_folder = "machines/common/", common_stem = "nvidia";
constexpr std::string_view suffix = ".toml";

// "h100-sxm" of "machines/h100-sxm.toml"; empty where the path is not directly in `folder`.
std::string_view stem_in(std::string_view folder, std::string_view path) {
    if (!path.starts_with(folder) || !path.ends_with(suffix)) return {};
    const std::string_view stem = path.substr(folder.size(), path.size() - folder.size() - suffix.size());
    return stem.find('/') == stem.npos ? stem : std::string_view{};
}

std::vector<std::string> stems_in(std::string_view folder) {
    std::vector<std::string> stems;
    for (const auto& file : embedded_machines())
        if (const auto stem = stem_in(folder, file.path); !stem.empty()) stems.emplace_back(stem);
    std::sort(stems.begin(), stems.end());
    return stems;
}

const EmbeddedFile* embedded(std::string_view folder, std::string_view stem) {
    for (const auto& file : embedded_machines())
        if (!stem.empty() && stem_in(folder, file.path) == stem) return &file;
    return nullptr;
}

/// Of a GPU that there is, or of one that there is not.
const EmbeddedFile* embedded_machine(std::string_view id) {
    const EmbeddedFile* file = embedded(machine_folder, id);
    return file ? file : embedded(invented_folder, id);
}

std::string listed(const std::vector<std::string>& ids) {
    std::string list;
    for (const auto& id : ids) list += (list.empty() ? "" : " ") + id;
    return list;
}

bool is_path(std::string_view text) {
    std::error_code ignored;
    return text.find('/') != text.npos || text.ends_with(suffix)
           || (!text.empty() && text.find('\0') == text.npos && std::filesystem::exists(text, ignored));
}

std::string_view without_vendor(std::string_view name) {
    constexpr std::string_view vendor = "NVIDIA ";
    return name.starts_with(vendor) ? name.substr(vendor.size()) : name;
}

}  // namespace

std::vector<std::string> machine_ids() { return stems_in(machine_folder); }
std::vector<std::string> invented_ids() { return stems_in(invented_folder); }
std::vector<std::string> arch_ids() { return stems_in(arch_folder); }

std::string_view arch_text(std::string_view arch) {
    const EmbeddedFile* file = arch.empty() ? embedded(common_folder, common_stem) : embedded(arch_folder, arch);
    return file ? file->text : std::string_view{};
}

std::string_view calibration_text(std::string_view id) {
    const EmbeddedFile* file = embedded(calibration_folder, id);
    return file ? file->text : std::string_view{};
}
std::vector<std::string> calibrated_ids() { return stems_in(calibration_folder); }

Machine machine_by_id(std::string_view id_or_path) {
    if (!embedded_machine(id_or_path) && is_path(id_or_path))
        return read_machine(std::filesystem::path(id_or_path));
    return shipped_machine(id_or_path);
}

Machine shipped_machine(std::string_view id) {
    if (const EmbeddedFile* file = embedded_machine(id)) return parse_machine(file->text, file->path);
    const auto ids = machine_ids(), invented = invented_ids();
    std::vector<std::string> all = ids;
    all.insert(all.end(), invented.begin(), invented.end());
    std::string lower(id);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return char(std::tolower(c)); });
    std::vector<std::string> begun;
    for (const std::string& one : all) {
        if (one == lower) return shipped_machine(one);
    }
    for (const std::string& one : ids)
        if (!lower.empty() && one.starts_with(lower + "-")) begun.push_back(one);
    if (begun.size() == 1) return shipped_machine(begun[0]);
    if (begun.size() > 1) throw RequestError(fmt::format("machine \"{}\" may be {}; say which", printable(id), fmt::join(begun, " or ")));
    const std::string nearest = nearest_name(lower, all);
    throw RequestError(fmt::format("unknown machine \"{}\"{}; there are: {}; invented: {}; or name a .toml file", printable(id),
                                   nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest), listed(ids), listed(invented)));
}

std::optional<Machine> match_device(std::string_view device_name, std::int64_t sm_count) {
    for (const auto& id : machine_ids()) {
        Machine machine = machine_by_id(id);
        const auto sms = machine.count("sm.count");
        if (!sms || *sms != static_cast<double>(sm_count)) continue;
        for (const auto& name : machine.device_names)
            if (without_vendor(name) == without_vendor(device_name)) return machine;
    }
    return std::nullopt;
}

}  // namespace rooftile
