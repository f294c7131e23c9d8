#include "rooftile/emit/program.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "rooftile/error.hpp"

namespace rooftile::emit {
namespace {

/// "kernels/ptx/tma.cuh" of its include, with its marks: "<cstdint>" of the system's; empty: it is none.
std::string included(const std::string& directive) {
    const std::size_t word = directive.find_first_not_of("# \t");
    if (word == std::string::npos || directive.compare(word, 7, "include") != 0) return {};
    const std::size_t begin = directive.find_first_of("\"<", word);
    const std::size_t end = begin == std::string::npos ? begin : directive.find_first_of("\">", begin + 1);
    return end == std::string::npos ? std::string() : directive.substr(begin, end - begin + 1);
}

bool is_pragma_once(const std::string& directive) { return directive.find("pragma once") != std::string::npos; }

/// Whether nvcc defines it, or would with nothing said: of ours only what the file itself defines.
std::optional<bool> is_defined(const std::string& name) {
    if (name == "__CUDACC__") return true;
    if (name == "__CUDACC_RTC__" || name == "ROOFTILE_WAIT_LIMIT_NS") return false;
    return {};
}

/// Without the branches of #if that nvcc does not take.
Tokens preprocessed(const Tokens& t) {
    Tokens out;
    struct Branch {
        std::optional<bool> known;
        bool before;  ///< whether what is around it is kept
    };
    std::vector<Branch> open;
    bool kept = true;
    for (const Token& token : t) {
        if (token.kind == TokenKind::directive) {
            const Tokens w = [&] {
                Tokens words;
                for (Token& part : tokens_of(std::string_view(token.text).substr(token.text.find('#') + 1)))
                    if (part.counts()) words.push_back(std::move(part));
                return words;
            }();
            const std::string& word = w.empty() ? token.text : w[0].text;
            if (word == "ifdef" || word == "ifndef" || word == "if") {
                std::optional<bool> known;
                if (word != "if" && w.size() == 2) known = is_defined(w[1].text);
                if (word == "if" && w.size() >= 5 && w[w.size() - 4].is("defined") && w.size() <= 6)
                    known = is_defined(w[w.size() - 2].text);
                const bool negated = word == "ifndef" || (word == "if" && w.size() == 6 && w[1].is("!"));
                if (known && negated) known = !*known;
                open.push_back({known, kept});
                if (known) kept = kept && *known;
                if (known) continue;
            } else if ((word == "else" || word == "endif") && !open.empty()) {
                const Branch branch = open.back();
                kept = branch.before && (word == "endif" || !branch.known || !*branch.known);
                if (word == "endif") open.pop_back();
                if (branch.known) continue;
            }
        }
        if (kept) out.push_back(token);
    }
    return out;
}

template <class Items, class Visit>
void each_item(Items& items, const std::string& scope, Visit visit) {
    for (auto& item : items) {
        std::string inner = scope;
        if (item.kind == Item::Kind::name_space) {
            const std::string name = plain_text(TokenSpan(item.head).first(item.head.size() - 1)).substr(9);
            const std::size_t from = name.find_first_not_of(' ');
            inner += (inner.empty() || from == std::string::npos ? "" : "::")
                     + (from == std::string::npos ? "" : name.substr(from, name.find_last_not_of(' ') - from + 1));
        }
        visit(item, inner);
        if (item.has_members) each_item(item.members, inner, visit);
    }
}

std::string after_scope(const std::string& name) { return name.substr(name.rfind("::") == std::string::npos ? 0 : name.rfind("::") + 2); }

}  // namespace

std::string Configuration::text() const {
    std::string out = "rooftile::" + type + "{";
    for (const auto& [name, value] : members) out += fmt::format("{}.{} = {}", out.back() == '{' ? "" : ", ", name, value);
    return out + "}";
}

Program::Program(const Source& source, const std::vector<std::string>& check_headers) {
    std::set<std::string> seen;
    add_file(source.text, source.headers, seen);
    std::vector<File> own;
    files_.swap(own);
    std::string others;
    for (const std::string& header : check_headers) others += fmt::format("#include \"{}\"\n", header);
    add_file(others, source.headers, seen);
    files_.swap(check_files_);
    files_ = std::move(own);
    read_kernels(source.name_expressions);
    find_parameters();
}

void Program::add_file(std::string_view text, std::span<const EmbeddedFile> headers, std::set<std::string>& seen) {
    Tokens tokens = preprocessed(tokens_of(text)), kept;
    File file;
    bool begins = true;
    for (const Token& t : tokens) {
        if (t.kind == TokenKind::directive) {
            if (const std::string name = included(t.text); !name.empty()) {
                const std::string path = name.substr(1, name.size() - 2);
                const auto header = std::ranges::find(headers, path, &EmbeddedFile::path);
                if (!seen.insert(path).second) continue;
                if (header == headers.end()) includes_.push_back("#include " + name);
                else add_file(header->text, headers, seen);
                continue;
            }
            if (is_pragma_once(t.text)) {
                begins = false;
                continue;
            }
        }
        if (begins && t.counts()) begins = false;
        (begins ? file.story : kept).push_back(t);
    }
    file.items = items_of(kept);
    files_.push_back(std::move(file));
}

void Program::read_kernels(const std::vector<std::string>& expressions) {
    for (const std::string& expression : expressions) {
        const Tokens t = tokens_of(expression);
        std::string kernel;
        for (std::size_t i = 0; i < t.size(); ++i) {
            if (!t[i].is("{")) {
                kernel += t[i].text;
                continue;
            }
            const std::size_t close = closing(t, i);
            const std::size_t type = kernel.find_last_of("<, ") + 1;
            Configuration made;
            made.type = after_scope(kernel.substr(type));
            for (std::size_t at = i + 1; at < close; ++at) {
                if (!t[at].is(".")) continue;
                const std::size_t name = at + 1;
                std::size_t end = name;
                for (; end < close && !t[end].is(","); ++end)
                    if (t[end].is("{")) end = closing(t, end);  // a member may be a configuration of its own
                made.members.emplace_back(t[name].text, text_of(TokenSpan(t).subspan(name + 2, end - name - 2)));
                at = end;
            }
            const auto same = std::ranges::find_if(
                configurations_, [&](const Configuration& c) { return c.type == made.type && c.members == made.members; });
            made.name = same != configurations_.end() ? same->name
                        : configurations_.empty()     ? "config"
                                                      : fmt::format("config_{}", configurations_.size() + 1);
            if (same == configurations_.end()) configurations_.push_back(made);
            kernel = kernel.substr(0, type) + "rooftile::" + made.name;
            i = close;
        }
        kernels_.push_back(kernel);
    }
}

/// `template <Config C, ...>`: C is that configuration wherever the file has only one of the type.
void Program::find_parameters() {
    std::map<std::string, std::string> aliases;
    std::map<std::string, std::set<std::string>> types_of_name;
    for (const File& file : files_)
        each_item(file.items, "", [&](const Item& item, const std::string&) {
            const Tokens& t = item.head;
            if (item.kind == Item::Kind::declaration && !t.empty() && t[0].is("using") && item.names.size() == 1) {
                const std::string text = plain_text(t);
                const std::size_t equal = text.find("= ");
                if (equal != std::string::npos) aliases[item.names[0]] = text.substr(equal + 2, text.size() - equal - 3);
            }
        });
    const auto resolved = [&](std::string type) {
        for (auto found = aliases.find(type); found != aliases.end(); found = aliases.find(type)) type = found->second;
        return type;
    };
    for (const File& file : files_)
        each_item(file.items, "", [&](const Item& item, const std::string&) {
            const Tokens& t = item.head;
            for (std::size_t i = 0; i < t.size(); ++i) {
                const std::size_t open = t[i].is("template") ? next_counting(t, i + 1) : t.size();
                if (open >= t.size() || !t[open].is("<")) continue;
                const std::size_t end = behind_angles(t, open);
                for (std::size_t p = open + 1; p + 1 < end; ++p) {
                    const std::size_t before = p - 1;
                    if (t[p].kind != TokenKind::word || !(t[before].is("<") || t[before].kind == TokenKind::space)) continue;
                    const std::size_t name = next_counting(t, p + 1), behind = name < end ? next_counting(t, name + 1) : end;
                    if (behind < end && t[name].kind == TokenKind::word && (t[behind].is(",") || t[behind].is(">")))
                        types_of_name[t[name].text].insert(resolved(t[p].text));
                }
                i = end - 1;
            }
        });
    for (const Configuration& c : configurations_) {
        const std::string type = resolved(c.type);
        if (std::ranges::count_if(configurations_, [&](const Configuration& other) { return resolved(other.type) == type; }) > 1)
            continue;
        for (const auto& [name, types] : types_of_name)
            if (types.size() == 1 && *types.begin() == type) parameters_[name] = c.name;
    }
}

const Item* Program::find_type(std::string_view name) const {
    const Item* out = nullptr;
    std::string alias;
    for (const File& file : files_)
        each_item(file.items, "", [&](const Item& item, const std::string&) {
            if (item.names.size() != 1 || item.names[0] != name) return;
            if (item.kind == Item::Kind::type && item.has_members) out = &item;
            if (item.kind == Item::Kind::declaration && item.head[0].is("using")) {
                const std::string text = plain_text(item.head);
                alias = after_scope(text.substr(text.find('=') + 1));
                alias = alias.substr(alias.find_first_not_of(' '));
                alias.pop_back();
            }
        });
    return out || alias.empty() ? out : find_type(alias);
}

const Item* Program::find_function(std::string_view name) const {
    const Item* out = nullptr;
    for (const File& file : files_)
        each_item(file.items, "", [&](const Item& item, const std::string&) {
            if (!out && item.kind == Item::Kind::function && item.names.size() == 1 && item.names[0] == name) out = &item;
        });
    return out;
}

namespace {

/// Of a namespace: nvcc warns of a constant that is the file's own and that nothing uses, and what is left here was reached by names alone.
void make_constants_inline(std::vector<Item>& items) {
    for (Item& item : items) {
        if (item.kind == Item::Kind::name_space) make_constants_inline(item.members);
        if (item.kind == Item::Kind::declaration && !item.head.empty() && item.head[0].is("constexpr"))
            item.head[0].text = "inline constexpr";
    }
}

}  // namespace

void Program::say_where_functions_run() {
    each_file([](File& file) {
        make_constants_inline(file.items);
        each_item(file.items, "", [](Item& item, const std::string&) {
            if (item.kind != Item::Kind::function) return;
            std::size_t body = 0;
            while (body < item.head.size() && !item.head[body].is("{")) ++body;
            bool is_constexpr = false;
            for (std::size_t i = 0; i < body; ++i) {
                const Token& t = item.head[i];
                if (t.is("__device__") || t.is("__host__") || t.is("__global__") || t.is("ROOFTILE_HOST_DEVICE") || t.is("default")
                    || t.is("delete"))
                    return;
                is_constexpr = is_constexpr || t.is("constexpr") || t.is("consteval");
            }
            // Before the declaration's own words: behind template<...>, attributes and friend.
            std::size_t at = 0;
            for (bool more = true; more;) {
                at = next_counting(item.head, at);
                more = false;
                if (item.head[at].is("template")) at = behind_angles(item.head, next_counting(item.head, at + 1)), more = true;
                else if (item.head[at].is("requires")) at = closing(item.head, next_counting(item.head, at + 1)) + 1, more = true;
                else if (item.head[at].is("[")) at = closing(item.head, at) + 1, more = true;
                else if (item.head[at].is("friend")) ++at, more = true;
            }
            const Token where{TokenKind::word, is_constexpr ? "__host__ __device__ " : "__device__ "};
            item.head.insert(item.head.begin() + std::ptrdiff_t(at), where);
        });
    });
}

namespace {

/// "a, b<c, d>" in two.
std::vector<std::string> arguments_of(std::string_view list) {
    std::vector<std::string> out(1);
    const Tokens t = tokens_of(list);
    int depth = 0;
    for (std::size_t i = 0; i < t.size(); ++i) {
        depth += (t[i].is("<") || t[i].is("(") || t[i].is("{")) - (t[i].is(">") || t[i].is(")") || t[i].is("}"));
        if (depth == 0 && t[i].is(",")) out.emplace_back();
        else if (!out.back().empty() || t[i].counts()) out.back() += t[i].text;
    }
    return out;
}

}  // namespace

std::optional<Item> Program::take_function(const std::string& name) {
    std::optional<Item> out;
    const auto take = [&](auto& self, std::vector<Item>& items) -> void {
        for (std::size_t i = 0; i < items.size() && !out; ++i) {
            const Item& item = items[i];
            if (item.kind == Item::Kind::function && item.names == std::vector{name} && item.head[0].is("template")) {
                out = std::move(items[i]);
                items.erase(items.begin() + std::ptrdiff_t(i));
            } else if (item.has_members) {
                self(self, items[i].members);
            }
        }
    };
    for (File& file : files_) take(take, file.items);
    return out;
}

void Program::instantiate_kernels() {
    std::map<std::string, std::vector<std::string>> launched;  // arguments of each
    std::map<std::string, Item> templates;
    for (std::string& kernel : kernels_) {
        const std::size_t angle = kernel.find('<');
        if (angle == std::string::npos) continue;
        const std::string name = kernel.substr(0, angle), list = kernel.substr(angle + 1, kernel.size() - angle - 2);
        if (!templates.contains(name)) {
            std::optional<Item> taken = take_function(after_scope(name));
            if (!taken) continue;
            templates[name] = std::move(*taken);
        }
        Item copy = templates[name];
        Item* const item = &copy;
        std::vector<std::string>& others = launched[name];
        const auto same = std::ranges::find(others, list);
        const auto place_of = same - others.begin();
        // The second one of a name has a number.
        kernel = place_of == 0 ? name : fmt::format("{}_{}", name, place_of + 1);
        if (same != others.end()) continue;
        others.push_back(list);
        for (Token& t : item->head)
            if (t.kind == TokenKind::word && t.text == after_scope(name)) t.text = after_scope(kernel);
        item->names = {after_scope(kernel)};
        const std::vector<std::string> arguments = arguments_of(list);
        const std::size_t open = next_counting(item->head, 1), end = behind_angles(item->head, open);
        std::map<std::string, std::string> meant;
        std::size_t place = 0;
        for (std::size_t i = open + 1; i < end; ++i) {
            if (!item->head[i].is(",") && i + 1 != end) continue;
            std::size_t word = i - 1;
            while (!item->head[word].counts()) --word;
            if (place < arguments.size()) meant[item->head[word].text] = arguments[place];
            ++place;
        }
        Tokens head(item->head.begin() + std::ptrdiff_t(next_counting(item->head, end)), item->head.end());
        for (std::size_t i = 0; i < head.size(); ++i)
            if (const auto found = meant.find(head[i].text); head[i].kind == TokenKind::word && found != meant.end())
                head[i].text = found->second.starts_with("rooftile::config") ? after_scope(found->second) : found->second;
        item->head = std::move(head);
        // Behind all that its arguments name.
        File last;
        Item scope;
        scope.kind = Item::Kind::name_space;
        scope.head = tokens_of(fmt::format("namespace {} {{", name.substr(0, name.rfind("::"))));
        scope.members.push_back(std::move(*item));
        scope.tail = tokens_of(fmt::format("\n\n}}  // namespace {}", name.substr(0, name.rfind("::"))));
        scope.has_members = true;
        last.items.push_back(std::move(scope));
        files_.push_back(std::move(last));
    }
}

namespace {

bool place_behind(std::vector<Item>& items, const std::string& type, const std::string& text) {
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (items[i].kind != Item::Kind::name_space && items[i].names.size() == 1 && items[i].names[0] == type
            && items[i].kind != Item::Kind::function) {
            Item made;
            made.kind = Item::Kind::fixed;
            made.head = tokens_of("\n\n" + text);
            items.insert(items.begin() + std::ptrdiff_t(i) + 1, std::move(made));
            return true;
        }
        if (items[i].kind == Item::Kind::name_space && place_behind(items[i].members, type, text)) return true;
    }
    return false;
}

}  // namespace

void Program::place_configurations() {
    for (const Configuration& c : configurations_) {
        std::string text = fmt::format("/// What this file is compiled for.\nconstexpr {} {}{{", c.type, c.name);
        for (const auto& [name, value] : c.members) text += fmt::format("\n    .{} = {},", name, value);
        text += c.members.empty() ? "};" : "\n};";
        for (File& file : files_)
            if (place_behind(file.items, c.type, text)) break;
    }
}

void Program::guard_kernels(std::string_view arch) {
    if (!arch.ends_with("a") && !arch.ends_with("f")) return;
    const std::string guard = fmt::format("\n#ifdef __CUDA_ARCH_FEAT_SM{}_ALL", arch.substr(3, arch.size() - 4));
    for (File& file : files_)
        each_item(file.items, "", [&](Item& item, const std::string&) {
            if (item.kind != Item::Kind::function || std::ranges::none_of(item.head, [](const Token& t) { return t.is("__global__"); }))
                return;
            std::size_t open = 0;
            while (open < item.head.size() && !item.head[open].is("{")) ++open;
            if (open == item.head.size()) return;
            const std::size_t close = closing(item.head, open);
            item.head[open].text += guard;
            std::string& before = item.head[close - 1].text;
            if (item.head[close - 1].kind == TokenKind::space && before == "\n") before = "\n#endif\n";
            else item.head[close].text = "\n#endif\n}";
        });
}

namespace {

/// "f" of "f(" and "f<" besides, as `f()`: what is called.
void add_words(std::set<std::string>& words, std::set<std::string>& pasted, TokenSpan tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const Token& t = tokens[i];
        if (t.kind == TokenKind::word) {
            words.insert(t.text);
            const std::size_t next = next_counting(tokens, i + 1);
            if (next < tokens.size() && (tokens[next].is("(") || tokens[next].is("<"))) words.insert(t.text + "()");
            if (i + 1 < tokens.size() && tokens[i + 1].is("#") && i + 2 < tokens.size() && tokens[i + 2].is("#")) pasted.insert(t.text);
        }
        if (t.kind == TokenKind::directive) add_words(words, pasted, tokens_of(std::string_view(t.text).substr(t.text.find('#') + 1)));
    }
}

/// What is known of what is needed.
struct Needed {
    std::set<std::string> words, pasted;
    std::set<const Item*> items{};
    const std::set<std::string>& configurations;  ///< types whose data, too, is taken away where nobody names it

    bool named(const Item& item, bool member = false) const {
        if (item.names.empty()) return true;
        if (member && item.kind == Item::Kind::function) return words.contains(item.names[0] + "()");
        return std::ranges::any_of(item.names, [&](const std::string& name) {
            if (words.contains(name)) return true;
            return item.kind == Item::Kind::directive
                   && std::ranges::any_of(pasted, [&](const std::string& prefix) { return name.starts_with(prefix); });
        });
    }
    /// Whether more is needed than before.
    bool add(const std::vector<Item>& all, const Item* type) {
        bool more = false;
        for (const Item& item : all) {
            if (item.kind == Item::Kind::directive && !item.head.empty() && item.head[0].text.find("undef") != std::string::npos)
                continue;
            const bool is_assert = !item.head.empty() && item.head[0].is("static_assert");
            bool needed = !is_assert && named(item, type != nullptr);
            if (item.kind == Item::Kind::data && !(type && configurations.contains(type->names[0]))) needed = true;
            if (item.kind == Item::Kind::name_space) {
                more = add(item.members, nullptr) || more;
                continue;
            }
            if (item.kind == Item::Kind::function && type && !type->names.empty() && item.names == type->names)
                needed = true;  // a constructor
            if (!needed) continue;
            if (items.insert(&item).second) {
                more = true;
                const std::size_t before = words.size() + pasted.size();
                TokenSpan tokens = item.head;
                // Of data of a configuration the name alone needs nothing.
                // Of a function its own name is no call.
                if (item.kind == Item::Kind::function && type && item.names.size() == 1) {
                    std::set<std::string> own;
                    add_words(own, pasted, tokens);
                    const bool again = words.contains(item.names[0] + "()");
                    if (!again) own.erase(item.names[0] + "()");
                    words.merge(own);
                } else {
                    add_words(words, pasted, tokens);
                }
                add_words(words, pasted, item.tail);
                more = more || words.size() + pasted.size() > before;
            }
            if (item.has_members) more = add(item.members, &item) || more;
        }
        return more;
    }
};

/// Pointers into items of a vector that loses some would not stay: what is needed is marked first.
void mark(const std::vector<Item>& all, const Needed& needed, std::vector<bool>& out) {
    for (const Item& item : all) {
        out.push_back(needed.items.contains(&item)
                      || (item.kind == Item::Kind::directive && !item.head.empty() && item.head[0].text.find("undef") != std::string::npos
                          && needed.named(item))
                      || item.kind == Item::Kind::fixed);
        if (item.has_members) mark(item.members, needed, out);
    }
}

void sweep(std::vector<Item>& all, const std::vector<bool>& kept, std::size_t& at) {
    std::vector<Item> out;
    for (Item& item : all) {
        const bool keep = kept[at++];
        if (item.has_members) sweep(item.members, kept, at);
        const bool holds = std::ranges::any_of(item.members, [](const Item& m) { return m.kind != Item::Kind::fixed; });
        if (item.kind == Item::Kind::name_space ? holds : keep) out.push_back(std::move(item));
    }
    all = std::move(out);
}

}  // namespace

void Program::take_unused(std::set<std::string> words) {
    std::set<std::string> types;
    for (const Configuration& c : configurations_)
        if (const Item* type = find_type(c.type)) types.insert(type->names[0]);
    for (const std::string& kernel : kernels_)
        for (const Token& t : tokens_of(kernel))
            if (t.kind == TokenKind::word) words.insert(t.text);
    for (const Configuration& c : configurations_) words.insert(c.type);
    Needed needed{.words = std::move(words), .pasted = {}, .configurations = types};
    const auto reach = [&] {
        for (bool more = true; more;) {
            more = false;
            each_file([&](const File& file) { more = needed.add(file.items, nullptr) || more; });
        }
    };
    reach();
    each_file([&](File& file) {
        std::vector<bool> kept;
        mark(file.items, needed, kept);
        std::size_t at = 0;
        sweep(file.items, kept, at);
    });
    for (std::vector<File>* files : {&files_, &check_files_})
        std::erase_if(*files, [](const File& file) {
            return std::ranges::none_of(file.items, [](const Item& i) { return i.kind != Item::Kind::fixed; });
        });
    for (Configuration& c : configurations_) {
        const Item* type = find_type(c.type);
        if (!type) continue;
        std::erase_if(c.members, [&](const auto& member) {
            return std::ranges::none_of(
                type->members, [&](const Item& item) { return std::ranges::find(item.names, member.first) != item.names.end(); });
        });
    }
}

namespace {

/// Blank lines one at most, none before a closing brace; one line break at the end.
std::string tidied(const std::string& text) {
    std::string out;
    bool blank = true;  // the line before
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = std::min(text.find('\n', at), text.size());
        std::string line = text.substr(at, end - at);
        line.erase(line.find_last_not_of(" \t") + 1);
        at = end + 1;
        const bool closes = line.find_first_not_of(" \t") != std::string::npos && line[line.find_first_not_of(" \t")] == '}';
        if (closes && line.size() > line.find('}') + 1 && line[0] != '}' && blank && out.ends_with("\n\n")) out.pop_back();
        else if (closes && line[0] != '}' && out.ends_with("\n\n")) out.pop_back();
        if (line.empty() && (blank || out.ends_with("{\n"))) continue;
        blank = line.empty();
        out += line + "\n";
    }
    while (out.ends_with("\n\n")) out.pop_back();
    return out;
}

}  // namespace

std::string Program::includes() const {
    std::string out;
    for (const std::string& include : includes_) out += include + "\n";
    return out;
}
std::string Program::text() const { return text_of_files(files_); }
std::string Program::check_text() const { return text_of_files(check_files_); }

std::string Program::text_of_files(const std::vector<File>& files) const {
    std::string out;
    for (const File& file : files) out += text_of(file.story) + "\n" + text_of(file.items) + "\n";
    // Neighbours in one namespace share its braces.
    out = tidied(out);
    constexpr std::string_view end = "}  // namespace ";
    for (std::size_t at = out.find(end); at != std::string::npos; at = out.find(end, at + 1)) {
        const std::string name = out.substr(at + end.size(), out.find('\n', at) - at - end.size());
        const std::string seam = fmt::format("{}{}\n\nnamespace {} {{\n", end, name, name);
        while (out.compare(at, seam.size(), seam) == 0) {
            out.erase(at, seam.size());
            at = out.find(end, at);
            if (at == std::string::npos || out.compare(at + end.size(), name.size() + 1, name + "\n") != 0) break;
        }
        if (at == std::string::npos) break;
    }
    return tidied(out);
}

}  // namespace rooftile::emit
