#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/knobs.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

bool EvictFirst::*operand(char letter) {
    return letter == 'a' ? &EvictFirst::a : letter == 'b' ? &EvictFirst::b : letter == 'c' ? &EvictFirst::c : nullptr;
}

/// Empty where it is no letters of a, b and c, each once.
std::optional<EvictFirst> of_letters(std::string_view text) {
    EvictFirst operands;
    for (const char letter : text) {
        const auto member = operand(letter);
        if (!member || operands.*member) return std::nullopt;
        operands.*member = true;
    }
    return operands;
}

std::string letters_of(EvictFirst operands) {
    std::string letters;
    for (const char letter : {'a', 'b', 'c'})
        if (operands.*operand(letter)) letters += letter;
    return letters;
}

}  // namespace

std::string_view name_of(Schedule schedule) { return knob_names(schedule)[std::size_t(schedule)]; }
std::string_view name_of(Order order) { return knob_names(order)[std::size_t(order)]; }

std::string KnobType<EvictFirst>::text(EvictFirst operands) { return operands == EvictFirst{} ? "none" : letters_of(operands); }
Value KnobType<EvictFirst>::recorded(EvictFirst operands) { return letters_of(operands); }
std::optional<EvictFirst> KnobType<EvictFirst>::of(const Value& value) {
    const auto* text = std::get_if<std::string>(&value.content());
    return text ? of_letters(*text) : std::nullopt;
}
EvictFirst KnobType<EvictFirst>::read(std::string_view name, std::string_view text, const KnobRange&) {
    if (text == "none") return {};
    if (const auto operands = of_letters(text); operands && !text.empty()) return *operands;
    throw RequestError(fmt::format("{} {}: accepted is none, or letters of a, b and c, each once, as in bc", name, printable(text)));
}

bool has_knobs_of(const GemmKernel* kernel, KnobOwner owner) {
    const std::string_view name = name_of(kernel);
    return owner == KnobOwner::every_kernels || name == "sm90_gemm" || (owner != KnobOwner::hoppers && name == "sm80_few_gemm");
}

GemmRequest fixed_to(const GemmConfig& c) {
    GemmRequest r;
    r.kernel = c.kernel;
    GemmKnobs::each([&]<class T>(const GemmKnob<T>& knob) {
        if (has_knobs_of(c.kernel, knob.owner) && KnobType<T>::can_be_fixed(c.*knob.value, knob.range)) r.*knob.fixed = c.*knob.value;
    });
    if (c.order != Order::grouped && c.order != Order::serpentine) r.group.reset();
    if (!c.reverse) r.reverse.reset();  // it is off where nobody asks
    r.top = 1;
    return r;
}

GemmConfig config_of(const GemmRequest& request) {
    GemmConfig config{.kernel = request.kernel};
    GemmKnobs::each([&](const auto& knob) { config.*knob.value = (request.*knob.fixed).value_or(knob.preset()); });
    return config;
}

GemmConfig config_of(const Record& record) {
    GemmConfig config;
    const std::string kernel = find_as<std::string>(record, "kernel").value_or("");
    config.kernel = find_gemm_kernel(kernel);
    if (!config.kernel) throw RequestError(fmt::format("config.kernel is \"{}\", which is no name known here", printable(kernel)));
    knobs_of<GemmKnobs>(record, config);
    return config;
}

}  // namespace rooftile
