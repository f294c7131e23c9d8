// Values as documents show them: what an operation says of its problems, plans and measurements, in an order that
// every station keeps. JSON, CSV and tables are made from these.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rooftile {

class Value;
using List = std::vector<Value>;
/// Named values in order.
using Record = std::vector<std::pair<std::string, Value>>;

/// What stands where a value has no place: registers that a kernel does not set. Documents write it as an unknown one.
struct Unused {
    friend bool operator==(Unused, Unused) = default;
};

/// One value; nothing stands for an unknown one. A double that is whole is written as an integer, one that is not
/// finite as nothing.
class Value {
  public:
    using Content = std::variant<std::monostate, Unused, bool, std::int64_t, double, std::string, List, Record>;

    Value() = default;
    Value(std::nullopt_t) {}
    Value(Unused) : content_(Unused{}) {}
    Value(bool value) : content_(value) {}
    Value(int value) : content_(std::int64_t{value}) {}
    Value(unsigned value) : content_(std::int64_t{value}) {}
    Value(std::int64_t value) : content_(value) {}
    Value(std::uint64_t value) : content_(static_cast<std::int64_t>(value)) {}
    Value(double value) : content_(value) {}
    Value(std::string value) : content_(std::move(value)) {}
    Value(std::string_view value) : content_(std::string(value)) {}
    Value(const char* value) : content_(std::string(value)) {}
    Value(List value) : content_(std::move(value)) {}
    Value(Record value) : content_(std::move(value)) {}
    template <class T>
    Value(const std::optional<T>& value) {
        if (value) *this = Value(*value);
    }
    template <class T>
    Value(const std::vector<T>& values) : content_(List(values.begin(), values.end())) {}

    const Content& content() const { return content_; }
    bool unknown() const { return std::holds_alternative<std::monostate>(content_); }

    friend bool operator==(const Value&, const Value&) = default;

  private:
    Content content_;
};

/// The value under `key`, or null where there is none.
inline const Value* find(const Record& record, std::string_view key) {
    for (const auto& [name, value] : record)
        if (name == key) return &value;
    return nullptr;
}

/// What it holds, where it is a T.
template <class T>
std::optional<T> find_as(const Record& record, std::string_view key) {
    const Value* value = find(record, key);
    const T* content = value ? std::get_if<T>(&value->content()) : nullptr;
    return content ? std::optional<T>(*content) : std::nullopt;
}

}  // namespace rooftile
