// The table of GEMM's knobs, knobs.def, as types: see rooftile/core/knob.hpp.
#pragma once

#include "rooftile/core/knob.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/tiled/knob_names.hpp"

namespace rooftile {

/// "none", or letters of the operands: "bc". Documents write nothing for none.
template <>
struct KnobType<EvictFirst> {
    static std::string text(EvictFirst operands);
    static Value recorded(EvictFirst operands);
    static EvictFirst read(std::string_view name, std::string_view text, const KnobRange&);
    static std::optional<EvictFirst> of(const Value& value);
    static bool can_be_fixed(EvictFirst, const KnobRange&) { return true; }
};

/// Kernels that have it: all, sm90_gemm alone, those that cut K into pieces, or those that may be launched as programmatic dependents.
enum class KnobOwner : std::uint8_t { every_kernels, hoppers, cutters, dependents };
bool has_knobs_of(const GemmKernel* kernel, KnobOwner owner);

template <class T>
struct GemmKnob : Knob<GemmConfig, GemmRequest, T> {
    KnobOwner owner;
};

struct GemmKnobs {
    using Config = GemmConfig;
    using Request = GemmRequest;

    template <class Visit>
    static void each(Visit visit) {
#define ROOFTILE_KNOB(TYPE, NAME, PRESET, OWNER, RECORDED, FIELD, FORM, RANGE, MEANING) \
        visit(GemmKnob<TYPE>{{{#NAME, FIELD, FORM, MEANING, RANGE, Recorded::RECORDED}, &GemmConfig::NAME, &GemmRequest::NAME}, KnobOwner::OWNER});
#include "rooftile/gemm/knobs.def"
#undef ROOFTILE_KNOB
    }
};

/// A request that fixes the whole configuration, its kernel included.
GemmRequest fixed_to(const GemmConfig& config);
/// What it fixes, all else at presets.
GemmConfig config_of(const GemmRequest& request);
/// The configuration that config_record() wrote. Throws RequestError that names the key.
GemmConfig config_of(const Record& record);

}  // namespace rooftile
