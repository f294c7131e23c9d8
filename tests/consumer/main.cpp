// Uses what is compiled into rooftile_model: the embedded machine files.
#include <cstdio>

#include "rooftile/embedded.hpp"
#include "rooftile/units.hpp"

int main() {
    const auto rate = rooftile::Bytes(128) / rooftile::Cycles(4);
    std::size_t bytes = 0;
    for (const auto& file : rooftile::embedded_machines()) bytes += file.text.size();
    std::printf("%zu machine files, %zu bytes\n", rooftile::embedded_machines().size(), bytes);
    return rate.value == 32 && bytes > 0 ? 0 : 1;
}
