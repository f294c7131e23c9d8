#include "rooftile/report/csv.hpp"

#include <cassert>
#include <nlohmann/json.hpp>

namespace rooftile {
namespace {

/// "x:bf16[16384,4096]"
std::string declaration_of(const Json& tensor) {
    std::string shape;
    for (const Json& extent : tensor.at("shape")) shape += (shape.empty() ? "" : ",") + extent.dump();
    return tensor.at("name").get<std::string>() + ":" + tensor.at("type").get<std::string>() + "[" + shape
           + "]";
}

std::string cell_of(const Json& value) {
    if (value.is_null()) return {};
    if (value.is_string()) return csv_cell(value.get_ref<const std::string&>());
    if (!value.is_array()) return value.dump();
    std::string joined;
    for (const Json& element : value)
        joined += (joined.empty() ? "" : " ")
                  + (element.is_object() ? declaration_of(element) : element.get<std::string>());
    return csv_cell(joined);
}

void add_line(std::string& out, std::span<const CsvColumn> columns, auto&& cell) {
    for (const CsvColumn& column : columns) out += (&column == columns.data() ? "" : ",") + cell(column);
    out += "\r\n";
}

}  // namespace

std::string csv_cell(std::string_view text) {
    std::string cell;
    if (!text.empty() && std::string_view("=+-@\t\r\n").find(text.front()) != std::string_view::npos)
        cell = "'";
    cell += text;
    if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
    std::string quoted = "\"";
    for (char c : cell) {
        if (c == '"') quoted += '"';
        quoted += c;
    }
    return quoted + '"';
}

std::string csv_text(const Json& document) {
    const std::vector<Json> rows = row_lines(document);
    const Json& first = document.contains("problem") || rows.empty() ? document : rows.front();
    const Operation* operation = find_operation(first.at("problem").at("op").get<std::string>());
    assert(operation != nullptr);
    const auto columns =
        document.contains("rows") ? operation->measurement_columns() : operation->plan_columns();
    return csv_text(rows, columns);
}

std::string csv_text(const std::vector<Json>& rows, std::span<const CsvColumn> columns) {
    std::string out;
    add_line(out, columns, [](const CsvColumn& column) { return std::string(column.title); });
    for (const Json& row : rows)
        add_line(out, columns, [&](const CsvColumn& column) {
            const Json::json_pointer path{std::string(column.path)};
            return row.contains(path) ? cell_of(row.at(path)) : std::string();
        });
    return out;
}

}  // namespace rooftile
