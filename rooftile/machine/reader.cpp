#include "rooftile/machine/reader.hpp"

#include <algorithm>

#include "rooftile/machine/query.hpp"

namespace rooftile {

double MachineReader::cycles(std::string_view key) const {
    return noted(key, latency_cycles(machine_, key, clock_));
}

bool MachineReader::in_seconds(std::string_view key) const {
    const Fact* fact = machine_.find(key);
    return fact && fact->as<Seconds>().has_value();
}

double MachineReader::bandwidth(std::string_view key) const {
    return noted(key, rooftile::bandwidth(machine_, key, clock_));
}

double MachineReader::bandwidth_per_sm(std::string_view key) const {
    return noted(key, bytes_per_cycle_per_sm(machine_, key, clock_));
}

double MachineReader::flops_per_cycle(std::string_view rate) const {
    return noted(rate, flops_per_cycle_per_sm(machine_, rate, clock_));
}

std::string_view MachineReader::first_known(std::initializer_list<std::string_view> keys) const {
    const auto known = std::find_if(keys.begin(), keys.end(), [&](std::string_view key) { return machine_.find(key); });
    return known == keys.end() ? *(keys.end() - 1) : *known;
}

void MachineReader::note(std::string_view key) const {
    // A number can be known and still not be convertible: then what is missing is the clock or the SMs.
    if (!unknown_ || machine_.find(key)) return;
    if (std::find(unknown_->begin(), unknown_->end(), key) == unknown_->end()) unknown_->emplace_back(key);
}

}  // namespace rooftile
