// `name`: what kernels' names say. Needs no GPU.
#include <fmt/core.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "rooftile/error.hpp"
#include "rooftile/report/kernel_names.hpp"

namespace rooftile::cli {
namespace {

/// One a line, as profilers print them.
std::vector<std::string> lines_of_input() {
    std::vector<std::string> out;
    for (std::string line; std::getline(std::cin, line);) {
        const std::size_t begin = line.find_first_not_of(" \t\r"), end = line.find_last_not_of(" \t\r");
        if (begin != line.npos) out.push_back(line.substr(begin, end + 1 - begin));
    }
    return out;
}

int read_names(const Given& given, const OutputFlags& output, const Invocation&) {
    const Format format = checked_format(output);
    const std::vector<std::string>& texts = given.list("names");
    if (texts.empty())
        throw RequestError("name needs names of kernels: name NAME..., or name - to read them from standard input, one a line");
    std::vector<KernelName> names;
    for (const std::string& text : texts) {
        if (text != "-") {
            names.push_back(decode(text));
            continue;
        }
        const std::vector<std::string> lines = lines_of_input();
        if (lines.empty()) throw RequestError("name -: standard input holds no names; give one a line, as nsys stats prints them");
        for (const std::string& line : lines) names.push_back(decode(line));
    }
    if (format == Format::text) {
        write_result(kernel_names_text(names, terminal_for(output)), output);
        return int(ExitCode::done);
    }
    Json document = Json::array();
    for (const KernelName& name : names) document.push_back(kernel_name_json(name));
    write_result(document_text(document, format), output);
    return int(ExitCode::done);
}

}  // namespace

void add_name(std::vector<Verb>& verbs) {
    verbs.push_back({.path = "name",
                     .meaning = "What names of kernels say: library, tile, stages, cluster, types, layout (no GPU)",
                     .fields = {{"names", "NAME...", "As a profiler prints them, mangled or not; -: from standard input, one a line",
                                 "Names", FieldKind::positional}},
                     .documents = Documents::json_only,
                     .examples = "Examples:\n"
                                 "  rooftile name nvjet_sm90_tst_192x8_64x8_2x1_v_bz_splitK_TNT\n"
                                 "  rooftile name --json triton_poi_fused_add_mul_0 ncclDevKernel_AllReduce_Sum_bf16_RING_LL\n"
                                 "  nsys stats -r cuda_gpu_kern_sum -f csv run.nsys-rep | cut -d, -f9- | rooftile name -\n",
                     .synopsis = "NAME...",
                     .run = read_names});
}

}  // namespace rooftile::cli
