#include "rooftile/gemm/suite_row.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "rooftile/error.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {
namespace {

/// "128x256x64, 4 stages, cooperative, cluster 2x1, split-K 2".
std::string label_of_config(const Json& c) {
    if (!c.is_object()) return "none";
    std::string label = fmt::format("{}x{}x{}, {} stages, {}", c.at("tile_m").get<int>(),
                                    c.at("tile_n").get<int>(), c.at("tile_k").get<int>(),
                                    c.at("stages").get<int>(), c.at("schedule").get<std::string>());
    const int m = c.at("cluster_m").get<int>(), n = c.at("cluster_n").get<int>();
    if (c.value("swap_ab", false)) label += ", A and B swapped";
    if (m * n > 1) label += fmt::format(", cluster {}x{}", m, n);
    if (const int split = c.at("split_k").get<int>(); split > 1) label += fmt::format(", split-K {}", split);
    if (const int pieces = c.value("grid_split_k", 1); pieces > 1) label += fmt::format(", {} pieces of K", pieces);
    return label;
}

double bytes_of_name(const std::string& type) { return type == "fp32" ? 4 : 2; }

void read_gemm(const Json& line, GemmSuiteRow& row) {
    const Json& p = line.at("problem");
    row.m = extent_at(p, "m"), row.n = extent_at(p, "n");
    row.k = extent_at(p, "k");
    const double m = double(row.m), n = double(row.n), k = double(row.k);
    const Json& types = p.at("types");
    row.compulsory_bytes = m * k * bytes_of_name(types.at("a")) + n * k * bytes_of_name(types.at("b"))
                           + m * n * bytes_of_name(types.at("c"));
    row.label = label_of_config(line.at("config"));
    const Json& b = line.at("baselines");
    row.cublaslt_best_us = positive_at(b, "cublaslt_best_us");
    row.cublaslt_ratio = positive_at(b, "cublaslt_ratio");
    row.cublaslt_ratio_low = positive_at(b, "cublaslt_ratio_low");
    row.cublaslt_ratio_high = positive_at(b, "cublaslt_ratio_high");
    row.cublaslt_ratio_coverage = number_at(b, "cublaslt_ratio_coverage");
}

}  // namespace

GemmSuiteRow gemm_row(const SuiteRow& row) {
    GemmSuiteRow out;
    static_cast<SuiteRow&>(out) = row;
    try {
        read_gemm(Json::parse(row.line), out);
    } catch (const nlohmann::json::exception& error) {
        throw RequestError(fmt::format("a row of gemm lacks a key: {}", error.what()));
    }
    return out;
}

}  // namespace rooftile
