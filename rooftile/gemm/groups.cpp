#include "rooftile/gemm/groups.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <numeric>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t step = 8;            // tiles' heights are multiples of it
constexpr std::int64_t most_height = 1024;  // 256 rows of a tile, 2 of a cluster, and room
constexpr std::int64_t max_rows = 2147483647;
constexpr std::uint64_t draw_seed = 1;

std::int64_t sum_of_tiles(std::span<const std::int64_t> rows, std::int64_t height) {
    std::int64_t tiles = 0;
    for (std::int64_t r : rows) tiles += (r + height - 1) / height;
    return tiles;
}

}  // namespace

GemmGroups::GemmGroups(std::vector<std::int64_t> rows) : rows_(std::move(rows)) {
    for (std::int64_t r : rows_) total_ += r, with_rows_ += r > 0 ? 1 : 0, longest_ = std::max(longest_, r);
    std::vector<Alike> bins(64);
    for (std::int64_t r : rows_)
        if (r > 0) ++bins[std::size_t(std::bit_width(std::uint64_t(r)))].groups, bins[std::size_t(std::bit_width(std::uint64_t(r)))].rows += double(r);
    for (Alike& bin : bins)
        if (bin.groups > 0) bin.rows /= double(bin.groups), alike_.push_back(bin);
    for (std::int64_t height = step; height <= most_height; height += step) tiles_.push_back(sum_of_tiles(rows_, height));
}

std::int64_t GemmGroups::tiles(std::int64_t height) const {
    if (height % step == 0 && height <= most_height) return tiles_[std::size_t(height / step - 1)];
    return sum_of_tiles(rows_, height);
}

// One row in a tile of its own from each group but one, which has the rest.
std::int64_t GemmGroups::max_tiles(std::int64_t height) const {
    const std::int64_t alone = std::min(count() - 1, total_ - 1);
    return alone + ceil_div(total_ - alone, height);
}

std::vector<std::int32_t> GemmGroups::offsets() const {
    std::vector<std::int32_t> out{0};
    for (std::int64_t r : rows_) out.push_back(out.back() + std::int32_t(r));
    return out;
}

std::string SharedGroups::text() const {
    std::string out;
    if (!own_) return out;
    const auto rows = own_->rows();
    for (std::size_t first = 0, end = 0; first < rows.size(); first = end) {
        while (end < rows.size() && rows[end] == rows[first]) ++end;
        out += fmt::format("{}{}{}", first == 0 ? "" : ",", end - first > 1 ? fmt::format("{}x", end - first) : "", rows[first]);
    }
    return out;
}

namespace {

constexpr std::string_view forms_of_groups = "rows of each group as 1,7,512, or 8x1024, or 128x[64..512]; a flag may name a file of them";

/// Reads a list from left to right.
class GroupsReader {
  public:
    GroupsReader(std::string_view text, std::string_view shown) : text_(text), shown_(shown) {}

    /// Whether a draw was among them.
    bool read(std::vector<std::int64_t>& rows) {
        Random random(draw_seed);
        bool drawn = false;
        skip_blanks();
        while (at_ < text_.size()) {
            std::int64_t count = 1, least = number();
            if (taken('x')) {
                count = least;
                if (count < 1) refuse("as many groups as 0");
                if (count + std::int64_t(rows.size()) > max_gemm_groups) too_many(count + std::int64_t(rows.size()));
                if (taken('[')) {
                    least = number();
                    if (!taken('.') || !taken('.')) refuse("a range is [LO..HI]");
                    const std::int64_t most = number();
                    if (!taken(']')) refuse("a range ends with ]");
                    if (most < least) refuse(fmt::format("[{}..{}] is empty", least, most));
                    for (std::int64_t i = 0; i < count; ++i) rows.push_back(random.whole(least, most));
                    drawn = true, count = 0;
                } else least = number();
            }
            rows.insert(rows.end(), std::size_t(count), least);
            if (std::int64_t(rows.size()) > max_gemm_groups) too_many(std::int64_t(rows.size()));
            const bool blank = skip_blanks();
            if (at_ < text_.size() && !taken(',') && !blank) refuse(fmt::format("no {} is expected here", printable(text_.substr(at_, 1))));
            skip_blanks();
        }
        if (rows.empty()) refuse("there is no group in it");
        return drawn;
    }

  private:
    [[noreturn]] void refuse(std::string_view why) const {
        throw RequestError(fmt::format("{}: {}; accepted are {}", shown_, why, forms_of_groups));
    }
    [[noreturn]] void too_many(std::int64_t count) const {
        throw RequestError(fmt::format("{}: {} groups and more; at most {} are taken", shown_, count, max_gemm_groups));
    }
    bool taken(char c) {
        const bool is = at_ < text_.size() && text_[at_] == c;
        at_ += is ? 1 : 0;
        return is;
    }
    bool skip_blanks() {
        const std::size_t before = at_;
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) ++at_;
        return at_ > before;
    }
    std::int64_t number() {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
        const std::string_view word = text_.substr(at_, text_.find_first_of(" ,x[].\n\r\t", at_) - at_);
        if (error == std::errc::result_out_of_range || value > max_rows)
            refuse(fmt::format("{} is more than {} rows", printable(word), max_rows));
        if (error != std::errc() || value < 0)
            refuse(at_ < text_.size() ? fmt::format("{} is no count of rows", word.empty() ? printable(text_.substr(at_, 1)) : printable(word))
                                      : "a number is missing at its end");
        at_ = std::size_t(end - text_.data());
        return value;
    }

    std::string_view text_, shown_;
    std::size_t at_ = 0;
};

/// To that sum: in proportion, and what rounding leaves one by one to the first.
void scale(std::vector<std::int64_t>& rows, std::int64_t total) {
    const double all = double(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}));
    if (all == 0) rows.assign(rows.size(), 1);
    const double factor = double(total) / (all == 0 ? double(rows.size()) : all);
    std::int64_t given = 0;
    for (std::int64_t& r : rows) given += r = std::int64_t(double(r) * factor);
    for (std::size_t i = 0; given < total; i = (i + 1) % rows.size()) ++rows[i], ++given;
}

/// `shown`: what errors call it.
SharedGroups listed(std::string_view list, std::string_view shown, std::int64_t total) {
    std::vector<std::int64_t> rows;
    const bool drawn = GroupsReader(list, shown).read(rows);
    const std::int64_t sum = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
    if (total > 0 && sum != total) {
        if (!drawn)
            throw RequestError(fmt::format("{}: {} rows in all, but m = {}; leave m out or make them agree", shown, sum, total));
        scale(rows, total);
    }
    if (total == 0 && sum == 0) throw RequestError(fmt::format("{}: nothing to do, all groups are empty; one needs a row at least", shown));
    if (std::max(sum, total) > max_rows) throw RequestError(fmt::format("{}: {} rows in all; at most {} are taken", shown, sum, max_rows));
    return SharedGroups(std::move(rows));
}

}  // namespace

SharedGroups gemm_groups(std::string_view text, std::int64_t total, std::string_view name) {
    return listed(text, fmt::format("{} {}", name, printable(text)), total);
}

SharedGroups gemm_groups(const Given& given, std::int64_t total) {
    const std::string& text = given.text("groups");
    const std::string shown = fmt::format("{} {}", given.name("groups"), printable(text));
    if (text.find_first_not_of("0123456789,x[]. ") == text.npos && text.find_first_of("0123456789") == 0)
        return listed(text, shown, total);
    const auto content = given.named_file("groups");
    if (!content)
        throw RequestError(fmt::format("{}: no list, and no such file that a flag names; accepted are {}", shown, forms_of_groups));
    return listed(*content, shown, total);
}

std::size_t groups_without_rows(std::string_view text) {
    std::vector<std::int64_t> rows;
    try {
        if (text.empty()) return 0;
        GroupsReader(text, text).read(rows);
    } catch (const RequestError&) { return 0; }
    return std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) == 0 ? rows.size() : 0;
}

}  // namespace rooftile
