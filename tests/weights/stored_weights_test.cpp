// Weights of published formats, encoded here from known numbers, come back as these numbers; files that are cut or hold something else are
// refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "kernels/measure/numbers.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/weights/pack_stored.hpp"
#include "tests/folder.hpp"
#include "tests/weights/files.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

std::string half(double value) { return FileText().number(std::uint16_t(round_to_bits(value, Type::fp16))).data(); }

class StoredWeightsTest : public testing::Test {
  protected:
    std::string write(const std::string& text, const std::string& name = "model") const {
        const std::string path = (folder_.path() / name).string();
        write_bytes(path, text);
        return path;
    }
    static std::string error_of(const std::string& path, const std::string& tensor) {
        try {
            const WeightsFile file(path);
            const auto weights = stored_weights(file, tensor);
            weights->rows({0, weights->n});
        } catch (const RequestError& error) { return error.what(); }
        return "";
    }
    Folder folder_;
};

// Row r has the scale (r + 1) / 8 and weight i of its block (i * 7 + r) % 16 - 8: the first 16 in low halves of bytes, the others in high
// ones.
TEST_F(StoredWeightsTest, ReadsQ4_0) {
    std::string data;
    const auto weight = [](int row, int i) { return (i * 7 + row) % 16 - 8; };
    for (int row = 0; row < 3; ++row)
        for (int block = 0; block < 2; ++block) {
            data += half((row + 1) / 8.0);
            for (int i = 0; i < 16; ++i) data += static_cast<char>((weight(row, i) + 8) | (weight(row, 16 + i) + 8) << 4);
        }
    const WeightsFile file(write(gguf_text({{"norm", 0, {2}, std::string(8, 'x')}, {"w", 2, {64, 3}, data}})));
    const auto weights = stored_weights(file, "w");
    EXPECT_EQ(weights->format, "Q4_0");
    EXPECT_EQ(weights->n, 3);
    EXPECT_EQ(weights->k, 64);
    EXPECT_EQ(weights->file_bytes, 3 * 2 * 18);
    const PlainRows rows = weights->rows({1, 2});
    std::vector<double> values(64);
    for (int row = 1; row < 3; ++row) {
        rows.values(row - 1, values);
        for (int i = 0; i < 64; ++i) ASSERT_EQ(values[std::size_t(i)], weight(row, i % 32) * (row + 1) / 8.0);
    }
}

// A block is a scale and 32 bytes with a sign.
TEST_F(StoredWeightsTest, ReadsQ8_0) {
    std::string data;
    for (int block = 0; block < 2 * 2; ++block) {
        data += half((block + 1) / 4.0);
        for (int i = 0; i < 32; ++i) data += static_cast<char>(i * 8 - 128);
    }
    const WeightsFile file(write(gguf_text({{"w", 8, {64, 2}, data}})));
    const auto weights = stored_weights(file, "w");
    EXPECT_EQ(weights->weights, "int8");
    std::vector<double> values(64);
    for (int row = 0; row < 2; ++row) {
        weights->rows({row, 1}).values(0, values);
        for (int i = 0; i < 64; ++i) ASSERT_EQ(values[std::size_t(i)], (i % 32 * 8 - 128) * (row * 2 + i / 32 + 1) / 4.0);
    }
}

// Row r has the scales 2^r and 2^(r + 1), then e2m1's 16 numbers, the first 16 weights those of low halves; and a block of zeros, whose scale is 2^-127.
TEST_F(StoredWeightsTest, ReadsMxfp4) {
    static constexpr double numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const auto code = [](int row, int i) { return (i * 5 + row) % 16; };
    std::string data;
    for (int row = 0; row < 2; ++row) {
        for (int block = 0; block < 2; ++block) {
            data += static_cast<char>(127 + row + block);
            for (int i = 0; i < 16; ++i) data += static_cast<char>(code(row, i) | code(row, 16 + i) << 4);
        }
        data += std::string(17, '\0');
    }
    const WeightsFile file(write(gguf_text({{"w", 39, {96, 2}, data}})));
    const auto weights = stored_weights(file, "w");
    EXPECT_EQ(weights->format, "MXFP4");
    EXPECT_EQ(weights->weights, "mxfp4");
    EXPECT_EQ(weights->scale, "e8m0");
    const PackTask task = pack_task(*weights, "");
    std::vector<unsigned char> packed(static_cast<std::size_t>(task.bytes));
    EXPECT_EQ(pack_stored(task, *weights, packed).mean_square, 0);
    std::vector<double> values(96), unpacked(96);
    for (int row = 0; row < 2; ++row) {
        weights->rows({row, 1}).values(0, values);
        facet_of<Packs>(*task.operation)->unpack_rows(task.problem, {row, 1}, packed, unpacked);
        for (int i = 0; i < 96; ++i) {
            const int q = code(row, i % 32);
            const double expected = i >= 64 ? 0 : (q < 8 ? 1 : -1) * numbers[q % 8] * std::exp2(row + i / 32);
            ASSERT_EQ(values[std::size_t(i)], expected);
            ASSERT_EQ(unpacked[std::size_t(i)], expected);
        }
    }
    EXPECT_THROW(pack_task(*weights, "fp16"), RequestError);
}

// A block's groups have scales and minima of 6 bits, s[g] and m[g]: bytes 0 .. 3 hold s[0 .. 3], bytes 4 .. 7 m[0 .. 3], and on top of
// these the high 2 bits of s[4 .. 7] and m[4 .. 7], whose low 4 bits are the halves of bytes 8 .. 11.
TEST_F(StoredWeightsTest, ReadsQ4_K) {
    Random random(1);
    std::vector<double> expected;
    std::string data;
    for (int block = 0; block < 2 * 2; ++block) {
        const double d = (block + 1) / 64.0, least = (block + 2) / 32.0;
        int s[8], m[8], q[256];
        for (int g = 0; g < 8; ++g) s[g] = int(random.whole(0, 63)), m[g] = int(random.whole(0, 63));
        for (int& each : q) each = int(random.whole(0, 15));
        for (int i = 0; i < 256; ++i) expected.push_back(d * s[i / 32] * q[i] - least * m[i / 32]);
        data += half(d) + half(least);
        for (int g = 0; g < 4; ++g) data += static_cast<char>(s[g] | s[g + 4] >> 4 << 6);
        for (int g = 0; g < 4; ++g) data += static_cast<char>(m[g] | m[g + 4] >> 4 << 6);
        for (int g = 4; g < 8; ++g) data += static_cast<char>((s[g] & 15) | (m[g] & 15) << 4);
        for (int pair = 0; pair < 4; ++pair)
            for (int i = 0; i < 32; ++i) data += static_cast<char>(q[pair * 64 + i] | q[pair * 64 + 32 + i] << 4);
    }
    const WeightsFile file(write(gguf_text({{"w", 12, {512, 2}, data}})));
    const auto weights = stored_weights(file, "w");
    EXPECT_EQ(weights->group, 32);
    EXPECT_EQ(weights->zero, "float");
    const PlainRows rows = weights->rows({0, 2});
    std::vector<double> values(512);
    for (std::size_t row = 0; row < 2; ++row) {
        rows.values(std::int64_t(row), values);
        for (std::size_t i = 0; i < 512; ++i) ASSERT_EQ(values[i], expected[row * 512 + i]) << row << ' ' << i;
    }
}

/// A layer of 24 x 64 in groups of 32 as AWQ and as GPTQ write it: W[n, k] = (q - zero) * scale.
struct Layer {
    static constexpr int n = 24, k = 64, groups = 2;
    static int q(int row, int column) { return (row * 5 + column * 3) % 16; }
    static int zero(int row, int g) { return 1 + (row + g * 7) % 15; }
    static double scale(int row, int g) { return (row + 1 + g) / 16.0; }
    static double value(int row, int column) { return (q(row, column) - zero(row, column / 32)) * scale(row, column / 32); }

    static std::string scales() {
        std::string out;
        for (int g = 0; g < groups; ++g)
            for (int row = 0; row < n; ++row) out += half(scale(row, g));
        return out;
    }
    /// Eight numbers a word, the i-th of them `of(order[i])`.
    static std::uint32_t word(const int (&order)[8], auto of) {
        std::uint32_t out = 0;
        for (int i = 0; i < 8; ++i) out |= std::uint32_t(of(order[i])) << 4 * i;
        return out;
    }
    static constexpr int in_order[8] = {0, 1, 2, 3, 4, 5, 6, 7}, of_awq[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    /// `less`: by which zero points are stored.
    static std::string zeros(const int (&order)[8], int less) {
        FileText out;
        for (int g = 0; g < groups; ++g)
            for (int row = 0; row < n; row += 8) out.number(word(order, [&](int i) { return zero(row + i, g) - less; }));
        return out.data();
    }
    static std::vector<SafeTensor> awq() {
        FileText weights;
        for (int column = 0; column < k; ++column)
            for (int row = 0; row < n; row += 8) weights.number(word(of_awq, [&](int i) { return q(row + i, column); }));
        return {{"up.qweight", "I32", "[64, 3]", weights.data()},
                {"up.scales", "F16", "[2, 24]", scales()},
                {"up.qzeros", "I32", "[2, 3]", zeros(of_awq, 0)}};
    }
    static std::vector<SafeTensor> gptq(int less = 1) {
        FileText weights, order;
        for (int column = 0; column < k; column += 8)
            for (int row = 0; row < n; ++row) weights.number(word(in_order, [&](int i) { return q(row, column + i); }));
        for (int column = 0; column < k; ++column) order.number(std::int32_t(column / 32));
        return {{"up.qweight", "I32", "[8, 24]", weights.data()},
                {"up.scales", "F16", "[2, 24]", scales()},
                {"up.qzeros", "I32", "[2, 3]", zeros(in_order, less)},
                {"up.g_idx", "I32", "[64]", order.data()}};
    }
    static void expect_read(const StoredWeights& weights) {
        ASSERT_EQ(weights.n, n);
        ASSERT_EQ(weights.k, k);
        EXPECT_EQ(weights.group, 32);
        const PlainRows rows = weights.rows({0, n});
        std::vector<double> values(k);
        for (int row = 0; row < n; ++row) {
            rows.values(row, values);
            for (int column = 0; column < k; ++column) ASSERT_EQ(values[std::size_t(column)], value(row, column)) << row << ' ' << column;
        }
    }
};

TEST_F(StoredWeightsTest, ReadsAwq) {
    const WeightsFile file(write(safetensors_text(Layer::awq())));
    for (const char* name : {"up", "up.qweight"}) {
        const auto weights = stored_weights(file, name);
        EXPECT_EQ(weights->format, "AWQ");
        Layer::expect_read(*weights);
    }
}

TEST_F(StoredWeightsTest, ReadsGptqOfBothVersions) {
    {
        const WeightsFile file(write(safetensors_text(Layer::gptq())));
        const auto weights = stored_weights(file, "up");
        EXPECT_EQ(weights->format, "GPTQ");
        Layer::expect_read(*weights);
    }
    write("{\"quantization_config\": {\"checkpoint_format\": \"gptq_v2\", \"bits\": 4}}", "config.json");
    const WeightsFile file(write(safetensors_text(Layer::gptq(0))));
    const auto weights = stored_weights(file, "up");
    EXPECT_EQ(weights->format, "GPTQ v2");
    Layer::expect_read(*weights);
}

TEST_F(StoredWeightsTest, RefusesWhatItCannotPackByName) {
    const auto layer_error = [&](std::vector<SafeTensor> tensors) { return error_of(write(safetensors_text(tensors)), "up"); };
    std::vector<SafeTensor> layer = Layer::gptq();
    std::swap(layer[3].data[0], layer[3].data[4 * 32]);
    EXPECT_THAT(layer_error(layer), HasSubstr("up.g_idx[0] is 1 where 0 is in order: K is permuted (desc_act)"));
    layer = Layer::gptq(), layer[2].data[0] = '\x0f';
    EXPECT_THAT(layer_error(layer), HasSubstr("up.qzeros of row 0, group 0 is 15"));
    layer = Layer::gptq(), layer.erase(layer.begin() + 1);
    EXPECT_THAT(layer_error(layer), HasSubstr("has no up.scales"));
    layer = Layer::gptq(), layer[2].shape = "[2, 6]", layer[2].data += layer[2].data;  // of 8 bits
    EXPECT_THAT(layer_error(layer), HasSubstr("up.qzeros is I32 [2, 6], 48 B; accepted is [2, 3] of weights of 4 bits"));
    layer = Layer::awq(), layer[1].type = "I32";
    EXPECT_THAT(layer_error(layer), HasSubstr("up.scales is I32"));
    layer = Layer::awq(), layer[0].shape = "[64, 2]";
    EXPECT_THAT(layer_error(layer), HasSubstr("up.qweight is I32 [64, 2], 768 B; accepted is 512 B"));

    const std::string others = gguf_text(
        {{"blk.0.up", 14, {256, 1}, std::string(210, 'x')}, {"experts", 2, {32, 2, 2}, std::string(72, 'x')}, {"new", 77, {32, 1}, ""}});
    EXPECT_THAT(error_of(write(others), "blk.0.up"), HasSubstr("blk.0.up is Q6_K of 2 axes; packed are Q4_0, Q4_K, Q8_0 and MXFP4"));
    EXPECT_THAT(error_of(write(others), "experts"), HasSubstr("experts is Q4_0 of 3 axes, 2 matrices; name one of them, as experts[0]"));
    EXPECT_EQ(error_of(write(others), "experts[1]"), "");
    EXPECT_THAT(error_of(write(others), "experts[2]"), HasSubstr("experts has 2 matrices; [2] is beyond"));
    EXPECT_THAT(error_of(write(others), "experts[-1]"), HasSubstr("has no tensor experts[-1]"));
    EXPECT_THAT(error_of(write(others), "blk.0.up[0]"), HasSubstr("blk.0.up has 2 axes; [0] is of tensors that are several matrices"));
    EXPECT_THAT(error_of(write(others), "new"), HasSubstr("new is of ggml's type 77"));
    for (const char* shape : {"[1, 12800]", "[0, 32]", "[268435456, 32]", "[4294967296, 4294967296]"})
        EXPECT_THAT(layer_error({{"up", "Q4_0", shape, ""}}), HasSubstr("up is Q4_0 of")) << shape;
    for (const char* shape : {"[1.5, 32]", "[-1, 32]", "[1, 1e300]", "[18446744073709551615, 32]", "[[], 1]"})
        EXPECT_THAT(layer_error({{"up", "Q4_0", shape, std::string(18, 'x')}}), HasSubstr("where a size of up belongs")) << shape;
    EXPECT_THAT(error_of(write(gguf_text({{"up", 2, {32, 1, 1, 1, 1}, std::string(18, 'x')}})), "up"), HasSubstr("up has 5 axes"));
    layer = Layer::gptq(), layer[0].shape = "[2147483648, 2147483648]", layer[0].data.clear();
    EXPECT_THAT(layer_error(layer), HasSubstr("as many bytes as its sizes say"));
    write("[", "config.json");
    EXPECT_THAT(layer_error(Layer::gptq()), HasSubstr("config.json is no JSON object"));
    std::filesystem::remove(folder_.path() / "config.json");
    EXPECT_THAT(error_of(write(others), "blk.0.uq"), HasSubstr("the nearest is blk.0.up"));
    EXPECT_THAT(error_of(write(gguf_text({{"w", 2, {16, 2}, std::string(18, 'x')}})), "w"),
                HasSubstr("w has rows of 16; blocks of Q4_0 have 32"));
}

// Two experts of 3 x 64: weight i of a row is a half of byte i / 2, the first the low one.
TEST_F(StoredWeightsTest, ReadsMicroscaledExperts) {
    static constexpr double numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const auto code = [](int expert, int row, int i) { return (i * 5 + row * 3 + expert) % 16; };
    std::string blocks, scales;
    for (int expert = 0; expert < 2; ++expert)
        for (int row = 0; row < 3; ++row) {
            for (int i = 0; i < 64; i += 2) blocks += static_cast<char>(code(expert, row, i) | code(expert, row, i + 1) << 4);
            for (int group = 0; group < 2; ++group) scales += static_cast<char>(120 + expert + row + group);
        }
    const std::vector<SafeTensor> both = {{"up_blocks", "U8", "[2, 3, 2, 16]", blocks}, {"up_scales", "U8", "[2, 3, 2]", scales}};
    const WeightsFile file(write(safetensors_text(both)));
    for (int expert = 0; expert < 2; ++expert) {
        const auto weights = stored_weights(file, (expert == 0 ? "up[" : "up_blocks[") + std::to_string(expert) + "]");
        EXPECT_EQ(weights->n, 3);
        EXPECT_EQ(weights->k, 64);
        EXPECT_EQ(weights->file_bytes, 3 * 34);
        const PackTask task = pack_task(*weights, "");
        std::vector<unsigned char> packed(static_cast<std::size_t>(task.bytes));
        EXPECT_EQ(pack_stored(task, *weights, packed).mean_square, 0);
        std::vector<double> values(64), unpacked(64);
        for (int row = 0; row < 3; ++row) {
            weights->rows({row, 1}).values(0, values);
            facet_of<Packs>(*task.operation)->unpack_rows(task.problem, {row, 1}, packed, unpacked);
            for (int i = 0; i < 64; ++i) {
                const int q = code(expert, row, i);
                const double expected = (q < 8 ? 1 : -1) * numbers[q % 8] * std::exp2(expert + row + i / 32 - 7);
                ASSERT_EQ(values[std::size_t(i)], expected);
                ASSERT_EQ(unpacked[std::size_t(i)], expected);
            }
        }
    }
    EXPECT_THAT(error_of(write(safetensors_text(both)), "up"), HasSubstr("or such a matrix for each expert, NAME[0]"));
    EXPECT_THAT(error_of(write(safetensors_text({both[0], {"up_scales", "U8", "[2, 3, 3]", scales + scales.substr(0, 6)}})), "up[0]"),
                HasSubstr("up_scales[0] is U8 [3, 3], 9 B; accepted is U8 [3, 2]"));
    for (const char* shape : {"[2, 3, 4, 8]", "[2, 0, 2, 16]", "[2, 4294967296, 4294967296, 16]"})
        EXPECT_THAT(error_of(write(safetensors_text({{"up_blocks", "U8", shape, blocks}, both[1]})), "up[0]"), HasSubstr("accepted is U8 [N, K / 32, 16]"));
}

// Groups of 16, and a scale that is none: both are found when all else has been read.
TEST_F(StoredWeightsTest, NamesWhatIsRefusedWhilePacking) {
    const auto packing_error = [&](const std::vector<SafeTensor>& layer, const char* name = "up.qweight") -> std::string {
        const WeightsFile file(write(safetensors_text(layer)));
        const auto weights = stored_weights(file, name);
        try {
            const PackTask task = pack_task(*weights, "");
            std::vector<unsigned char> packed(static_cast<std::size_t>(task.bytes));
            pack_stored(task, *weights, packed);
        } catch (const RequestError& error) { return error.what(); }
        return "";
    };
    std::vector<SafeTensor> layer = Layer::gptq();
    layer.pop_back();
    EXPECT_EQ(packing_error(layer), "");
    layer[1].shape = "[4, 24]", layer[1].data += layer[1].data;
    layer[2].shape = "[4, 3]", layer[2].data += layer[2].data;
    EXPECT_THAT(packing_error(layer), testing::AllOf(testing::StartsWith("up: "), HasSubstr("16")));
    layer = Layer::gptq(), layer[1].data.replace(2, 2, std::string("\x00\x7c", 2));
    EXPECT_THAT(packing_error(layer), testing::StartsWith("up: scales[1, 0] is inf"));
    const std::vector<SafeTensor> microscaled = {{"up_blocks", "U8", "[1, 1, 16]", std::string(16, '\1')}, {"up_scales", "U8", "[1, 1]", "\xff"}};
    EXPECT_THAT(packing_error(microscaled, "up"), testing::StartsWith("up_blocks: scales[0, 0] is nan"));
}

TEST_F(StoredWeightsTest, RefusesFilesThatAreSomethingElse) {
    EXPECT_THAT(error_of((folder_.path() / "none").string(), "w"), HasSubstr("No such file"));
    EXPECT_THAT(error_of(folder_.path().string(), "w"), HasSubstr("no regular file"));
    EXPECT_THAT(error_of(write(""), "w"), HasSubstr("is empty"));
    EXPECT_THAT(error_of(write("abc"), "w"), HasSubstr("neither GGUF nor safetensors: it has 3 B"));
    EXPECT_THAT(error_of(write("PK\3\4 a zipped checkpoint"), "w"), HasSubstr("its first number says"));
    EXPECT_THAT(error_of(write(FileText().number(std::uint64_t{2}).raw("[]").data()), "w"), HasSubstr("no JSON object"));
    EXPECT_THAT(error_of(write(FileText().number(std::uint64_t{12}).raw("{\"w\":{\"a\":1}}").data()), "w"), HasSubstr("no"));
    EXPECT_THAT(error_of(write(safetensors_text({})), "w"), HasSubstr("holds no tensors"));
    EXPECT_THAT(error_of(write(FileText().raw("GGUF").number(std::uint32_t{1}).data()), "w"), HasSubstr("version 1"));
}

// Wherever a file is cut it is refused, or what is left of it is whole.
TEST_F(StoredWeightsTest, SurvivesFilesThatAreCut) {
    for (const bool is_gguf : {true, false}) {
        const std::string whole = is_gguf ? gguf_text({{"up", 2, {32, 3}, std::string(3 * 18, '\1')}}) : safetensors_text(Layer::awq());
        const std::size_t end = is_gguf ? whole.size() - 64 + 3 * 18 : whole.size();
        ASSERT_EQ(error_of(write(whole), "up"), "");
        for (std::size_t size = 1; size < end; ++size) ASSERT_NE(error_of(write(whole.substr(0, size)), "up"), "") << size;
    }
}

// Whatever is wrong with a byte of the header, nothing outside the file is read.
TEST_F(StoredWeightsTest, SurvivesBytesThatAreWrong) {
    Random random(7);
    for (const bool is_gguf : {true, false}) {
        const std::string whole = is_gguf ? gguf_text({{"up", 2, {32, 3}, std::string(3 * 18, '\1')}}) : safetensors_text(Layer::awq());
        for (int i = 0; i < 400; ++i) {
            std::string wrong = whole;
            wrong[std::size_t(random.whole(0, std::min<std::int64_t>(400, std::int64_t(whole.size()) - 1)))] =
                static_cast<char>(random.whole(0, 255));
            error_of(write(wrong), "up");
        }
    }
}

// 100 rows are packed 64 and 36 at a time; in fp16 nothing of these numbers is lost, in bf16 some.
TEST_F(StoredWeightsTest, PacksWhatTheFileSays) {
    Random random(3);
    std::string data;
    for (int block = 0; block < 100 * 2; ++block) {
        data += half(random.uniform(0.5, 2));
        for (int i = 0; i < 16; ++i) data += static_cast<char>(random.whole(0, 255));
    }
    const WeightsFile file(write(gguf_text({{"w", 2, {64, 100}, data}})));
    const auto weights = stored_weights(file, "w");
    for (const char* scale : {"", "bf16"}) {
        const PackTask task = pack_task(*weights, scale);
        std::vector<unsigned char> packed(static_cast<std::size_t>(task.bytes), 0xff), at_once(packed.size());
        const PackError error = pack_stored(task, *weights, packed);
        const Packs& packs = *facet_of<Packs>(*task.operation);
        packs.pack(task.problem, weights->rows({0, 100}).arrays(), at_once);
        EXPECT_EQ(packed, at_once);
        EXPECT_EQ(error.mean_square == 0, *scale == 0) << error.mean_square;
        // Rounded to 8 bits a scale is off by 2^-9 of itself at most, and so is a weight.
        EXPECT_LT(error.mean_square, error.mean_square_of_weights / (512.0 * 512.0));
        std::vector<double> values(100 * 64), row(64);
        packs.unpack_rows(task.problem, {0, 100}, packed, values);
        double sum = 0, square = 0;
        for (std::int64_t i = 0; i < 100; ++i) {
            weights->rows({i, 1}).values(0, row);
            for (std::size_t k = 0; k < 64; ++k) {
                const double off = values[std::size_t(i) * 64 + k] - row[k];
                sum += off * off, square += row[k] * row[k];
            }
        }
        EXPECT_NEAR(error.mean_square, sum / 6400, 1e-12 * square / 6400);
        EXPECT_NEAR(error.mean_square_of_weights, square / 6400, 1e-12 * square / 6400);
    }
    EXPECT_THROW(pack_task(*weights, "fp32"), RequestError);
}

}  // namespace
}  // namespace rooftile
