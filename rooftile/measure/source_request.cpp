// From a request to a SourceRequest.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include "rooftile/core/operation.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/expression/expression.hpp"
#include "rooftile/expression/tree.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/measure/device_text.hpp"
#include "rooftile/measure/source_kernel.hpp"
#include "rooftile/measure/source_module.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t max_grid_x = max_grid_extents[0], max_grid = max_grid_extents[1];
constexpr std::int64_t max_block = max_block_extents[0], max_block_z = max_block_extents[2];
constexpr std::int64_t max_cluster = max_cluster_extents[0], max_shared = max_dynamic_shared;
constexpr double max_timeout = 86400;

std::string required(const Given& given, std::string_view key, std::string_view example) {
    if (!given.has(key)) throw RequestError(fmt::format("missing {}, as in {}", given.name(key), example));
    return given.text(key);
}

/// "1024", "32x8", "32x8x1".
void read_size(const Given& given, std::string_view key, std::int64_t most_x, std::int64_t most_y,
               std::int64_t most_z, unsigned& x, unsigned& y, unsigned& z) {
    const std::string name = given.name(key), &text = given.text(key);
    const auto parts = std::count(text.begin(), text.end(), 'x') + 1;
    if (parts > 3) throw RequestError(fmt::format("{} {}: accepted: X, XxY or XxYxZ", name, text));
    const auto numbers = whole_numbers(name, text,
                                       parts == 1   ? "X"
                                       : parts == 2 ? "XxY"
                                                    : "XxYxZ",
                                       1, most_x);
    const std::int64_t most[] = {most_x, most_y, most_z};
    unsigned* const to[] = {&x, &y, &z};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (numbers[i] > most[i])
            throw RequestError(fmt::format("{} {}: at most {}x{}x{}", name, text, most_x, most_y, most_z));
        *to[i] = unsigned(numbers[i]);
    }
}

/// The problem that the reference and those of the tensors that it reads give; what it writes it names itself.
Problem problem_of(const std::string& reference, const std::vector<std::string>& tensors,
                   std::set<std::string>& written) {
    for (const Statement& s : parse_expression(reference).statements) written.insert(std::string(s.name));
    Given given;
    given.add("expression", reference);
    for (const std::string& text : tensors)
        if (!written.contains(tensor_declaration(text).name)) given.add("tensor", text);
    return expressions().problem(given);
}

std::string described(const TensorInfo& tensor) {
    Shape shape;
    for (const Extent& extent : tensor.extents) shape.push_back(extent.most);
    return tensor.type + text_of(shape);
}

/// The tensors as they are declared, then the outputs that nobody declared.
std::vector<SourceParameter> tensor_parameters(const Problem& problem,
                                               const std::vector<std::string>& declared,
                                               const std::set<std::string>& written) {
    const std::vector<TensorInfo> known = problem.operation->tensors(problem);
    std::vector<SourceParameter> out;
    std::set<std::string> named;
    const auto place = [&](const std::string& name) {
        return int(std::ranges::find(known, name, &TensorInfo::name) - known.begin());
    };
    for (const std::string& text : declared) {
        const TensorDeclaration tensor = tensor_declaration(text);
        if (!named.insert(tensor.name).second)
            throw RequestError(fmt::format("--tensor {} is given twice", tensor.name));
        const int at = place(tensor.name);
        if (at == int(known.size()))
            throw RequestError(fmt::format("--tensor {}: the reference {}", tensor.name,
                                           written.contains(tensor.name)
                                               ? "reads it again: only what it leaves is an output"
                                               : "does not read it"));
        const TensorInfo& info = known[std::size_t(at)];
        const std::string as_declared = std::string(name_of(tensor.element)) + text_of(tensor.shape);
        if (as_declared != described(info))
            throw RequestError(fmt::format(
                "--tensor {0}: the reference makes it {1}, not {2}; a cast in the reference changes its "
                "type, as {0} = {3}(...)",
                tensor.name, described(info), as_declared, name_of(tensor.element)));
        out.push_back({.name = tensor.name, .tensor = at});
    }
    for (std::size_t i = 0; i < known.size(); ++i)
        if (!named.contains(known[i].name)) out.push_back({.name = known[i].name, .tensor = int(i)});
    return out;
}

/// CTAs that are launched side by side: whole clusters make up the grid.
void read_cluster(const Given& given, Launch& launch) {
    if (!given.has("cluster")) return;
    read_size(given, "cluster", max_cluster, max_cluster, max_cluster, launch.cluster_x, launch.cluster_y, launch.cluster_z);
    const std::string flag = given.name("cluster") + " " + given.text("cluster");
    if (std::int64_t{launch.cluster_x} * launch.cluster_y * launch.cluster_z > max_cluster)
        throw RequestError(fmt::format("{}: a cluster has at most {} CTAs", flag, max_cluster));
    if (launch.grid_x % launch.cluster_x || launch.grid_y % launch.cluster_y || launch.grid_z % launch.cluster_z)
        throw RequestError(fmt::format("{}: a grid of {} is not made of whole clusters", flag, given.text("grid")));
}

/// "PyTorch=12.5", "PyTorch=12.5,3".
OtherTime other_time(const std::string& name, const std::string& text) {
    const std::size_t equals = text.rfind('=');
    OtherTime out;
    if (equals != text.npos) {
        const std::size_t comma = std::min(text.find(',', equals), text.size());
        const char *begin = text.data() + equals + 1, *end = text.data() + comma;
        const auto [at, error] = std::from_chars(begin, end, out.us);
        if (error != std::errc() || at != end || !std::isfinite(out.us)) out.us = 0;
        constexpr std::int64_t most_launches = 1'000'000;
        if (comma < text.size()) out.launches = whole_number(name + " " + printable(text) + ": launches", text.substr(comma + 1), 1, most_launches);
        out.name = text.substr(0, equals);
        for (const char c : out.name)
            out.key += c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '_';
    }
    constexpr std::size_t most = 60;
    if (out.name.empty() || out.name.size() > most || printable(out.name) != out.name || !(out.us > 0))
        throw RequestError(fmt::format("{} {}: accepted: a name, =, microseconds above 0 and, behind a comma, launches, as PyTorch=12.5 or PyTorch=12.5,3", name, printable(text)));
    return out;
}

}  // namespace

SourceParameter source_number(const std::string& name, const std::string& text) {
    const auto refuse = [&](std::string_view why) -> void {
        throw RequestError(fmt::format(
            "{} {}: {}; accepted: int32, uint32, int64, uint64, fp32 or fp64, a colon and a number, as "
            "int32:1024",
            name, text, why));
    };
    const std::size_t colon = text.find(':');
    if (colon == text.npos) refuse("no type");
    const std::string_view type = std::string_view(text).substr(0, colon);
    const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
    SourceParameter out{.name = text};
    const auto read = [&](auto value) {
        const auto [at, error] = std::from_chars(begin, end, value);
        if (error != std::errc() || at != end) refuse("no such number");
        return value;
    };
    if (type == "int32") out.bytes = 4, out.bits = std::bit_cast<std::uint32_t>(read(std::int32_t{}));
    else if (type == "uint32") out.bytes = 4, out.bits = read(std::uint32_t{});
    else if (type == "int64") out.bits = std::bit_cast<std::uint64_t>(read(std::int64_t{}));
    else if (type == "uint64") out.bits = read(std::uint64_t{});
    else if (type == "fp32") out.bytes = 4, out.bits = std::bit_cast<std::uint32_t>(read(float{}));
    else if (type == "fp64") out.bits = std::bit_cast<std::uint64_t>(read(double{}));
    else refuse("no such type");
    return out;
}

double source_seconds(const std::string& name, const std::string& text) {
    double seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size() || !(seconds > 0) || seconds > max_timeout)
        throw RequestError(
            fmt::format("{} {}: accepted: seconds above 0, at most {}", name, text, max_timeout));
    return seconds;
}

const Operation& expressions() {
    for (const Operation* operation : operations()) {
        const auto has = [&](std::string_view key) {
            return std::ranges::any_of(operation->fields(),
                                       [&](const Field& field) { return field.key == key; });
        };
        if (has("expression") && has("tensor")) return *operation;
    }
    throw RequestError(
        "this build has no operation that takes expressions, by which a kernel's results are judged");
}

std::span<const Field> source_fields() {
    const char *kernel = "Kernel", *problem = "Problem";
    static const Field fields[] = {
        {"file", "FILE.cu", "CUDA C++ with the kernel", kernel, FieldKind::positional},
        {"entry", "NAME", "The __global__ function, as C++ calls it: scale, or \"scale<float>\"; default: the file's only one", kernel},
        {"grid", "XxYxZ", "CTAs of a launch", kernel},
        {"block", "XxYxZ", "Threads of a CTA; default 256", kernel},
        {"cluster", "XxYxZ", "CTAs of a cluster, up to 8; default 1, or as the kernel's __cluster_dims__ says", kernel},
        {"shared", "BYTES", "Dynamic shared memory of a CTA; default 0", kernel},
        {"include", "FOLDER", "Where the file's #include looks beside its own folder; repeatable", kernel,
         FieldKind::list},
        {"reference", "EXPRESSION",
         "What the results must be: \"y = gelu(x)\"; its names are those of the tensors", problem},
        {"tensor", "NAME:TYPE[SHAPE]",
         "The kernel's pointers in the order of its parameters, outputs too; outputs left out follow; "
         "repeatable",
         problem, FieldKind::list},
        {"arg", "TYPE:NUMBER",
         "A number behind the tensors: int32:1024, int64, uint32, uint64, fp32 or fp64; repeatable", problem,
         FieldKind::list},
        {"other", "NAME=US[,LAUNCHES]", "What the same takes in another way, measured elsewhere, for the table; repeatable", kernel,
         FieldKind::list},
        {"timeout", "S", "A launch that takes longer is an endless loop; default 10", kernel},
    };
    return fields;
}

namespace {

/// Of these includes and theirs, those that lie in the user's folders.
void read_headers(SourceRequest& request, std::vector<std::string> includes) {
    namespace fs = std::filesystem;
    std::set<std::string> seen;
    while (!includes.empty()) {
        const std::string name = std::move(includes.back());
        includes.pop_back();
        if (!seen.insert(name).second) continue;
        for (std::size_t i = 0; i < request.include_folders.size(); ++i) {
            const fs::path path = fs::path(request.include_folders[i]) / name;
            std::error_code ignored;
            if (!fs::is_regular_file(path, ignored)) continue;
            DeviceText header = device_header(read_whole_file(path));
            request.headers.emplace_back(name, std::move(header.text));
            request.left_out.insert(request.left_out.end(), header.left_out.begin(), header.left_out.end());
            includes.insert(includes.end(), header.includes.begin(), header.includes.end());
            // What it includes may lie beside it.
            if (const std::string beside = path.parent_path().string(); std::ranges::find(request.include_folders, beside) == request.include_folders.end())
                request.include_folders.push_back(beside);
            break;
        }
    }
}

}  // namespace

std::string folder_of(const std::string& path) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    return folder.empty() ? "." : folder.string();
}

SourceRequest source_text_request(std::string path, std::string_view text, std::vector<std::string> folders) {
    SourceRequest request;
    DeviceText file = device_text(text);
    request.path = std::move(path), request.text = std::move(file.text), request.left_out = std::move(file.left_out);
    request.kernels = std::move(file.kernels), request.templates = std::move(file.templates);
    request.include_folders = std::move(folders);
    read_headers(request, std::move(file.includes));
    return request;
}

SourceRequest source_code_request(const Given& given) {
    if (!given.has("file"))
        throw RequestError(
            "missing the kernel's file, as in rooftile measure source my.cu --entry scale ...");
    const std::string& path = given.text("file");
    std::vector<std::string> folders = {folder_of(path)};
    for (const std::string& include : given.list("include")) folders.push_back(include);
    SourceRequest request = source_text_request(path, read_whole_file(path), std::move(folders));
    if (given.has("entry")) request.entry = given.text("entry");
    else if (request.kernels.size() == 1) request.entry = request.kernels.front();
    else throw RequestError(request.kernels.empty() ? fmt::format("{} has no __global__ function; --entry NAME names one that it includes", path)
                                                    : fmt::format("{} has {} kernels; name one by --entry: {}", path, request.kernels.size(), fmt::join(request.kernels, ", ")));
    return request;
}

Launch source_launch(const Given& given) {
    Launch launch;
    launch.block_x = 256;
    required(given, "grid", "--grid 1024");
    read_size(given, "grid", max_grid_x, max_grid, max_grid, launch.grid_x, launch.grid_y, launch.grid_z);
    if (given.has("block"))
        read_size(given, "block", max_block, max_block, max_block_z, launch.block_x, launch.block_y,
                  launch.block_z);
    if (std::int64_t{launch.block_x} * launch.block_y * launch.block_z > max_block)
        throw RequestError(
            fmt::format("--block {}: a CTA has at most {} threads", given.text("block"), max_block));
    read_cluster(given, launch);
    if (given.has("shared"))
        launch.shared_bytes =
            unsigned(whole_number(given.name("shared"), given.text("shared"), 0, max_shared));
    return launch;
}

SourceRequest source_request(const Given& given) {
    SourceRequest request = source_code_request(given);
    const std::string reference = required(given, "reference", "--reference \"y = gelu(x)\"");
    if (!given.has("tensor")) throw RequestError("missing --tensor, as in --tensor \"x:bf16[4096,4096]\"");
    std::set<std::string> written;
    request.problem = problem_of(reference, given.list("tensor"), written);
    request.parameters = tensor_parameters(request.problem, given.list("tensor"), written);
    for (const std::string& text : given.list("arg"))
        request.parameters.push_back(source_number(given.name("arg"), text));
    request.launch = source_launch(given);
    for (const std::string& text : given.list("other")) request.others.push_back(other_time(given.name("other"), text));
    if (given.has("timeout"))
        request.timeout_seconds = source_seconds(given.name("timeout"), given.text("timeout"));
    request.debug = given.has("debug");
    return request;
}

}  // namespace rooftile
