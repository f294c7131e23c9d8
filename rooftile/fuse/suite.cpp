#include "rooftile/fuse/suite.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/expression/expression.hpp"
#include "rooftile/core/suite_reader.hpp"

namespace rooftile {
namespace {

constexpr std::size_t most_problems = 10'000;

std::string name_of(const SuiteLayer& layer) { return layer.model + " " + layer.layer; }

std::string replaced(std::string text, std::string_view word, const std::string& by) {
    for (std::size_t at = 0; (at = text.find(word, at)) != text.npos; at += by.size())
        text.replace(at, word.size(), by);
    return text;
}

class Reader : SuiteReader {
  public:
    Reader(std::string_view file, FuseSuite& suite) : SuiteReader(file), suite_(suite) {}

    void read(const toml::table& root) {
        suite_.name = read_head(root, "fuse");
        check_keys(root, "", {"schema", "name", "op", "types", "shapes", "group"});
        for_each_table(root, "group", [&](const toml::table& group) { read_group(group, root); });
    }

  private:
    using Extents = std::vector<std::int64_t>;

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
                add(group, name, expression, tensors, type, shape);
    }

    void add(const toml::node& node, const std::string& name, const std::string& expression,
             const std::vector<std::string>& tensors, const std::string& type, const Extents& shape) {
        FuseSuiteProblem p;
        p.layers = {{name, fmt::format("{}x{} {}", shape[0], shape[1], type)}};
        try {
            std::vector<TensorDeclaration> declared;
            for (std::string text : tensors) {
                text = replaced(std::move(text), "TYPE", type);
                text = replaced(std::move(text), "ROWS", std::to_string(shape[0]));
                declared.push_back(
                    tensor_declaration(replaced(std::move(text), "COLUMNS", std::to_string(shape[1]))));
            }
            p.problem = expression_graph(expression, declared);
        } catch (const RequestError& error) { refuse(node, "group", error.what()); }
        const auto same = [&](const FuseSuiteProblem& other) { return other.layers == p.layers; };
        if (std::any_of(suite_.problems.begin(), suite_.problems.end(), same))
            refuse(node, "group", fmt::format("{} stands there twice", name_of(p.layers.front())));
        if (suite_.problems.size() == most_problems)
            refuse(node, "group", fmt::format("more than {} problems", most_problems));
        suite_.problems.push_back(std::move(p));
    }

    FuseSuite& suite_;
};

}  // namespace

FuseSuite read_fuse_suite(const std::filesystem::path& path) {
    return parse_fuse_suite(read_small_file(path), path.string());
}

FuseSuite parse_fuse_suite(std::string_view text, std::string_view file_name) {
    FuseSuite suite;
    Reader(file_name, suite).read(parsed_toml(text, file_name));
    return suite;
}

FuseSuite filtered(FuseSuite suite, std::string_view text) {
    std::erase_if(suite.problems, [&](const FuseSuiteProblem& p) {
        return name_of(p.layers.front()).find(text) == std::string::npos;
    });
    return suite;
}

}  // namespace rooftile
