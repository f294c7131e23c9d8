// A cycle is no byte.
// refused: no match for .operator\+.
#include "rooftile/units.hpp"

using namespace rooftile;

#ifdef ROOFTILE_CONTROL
auto sum = Bytes(1) + Bytes(2);
#else
auto sum = Bytes(1) + Cycles(2);
#endif
