// A bare number has no unit: it must be given one by name.
// refused: could not convert
#include "rooftile/units.hpp"

using namespace rooftile;

Bytes doubled(Bytes b) { return b * 2; }

#ifdef ROOFTILE_CONTROL
auto bytes = doubled(Bytes(128));
#else
auto bytes = doubled(128);
#endif
