// The table of attention's knobs, knobs.def, as types: see rooftile/core/knob.hpp.
#pragma once

#include "rooftile/attention/plan.hpp"
#include "rooftile/core/knob.hpp"
#include "rooftile/tiled/knob_names.hpp"

namespace rooftile {

struct AttentionKnobs {
    using Config = AttentionConfig;
    using Request = AttentionRequest;

    template <class Visit>
    static void each(Visit visit) {
#define ROOFTILE_KNOB(TYPE, NAME, PRESET, RECORDED, FIELD, FORM, RANGE, MEANING) \
        visit(Knob<Config, Request, TYPE>{{#NAME, FIELD, FORM, MEANING, RANGE, Recorded::RECORDED}, &Config::NAME, &Request::NAME});
#include "rooftile/attention/knobs.def"
#undef ROOFTILE_KNOB
    }
};

}  // namespace rooftile
