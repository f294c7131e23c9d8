// Bytes a cycle is not bytes.
// refused: conversion from .* to non-scalar type
#include "rooftile/units.hpp"

using namespace rooftile;

#ifdef ROOFTILE_CONTROL
Bytes bytes = Bytes(128) / Cycles(4) * Cycles(2);
#else
Bytes bytes = Bytes(128) / Cycles(4);
#endif
