// A machine's facts as the numbers that formulas take: in their units, at one clock, NaN where unknown.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

class MachineReader {
  public:
    /// Keys that are missed are appended to `unknown`, once each; null: nobody misses them.
    MachineReader(const Machine& machine, std::optional<Clock> clock, std::vector<std::string>* unknown = nullptr)
        : machine_(machine), clock_(clock), unknown_(unknown) {}

    double clock() const { return noted("clock.boost", clock_); }  ///< Hz
    double count(std::string_view key) const { return noted(key, machine_.count(key)); }
    /// What an instruction names and a launch takes on every GPU since 2013 (CUDA Programming Guide, compute capabilities), whatever a file says.
    double registers_per_thread() const { return at_most(255, count("sm.max_registers_per_thread")); }
    double threads_per_cta() const { return at_most(1024, count("sm.max_threads_per_cta")); }
    template <class Q>
    double number(std::string_view key, Per per = Per::gpu) const {
        return noted(key, machine_.number<Q>(key, per));
    }
    double cycles(std::string_view key) const;           ///< of a latency
    bool in_seconds(std::string_view key) const;  ///< whether it is given so: it takes as long at any clock
    double bandwidth(std::string_view key) const;        ///< B/s of the GPU
    double bandwidth_per_sm(std::string_view key) const; ///< B/clk: one SM's share
    double flops_per_cycle(std::string_view rate) const; ///< of one SM

    void note(std::string_view key) const;  ///< as missed, where the machine does not know it

    /// The first of `keys` that the machine knows; the last where it knows none.
    std::string_view first_known(std::initializer_list<std::string_view> keys) const;

  private:
    template <class Q>
    double noted(std::string_view key, const std::optional<Q>& number) const {
        if (!number) {
            note(key);
            return unknown_number;
        }
        if constexpr (std::is_same_v<Q, double>) return *number;
        else return number->value;
    }
    static double at_most(double most, double number) { return number > most ? most : number; }  // NaN stays unknown

    const Machine& machine_;
    std::optional<Clock> clock_;
    std::vector<std::string>* unknown_;
};

}  // namespace rooftile
