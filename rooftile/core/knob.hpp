// A knob: one choice of a kernel's configuration, described once. An operation lists its knobs in a .def file. From a line there come
// the member of its configuration and of its request, the flag with its help, the range of what is accepted, the key in documents, and
// the way back from a document to a request. docs/adding-a-knob.md walks through one.
//
// Functions here take the table as a type:
//   struct Knobs {
//       using Config = ..., Request = ...;
//       template <class Visit> static void each(Visit visit);  // visit(const Knob<Config, Request, T>&) a line
//   };
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "rooftile/core/field.hpp"
#include "rooftile/core/value.hpp"

namespace rooftile {

/// Documents have a knob always, or only where it is not at its preset.
enum class Recorded : bool { always, where_set };

/// What a request may say of a number; not used of other types.
struct KnobRange {
    std::int64_t least = 1, most = 1 << 20;
    bool may_lack = false;  ///< a configuration without it has 0
    constexpr KnobRange() = default;
    constexpr KnobRange(std::int64_t from, std::int64_t to, bool lacks = false) : least(from), most(to), may_lack(lacks) {}
};

/// Of a knob, whatever its type.
struct KnobWords {
    std::string_view name;     ///< of the member, and the key in documents
    std::string_view field;    ///< the key of its flag; knobs that follow each other with one field are joined by 'x': "128x256x64"
    std::string_view form;     ///< of the field's text: "MxNxK"
    std::string_view meaning;  ///< one line of help; empty: the field's first knob has it
    KnobRange range;
    Recorded recorded;
};

template <class Config, class Request, class T>
struct Knob : KnobWords {
    T Config::*value;
    std::optional<T> Request::*fixed;
    /// Where nobody asks for it and no rule chooses.
    T preset() const { return Config{}.*value; }
};

namespace knob {
/// A number from 1 on that a request gives: wider than its range, whose refusal is the planner's.
std::int64_t number_of(std::string_view name, std::string_view text, const KnobRange& range);
std::size_t index_of(std::string_view name, std::string_view text, std::span<const std::string_view> names);
/// The part of "128x256x64" at `place`, by its field's form.
std::string part_of(const KnobWords& knob, const Given& given, std::size_t place);
[[noreturn]] void refuse(const KnobWords& knob, std::int64_t value);
[[noreturn]] void refuse(const KnobWords& knob, const Value& value);
}  // namespace knob

/// How values of a knob's type are written and read. Other types specialise it with the same functions.
template <class T>
struct KnobType;

template <>
struct KnobType<bool> {
    static std::string text(bool value) { return value ? "on" : "off"; }
    static Value recorded(bool value) { return value; }
    static bool read(std::string_view name, std::string_view text, const KnobRange&);
    static std::optional<bool> of(const Value& value);
    static bool can_be_fixed(bool, const KnobRange&) { return true; }
};

template <std::integral T>
struct KnobType<T> {
    static std::string text(T value) { return std::to_string(value); }
    static Value recorded(T value) { return value; }
    /// Throws RequestError, as all of the name; `name` is what messages call the value.
    static T read(std::string_view name, std::string_view text, const KnobRange& range) { return T(knob::number_of(name, text, range)); }
    static std::optional<T> of(const Value& value) {
        const auto* number = std::get_if<std::int64_t>(&value.content());
        return number && std::in_range<T>(*number) ? std::optional(T(*number)) : std::nullopt;
    }
    /// Whether a request may say it: what a configuration has where the knob does not apply, it may not.
    static bool can_be_fixed(T value, const KnobRange& range) { return value >= range.least && value <= range.most; }
};

/// The names of an enumeration's values, in their order, are knob_names(E()).
template <class E>
    requires std::is_enum_v<E>
struct KnobType<E> {
    static std::string text(E value) { return std::string(knob_names(E())[std::size_t(value)]); }
    static Value recorded(E value) { return knob_names(E())[std::size_t(value)]; }
    static E read(std::string_view name, std::string_view text, const KnobRange&);
    static std::optional<E> of(const Value& value) {
        const auto* text = std::get_if<std::string>(&value.content());
        const auto names = knob_names(E());
        for (std::size_t i = 0; text && i < names.size(); ++i)
            if (names[i] == *text) return E(i);
        return std::nullopt;
    }
    static bool can_be_fixed(E, const KnobRange&) { return true; }
};

template <class E>
    requires std::is_enum_v<E>
E KnobType<E>::read(std::string_view name, std::string_view text, const KnobRange&) {
    return E(knob::index_of(name, text, knob_names(E())));
}

/// One field for each flag.
template <class Knobs>
std::vector<Field> knob_fields(std::string_view group) {
    std::vector<Field> fields;
    Knobs::each([&](const auto& knob) {
        if (knob.meaning.empty()) return;
        fields.push_back({std::string(knob.field), std::string(knob.form), std::string(knob.meaning), std::string(group)});
    });
    return fields;
}

/// Sets what of `request` is given.
template <class Knobs>
void read_knobs(const Given& given, typename Knobs::Request& request) {
    std::size_t place = 0;
    Knobs::each([&]<class T>(const Knob<typename Knobs::Config, typename Knobs::Request, T>& knob) {
        place = knob.meaning.empty() ? place + 1 : 0;
        if (given.has(knob.field))
            request.*knob.fixed = KnobType<T>::read(given.name(knob.field), knob::part_of(knob, given, place), knob.range);
    });
}

/// The texts that give what `request` fixes.
template <class Knobs>
Given given_of(const typename Knobs::Request& request) {
    Given given(Given::Named::by_key);
    Knobs::each([&]<class T>(const Knob<typename Knobs::Config, typename Knobs::Request, T>& knob) {
        if (!(request.*knob.fixed)) return;
        std::string text = KnobType<T>::text(*(request.*knob.fixed));
        if (given.has(knob.field)) given.replace(knob.field, given.text(knob.field) + "x" + text);
        else given.add(knob.field, std::move(text));
    });
    return given;
}

/// Throws RequestError where a number that is fixed is out of its range.
template <class Knobs>
void check_knobs(const typename Knobs::Request& request) {
    Knobs::each([&]<class T>(const Knob<typename Knobs::Config, typename Knobs::Request, T>& knob) {
        if constexpr (std::integral<T>)
            if (const auto& value = request.*knob.fixed; value && !KnobType<T>::can_be_fixed(*value, knob.range)) knob::refuse(knob, std::int64_t{*value});
    });
}

/// Appends what documents say of `config`: first what they always have.
template <class Knobs>
void add_knobs(Record& record, const typename Knobs::Config& config) {
    for (const Recorded recorded : {Recorded::always, Recorded::where_set})
        Knobs::each([&]<class T>(const Knob<typename Knobs::Config, typename Knobs::Request, T>& knob) {
            if (knob.recorded == recorded && (recorded == Recorded::always || config.*knob.value != knob.preset()))
                record.emplace_back(knob.name, KnobType<T>::recorded(config.*knob.value));
        });
}

/// Reads what add_knobs() wrote; a key that an older document lacks stays at its preset. Throws RequestError that names the key.
template <class Knobs>
void knobs_of(const Record& record, typename Knobs::Config& config) {
    Knobs::each([&]<class T>(const Knob<typename Knobs::Config, typename Knobs::Request, T>& knob) {
        const Value* value = find(record, knob.name);
        if (!value) return;
        const std::optional<T> read = KnobType<T>::of(*value);
        const bool lacks = read == T{} && knob.range.may_lack;
        if (!read || (!lacks && !KnobType<T>::can_be_fixed(*read, knob.range))) knob::refuse(knob, *value);
        config.*knob.value = *read;
    });
}

/// The texts that fix the whole configuration of a record.
template <class Knobs>
Given given_of_knobs(const Record& record) {
    typename Knobs::Config config{};
    knobs_of<Knobs>(record, config);
    typename Knobs::Request fixed{};
    Knobs::each([&](const auto& knob) { fixed.*knob.fixed = config.*knob.value; });
    return given_of<Knobs>(fixed);
}

}  // namespace rooftile
