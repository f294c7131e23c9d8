// Plans that were derived before: a caller that meets the same product again pays for a look-up.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <variant>

#include "rooftile/gemm/plan.hpp"

namespace rooftile {

/// All that a plan follows from, besides the machine, as bytes: equal where every field is.
class PlanQuestion {
  public:
    PlanQuestion(const GemmProblem& problem, const GemmRequest& request);

    std::size_t hash() const;
    friend bool operator==(const PlanQuestion&, const PlanQuestion&) = default;

  private:
    std::array<unsigned char, 352> bytes_{};
    std::size_t size_ = 0;
    std::string epilogue_;
};

/// The plans of one machine, each derived once. Bounded: what was asked for longest ago is forgotten first.
/// Any thread may ask; what it was given stays its own.
class PlanCache {
  public:
    using Outcome = std::variant<Plans, Infeasible>;

    explicit PlanCache(Machine machine, std::size_t most = 1024);
    ~PlanCache();
    PlanCache(const PlanCache&) = delete;
    PlanCache& operator=(const PlanCache&) = delete;

    const Machine& machine() const { return *machine_; }
    /// derive()'s outcome on this machine. Throws what derive() throws, and keeps nothing then.
    std::shared_ptr<const Outcome> derive(const GemmProblem& problem, const GemmRequest& request = {});

    std::size_t size() const;
    /// Outcomes that were derived, those forgotten since included.
    std::size_t derived() const;

  private:
    struct Store;

    const std::shared_ptr<const Machine> machine_;
    const std::unique_ptr<Store> store_;
};

}  // namespace rooftile
