// Products of which an operand is taken from an image: an operation of products plans and compiles them, and who filters
// images asks for them as a facet. Neither includes the other.
#pragma once

#include "rooftile/core/operation.hpp"
#include "rooftile/tiled/image_operand.hpp"

namespace rooftile {

/// Of an operation of products.
class ProductsOfImages : public Facet {
  public:
    /// The operation's problem: what `given` says, whose m and k are the image's rows and columns, with A taken from the image; B that is n-major has filters
    /// that lie [channels][taps][n], whose taps are met in reverse. Of an A that is m-major B is taken from it, and k and n are its rows and columns. Throws
    /// RequestError.
    virtual Problem problem(const Given& given, const ImageOperand& image) const = 0;
    /// Of a plan: whether its kernel gathers pixels piece by piece, so that a step is of as many taps as it has room for; else the copy engine finds
    /// them, of one tap a step.
    virtual bool gathers(const Plan& plan) const = 0;
};

}  // namespace rooftile
