// Where numbers lie along an axis, and which of them are written there.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rooftile/picture/picture.hpp"

namespace rooftile {

/// From 0 to 1 along the axis.
double place_on(const PictureAxis& axis, double value);
/// Those of the axis, or round numbers; of names one in the middle of each.
std::vector<std::pair<double, std::string>> ticks_of(const PictureAxis& axis);
/// "4096", "1 Mi": a power of two.
std::string power_text(int exponent);
/// An axis of powers of two around values from 1 on, each power written.
PictureAxis octave_axis(std::string title, double least, double most);

}  // namespace rooftile
