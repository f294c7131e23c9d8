// Random requests for products: types, layouts, epilogues, scales, packed weights, batches and groups in any company, of which some are
// refused.
#pragma once

#include <fmt/core.h>

#include <string>

#include "rooftile/core/field.hpp"
#include "rooftile/core/random.hpp"
#include "tests/gemm/draw_epilogue.hpp"

namespace rooftile {

/// No more than `most` rows, columns and products a sum.
inline Given drawn_request(Random& random, std::int64_t most) {
    Given given(Given::Named::by_key);
    const auto add = [&given](const char* key, std::string text) { given.add(key, std::move(text)); };
    const auto number = [&add](const char* key, std::int64_t value) { add(key, std::to_string(value)); };
    const auto size = [&](std::int64_t limit) { return random.whole(1, random.one_in(4) ? std::min<std::int64_t>(limit, 130) : limit); };
    std::int64_t m = size(most), n = size(most), k = size(most);
    if (random.coin()) n = (n + 15) / 16 * 16;
    if (random.coin()) k = (k + 15) / 16 * 16;
    const bool packed = random.one_in(6), suits = !random.one_in(8);  // packed weights meet few rows along K
    if (packed && suits) m = 1 + m % 64, k = (k + 7) / 8 * 8;

    static constexpr std::string_view bytes[] = {"fp8_e4m3", "fp8_e5m2"}, halves[] = {"bf16", "fp16"},
                                      any[] = {"bf16", "fp16", "fp32", "fp8_e4m3", "fp8_e5m2"};
    static constexpr std::string_view weights[] = {"int4", "uint4", "int8", "fp8_e4m3", "fp8_e5m2", "mxfp4", "nf4"}, zeros[] = {"none", "int", "float"},
                                      widths[] = {"32", "64", "128", "row"};
    const bool of_bytes = packed ? random.one_in(4) : random.coin(), wild = !packed && random.one_in(12);
    const std::string_view a = wild       ? random.one_of(any)
                               : of_bytes ? random.one_of(bytes)
                                          : random.one_of(halves),
                           b = packed     ? random.one_of(weights)
                               : wild     ? random.one_of(any)
                               : of_bytes ? random.one_of(bytes)
                                          : a,
                           result = packed && suits && of_bytes          ? random.one_of(halves)
                                    : wild || of_bytes                   ? random.one_of(any)
                                    : (packed && suits) || random.coin() ? a
                                                                         : std::string_view("fp32");
    add("types", fmt::format("{},{},{}", a, b, result));
    if (packed) {
        add("quant_group", std::string(random.one_of(widths)));
        add("quant_scale", std::string(random.one_of(halves)));
        add("quant_zero", std::string(random.one_of(zeros)));
    }

    const bool plain = packed && suits, a_m = !plain && random.one_in(3), b_n = !plain && random.one_in(3);
    if (a_m) add("a_major", "m");
    if (b_n) add("b_major", "n");
    const auto padding = [&random] { return random.one_in(3) ? random.whole(0, 40) : 0; };
    const std::int64_t lda = plain ? k + 8 * random.whole(0, 2) : (a_m ? m : k) + padding(), ldb = (b_n ? n : k) + padding(),
                       ldc = n + (random.one_in(3) ? 8 * random.whole(0, 4) : 0);

    const bool batched = !plain && random.one_in(4), grouped = !plain && !batched && random.one_in(5);
    if (grouped) {
        std::string counts;
        m = 0;
        for (std::int64_t groups = random.whole(1, 9); groups > 0; --groups) {
            const std::int64_t rows = random.one_in(4) ? 0 : size(most / 4 + 1);
            m += rows, counts += fmt::format("{}{}", counts.empty() ? "" : ",", rows);
        }
        add("groups", counts);
    } else {
        number("m", m), number("lda", lda);
    }
    number("n", n), number("k", k), number("ldc", ldc);
    if (!plain) number("ldb", ldb);
    if (random.one_in(4)) number("a_offset", plain ? 0 : random.whole(0, 7)), number("c_offset", random.whole(0, 7));
    if (batched) {
        const std::int64_t batch = random.whole(2, 6);
        number("batch", batch);
        if (random.one_in(3)) number(random.coin() ? "stride_a" : "stride_b", 0);
        if (random.one_in(8)) number("stride_d", random.whole(0, 2) * m * ldc / 2);  // 0 and half of one overlap
    }
    if (of_bytes && random.coin()) {
        static constexpr std::string_view scales[] = {"tensor", "row", "block", "block"};
        add("scales", std::string(random.one_of(scales)));
    }
    if (random.one_in(of_bytes ? 3 : 20)) add("accumulation", "promoted");
    if (random.one_in(3)) {
        const DrawnEpilogue e = drawn_epilogue(random, batched);
        if (e.alpha != 1) add("alpha", fmt::format("{}", e.alpha));
        if (e.beta != 0) add("beta", fmt::format("{}", e.beta));
        if (!e.text.empty()) add("epilogue", e.text);
        if (e.pairs != Pairs::none) add("pairs", std::string(name_of(e.pairs)));
        for (std::size_t i = 0; i < e.tensors.size(); ++i)
            if (!random.one_in(30)) add("tensor", e.tensors[i]);  // now and then one that the epilogue reads is not there
    }
    return given;
}

/// What it asks for, to count kinds and to show.
inline std::string shown(const Given& given) {
    std::string out;
    for (const char* key : {"m",       "n",        "k",        "types",    "quant_group", "quant_scale", "quant_zero",
                            "a_major", "b_major",  "lda",      "ldb",      "ldc",         "a_offset",    "c_offset",
                            "batch",   "stride_a", "stride_b", "stride_d", "groups",      "scales",      "accumulation",
                            "alpha",   "beta",     "epilogue", "pairs"})
        if (given.has(key)) out += fmt::format("{}--{} \"{}\"", out.empty() ? "" : " ", key, given.text(key));
    for (const std::string& tensor : given.list("tensor")) out += fmt::format(" --tensor \"{}\"", tensor);
    return out;
}

}  // namespace rooftile
