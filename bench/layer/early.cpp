// A decode layer's products one after the other in one graph, each reading what the one before wrote: plain launches, programmatic
// ones, and those that ask for their weights before they wait. early [M ...], on a GPU. Llama-3-8B's sizes, weights of eight layers,
// so that none is in L2. Each way must leave the bits of plain launches; then the time of a layer, and the share of the read rate
// that its bytes take.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "rooftile/error.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/evaluate_plan.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace {

using namespace rooftile;

struct Product {
    const char* name;
    std::int64_t n, k, lda;  ///< lda: A is the first columns of what the product before wrote
};
// In a layer attention and an activation are between them; here the next one takes the first columns.
constexpr Product products[] = {{"qkv", 6144, 4096, 4096},
                                {"o", 4096, 4096, 6144},
                                {"gate_up", 28672, 4096, 4096},
                                {"down", 4096, 14336, 28672}};
constexpr int layers = 8, rounds = 15, replays = 4;

constexpr const char* fill_text = R"(
    extern "C" __global__ void fill(unsigned short* to, long long count, unsigned seed, float scale) {
        for (long long i = blockIdx.x * 256ll + threadIdx.x; i < count; i += gridDim.x * 256ll) {
            unsigned x = unsigned(i) * 2654435761u ^ unsigned(i >> 32) * 40503u ^ seed;
            x ^= x >> 15, x *= 2246822519u, x ^= x >> 13, x *= 3266489917u, x ^= x >> 16;
            to[i] = (unsigned short)(__float_as_uint((float(x >> 8) * (2.0f / 16777216) - 1) * scale) >> 16);
        }
    })";

constexpr const char* kernels[] = {"sm90_gemm", "sm80_few_gemm"};
constexpr const char* following[] = {"plain", "pdl", "early"};

struct Launcher {
    Kernel kernel;
    std::shared_ptr<DeviceBuffer> workspace;
    std::shared_ptr<const DeviceBuffer> weights;
    std::size_t weight_elements;
};

/// The same configuration in all three: only how launches follow each other differs.
GemmPlan followed(GemmPlan plan, int way) {
    plan.config.programmatic_launch = way > 0, plan.config.early_weights = way > 1;
    return plan;
}

struct Run {
    std::string name;
    Graph graph;
    std::vector<double> us;
    std::vector<std::uint16_t> result;
    double predicted_us = 0;
};

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(values.size() / 2), values.end());
    return values[values.size() / 2];
}

void time_each(std::vector<Run>& runs, Stream stream) {
    Event start, stop;
    for (int round = 0; round < rounds; ++round)
        for (Run& run : runs) {
            run.graph.launch(stream);  // the one before may have left another clock
            start.record(stream);
            for (int i = 0; i < replays; ++i) run.graph.launch(stream);
            stop.record(stream);
            stop.synchronize();
            run.us.push_back(elapsed_us(start, stop) / replays);
        }
}

/// A workspace's counters are zero between launches; each plan has its own.
std::shared_ptr<DeviceBuffer> workspace_of(const Kernel& kernel, Stream stream) {
    auto workspace = std::make_shared<DeviceBuffer>(std::max<std::size_t>(kernel.workspace_bytes(), 256));
    fill_bytes(workspace->address(), 0, workspace->bytes(), stream);
    return workspace;
}

bool measure_rows(std::int64_t m, const Machine& machine, double read_rate,
                  const std::vector<std::shared_ptr<const DeviceBuffer>>& weights, DeviceBuffer& activations,
                  std::size_t room) {
    StreamOwner stream;
    const auto room_of = [&](std::size_t i) { return static_cast<char*>(activations.data()) + i * room; };
    std::vector<Launcher> kept;  // graphs keep the code, not the workspaces
    std::vector<Run> chains, alone;
    double bytes = 0;
    for (const Product& p : products) bytes += 2.0 * double(p.n * p.k + m * p.k + m * p.n);
    bool right = true;
    for (const char* kernel_name : kernels) {
        GemmRequest request;
        request.kernel = find_gemm_kernel(kernel_name);
        request.top = 1, request.buildable_only = true;
        std::vector<GemmPlan> plans;
        for (const Product& p : products) {
            GemmProblem problem = gemm_problem(m, p.n, p.k);
            problem.lda = p.lda;
            const auto derived = derive(machine, problem, request);
            if (const auto* none = std::get_if<Infeasible>(&derived)) throw RequestError(none->message);
            plans.push_back(std::get<Plans>(derived).plans.front());
            const GemmConfig& c = plans.back().config;
            fmt::print("  {:14} {:8} {}x{}x{} stages {} split {}x{} ctas/SM {}\n", kernel_name, p.name,
                       c.tile_m, c.tile_n, c.tile_k, c.stages, c.split_k, c.grid_split_k, c.ctas_per_sm);
        }
        const std::vector<std::uint16_t>* first_result = nullptr;
        const std::size_t first = chains.size();
        for (int how = 0; how < 3; ++how) {
            std::vector<Launcher> launchers;
            for (std::size_t i = 0; i < plans.size(); ++i) {
                Kernel kernel = compile(followed(plans[i], how));
                kernel.load();
                launchers.push_back({kernel, workspace_of(kernel, stream), weights[i],
                                     std::size_t(products[i].n * products[i].k)});
            }
            stream.synchronize();
            const auto launch_at = [&](std::size_t i, int layer, void* from, void* to) {
                const Launcher& l = launchers[i];
                const char* b =
                    static_cast<const char*>(l.weights->data()) + std::size_t(layer) * l.weight_elements * 2;
                l.kernel.launch(stream, from, b, to, l.workspace->data());
            };
            begin_capture(stream);
            for (int layer = 0; layer < layers; ++layer)
                for (std::size_t i = 0; i < plans.size(); ++i)
                    launch_at(i, layer, room_of(layer == 0 && i == 0 ? 4 : (i + 3) % 4), room_of(i));
            Run run{fmt::format("{}: {}", kernel_name, following[how]), end_capture(stream), {}, {}};
            fill_bytes(activations.address(), 0xff, 4 * room,
                       stream);  // all but what the first product reads
            run.graph.launch(stream);
            run.graph.launch(stream);
            stream.synchronize();
            run.result.resize(std::size_t(m * products[3].n));
            copy_to_host(run.result.data(), activations.address() + 3 * room, run.result.size() * 2);
            chains.push_back(std::move(run));
            for (std::size_t i = 0; i < plans.size(); ++i) {
                begin_capture(stream);
                for (int layer = 0; layer < layers; ++layer) launch_at(i, layer, room_of(4), room_of(i));
                alone.push_back(
                    {fmt::format("{:14} {}", kernel_name, products[i].name), end_capture(stream), {}, {}});
                const auto evaluation = evaluate_plan(machine, followed(plans[i], how));
                alone.back().predicted_us = evaluation ? evaluation->time.seconds * 1e6 : NAN;
            }
            kept.insert(kept.end(), launchers.begin(), launchers.end());
        }
        for (std::size_t i = first; i < chains.size(); ++i) {
            if (!first_result) first_result = &chains[i].result;
            const bool same = chains[i].result == *first_result;
            const auto nans = std::ranges::count_if(chains[i].result,
                                                    [](std::uint16_t x) { return (x & 0x7fff) >= 0x7f80; });
            if (!same || nans > 0)
                fmt::print("  WRONG: {} {} ({} not finite)\n", chains[i].name,
                           same ? "" : "differs from plain launches", nans);
            right &= same && nans == 0;
        }
    }
    fmt::print("  bits: {}\n", right ? "programmatic and early launches leave those of plain ones" : "WRONG");
    time_each(chains, stream);
    time_each(alone, stream);
    fmt::print("m = {:<3} {:32} {:>10} {:>8} {:>10}\n", m, "layer of", "us", "of read", "of plain");
    for (std::size_t i = 0; i < chains.size(); ++i) {
        const double us = median(chains[i].us) / layers;
        fmt::print("        {:32} {:10.2f} {:8.3f} {:10.3f}\n", chains[i].name, us,
                   bytes / (us * 1e-6) / read_rate, us / (median(chains[i / 3 * 3].us) / layers));
    }
    constexpr std::size_t count = std::size(products);
    for (std::size_t i = 0; i < std::size(kernels) * count; ++i) {
        const std::size_t first = i / count * 3 * count + i % count;
        const double own = 2.0 * double(products[i % count].n * products[i % count].k);
        fmt::print("        {:24}", alone[first].name);
        for (std::size_t how = 0; how < 3; ++how) {
            const Run& run = alone[first + how * count];
            const double us = median(run.us) / layers;
            fmt::print("  {} {:7.2f} us (predicted {:6.2f}) {:.3f}", following[how], us, run.predicted_us,
                       own / (us * 1e-6) / read_rate);
        }
        fmt::print("\n");
    }
    return right;
}

}  // namespace

int main(int count, char** arguments) try {
    std::vector<std::int64_t> rows;
    for (int i = 1; i < count; ++i) {
        rows.push_back(std::atoll(arguments[i]));
        if (rows.back() < 1 || rows.back() > 4096)
            throw RequestError(fmt::format("M is {}; 1 to 4096 rows are taken", arguments[i]));
    }
    if (rows.empty()) rows = {1, 16, 64};
    const Machine machine = live_machine().machine;
    const auto rate =
        bandwidth(machine, machine.find("dram.sustained_read") ? "dram.sustained_read" : "dram.bandwidth");
    if (!rate)
        throw RequestError(fmt::format(
            "{} states neither dram.sustained_read nor dram.bandwidth: shares of it are what is printed",
            machine.id));
    const Context context(0);
    Source source;
    source.name = "fill", source.text = fill_text, source.name_expressions = {"fill"},
    source.arch = nvrtc_arch("sm_90");
    const Module module(compile_source(source).cubin);
    const Function fill = module.function("fill");
    const float scale = std::sqrt(3.0f / 4096);  // a product of 4096 terms keeps the size of its A
    std::vector<std::shared_ptr<const DeviceBuffer>> weights;
    unsigned seed = 1;
    for (const Product& p : products) {
        const long long elements = layers * p.n * p.k;
        auto buffer = std::make_shared<DeviceBuffer>(std::size_t(elements) * 2);
        launch(fill, Launch{.grid_x = 1024, .block_x = 256}, buffer->address(), elements, seed++, scale);
        weights.push_back(std::move(buffer));
    }
    const std::size_t room = std::size_t(*std::ranges::max_element(rows)) * 28672 * 2;
    DeviceBuffer activations(5 * room);
    launch(fill, Launch{.grid_x = 1024, .block_x = 256}, activations.address() + 4 * room,
           static_cast<long long>(room / 2), seed, 1.0f);
    synchronize();
    fmt::print("{}: read rate {:.2f} TB/s\n", machine.id, rate->value / 1e12);
    bool right = true;
    for (const std::int64_t m : rows)
        right &= measure_rows(m, machine, rate->value, weights, activations, room);
    return right ? 0 : 1;
} catch (const rooftile::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return int(error.code());
}
