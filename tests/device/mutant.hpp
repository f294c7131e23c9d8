// Kernels made wrong on purpose: exact pieces of what is compiled, and what stands in their place.
#pragma once

#include <fmt/core.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/machine/registry.hpp"
#include "rooftile/runtime/nvrtc.hpp"
#include "tests/core/example.hpp"

namespace rooftile {

/// A piece of a kernel's source that occurs there once.
struct Replacement {
    std::string_view file;  ///< "kernels/..."; empty: the text that includes them
    std::string piece, by;
};

/// A kernel of `problem`, the words of a command line behind the operation's name, with pieces replaced; none: as it is.
struct Mutant {
    std::string name;
    std::string problem;
    std::vector<Replacement> replacements = {};
    bool hangs = false;  ///< it may wait for ever: it is compiled to end then
};

/// Texts that sources refer to, kept as long as the program runs: kernels may be compiled again from them.
inline std::string_view kept(std::string text) {
    static std::mutex mutex;
    static std::deque<std::string> texts;
    const std::lock_guard lock(mutex);
    return texts.emplace_back(std::move(text));
}
inline std::span<const EmbeddedFile> kept(std::vector<EmbeddedFile> files) {
    static std::mutex mutex;
    static std::deque<std::vector<EmbeddedFile>> all;
    const std::lock_guard lock(mutex);
    return all.emplace_back(std::move(files));
}

/// Throws std::runtime_error where the piece is not there, or more than once: a mutant that no longer applies must not pass
/// for one that was looked at.
inline std::string replaced(std::string text, const Replacement& replacement, std::string_view mutant) {
    const std::size_t at = text.find(replacement.piece);
    if (at == text.npos || text.find(replacement.piece, at + 1) != text.npos)
        throw std::runtime_error(fmt::format(
            "\"{}\": what it replaces stands {} in {}:\n{}", mutant,
            at == text.npos ? "nowhere" : "more than once",
            replacement.file.empty() ? "the source's text" : replacement.file, replacement.piece));
    return text.replace(at, replacement.piece.size(), replacement.by);
}

/// For CompileOptions::alter.
inline std::function<void(Source&)> alteration(const Mutant& mutant) {
    return [mutant](Source& source) {
        std::vector<EmbeddedFile> headers(source.headers.begin(), source.headers.end());
        for (const Replacement& replacement : mutant.replacements) {
            if (replacement.file.empty()) {
                source.text = replaced(std::move(source.text), replacement, mutant.name);
                continue;
            }
            bool found = false;
            for (EmbeddedFile& header : headers) {
                if (header.path != replacement.file) continue;
                header.text = kept(replaced(std::string(header.text), replacement, mutant.name));
                found = true;
            }
            if (!found) throw std::runtime_error(fmt::format("no header is called {}", replacement.file));
        }
        if (mutant.hangs) source.text = "#define ROOFTILE_WAIT_LIMIT_NS 500000000ull\n" + source.text;
        source.headers = kept(std::move(headers));
    };
}

/// The best plan of the mutant's problem, planned for the same GPU wherever the test runs.
inline PlanSet planned(const Operation& operation, const Mutant& mutant) {
    const Given given = given_of(operation, mutant.problem);
    return operation.derive(std::make_shared<const Machine>(machine_by_id("h200-sxm")),
                            operation.problem(given),
                            operation.request(given, {.top = 1, .buildable_only = true}));
}

}  // namespace rooftile
