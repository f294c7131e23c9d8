#include "rooftile/gemm/ablation_text.hpp"

#include <fmt/core.h>

#include "rooftile/gemm/parts.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

std::string clock_text(const std::optional<double>& mhz) {
    return mhz ? fmt::format("{:.0f} MHz", *mhz) : "?";
}
std::string signed_us(const std::optional<double>& us) {
    return us ? fmt::format("{:+.3f} us", *us) : std::string();
}

/// "loads take 18.2 us of it that the model does not know".
std::string verdict_text(const AblationStudy& study) {
    if (study.term.empty()) return "not known: the prediction or the measurement is missing";
    if (study.term == "none") return "hardly a miss: nothing to attribute";
    if (study.term == "clock") return "the clock: the SMs ran at another than predicted";
    if (study.term == "common")
        return "no part alone: what the kernel has without each of them too (turn, waves, launch)";
    const std::string part = study.term == "store"   ? "the store of C"
                             : study.term == "loads" ? "the loads of A and B"
                                                     : "the matrix instructions";
    return part + ": without them the model is nearer";
}

}  // namespace

std::string ablation_text(const Measurement& m, const AblationStudy& study, bool valid,
                          const Terminal& terminal) {
    Table table({{"without", Table::Align::left},
                 {"predicted"},
                 {"at", Table::Align::right, 2},
                 {"measured"},
                 {"at", Table::Align::right, 1},
                 {"predicted there", Table::Align::right, 3},
                 {"of the miss"}});
    table.row({{"nothing", Tone::strong},
               {time_or_unknown(m.plan.time_us)},
               {clock_text(study.whole_clock_mhz)},
               {valid ? time_text(*m.time_us) : "?", Tone::strong},
               {valid ? clock_text(m.sm_clock_mhz) : "?"},
               {time_or_unknown(study.whole_at_clock_us)},
               {signed_us(study.miss_us), Tone::strong}});
    for (const PartTime& part : study.parts) {
        const bool timed = part.invalid.empty();
        table.row({{std::string(name_of(part.ablated))},
                   {time_or_unknown(part.predicted_us)},
                   {clock_text(part.predicted_clock_mhz)},
                   {timed ? time_text(part.time_us) : "not timed"},
                   {timed ? clock_text(part.sm_clock_mhz) : ""},
                   {timed ? time_or_unknown(part.predicted_at_clock_us) : ""},
                   {signed_us(part.attributed_us)}});
    }
    table.row({{"(the clock)"}, {}, {}, {}, {}, {}, {signed_us(study.clock_us)}});
    std::string out = table.text(terminal);
    for (const PartTime& part : study.parts)
        if (!part.invalid.empty())
            out += fmt::format("  not timed without {}: ", name_of(part.ablated))
                   + wrapped(displayable(part.invalid, terminal.utf8), terminal.prose() - 6, 6) + "\n";
    out += "  " + terminal.paint("cause", Tone::strong) + "  "
           + wrapped(verdict_text(study), terminal.prose() - 9, 9) + "\n";
    return out + "  "
           + wrapped("kernels without a part compute nothing and are not verified; the whole one is",
                     terminal.prose() - 4, 4)
           + "\n";
}

}  // namespace rooftile
