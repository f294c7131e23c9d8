// The command line: run one verb, turn every outcome into an exit code.
#include <fmt/core.h>

#include <exception>
#include <new>
#include <string>

#include "cli/interrupt.hpp"
#include "cli/verb.hpp"
#include "rooftile/c/error.hpp"
#include "rooftile/error.hpp"
#include "rooftile/rooftile.h"

namespace rooftile::cli {
namespace {

std::vector<Verb> all_verbs() {
    std::vector<Verb> verbs;
    add_plan(verbs);
    add_layer(verbs);
    add_beside(verbs);
    add_build(verbs);
    add_build_source(verbs);
    add_build_ptx(verbs);
    add_emit(verbs);
    add_export(verbs);
    add_measure(verbs);
    add_measure_source(verbs);
    add_measure_layer(verbs);
    add_tune(verbs);
    add_ways(verbs);
    add_units(verbs);
    add_step(verbs);
    add_pack(verbs);
    add_name(verbs);
    add_sweep(verbs);
    add_sweep_mlp(verbs);
    add_simulate(verbs);
    add_operation_verbs(verbs);
    add_workers(verbs);
    add_machine(verbs);
    add_ledger(verbs);
    add_validate(verbs);
    add_report(verbs);
    add_compare(verbs);
    add_profile(verbs);
    add_report_pictures(verbs);
    add_doctor(verbs);
    add_cache(verbs);
    add_completion(verbs, all_verbs);
    return verbs;
}

int guarded(int argc, char** argv) {
    try {
        return run_command_line(argc, argv, all_verbs());
    } catch (const Error& error) {
        say(error.what());
        if (error.code() != ExitCode::bad_request && !error.detail().empty())
            fmt::print(stderr, "{}\n", error.detail());
        return int(error.code());
    } catch (const std::bad_alloc&) {
        say("internal error: out of memory");
    } catch (const std::exception& error) {
        say(fmt::format("internal error: {}; please report it with the command line", error.what()));
    }
    return int(ExitCode::internal);
}

}  // namespace
}  // namespace rooftile::cli

int rooftile_main(int argc, char** argv) {
    if (argc < 1 || !argv)
        return rooftile::c::failed(rooftile::ExitCode::bad_request, argv ? "argc is 0" : "argv is null");
    rooftile::cli::open_standard_streams();
    rooftile::cli::handle_signals();
    return rooftile::cli::guarded(argc, argv);
}
