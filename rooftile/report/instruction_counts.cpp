#include "rooftile/report/instruction_counts.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace rooftile {
namespace {

// An instruction has 16 bytes: the opcode in the lowest 12 bits, its predicate in the next 4, 7 without one. A branch's distance is in words
// of 4 bytes from the next instruction, signed, from bit 34; from sm_90 on these are its upper bits, and its low 8 are from bit 16.
constexpr std::size_t instruction_bytes = 16;
constexpr unsigned opcode_exit = 0x94d, opcode_branch = 0x947, opcode_call = 0x944, opcode_load = 0x981;
constexpr unsigned opcode_special = 0x308, opcode_check_division = 0x302;  // both of the special function unit
constexpr unsigned always = 7;
// The control bits of the upper word: cycles to the next instruction, the scoreboard that the result clears (7: none), those to wait for.
constexpr int control_shift = 41, sets_shift = 5, waits_shift = 11, scoreboards = 6;

template <class T>
T read_at(std::string_view bytes, std::size_t at) {
    T value{};
    if (at <= bytes.size() && sizeof value <= bytes.size() - at) std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

struct Instruction {
    unsigned opcode, predicate;
    std::int64_t target;  ///< in bytes, of a branch
};

Instruction instruction_at(std::string_view code, std::size_t at, bool wide_branches) {
    const auto word = read_at<std::uint64_t>(code, at);
    const std::int64_t upper = static_cast<std::int64_t>(word) >> 34;
    const std::int64_t words = wide_branches ? upper * 256 + static_cast<std::int64_t>(word >> 16 & 0xff) : upper;
    return {static_cast<unsigned>(word & 0xfff), static_cast<unsigned>(word >> 12 & 0xf),
            static_cast<std::int64_t>(at + instruction_bytes) + 4 * words};
}

InstructionTiming timing_at(std::string_view code, std::size_t at, unsigned opcode) {
    const std::uint64_t control = read_at<std::uint64_t>(code, at + 8) >> control_shift;
    InstructionTiming out;
    out.stall = static_cast<int>(control & 0xf);
    out.waits = static_cast<unsigned>(control >> waits_shift & 0x3f);
    const int sets = static_cast<int>(control >> sets_shift & 7);
    out.sets = sets < scoreboards ? sets : -1;
    out.loads = opcode == opcode_load;
    return out;
}

bool calls(std::string_view code, std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end; at += instruction_bytes)
        if (instruction_at(code, at, false).opcode == opcode_call) return true;
    return false;
}

}  // namespace

std::string_view machine_code(std::string_view cubin, std::string_view lowered_name) {
    const auto headers = read_at<std::uint64_t>(cubin, 0x28);
    const auto size = read_at<std::uint16_t>(cubin, 0x3a), count = read_at<std::uint16_t>(cubin, 0x3c);
    const auto field = [&](unsigned section, unsigned at) {
        return read_at<std::uint64_t>(cubin, headers + std::uint64_t{section} * size + at);
    };
    const std::uint64_t names = field(read_at<std::uint16_t>(cubin, 0x3e), 0x18);
    const std::string wanted = ".text." + std::string(lowered_name) + '\0';
    for (unsigned section = 0; section < count; ++section) {
        const std::uint64_t name = names + static_cast<std::uint32_t>(field(section, 0)), begin = field(section, 0x18),
                            bytes = field(section, 0x20);
        if (name > cubin.size() || begin > cubin.size() || bytes > cubin.size() - begin) continue;
        if (cubin.substr(name, wanted.size()) == wanted) return cubin.substr(begin, bytes);
    }
    return {};
}

std::optional<InstructionCounts> straight_counts(std::string_view cubin, std::string_view lowered_name) {
    const std::string_view code = machine_code(cubin, lowered_name);
    // The ELF header says which GPU: of its ABI 8 in other bits than before.
    const auto flags = read_at<std::uint32_t>(cubin, 0x30);
    const bool wide_branches = (read_at<unsigned char>(cubin, 8) >= 8 ? flags >> 8 & 0xff : flags & 0xff) >= 90;
    InstructionCounts counts;
    for (std::size_t at = 0; at + instruction_bytes <= code.size(); at += instruction_bytes) {
        const Instruction one = instruction_at(code, at, wide_branches);
        ++counts.instructions;
        counts.special += one.opcode == opcode_special || one.opcode == opcode_check_division;
        counts.timings.push_back(timing_at(code, at, one.opcode));
        if (one.opcode == opcode_exit && one.predicate == always) return counts;
        if (one.opcode != opcode_branch) continue;
        if (one.target <= static_cast<std::int64_t>(at) || one.target > static_cast<std::int64_t>(code.size())) return std::nullopt;
        const auto target = static_cast<std::size_t>(one.target);
        if (one.predicate == always || calls(code, at + instruction_bytes, target)) at = target - instruction_bytes;
    }
    return std::nullopt;
}

double cycles_alone(const std::vector<InstructionTiming>& timings, double load, double result) {
    double ready[scoreboards] = {}, now = 0;
    for (const InstructionTiming& each : timings) {
        for (int i = 0; i < scoreboards; ++i)
            if (each.waits >> i & 1) now = std::max(now, ready[i]);
        if (each.sets >= 0) ready[each.sets] = now + (each.loads ? load : result);
        now += std::max(1, each.stall);
    }
    return now;
}

}  // namespace rooftile
