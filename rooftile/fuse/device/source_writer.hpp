// The parts that all generated kernels share; internal to fuse_source.
#pragma once

#include <fmt/core.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/fuse/device/values.hpp"
#include "rooftile/fuse/plan.hpp"

namespace rooftile {

/// Collects lines of a kernel.
class SourceWriter {
  public:
    explicit SourceWriter(const FusePlan& plan);

    template <class... Args>
    void line(int depth, fmt::format_string<Args...> text, Args&&... args) {
        const std::string formatted = fmt::format(text, std::forward<Args>(args)...);
        out_ += (formatted.empty() ? "" : std::string(size_t(depth) * 4, ' ') + formatted) + "\n";
    }
    void raw(const std::string& text) { out_ += text; }
    void unroll() { out_ += "#pragma unroll\n"; }

    /// The comment on top, the includes, the namespace and the struct of tensors.
    void preamble(std::string_view story);
    void kernel_head(const std::string& bounds);
    void closing();

    const ProgramValue& value(int i) const { return program.values[size_t(i)]; }
    std::vector<int> values_where(bool (*wanted)(const ProgramValue&)) const;
    std::string type_of_load(int value) const;
    std::string type_of_store(int store) const;
    /// What a load of rows tells L2, as its template argument: to give them up last, where about as much is written.
    /// The same bytes then take less time; where little is written they take more (docs/facts.md 87).
    std::string_view read_policy() const;
    /// The tensor's row for the loop's `row`, as an expression.
    std::string row_text(const Access& access, std::string_view row) const;
    /// Whether a dropout keeps its one value of `row`, or of everything.
    void keep_one(int depth, int dropout, std::string_view row);
    /// Statements for values that are the same everywhere: their loads and what follows from them.
    void uniform_values(int depth, std::set<int>& known, const std::vector<int>& wanted);

    std::string take() { return std::move(out_); }

    const FusePlan& plan;
    const Program& program;
    const FuseConfig& config;
    FuseValues values;
    std::string index;  ///< "unsigned" or "long long": counts vectors

  private:
    std::string out_;
};

/// Of a point-wise kernel or a whole reduction; of one with rows.
std::string pointwise_text(const FusePlan& plan);
std::string rows_text(const FusePlan& plan);
/// Of one with reductions of columns.
std::string columns_text(const FusePlan& plan);

}  // namespace rooftile
