// Branches of a text whose condition one configuration decides.
#include <algorithm>

#include "rooftile/emit/program.hpp"

namespace rooftile::emit {
namespace {

/// "constexpr bool NAME = VALUE;" of a function: NAME says no more than VALUE.
using Locals = std::map<std::string, Tokens>;

Locals locals_of(TokenSpan t, std::string_view word = "constexpr") {
    Locals out;
    std::set<std::string> twice;
    for (std::size_t i = 0; i < t.size(); ++i) {
        if (!t[i].is(word)) continue;
        std::size_t type = next_counting(t, i + 1);
        if (type < t.size() && t[type].is("static")) type = next_counting(t, type + 1);
        const std::size_t name = next_counting(t, type + 1), equal = next_counting(t, name + 1);
        if (equal >= t.size() || t[type].kind != TokenKind::word || t[name].kind != TokenKind::word || !t[equal].is("=")) continue;
        std::size_t end = equal + 1;
        bool one = true;
        while (end < t.size() && !t[end].is(";")) {
            if (t[end].is(",") || (word == "const" && t[end].is("("))) one = false;  // what is called may do more than give a number
            end = t[end].is("(") || t[end].is("{") ? closing(t, end) + 1 : end + 1;
        }
        if (!one) continue;
        if (!out.emplace(t[name].text, Tokens(t.begin() + std::ptrdiff_t(equal) + 1, t.begin() + std::ptrdiff_t(end))).second)
            twice.insert(t[name].text);
    }
    for (const std::string& name : twice) out.erase(name);
    return out;
}

Tokens with_locals(TokenSpan t, const Locals& locals, int depth = 0) {
    Tokens out;
    for (std::size_t i = 0; i < t.size(); ++i) {
        const auto found =
            t[i].kind == TokenKind::word && depth < 4 && (i == 0 || (!t[i - 1].is(".") && !t[i - 1].is("::") && !t[i - 1].is("->")))
                ? locals.find(t[i].text)
                : locals.end();
        if (found == locals.end()) {
            out.push_back(t[i]);
            continue;
        }
        out.push_back({TokenKind::mark, "("});
        const Tokens value = with_locals(found->second, locals, depth + 1);
        out.insert(out.end(), value.begin(), value.end());
        out.push_back({TokenKind::mark, ")"});
    }
    return out;
}

/// Behind the statement at `at`.
std::size_t behind_statement(TokenSpan t, std::size_t at) {
    at = next_counting(t, at);
    while (at < t.size() && t[at].kind == TokenKind::directive) at = next_counting(t, at + 1);
    if (at >= t.size()) return t.size();
    if (t[at].is("{")) return closing(t, at) + 1;
    const auto parens = [&](std::size_t i) {
        while (i < t.size() && !t[i].is("(")) ++i;
        return closing(t, i) + 1;
    };
    if (t[at].is("if")) {
        const std::size_t then = behind_statement(t, parens(at)), other = next_counting(t, then);
        return other < t.size() && t[other].is("else") ? behind_statement(t, other + 1) : then;
    }
    if (t[at].is("for") || t[at].is("while") || t[at].is("switch")) return behind_statement(t, parens(at));
    if (t[at].is("do")) at = behind_statement(t, at + 1);
    while (at < t.size() && !t[at].is(";")) at = t[at].is("{") || t[at].is("(") || t[at].is("[") ? closing(t, at) + 1 : at + 1;
    return std::min(at + 1, t.size());
}

/// Without constants of a function that nothing in it names any more.
Tokens without_unused(Tokens t) {
    for (bool more = true; more;) {
        more = false;
        Locals all = locals_of(t);
        all.merge(locals_of(t, "const"));
        for (const auto& [name, value] : all) {
            // A loop's pragma may count by it; another's member of that name is not it.
            int named = 0;
            std::size_t at = 0;
            for (std::size_t i = 0; i < t.size(); ++i) {
                if (t[i].kind != TokenKind::word || t[i].text != name || (i > 0 && (t[i - 1].is(".") || t[i - 1].is("->") || t[i - 1].is("::")))) continue;
                ++named, at = i;
            }
            if (named != 1 || std::ranges::any_of(t, [&](const Token& token) {
                    return token.kind == TokenKind::directive && token.text.find(name) != std::string::npos;
                }))
                continue;
            std::size_t begin = at, end = at;
            while (begin > 0 && !t[begin].is("constexpr") && !t[begin].is("const")) --begin;
            while (end < t.size() && !t[end].is(";")) end = t[end].is("(") || t[end].is("{") ? closing(t, end) + 1 : end + 1;
            if (begin == 0 || end + 1 >= t.size()) continue;
            ++end;
            // A comment behind it, and the line.
            if (end + 1 < t.size() && t[end].kind == TokenKind::space && t[end].text.find('\n') == std::string::npos
                && t[end + 1].kind == TokenKind::comment)
                end += 2;
            std::size_t before = begin;
            while (before > 0 && t[before - 1].kind == TokenKind::space) --before;
            if (before > 0 && (t[before - 1].is("static") || t[before - 1].is("]"))) continue;
            t.erase(t.begin() + std::ptrdiff_t(before), t.begin() + std::ptrdiff_t(end));
            more = true;
            break;
        }
    }
    return t;
}

class Folder {
  public:
    /// `members`: of the configuration's type, in whose own functions they have no object before them; `object` is its name then.
    Folder(std::string scope, const Locals& locals, const Decide& decide, const std::set<std::string>* members, std::string object,
           const std::set<std::string>& objects)
        : scope_(std::move(scope)), locals_(locals), decide_(decide), members_(members), object_(std::move(object)), objects_(objects) {}

    /// Statements, or any tokens that hold some.
    Tokens fold(TokenSpan given) {
        const Tokens chosen = choices(given);
        const TokenSpan t = chosen;
        Tokens out;
        for (std::size_t i = 0; i < t.size();) {
            if (t[i].is("static_assert")) {
                const std::size_t end = behind_statement(t, i);
                if (i > 0) drop_line(out);
                i = end;
                continue;
            }
            if (t[i].is("if")) {
                const std::size_t end = behind_statement(t, i);
                const bool alone = is_alone(out);
                bool ended = false;
                const Tokens kept = branch(t.subspan(i, end - i), alone, last_in_block(t, end), ended);
                if (kept.empty() && alone) out.push_back({TokenKind::mark, "{}"});
                else if (kept.empty()) drop_line(out);
                out.insert(out.end(), kept.begin(), kept.end());
                i = end;
                // What follows a return that is always taken is never reached.
                if (ended && !alone) i = end_of_block(t, end);
                continue;
            }
            out.push_back(t[i++]);
        }
        return out;
    }

  private:
    std::optional<bool> decide(TokenSpan condition) const {
        Tokens t;
        for (Token& token : with_locals(condition, locals_)) {
            const bool own = members_ && token.kind == TokenKind::word && members_->contains(token.text)
                             && (t.empty() || (!t.back().is(".") && !t.back().is("::")));
            if (own) t.push_back({TokenKind::word, object_}), t.push_back({TokenKind::mark, "."});
            t.push_back(std::move(token));
        }
        return decide_all(t);
    }
    /// Whether all that a condition names is a configuration, or by its place a type, a function or a member: a variable of the
    /// function's may have the name of something else.
    bool is_asked(TokenSpan t) const {
        for (std::size_t i = 0; i < t.size(); ++i) {
            if (t[i].kind != TokenKind::word || t[i].is("true") || t[i].is("false") || t[i].is("sizeof") || objects_.contains(t[i].text))
                continue;
            std::size_t before = i;
            while (before > 0 && !t[before - 1].counts()) --before;
            const std::size_t next = next_counting(t, i + 1);
            const bool member = before > 0 && (t[before - 1].is(".") || t[before - 1].is("::"));
            const bool named = next < t.size() && (t[next].is("::") || t[next].is("(") || t[next].is("<"));
            if (!member && !named) return false;
        }
        return true;
    }
    /// As the compiler says of it; else of what "||" or "&&" join, of which one may be enough.
    std::optional<bool> decide_all(TokenSpan t) const {
        if (is_asked(t))
            if (const auto whole = decide_(scope_, plain_text(t))) return whole;
        while (!t.empty() && !t.front().counts()) t = t.subspan(1);
        while (!t.empty() && !t.back().counts()) t = t.first(t.size() - 1);
        if (t.size() > 2 && t.front().is("(") && closing(t, 0) == t.size() - 1) return decide_all(t.subspan(1, t.size() - 2));
        for (const bool any : {true, false}) {
            std::vector<TokenSpan> parts;
            std::size_t begin = 0;
            for (std::size_t i = 0; i < t.size(); ++i) {
                if (t[i].is("(") || t[i].is("[") || t[i].is("{")) i = closing(t, i);
                else if (t[i].is("?")) return {};
                else if (t[i].is(any ? "||" : "&&")) parts.push_back(t.subspan(begin, i - begin)), begin = i + 1;
            }
            if (begin == 0) continue;
            parts.push_back(t.subspan(begin));
            bool all = true;
            for (const TokenSpan part : parts) {
                const auto known = decide_all(part);
                if (known && *known == any) return any;
                all = all && known;
            }
            return all ? std::optional(!any) : std::nullopt;
        }
        return {};
    }
    /// Without `condition ? a : b` whose condition is decided.
    Tokens choices(TokenSpan given) const {
        Tokens t(given.begin(), given.end());
        for (std::size_t question = 0; question < t.size(); ++question) {
            if (!t[question].is("?")) continue;
            std::size_t begin = question;
            for (int depth = 0; begin > 0; --begin) {
                const Token& before = t[begin - 1];
                if (before.is(")") || before.is("]") || before.is("}")) ++depth;
                else if ((before.is("(") || before.is("[") || before.is("{")) && depth-- == 0) break;
                if (depth > 0) continue;
                if (before.is("return") || before.is("=") || before.is("+=") || before.is("-=") || before.is(",") || before.is(";")
                    || before.is("?") || before.is(":") || before.kind == TokenKind::directive)
                    break;
            }
            std::size_t colon = question + 1;
            for (int nested = 0; colon < t.size(); ++colon) {
                if (t[colon].is("(") || t[colon].is("[") || t[colon].is("{")) colon = closing(t, colon);
                else if (t[colon].is("?")) ++nested;
                else if (t[colon].is(":") && nested-- == 0) break;
            }
            if (colon >= t.size()) continue;
            std::size_t end = colon + 1;
            for (int nested = 0; end < t.size(); ++end) {
                if (t[end].is("(") || t[end].is("[") || t[end].is("{")) end = closing(t, end);
                else if (t[end].is("?")) ++nested;
                else if (t[end].is(",") || t[end].is(";") || t[end].is(")") || t[end].is("]") || t[end].is("}")
                         || (t[end].is(":") && nested-- == 0))
                    break;
            }
            begin = next_counting(t, begin);
            const auto taken = decide(TokenSpan(t).subspan(begin, question - begin));
            if (!taken) continue;
            std::size_t from = next_counting(t, (*taken ? question : colon) + 1), to = *taken ? colon : end;
            while (to > from && !t[to - 1].counts()) --to;
            Tokens kept(t.begin() + std::ptrdiff_t(from), t.begin() + std::ptrdiff_t(to));
            // Brackets around what is one value now.
            std::size_t first = begin, last = end;
            const bool one = std::ranges::all_of(kept,
                                                 [](const Token& k) {
                                                     return k.kind == TokenKind::word || k.kind == TokenKind::number || k.is(".")
                                                            || k.is("::") || k.is("(") || k.is(")");
                                                 })
                             && (kept.size() < 2 || !kept[0].is("("));
            if (one && begin > 0 && t[begin - 1].is("(") && end < t.size() && t[end].is(")")) {
                const std::size_t before = begin < 2 ? begin : begin - 2;
                const bool call =
                    begin >= 2 && (t[before].kind == TokenKind::word || t[before].is("]") || t[before].is(")") || t[before].is(">"));
                if (!call && begin >= 2) --first, ++last;
            }
            t.erase(t.begin() + std::ptrdiff_t(first), t.begin() + std::ptrdiff_t(last));
            t.insert(t.begin() + std::ptrdiff_t(first), kept.begin(), kept.end());
            question = first == 0 ? 0 : first - 1;
        }
        return t;
    }
    static bool is_alone(const Tokens& before) {
        for (auto token = before.rbegin(); token != before.rend(); ++token)
            if (token->counts()) return token->is(")") || token->is("else") || token->kind == TokenKind::directive;
        return false;
    }
    static bool last_in_block(TokenSpan t, std::size_t end) {
        const std::size_t next = next_counting(t, end);
        return next == t.size() || t[next].is("}");
    }
    static std::size_t end_of_block(TokenSpan t, std::size_t at) {
        for (; at < t.size(); ++at) {
            if (t[at].is("}")) break;
            if (t[at].is("{") || t[at].is("(")) at = closing(t, at);
        }
        // The line break before the brace stays.
        return at > 0 && at <= t.size() && t[at - 1].kind == TokenKind::space ? at - 1 : at;
    }
    /// The spaces, and a comment of what is gone, before it.
    static void drop_line(Tokens& out) {
        while (!out.empty() && out.back().kind == TokenKind::space) out.pop_back();
        while (!out.empty() && out.back().kind == TokenKind::comment) {
            // A comment behind a statement is that statement's.
            std::size_t i = out.size() - 1;
            if (i > 0 && (out[i - 1].kind != TokenKind::space || out[i - 1].text.find('\n') == std::string::npos)) break;
            out.pop_back();
            while (!out.empty() && out.back().kind == TokenKind::space) out.pop_back();
        }
    }
    /// An `if` with all that belongs to it.
    Tokens branch(TokenSpan t, bool alone, bool last, bool& ended) {
        std::size_t open = 0;
        while (!t[open].is("(")) ++open;
        const std::size_t close = closing(t, open), then_end = behind_statement(t, close + 1);
        const std::size_t other = next_counting(t, then_end);
        const bool has_else = other < t.size() && t[other].is("else");
        const TokenSpan condition = t.subspan(open + 1, close - open - 1);
        const TokenSpan then = t.subspan(next_counting(t, close + 1), then_end - next_counting(t, close + 1));
        const TokenSpan otherwise = has_else ? t.subspan(next_counting(t, other + 1)) : TokenSpan();
        const auto taken = decide(condition);
        if (taken) {
            const TokenSpan kept = *taken ? then : otherwise;
            if (kept.empty()) return {};
            return statement(kept, alone, last, ended);
        }
        Tokens out(t.begin(), t.begin() + std::ptrdiff_t(close) + 1);
        const auto add = [&](std::size_t from, TokenSpan body) {
            const std::size_t begin = next_counting(t, from);
            out.insert(out.end(), t.begin() + std::ptrdiff_t(from), t.begin() + std::ptrdiff_t(begin));
            const Tokens folded = fold(body);
            if (std::ranges::none_of(folded, &Token::counts)) out.push_back({TokenKind::mark, "{}"});
            else out.insert(out.end(), folded.begin(), folded.end());
        };
        add(close + 1, then);
        if (has_else) {
            bool ends = false;
            const Tokens folded = otherwise[0].is("if") ? branch(otherwise, false, last, ends) : fold(otherwise);
            if (std::ranges::any_of(folded, &Token::counts)) {
                out.insert(out.end(), t.begin() + std::ptrdiff_t(then_end), t.begin() + std::ptrdiff_t(next_counting(t, other + 1)));
                // A branch that lost its `if` keeps to one statement.
                const bool braces =
                    otherwise[0].is("if") && !folded[0].is("if") && !folded[0].is("{") && behind_statement(folded, 0) < folded.size();
                if (braces) out.push_back({TokenKind::mark, "{ "});
                out.insert(out.end(), folded.begin(), folded.end());
                if (braces) out.push_back({TokenKind::mark, " }"});
            }
        }
        return out;
    }
    /// A branch that is always taken: its statements, without braces where no name of theirs can meet another.
    Tokens statement(TokenSpan t, bool alone, bool last, bool& ended) {
        if (t[0].is("if")) return branch(t, alone, last, ended);
        if (!t[0].is("{")) {
            ended = t[0].is("return");
            return fold(t);
        }
        const TokenSpan inside = t.subspan(1, t.size() - 2);
        Tokens folded = fold(inside);
        if (alone || (!last && declares(folded))) {
            Tokens out = {t.front()};
            out.insert(out.end(), folded.begin(), folded.end());
            out.push_back(t.back());
            return out;
        }
        ended = ends_with_return(folded);
        const std::size_t first = next_counting(folded, 0);
        const auto is_space = [](const Token& token) { return token.kind == TokenKind::space; };
        Tokens out(std::find_if_not(folded.begin(), folded.end(), is_space), folded.end());
        while (!out.empty() && is_space(out.back())) out.pop_back();
        if (first == folded.size()) return {};
        for (Token& token : out)
            if (is_space(token)) {
                const std::size_t line = token.text.rfind('\n');
                if (line != std::string::npos && token.text.size() - line > 4) token.text.resize(token.text.size() - 4);
            }
        return out;
    }
    static bool ends_with_return(const Tokens& t) {
        std::size_t last = 0;
        for (std::size_t at = next_counting(t, 0); at < t.size(); at = next_counting(t, behind_statement(t, at))) last = at;
        return last < t.size() && t[last].is("return");
    }
    /// Whether a statement of the block declares a name.
    static bool declares(const Tokens& t) {
        for (std::size_t at = next_counting(t, 0); at < t.size(); at = next_counting(t, behind_statement(t, at))) {
            if (t[at].is("[") || t[at].is("const") || t[at].is("constexpr") || t[at].is("auto") || t[at].is("using")
                || t[at].is("static"))
                return true;
            if (t[at].kind != TokenKind::word || t[at].is("return") || t[at].is("else")) continue;
            std::size_t i = at;
            while (i < t.size() && (t[i].kind == TokenKind::word || t[i].is("::"))) {
                const std::size_t next = next_counting(t, i + 1);
                if (t[i].kind == TokenKind::word && next < t.size() && t[next].kind == TokenKind::word) return true;
                if (next < t.size() && t[next].is("<")) {
                    const std::size_t behind = next_counting(t, behind_angles(t, next));
                    if (behind < t.size() && t[behind].kind == TokenKind::word) return true;
                    break;
                }
                i = next;
            }
        }
        return false;
    }

    std::string scope_;
    const Locals& locals_;
    const Decide& decide_;
    const std::set<std::string>* members_;
    std::string object_;
    const std::set<std::string>& objects_;
};

/// Types of configurations, their members, and what templates call the configuration.
struct Objects {
    std::map<std::string, std::pair<std::set<std::string>, std::string>> of_type;
    std::set<std::string> names;  ///< of all configurations
};

void fold_items(std::vector<Item>& items, const std::string& scope, const Decide& decide, const Objects& objects,
                const std::string& type = {}) {
    for (Item& item : items) {
        std::string inner = scope;
        if (item.kind == Item::Kind::name_space) {
            std::string name = plain_text(TokenSpan(item.head).first(item.head.size() - 1)).substr(9);
            while (!name.empty() && name.front() == ' ') name.erase(0, 1);
            while (!name.empty() && name.back() == ' ') name.pop_back();
            if (!name.empty()) inner += (inner.empty() ? "" : "::") + name;
        }
        if (item.kind == Item::Kind::function) {
            const Locals locals = locals_of(item.head);
            const auto object = objects.of_type.find(type);
            const bool own = object != objects.of_type.end();
            std::set<std::string> members;
            if (own) {
                // A parameter hides a member of its name.
                members = object->second.first;
                std::size_t open = 0;
                while (open < item.head.size() && !item.head[open].is("(")) ++open;
                for (std::size_t i = open; i < closing(item.head, open); ++i) members.erase(item.head[i].text);
            }
            item.head =
                Folder(inner, locals, decide, own ? &members : nullptr, own ? object->second.second : "", objects.names).fold(item.head);
            item.head = without_unused(std::move(item.head));
        }
        if (item.has_members)
            fold_items(item.members, inner, decide, objects,
                       item.kind == Item::Kind::type && !item.names.empty() ? item.names[0] : std::string());
    }
}

}  // namespace

namespace {

template <class Types>
Objects objects_of(const std::vector<Configuration>& configurations, const std::map<std::string, std::string>& parameters,
                   Types find_type) {
    Objects out;
    for (const auto& [name, _] : parameters) out.names.insert(name);
    for (const Configuration& c : configurations) {
        const Item* type = find_type(c.type);
        const auto parameter = std::ranges::find_if(parameters, [&](const auto& p) { return p.second == c.name; });
        if (!type || parameter == parameters.end()) continue;
        auto& [members, object] = out.of_type[type->names[0]];
        object = parameter->first;
        for (const Item& item : type->members) members.insert(item.names.begin(), item.names.end());
    }
    return out;
}

}  // namespace

std::vector<Program::Condition> Program::conditions() const {
    std::vector<Condition> out;
    std::set<std::pair<std::string, std::string>> seen;
    // Asked of a copy that nothing is taken from.
    std::vector<File> copy = files_;
    const Decide ask = [&](const std::string& scope, const std::string& text) -> std::optional<bool> {
        if (seen.emplace(scope, text).second) out.push_back({scope, text});
        return std::nullopt;
    };
    const Objects objects = objects_of(configurations_, parameters_, [&](const std::string& name) { return find_type(name); });
    for (File& file : copy) fold_items(file.items, "", ask, objects);
    return out;
}

void Program::take_branches(const Decide& decide) {
    const Objects objects = objects_of(configurations_, parameters_, [&](const std::string& name) { return find_type(name); });
    for (File& file : files_) fold_items(file.items, "", decide, objects);
}

}  // namespace rooftile::emit
