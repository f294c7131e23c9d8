#include "rooftile/gemm/formulas.hpp"

namespace rooftile {

std::span<const FormulaSection> gemm_formulas() {
    static const std::vector<FormulaSection> all = [] {
        std::vector<FormulaSection> sections;
#define ROOFTILE_SECTION(TITLE) sections.push_back({TITLE, {}});
#define ROOFTILE_FORMULA(NAME, ...) sections.back().formulas.push_back(&gemm_formula::NAME);
#include "rooftile/gemm/formulas.def"
#undef ROOFTILE_SECTION
#undef ROOFTILE_FORMULA
        return sections;
    }();
    return all;
}

}  // namespace rooftile
