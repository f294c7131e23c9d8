#include "rooftile/problem/suite.hpp"

#include <algorithm>
#include <initializer_list>

#include <fmt/core.h>
#include <toml++/toml.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

constexpr std::string_view suite_schema = "rooftile/suite/1";
constexpr std::int64_t largest_extent = 2147483647;
constexpr std::size_t most_problems = 10'000;

/// Reads one parsed file. Every refusal names file, line, key and what is accepted.
class Reader {
  public:
    Reader(std::string_view file, Suite& suite) : file_(file), suite_(suite) {}

    void read(const toml::table& root) {
        check_keys(root, "", {"schema", "name", "type", "a_major", "b_major", "m", "model"});
        if (text_of(root, "schema") != suite_schema)
            refuse(*root.get("schema"), "schema", fmt::format("accepted: \"{}\"", suite_schema));
        suite_.name = text_of(root, "name");
        if (root.contains("type")) type_ = one_of(root, "type", "bf16", "fp16") ? Type::fp16 : Type::bf16;
        if (root.contains("a_major")) a_major_ = one_of(root, "a_major", "k", "m") ? Major::mn : Major::k;
        if (root.contains("b_major")) b_major_ = one_of(root, "b_major", "k", "n") ? Major::mn : Major::k;
        if (root.contains("m")) m_ = sizes_of(root, "m");
        const toml::node* models = root.get("model");
        const auto* list = models ? models->as_array() : nullptr;
        if (!list || list->empty()) refuse(root, "model", "accepted: at least one [[model]] table");
        for (const toml::node& node : *list) {
            const auto* table = node.as_table();
            if (!table) refuse(node, "model", "accepted: [[model]] tables");
            read_model(*table);
        }
    }

  private:
    [[noreturn]] void refuse(const toml::node& node, std::string_view key, std::string_view problem) const {
        throw RequestError(fmt::format("{}:{}: {}: {}", printable(file_, 200), node.source().begin.line,
                                       printable(key), problem));
    }

    void check_keys(const toml::table& table, std::string_view prefix,
                    std::initializer_list<std::string_view> known) const {
        for (const auto& [key, node] : table) {
            if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
            std::string list;
            for (const std::string_view name : known) list += (list.empty() ? "" : ", ") + std::string(name);
            refuse(node, fmt::format("{}{}", prefix, key.str()), "unknown key; accepted: " + list);
        }
    }

    std::string text_of(const toml::table& table, std::string_view key) const {
        const toml::node* node = table.get(key);
        if (!node) refuse(table, key, fmt::format("missing; accepted: {} = \"...\"", key));
        const auto* text = node->as_string();
        if (!text || text->get().empty() || printable(text->get(), 200) != text->get())
            refuse(*node, key, "accepted: a text of 1 to 200 bytes without control characters");
        return text->get();
    }

    /// False for the first, true for the second.
    bool one_of(const toml::table& table, std::string_view key, std::string_view first,
                std::string_view second) const {
        const std::string text = text_of(table, key);
        if (text != first && text != second)
            refuse(*table.get(key), key, fmt::format("accepted: \"{}\", \"{}\"", first, second));
        return text == second;
    }

    std::int64_t size_of(const toml::node& node, std::string_view key) const {
        const auto* number = node.as_integer();
        if (!number || number->get() < 1 || number->get() > largest_extent)
            refuse(node, key, fmt::format("accepted: whole numbers of 1 .. {}", largest_extent));
        return number->get();
    }

    std::vector<std::int64_t> sizes_of(const toml::table& table, std::string_view key) const {
        const auto* list = table.get(key)->as_array();
        if (!list || list->empty()) refuse(*table.get(key), key, "accepted: an array of whole numbers");
        std::vector<std::int64_t> sizes;
        for (const toml::node& node : *list) sizes.push_back(size_of(node, key));
        return sizes;
    }

    void read_model(const toml::table& table) {
        check_keys(table, "model.", {"name", "source", "m", "layers", "squares"});
        const std::string model = text_of(table, "name");
        text_of(table, "source");
        const auto m = table.contains("m") ? sizes_of(table, "m") : m_;
        if (table.contains("layers") == table.contains("squares"))
            refuse(table, "model", "accepted: either layers or squares");
        if (table.contains("squares")) {
            for (const std::int64_t size : sizes_of(table, "squares"))
                add(table, {model, "square"}, size, size, size);
            return;
        }
        if (m.empty()) refuse(table, "model.m", "missing; accepted: m = [...] here or for the whole file");
        const auto* layers = table.get("layers")->as_array();
        if (!layers || layers->empty())
            refuse(*table.get("layers"), "model.layers", "accepted: an array of {name, n, k}");
        for (const toml::node& node : *layers) {
            const auto* layer = node.as_table();
            if (!layer) refuse(node, "model.layers", "accepted: {name, n, k}");
            check_keys(*layer, "model.layers.", {"name", "n", "k"});
            const std::string name = text_of(*layer, "name");
            for (const char* key : {"n", "k"})
                if (!layer->contains(key)) refuse(*layer, key, "missing; accepted: {name, n, k}");
            const std::int64_t n = size_of(*layer->get("n"), "n"), k = size_of(*layer->get("k"), "k");
            for (const std::int64_t rows : m) add(*layer, {model, name}, rows, n, k);
        }
    }

    void add(const toml::node& node, SuiteLayer layer, std::int64_t m, std::int64_t n, std::int64_t k) {
        GemmProblem problem;
        try {
            problem = gemm_problem(m, n, k, type_, a_major_, b_major_);
        } catch (const RequestError& error) { refuse(node, "model", error.what()); }
        const auto known = std::find_if(suite_.problems.begin(), suite_.problems.end(),
                                        [&](const SuiteProblem& p) { return p.problem == problem; });
        if (known != suite_.problems.end()) {
            if (std::find(known->layers.begin(), known->layers.end(), layer) == known->layers.end())
                known->layers.push_back(std::move(layer));
            return;
        }
        if (suite_.problems.size() == most_problems)
            refuse(node, "model", fmt::format("more than {} problems", most_problems));
        suite_.problems.push_back({problem, {std::move(layer)}});
    }

    std::string_view file_;
    Suite& suite_;
    Type type_ = Type::bf16;
    Major a_major_ = Major::k, b_major_ = Major::k;
    std::vector<std::int64_t> m_;  ///< of models that name none
};

}  // namespace

Suite read_suite(const std::filesystem::path& path) {
    return parse_suite(read_small_file(path), path.string());
}

Suite parse_suite(std::string_view text, std::string_view file_name) {
    check_text(text, file_name);
    Suite suite;
    try {
        Reader(file_name, suite).read(toml::parse(text, file_name));
    } catch (const toml::parse_error& error) {
        const auto at = error.source().begin;
        throw RequestError(fmt::format("{}:{}:{}: not valid TOML: {}", printable(file_name, 200), at.line,
                                       at.column, printable(error.description(), 200)));
    }
    return suite;
}

Suite filtered(Suite suite, std::string_view text) {
    std::erase_if(suite.problems, [&](const SuiteProblem& p) {
        return std::none_of(p.layers.begin(), p.layers.end(), [&](const SuiteLayer& layer) {
            const std::string name = fmt::format("{} {} {}x{}x{}", layer.model, layer.layer, p.problem.m,
                                                 p.problem.n, p.problem.k);
            return name.find(text) != std::string::npos;
        });
    });
    return suite;
}

}  // namespace rooftile
