#include "rooftile/runtime/doctor.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/report/context.hpp"

namespace rooftile::cli {
namespace {

Json document_of(const std::vector<Finding>& findings, const std::string& command) {
    Json list = Json::array();
    for (const Finding& finding : findings)
        list.push_back({{"status", name_of(finding.status)},
                        {"what", finding.what},
                        {"detail", finding.detail},
                        {"fix", finding.fix}});
    return {{"schema", "rooftile/doctor/1"},
            {"context", context_json(context_of(command))},
            {"gpu_usable", gpu_usable()},
            {"findings", std::move(list)}};
}

std::string text_of(const std::vector<Finding>& findings, const Terminal& terminal) {
    std::size_t width = 0;
    for (const Finding& finding : findings) width = std::max(width, finding.what.size());
    const int column = int(6 + width + 2);
    std::string out;
    for (const Finding& finding : findings) {
        const Tone tone = finding.status == Finding::Status::ok ? Tone::good : Tone::bad;
        const std::string status(name_of(finding.status));
        out += terminal.paint(status, tone) + std::string(6 - std::min<std::size_t>(5, status.size()), ' ');
        out += fmt::format(
            "{:<{}}  {}\n", finding.what, width,
            wrapped(displayable(finding.detail, terminal.utf8), terminal.prose() - column, column));
        if (!finding.fix.empty())
            out +=
                std::string(std::size_t(column), ' ') + std::string(terminal.sign("→ ", "-> "))
                + wrapped(displayable(finding.fix, terminal.utf8), terminal.prose() - column - 3, column + 3)
                + "\n";
    }
    return out;
}

int doctor(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    const Format format = checked_format(output);
    static constexpr std::string_view requirements[] = {"gpu"};
    const bool needs_gpu = given.has("require");
    if (needs_gpu) one_of("--require", given.text("require"), requirements);
    const auto findings = diagnose();
    if (format == Format::json) write_result(json_text(document_of(findings, invocation.command)), output);
    else write_result(text_of(findings, terminal_for(output)), output);
    return int(needs_gpu && !gpu_usable() ? ExitCode::no_gpu : ExitCode::done);
}

}  // namespace

void add_doctor(std::vector<Verb>& verbs) {
    verbs.push_back({.path = "doctor",
                     .meaning = "What is found here, what is missing, and how to get it",
                     .fields = {{"require", "WHAT", "gpu: end with code 4 where no GPU can be used", "Options"}},
                     .documents = Documents::json_only,
                     .examples = "Examples:\n  rooftile doctor\n  rooftile doctor --require gpu --json\n",
                     .synopsis = {},
                     .run = doctor});
}

}  // namespace rooftile::cli
