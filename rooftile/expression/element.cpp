#include "rooftile/expression/element.hpp"

#include <algorithm>
#include <cassert>

namespace rooftile {
namespace {

struct ElementRow {
    Element element;
    std::string_view name;
    int bytes;
};
constexpr ElementRow elements[] = {{Element::boolean, "bool", 1},
                                   {Element::int64, "int64", 8},
                                   {Element::fp16, "fp16", 2},
                                   {Element::bf16, "bf16", 2},
                                   {Element::fp32, "fp32", 4}};

constexpr int kind_of(Element element) {
    return is_floating(element) ? 2 : element == Element::int64 ? 1 : 0;
}

}  // namespace

int bytes_of(Element element) { return elements[int(element)].bytes; }
std::string_view name_of(Element element) { return elements[int(element)].name; }

std::optional<Element> element_by_name(std::string_view name) {
    for (const ElementRow& row : elements)
        if (row.name == name) return row.element;
    return std::nullopt;
}

Element promoted(Element x, Element y) {
    if (x == y) return x;
    if (kind_of(x) != kind_of(y)) return kind_of(x) > kind_of(y) ? x : y;
    return Element::fp32;  // two floating types that differ
}

void Promotion::add(Element element, Rank rank) {
    std::optional<Element>& held = ranks_[int(rank)];
    held = held ? promoted(*held, element) : element;
}

Element Promotion::result() const {
    std::optional<Element> result;
    for (Rank rank : {Rank::tensor, Rank::scalar, Rank::number}) {
        const std::optional<Element>& lower = ranks_[int(rank)];
        if (!lower) continue;
        if (!result || kind_of(*lower) > kind_of(*result)) result = lower;
    }
    assert(result && "a mixture of nothing");
    return *result;
}

}  // namespace rooftile
