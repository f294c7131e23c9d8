// Values of point-wise operators as C++ of a kernel: the statements that compute some of them from others. It knows
// operators and names; where an operand comes from is its caller's matter.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/expression/operators.hpp"

namespace rooftile {

enum class CodeKind : std::uint8_t {
    named,     ///< a variable that stands there already
    number,    ///< written where it is used
    computed,  ///< by a point-wise operator
    written,   ///< by text of the caller's own
};

/// One value of a kernel. All are float but flags and indices.
struct CodeValue {
    CodeKind kind = CodeKind::named;
    std::string name{};  ///< of the variable
    Op op = Op::input;   ///< of what is computed
    /// Earlier values, first what the operator takes; what stands behind must be known before it.
    std::vector<int> operands{};
    Element element = Element::fp32;    ///< boolean: a flag; int64: an index; a cast rounds to it
    double value = 0;                   ///< of a number; p of dropout
    Element precision = Element::fp32;  ///< what is asked of the operator's device function
    bool keeps_name = false;            ///< a person named it: it gets a variable, even if used but once
    std::string text{};  ///< what is written (binds as a product); what is called in the operator's place
    std::string mask{};  ///< of a dropout: its flags
};

/// A piece of text, and how strongly its outermost sign binds (precedence of operators.hpp; below that ?: and &&).
struct CodeText {
    std::string text{};
    int strength = 0;
};

/// Values that stand where they are used, and what follows the flags of a dropout.
struct CodeScope {
    std::map<int, CodeText> inlined{};
    std::string mask_index{};  ///< "[k]", or empty
};

class ValueEmitter {
  public:
    explicit ValueEmitter(std::vector<CodeValue> values) : values_(std::move(values)) {}

    const CodeValue& value(int i) const { return values_[std::size_t(i)]; }
    bool is_flag(int i) const { return value(i).element == Element::boolean; }
    bool is_index(int i) const { return value(i).element == Element::int64; }

    /// What computing `targets` needs and is not in `known`, operands first; named values and numbers among it.
    std::vector<int> needed(const std::vector<int>& targets, const std::set<int>& known) const;
    /// Statements for the computed and written values among needed(); `known` grows by what they name. A value that is
    /// used once stands where it is used. `mask_index` follows a dropout's flags. With `results`, the targets' own
    /// expressions go there, one a target; else every target gets a variable.
    std::string statements(const std::vector<int>& targets, std::set<int>& known, const std::string& indent,
                           const std::string& mask_index, std::vector<std::string>* results = nullptr) const;
    /// How a value is written where it is used: its name, or a number; `as_float` turns flags and indices into numbers.
    std::string use(int i, bool as_float) const;

  private:
    friend class CodeOperands;
    CodeText operand(int i, const CodeScope& scope, bool as_float) const;
    CodeText text_of(int i, const CodeScope& scope) const;
    std::vector<CodeValue> values_;
};

/// The operands of one value, for the text of its operator.
class CodeOperands {
  public:
    CodeOperands(const ValueEmitter& emitter, const CodeValue& value, const CodeScope& scope)
        : emitter_(emitter), value_(value), scope_(scope) {}

    const CodeValue& value() const { return value_; }
    const CodeValue& operand(std::size_t i) const { return emitter_.value(value_.operands[i]); }
    CodeText text(std::size_t i, bool as_float = true) const;
    /// In brackets where it binds less than `least`.
    std::string bracketed(std::size_t i, int least, bool as_float = true) const;
    std::string mask() const { return value_.mask + scope_.mask_index; }
    /// "f(x, y)".
    CodeText call(std::string_view function) const;

  private:
    const ValueEmitter& emitter_;
    const CodeValue& value_;
    const CodeScope& scope_;
};

CodeText negation_code(const CodeOperands& operands);
CodeText power_code(const CodeOperands& operands);
CodeText cast_code(const CodeOperands& operands);
CodeText where_code(const CodeOperands& operands);
CodeText dropout_code(const CodeOperands& operands);

/// "bf16", "fp16", "float", "boolean", "long long": a tensor's element in a kernel's text.
std::string_view kernel_type(Element element);
/// A number as an fp32 literal.
std::string float_literal(double value);

}  // namespace rooftile
