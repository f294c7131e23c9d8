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

/// Why a candidate was not kept. The first eight are the contract's names.
enum class Reason : std::uint8_t {
    registers,
    shared,
    threads,
    instruction,
    alignment,
    cluster,
    latency,
    dominated
};
inline constexpr int reason_count = 8;
std::string_view name_of(Reason reason);

struct Rejected {
    std::array<std::int64_t, reason_count> reasons{};
    std::int64_t count() const {
        std::int64_t sum = 0;
        for (auto r : reasons) sum += r;
        return sum;
    }
};

}  // namespace rooftile
