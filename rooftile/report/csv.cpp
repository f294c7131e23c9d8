#include "rooftile/report/csv.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

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
    if (value.is_null() || value.is_object()) return {};
    if (value.is_string()) return csv_cell(value.get_ref<const std::string&>());
    if (!value.is_array()) return value.dump();
    std::string joined;
    for (const Json& element : value)
        joined += (joined.empty() ? "" : " ")
                  + (element.is_object()   ? declaration_of(element)
                     : element.is_string() ? element.get<std::string>()
                                           : element.dump());
    return csv_cell(joined);
}

/// What one cell cannot hold: its parts have columns, or none.
bool is_composite(const Json& value) {
    if (!value.is_array() || value.empty()) return value.is_object();
    return value.front().is_object() && !value.front().contains("shape");
}

struct Column {
    Json::json_pointer path;
    std::string title;
};

/// "/config/tile_m" as "tile_m", or with `all` of its keys.
std::string title_of(const Json::json_pointer& path, bool all) {
    std::string title = path.to_string();
    for (const char* plain : {"/problem/", "/config/", "/resources/", "/prediction/"})
        if (!all && title.starts_with(plain)) title.erase(0, std::string_view(plain).size() - 1);
    std::replace(title.begin(), title.end(), '/', '_');
    return title.substr(1);
}

void add_columns(std::vector<Column>& columns, const Json& value, const Json::json_pointer& path) {
    if (value.is_object()) {
        for (const auto& [key, inner] : value.items()) add_columns(columns, inner, path / key);
        return;
    }
    std::string title = title_of(path, false);
    for (const Column& column : columns) {
        if (column.path == path) return;
        if (column.title == title) title = title_of(path, true);
    }
    columns.push_back({path, std::move(title)});
}

std::string line_of(const std::vector<Column>& columns, auto&& cell) {
    std::string line;
    for (const Column& column : columns) line += (&column == columns.data() ? "" : ",") + cell(column);
    return line + "\r\n";
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

std::string csv_text(const Json& document, std::initializer_list<const char*> beside) {
    const Json& machine = document.at("machine").at("id");
    Json first = {{"machine", machine}};
    if (document.contains("problem")) first["problem"] = document.at("problem");
    for (const char* record : beside) first[record] = document.at(record);
    std::vector<Column> columns;
    add_columns(columns, first, Json::json_pointer());

    std::vector<Json> rows = row_lines(document);
    for (Json& row : rows) {
        if (document.contains("plans")) row.erase("label");  // columns have it, without commas
        row["machine"] = machine;
        for (const char* record : beside) row[record] = document.at(record);
        add_columns(columns, row, Json::json_pointer());
    }
    std::erase_if(columns, [&](const Column& column) {
        return std::any_of(rows.begin(), rows.end(), [&](const Json& row) {
            return row.contains(column.path) && is_composite(row.at(column.path));
        });
    });
    std::string out = line_of(columns, [](const Column& column) { return column.title; });
    for (const Json& row : rows)
        out += line_of(columns, [&](const Column& column) {
            return row.contains(column.path) ? cell_of(row.at(column.path)) : std::string();
        });
    return out;
}

}  // namespace rooftile
