#include "rooftile/physics/workers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "rooftile/error.hpp"
#include "rooftile/machine/keys.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/reader.hpp"

namespace rooftile {
namespace {

constexpr std::string_view tensor_unit = "tensor", special_unit = "special", port_unit = "port";

class Run {
  public:
    Run(const std::vector<WorkerStage>& stages, int workers, Phase phase, int in_flight)
        : stages_(stages), shared_(phase == Phase::together), in_flight_(in_flight), workers_(std::size_t(workers)) {
        for (Worker& w : workers_) w.passed.assign(stages.size(), 0);
    }

    WorkersRun all(Phase phase) {
        // Blocks of the first worker before the time that counts, and in it: whole periods of anything that two workers settle into.
        constexpr std::int64_t before = 60, counted = 120;
        while (workers_[0].passed.back() < before) step();
        const double from = now_;
        const std::int64_t already = finished();
        busy_.clear();
        while (workers_[0].passed.back() < before + counted) step();
        WorkersRun out{int(workers_.size()), phase, (now_ - from) / double(finished() - already), {}};
        for (const WorkerStage& stage : stages_)
            if (std::ranges::none_of(out.busy, [&](const auto& b) { return b.unit == stage.unit; }))
                out.busy.push_back({stage.unit, busy_[stage.unit] / (now_ - from)});
        return out;
    }

  private:
    struct Worker {
        std::vector<std::int64_t> passed;  ///< blocks that are through each stage
        bool taken = false;                ///< its threads are
    };
    struct Job {
        std::size_t worker, stage;
        double left;
    };

    std::int64_t finished() const {
        std::int64_t sum = 0;
        for (const Worker& w : workers_) sum += w.passed.back();
        return sum;
    }

    bool can_begin(std::size_t worker, std::size_t stage) const {
        const Worker& w = workers_[worker];
        if (!stages_[stage].asynchronous && w.taken) return false;
        const bool running = std::ranges::any_of(jobs_, [&](const Job& j) { return j.worker == worker && j.stage == stage; });
        const std::int64_t block = w.passed[stage];
        return !running && (stage == 0 ? block < w.passed.back() + in_flight_ : block < w.passed[stage - 1]);
    }

    /// Later stages first: they are those of earlier blocks, and an instruction stream has them in that order.
    void begin() {
        for (std::size_t worker = 0; worker < workers_.size(); ++worker)
            for (std::size_t stage = stages_.size(); stage-- > 0;)
                if (can_begin(worker, stage)) {
                    jobs_.push_back({worker, stage, stages_[stage].cycles});
                    if (!stages_[stage].asynchronous) workers_[worker].taken = true;
                }
    }

    void step() {
        begin();
        std::map<std::string, int> wanted;  // jobs of a unit, in the order in which they came
        std::vector<double> rates;
        for (const Job& j : jobs_) rates.push_back(wanted[stages_[j.stage].unit]++ == 0 ? 1 : 0);
        if (shared_)
            for (std::size_t i = 0; i < jobs_.size(); ++i) rates[i] = 1.0 / wanted[stages_[jobs_[i].stage].unit];
        double time = std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < jobs_.size(); ++i)
            if (rates[i] > 0) time = std::min(time, jobs_[i].left / rates[i]);
        now_ += time;
        for (const auto& [unit, jobs] : wanted) busy_[unit] += time;
        for (std::size_t i = 0; i < jobs_.size(); ++i) jobs_[i].left -= rates[i] * time;
        std::erase_if(jobs_, [&](const Job& j) {
            if (j.left > 1e-9 * stages_[j.stage].cycles) return false;
            ++workers_[j.worker].passed[j.stage];
            if (!stages_[j.stage].asynchronous) workers_[j.worker].taken = false;
            return true;
        });
    }

    const std::vector<WorkerStage>& stages_;
    bool shared_;
    std::int64_t in_flight_;
    std::vector<Worker> workers_;
    std::vector<Job> jobs_;
    std::map<std::string, double> busy_;
    double now_ = 0;
};

}  // namespace

WorkersRun simulate_workers(const std::vector<WorkerStage>& stages, int workers, Phase phase, int in_flight) {
    return Run(stages, workers, phase, in_flight).all(phase);
}

double workers_ceiling(const std::vector<WorkerStage>& stages, int in_flight) {
    double in_turn = 0, longest = 0;
    std::map<std::string, double> units;
    for (const WorkerStage& s : stages) {
        longest = std::max(longest, units[s.unit] += s.cycles);
        if (s.unit != port_unit || !s.asynchronous || in_flight == 1) in_turn += s.cycles;
    }
    return std::max(in_turn, longest) / longest;
}

namespace {

/// The key that fastest_instruction() misses.
std::string missing_rate(const Machine& machine) {
    for (const std::string_view family : instruction_families())
        if (std::string key = rate_key(family, "bf16", "fp32"); find_feature(family) && machine.has(family) && !machine.find(key)) return key;
    return "sm.count";  // the rate is known, of the whole GPU
}

}  // namespace

std::vector<WorkerStage> stages_of(const Machine& machine, const WorkerTile& t) {
    using OpsPerCycle = Quantity<Dimension{.cycle = -1}>;
    constexpr double element_bytes = 2;
    std::vector<std::string> unknown;
    const MachineReader read(machine, machine.number<Clock>("clock.boost"), &unknown);
    const auto matrix = fastest_instruction(machine, "bf16", "fp32");
    if (!matrix && machine.lacks("bf16")) throw RequestError(machine.id + " has no bf16 matrix instruction, and blocks are of bf16");
    if (!matrix) unknown.push_back(missing_rate(machine));
    const double special = read.number<OpsPerCycle>("rate.mufu", Per::sm), port = read.bandwidth_per_sm("l2.port");
    if (!unknown.empty()) throw RequestError(unknown.front() + " of " + machine.id + " is unknown, and nothing can be simulated without; --set gives it");
    const double m = t.m, n = t.n, dim = double(t.dim), product = 2 * m * n * dim / matrix->rate.value;
    const bool matrix_async = matrix->family == "wgmma" || matrix->family == "tcgen05", copies = machine.has("cp_async") || machine.has("tma"),
               functions = machine.has("special_async");
    const auto stage = [](const char* name, std::string_view unit, double cycles, bool async) { return WorkerStage{name, std::string(unit), cycles, async}; };
    if (t.work == Work::softmax)  // the exponential alone, as M38 has it
        return {stage("K and V", port_unit, 2 * n * dim * element_bytes / port, copies), stage("scores", tensor_unit, product, matrix_async),
                stage("exponentials", special_unit, m * n / special, functions), stage("values", tensor_unit, product, matrix_async)};
    constexpr double silu = 2;  // an exponential and a reciprocal
    return {stage("A and B", port_unit, (m + n) * dim * element_bytes / port, copies), stage("products", tensor_unit, product, matrix_async),
            stage("SiLU", special_unit, silu * m * n / special, functions), stage("store", port_unit, m * n * element_bytes / port, machine.has("tma"))};
}

}  // namespace rooftile
