// man: the manual page as roff, made from the verbs' own descriptions.
#include <fmt/core.h>

#include "cli/man.hpp"
#include "cli/output.hpp"
#include "rooftile/report/context.hpp"

namespace rooftile::cli {
namespace {

/// As roff reads it: a backslash and a dash are themselves, and no line begins with a command.
std::string roff(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\\') out += "\\e";
        else if (c == '-') out += "\\-";
        else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n'))
            out += std::string("\\&") + c;
        else out += c;
    }
    return out;
}

/// "-o, --out FILE"
std::string flag_text(const Field& field) {
    if (field.kind == FieldKind::positional) return "\\fI" + roff(field.form) + "\\fR";
    std::string out = field.letter ? fmt::format("\\fB\\-{}\\fR, ", field.letter) : "";
    out += "\\fB" + roff(flag_of(field.key)) + "\\fR";
    if (field.form.empty()) return out;
    return out
           + (field.kind == FieldKind::on ? "[=\\fI" + roff(field.form) + "\\fR]"
                                          : " \\fI" + roff(field.form) + "\\fR");
}

std::string verb_text(const Verb& verb) {
    std::string out = fmt::format(".SS {}\n.B rooftile {}\n{}\n.PP\n{}.\n", roff(verb.path), roff(verb.path),
                                  roff(verb.synopsis), roff(verb.meaning));
    const std::vector<Field> output = output_fields(verb.documents);
    for (const Field& field : joined_fields({verb.fields, output}))
        out += fmt::format(".TP\n{}\n{}\n", flag_text(field), roff(field.meaning));
    if (!verb.examples.empty()) out += ".PP\n.nf\n" + roff(verb.examples) + ".fi\n";
    return out;
}

}  // namespace

std::string manual_page(const std::vector<Verb>& verbs) {
    std::string out = fmt::format(
        ".TH ROOFTILE 1 \"\" \"rooftile {}\"\n.SH NAME\nrooftile \\- GPU kernel parameters derived from the "
        "hardware's numbers, "
        "with reasons\n.SH SYNOPSIS\n.B rooftile\n.I VERB\n[\\fIARGUMENTS\\fR]\n.SH DESCRIPTION\n"
        "Derives GPU kernel parameters from a machine's numbers, predicts what they take, compiles, runs, "
        "verifies and "
        "measures them.\n.SH VERBS\n",
        roff(version()));
    for (const Verb& verb : verbs) out += verb_text(verb);
    out += ".SH EXIT STATUS\n";
    static constexpr std::pair<int, const char*> codes[] = {
        {0, "done"},
        {1, "our own fault"},
        {2, "the request is wrong"},
        {3, "verification failed"},
        {4, "no usable GPU or driver"},
        {5, "a kernel does not compile"},
        {6, "the GPU failed at run time"},
        {7, "hardware counters are not permitted"},
        {8, "a regression, or a threshold missed where one was asked for"},
        {10, "the request is right but no plan fits"},
        {130, "interrupted"}};
    for (const auto& [code, meaning] : codes) out += fmt::format(".TP\n{}\n{}\n", code, meaning);
    return out;
}

}  // namespace rooftile::cli
