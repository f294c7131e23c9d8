// Groups of a GEMM's rows: A and C hold them one behind the other, each meets a matrix of B of its own, as the experts of a
// layer meet the tokens that were sent to them. How many rows each has is what a plan is made for; a launch reads it on the device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/field.hpp"

namespace rooftile {

/// Immutable: rows of each group, any of them 0.
class GemmGroups {
  public:
    explicit GemmGroups(std::vector<std::int64_t> rows);

    std::span<const std::int64_t> rows() const { return rows_; }
    std::int64_t count() const { return std::int64_t(rows_.size()); }
    std::int64_t total() const { return total_; }          ///< rows of all
    std::int64_t with_rows() const { return with_rows_; }  ///< groups that have any
    std::int64_t longest() const { return longest_; }      ///< rows of a group
    /// Tiles of `height` rows, of which none has rows of two groups.
    std::int64_t tiles(std::int64_t height) const;
    /// Most tiles of that height that as many groups of as many rows in all may take.
    std::int64_t max_tiles(std::int64_t height) const;
    /// Groups of about as many rows: within a factor of two, and the mean of them.
    struct Alike {
        std::int64_t groups = 0;
        double rows = 0;
    };
    std::span<const Alike> alike() const { return alike_; }
    /// Where each begins, and the last one's end.
    std::vector<std::int32_t> offsets() const;

  private:
    std::vector<std::int64_t> rows_;
    std::vector<Alike> alike_;
    std::vector<std::int64_t> tiles_;  // of heights 8, 16, ..: the search asks again and again
    std::int64_t total_ = 0, with_rows_ = 0, longest_ = 0;
};

/// Null: none. Equal where the rows are.
class SharedGroups {
  public:
    SharedGroups() = default;
    explicit SharedGroups(std::vector<std::int64_t> rows) : own_(std::make_shared<const GemmGroups>(std::move(rows))) {}
    explicit operator bool() const { return own_ != nullptr; }
    const GemmGroups* operator->() const { return own_.get(); }
    const GemmGroups& operator*() const { return *own_; }
    /// As gemm_groups() reads it, "8x1024,0,17"; empty where there are none.
    std::string text() const;
    friend bool operator==(const SharedGroups& x, const SharedGroups& y) { return x.text() == y.text(); }

  private:
    std::shared_ptr<const GemmGroups> own_;
};

inline constexpr std::int64_t max_gemm_groups = 1024;  ///< that a kernel counts

/// Of "1,7,512", "8x1024,0,17" (8 groups of 1024), "128x[64..512]" (128 groups, each count of rows as likely as any other, the same
/// ones every time). `total` rows, 0: as the text says; what is drawn is scaled to it. `name`: of what has the text. Throws
/// RequestError, one line.
SharedGroups gemm_groups(std::string_view text, std::int64_t total, std::string_view name);
/// Of a request's groups: such a text, or a flag's name of a file with such lists, one or more to the line.
SharedGroups gemm_groups(const Given& given, std::int64_t total);
/// How many groups a list has of which none has a row; 0: one has, or it is no list.
std::size_t groups_without_rows(std::string_view text);

}  // namespace rooftile
