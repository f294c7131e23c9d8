// Why a plan is what it is: the steps of its derivation, and what its search rejected.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/value.hpp"

namespace rooftile {

/// One number that went into a derivation step.
struct Input {
    std::string name;
    std::optional<double> value;  ///< empty: unknown
    std::string unit;
    std::string source;
};

/// As documents list them.
List input_list(const std::vector<Input>& inputs);

/// One step: a quantity, how it follows, and the limit it met.
struct Step {
    std::string quantity;  ///< "stages_max"
    std::string formula;   ///< "floor((shared.per_cta - reserved) / stage_bytes)   [M13]"
    std::vector<Input> inputs;
    std::optional<double> value;
    std::string unit;
    std::string limit;  ///< "4 stages fit, 5 x 49152 = 245760 B do not"; what it means
};

/// One step from the datasheet's roof to a predicted time.
struct RoofStep {
    std::string name;           ///< "datasheet_roof", ... "launch"
    std::int64_t time_ns = 0;   ///< with this step and all before it
    std::int64_t cost_ns = 0;   ///< this step alone; of the first step its time
    std::vector<Input> inputs;  ///< what it came from
    std::string note;           ///< what the numbers do not say: a number that is unknown and not charged
};

/// A derivation, written when it is first read: a search settles many plans, and most are never asked why.
/// Copies share it; any thread may read it.
class Steps {
  public:
    using Writer = std::function<std::vector<Step>()>;

    Steps() = default;
    Steps(std::vector<Step> steps);
    Steps(std::initializer_list<Step> steps) : Steps(std::vector<Step>(steps)) {}
    explicit Steps(Writer writer);

    const std::vector<Step>& all() const;
    operator const std::vector<Step>&() const { return all(); }
    auto begin() const { return all().begin(); }
    auto end() const { return all().end(); }
    std::size_t size() const { return all().size(); }
    const Step& operator[](std::size_t i) const { return all()[i]; }

  private:
    struct Text;
    std::shared_ptr<Text> text_;
};

/// Why a candidate was not kept. They are the contract's names.
enum class Reason : std::uint8_t {
    registers,
    shared,
    threads,
    instruction,
    alignment,
    cluster,
    latency,
    rule,
    dominated
};
inline constexpr int reason_count = 9;
std::string_view name_of(Reason reason);

/// What a search leaves out although nothing forbids it. `--exhaustive` switches all rules off.
struct Rule {
    std::string_view name;  ///< "few_vectors"
    std::string_view why;   ///< one line
};

/// Candidates that a rule left out.
struct LeftOutByRule {
    const Rule* rule;
    std::int64_t count;
};

struct Rejected {
    std::array<std::int64_t, reason_count> reasons{};
    std::vector<LeftOutByRule>
        by_rule;  ///< what stands under `rule`, in the order in which the rules were met

    void add(Reason reason, std::int64_t count = 1) { reasons[std::size_t(reason)] += count; }
    void add(const Rule& rule, std::int64_t count = 1);
    /// What another search of the same problem left out.
    void add(const Rejected& other);
    std::int64_t count() const {
        std::int64_t sum = 0;
        for (auto r : reasons) sum += r;
        return sum;
    }
};

}  // namespace rooftile
