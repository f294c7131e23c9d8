// A planned kernel on the caller's own device memory and stream. Needs a Hopper GPU.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "rooftile/error.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/machine/live.hpp"

int main() try {
    using namespace rooftile;
    const int m = 1024, n = 512, k = 256;
    Context context(0);  // the primary context, as PyTorch and the runtime API use it
    const auto result =
        derive(live_machine().machine, gemm_problem(m, n, k, Type::bf16), {.buildable_only = true});
    if (const auto* why = std::get_if<Infeasible>(&result)) throw Error(ExitCode::no_plan, why->message);
    const Kernel kernel = compile(std::get<Plans>(result).plans.front());

    const std::vector<std::uint16_t> ones(std::size_t(m) * k, 0x3f80), halves(std::size_t(n) * k, 0x3f00);
    std::vector<std::uint16_t> c(std::size_t(m) * n);
    DeviceBuffer device_a(ones.size() * 2), device_b(halves.size() * 2), device_c(c.size() * 2);
    StreamOwner stream;
    copy_to_device(device_a.address(), ones.data(), ones.size() * 2);
    copy_to_device(device_b.address(), halves.data(), halves.size() * 2);
    kernel.launch(stream, device_a.data(), device_b.data(), device_c.data());
    stream.synchronize();
    copy_to_host(c.data(), device_c.address(), c.size() * 2);
    std::printf("c[0] = 0x%04x, expected 0x4300 (256 x 1 x 0.5 = 128)\n", c[0]);
    return c[0] == 0x4300 ? 0 : 3;
} catch (const rooftile::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
}
