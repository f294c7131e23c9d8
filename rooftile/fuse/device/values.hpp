// The values of a program as C++: their names, and what ValueEmitter needs to know of them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "rooftile/expression/emit.hpp"
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
    bool is_bool(int value) const { return emitter_.is_flag(value); }
    bool is_index(int value) const { return emitter_.is_index(value); }
    /// Of the part that powers are taken from: its base, "reference_2_base"; PowerBase of the part's value.
    std::string power_base(int part) const { return base(part) + "_base"; }
    bool is_power_base(int value) const { return bases_of_powers_.contains(value); }
    /// Whether powers are taken of differences from it: "greatest_4_powers".
    bool is_greatest_of_powers(int value) const { return greatests_.contains(value); }

    /// Those of ValueEmitter.
    std::vector<int> needed(const std::vector<int>& targets, const std::set<int>& known) const {
        return emitter_.needed(targets, known);
    }
    std::string statements(const std::vector<int>& targets, std::set<int>& known, const std::string& indent,
                           const std::string& keep_index, std::vector<std::string>* results = nullptr) const {
        return emitter_.statements(targets, known, indent, keep_index, results);
    }
    std::string use(int value, bool as_float) const { return emitter_.use(value, as_float); }

  private:
    CodeValue code_value(int value) const;
    std::string part(int value) const;

    const ExpressionGraph& graph_;
    const Program& program_;
    std::vector<Element> precisions_;  ///< of the graph's nodes
    std::vector<int> power_from_;    ///< of a value: shared_base_of()
    std::set<int> bases_of_powers_;  ///< the parts among them
    std::set<int> greatests_;        ///< parts that powers are taken from by differences
    std::vector<std::string> bases_;
    ValueEmitter emitter_;
};

}  // namespace rooftile
