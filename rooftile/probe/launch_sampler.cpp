#include "rooftile/probe/launch_sampler.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/core.h>

#include "kernels/measure/arguments.hpp"
#include "rooftile/core/in_parallel.hpp"
#include "rooftile/runtime/cache.hpp"
#include "rooftile/measure/statistics.hpp"
#include "rooftile/probe/mma_sync.hpp"

namespace rooftile {

std::string wgmma_program(int n) { return fmt::format("wgmma_{}", n); }

std::vector<ProbeProgram> probe_programs() {
    std::vector<ProbeProgram> programs = {
        {"tma",
         "kernels/probe/tma_stream.cuh",
         {"rooftile::tma_stream<true>", "rooftile::tma_stream<false>"}},
        {"stores",
         "kernels/probe/line_stores.cuh",
         {"rooftile::line_stores_by_tma", "rooftile::line_stores_by_element", "rooftile::line_stores_by_rows"}},
        {"fill", "kernels/measure/fill.cuh", {"rooftile::fill"}},
        {"memory",
         "kernels/probe/global_stream.cuh",
         {"rooftile::stream_read<1>", "rooftile::stream_read<4>", "rooftile::stream_write<1>",
          "rooftile::stream_write<4>", "rooftile::stream_copy<1>", "rooftile::stream_copy<4>",
          "rooftile::line_latency", "rooftile::l1_chase"}},
        {"ceilings",
         "kernels/probe/dram_ceilings.cuh",
         {"rooftile::dram_mix<4, 0>", "rooftile::dram_mix<3, 1>", "rooftile::dram_mix<4, 2>", "rooftile::dram_mix<2, 2>",
          "rooftile::dram_mix<2, 4>", "rooftile::dram_mix<1, 3>", "rooftile::dram_mix<0, 4>", "rooftile::dram_split",
          "rooftile::dram_blocks"}},
        {"sm",
         "kernels/probe/sm.cuh",
         {"rooftile::shared_read", "rooftile::shared_chase", "rooftile::cta_barrier",
          "rooftile::mbarrier_pingpong", "rooftile::mbarrier_alone", "rooftile::fma_rate",
          "rooftile::mufu_rate", "rooftile::spin", "rooftile::empty_kernel"}},
        {"cluster",
         "kernels/probe/cluster.cuh",
         {"rooftile::cluster_barrier", "rooftile::dsmem_chase", "rooftile::dsmem_read"}},
        {"dependent", "kernels/probe/dependent.cuh", {"rooftile::dependent"}},
    };
    programs.push_back({"wgmma_stream",
                        "kernels/probe/wgmma_stream.cuh",
                        {"rooftile::wgmma_stream<128>", "rooftile::wgmma_stream<256>"}});
    ProbeProgram mma_sync{"mma_sync", "kernels/probe/mma_sync_stream.cuh", {}};
    for (const MmaSyncSetup& setup : mma_sync_setups()) mma_sync.kernels.push_back("rooftile::" + setup.kernel());
    programs.push_back(std::move(mma_sync));
    for (int n = 16; n <= 256; n += 16)
        programs.push_back(
            {wgmma_program(n), "kernels/probe/wgmma_load.cuh", {fmt::format("rooftile::wgmma_load<{}>", n)}});
    return programs;
}

Source probe_source(const ProbeProgram& program, std::string_view arch) {
    return source_of_header("probe_" + program.name, program.header, program.kernels, arch);
}

void add_sample(LaunchSamples& samples, std::span<const ProbeRecord> records) {
    unsigned long long first = ~0ull, last = 0;
    std::vector<double> cycles, clocks, boxes;
    for (const ProbeRecord& r : records) {
        if (r.end_nanoseconds == 0) continue;  // this CTA wrote nothing down
        first = std::min(first, r.begin_nanoseconds);
        last = std::max(last, r.end_nanoseconds);
        cycles.push_back(static_cast<double>(r.end_cycles - r.begin_cycles));
        boxes.push_back(static_cast<double>(r.boxes));
        if (r.end_nanoseconds > r.begin_nanoseconds)
            clocks.push_back(1e9 * cycles.back()
                             / static_cast<double>(r.end_nanoseconds - r.begin_nanoseconds));
    }
    if (cycles.empty()) throw Error(ExitCode::gpu_failed, "a probe kernel wrote no record");
    samples.seconds.push_back(1e-9 * static_cast<double>(last - first));
    samples.cycles.push_back(median(std::move(cycles)));
    samples.clock_hz.push_back(median(std::move(clocks)));
    samples.boxes.push_back(median(std::move(boxes)));
}

LaunchSampler::LaunchSampler(int device, double seconds)
    : device_(Driver::instance().device(device)),
      end_(std::chrono::steady_clock::now()
           + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
               std::chrono::duration<double>(seconds))) {}

std::shared_ptr<const Nvml> LaunchSampler::nvml() {
    if (!nvml_) nvml_ = Nvml::open(device_.pci_bus_id);
    return nvml_;
}

double LaunchSampler::seconds_left() const {
    return std::chrono::duration<double>(end_ - std::chrono::steady_clock::now()).count();
}

void LaunchSampler::load(const std::vector<std::string>& names) {
    std::vector<ProbeProgram> wanted;
    for (const ProbeProgram& program : probe_programs()) {
        const bool named = std::find(names.begin(), names.end(), program.name) != names.end();
        if (named && !programs_.count(program.name)) wanted.push_back(program);
    }
    std::vector<CachedCompile> compiled(wanted.size());
    in_parallel(wanted.size(), 0, [&](std::size_t i) { compiled[i] = compile_cached(probe_source(wanted[i], device_.arch())); });
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        Loaded& loaded = programs_[wanted[i].name];
        loaded.module = Module(std::span<const char>(compiled[i].compiled.cubin));
        for (std::size_t k = 0; k < wanted[i].kernels.size(); ++k) {
            const Function function = loaded.module.function(compiled[i].compiled.lowered_names[k]);
            const int own = function.attributes().static_shared_bytes;
            function.allow_shared(static_cast<int>(device_.shared_per_cta_bytes) - own);
            loaded.kernels.emplace(wanted[i].kernels[k], function);
        }
    }
}

const Function& LaunchSampler::kernel(std::string_view program, std::string_view expression) {
    auto found = programs_.find(program);
    if (found == programs_.end()) {
        load({std::string(program)});
        found = programs_.find(program);
    }
    assert(found != programs_.end() && "not one of probe_programs()");
    const auto kernel = found->second.kernels.find(fmt::format("rooftile::{}", expression));
    assert(kernel != found->second.kernels.end() && "not a kernel of that program");
    return kernel->second;
}

DevicePointer LaunchSampler::random(std::size_t bytes) {
    if (random_.bytes() >= bytes) return random_.address();
    random_ = DeviceBuffer();
    random_ = DeviceBuffer(bytes);
    constexpr long long width = 4096;
    FillArguments fill{};
    fill.to.data = static_cast<unsigned short*>(random_.data());
    fill.to.width = fill.to.leading = width;
    fill.to.lines = static_cast<long long>(bytes / 2) / width;
    fill.seed = 1;
    fill.fill = Fill::normal;
    fill.type = Type::bf16;
    assert(fill.to.lines * width * 2 == static_cast<long long>(bytes) && "whole lines of 8 KiB");
    Launch all;
    all.grid_x = static_cast<unsigned>(8 * sms());
    all.block_x = 256;
    all.stream = stream_;
    launch(kernel("fill", "fill"), all, fill);
    stream_.synchronize();
    return random_.address();
}

DevicePointer LaunchSampler::zeros(std::size_t bytes) {
    if (zeros_.bytes() < bytes) {
        zeros_ = DeviceBuffer(bytes);
        fill_bytes(zeros_.address(), 0, bytes, stream_);
        stream_.synchronize();
    }
    return zeros_.address();
}

void LaunchSampler::warm_up() {
    DeviceBuffer records(sizeof(ProbeRecord) * static_cast<std::size_t>(sms()));
    Launch all;
    all.grid_x = static_cast<unsigned>(sms());
    all.block_x = 256;
    all.stream = stream_;
    const float x = 0.999f;
    // x 8 warps / 4 partitions: some 1.3 million cycles.
    const int loops = 640000 / (alu_chains * fma_unroll);
    const Function& fma = kernel("sm", "fma_rate");
    for (int i = 0; i < 150; ++i) launch(fma, all, x, loops, records.address());
    stream_.synchronize();
}

std::vector<LaunchSamples> LaunchSampler::interleave(const std::vector<SampledLaunch>& runs, int rounds) {
    std::vector<std::size_t> offsets(runs.size() + 1, 0);  // of a round's records
    for (std::size_t r = 0; r < runs.size(); ++r) offsets[r + 1] = offsets[r] + runs[r].ctas;
    const std::size_t all = offsets.back();
    const std::size_t bytes = sizeof(ProbeRecord) * all;
    const DeviceBuffer records(bytes * static_cast<std::size_t>(rounds + 1));
    fill_bytes(records.address(), 0, records.bytes(), stream_);
    warm_up();
    const auto orders = interleaved(runs.size(), static_cast<std::size_t>(rounds), 1);
    for (int round = -1; round < rounds; ++round) {
        const DevicePointer base = records.address() + bytes * static_cast<std::size_t>(round + 1);
        for (std::size_t i = 0; i < runs.size(); ++i) {
            const std::size_t r = round < 0 ? i : orders[static_cast<std::size_t>(round)][i];
            runs[r].launch(stream_, base + sizeof(ProbeRecord) * offsets[r], round + 1);
        }
    }
    stream_.synchronize();
    std::vector<ProbeRecord> read(all * static_cast<std::size_t>(rounds + 1));
    copy_to_host(read.data(), records.address(), records.bytes());
    std::vector<LaunchSamples> samples(runs.size());
    for (std::size_t round = 1; round <= static_cast<std::size_t>(rounds); ++round)
        for (std::size_t r = 0; r < runs.size(); ++r)
            add_sample(samples[r], std::span(read).subspan(round * all + offsets[r], runs[r].ctas));
    return samples;
}

TensorMap stream_map(DevicePointer data, std::size_t bytes, int box_rows, int l2_promotion_bytes) {
    TensorMapRequest request;
    request.base = data;
    request.inner = static_cast<std::int64_t>(StreamMatrix::line_bytes / 2);
    request.outer = static_cast<std::int64_t>(bytes / StreamMatrix::line_bytes);
    request.outer_stride_bytes = StreamMatrix::line_bytes;
    request.box_inner = 64;
    request.box_outer = box_rows;
    request.swizzle_bytes = 128;
    request.l2_promotion_bytes = l2_promotion_bytes;
    TensorMap map{};
    encode(map, request);
    return map;
}

}  // namespace rooftile
