// What a launch through rooftile.h costs on the host beyond cuLaunchKernelEx: launch_overhead REQUEST.json, on a GPU.
// The driver's function is replaced in the library's table by one that counts the time inside it. Launches go in groups
// far shorter than the driver's queue, so that none waits for the GPU.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "rooftile/rooftile.h"
#include "rooftile/runtime/driver_table.hpp"

namespace {

using Clock = std::chrono::steady_clock;
Clock::duration inside{};
decltype(&cuLaunchKernelEx) real_launch = nullptr;

CUresult CUDAAPI timed_launch(const CUlaunchConfig* config, CUfunction function, void** arguments,
                              void** extra) {
    const auto start = Clock::now();
    const CUresult result = real_launch(config, function, arguments, extra);
    inside += Clock::now() - start;
    return result;
}

int checked(int status) {
    if (status == ROOFTILE_DONE) return status;
    std::fprintf(stderr, "%s\n", rooftile_error_message());
    std::exit(status);
}

double ns(Clock::duration time) { return std::chrono::duration<double, std::nano>(time).count(); }

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(values.size() / 2), values.end());
    return values[values.size() / 2];
}

}  // namespace

int main(int count, char** arguments) try {
    if (count != 2) return std::fprintf(stderr, "usage: launch_overhead REQUEST.json\n"), 2;
    std::stringstream request;
    request << std::ifstream(arguments[1]).rdbuf();
    rooftile_plans* plans = nullptr;
    rooftile_kernel* kernel = nullptr;
    checked(rooftile_plan(request.str().c_str(), &plans));
    checked(rooftile_compile(plans, 0, &kernel));
    const rooftile::Context context(0);
    std::vector<void*> tensors;
    for (int i = 0; i < rooftile_tensor_count(plans); ++i) {
        const rooftile_tensor* tensor = rooftile_tensor_at(plans, i);
        int64_t last = 0;
        for (int axis = 0; axis < tensor->rank; ++axis)
            last += (tensor->extents[axis] - 1) * tensor->strides[axis];
        checked(rooftile_allocate(-1, std::size_t((last + 1) * tensor->element_bits / 8),
                                  &tensors.emplace_back()));
    }
    std::size_t bytes = 0;
    void* workspace = nullptr;
    checked(rooftile_workspace_bytes(kernel, -1, &bytes));
    if (bytes > 0)
        checked(rooftile_allocate(-1, bytes, &workspace)),
            checked(rooftile_zero(-1, nullptr, workspace, bytes));
    const rooftile::StreamOwner stream;

    auto& table = const_cast<rooftile::DriverTable&>(rooftile::driver_table());
    real_launch = table.cuLaunchKernelEx;
    constexpr int groups = 201, launches = 100;
    // Times inside include one reading of the clock, which is taken off.
    auto start = Clock::now();
    for (int i = 0; i < 100000; ++i) (void)Clock::now();
    const double reading = ns(Clock::now() - start) / 100000;
    for (const int device : {-1, 0}) {
        std::vector<double> all, driver, untimed;
        for (int group = 0; group < 2 * groups; ++group) {
            const bool timed = group % 2;
            table.cuLaunchKernelEx = timed ? timed_launch : real_launch;
            inside = {};
            start = Clock::now();
            for (int i = 0; i < launches; ++i)
                checked(rooftile_launch(kernel, device, stream.get(), tensors.data(), int(tensors.size()),
                                        workspace));
            const double total = ns(Clock::now() - start) / launches;
            stream.synchronize();
            if (!timed) untimed.push_back(total);
            else all.push_back(total - 2 * reading), driver.push_back(ns(inside) / launches - reading);
        }
        std::printf("{\"device\": %d, \"launch_ns\": %.0f, \"in_driver_ns\": %.0f, \"beyond_ns\": %.0f}\n",
                    device, median(untimed), median(driver), median(untimed) - median(driver));
    }
    table.cuLaunchKernelEx = real_launch;
    for (void* tensor : tensors) rooftile_free_memory(-1, tensor);
    if (workspace) rooftile_free_memory(-1, workspace);
    rooftile_free_kernel(kernel);
    rooftile_free_plans(plans);
} catch (const rooftile::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return int(error.code());
}
