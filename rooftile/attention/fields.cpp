#include "rooftile/attention/fields.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "rooftile/attention/knobs.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

constexpr std::string_view layouts[] = {"bhsd", "bshd"}, types[] = {"bf16", "fp16"}, switches[] = {"off", "on"};
constexpr std::int64_t most = std::int64_t{1} << 40;  // the problem's own check says more precisely

std::vector<Field> make_fields() {
    const char *problem = "Problem", *fixed = "Fixed parameters (the rest is searched)";
    std::vector<Field> fields = {
        {"batch", "B", "Batches; default 1", problem},
        {"heads", "H", "Heads of Q and O", problem},
        {"kv_heads", "G", "Heads of K and V, each shared by H / G heads of Q; default H", problem},
        {"q", "S", "Queries of a head", problem},
        {"kv", "T", "Keys of a head; default S", problem},
        {"lengths", "LIST|Bx[LO..HI]|FILE",
         "Packed sequences, in place of batch, q and kv; with q: of a cache's keys, in place of batch. The lengths of a distribution to plan for, 128,512,...; of B "
         "between LO and HI; a flag may name a file of them", problem},
        {"page", "P", "Keys are in pages of P, which a table names: a multiple of 16", problem},
        {"pages", "N", "Pages that K and V have; default what the lengths' batches have room for", problem},
        {"dim", "D", "Elements of a row of Q and K: a multiple of 8 up to 256; with latent of 16 up to 576", problem},
        {"dim_v", "V", "Elements of a row of V and O; default D; with latent a multiple of 128 up to 512", problem},
        {"latent", "on|off", "Values are the first V elements of K's rows, which all heads share: there is no tensor V; of 1 to 32 queries; default off", problem},
        {"scale", "X", "What scores are multiplied by; default 1 / sqrt(D)", problem},
        {"mask", "MASK", "none, causal (aligned at the lower right) or window:W (the last W keys of those); default none",
         problem},
        {"type", "TYPE", "Type of all four tensors: bf16 or fp16; default bf16", problem},
        {"layout", "AXES", "bhsd (a head's rows follow each other) or bshd (a row's heads do); default bhsd", problem},
        {"q_strides", "BATCH,HEAD,ROW", "Elements from one batch, head and row of Q to the next; default as --layout has it, dense", problem},
        {"k_strides", "BATCH,HEAD,ROW", "The same of K", problem},
        {"v_strides", "BATCH,HEAD,ROW", "The same of V", problem},
        {"o_strides", "BATCH,HEAD,ROW", "The same of O, whose rows must not overlap", problem},
        {"log_sum_exp", "on|off", "The scores' log-sum-exp of every query, too; default off", problem},
        {"score", "EXPRESSION",
         "What is made of a score before its exponential, of s, the places i and j of its query and key among the keys, and tensors: "
         "\"s = 30 * tanh(s / 30)\", \"s = s + slope * (j - i)\"", problem},
        {"tensor", "NAME:TYPE[SHAPE]", "A tensor that the score reads: \"slope:fp32[H]\", one number a head, or [1]; repeatable", problem, FieldKind::list},
    };
    for (Field& field : knob_fields<AttentionKnobs>(fixed)) fields.push_back(std::move(field));
    fields.insert(fields.end(), {
        {"consumer_warpgroups", "N", "Warpgroups that compute, 64 queries each", fixed},
        {"exhaustive", "", "Search also what structural rules leave out", fixed, FieldKind::on},
        {"top", "N", "Plans to keep", "Output"},
    });
    return fields;
}

std::int64_t number(const Given& g, std::string_view key, std::int64_t otherwise) {
    return g.has(key) ? whole_number(g.name(key), g.text(key), 0, most) : otherwise;
}

/// 0: not given.
double scale_of(const Given& g) {
    if (!g.has("scale")) return 0;
    const std::string& text = g.text("scale");
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != 0 || !(value > 0))
        throw RequestError(fmt::format("{} is \"{}\"; accepted: a number above 0, as 0.0722", g.name("scale"), printable(text, 80)));
    return value;
}

std::int64_t needed(const Given& g, std::string_view key) {
    if (!g.has(key))
        throw RequestError(fmt::format(
            "missing {}: rooftile plan attention --batch 2 --heads 16 --q 4096 --dim 128 --mask causal", g.name(key)));
    return number(g, key, 0);
}

void read_mask(const Given& g, AttentionProblem& p) {
    if (!g.has("mask")) return;
    const std::string& text = g.text("mask");
    constexpr std::string_view window = "window:";
    if (text == "none") p.mask = AttentionMask::none;
    else if (text == "causal") p.mask = AttentionMask::causal;
    else if (text.starts_with(window)) {
        p.mask = AttentionMask::window;
        p.window = whole_number(g.name("mask") + " window:W, the keys that a query sees, W =",
                                std::string_view(text).substr(window.size()), 1, max_attention_rows);
    } else throw RequestError(fmt::format("{} is \"{}\"; accepted: none, causal, window:W", g.name("mask"), printable(text, 80)));
}

constexpr std::string_view forms_of_lengths = "128,512,... or Bx[LO..HI]; a flag may name a file of numbers";

/// "64x[16..512]": so many, between those two, any as likely; the same text is always the same lengths.
std::vector<std::int64_t> drawn_lengths(const std::string& name, std::string_view text) {
    const std::size_t open = text.find("x["), dots = text.find("..");
    if (open == text.npos || dots == text.npos || dots < open || text.back() != ']')
        throw RequestError(fmt::format("{} is \"{}\"; accepted: {}", name, printable(text, 80), forms_of_lengths));
    const auto number = [&](const char* which, std::string_view digits, std::int64_t least, std::int64_t most_here) {
        return whole_number(fmt::format("{} Bx[LO..HI], {} =", name, which), digits, least, most_here);
    };
    const std::int64_t count = number("B", text.substr(0, open), 1, max_attention_heads);
    const std::int64_t least = number("LO", text.substr(open + 2, dots - open - 2), 0, max_attention_rows);
    const std::int64_t greatest = number("HI", text.substr(dots + 2, text.size() - dots - 3), 0, max_attention_rows);
    if (least > greatest)
        throw RequestError(fmt::format("{} is \"{}\": LO = {} is above HI = {}; give {}x[{}..{}]", name, text, least, greatest, count, greatest, least));
    Random random(std::uint64_t(count) * 1000003u + std::uint64_t(least) * 1009u + std::uint64_t(greatest));
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < count; ++i) lengths.push_back(random.whole(least, greatest));
    return lengths;
}

/// "3x512": meant as three of 512, for which there is another form; empty where the text is nothing like it.
std::string as_equal_lengths(std::string_view text) {
    const std::size_t x = std::min(text.find('x'), text.size());
    constexpr std::string_view digits = "0123456789";
    if (x == 0 || x + 1 >= text.size() || text.substr(0, x).find_first_not_of(digits) != text.npos || text.substr(x + 1).find_first_not_of(digits) != text.npos)
        return {};
    return fmt::format("{}x[{}..{}]", text.substr(0, x), text.substr(x + 1), text.substr(x + 1));
}

AttentionPitch read_strides(std::string_view name, std::string_view text) {
    std::int64_t numbers[3];
    for (std::size_t i = 0, begin = 0; i < 3; ++i) {
        const std::size_t end = i == 2 ? text.size() : text.find(',', begin);
        if (end == text.npos || begin > text.size())
            throw RequestError(fmt::format("{} is \"{}\"; accepted: BATCH,HEAD,ROW, three numbers of elements", name, printable(text, 80)));
        numbers[i] = whole_number(name, text.substr(begin, end - begin), 1, max_attention_stride);
        begin = end + 1;
    }
    return {.row = numbers[2], .head = numbers[1], .batch = numbers[0]};
}
std::string strides_text(const AttentionPitch& pitch) { return fmt::format("{},{},{}", pitch.batch, pitch.head, pitch.row); }

/// Numbers between commas, or several there with blanks between them.
std::vector<std::int64_t> listed_lengths(std::string_view name, std::string_view text) {
    std::vector<std::int64_t> lengths;
    int place = 0, without = 0;
    for (std::size_t begin = 0; begin <= text.size(); ++place) {
        const std::size_t comma = std::min(text.find(',', begin), text.size()), before = lengths.size();
        while (begin < comma) {
            const std::size_t end = std::min(text.find(' ', begin), comma);
            if (end > begin) lengths.push_back(whole_number(name, text.substr(begin, end - begin), 0, max_attention_rows));
            begin = end + 1;
        }
        if (lengths.size() == before && without == 0) without = place + 1;
        begin = comma + 1;
    }
    if (lengths.empty() || lengths.size() > std::size_t(max_attention_heads))
        throw RequestError(fmt::format("{} has {} lengths; accepted: 1 to {}", name, lengths.size(), max_attention_heads));
    if (without > 0)
        throw RequestError(fmt::format("{} is \"{}\": place {} between its commas is empty; a sequence without rows is written 0", name, printable(text, 80), without));
    return lengths;
}

std::vector<std::int64_t> read_lengths(const Given& g) {
    const std::string name = g.name("lengths");
    std::string text = g.text("lengths");
    std::vector<std::int64_t> lengths;
    if (text.find('[') != text.npos) lengths = drawn_lengths(name, text);
    else {
        constexpr std::string_view of_a_list = "0123456789, ";
        if (text.find_first_not_of(of_a_list) != text.npos) {
            auto content = g.named_file("lengths");
            if (!content) {
                const std::string meant = as_equal_lengths(text);
                throw RequestError(meant.empty() ? fmt::format("{} is \"{}\": no list, and no such file that a flag names; accepted: {} (3x[512..512] is three of 512)",
                                                               name, printable(text, 80), forms_of_lengths)
                                                 : fmt::format("{} is \"{}\"; sequences of one length are {}", name, printable(text, 80), printable(meant, 80)));
            }
            text = std::move(*content);
        }
        lengths = listed_lengths(name, text);
    }
    if (*std::max_element(lengths.begin(), lengths.end()) == 0)
        throw RequestError(fmt::format("{}: nothing to do, none of the {} sequences has a row; a length of 1 or more is needed, beside which others may be 0", name, lengths.size()));
    return lengths;
}

std::optional<int> number_if(const Given& g, std::string_view key, int least, int greatest) {
    if (!g.has(key)) return std::nullopt;
    return int(whole_number(g.name(key), g.text(key), least, greatest));
}

/// Elements from one index to the next, as if the axis were there: what has one index has any stride.
bool lies_as(const TensorInfo& t, const AttentionPitch& pitch) {
    const std::int64_t wanted[] = {pitch.batch, pitch.head, pitch.row, 1};
    for (std::size_t axis = 0; axis < 4; ++axis)
        if (t.extents[axis].most > 1 && t.strides[axis] != wanted[axis]) return false;
    return true;
}

}  // namespace

std::span<const Field> attention_fields() {
    static const std::vector<Field> fields = make_fields();
    return fields;
}

AttentionProblem attention_problem(const Given& g) {
    AttentionProblem p;
    p.heads = needed(g, "heads");
    const bool latent = g.has("latent") && one_of(g.name("latent"), g.text("latent"), switches) == 1;
    p.kv_heads = number(g, "kv_heads", latent ? 1 : p.heads);
    if (g.has("lengths") && g.has("q")) {
        if (g.has("batch")) throw RequestError(fmt::format("{} is given, and {} says it too", g.name("batch"), g.name("lengths")));
        p.cached = true;
        p.lengths = read_lengths(g);
        p.batch = std::int64_t(p.lengths.size());
        p.queries = needed(g, "q");
        p.keys = number(g, "kv", *std::max_element(p.lengths.begin(), p.lengths.end()));
    } else if (g.has("lengths")) {
        for (const char* key : {"batch", "kv"})
            if (g.has(key))
                throw RequestError(fmt::format("{} is given, and {} says it too", g.name(key), g.name("lengths")));
        p.lengths = read_lengths(g);
        p.batch = std::int64_t(p.lengths.size());
        p.queries = p.keys = *std::max_element(p.lengths.begin(), p.lengths.end());
    } else {
        p.batch = number(g, "batch", 1);
        p.queries = needed(g, "q");
        p.keys = number(g, "kv", p.queries);
    }
    if (g.has("page")) {
        p.page = number(g, "page", 0);
        if (p.page == 0) throw RequestError(fmt::format("{} is 0; keys that are in no pages need no {}", g.name("page"), g.name("page")));
        if (p.packed()) throw RequestError(fmt::format("{} is of a cache; with {} give {}, the queries of each sequence", g.name("page"), g.name("lengths"), g.name("q")));
        if (p.alike()) p.cached = true, p.lengths.assign(std::size_t(std::clamp<std::int64_t>(p.batch, 0, max_attention_heads)), p.keys);
        p.pages = number(g, "pages", p.batch * p.pages_of_a_batch());
    } else if (g.has("pages")) throw RequestError(fmt::format("{} is given without {}", g.name("pages"), g.name("page")));
    p.dim = needed(g, "dim");
    p.latent = latent;
    if (p.latent && !g.has("dim_v")) throw RequestError(fmt::format("with {} give {}, elements of a row of K that are its values", g.name("latent"), g.name("dim_v")));
    p.dim_v = number(g, "dim_v", p.dim);
    p.scale = scale_of(g);
    read_mask(g, p);
    if (g.has("type")) p.type = one_of(g.name("type"), g.text("type"), types) == 0 ? Type::bf16 : Type::fp16;
    if (g.has("layout")) p.layout = AttentionLayout(one_of(g.name("layout"), g.text("layout"), layouts));
    if (g.has("log_sum_exp")) p.log_sum_exp = one_of(g.name("log_sum_exp"), g.text("log_sum_exp"), switches) == 1;
    for (const AttentionOperand operand : attention_operands)
        if (const std::string_view key = strides_key(operand); g.has(key)) p.strides[std::size_t(operand)] = read_strides(g.name(key), g.text(key));
    p.score = attention_score(p.heads, g.text("score"), g.list("tensor"));
    check(p);
    return p;
}

AttentionRequest attention_request(const Given& g, int default_top) {
    constexpr int max_plans = 256, max_warpgroups = 16;
    AttentionRequest r;
    read_knobs<AttentionKnobs>(g, r);
    check_knobs<AttentionKnobs>(r);
    r.consumer_warpgroups = number_if(g, "consumer_warpgroups", 1, max_warpgroups);
    r.exhaustive = g.has("exhaustive");
    r.top = number_if(g, "top", 1, max_plans).value_or(default_top);
    return r;
}

Given attention_with_work(const Given& asked, std::int64_t size) {
    Given given = asked;
    for (const char* key : {"batch", "heads", "kv_heads"})
        if (given.has(key)) given.replace(key, with_size_for_zero(given.text(key), size));
    const std::string& lengths = given.text("lengths");
    constexpr std::string_view of_no_rows = "0, ";
    if (!lengths.empty() && lengths.find_first_not_of(of_no_rows) == lengths.npos) {
        const std::size_t first = lengths.find('0');
        if (first != lengths.npos) given.replace("lengths", lengths.substr(0, first) + std::to_string(size) + lengths.substr(first + 1));
    }
    return given;
}

Given attention_given(const AttentionProblem& p) {
    Given given(Given::Named::by_key);
    const auto add = [&](std::string_view key, std::int64_t value) { given.add(key, std::to_string(value)); };
    if (!p.alike()) given.add("lengths", lengths_text(p));
    else add("batch", p.batch);
    add("heads", p.heads);
    add("kv_heads", p.kv_heads);
    if (!p.packed()) add("q", p.queries), add("kv", p.keys);
    if (p.paged()) add("page", p.page), add("pages", p.pages);
    add("dim", p.dim);
    add("dim_v", p.dim_v);
    given.add("mask", mask_text(p));
    given.add("type", std::string(attention_type_name(p.type)));
    given.add("layout", std::string(name_of(p.layout)));
    given.add("log_sum_exp", p.log_sum_exp ? "on" : "off");
    if (p.latent) given.add("latent", "on");
    if (p.scale > 0) given.add("scale", fmt::format("{}", p.scale));
    for (const AttentionOperand operand : attention_operands)
        if (const auto& pitch = p.strides[std::size_t(operand)]) given.add(strides_key(operand), strides_text(*pitch));
    if (p.score) {
        given.add("score", p.score->expression);
        for (const std::string& tensor : p.score->tensors) given.add("tensor", tensor);
    }
    return given;
}

Given attention_given(const Record& record) {
    Given given(Given::Named::by_key);
    const auto lengths = find_as<std::string>(record, "lengths");
    const bool cached = find_as<bool>(record, "cached").value_or(false);
    if (lengths) given.add("lengths", *lengths);
    for (const char* key : {"page", "pages"})
        if (const auto value = find_as<std::int64_t>(record, key)) given.add(key, std::to_string(*value));
    for (const std::string_view key : {"batch", "heads", "kv_heads", "q", "kv", "dim", "dim_v"})
        if (!lengths || (key != "batch" && (cached || (key != "q" && key != "kv"))))
            given.add(key, std::to_string(find_as<std::int64_t>(record, key).value_or(0)));
    for (const char* key : {"mask", "type", "layout"}) given.add(key, find_as<std::string>(record, key).value_or(""));
    given.add("log_sum_exp", find_as<bool>(record, "log_sum_exp").value_or(false) ? "on" : "off");
    if (find_as<bool>(record, "latent").value_or(false)) given.add("latent", "on");
    if (const auto scale = find_as<double>(record, "scale")) given.add("scale", fmt::format("{}", *scale));
    for (const AttentionOperand operand : attention_operands)
        if (const auto strides = find_as<std::string>(record, strides_key(operand))) given.add(strides_key(operand), *strides);
    if (const auto score = find_as<std::string>(record, "score")) given.add("score", *score);
    for (const Value& value : find_as<List>(record, "score_tensors").value_or(List()))
        if (const auto* text = std::get_if<std::string>(&value.content())) given.add("tensor", *text);
    return given;
}

Given attention_given_of_config(const Record& config) { return given_of_knobs<AttentionKnobs>(config); }

namespace {

/// Of cu_seqlens: how many sequences there are. Lengths that nobody gave are alike.
void add_bounds(Given& given, const TensorInfo& bounds, std::span<const Extent> q, std::span<const Extent> k) {
    const std::int64_t sequences = bounds.extents.size() == 1 ? bounds.extents[0].most - 1 : 0, rows = q[2].most;
    if (bounds.type != "int32" || sequences < 1 || bounds.strides[0] != 1)
        throw RequestError("cu_seqlens is int32 [sequences + 1], dense: where each sequence's rows begin, and the last one's end");
    if (q[0].most != 1 || k[2].most != rows)
        throw RequestError(fmt::format("with cu_seqlens Q, K and V are [1, heads, rows, dim], rows of all sequences one after the other; Q has {} x {} and K {} x {}",
                                       q[0].most, rows, k[0].most, k[2].most));
    if (!given.has("lengths")) {
        std::string lengths;
        for (std::int64_t i = 0; i < sequences; ++i)
            lengths += fmt::format("{}{}", i == 0 ? "" : ",", rows / sequences + (i < rows % sequences ? 1 : 0));
        return given.add("lengths", lengths);
    }
    const std::vector<std::int64_t> lengths = read_lengths(given);
    const std::int64_t sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    if (std::int64_t(lengths.size()) != sequences || sum != rows)
        throw RequestError(fmt::format("{} has {} sequences of {} rows together, cu_seqlens {} and Q {}", given.name("lengths"), lengths.size(), sum, sequences, rows));
}

const TensorInfo* named(std::span<const TensorInfo> tensors, std::string_view name) {
    const auto at = std::ranges::find(tensors, name, &TensorInfo::name);
    return at == tensors.end() ? nullptr : &*at;
}

/// Of a cache: lengths, and the table of its pages. Lengths that nobody gave are as many keys as there is room for.
void add_cache(Given& given, const TensorInfo& lengths, const TensorInfo* table, std::span<const Extent> q, std::span<const Extent> k) {
    const std::int64_t batch = q[0].most;
    if (lengths.type != "int32" || lengths.extents.size() != 1 || lengths.extents[0].most != batch || lengths.strides[0] != 1)
        throw RequestError(fmt::format("lengths is int32 [{}], dense: how many keys of the cache each of Q's batches has", batch));
    std::int64_t room = k[2].most;
    if (table) {
        if (table->type != "int32" || table->extents.size() != 2 || table->extents[0].most != batch || table->strides[1] != 1
            || (batch > 1 && table->strides[0] != table->extents[1].most))
            throw RequestError(fmt::format("block_table is int32 [{}, pages of a batch], dense: which page each has", batch));
        given.add("page", std::to_string(k[2].most));
        given.add("pages", std::to_string(k[0].most));
        room *= table->extents[1].most;
    } else if (k[0].most != batch) {
        throw RequestError(fmt::format("Q has {} batches and K {}; they differ only where a block_table says which pages are whose", batch, k[0].most));
    }
    for (const char* key : {"q", "kv"})
        if (given.has(key)) throw RequestError(fmt::format("{} is given, and the tensors say it too", given.name(key)));
    given.add("q", std::to_string(q[2].most));
    given.add("kv", std::to_string(room));
    if (!given.has("lengths")) {
        std::string text;
        for (std::int64_t i = 0; i < batch; ++i) text += (i == 0 ? "" : ",") + std::to_string(room);
        given.add("lengths", text);
    } else if (const std::size_t planned = read_lengths(given).size(); std::int64_t(planned) != batch) {
        throw RequestError(fmt::format("{} has {} lengths, Q {} batches", given.name("lengths"), planned, batch));
    }
}

/// What a score reads, as one would declare it: "slope:fp32[H]".
std::string score_tensor_text(const TensorInfo& t) {
    if (t.name.empty()) throw RequestError("a tensor that a score reads has no name; give it by that name");
    if (t.extents.size() != 1 || (t.extents[0].most > 1 && t.strides[0] != 1))
        throw RequestError(fmt::format("{} is what a score reads: one number a head, [H], or [1], dense", t.name));
    return fmt::format("{}:{}[{}]", t.name, t.type, t.extents[0].most);
}

}  // namespace

void add_attention_tensors(Given& given, std::span<const TensorInfo> inputs) {
    const bool latent = given.has("latent") && one_of(given.name("latent"), given.text("latent"), switches) == 1;
    const std::size_t matrices = latent ? 2 : 3, values = matrices - 1;
    if (inputs.size() < matrices)
        throw RequestError(latent ? fmt::format("latent attention takes Q and K; {} tensors are given", inputs.size())
                                  : fmt::format("attention takes Q, K and V, cu_seqlens where sequences are packed, and what a score reads; {} tensors are given", inputs.size()));
    constexpr const char* names[] = {"Q", "K", "V"};
    for (std::size_t i = 0; i < matrices; ++i) {
        const TensorInfo& t = inputs[i];
        if (!t.name.empty() && t.name != names[i]) throw RequestError(fmt::format("tensor {} is named {}; the first ones are {}", i + 1, t.name, latent ? "Q and K" : "Q, K and V"));
        if (t.offset % attention_dim_step != 0)
            throw RequestError(fmt::format("{} begins {} elements after a multiple of 16 bytes; hand over a copy that begins at one", names[i],
                                           t.offset % attention_dim_step));
        if (t.extents.size() != 4)
            throw RequestError(fmt::format("{} has {} axes; attention takes [batch, heads, rows, dim]", names[i], t.extents.size()));
        if (t.type != inputs[0].type)
            throw RequestError(fmt::format("{} is {} and Q {}; attention takes one type", names[i], t.type, inputs[0].type));
    }
    const auto &q = inputs[0].extents, &k = inputs[1].extents, &v = inputs[values].extents;
    const auto equal = [&](std::size_t axis, const char* what, const Extent& a, const Extent& b) {
        if (a.most != b.most)
            throw RequestError(fmt::format("{} differ on axis {}: {} and {}", what, axis, a.most, b.most));
    };
    equal(3, "Q and K", q[3], k[3]);
    for (std::size_t axis = 0; axis < 3; ++axis) equal(axis, "K and V", k[axis], v[axis]);
    const auto add = [&](std::string_view key, const Extent& extent) {
        if (given.has(key)) throw RequestError(fmt::format("{} is given, and the tensors say it too", given.name(key)));
        given.add(key, std::to_string(extent.most));
    };
    std::span<const TensorInfo> others = inputs.subspan(matrices);
    if (!others.empty() && (others[0].name == "cu_seqlens" || (others[0].name.empty() && others[0].type == "int32"))) {
        add_bounds(given, others[0], q, k);
        others = others.subspan(1);
    } else if (const TensorInfo* lengths = named(others, "lengths")) {
        add_cache(given, *lengths, named(others, "block_table"), q, k);
    } else if (named(others, "block_table")) {
        throw RequestError("block_table is given without lengths: int32, how many keys each of Q's batches has");
    } else if (given.has("lengths")) {
        throw RequestError(fmt::format("with {} the tensor after V is cu_seqlens: int32, where each sequence begins and the last one ends", given.name("lengths")));
    } else {
        equal(0, "Q and K", q[0], k[0]);
        add("batch", q[0]);
        add("q", q[2]);
        add("kv", k[2]);
    }
    add("heads", q[1]);
    add("kv_heads", k[1]);
    if (given.has("tensor")) throw RequestError(fmt::format("{} is given, and the tensors say it too", given.name("tensor")));
    for (const TensorInfo& t : others)
        if (t.name != "lengths" && t.name != "block_table") given.add("tensor", score_tensor_text(t));
    add("dim", q[3]);
    if (!latent) add("dim_v", v[3]);
    if (given.has("type")) throw RequestError(fmt::format("{} is given, and the tensors say it too", given.name("type")));
    given.add("type", inputs[0].type);
    const AttentionProblem p = attention_problem(given);
    for (const AttentionLayout layout : {AttentionLayout::bhsd, AttentionLayout::bshd}) {
        AttentionProblem lies = p;
        lies.layout = layout;
        if (!lies_as(inputs[0], pitch_of(lies, AttentionOperand::q)) || !lies_as(inputs[1], pitch_of(lies, AttentionOperand::k))
            || !lies_as(inputs[values], pitch_of(lies, AttentionOperand::v)))
            continue;
        given.add_default("layout", std::string(name_of(layout)));
        return;
    }
    // Neither dense layout: each by its strides; O as Q's axes follow each other.
    const auto lie = [&](const TensorInfo& t) {
        const bool rows_apart = t.strides[2] >= t.strides[1] && t.extents[1].most > 1;
        return rows_apart ? AttentionLayout::bshd : AttentionLayout::bhsd;
    };
    for (std::size_t i = 0; i < matrices; ++i) {
        const TensorInfo& t = inputs[i];
        if (t.extents[3].most > 1 && t.strides[3] != 1)
            throw RequestError(fmt::format("{}'s elements of a row are {} apart; hand over a copy where they are neighbours", names[i], t.strides[3]));
        // An axis of one index has any stride: a row's is taken.
        AttentionPitch pitch{t.strides[2], t.strides[1], t.strides[0]};
        const std::int64_t least = t.extents[3].most;
        if (t.extents[2].most <= 1) pitch.row = least;
        if (t.extents[1].most <= 1) pitch.head = std::max(pitch.row, least);
        if (t.extents[0].most <= 1) pitch.batch = std::max(pitch.head, least);
        given.add(strides_key(attention_operands[i]), strides_text(pitch));
    }
    given.add_default("layout", std::string(name_of(lie(inputs[0]))));
    attention_problem(given);  // what it refuses, it refuses here
}

}  // namespace rooftile
