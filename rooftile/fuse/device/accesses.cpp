#include "rooftile/fuse/device/accesses.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "rooftile/fuse/device/kernel.hpp"

namespace rooftile {
namespace {

/// Where tensor `index` would lie, to find it again among the arguments; aligned as any may be planned.
const void* marked(std::uint64_t kind, std::size_t index) {
    return reinterpret_cast<const void*>(kind << 56 | std::uint64_t(index + 1) << 12);
}

/// The kernel's first argument, word by word: a tensor's address, or what stands there as it is.
List tensors_list(const FusePlan& plan) {
    constexpr std::uint64_t input = 0x5a, output = 0xa5;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (std::size_t i = 0; i < plan.problem.inputs.size(); ++i) inputs.push_back(marked(input, i));
    for (std::size_t i = 0; i < plan.problem.outputs.size(); ++i)
        outputs.push_back(const_cast<void*>(marked(output, i)));
    List words;
    for (const std::uint64_t word : fuse_tensors(plan, inputs, outputs)) {
        const auto address = reinterpret_cast<const void*>(word);
        const auto in = std::find(inputs.begin(), inputs.end(), address);
        const auto out = std::find(outputs.begin(), outputs.end(), address);
        if (in != inputs.end()) {
            const int node = plan.problem.inputs[std::size_t(in - inputs.begin())];
            words.push_back(Record{{"input", plan.problem.nodes[std::size_t(node)].name}});
        } else if (out != outputs.end()) {
            words.push_back(Record{{"output", plan.problem.outputs[std::size_t(out - outputs.begin())].name}});
        } else {
            words.push_back(Record{{"word", fmt::format("{:016x}", word)}});
        }
    }
    return words;
}

std::string sizes_hex(const FusePlan& plan) {
    const fuse::FuseSizes sizes = fuse_sizes(plan);
    unsigned char bytes[sizeof sizes];
    std::memcpy(bytes, &sizes, sizeof sizes);
    static_assert(std::has_unique_object_representations_v<fuse::FuseSizes>, "no bytes that nobody set");
    std::string hex;
    for (const unsigned char byte : bytes) hex += fmt::format("{:02x}", byte);
    return hex;
}

}  // namespace

Accesses accesses_of(const std::string& ptx) {
    Accesses count;
    for (std::size_t at = 0; at < ptx.size();) {
        const std::size_t end = std::min(ptx.find('\n', at), ptx.size());
        const std::string_view line(ptx.data() + at, end - at);
        const bool wide = line.find(".v4.u32") != line.npos || line.find(".v4.b32") != line.npos
                          || line.find(".v4.f32") != line.npos || line.find(".v2.u64") != line.npos
                          || line.find(".v2.b64") != line.npos;
        // Of the memory model, too: ld.relaxed.cta.global.
        if (line.find("ld.") != line.npos && line.find(".global") != line.npos) {
            ++count.loads;
            count.loads_16 += wide;
        } else if (line.find("st.global") != line.npos) {
            ++count.stores;
            count.stores_16 += wide;
        }
        at = end + 1;
    }
    return count;
}

Record launch_record(const FusePlan& plan, const std::string& entry) {
    const Launch launch = fuse_launch(plan, 1);
    FusePlan unbounded = plan;  // in one piece each: as many CTAs as there is work for
    unbounded.config.persistent = false;
    return {
        {"entry", entry},
        {"block", launch.block_x},
        {"cluster", launch.cluster_x},
        {"shared_bytes", launch.shared_bytes},
        {"ctas_of_work", fuse_grid(unbounded, 0)},
        {"persistent", plan.config.persistent},
        {"ctas_per_sm", plan.config.ctas_per_sm},
        {"programmatic", launch.programmatic_dependent},
        {"tensors", tensors_list(plan)},
        {"sizes", sizes_hex(plan)},
        {"cooperative", launch.cooperative},
        {"ctas_together", plan.config.cluster},
        {"row_splits", plan.config.row_splits},
        {"rounds_even", false},  // of schema 1: no grid is cut so any more
        {"workspace_bytes", std::int64_t(fuse_workspace_bytes(plan, 0))},
        {"workspace_bytes_per_cta", std::int64_t(fuse_workspace_bytes(plan, 1) - fuse_workspace_bytes(plan, 0))},
        {"workspace", takes_workspace(plan) ? Value(std::int64_t(offsetof(fuse::FuseSizes, workspace))) : Value()}};
}

}  // namespace rooftile
