// Documents are held against docs/schema/ by tools/check-document, which has the library.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace rooftile {

class JsonSchema {
  public:
    /// The schema docs/schema/NAME.
    explicit JsonSchema(std::string name) : name_(std::move(name)) {}

    /// Every fault, one line each: "/plans/0/rank: 1.5 is not of type 'integer'". Empty where the document is right.
    std::string faults(const nlohmann::json& document) const;
    std::string faults(const nlohmann::ordered_json& document) const;

  private:
    std::string faults_of_text(const std::string& document) const;

    std::string name_;
};

}  // namespace rooftile
