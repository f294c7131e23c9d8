// A GPU as numbers: every one with its unit and its source, any of them possibly unknown.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/units.hpp"

namespace rooftile {

/// Which whole a number speaks of: the GPU, or one SM.
enum class Per { gpu, sm };

/// One known number of a machine, in base units.
struct Fact {
    double value = 0;           ///< in base units: bytes, FLOP, cycles, seconds, joules
    Dimension dimension{};      ///< of `value`
    Per per = Per::gpu;         ///< "3.35 TB/s" speaks of the GPU, "128 B/clk/SM" of one SM
    std::string text;           ///< the number and unit as written, "3.35 TB/s"
    std::string source;         ///< datasheet, header, measurement with date and command, or "--set"
    std::string calibration{};  ///< the machine whose runs it was fitted to; empty: no fitted number

    /// As a typed quantity; empty where it is given in another form (per SM where the whole GPU is asked for,
    /// per clock where per second is).
    template <class Q>
    std::optional<Q> as(Per whole = Per::gpu) const {
        return dimension == Q::dimension && per == whole ? std::optional(Q(value)) : std::nullopt;
    }
};

/// What a machine file may say under one key: the row that parsing, checking, listing, `--set` and
/// docs/machines.md all share.
struct Key {
    std::string_view name;     ///< dotted, as in the file: "shared.per_cta"
    std::string_view units;    ///< what is accepted, for messages: "B" or "B/s, B/clk or B/clk/SM"
    std::string_view meaning;  ///< one line
    double least;              ///< in base units, inclusive
    double most;
};

/// A GPU's numbers. Plain data: reading files is machine/read.hpp's, asking the driver
/// machine/live.hpp's work.
class Machine {
  public:
    std::string id;                                     ///< "h100-sxm", or a file's own id
    std::string name;                                   ///< "NVIDIA H100 SXM5 80 GB"
    std::string arch;                                   ///< "sm_90"; empty where a file names none
    std::vector<std::string> device_names;              ///< what the driver calls it, for matching
    std::map<std::string, Fact, std::less<>> facts;     ///< known numbers by key
    std::map<std::string, bool, std::less<>> features;  ///< "wgmma": true; absent means unknown
    std::vector<std::string> changed{};                 ///< keys whose values are no longer this GPU's: --set gave others

    /// The fact under `key`, or null where it is unknown. `key` is one of `keys()`.
    const Fact* find(std::string_view key) const;

    /// The number under `key` as a typed quantity; empty where unknown, or given in another form.
    template <class Q>
    std::optional<Q> number(std::string_view key, Per per = Per::gpu) const {
        const Fact* fact = find(key);
        return fact ? fact->as<Q>(per) : std::nullopt;
    }

    /// A dimensionless number (SMs, registers, warps); empty where unknown.
    std::optional<double> count(std::string_view key) const;

    /// True only where the architecture is known to have it: wgmma, tma, cp_async, bf16, ...
    bool has(std::string_view feature) const;
    /// True only where the architecture is known to lack it.
    bool lacks(std::string_view feature) const;

    /// XXH3-128 over facts, features and architecture, which are what plans follow from, as 32 hex digits.
    std::string hash() const;
};

/// Every key a machine file may hold, in the order they are listed. Rates and sustained clocks are
/// families: "rate.<family>.<input>.<accumulator>" is one row with `name` "rate.*.*.*".
std::span<const Key> machine_keys();

}  // namespace rooftile
