#include "rooftile/gemm/measured_record.hpp"

#include "rooftile/gemm/parts.hpp"

namespace rooftile {
namespace {

Value text_or_unknown(std::string_view text) { return text.empty() ? Value() : Value(text); }

Value figure(const PartTime& part, std::optional<double> value) {
    return part.invalid.empty() ? Value(value) : Value();
}

Record ablation_record(const AblationStudy& study) {
    List parts;
    for (const PartTime& part : study.parts)
        parts.push_back(Record{{"without", name_of(part.ablated)},
                               {"predicted_time_us", part.predicted_us},
                               {"predicted_clock_mhz", part.predicted_clock_mhz},
                               {"time_us", figure(part, part.time_us)},
                               {"time_us_low", figure(part, part.time_us_low)},
                               {"time_us_high", figure(part, part.time_us_high)},
                               {"samples", part.samples},
                               {"sm_clock_mhz", figure(part, part.sm_clock_mhz)},
                               {"predicted_at_clock_us", figure(part, part.predicted_at_clock_us)},
                               {"attributed_us", figure(part, part.attributed_us)},
                               {"invalid", text_or_unknown(part.invalid)}});
    return {{"parts", std::move(parts)},
            {"predicted_clock_mhz", study.whole_clock_mhz},
            {"predicted_at_clock_us", study.whole_at_clock_us},
            {"miss_us", study.miss_us},
            {"clock_us", study.clock_us},
            {"term", text_or_unknown(study.term)}};
}

}  // namespace

Record measured_record(const GemmMeasured& measured) {
    Record out;
    if (measured.ablation) out.emplace_back("ablation", ablation_record(*measured.ablation));
    return out;
}

}  // namespace rooftile
