// No order between bytes and FLOP.
// refused: no match for .operator<.
#include "rooftile/units.hpp"

using namespace rooftile;

#ifdef ROOFTILE_CONTROL
bool less = Bytes(1) < Bytes(2);
#else
bool less = Bytes(1) < Flops(2);
#endif
