// Links the device library without a CUDA header or library of its own.
#include <cstdio>

#include "rooftile/embedded.hpp"

int main() {
    std::printf("%zu kernel files\n", rooftile::embedded_kernels().size());
    return rooftile::embedded_kernels().empty() ? 1 : 0;
}
