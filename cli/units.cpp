// `measure units`: short kernels over sizes, each bound by another unit of the GPU, beside what the machine's numbers and the machine code
// say.
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/interrupt.hpp"
#include "cli/measure_flags.hpp"
#include "cli/pictures.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/measure/unit_kernels.hpp"

namespace rooftile::cli {
namespace {

constexpr std::string_view types[] = {"bf16", "fp32"};
constexpr std::int64_t least_kib = 16, most_kib = std::int64_t{4} << 20;

UnitRequest unit_request(const Given& given) {
    UnitRequest out;
    if (given.has("type")) out.type = one_of("--type", given.text("type"), types) == 0 ? Type::bf16 : Type::fp32;
    if (given.has("least")) out.least_bytes = whole_number("--least", given.text("least"), least_kib, most_kib) << 10;
    if (given.has("most")) out.most_bytes = whole_number("--most", given.text("most"), least_kib, most_kib) << 10;
    if (out.least_bytes % (std::int64_t{least_kib} << 10) != 0)
        throw RequestError("--least " + given.text("least") + " is not whole rows of every type; multiples of 16 are");
    if (out.most_bytes < out.least_bytes)
        throw RequestError("--most is below --least; give a size of " + std::to_string(out.least_bytes >> 10) + " KiB or more");
    if (given.has("device")) out.device = int(whole_number("--device", given.text("device"), 0, 1023));
    if (given.has("seed")) out.seed = seed_number("--seed", given.text("seed"));
    out.counters = !given.has("no_counters");
    out.interrupted = interrupted;
    if (isatty(STDERR_FILENO)) out.progress = [](const std::string& line) { say(line); };
    return out;
}

int measure_units(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    checked_format(output);
    check_writable(output);
    check_picture_files(given);
    const UnitRequest request = unit_request(given);
    const auto [live, target] = live_target(given, request.device);
    if (!target.note.empty()) say(target.note);
    note_interrupts();
    const UnitOutcome outcome = run_units(request);
    DocumentContext context = context_of(*target.machine, invocation.command);
    context.gpu = GpuContext{outcome.gpu, outcome.driver, outcome.nvrtc, utc_now(), request.seed};
    const Json document = unit_document(context, *target.machine, outcome.run);
    if (wants_pictures(given)) write_pictures(given, document, invocation.command);
    write_result(output.json ? json_text(document) : unit_text(document, terminal_for(output)), output);
    for (const UnitPoint& point : outcome.run.points)
        if (!point.right) {
            say(std::string(unit_words()[std::size_t(point.kind)].id) + ": the result is wrong at " + std::to_string(point.x_bytes >> 10)
                + " KiB");
            return int(ExitCode::verification_failed);
        }
    return int(ExitCode::done);
}

}  // namespace

void add_units(std::vector<Verb>& verbs) {
    const char* group = "Options";
    const Field own[] = {{"type", "TYPE", "bf16 (default) or fp32", group},
                         {"least", "KIB", "Smallest x, in KiB; default 16", group},
                         {"most", "KIB", "x grows by factors of 4 up to so many KiB; default 1048576, 1 GiB", group},
                         {"no_counters", "", "Count nothing after timing", group, FieldKind::on},
                         {"device", "N", "Which GPU (0)", group},
                         {"seed", "S", "Seed of the random operands; default 1", group}};
    verbs.push_back(
        {.path = "measure units",
         .meaning = "Short kernels over sizes, from DRAM and in L2: bytes, issue slots, special functions, and what warps wait for",
         .fields = joined_fields({own, target_fields(), picture_fields(true)}),
         .documents = Documents::json_only,
         .examples = "A product, SiLU with and without its division, RMSNorm and GEMV, verified against fp64.\nExamples:\n"
                     "  rooftile measure units --json --out units.json\n"
                     "  rooftile measure units --type fp32 --most 65536 --html units.html\n",
         .synopsis = {},
         .run = measure_units});
}

}  // namespace rooftile::cli
