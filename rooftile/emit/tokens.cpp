#include "rooftile/emit/tokens.hpp"

#include <algorithm>
#include <cctype>

namespace rooftile::emit {
namespace {

bool begins_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Behind the literal whose quote is at `at`; one that is not closed ends with its line.
std::size_t behind_literal(std::string_view text, std::size_t at) {
    const char quote = text[at++];
    while (at < text.size() && text[at] != quote && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
    return std::min(at + 1, text.size());
}

/// Behind R"delimiter(...)delimiter" whose quote is at `at`.
std::size_t behind_raw_literal(std::string_view text, std::size_t at) {
    const std::string close = ")" + std::string(text.substr(at + 1, text.find('(', at) - at - 1)) + "\"";
    const std::size_t end = text.find(close, at);
    return end == text.npos ? text.size() : end + close.size();
}

/// Behind the line at `at`, and those that a backslash joins to it.
std::size_t behind_line(std::string_view text, std::size_t at) {
    while (at < text.size() && text[at] != '\n') at += text[at] == '\\' && at + 1 < text.size() ? 2 : 1;
    return std::min(at, text.size());
}

}  // namespace

Tokens tokens_of(std::string_view text) {
    Tokens out;
    bool line_begins = true;
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        std::size_t end = at + 1;
        TokenKind kind = TokenKind::mark;
        if (std::isspace(static_cast<unsigned char>(c))) {
            kind = TokenKind::space;
            while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end]))) ++end;
        } else if (text.substr(at, 2) == "//") {
            kind = TokenKind::comment, end = behind_line(text, at);
        } else if (text.substr(at, 2) == "/*") {
            kind = TokenKind::comment, end = std::min(text.find("*/", at + 2), text.size() - 2) + 2;
        } else if (c == '#' && line_begins) {
            kind = TokenKind::directive, end = behind_line(text, at);
        } else if (c == '"' || c == '\'') {
            kind = TokenKind::text, end = behind_literal(text, at);
        } else if (begins_word(c)) {
            kind = TokenKind::word;
            while (end < text.size() && in_word(text[end])) ++end;
            const std::string_view prefix = text.substr(at, end - at);
            if (end < text.size() && text[end] == '"' && prefix.size() <= 3 && prefix.ends_with('R'))
                kind = TokenKind::text, end = behind_raw_literal(text, end);
        } else if (std::isdigit(static_cast<unsigned char>(c))) {
            kind = TokenKind::number;
            while (
                end < text.size()
                && (in_word(text[end]) || text[end] == '.' || text[end] == '\''
                    || ((text[end] == '+' || text[end] == '-') && std::string_view("eEpP").find(text[end - 1]) != std::string_view::npos
                        && (text.substr(at, 2) != "0x" || text[end - 1] == 'p'))))
                ++end;
        } else {
            for (const std::string_view two : {"::", "->", "&&", "||", "==", "!=", "<=", ">=", "++", "--", "+=", "-="})
                if (text.substr(at, 2) == two) end = at + 2;
        }
        out.push_back({kind, std::string(text.substr(at, end - at))});
        line_begins = kind == TokenKind::space ? line_begins || out.back().text.find('\n') != std::string::npos
                                               : kind == TokenKind::comment && line_begins;
        at = end;
    }
    return out;
}

std::string text_of(TokenSpan tokens) {
    std::string out;
    for (const Token& t : tokens) out += t.text;
    return out;
}

std::string plain_text(TokenSpan tokens) {
    std::string out;
    bool space = false;
    for (const Token& t : tokens) {
        if (!t.counts()) {
            space = true;
            continue;
        }
        if (space && !out.empty()) out += ' ';
        space = false;
        out += t.text;
    }
    return out;
}

std::size_t next_counting(TokenSpan tokens, std::size_t at) {
    while (at < tokens.size() && !tokens[at].counts()) ++at;
    return at;
}

std::size_t closing(TokenSpan tokens, std::size_t open) {
    int depth = 0;
    for (std::size_t i = open; i < tokens.size(); ++i) {
        if (tokens[i].kind != TokenKind::mark) continue;
        const char c = tokens[i].text[0];
        if (c == '(' || c == '[' || c == '{') ++depth;
        if ((c == ')' || c == ']' || c == '}') && --depth == 0) return i;
    }
    return tokens.size();
}

std::size_t behind_angles(TokenSpan tokens, std::size_t open) {
    int depth = 0;
    for (std::size_t i = open; i < tokens.size(); ++i) {
        if (tokens[i].is("(") || tokens[i].is("{") || tokens[i].is("[")) {
            i = closing(tokens, i);
            continue;
        }
        if (tokens[i].is("<")) ++depth;
        if (tokens[i].is(">") && --depth == 0) return i + 1;
    }
    return tokens.size();
}

namespace {

/// Words before brackets that are no function's.
bool is_attribute(const Token& t) {
    for (const std::string_view word :
         {"alignas", "__align__", "__launch_bounds__", "decltype", "noexcept", "explicit", "__attribute__", "requires", "if"})
        if (t.is(word)) return true;
    return false;
}

class Parser {
  public:
    Parser(TokenSpan tokens, bool in_class) : t_(tokens), in_class_(in_class) {}

    std::vector<Item> items() {
        std::vector<Item> out;
        while (at_ < t_.size()) {
            Item item;
            const std::size_t begin = next_counting(t_, at_);
            item.lead.assign(t_.begin() + std::ptrdiff_t(at_), t_.begin() + std::ptrdiff_t(begin));
            at_ = begin;
            if (at_ == t_.size()) {
                item.kind = Item::Kind::fixed;
                out.push_back(std::move(item));
                break;
            }
            one(item);
            take_comment_behind(item);
            out.push_back(std::move(item));
        }
        return out;
    }

  private:
    void take(Tokens& to, std::size_t end) {
        to.insert(to.end(), t_.begin() + std::ptrdiff_t(at_), t_.begin() + std::ptrdiff_t(std::min(end, t_.size())));
        at_ = std::min(end, t_.size());
    }
    void take_comment_behind(Item& item) {
        std::size_t i = at_;
        if (i < t_.size() && t_[i].kind == TokenKind::space && t_[i].text.find('\n') == std::string::npos) ++i;
        if (i < t_.size() && t_[i].kind == TokenKind::comment) take(item.tail, i + 1);
    }
    static std::string defined(const std::string& directive) {
        const Tokens words = tokens_of(std::string_view(directive).substr(directive.find_first_not_of("# \t")));
        const std::size_t name = next_counting(words, 1);
        return !words.empty() && (words[0].is("define") || words[0].is("undef")) && name < words.size() ? words[name].text
                                                                                                        : std::string();
    }
    void directive(Item& item) {
        item.kind = Item::Kind::directive;
        const std::string& text = t_[at_].text;
        const auto begins = [&](std::size_t i, std::string_view word) {
            return t_[i].kind == TokenKind::directive && t_[i].text.find(word) == t_[i].text.find_first_not_of("# \t");
        };
        if (!begins(at_, "if")) {
            if (const std::string name = defined(text); !name.empty()) item.names.push_back(name);
            return take(item.head, at_ + 1);
        }
        std::size_t end = at_ + 1;
        for (int depth = 1; end < t_.size() && depth > 0; ++end) {
            depth += begins(end, "if");
            depth -= begins(end, "endif");
            if (t_[end].kind == TokenKind::directive)
                if (const std::string name = defined(t_[end].text); !name.empty()) item.names.push_back(name);
        }
        take(item.head, end);
    }
    void one(Item& item) {
        if (t_[at_].kind == TokenKind::directive) return directive(item);
        if (t_[at_].is("namespace")) {
            std::size_t open = at_;
            while (open < t_.size() && !t_[open].is("{") && !t_[open].is(";")) ++open;
            if (open < t_.size() && t_[open].is("{")) {
                item.kind = Item::Kind::name_space;
                const std::size_t close = closing(t_, open);
                take(item.head, open + 1);
                return with_members(item, close, false);
            }
        }
        if (in_class_ && (t_[at_].is("public") || t_[at_].is("private") || t_[at_].is("protected"))) {
            item.kind = Item::Kind::fixed;
            std::size_t colon = at_;
            while (!t_[colon].is(":")) ++colon;
            return take(item.head, colon + 1);
        }
        if (is_macro(at_)) {  // it may declare any of the names that it is given
            const std::size_t open = next_counting(t_, at_ + 1), close = closing(t_, open);
            for (std::size_t i = open; i < close; ++i)
                if (t_[i].kind == TokenKind::word) item.names.push_back(t_[i].text);
            const std::size_t next = next_counting(t_, close + 1);
            return take(item.head, next < t_.size() && t_[next].is(";") ? next + 1 : close + 1);
        }
        declaration(item);
    }
    /// "ROOFTILE_LOAD(": a macro's invocation, by its capitals.
    bool is_macro(std::size_t at) const {
        const std::string& text = t_[at].text;
        const std::size_t open = next_counting(t_, at + 1);
        return t_[at].kind == TokenKind::word && text.size() > 2 && text.find('_') != std::string::npos
               && std::ranges::none_of(text, [](char c) { return std::islower(static_cast<unsigned char>(c)); }) && open < t_.size()
               && t_[open].is("(");
    }
    void with_members(Item& item, std::size_t close, bool is_class) {
        item.has_members = true;
        item.members = Parser(t_.subspan(at_, close - at_), is_class).items();
        at_ = close;
        take(item.tail, close + 1);
    }
    void declaration(Item& item) {
        bool class_key = false, is_enum = false, parens = false, equal = false, fixed = false, is_static = false;
        std::string class_name, function_name;
        std::size_t i = at_;
        std::string last;  // word
        const bool is_using = t_[i].is("using"), is_assert = t_[i].is("static_assert");
        for (; i < t_.size(); ++i) {
            const Token& t = t_[i];
            if (!t.counts()) continue;
            if (t.is("template") && next_counting(t_, i + 1) < t_.size() && t_[next_counting(t_, i + 1)].is("<")) {
                i = behind_angles(t_, next_counting(t_, i + 1)) - 1;
                continue;
            }
            if (t.kind == TokenKind::word && is_attribute(t)) {
                const std::size_t open = next_counting(t_, i + 1);
                if (open < t_.size() && t_[open].is("(")) i = closing(t_, open);
                continue;
            }
            if (t.is("friend") || t.is("operator")) fixed = true;
            if (t.is("static") || (t.is("constexpr") && in_class_)) is_static = true;
            if (!parens && !equal && (t.is("struct") || t.is("class") || t.is("union") || t.is("enum"))) {
                is_enum = is_enum || t.is("enum");
                class_key = true;
                continue;
            }
            if (t.kind == TokenKind::word) {
                if (class_key && class_name.empty()) class_name = t.text;
                last = t.text;
                continue;
            }
            if (t.is(";")) {
                if (!parens && !equal && !class_key && !last.empty() && (item.names.empty() || item.names.back() != last))
                    item.names.push_back(last);
                break;
            }
            if (t.is("=") && !equal) {
                equal = true;
                if (!parens && !last.empty() && !is_using) item.names.push_back(last);
            }
            if ((t.is(",") || t.is("[")) && !parens && !equal && !class_key && !last.empty()) item.names.push_back(last);
            if (t.is(",") && !parens && !is_using) equal = false;  // the next declarator
            if (t.is("(")) {
                if (!parens && !equal) function_name = last;
                parens = parens || !equal;
                i = closing(t_, i);
            } else if (t.is("[")) {
                i = closing(t_, i);
            } else if (t.is(":") && parens && !equal) {  // a constructor's members
                while (i < t_.size()) {
                    while (!t_[i].is("(") && !t_[i].is("{")) ++i;
                    i = next_counting(t_, closing(t_, i) + 1);
                    if (!t_[i].is(",")) break;
                }
                --i;
            } else if (t.is("{")) {
                const std::size_t close = closing(t_, i);
                if (class_key && !parens && !equal && !is_enum) {
                    item.kind = Item::Kind::type;
                    item.names.push_back(class_name);
                    take(item.head, i + 1);
                    with_members(item, close, true);
                    std::size_t end = at_;
                    while (!t_[end].is(";")) ++end;
                    return take(item.tail, end + 1);
                }
                i = close;
                if (parens && !equal) break;
                if (!class_key && !equal && !last.empty()) item.names.push_back(last);
            }
        }
        if (parens && !is_assert) {
            item.kind = Item::Kind::function;
            if (!function_name.empty()) item.names = {function_name};
        } else if (class_key) {
            item.kind = Item::Kind::type;
            if (!class_name.empty()) item.names = {class_name};
            if (is_enum) enumerators(item, i);
        } else if (is_using) {
            const std::size_t name = next_counting(t_, at_ + 1);
            if (equal) item.names = {t_[name].text};
            else item.names = {last}, fixed = t_[name].is("namespace");
        } else if (in_class_ && !is_static && !is_assert) {
            item.kind = Item::Kind::data;
        }
        if (fixed) item.names.clear();
        take(item.head, i + 1);
    }
    /// Of an enum without a scope, whose names are those of the scope around it.
    void enumerators(Item& item, std::size_t end) {
        std::size_t i = at_;
        while (i < end && !t_[i].is("enum")) ++i;
        const std::size_t next = next_counting(t_, i + 1);
        if (next < end && (t_[next].is("class") || t_[next].is("struct"))) return;
        while (i < end && !t_[i].is("{")) ++i;
        for (; i < end; ++i)
            if (t_[i].kind == TokenKind::word) item.names.push_back(t_[i].text);
    }

    TokenSpan t_;
    bool in_class_;
    std::size_t at_ = 0;
};

}  // namespace

std::vector<Item> items_of(TokenSpan tokens, bool in_class) { return Parser(tokens, in_class).items(); }

std::string text_of(const std::vector<Item>& items) {
    std::string out;
    for (const Item& item : items) out += text_of(item.lead) + text_of(item.head) + text_of(item.members) + text_of(item.tail);
    return out;
}

}  // namespace rooftile::emit
