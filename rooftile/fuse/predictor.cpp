#include "rooftile/fuse/predictor.hpp"

#include "rooftile/fuse/search_rings.hpp"

namespace rooftile {
namespace {

/// What its times are made from, worked out once.
struct Timed {
    Program program;
    ProgramWork work;
    FusedBytes bytes;
    FuseConfig config;
    TimedLaunch launch;
    double held_back;

    FuseFlow on(const Machine& machine, const FuseHardware& hw) const {
        if (const auto* ring = std::get_if<RingLaunch>(&launch)) {
            RingLaunch resident = *ring;
            resident.clusters = ring_clusters(machine, program, config);
            return ring_flow(hw, program, work, bytes, resident);
        }
        if (const auto* rows = std::get_if<GridResidentLaunch>(&launch))
            return grid_resident_flow(hw, program, work, bytes, *rows);
        if (const auto* columns = std::get_if<ColumnsLaunch>(&launch))
            return columns_flow(hw, program, work, bytes, *columns);
        return fuse_flow(hw, program, work, bytes, std::get<FuseLaunch>(launch));
    }
};

}  // namespace

Predictor fuse_predictor(std::span<const Plan> plans) {
    std::vector<Timed> timed;
    for (const Plan& any : plans) {
        const auto& plan = any.own.as<FusePlan>();
        const FuseConfig& c = plan.config;
        timed.push_back({plan.program,
                         program_work(plan.problem, plan.program, c.vector_width, c.row_storage == RowStorage::shared),
                         fused_bytes(plan.problem), c, plan.launch, plan.held_back});
    }
    return [timed = std::move(timed)](const Machine& machine) {
        std::vector<std::string> unknown;
        const FuseHardware hw = fuse_hardware(machine, unknown);
        std::vector<PredictedRun> runs;
        for (const Timed& plan : timed) runs.push_back({plan.on(machine, hw).time.seconds * plan.held_back, hw.clock_hz});
        return runs;
    };
}

}  // namespace rooftile
