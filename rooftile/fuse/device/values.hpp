// The values of a program as C++: their names and the statements that compute them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "rooftile/fuse/program.hpp"

namespace rooftile {

/// Text of a program's values. Nothing that a person wrote becomes text but names, which get a suffix that no
/// keyword, macro or library name has: x_in, y_out, x_pack, x_k (of an element), x_row, x_all.
class FuseValues {
  public:
    FuseValues(const ExpressionGraph& graph, const Program& program);

    std::string input(int load) const;    ///< the pointer's name, "x_in"
    std::string output(int store) const;  ///< "y_out"
    std::string base(int value) const;    ///< "x", without suffix
    std::string name(int value) const;    ///< "x_k", "mean_3_row"
    std::string key(int value) const;     ///< of a dropout: its field among the arguments
    std::string keep(int value) const;    ///< of a dropout: its array of flags
    bool is_bool(int value) const;
    bool is_index(int value) const;
    /// Of the part that powers are taken from: its base, "reference_2_base"; PowerBase of the part's value.
    std::string power_base(int part) const { return base(part) + "_base"; }
    bool is_power_base(int value) const { return bases_of_powers_.contains(value); }

    /// What computing `targets` needs and is not in `known`, operands first; loads and numbers among it.
    std::vector<int> needed(const std::vector<int>& targets, const std::set<int>& known) const;
    /// Statements for the computed values among needed(); `known` grows by what they name. A value that is
    /// used once stands where it is used. `keep_index` follows a dropout's flags: "[k]", or empty. With
    /// `results`, the targets' own expressions go there, one a target; else every target gets a name.
    std::string statements(const std::vector<int>& targets, std::set<int>& known, const std::string& indent,
                           const std::string& keep_index, std::vector<std::string>* results = nullptr) const;
    /// How a value is written where it is used: its name, or a number; `as_float` turns flags into numbers.
    std::string use(int value, bool as_float) const;

  private:
    struct Text {
        std::string text;
        int strength = 0;  ///< how strongly its outermost sign binds
    };
    struct Scope;
    Text text_of(int value, const Scope& scope) const;
    Text operand(int value, const Scope& scope, bool as_float) const;
    std::string bracketed(int value, const Scope& scope, int least, bool as_float = true) const;
    Text compute(const ProgramValue& v, int index, const Scope& scope) const;
    std::string part(int value) const;
    std::vector<int> named_by(int value) const;

    const ExpressionGraph& graph_;
    const Program& program_;
    std::vector<int> power_from_;    ///< of a value: shared_base_of()
    std::set<int> bases_of_powers_;  ///< the parts among them
    std::vector<std::string> bases_;
    Element precision_;  ///< what the outputs ask for
};

/// "bf16", "fp16", "float", "boolean", "long long": a tensor's element in the kernel's text.
std::string_view kernel_type(Element element);
/// A number as an fp32 literal.
std::string float_literal(double value);

}  // namespace rooftile
