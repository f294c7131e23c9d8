#include "rooftile/chain/hardware.hpp"

#include "rooftile/chain/problem.hpp"
#include "rooftile/core/warp.hpp"
#include "rooftile/machine/reader.hpp"

namespace rooftile {

ChainHardware chain_hardware(const Machine& machine, Type type, std::vector<std::string>& unknown) {
    using OpsPerCycle = Quantity<Dimension{.cycle = -1}>;
    const std::string_view input = chain_type_name(type);
    const MachineReader optional(machine, matrix_or_boost_clock(machine, input));
    ChainHardware hw{};
    static_cast<MatrixHardware&>(hw) = matrix_hardware(machine, input, unknown);
    hw.exponentials_per_cycle = optional.number<OpsPerCycle>("rate.mufu", Per::sm);
    hw.issue_lanes = optional.count("sm.partitions") * warp_threads;
    hw.product_stretch = known_or(optional.number<Ratio>("wgmma.stretch"), 1);
    hw.shared_bandwidth = optional.number<BytesPerCycle>("shared.bandwidth", Per::sm);
    hw.l2_port = optional.bandwidth_per_sm("l2.port");
    hw.l2_partitions = known_or(optional.count("l2.partitions"), 1);
    hw.dram_copy_bandwidth = optional.bandwidth(optional.first_known({"dram.sustained_copy", "dram.sustained_read", "dram.bandwidth"}));
    hw.dram_overlap_exponent = hw.family == "wgmma" ? optional.number<Ratio>("wgmma.overlap_exponent") : unknown_number;
    hw.sms_per_gpc = optional.count("sm.per_gpc");
    hw.sm_skew = known_or(optional.number<Ratio>("sm.skew"), 0);
    return hw;
}

}  // namespace rooftile
