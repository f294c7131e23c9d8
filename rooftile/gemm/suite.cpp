#include "rooftile/gemm/suite.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/core/suite_reader.hpp"

namespace rooftile {
namespace {

constexpr std::size_t most_problems = 10'000;
constexpr int most_rounds = 1000;

class Reader : SuiteReader {
  public:
    Reader(std::string_view file, Suite& suite) : SuiteReader(file), suite_(suite) {}

    void read(const toml::table& root) {
        suite_.name = read_head(root, "gemm");
        check_keys(root, "", {"schema", "name", "op", "type", "a_major", "b_major", "m", "model"});
        if (root.contains("type")) type_ = one_of(root, "type", "bf16", "fp16") ? Type::fp16 : Type::bf16;
        if (root.contains("a_major")) a_major_ = one_of(root, "a_major", "k", "m") ? Major::mn : Major::k;
        if (root.contains("b_major")) b_major_ = one_of(root, "b_major", "k", "n") ? Major::mn : Major::k;
        if (root.contains("m")) m_ = sizes_of(root, "m");
        for_each_table(root, "model", [this](const toml::table& table) { read_model(table); });
    }

  private:
    /// False for the first, true for the second.
    bool one_of(const toml::table& table, std::string_view key, std::string_view first,
                std::string_view second) const {
        const std::string text = text_of(table, key);
        if (text != first && text != second)
            refuse(*table.get(key), key, fmt::format("accepted: \"{}\", \"{}\"", first, second));
        return text == second;
    }

    void read_model(const toml::table& table) {
        check_keys(table, "model.", {"name", "source", "m", "layers", "squares", "rounds"});
        const std::string model = text_of(table, "name");
        text_of(table, "source");
        rounds_ = table.contains("rounds") ? int(size_of(*table.get("rounds"), "rounds")) : 0;
        if (rounds_ > most_rounds)
            refuse(*table.get("rounds"), "rounds", fmt::format("accepted: 1 to {}", most_rounds));
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
            known->rounds = std::max(known->rounds, rounds_);
            if (std::find(known->layers.begin(), known->layers.end(), layer) == known->layers.end())
                known->layers.push_back(std::move(layer));
            return;
        }
        if (suite_.problems.size() == most_problems)
            refuse(node, "model", fmt::format("more than {} problems", most_problems));
        suite_.problems.push_back({problem, {std::move(layer)}, rounds_});
    }

    Suite& suite_;
    Type type_ = Type::bf16;
    Major a_major_ = Major::k, b_major_ = Major::k;
    std::vector<std::int64_t> m_;  ///< of models that name none
    int rounds_ = 0;               ///< of the model that is read
};

}  // namespace

Suite read_suite(const std::filesystem::path& path) {
    return parse_suite(read_small_file(path), path.string());
}

Suite parse_suite(std::string_view text, std::string_view file_name) {
    Suite suite;
    Reader(file_name, suite).read(parsed_toml(text, file_name));
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
