#include "rooftile/attention/formulas.hpp"

namespace rooftile {

std::span<const FormulaSection> attention_formulas() {
    static const std::vector<FormulaSection> all = [] {
        std::vector<FormulaSection> sections;
#define ROOFTILE_SECTION(TITLE) sections.push_back({TITLE, {}});
#define ROOFTILE_FORMULA(NAME, ...) sections.back().formulas.push_back(&attention_formula::NAME);
#include "rooftile/attention/formulas.def"
#undef ROOFTILE_SECTION
#undef ROOFTILE_FORMULA
        return sections;
    }();
    return all;
}

}  // namespace rooftile
