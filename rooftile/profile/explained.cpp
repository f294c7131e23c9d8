#include "rooftile/profile/explained.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/names/known_kernels.hpp"
#include "rooftile/names/launch_agreement.hpp"
#include "rooftile/physics/explanation.hpp"
#include "rooftile/report/plan_command.hpp"

namespace rooftile {
namespace {

constexpr double ns_a_second = 1e9, ns_a_microsecond = 1e3, bits_a_byte = 8;

/// The first plan of a problem, and the least that the machine's datasheet allows for what it asks of DRAM and of the units.
void plan_ours(const Operation& operation, const std::shared_ptr<const Machine>& machine, const Problem& problem, ExplainedKernel& out) {
    PlanDefaults defaults;
    defaults.top = 1, defaults.one_of_many = true;
    const PlanSet plans = operation.derive(machine, problem, operation.request(Given(Given::Named::by_key), defaults));
    if (plans.plans.empty()) {
        out.why_not = plans.refusal ? plans.refusal->message : "nothing of ours is planned for it";
        return;
    }
    const Plan& plan = plans.plans.front();
    // A profiler's time begins with the kernel.
    const auto gap = machine->find("launch.gap_stream");
    if (plan.time_us)
        out.ours = *plan.time_us * ns_a_microsecond
                   - (gap ? gap->value * ns_a_second : 0) * double(std::max<std::size_t>(1, plan.launches.size()));
    out.plan = operation.label(plan);
    PlanDetail detail;
    detail.depth = Depth::brief;
    const Explanation explanation = explain(*machine, plan, detail);
    if (!explanation.attainability.empty()) out.least = double(explanation.attainability.front().time_ns);
}

/// The machine with the room under its power limit that work has which fills only a share of the time.
class MachineByShare {
  public:
    explicit MachineByShare(std::shared_ptr<const Machine> machine) : machine_(std::move(machine)) {}
    const std::shared_ptr<const Machine>& operator()(double share) {
        const int step = std::clamp(int(std::lround(std::max(share, least_share) * steps)), 1, steps);
        std::shared_ptr<const Machine>& made = made_[step];
        if (made) return made;
        const auto limit = machine_->find("power.sustained"), still = machine_->find("power.static");
        if (step == steps || !limit || !still) return made = machine_;
        auto other = std::make_shared<Machine>(*machine_);
        const double watts = still->value + (limit->value - still->value) * steps / step;
        set_fact(*other, "power.sustained", fmt::format("{:.1f} W", watts), "the limit over the share of time that is matrix work");
        return made = other;
    }

  private:
    static constexpr int steps = 20;
    /// Short bursts run below the top clock too: fitted to 223 products on one H200, of 0 to 0.9 the least error (docs/facts.md 364,
    /// `bench/profile/judge_products.py`).
    static constexpr double least_share = 0.65;
    std::shared_ptr<const Machine> machine_;
    std::map<int, std::shared_ptr<const Machine>> made_;
};

ExplainedKernel explained_kernel(const KernelName& name, const LaunchedKernel& launch, const std::shared_ptr<const Machine>& machine) {
    ExplainedKernel out;
    for (const Operation* operation : operations()) {
        const auto* known = facet_of<KnownKernels>(*operation);
        if (!known) continue;
        try {
            const auto answer = known->answer(*machine, name, launch);
            if (!answer) continue;
            if (answer->seconds) out.predicted = *answer->seconds * ns_a_second;
            out.why_not = answer->why_not;
            if (!answer->problem) return out;
            out.operation = operation->name();
            out.problem = operation->short_name(*answer->problem);
            out.command =
                fmt::format("{} --machine {} --explain",
                            plan_command(operation->name(), {operation->fields()}, operation->given(*answer->problem)), machine->id);
            out.least_bytes = 0;
            for (const TensorInfo& tensor : operation->tensors(*answer->problem))
                *out.least_bytes += double(spanned_elements(tensor)) * tensor.element_bits / bits_a_byte;
            plan_ours(*operation, machine, *answer->problem, out);
        } catch (const RequestError& error) { out.why_not = error.what(); }
        return out;
    }
    out.why_not = name.family == "unknown" ? "its name is in no grammar that is known" : "what it computed is not known";
    return out;
}

/// In a few words.
std::string why_no_sizes(const KernelName& name) {
    if (name.role == "collective") return "a collective: it waits for other GPUs too, and its arguments are on the device";
    if (name.family == "inductor" || name.family == "triton")
        return "its parameters hold counts and addresses, and no type or shape of a tensor";
    return "its launch does not say the sizes";
}

}  // namespace

ExplainedProfile explained(const Profile& profile, const std::shared_ptr<const Machine>& machine) {
    ExplainedProfile out;
    std::vector<std::shared_ptr<const Machine>> machines;
    for (const ProfiledDevice& device : profile.devices) {
        machines.push_back(machine);
        if (!machine)
            if (auto matched = match_device(device.device.name, device.device.sms))
                machines.back() = std::make_shared<Machine>(std::move(*matched));
        out.machines.push_back(machines.back() ? machines.back()->id : "");
    }
    std::vector<MachineByShare> by_share(machines.begin(), machines.end());
    for (const KernelGroup& group : profile.kernels) {
        out.names.push_back(decode(group.name));
        ExplainedKernel one;
        if (!group.sizes) one.why_not = why_no_sizes(out.names.back());
        else if (!machines[group.device]) one.why_not = "no machine file is known for the GPU; --machine names one";
        else {
            LaunchedKernel launch;
            launch.sizes = *group.sizes;
            launch.ctas = std::int64_t{group.grid[0]} * group.grid[1] * group.grid[2];
            launch.threads = group.block[0] * group.block[1] * group.block[2];
            launch.ctas_per_sm = group.resident;
            launch.shared_bytes = std::int64_t{group.static_shared} + group.dynamic_shared;
            one = explained_kernel(out.names.back(), launch, by_share[group.device](group.matrix_share));
            if (const auto* pass = std::get_if<PassSizes>(&launch.sizes))
                one.least_bytes = double(pass->read_bytes() + pass->written_bytes());
        }
        LaunchData data{.grid = group.grid, .block = group.block, .cluster = group.cluster, .registers = int(group.registers)};
        data.static_shared = group.static_shared, data.dynamic_shared = group.dynamic_shared;
        one.disagreements = agrees(out.names.back(), data).disagreements;
        out.kernels.push_back(std::move(one));
    }
    return out;
}

}  // namespace rooftile
