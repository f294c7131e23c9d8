#include "rooftile/gemm/fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <tuple>

#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/knobs.hpp"
#include "rooftile/gemm/simulate_orders.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

// Wider than any hardware: what is possible here but nowhere else is the planner's answer, not a typo.
constexpr int max_tile = 65536, max_small = 1024, max_sampled = 64;

constexpr std::string_view types[] = {"bf16", "fp16"};
constexpr std::string_view all_types[] = {"bf16", "fp16", "fp32", "fp8_e4m3", "fp8_e5m2"};  // as Type counts them
constexpr std::string_view scale_names[] = {"none", "tensor", "row", "block"};                // as Scales counts them
constexpr std::string_view pairings[] = {"none", "interleaved", "split"};                   // as Pairs counts them
constexpr std::string_view accumulations[] = {"fast", "promoted"};  // as Accumulation counts them
constexpr std::string_view quant_groups[] = {"128", "64", "32", "row"};
constexpr std::string_view quant_scales[] = {"bf16", "fp16", "e8m0"};
constexpr std::string_view quant_zeros[] = {"none", "int", "float"};  // as ZeroType counts them
constexpr std::string_view a_majors[] = {"k", "m"};
constexpr std::string_view b_majors[] = {"k", "n"};

/// That can be asked for: `generic` is what a machine gets of which nothing else is known.
std::vector<std::string_view> kernel_names() {
    std::vector<std::string_view> names;
    for (const GemmKernel* kernel : gemm_kernels())
        if (kernel != gemm_kernels().back()) names.push_back(kernel->name());
    return names;
}

std::string kernel_meaning() {
    return fmt::format("{}; default: the first of them that the machine runs", fmt::join(kernel_names(), " or "));
}

std::vector<Field> make_fields() {
    const char *problem = "Problem, C[M,N] = A[M,K] B[K,N]", *fixed = "Fixed parameters (the rest is searched)",
               *others = "Other plans than the best", *output = "Output", *hidden = "";
    std::vector<Field> fields = {
        {"m", "M", "Rows of A and C", problem},
        {"n", "N", "Columns of B and C", problem},
        {"k", "K", "Columns of A, rows of B", problem},
        {"shape", "MxNxK", "All three at once; the flag may be left out", problem, FieldKind::value, 0, true},
        {"type", "TYPE", "bf16 (default) or fp16, for A, B and C; fp32 accumulation", problem},
        {"types", "A,B,D", "Types of A, B and the result: bf16, fp16, fp8_e4m3, fp8_e5m2; of 8-bit operands the result is any of them or fp32, fp8 saturated; of others their type or fp32; B also packed, beside bf16, fp16 or fp8 (to a result of bf16 or fp16): int4, uint4, int8, fp8_e4m3, fp8_e5m2, mxfp4 or nf4", problem, FieldKind::text},
        {"scales", "NAME",
         "none (default); tensor: A B is multiplied by fp32 numbers scale_a and scale_b of device memory; row: by one a row of A and column of B; block: each 128 of K by one a row of A and one a 128 columns of B",
         problem},
        {"accumulation", "NAME", "8-bit operands: fast (default), 14 bits in the matrix units; promoted: in fp32 from 128 of K to the next", problem},
        {"a_major", "k|m", "Contiguous index of A: k (default, row-major M x K) or m", problem},
        {"b_major", "k|n", "Contiguous index of B: k (default, row-major N x K) or n", problem},
        {"lda", "N", "Elements from one line of A to the next; default: dense", problem},
        {"ldb", "N", "The same of B", problem},
        {"ldc", "N", "The same of C, which is row-major", problem},
        {"a_offset", "N", "Elements from a multiple of 128 B to the first of A; default 0", problem},
        {"b_offset", "N", "The same of B", problem},
        {"c_offset", "N", "The same of C", problem},
        {"alpha", "X", "D = alpha A B + beta C; default 1", problem},
        {"beta", "X", "Default 0; else --tensor \"c:bf16[M,N]\" says what C is", problem},
        {"epilogue", "EXPRESSION",
         "What is stored, of acc = alpha A B + beta C and point-wise operators: \"d = gelu(acc + bias)\"", problem,
         FieldKind::text},
        {"pairs", "NAME",
         "none (default); interleaved, split: the epilogue is of pairs of B's columns, gate and up, side by side or N/2 apart, and the result has "
         "N/2 columns: \"d = silu(gate) * up\"",
         problem},
        {"tensor", "NAME:TYPE[SHAPE]",
         "A tensor that the epilogue reads: \"bias:bf16[N]\", [M,1] one a row, [M,N] one an element; of a batch [B,M,N] too, of groups [G,1,N]; repeatable", problem,
         FieldKind::list},
        {"batch", "B", "So many products of that shape, one matrix behind the other; default 1", problem},
        {"stride_a", "N", "Elements from one A of a batch to the next, 0: one A for all; default: dense", problem},
        {"stride_b", "N", "The same of B, of groups too, which have one each", problem},
        {"stride_d", "N", "The same of the results, which are separate", problem},
        {"groups", "R,R,..",
         "Rows of A and C in groups with a B each, m rows in all: 1,7,512; 8x1024; 128x[64..512], drawn and scaled to m; a flag may name a file of them", problem,
         FieldKind::text},
        {"quant_group", "N|row", "Packed B: so many of K share a scale, 32 (mxfp4 always), 64 (default of nf4) or 128 (default of others), or a row", problem},
        {"quant_scale", "TYPE", "Its scales: bf16 (default) or fp16; of mxfp4 e8m0, powers of two", problem},
        {"quant_zero", "NAME", "none (default): B is q * scale; int: (q - zero) * scale, a whole number a group; float: q * scale - zero, a number of the scales' type", problem},
        // Named so that it is refused by name.
        {"layout", "NAME", "Not offered", hidden},
        {"kernel", "NAME", kernel_meaning(), fixed},
    };
    for (Field& field : knob_fields<GemmKnobs>(fixed)) fields.push_back(std::move(field));
    fields.insert(fields.end(), {
        {"exhaustive", "", "Search also what structural rules leave out", fixed, FieldKind::on},
        {"top", "N", "Plans to keep", output},
        {"sample", "N",
         "The best plan and N - 1 drawn from all that pass the constraints, up to twice its predicted time",
         others},
        {"orders", "all|LIST",
         "The best plan in its order of tiles and in these: row,column,grouped:8,serpentine:4,morton,hilbert",
         others},
    });
    return fields;
}

std::optional<int> number_if(const Given& g, std::string_view key, int most) {
    if (!g.has(key)) return std::nullopt;
    return int(whole_number(g.name(key), g.text(key), 1, most));
}

/// A number with a fraction; `preset` where none is given.
double number_or(const Given& g, std::string_view key, double preset) {
    if (!g.has(key)) return preset;
    const std::string& text = g.text(key);
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != 0 || !std::isfinite(value))
        throw RequestError(fmt::format("{} {}: accepted is a number, as 0.5", g.name(key), printable(text)));
    return value;
}

std::size_t choice(const Given& g, std::string_view key, std::span<const std::string_view> names) {
    return g.has(key) ? one_of(g.name(key), g.text(key), names) : 0;
}

struct GivenSizes {
    std::int64_t m, n, k;
};

GivenSizes sizes_of(const Given& g) {
    if (g.has("shape")) {
        if (g.has("m") || g.has("n") || g.has("k"))
            throw RequestError(fmt::format("{} and {}, {}, {} exclude each other; give one form", g.name("shape"), g.name("m"),
                                           g.name("n"), g.name("k")));
        if (const std::string& shape = g.text("shape"); with_size_for_zero(shape, 1) != shape)
            throw RequestError(fmt::format("{} {}: nothing to do; M, N and K are 1 .. {}", g.name("shape"), printable(shape), max_gemm_extent));
        const auto sizes = whole_numbers(g.name("shape"), g.text("shape"), "MxNxK", 1, max_gemm_extent);
        return {sizes[0], sizes[1], sizes[2]};
    }
    std::string missing;
    const auto size = [&](const char* key) -> std::int64_t {
        if (g.has(key)) return size_number(g.name(key), g.text(key), max_gemm_extent);
        missing += (missing.empty() ? "" : ", ") + g.name(key);
        return 0;
    };
    const bool counted = g.has("groups") && !g.has("m");  // their rows say it
    const GivenSizes sizes{counted ? 0 : size("m"), size("n"), size("k")};
    if (!missing.empty())
        throw RequestError(
            fmt::format("missing {}; a GEMM needs {}, {} and {}, or {}", missing, g.name("m"), g.name("n"), g.name("k"),
                        g.name("shape")));
    return sizes;
}

/// "grouped:4", "hilbert".
OrderChoice order_of(const std::string& text, const std::string& name) {
    const std::size_t colon = text.find(':');
    const Order order = KnobType<Order>::read(name, text.substr(0, colon), {});
    if (has_groups(order) != (colon != text.npos))
        throw RequestError(
            fmt::format("{} {}: accepted is {}", name, printable(text),
                        has_groups(order) ? fmt::format("{}:N, N the rows of tiles in a band", name_of(order))
                                          : std::string(name_of(order))));
    if (colon == text.npos) return {order, 1};
    return {order, int(whole_number(name, text.substr(colon + 1), 1, max_tile))};
}

std::vector<OrderChoice> orders_of(const Given& g) {
    const std::string& text = g.text("orders");
    std::vector<OrderChoice> list;
    if (text == "all") {
        for (const TileOrder& order : all_orders()) list.push_back({order.order, order.group});
        return list;
    }
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        list.push_back(order_of(text.substr(begin, end - begin), g.name("orders")));
        begin = end + 1;
    }
    return list;
}

/// "fp8_e4m3,fp8_e4m3,bf16".
void give_types(const Given& g, GemmProblem& p) {
    if (!g.has("types")) return;
    if (g.has("type")) throw RequestError(fmt::format("{} and {} exclude each other", g.name("type"), g.name("types")));
    const std::string& text = g.text("types");
    std::size_t begin = 0;
    for (Type* type : {&p.a_type, &p.b_type, &p.c_type}) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        if (begin > text.size() || (type == &p.c_type && end != text.size()))
            throw RequestError(fmt::format("{} {}: accepted are three, of A, B and the result: fp8_e4m3,fp8_e4m3,bf16", g.name("types"),
                                           printable(text)));
        const std::string word = text.substr(begin, end - begin);
        const auto packed = std::ranges::find(weight_names(), word);
        // Floats of 8 bits are packed beside activations of 16: of two operands of 8 bits B is as it is, where nothing says how it is packed.
        const bool plain = is_fp8(p.a_type) && !g.has("quant_group") && std::ranges::find(all_types, word) != std::end(all_types);
        if (type == &p.b_type && !plain && packed != weight_names().end()) {
            p.quantised.weights = WeightType(packed - weight_names().begin() + 1);
            *type = p.a_type;
        } else {
            std::vector<std::string_view> accepted(std::begin(all_types), std::end(all_types));
            if (type == &p.b_type)
                for (const std::string_view name : weight_names())
                    if (std::ranges::find(accepted, name) == accepted.end()) accepted.push_back(name);
            *type = Type(one_of(g.name("types"), word, accepted));
        }
        begin = end + 1;
    }
    if (p.is_quantised() && is_fp8(p.a_type)) p.b_type = p.c_type;
}

/// How packed weights are scaled.
void give_layout(const Given& g, GemmProblem& p) {
    for (const char* key : {"quant_group", "quant_scale", "quant_zero"})
        if (g.has(key) && !p.is_quantised())
            throw RequestError(fmt::format("{} is of packed weights; give {} as bf16,int4,bf16", g.name(key), g.name("types")));
    constexpr int groups[] = {128, 64, 32, 0};
    if (g.has("quant_group")) p.quantised.group = groups[choice(g, "quant_group", quant_groups)];
    else if (p.quantised.power_scales()) p.quantised.group = QuantisedLayout::power_group;
    else if (p.quantised.weights == WeightType::nf4) p.quantised.group = 64;
    const std::size_t scale = choice(g, "quant_scale", quant_scales);
    if (quant_scales[scale] == "e8m0" && !p.quantised.power_scales())
        throw RequestError(fmt::format("{} e8m0: it is of mxfp4; of {} accepted are bf16 and fp16", g.name("quant_scale"), p.b_name()));
    if (p.quantised.power_scales() && g.has("quant_scale") && quant_scales[scale] != "e8m0")
        throw RequestError(fmt::format("{} {}: scales of {} are e8m0, powers of two", g.name("quant_scale"), quant_scales[scale], p.b_name()));
    p.quantised.scale = quant_scales[scale] == "fp16" ? Type::fp16 : Type::bf16;
    p.quantised.zeros = ZeroType(choice(g, "quant_zero", quant_zeros));
}

void give_batch(const Given& g, GemmProblem& p) {
    if (g.has("batch")) p.batch = size_number(g.name("batch"), g.text("batch"), max_gemm_extent);
    for (const auto& [key, stride, operand] : {std::tuple{"stride_a", &p.a_stride, 'a'}, {"stride_b", &p.b_stride, 'b'}, {"stride_d", &p.c_stride, 'c'}}) {
        const bool of_groups = p.groups && operand == 'b';
        if (g.has(key) && !g.has("batch") && !of_groups)
            throw RequestError(fmt::format("{} is of a batch; give {} too", g.name(key), g.name("batch")));
        if (p.batch == 1 && !of_groups) continue;  // it means nothing
        *stride = g.has(key) ? whole_number(g.name(key), g.text(key), 0, std::int64_t{1} << 60) : dense_stride(p, operand);
    }
}

}  // namespace

std::span<const Field> gemm_fields() {
    static const std::vector<Field> fields = make_fields();
    return fields;
}

namespace {

/// What the epilogue reads of the tensors that are given. With a beta of 0 that is no C, whatever C holds: as in BLAS.
std::vector<std::string> tensors_read(const Given& g, double beta) {
    std::vector<std::string> tensors = g.list("tensor");
    if (g.has("beta") && beta == 0 && find_word(g.text("epilogue"), "c", 0) == std::string::npos)
        std::erase_if(tensors, [](const std::string& text) { return text.substr(0, text.find(':')) == "c"; });
    return tensors;
}

}  // namespace

GemmProblem gemm_problem(const Given& g) {
    if (g.has("layout"))
        throw RequestError(
            fmt::format("{} is not offered: libraries name the same layout differently; say which index is contiguous with "
                        "{} k|m and {} k|n", g.name("layout"), g.name("a_major"), g.name("b_major")));
    GivenSizes sizes = sizes_of(g);
    SharedGroups groups;
    if (g.has("groups")) groups = gemm_groups(g, sizes.m);
    if (groups) sizes.m = groups->total();
    const Type type = choice(g, "type", types) == 0 ? Type::bf16 : Type::fp16;
    const auto major = [&](std::string_view key, std::span<const std::string_view> names) {
        return choice(g, key, names) == 0 ? Major::k : Major::mn;
    };
    GemmProblem problem = gemm_problem(sizes.m, sizes.n, sizes.k, type, major("a_major", a_majors),
                                       major("b_major", b_majors));
    for (const auto& [key, pitch] :
         {std::pair{"lda", &problem.lda}, {"ldb", &problem.ldb}, {"ldc", &problem.ldc}})
        if (g.has(key)) *pitch = whole_number(g.name(key), g.text(key), 1, max_gemm_extent);
    for (const auto& [key, offset] : {std::pair{"a_offset", &problem.a_offset},
                                      {"b_offset", &problem.b_offset},
                                      {"c_offset", &problem.c_offset}})
        if (g.has(key)) *offset = whole_number(g.name(key), g.text(key), 0, max_gemm_extent);
    problem.groups = std::move(groups);
    give_types(g, problem);
    give_layout(g, problem);
    const Pairs pairs = Pairs(choice(g, "pairs", pairings));
    if (pairs != Pairs::none && !g.has("ldc")) problem.ldc = (problem.n + 1) / 2;
    give_batch(g, problem);
    problem.accumulation = Accumulation(choice(g, "accumulation", accumulations));
    problem.alpha = number_or(g, "alpha", 1), problem.beta = number_or(g, "beta", 0);
    problem.epilogue = product_epilogue(problem.m, problem.n, problem.c_type, problem.alpha, problem.beta, g.text("epilogue"),
                                     tensors_read(g, problem.beta), Scales(choice(g, "scales", scale_names)), problem.batch,
                                     problem.groups ? problem.groups->count() : 0, pairs);
    check(problem);
    return problem;
}

Given gemm_with_work(const Given& asked, std::int64_t size) {
    Given given = asked;
    for (const char* key : {"shape", "m", "n", "k", "batch"})
        if (given.has(key)) given.replace(key, with_size_for_zero(given.text(key), size));
    if (const std::size_t groups = groups_without_rows(given.text("groups")); groups > 0) {
        std::vector<std::int64_t> rows(groups);
        rows[0] = size;
        given.replace("groups", SharedGroups(std::move(rows)).text());
    }
    return given;
}

Given gemm_given(const GemmProblem& p) {
    Given given(Given::Named::by_key);
    for (const auto& [key, number] :
         {std::pair{"m", p.m}, {"n", p.n}, {"k", p.k}, {"lda", p.lda}, {"ldb", p.ldb}, {"ldc", p.ldc}})
        given.add(key, std::to_string(number));
    // Hardly any problem has them: left out of suites and commands where they are 0.
    for (const auto& [key, offset] :
         {std::pair{"a_offset", p.a_offset}, {"b_offset", p.b_offset}, {"c_offset", p.c_offset}})
        if (offset != 0) given.add(key, std::to_string(offset));
    if (p.a_type == p.b_type && p.a_type == p.c_type && !p.is_quantised()) given.add("type", std::string(name_of(p.a_type)));
    else given.add("types", fmt::format("{},{},{}", name_of(p.a_type), p.b_name(), name_of(p.c_type)));
    if (p.is_quantised()) {
        given.add("quant_group", p.quantised.group == 0 ? "row" : std::to_string(p.quantised.group));
        given.add("quant_scale", std::string(scale_name(p.quantised)));
        given.add("quant_zero", std::string(name_of(p.quantised.zeros)));
    }
    given.add("a_major", std::string(a_major_name(p.a_major)));
    given.add("b_major", std::string(b_major_name(p.b_major)));
    if (p.batch > 1)
        for (const auto& [key, number] : {std::pair{"batch", p.batch}, {"stride_a", p.a_stride}, {"stride_b", p.b_stride}, {"stride_d", p.c_stride}})
            given.add(key, std::to_string(number));
    if (p.groups) given.add("groups", p.groups.text()), given.add("stride_b", std::to_string(p.b_stride));
    if (p.accumulation != Accumulation::fast) given.add("accumulation", std::string(name_of(p.accumulation)));
    if (!p.epilogue) return given;
    for (const auto& [key, number, preset] : {std::tuple{"alpha", p.alpha, 1.0}, {"beta", p.beta, 0.0}})
        if (number != preset) given.add(key, fmt::format("{}", number));
    if (p.epilogue->scales != Scales::none) given.add("scales", std::string(name_of(p.epilogue->scales)));
    if (!p.epilogue->expression.empty()) given.add("epilogue", p.epilogue->expression);
    if (p.pairs() != Pairs::none) given.add("pairs", std::string(name_of(p.pairs())));
    for (const std::string& tensor : p.epilogue->tensors) given.add("tensor", tensor);
    return given;
}

Given gemm_given(const Record& record) {
    Given given(Given::Named::by_key);
    for (const char* key : {"m", "n", "k", "lda", "ldb", "ldc", "a_offset", "b_offset", "c_offset"})
        if (const auto number = find_as<std::int64_t>(record, key)) given.add(key, std::to_string(*number));
    if (find_as<std::int64_t>(record, "batch").value_or(1) > 1)
        for (const char* key : {"batch", "stride_a", "stride_b", "stride_d"})
            if (const auto number = find_as<std::int64_t>(record, key)) given.add(key, std::to_string(*number));
    if (const auto groups = find_as<std::string>(record, "groups")) {
        given.add("groups", *groups);
        if (const auto stride = find_as<std::int64_t>(record, "stride_b")) given.add("stride_b", std::to_string(*stride));
    }
    for (const char* key : {"a_major", "b_major"})
        if (const auto text = find_as<std::string>(record, key)) given.add(key, *text);
    if (const auto element_types = find_as<Record>(record, "types")) {
        const auto of = [&](const char* operand) { return find_as<std::string>(*element_types, operand).value_or(""); };
        if (of("a") == of("b") && of("a") == of("c")) given.add("type", of("a"));
        else given.add("types", fmt::format("{},{},{}", of("a"), of("b"), of("c")));
    }
    for (const char* key : {"quant_group", "quant_scale", "quant_zero"})
        if (const auto text = find_as<std::string>(record, key)) given.add(key, *text);
    if (const auto text = find_as<std::string>(record, "scales"); text && *text != "none") given.add("scales", *text);
    if (const auto text = find_as<std::string>(record, "accumulation"); text && *text != "fast") given.add("accumulation", *text);
    for (const auto& [key, preset] : {std::pair{"alpha", 1.0}, {"beta", 0.0}})
        if (const auto number = find_as<double>(record, key); number && *number != preset)
            given.add(key, fmt::format("{}", *number));
    if (const auto text = find_as<std::string>(record, "epilogue"); text && *text != "none") given.add("epilogue", *text);
    if (const auto text = find_as<std::string>(record, "pairs"); text && *text != "none") given.add("pairs", *text);
    for (const Value& value : find_as<List>(record, "epilogue_tensors").value_or(List()))
        if (const auto* text = std::get_if<std::string>(&value.content())) given.add("tensor", *text);
    return given;
}

GemmRequest gemm_request(const Given& g, int default_top) {
    GemmRequest r;
    if (g.has("kernel")) {
        const auto names = kernel_names();
        r.kernel = find_gemm_kernel(names[choice(g, "kernel", names)]);
    }
    read_knobs<GemmKnobs>(g, r);
    r.exhaustive = g.has("exhaustive");
    r.top = number_if(g, "top", max_gemm_plans).value_or(default_top);
    return r;
}

GemmAsk gemm_ask(const Given& g, int default_top) {
    GemmAsk ask{.request = gemm_request(g, default_top), .sample = 0, .orders = {}};
    if (!g.has("sample") && !g.has("orders")) return ask;
    if (g.has("sample") && g.has("orders")) throw RequestError("--sample and --orders exclude each other");
    const char* flag = g.has("sample") ? "--sample" : "--orders";
    if (g.has("top")) throw RequestError(fmt::format("{} and --top exclude each other", flag));
    if (g.has("sample")) ask.sample = int(whole_number(g.name("sample"), g.text("sample"), 2, max_sampled));
    if (!g.has("orders")) return ask;
    if (g.has("order") || g.has("group"))
        throw RequestError("--orders and --order or --group exclude each other");
    ask.orders = orders_of(g);
    return ask;
}

}  // namespace rooftile
