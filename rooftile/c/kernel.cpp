#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "rooftile/c/error.hpp"
#include "rooftile/c/plans.hpp"
#include "rooftile/core/first_buildable.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/runtime/driver_table.hpp"
#include "rooftile/runtime/kernel_json.hpp"
#include "rooftile/runtime/library.hpp"

using namespace rooftile;

struct rooftile_kernel {
    explicit rooftile_kernel(CompiledKernel compiled)
        : kernel(std::move(compiled)), tensors(kernel.plan().operation->tensors(kernel.plan().problem)) {}

    CompiledKernel kernel;
    c::TensorViews tensors;
};

namespace {

/// Of the context that is current; -1: none is.
int device_of_context() {
    const DriverTable* driver = driver_table_if_usable();
    CUdevice device = -1;
    return driver && driver->cuCtxGetDevice(&device) == CUDA_SUCCESS ? device : -1;
}

/// Makes the primary context of `device` current as long as it lives, where the current one is not of that device.
class OnDevice {
  public:
    explicit OnDevice(int device) {
        if (device >= 0 && device_of_context() != device) context_.emplace(device);
    }

  private:
    std::optional<Context> context_;
};

}  // namespace

extern "C" {

int rooftile_add_cuda_folder(const char* folder) {
    return c::guarded([&] { add_library_root(folder); });
}

int rooftile_compile(const rooftile_plans* plans, int rank, rooftile_kernel** kernel) {
    return c::guarded([&] {
        if (rank == 0) {
            std::vector<std::string> refused;  // the kernel's plan says which one it is
            *kernel = new rooftile_kernel(compile_first(plans->set, refused));
            return;
        }
        const Plan& plan = c::plan_of(*plans, rank);
        if (!plan.buildable)
            throw RequestError(fmt::format("plan {} cannot be built: {}", plan.rank, plan.why_not));
        *kernel = new rooftile_kernel(compile(plan));
    });
}

void rooftile_free_kernel(rooftile_kernel* kernel) { delete kernel; }

int rooftile_kernel_at(const rooftile_kernel* kernel, const char* field, int64_t value, rooftile_kernel** at) {
    return c::guarded([&] {
        const Operation& operation = *kernel->kernel.plan().operation;
        std::optional<CompiledKernel> other = on_device(operation).at(kernel->kernel, field ? field : "", value);
        *at = other ? new rooftile_kernel(std::move(*other)) : nullptr;
    });
}

int rooftile_kernel_tensor_count(const rooftile_kernel* kernel) { return kernel->tensors.count(); }
const rooftile_tensor* rooftile_kernel_tensor_at(const rooftile_kernel* kernel, int index) {
    return kernel->tensors.at(index);
}

int rooftile_kernel_json(const rooftile_kernel* kernel, char** json) {
    return c::guarded([&] {
        Json out = kernel_json(kernel->kernel);
        out["hash"] = kernel->kernel.code().hash;
        *json = c::text_of(json_text(out, -1));
    });
}

int rooftile_load(const rooftile_kernel* kernel, int device) {
    return c::guarded([&] {
        const OnDevice here(device);
        kernel->kernel.load();
    });
}

int rooftile_workspace_bytes(const rooftile_kernel* kernel, int device, size_t* bytes) {
    return c::guarded([&] {
        const OnDevice here(device);
        *bytes = kernel->kernel.workspace_bytes();
    });
}

int rooftile_allocate(int device, size_t bytes, void** memory) {
    return c::guarded([&] {
        const OnDevice here(device);
        *memory = reinterpret_cast<void*>(DeviceBuffer(bytes).release());
    });
}

int rooftile_free_memory(int device, void* memory) {
    return c::guarded([&] {
        const OnDevice here(device);
        DeviceBuffer::owning(reinterpret_cast<DevicePointer>(memory));
    });
}

int rooftile_is_capturing(int device, void* stream, int* capturing) {
    return c::guarded([&] {
        const OnDevice here(device);
        *capturing = is_capturing(static_cast<Stream>(stream));
    });
}

int rooftile_zero(int device, void* stream, void* memory, size_t bytes) {
    return c::guarded([&] {
        const OnDevice here(device);
        fill_bytes(reinterpret_cast<DevicePointer>(memory), 0, bytes, static_cast<Stream>(stream));
    });
}

int rooftile_launch(const rooftile_kernel* kernel, int device, void* stream, void* const* tensors, int count,
                    void* workspace) {
    return c::guarded([&] {
        if (count < 0) throw RequestError(fmt::format("{} tensors are given", count));
        const OnDevice here(device);
        kernel->kernel.launch(static_cast<Stream>(stream), {tensors, std::size_t(count)}, workspace);
    });
}

}  // extern "C"
