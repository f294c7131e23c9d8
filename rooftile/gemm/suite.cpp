// Suites of GEMMs: models, each with layers at several M, beside the [[problem]] rows that every operation has.
#include <fmt/core.h>

#include <algorithm>

#include "rooftile/core/suite_reader.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/suite.hpp"

namespace rooftile {
namespace {

constexpr int max_rounds = 1000;

class GemmSuiteReader final : public SuiteReader {
  public:
    explicit GemmSuiteReader(std::string_view file) : SuiteReader(gemm_operation(), file) {}

  private:
    std::vector<std::string_view> own_keys() const override { return {"type", "a_major", "b_major", "m", "model"}; }
    std::string_view own_tables() const override { return "model"; }

    void read_own(const toml::table& root) override {
        if (root.contains("type")) type_ = one_of(root, "type", "bf16", "fp16") ? Type::fp16 : Type::bf16;
        if (root.contains("a_major")) a_major_ = one_of(root, "a_major", "k", "m") ? Major::mn : Major::k;
        if (root.contains("b_major")) b_major_ = one_of(root, "b_major", "k", "n") ? Major::mn : Major::k;
        if (root.contains("m")) m_ = sizes_of(root, "m");
        if (root.contains("model"))
            for_each_table(root, "model", [this](const toml::table& table) { read_model(table); });
    }

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
        if (rounds_ > max_rounds)
            refuse(*table.get("rounds"), "rounds", fmt::format("accepted: 1 to {}", max_rounds));
        const auto m = table.contains("m") ? sizes_of(table, "m") : m_;
        if (table.contains("layers") == table.contains("squares"))
            refuse(table, "model", "accepted: either layers or squares");
        if (table.contains("squares")) {
            for (const std::int64_t size : sizes_of(table, "squares"))
                add_gemm(table, {model, "square"}, size, size, size);
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
            for (const std::int64_t rows : m) add_gemm(*layer, {model, name}, rows, n, k);
        }
    }

    void add_gemm(const toml::node& node, SuiteLayer layer, std::int64_t m, std::int64_t n, std::int64_t k) {
        add(node, "model", std::move(layer), rounds_, [&]() -> Problem {
            return {&gemm_operation(), Own::of(gemm_problem(m, n, k, type_, a_major_, b_major_))};
        });
    }

    Type type_ = Type::bf16;
    Major a_major_ = Major::k, b_major_ = Major::k;
    std::vector<std::int64_t> m_;  ///< of models that name none
    int rounds_ = 0;               ///< of the model that is read
};

}  // namespace

Suite gemm_suite(std::string_view text, std::string_view file_name) { return GemmSuiteReader(file_name).read(text); }

}  // namespace rooftile
