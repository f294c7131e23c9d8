#include "rooftile/tiled/registers.hpp"

#include <algorithm>
#include <cmath>

namespace rooftile {
namespace {

constexpr int warpgroup_threads = 128;
constexpr int register_step = 8;   // setmaxnreg takes multiples of 8 from 24 on, PTX ISA "setmaxnreg"
constexpr int max_nameable = 255;  // registers an instruction can name

int round_down(double x) { return static_cast<int>(whole(x / register_step)) * register_step; }

}  // namespace

// The CTA's pool is fixed at launch; what the producer gives up, the consumers share.
RegisterSplit split_registers(double registers_per_sm, double registers_per_thread, int consumers, int ctas, int min_producer) {
    if (std::isnan(registers_per_sm) || std::isnan(registers_per_thread)) return RegisterSplit{};
    registers_per_thread = std::min<double>(registers_per_thread, max_nameable);
    const int launch = round_down(registers_per_sm / (double(warpgroup_threads) * (1 + consumers) * ctas));
    const int most = round_down(registers_per_thread);
    if (launch > registers_per_thread) return {static_cast<int>(registers_per_thread), 0, 0};
    if (launch < tight_producer) return {launch, 0, 0};
    const int pool = launch * (1 + consumers);
    const int consumer = std::min(round_down(double(pool - min_producer) / consumers), most);
    return {launch, std::min(round_down(pool - consumer * consumers), most), consumer};
}

RoleRegisters role_registers(const MatrixHardware& hw, int consumers, bool moves, int least_producer, int ctas) {
    const RegisterSplit split =
        split_registers(hw.registers_per_sm, known_or(hw.registers_per_thread, max_nameable), consumers, ctas, least_producer);
    if (split.launch < 0) return {moves ? least_producer : unknown_number, unknown_number};
    if (!moves) return {double(split.launch), double(split.launch)};
    if (split.consumer > 0) return {double(split.producer), double(split.consumer)};
    return {double(least_producer), double(round_down(split.launch))};
}

}  // namespace rooftile
