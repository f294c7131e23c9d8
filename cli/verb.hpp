// The verbs of the command line as data: the parser makes flags, help and refusals from their fields, and what was
// asked for runs after parsing, so that a wrong request is refused before anything happens.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output.hpp"
#include "rooftile/core/field.hpp"

namespace rooftile::cli {

/// One run of the program.
struct Invocation {
    std::string command;  ///< the whole command line, quoted for a shell; documents carry it
    std::chrono::steady_clock::time_point start;  ///< of the program, for --timings
    std::vector<std::string> program{};           ///< what stands after "--", of a verb that takes a program
};

struct Verb {
    std::string path;     ///< "machine show"
    std::string meaning;  ///< one line
    std::vector<Field> fields;
    Documents documents = Documents::none;  ///< which of the output's flags it takes beside `fields`
    std::string examples;                   ///< closing lines of help
    std::string synopsis;                   ///< arguments as one types them, for refusals; may be empty
    bool takes_program = false;             ///< after "--", with arguments of its own
    /// Returns the exit code.
    std::function<int(const Given&, const OutputFlags&, const Invocation&)> run;
};

/// "--shape 64x64x64" of a line of help: fields of several lists, one after the other.
std::vector<Field> joined_fields(std::initializer_list<std::span<const Field>> lists);

// One function a file of cli/; each adds the verbs of that word.
void add_machine(std::vector<Verb>& verbs);
void add_machine_probe(std::vector<Verb>& verbs);
void add_machine_compare(std::vector<Verb>& verbs);
void add_plan(std::vector<Verb>& verbs);
void add_layer(std::vector<Verb>& verbs);
void add_beside(std::vector<Verb>& verbs);
void add_build(std::vector<Verb>& verbs);
void add_build_source(std::vector<Verb>& verbs);
void add_build_ptx(std::vector<Verb>& verbs);
void add_step(std::vector<Verb>& verbs);
void add_pack(std::vector<Verb>& verbs);
void add_name(std::vector<Verb>& verbs);
void add_emit(std::vector<Verb>& verbs);
void add_export(std::vector<Verb>& verbs);
void add_measure(std::vector<Verb>& verbs);
void add_measure_source(std::vector<Verb>& verbs);
void add_measure_layer(std::vector<Verb>& verbs);
void add_tune(std::vector<Verb>& verbs);
void add_ways(std::vector<Verb>& verbs);
void add_units(std::vector<Verb>& verbs);
void add_sweep(std::vector<Verb>& verbs);
void add_sweep_mlp(std::vector<Verb>& verbs);
void add_simulate(std::vector<Verb>& verbs);
void add_workers(std::vector<Verb>& verbs);
void add_ledger(std::vector<Verb>& verbs);
void add_validate(std::vector<Verb>& verbs);
void add_report(std::vector<Verb>& verbs);
void add_compare(std::vector<Verb>& verbs);
void add_profile(std::vector<Verb>& verbs);
void add_report_pictures(std::vector<Verb>& verbs);
void add_doctor(std::vector<Verb>& verbs);
void add_cache(std::vector<Verb>& verbs);
/// Of what `all` makes, when it is asked for.
void add_completion(std::vector<Verb>& verbs, std::vector<Verb> (*all)());
/// What only one operation has, of all of them.
void add_operation_verbs(std::vector<Verb>& verbs);

/// Parses, runs one verb, and returns the exit code. Throws RequestError on a request that no verb takes.
int run_command_line(int argc, char** argv, const std::vector<Verb>& verbs);

}  // namespace rooftile::cli
