// A ledger on disk, `rooftile/ledger/1` as JSON lines: a context line, then one problem a line. Configurations are lists of
// values under the context line's `keys`; each line adds those that no line before has, and members are places among all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rooftile/core/ledger.hpp"
#include "rooftile/core/operation.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {

struct Ledger {
    std::string file, version, program_hash, machine_hash, machine_id, machine_name, gpu, driver, date,
        command, law;
    std::uint64_t seed = 0;
    const Operation* operation = nullptr;
    std::vector<LedgerEntry> entries;
    std::string text;  ///< all complete lines
};

/// A last line without its end counts as absent. Throws RequestError naming `file_name` and the line.
Ledger read_ledger(std::string_view text, std::string_view file_name);

/// Writes the lines of a ledger, in order.
class LedgerLines {
  public:
    explicit LedgerLines(const Operation& operation) : operation_(operation) {}
    /// Goes on behind the entries of `ledger`.
    explicit LedgerLines(const Ledger& ledger);
    /// The context line. `keys` are those of `configuration`.
    Json head(const DocumentContext& context, std::string_view program_hash, std::string_view law,
              const Record& configuration) const;
    Json line(const LedgerEntry& entry);

  private:
    std::size_t place_of(const Record& config, Json& added);
    const Operation& operation_;
    std::unordered_map<std::string, std::size_t> places_;  ///< of configurations, by their values' JSON
};

}  // namespace rooftile
