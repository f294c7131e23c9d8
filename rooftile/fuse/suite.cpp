// Suites of fused expressions: groups of one expression over types and shapes, beside the [[problem]] rows that every
// operation has.
#include <fmt/core.h>

#include "rooftile/core/suite_reader.hpp"
#include "rooftile/expression/expression.hpp"
#include "rooftile/fuse/operation.hpp"
#include "rooftile/fuse/suite.hpp"

namespace rooftile {
namespace {

std::string replaced(std::string text, std::string_view word, const std::string& by) {
    for (std::size_t at = 0; (at = text.find(word, at)) != text.npos; at += by.size())
        text.replace(at, word.size(), by);
    return text;
}

class FuseSuiteReader final : public SuiteReader {
  public:
    explicit FuseSuiteReader(std::string_view file) : SuiteReader(fuse_operation(), file) {}

  private:
    using Extents = std::vector<std::int64_t>;

    std::vector<std::string_view> own_keys() const override { return {"types", "shapes", "group"}; }
    std::string_view own_tables() const override { return "group"; }

    void read_own(const toml::table& root) override {
        if (root.contains("group"))
            for_each_table(root, "group", [&](const toml::table& group) { read_group(group, root); });
    }

    std::vector<Extents> shapes_of(const toml::table& table) const {
        const auto* list = table.get("shapes") ? table.get("shapes")->as_array() : nullptr;
        const auto wrong = [&](const toml::node& node) {
            refuse(node, "shapes", "accepted: [[ROWS, COLUMNS], ...] here or for the whole file");
        };
        if (!list || list->empty()) wrong(table);
        std::vector<Extents> shapes;
        for (const toml::node& node : *list) {
            shapes.push_back(sizes_of(node, "shapes"));
            if (shapes.back().size() != 2) wrong(node);
        }
        return shapes;
    }

    void read_group(const toml::table& group, const toml::table& root) {
        check_keys(group, "group.", {"name", "expression", "tensors", "types", "shapes"});
        const std::string name = text_of(group, "name"), expression = text_of(group, "expression");
        const auto tensors = texts_of(group, "tensors");
        const auto types = texts_of(group.contains("types") ? group : root, "types");
        for (const std::string& type : types)
            for (const Extents& shape : shapes_of(group.contains("shapes") ? group : root))
                add_expression(group, name, expression, tensors, type, shape);
    }

    void add_expression(const toml::node& node, const std::string& name, const std::string& expression,
                        const std::vector<std::string>& tensors, const std::string& type, const Extents& shape) {
        SuiteLayer layer{name, fmt::format("{}x{} {}", shape[0], shape[1], type)};
        if (has_layer(layer)) refuse(node, "group", fmt::format("{} {} is there twice", layer.model, layer.layer));
        add(node, "group", std::move(layer), 0, [&]() -> Problem {
            std::vector<TensorDeclaration> declared;
            for (std::string text : tensors) {
                text = replaced(std::move(text), "TYPE", type);
                text = replaced(std::move(text), "ROWS", std::to_string(shape[0]));
                declared.push_back(tensor_declaration(replaced(std::move(text), "COLUMNS", std::to_string(shape[1]))));
            }
            return {&fuse_operation(), Own::of(expression_graph(expression, declared))};
        });
    }
};

}  // namespace

Suite fuse_suite(std::string_view text, std::string_view file_name) { return FuseSuiteReader(file_name).read(text); }

}  // namespace rooftile
