#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "rooftile/c/error.hpp"
#include "rooftile/c/on_device.hpp"
#include "rooftile/c/plans.hpp"
#include "rooftile/core/first_buildable.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/runtime/kernel_json.hpp"
#include "rooftile/runtime/library.hpp"
#include "rooftile/tune/tune.hpp"

using namespace rooftile;

struct rooftile_kernel {
    explicit rooftile_kernel(CompiledKernel compiled, std::optional<c::Nothing> of = {})
        : kernel(std::move(compiled)),
          nothing(std::move(of)),
          tensors(nothing ? nothing->tensors : kernel.plan().operation->tensors(kernel.plan().problem)) {}

    bool is_launched() const { return !nothing || nothing->is_launched; }
    /// Zeros that stand in for tensors without elements, before the kernel's own workspace.
    std::size_t zero_bytes() const { return nothing ? (nothing->zero_bytes + alignment - 1) / alignment * alignment : 0; }

    CompiledKernel kernel;
    std::optional<c::Nothing> nothing;
    c::TensorViews tensors;

  private:
    static constexpr std::size_t alignment = 256;  // as allocations are
};

extern "C" {

int rooftile_add_cuda_folder(const char* folder) {
    return c::guarded([&] {
        c::given(folder, "folder");
        add_library_root(folder);
    });
}

int rooftile_compile(const rooftile_plans* plans, int rank, rooftile_kernel** kernel) {
    return c::guarded([&] {
        rooftile_kernel*& made = c::given(kernel, "kernel");
        const rooftile_plans& given = c::given(plans, "plans");
        if (rank == 0) {
            std::vector<std::string> refused;  // the kernel's plan says which one it is
            made = new rooftile_kernel(compile_first(given.set, refused), given.nothing);
            return;
        }
        const Plan& plan = c::plan_of(given, rank);
        if (!plan.buildable)
            throw RequestError(fmt::format("plan {} cannot be built: {}", plan.rank, plan.why_not));
        made = new rooftile_kernel(compile(plan), given.nothing);
    });
}

void rooftile_free_kernel(rooftile_kernel* kernel) { delete kernel; }

int rooftile_kernel_at(const rooftile_kernel* kernel, const char* field, int64_t value, rooftile_kernel** at) {
    return c::guarded([&] {
        rooftile_kernel*& made = c::given(at, "at");
        const CompiledKernel& own = c::given(kernel, "kernel").kernel;
        c::given(field, "field");
        std::optional<CompiledKernel> other;
        if (value > 0 && !kernel->nothing) other = on_device(*own.plan().operation).at(own, field, value);
        made = other ? new rooftile_kernel(std::move(*other)) : nullptr;
    });
}

int rooftile_kernel_tensor_count(const rooftile_kernel* kernel) { return kernel ? kernel->tensors.count() : 0; }
const rooftile_tensor* rooftile_kernel_tensor_at(const rooftile_kernel* kernel, int index) {
    return kernel ? kernel->tensors.at(index) : nullptr;
}

int rooftile_kernel_json(const rooftile_kernel* kernel, char** json) {
    return c::guarded([&] {
        char*& made = c::given(json, "json");
        const CompiledKernel& own = c::given(kernel, "kernel").kernel;
        Json out = kernel_json(own);
        out["hash"] = own.code().hash;
        made = c::text_of(json_text(out, -1));
    });
}

int rooftile_load(const rooftile_kernel* kernel, int device) {
    return c::guarded([&] {
        const CompiledKernel& own = c::given(kernel, "kernel").kernel;
        if (!kernel->is_launched()) return;
        const c::OnDevice here(device);
        own.load();
    });
}

int rooftile_workspace_bytes(const rooftile_kernel* kernel, int device, size_t* bytes) {
    return c::guarded([&] {
        size_t& needed = c::given(bytes, "bytes");
        const CompiledKernel& own = c::given(kernel, "kernel").kernel;
        if (!kernel->is_launched()) return void(needed = 0);
        const c::OnDevice here(device);
        needed = kernel->zero_bytes() + own.workspace_bytes();
    });
}

int rooftile_allocate(int device, size_t bytes, void** memory) {
    return c::guarded([&] {
        void*& made = c::given(memory, "memory");
        const c::OnDevice here(device);
        made = reinterpret_cast<void*>(DeviceBuffer(bytes).release());
    });
}

int rooftile_free_memory(int device, void* memory) {
    return c::guarded([&] {
        const c::OnDevice here(device);
        DeviceBuffer::owning(reinterpret_cast<DevicePointer>(memory));
    });
}

int rooftile_is_capturing(int device, void* stream, int* capturing) {
    return c::guarded([&] {
        int& found = c::given(capturing, "capturing");
        const c::OnDevice here(device);
        found = is_capturing(static_cast<Stream>(stream));
    });
}

int rooftile_zero(int device, void* stream, void* memory, size_t bytes) {
    return c::guarded([&] {
        if (bytes > 0 && !memory) throw RequestError("memory is null");
        const c::OnDevice here(device);
        fill_bytes(reinterpret_cast<DevicePointer>(memory), 0, bytes, static_cast<Stream>(stream));
    });
}

int rooftile_launch(const rooftile_kernel* kernel, int device, void* stream, void* const* tensors, int count,
                    void* workspace) {
    return c::guarded([&] {
        if (count < 0) throw RequestError(fmt::format("{} tensors are given", count));
        if (count > 0 && !tensors) throw RequestError("tensors is null");
        const CompiledKernel& own = c::given(kernel, "kernel").kernel;
        if (kernel->nothing && count != kernel->tensors.count())
            throw RequestError(fmt::format("{} tensors are given; the plan has {}", count, kernel->tensors.count()));
        if (!kernel->is_launched()) return;
        const c::OnDevice here(device);
        if (!kernel->nothing) return own.launch(static_cast<Stream>(stream), {tensors, std::size_t(count)}, workspace);
        std::vector<void*> all(tensors, tensors + count);
        if (kernel->zero_bytes() > 0 && !workspace) throw RequestError("the workspace is null; zeros in it replace tensors without elements");
        for (std::size_t i = 0; i < all.size(); ++i)
            if (kernel->nothing->zeros[i]) all[i] = workspace;
        own.launch(static_cast<Stream>(stream), all, own.workspace_bytes() > 0 ? static_cast<char*>(workspace) + kernel->zero_bytes() : nullptr);
    });
}

int rooftile_tune(const rooftile_plans* plans, int count, int device, void* stream, void* const* tensors, int tensor_count, int* rank) {
    return c::guarded([&] {
        int& chosen = c::given(rank, "rank");
        const rooftile_plans& own = c::given(plans, "plans");
        if (count != 0 && (count < 2 || count > most_tuned))
            throw RequestError(fmt::format("count is {}; accepted are 2 to {} plans to time, and 0", count, most_tuned));
        std::span<void* const> all;
        if (count > 0) {
            if (tensor_count != own.tensors->count())
                throw RequestError(fmt::format("{} tensors are given; the plan has {}", tensor_count, own.tensors->count()));
            all = {&c::given(tensors, "tensors"), std::size_t(tensor_count)};
        }
        if (own.nothing) return void(chosen = first_buildable(own.set).rank);  // nothing to time
        const c::OnDevice here(device);
        const auto place = tuned_place(TuneStore(cache_settings()), own.set, count, current_device(), static_cast<Stream>(stream), all);
        chosen = place ? int(*place) + 1 : 0;
    });
}

}  // extern "C"
