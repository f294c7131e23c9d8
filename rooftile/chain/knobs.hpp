// The table of the knobs of form on_chip, knobs.def, as types: see rooftile/core/knob.hpp.
#pragma once

#include "rooftile/chain/plan.hpp"
#include "rooftile/core/knob.hpp"
#include "rooftile/tiled/knob_names.hpp"

namespace rooftile {

struct ChainKnobs {
    using Config = ChainTile;
    using Request = ChainRequest;

    template <class Visit>
    static void each(Visit visit) {
#define ROOFTILE_KNOB(TYPE, NAME, PRESET, FIELD, FORM, RANGE, MEANING) \
        visit(Knob<Config, Request, TYPE>{{#NAME, FIELD, FORM, MEANING, RANGE, Recorded::always}, &Config::NAME, &Request::NAME});
#include "rooftile/chain/knobs.def"
#undef ROOFTILE_KNOB
    }
};

}  // namespace rooftile
