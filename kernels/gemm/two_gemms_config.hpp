// What sm90_two_gemms makes of two configurations of sm90_gemm: one layout of shared memory.
#pragma once

#include "kernels/gemm/gemm_config.hpp"

namespace rooftile {

/// Both with the room and the registers that either needs.
struct TwoGemmsConfig {
    Sm90GemmConfig first, second;

    constexpr TwoGemmsConfig(const Sm90GemmConfig& a, const Sm90GemmConfig& b) : first(a), second(b) {
        const auto larger = [](int x, int y) { return x > y ? x : y; };
        const int pitch = larger(a.stage_bytes(), b.stage_bytes()), alignment = Sm90GemmConfig::tile_alignment;
        first.stage_room = second.stage_room = (pitch + alignment - 1) / alignment * alignment;
        first.epilogue_room = second.epilogue_room = larger(a.epilogue_bytes(), b.epilogue_bytes());
        first.stages = second.stages = a.stages < b.stages ? a.stages : b.stages;
        first.producer_registers = second.producer_registers = a.producer_registers < b.producer_registers ? a.producer_registers : b.producer_registers;
        first.consumer_registers = second.consumer_registers = larger(a.consumer_registers, b.consumer_registers);
    }
    constexpr int shared_bytes() const;
    friend constexpr bool operator==(const TwoGemmsConfig&, const TwoGemmsConfig&) = default;
};

/// From the beginning of shared memory to where the roles hear of tiles: behind the barriers of both.
constexpr int two_gemms_told_at(const Sm90GemmConfig& a, const Sm90GemmConfig& b) {
    const int barriers = a.all_barrier_bytes() > b.all_barrier_bytes() ? a.all_barrier_bytes() : b.all_barrier_bytes();
    return a.stages * a.stage_pitch() + a.epilogue_bytes() + barriers;
}
constexpr int two_gemms_told_bytes(const Sm90GemmConfig& a) { return (a.stages + 2) * Sm90GemmConfig::told_tile_bytes; }

constexpr int TwoGemmsConfig::shared_bytes() const { return two_gemms_told_at(first, second) + two_gemms_told_bytes(first); }

}  // namespace rooftile
