#include "rooftile/runtime/kernel_json.hpp"

#include <nlohmann/json.hpp>

#include "rooftile/core/operation.hpp"
#include "rooftile/runtime/kernel_codes.hpp"

namespace rooftile {
namespace {

Json code_json(const KernelCode& code) {
    const EntryInfo& entry = code.entry;
    return {{"name", code.name},
            {"lowered_name", code.lowered_name},
            {"registers", entry.registers},
            {"spill_store_bytes", entry.spill_store_bytes},
            {"spill_load_bytes", entry.spill_load_bytes},
            {"stack_bytes", entry.stack_bytes},
            {"local_bytes", entry.local_bytes},
            {"cubin_bytes", code.cubin.size()},
            {"hash", code.hash}};
}

}  // namespace

Json kernel_json(const CompiledKernel& kernel) {
    const Operation& operation = *kernel.plan().operation;
    const KernelCode& code = kernel.code();
    const EntryInfo& entry = code.entry;
    Json kernels = Json::array();
    for (const KernelCode& one : codes_of(kernel)) kernels.push_back(code_json(one));
    return {{"rank", kernel.plan().rank},
                {"config", to_json(operation.config_record(kernel.plan()))},
                {"resources", to_json(operation.resources_record(kernel.plan()))},
                {"name", code.name},
                {"lowered_name", code.lowered_name},
                {"arch", code.arch},
                {"registers", entry.registers},
                {"spill_store_bytes", entry.spill_store_bytes},
                {"spill_load_bytes", entry.spill_load_bytes},
                {"stack_bytes", entry.stack_bytes},
                {"local_bytes", entry.local_bytes},
                {"barriers", entry.barriers},
                {"shared_bytes", kernel.shared_bytes()},
                {"cubin_bytes", code.cubin.size()},
                {"compile_seconds", code.compile_seconds},
                {"from_cache", code.from_cache},
                {"kernels", std::move(kernels)}};
}

}  // namespace rooftile
