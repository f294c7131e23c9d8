// Sizes of products out of the parameters of launches that a GPU had: what the ranges around them say.
#include "rooftile/names/product_sizes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <sstream>

#include "tests/from_environment.hpp"
#include "tests/profile/made_profiles.hpp"

namespace rooftile {
namespace {

struct RecordedProduct {
    const DeviceWork* kernel;
    ProductSizes sizes;  ///< of its range
    std::string family;
};

std::string family_of(std::string_view name) {
    for (const char* family :
         {"nvjet", "cutlass7Kernel2I", "sm80_xmma_gemm", "sm90_xmma_gemm", "magma_sgemmEx_kernel", "gemmSN_TN_kernel", "gemmSN_NN_kernel"})
        if (name.find(family) != name.npos) return family;
    return "";
}

/// Each product that was recorded, with the sizes that the program asked for.
std::vector<RecordedProduct> products(const Recorded& r) {
    std::map<std::uint32_t, std::uint64_t> called;
    for (const DriverCall& call : r.calls) called[call.correlation] = call.start;
    std::vector<RecordedProduct> out;
    for (const DeviceWork& work : r.work) {
        if (family_of(work.name).empty()) continue;
        for (const NamedRange& range : r.ranges) {
            if (called.at(work.correlation) < range.start || called.at(work.correlation) > range.end) continue;
            std::istringstream words{std::string(range.name)};
            std::string shape, kind;
            ProductSizes s;
            words >> shape >> kind >> s.batch >> s.m >> s.n >> s.k;
            EXPECT_TRUE(words) << range.name;
            out.push_back({&work, s, family_of(work.name)});
        }
    }
    return out;
}

ProductSizes without_tiles(ProductSizes s) { return s.tiles = 0, s; }

/// The launch that adds the parts of K has the name and the parameters of the product, and another grid.
bool adds_parts(const RecordedProduct& p) {
    return p.family == "sm80_xmma_gemm" && p.kernel->grid[2] != p.kernel->parameters->word(640) * p.kernel->parameters->word(616);
}

TEST(ProductSizes, OfRecordedLaunchesAreThoseOfTheProgram) {
    const Recorded r = recorded_products();
    EXPECT_FALSE(r.cut);
    std::map<std::string, int> families, in_batches;
    for (const RecordedProduct& p : products(r)) {
        SCOPED_TRACE(std::string(p.kernel->name).substr(0, 100));
        ASSERT_NE(p.kernel->parameters, nullptr);
        const auto sizes = product_sizes(p.kernel->name, *p.kernel->parameters, p.kernel->grid);
        if (adds_parts(p)) {
            EXPECT_FALSE(sizes);
            continue;
        }
        ASSERT_TRUE(sizes);
        EXPECT_TRUE(without_tiles(*sizes) == p.sizes) << sizes->batch << " of " << sizes->m << "x" << sizes->n << "x" << sizes->k;
        if (p.family == "nvjet") { EXPECT_GT(sizes->tiles, 0); }
        ++families[p.family], in_batches[p.family] += p.sizes.batch > 1;
    }
    EXPECT_GE(families["nvjet"], 20);
    EXPECT_GE(families["cutlass7Kernel2I"], 15);
    EXPECT_GE(families["sm80_xmma_gemm"], 5);
    EXPECT_GE(families["sm90_xmma_gemm"], 4);
    EXPECT_EQ(families.size(), 7u);
    EXPECT_GE(in_batches["nvjet"], 3);
    EXPECT_GE(in_batches["cutlass7Kernel2I"], 3);
}

/// Where a family holds an extent once: nothing says that it is another.
std::vector<std::size_t> held_once(const std::string& family) {
    if (family == "cutlass7Kernel2I") return {0, 4, 8};
    if (family == "sm80_xmma_gemm") return {156, 160};
    if (family == "magma_sgemmEx_kernel") return {0, 4, 8};
    if (family.starts_with("gemmSN")) return {92, 96, 100};
    return {};
}

// Another version of a library may put other things in these places. A byte that is not what it was leaves the sizes, or there are none.
TEST(ProductSizes, ParametersThatDoNotAgreeHaveNone) {
    std::mt19937_64 random(test_seed());
    const Recorded r = recorded_products();
    for (const RecordedProduct& p : products(r)) {
        SCOPED_TRACE(std::string(p.kernel->name).substr(0, 100));
        const std::vector<std::size_t> once = held_once(p.family);
        const auto before = product_sizes(p.kernel->name, *p.kernel->parameters, p.kernel->grid);
        if (!before) continue;
        int changed = 0;
        for (std::size_t place = 0; place < p.kernel->parameters->bytes.size(); ++place) {
            if (std::ranges::any_of(once, [&](std::size_t word) { return place >= word && place < word + 4; })) continue;
            ParameterBytes other = *p.kernel->parameters;
            other.bytes[place] = char(other.bytes[place] ^ char(1 + random() % 255));
            const auto sizes = product_sizes(p.kernel->name, other, p.kernel->grid);
            if (sizes) { EXPECT_TRUE(without_tiles(*sizes) == without_tiles(*before)) << "byte " << place; }
            changed += !sizes;
        }
        if (p.family.find("xmma") != std::string::npos || p.family == "nvjet" || p.family == "cutlass7Kernel2I") { EXPECT_GE(changed, 16); }
        // Another grid than the one they say.
        if (p.family != "nvjet" && p.family != "sm90_xmma_gemm") {
            auto grid = p.kernel->grid;
            grid[2] += 1;
            EXPECT_FALSE(product_sizes(p.kernel->name, *p.kernel->parameters, grid));
        }
        // Cut anywhere, or all of one byte.
        ParameterBytes cut = *p.kernel->parameters;
        while (!cut.bytes.empty()) {
            cut.bytes.resize(cut.bytes.size() - 1 - random() % std::min<std::size_t>(cut.bytes.size(), 40));
            if (const auto sizes = product_sizes(p.kernel->name, cut, p.kernel->grid)) {
                EXPECT_TRUE(without_tiles(*sizes) == without_tiles(*before));
            }
        }
        for (const char fill : {'\0', '\1', '\x7f', '\xff'}) {
            cut.bytes.assign(p.kernel->parameters->bytes.size(), fill);
            EXPECT_FALSE(product_sizes(p.kernel->name, cut, p.kernel->grid)) << int(fill);
        }
    }
}

TEST(ProductSizes, OfOtherKernelsAreUnknown) {
    ParameterBytes p;
    p.bytes.assign(4096, '\1');
    for (const char* name : {"", "main", "_ZN7cutlass6KernelI4GemmEEv", "triton_mm", "sm70_xmma_gemm"})
        EXPECT_FALSE(product_sizes(name, p, {1, 1, 1})) << name;
}

}  // namespace
}  // namespace rooftile
