// What launches that a GPU had worked on, out of their parameters; and what changed parameters make of it.
#include "rooftile/names/kernel_sizes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/from_environment.hpp"
#include "tests/profile/made_profiles.hpp"

namespace rooftile {
namespace {

using testing::ElementsAre;

const Recorded& passes() {
    static const Recorded recorded = recorded_passes();
    return recorded;
}

std::optional<KernelSizes> sizes_of(const DeviceWork& w) {
    return sizes_of_launch(w.name, decode(w.name), *w.parameters, {w.grid, w.block});
}

/// Of the first launch whose name has all parts and whose grid is that wide.
template <class Sizes>
Sizes sizes_of(std::initializer_list<std::string_view> parts, int grid) {
    for (const DeviceWork& w : passes().work) {
        bool has = w.grid[0] == grid;
        for (const std::string_view part : parts) has = has && w.name.find(part) != w.name.npos;
        if (!has) continue;
        const auto sizes = sizes_of(w);
        if (!sizes || !std::holds_alternative<Sizes>(*sizes)) break;
        return std::get<Sizes>(*sizes);
    }
    ADD_FAILURE() << "no such launch, or other sizes: grid " << grid;
    return {};
}

// silu of 2048 x 14336 in bf16: 2 bytes an element read, and written; 128 threads of 8 elements a CTA, 29360128 / 1024 = 28672 CTAs.
TEST(KernelSizes, ElementsInARow) {
    const auto s = sizes_of<PassSizes>({"vectorized_elementwise_kernel", "silu_kernel"}, 28672);
    EXPECT_THAT(s.extents, ElementsAre(29360128));
    EXPECT_EQ(s.read_bytes(), 58720256);
    EXPECT_EQ(s.written_bytes(), 58720256);
    EXPECT_EQ(s.vector_width, 8);
    EXPECT_EQ(s.thread_elements, 8);
    EXPECT_TRUE(s.alike);
    // A cast reads 4 bytes and writes 2.
    const auto cast = sizes_of<PassSizes>({"bfloat16_copy_kernel"}, 16384);
    EXPECT_EQ(cast.read_bytes(), 4 * 16777216);
    EXPECT_EQ(cast.written_bytes(), 2 * 16777216);
    // x + x: one tensor, read once (33554432 elements in 32768 CTAs).
    const auto twice = sizes_of<PassSizes>({"vectorized_elementwise_kernel", "CUDAFunctor_add"}, 32768);
    EXPECT_TRUE(twice.again);
    EXPECT_EQ(twice.read_bytes(), twice.written_bytes());
    // The functor takes float; memory holds bf16, whose code is 15, and fp32.
    const auto looked_up = sizes_of<PassSizes>({"unrolled_elementwise_kernel", "direct_copy"}, 25088);
    EXPECT_TRUE(looked_up.types_at_run_time);
    EXPECT_EQ(looked_up.read.at(0).type, "bf16");
    EXPECT_EQ(looked_up.written.at(0).type, "fp32");
    EXPECT_EQ(looked_up.written_bytes(), 4 * 12845056);
}

// Queries of 2048 tokens, 32 heads of 128, times cosines of 2048 x 128, which the heads share: strides 2, 256 (none of the cosines), 8192 and 256.
TEST(KernelSizes, ElementsByPlace) {
    const auto s = sizes_of<PassSizes>({"18elementwise_kernelILi128", "MulFunctor"}, 16384);
    EXPECT_EQ(s.divided_axes, int(s.extents.size()));
    EXPECT_EQ(s.elements(), 8388608);
    EXPECT_TRUE(s.alike);
    EXPECT_EQ(s.read.size(), 2u);
    EXPECT_EQ(s.read[0].bytes, 16777216);
    EXPECT_LT(s.read[1].bytes, 16777216);
    // Heads of 64 beside what is not negated: rows of 128 bytes, 256 apart.
    const auto negated = sizes_of<PassSizes>({"18elementwise_kernelILi128", "neg_kernel"}, 8192);
    EXPECT_THAT(negated.extents, ElementsAre(65536, 64));
    EXPECT_FALSE(negated.alike);
    EXPECT_FALSE(negated.scattered);
    EXPECT_EQ(negated.read_bytes(), 2 * 4194304);
    // A transpose has neighbours apart.
    EXPECT_TRUE(sizes_of<PassSizes>({"18elementwise_kernelILi128", "direct_copy"}, 65536).scattered);
}

TEST(KernelSizes, RowsAndReductions) {
    const auto norm = sizes_of<PassSizes>({"vectorized_layer_norm_kernel"}, 2048);
    EXPECT_THAT(norm.extents, ElementsAre(2048, 4096));
    EXPECT_EQ(norm.read_bytes(), 2 * (2048 * 4096 + 4096));  // the rows and one factor a column
    EXPECT_EQ(norm.row_threads, 128);
    const auto warps = sizes_of<PassSizes>({"softmax_warp_forward"}, 32768);
    EXPECT_THAT(warps.extents, ElementsAre(131072, 2048));
    EXPECT_EQ(warps.read_bytes(), 4ll * 131072 * 2048);
    EXPECT_EQ(warps.row_threads, 32);
    EXPECT_THAT(sizes_of<PassSizes>({"cunn_SoftMaxForward"}, 8192).extents, ElementsAre(8192, 4096));
    // 8192 sums of 4096: 16 of a CTA, 512 CTAs.
    const auto sum = sizes_of<PassSizes>({"reduce_kernel", "sum_functor"}, 512);
    EXPECT_THAT(sum.extents, ElementsAre(8192, 4096));
    EXPECT_EQ(sum.written_bytes(), 2 * 8192);
    EXPECT_EQ(sum.row_threads, 32);
    // The functor before the numbers is another size.
    EXPECT_EQ(sizes_of<PassSizes>({"reduce_kernel", "ArgMax"}, 512).written_bytes(), 8 * 8192);
    const auto joined = sizes_of<PassSizes>({"CatArrayBatchedCopyINS"}, 264);
    EXPECT_EQ(joined.divided_axes, 4);
    EXPECT_EQ(joined.read_bytes(), joined.written_bytes());
    EXPECT_EQ(sizes_of<PassSizes>({"CatArrayBatchedCopy_vectorized"}, 4224).written_bytes(), 2ll * 8192 * 8192);
}

TEST(KernelSizes, QueriesAndKeys) {
    const auto flash = sizes_of<HeadSizes>({"flash_fwd_kernel"}, 16);
    EXPECT_EQ(flash, (HeadSizes{4, 16, 16, 2048, 2048, 128, 128, true}));
    const auto cudnn = sizes_of<HeadSizes>({"sdpa_sm90_flash_fprop"}, 132);
    EXPECT_EQ(cudnn, (HeadSizes{1, 32, 8, 2048, 2048, 128, 128, {}}));
}

// A word of the parameters made another number: never a fault, and never sizes that no memory holds.
TEST(KernelSizes, OfChangedParameters) {
    std::mt19937 random{unsigned(test_seed())};
    int refused = 0;
    for (const DeviceWork& w : passes().work) {
        const KernelName name = decode(w.name);
        for (std::size_t i = 0; i < test_count(40, 4000); ++i) {
            ParameterBytes p = *w.parameters;
            const std::size_t at = random() % std::max<std::size_t>(1, p.bytes.size() / 4) * 4;
            for (std::size_t byte = 0; byte < 4 && at + byte < p.bytes.size(); ++byte) p.bytes[at + byte] = char(random());
            const auto sizes = sizes_of_launch(w.name, name, p, {w.grid, w.block});
            refused += !sizes;
            if (const auto* pass = sizes ? std::get_if<PassSizes>(&*sizes) : nullptr) {
                EXPECT_GT(pass->elements(), 0);
                EXPECT_LT(double(pass->read_bytes()) + double(pass->written_bytes()), 1e15);
            }
        }
        ParameterBytes cut = *w.parameters;
        cut.bytes.resize(cut.bytes.size() / 2);
        sizes_of_launch(w.name, name, cut, {w.grid, w.block});
        cut.places.clear(), cut.bytes.clear();
        EXPECT_FALSE(sizes_of_launch(w.name, name, cut, {w.grid, w.block})) << w.name;
        // Another grid is another launch. Rows that a CTA each has are the grid, so that they are as many as it says.
        const auto other = sizes_of_launch(w.name, name, *w.parameters, {{w.grid[0] * 3 + 1, w.grid[1], w.grid[2]}, w.block});
        if (w.name.find("layer_norm") == w.name.npos && w.name.find("cunn_") == w.name.npos && w.name.find("CatArray") == w.name.npos
            && w.name.find("sdpa") == w.name.npos) {
            EXPECT_FALSE(other) << w.name;
        }
    }
    EXPECT_GT(refused, 0);
}

TEST(KernelSizes, OfOperatorsRanges) {
    KernelName product, attention;
    product.role = "gemm";
    attention.role = "attention", attention.operation = "forward", attention.family = "cudnn";
    const auto of = [](std::string_view range, const KernelName& name) { return sizes_of_range(range, name); };
    EXPECT_EQ(of("aten::addmm, seq = 1, sizes = [[8], [3, 4], [4, 8], [], []]", product), KernelSizes(ProductSizes{1, 3, 8, 4, 0}));
    EXPECT_EQ(of("aten::bmm, sizes = [[2, 3, 4], [2, 4, 8]], input_op_ids = [[1,0]]", product), KernelSizes(ProductSizes{2, 3, 8, 4, 0}));
    EXPECT_EQ(of("aten::linear, sizes = [[2, 3, 4], [8, 4], []]", product), KernelSizes(ProductSizes{1, 6, 8, 4, 0}));
    EXPECT_EQ(of("aten::_scaled_dot_product_cudnn_attention, sizes = [[1, 32, 9, 64], [1, 8, 7, 64], [1, 8, 7, 64], []]", attention),
              KernelSizes(HeadSizes{1, 32, 8, 9, 7, 64, 64, {}}));
    EXPECT_EQ(of("aten::_flash_attention_forward, sizes = [[1, 9, 32, 64], [1, 7, 8, 64], [1, 7, 8, 64]]", attention),
              KernelSizes(HeadSizes{1, 32, 8, 9, 7, 64, 64, {}}));
    for (const char* none : {"", "aten::mm", "aten::mm, sizes = ", "aten::mm, sizes = [[3, 4], [4", "aten::mm, sizes = [[3, 4]]",
                             "aten::mm, sizes = [[3, 4], [5, 6]]", "aten::mm, sizes = [[], []]", "mm, sizes = [[3, 4], [4, 8]]",
                             "aten::mm, sizes = [[99999999999999999999, 4], [4, 8]]", "aten::conv2d, sizes = [[1, 3, 8, 8], [4, 3, 3, 3]]"})
        EXPECT_FALSE(of(none, product)) << none;
    EXPECT_FALSE(
        of("aten::_scaled_dot_product_flash_attention_backward, sizes = [[1, 32, 9, 64], [1, 8, 7, 64], [1, 8, 7, 64]]", attention));
    EXPECT_FALSE(of("aten::_flash_attention_forward, sizes = [[1, 9, 30, 64], [1, 7, 8, 64], [1, 7, 8, 64]]", attention));  // 30 heads of 8
    EXPECT_FALSE(of("aten::mm, sizes = [[3, 4], [4, 8]]", KernelName{}));
}

}  // namespace
}  // namespace rooftile
