// A checker for the part of JSON Schema that docs/schema/ uses: type, enum, const, required, properties,
// additionalProperties (a schema), items, minimum, oneOf, $ref to #/$defs/NAME. A keyword outside
// this list is reported, so that no schema can say what is not checked.
#pragma once

#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace rooftile {

class JsonSchema {
  public:
    /// The schema docs/schema/NAME.
    explicit JsonSchema(const std::string& name) {
        std::ifstream file(std::string(ROOFTILE_SOURCE_DIR) + "/docs/schema/" + name);
        EXPECT_TRUE(file) << "docs/schema/" << name << " is missing";
        root_ = nlohmann::json::parse(file);
    }

    /// Every fault, one line each: "/plans/0/rank: not of type integer". Empty where the document is right.
    std::string faults(const nlohmann::json& document) const {
        std::string out;
        check(root_, document, "", out);
        return out;
    }

  private:
    using Value = nlohmann::json;

    static bool of_type(const std::string& type, const Value& value) {
        if (type == "object") return value.is_object();
        if (type == "array") return value.is_array();
        if (type == "string") return value.is_string();
        if (type == "boolean") return value.is_boolean();
        if (type == "null") return value.is_null();
        if (type == "integer") return value.is_number_integer();
        if (type == "number") return value.is_number();
        return false;
    }

    static bool of_types(const Value& types, const Value& value) {
        if (types.is_string()) return of_type(types, value);
        for (const Value& type : types)
            if (of_type(type, value)) return true;
        return false;
    }

    void check(const Value& schema, const Value& value, const std::string& at, std::string& out) const {
        static const std::set<std::string> known = {
            "$schema", "$id",     "$defs", "$ref",     "title",      "description",
            "type",    "enum",    "const", "required", "properties", "additionalProperties",
            "items",   "minimum", "oneOf"};
        for (const auto& [keyword, rule] : schema.items())
            if (!known.count(keyword))
                out += at + ": the schema uses " + keyword + ", which is not checked\n";
        if (schema.contains("$ref")) {
            const std::string ref = schema["$ref"];
            return check(root_.at(Value::json_pointer(ref.substr(1))), value, at, out);
        }
        if (schema.contains("type") && !of_types(schema["type"], value)) {
            out += at + ": not of type " + schema["type"].dump() + ": " + value.dump().substr(0, 60) + "\n";
            return;
        }
        if (schema.contains("const") && schema["const"] != value)
            out += at + ": not " + schema["const"].dump() + "\n";
        if (schema.contains("enum")) check_enum(schema["enum"], value, at, out);
        if (schema.contains("minimum") && value.is_number() && value < schema["minimum"])
            out += at + ": too small\n";
        if (schema.contains("oneOf")) check_one_of(schema["oneOf"], value, at, out);
        if (value.is_object() && !schema.contains("oneOf")) check_object(schema, value, at, out);
        if (value.is_array() && schema.contains("items"))
            for (std::size_t i = 0; i < value.size(); ++i)
                check(schema["items"], value[i], at + "/" + std::to_string(i), out);
    }

    static void check_enum(const Value& allowed, const Value& value, const std::string& at,
                           std::string& out) {
        for (const Value& one : allowed)
            if (one == value) return;
        out += at + ": " + value.dump() + " is none of " + allowed.dump() + "\n";
    }

    void check_one_of(const Value& schemas, const Value& value, const std::string& at,
                      std::string& out) const {
        int right = 0;
        for (const Value& schema : schemas) {
            std::string faults;
            check(schema, value, at, faults);
            right += faults.empty();
        }
        if (right != 1) out += at + ": fits " + std::to_string(right) + " of the schemas of oneOf, not 1\n";
    }

    void check_object(const Value& schema, const Value& value, const std::string& at,
                      std::string& out) const {
        if (schema.contains("required"))
            for (const Value& key : schema["required"])
                if (!value.contains(key.get<std::string>())) out += at + ": lacks " + key.dump() + "\n";
        const Value none = Value::object();
        const Value& properties = schema.contains("properties") ? schema["properties"] : none;
        for (const auto& [key, member] : value.items()) {
            if (properties.contains(key)) check(properties[key], member, at + "/" + key, out);
            else if (!schema.contains("additionalProperties")) out += at + ": undescribed key " + key + "\n";
            else check(schema["additionalProperties"], member, at + "/" + key, out);
        }
    }

    Value root_;
};

}  // namespace rooftile
