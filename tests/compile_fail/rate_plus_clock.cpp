// Bytes a second and cycles a second are both "per second", and still no sum.
// refused: no match for .operator\+.
#include "rooftile/units.hpp"

using namespace rooftile;

#ifdef ROOFTILE_CONTROL
auto sum = Bandwidth(1) + Bandwidth(2);
#else
auto sum = Bandwidth(1) + Clock(2);
#endif
