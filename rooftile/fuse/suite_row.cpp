#include "rooftile/fuse/suite_row.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "rooftile/error.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {
namespace {

void read_fuse(const Json& line, FuseSuiteRow& row) {
    const Json& p = line.at("problem");
    std::int64_t most = -1;
    for (const char* list : {"tensors", "outputs"})
        for (const Json& tensor : p.at(list)) {
            const auto bytes = extent_at(tensor, "bytes");
            const Json& shape = tensor.at("shape");
            if (bytes > most && !shape.empty()) row.columns = shape.back().get<std::int64_t>();
            most = std::max(most, bytes);
        }
    const Json& config = line.at("config");
    if (config.is_object()) {
        row.label = text_at(line, "label");
        row.reduces_rows = text_at(config, "form") == "row";
    }
    const Json& b = line.at("baselines");
    row.unfused_us = positive_at(b, "unfused_us");
    row.roof = text_at(line, "roof");
    row.roof_fraction = positive_at(line, "roof_fraction");
    row.issue_roof_us = positive_at(line, "issue_roof_us");
}

}  // namespace

FuseSuiteRow fuse_row(const SuiteRow& row) {
    FuseSuiteRow out;
    static_cast<SuiteRow&>(out) = row;
    try {
        read_fuse(Json::parse(row.line), out);
    } catch (const nlohmann::json::exception& error) {
        throw RequestError(fmt::format("a row of fuse lacks a key: {}", error.what()));
    }
    return out;
}

}  // namespace rooftile
