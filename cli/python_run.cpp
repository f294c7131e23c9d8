#include "cli/python_run.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/output.hpp"
#include "rooftile/embedded.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/runtime/profiled_program.hpp"
#include "rooftile/runtime/temporary_folder.hpp"

namespace rooftile::cli {
namespace {

namespace fs = std::filesystem;

void put(const fs::path& file, std::string_view text) {
    OutputFlags flags;
    flags.file = file.string();
    write_result(text, flags);
}

/// The package beside this program, as the build folder has it.
std::string package_folder() {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    return error ? "" : (program.parent_path() / "python").string();
}

}  // namespace

std::vector<Field> python_fields() {
    const char* group = "Options";
    return {{"python", "PROGRAM", "The Python that has PyTorch; default python3", group},
            {"recordings", "DIR", "Keep what was recorded there, for report profile", group}};
}

PythonRun run_python(const std::string& script, Json request, const Given& given, bool timed) {
    const TemporaryFolder folder("rooftile-python");
    for (const EmbeddedFile& file : embedded_exports())
        if (file.path.find("/ways/") != file.path.npos) put(folder.path() / fs::path(file.path).filename(), file.text);
    const fs::path result = folder.path() / "report.json", asked = folder.path() / "request.json";
    request["result"] = result.string(), request["package"] = package_folder();
    put(asked, json_text(request));
    const std::string python = given.has("python") ? given.text("python") : "python3";
    const std::vector<std::string> command = {python, (folder.path() / script).string(), asked.string()};
    PythonRun out;
    ProfiledProgram program;
    if (timed) program = run_profiled({.command = command, .keep = given.text("recordings")});
    else program = run_plainly(command);
    if (program.code != 0 || !fs::exists(result))
        throw Error(ExitCode::gpu_failed,
                    program.signal
                        ? fmt::format("{} was ended by signal {} while it measured", python, program.signal)
                        : fmt::format("{} ended with exit code {} while it measured; its last lines are above", python, program.code));
    out.report = Json::parse(read_whole_file(result.string()), nullptr, false);
    if (!out.report.is_object()) throw Error(ExitCode::gpu_failed, fmt::format("{} wrote no JSON of what it measured", python));
    if (timed && text_at(out.report, "device") != "cuda")
        throw Error(ExitCode::no_gpu, text_at(out.report, "torch").empty()
                                          ? fmt::format("{} has no PyTorch: --python names one that has", python)
                                          : fmt::format("PyTorch of {} finds no GPU; --no-time verifies what runs on the CPU", python));
    out.recordings = std::move(program.recordings);
    return out;
}

DocumentContext context_of_run(const Machine& machine, const PythonRun& run, const std::string& command, std::uint64_t seed) {
    DocumentContext context = context_of(machine, command);
    if (const std::string gpu = text_at(run.report, "gpu"); !gpu.empty()) {
        context.gpu.emplace();
        context.gpu->gpu = gpu, context.gpu->date = utc_now(), context.gpu->seed = seed;
    }
    return context;
}

}  // namespace rooftile::cli
