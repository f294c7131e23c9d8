#include "rooftile/measure/source_suite.hpp"

#include <fmt/core.h>

#include <filesystem>

#include "rooftile/core/suite_reader.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/measure/source_kernel.hpp"

namespace rooftile {
namespace {

constexpr std::string_view suite_schema = "rooftile/suite/1";

class Reader : SuiteReader {
  public:
    Reader(const Operation& operation, const std::string& path) : SuiteReader(operation, path), path_(path) {}

    SourceSuite suite(const std::string& text) {
        const toml::table root = parsed_toml(text, path_);
        if (text_of(root, "schema") != suite_schema)
            refuse(*root.get("schema"), "schema", fmt::format("accepted: \"{}\"", suite_schema));
        check_keys(root, "", {"schema", "name", "source"});
        SourceSuite suite;
        suite.name = text_of(root, "name");
        for_each_table(root, "source",
                       [&](const toml::table& table) { suite.kernels.push_back(kernel_of(table)); });
        return suite;
    }

  private:
    SourceSuite::Kernel kernel_of(const toml::table& table) const {
        std::vector<std::string_view> known = {"name"};
        for (const Field& field : source_fields())
            if (field.kind != FieldKind::on) known.push_back(field.key);
        check_keys(table, "source.", known);
        SourceSuite::Kernel kernel;
        for (const Field& field : source_fields())
            if (const toml::node* node = table.get(field.key)) give(kernel.given, field, *node);
        for (const char* key : {"file", "entry"}) text_of(table, key);  // each kernel has them
        kernel.name = text_of(table, table.contains("name") ? "name" : "entry");
        return kernel;
    }

    void give(Given& given, const Field& field, const toml::node& node) const {
        const auto give_one = [&](const toml::node& value) {
            if (const auto* number = value.as_integer())
                return given.add(field.key, std::to_string(number->get()));
            const auto* text = value.as_string();
            if (!text || text->get().empty())
                refuse(value, "source." + field.key, "accepted: a text or a whole number");
            const bool is_file = field.key == "file" || field.key == "include";
            given.add(field.key, is_file ? beside(text->get()) : text->get());
        };
        if (const auto* list = node.as_array(); list && field.kind == FieldKind::list)
            for (const toml::node& value : *list) give_one(value);
        else give_one(node);
    }

    std::string beside(const std::string& file) const {
        return (std::filesystem::path(path_).parent_path() / file).string();  // an absolute one stays
    }

    const std::string& path_;
};

}  // namespace

SourceSuite read_source_suite(const std::string& path) {
    return Reader(expressions(), path).suite(read_small_file(path, suite_limits));
}

}  // namespace rooftile
