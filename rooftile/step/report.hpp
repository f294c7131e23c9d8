// What a stepped kernel's process reports, as an outcome, and an outcome as text and as a document.
#pragma once

#include <string>
#include <string_view>

#include "rooftile/report/context.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"
#include "rooftile/step/step.hpp"

namespace rooftile {

/// What stands between the signs.
std::vector<std::string> parts_of(std::string_view text, char sign);

/// "x[3,4]"; of an element that `t` does not have "element -1 of x".
std::string element_text(const StepTensor& t, std::int64_t element);

/// Why the kernel was not called, of what runtime.cc reported; empty: it was.
std::string refusal_of(std::string_view report);
/// `program` has the lines. Throws RequestError where a thread reached what cannot be stepped.
StepOutcome outcome_of(const StepRequest& request, std::string_view report, const std::string& program);

/// Of what g++ wrote: RequestError where it lacks a header, else Error(compile_failed) with the first error of the user's files.
[[noreturn]] void throw_compile_error(const SourceRequest& source, const std::string& log, const std::string& compiler);

std::string step_text(const StepRequest& request, const StepOutcome& outcome, const Terminal& terminal);
/// `rooftile/step/1`.
Json step_document(const DocumentContext& context, const StepRequest& request, const StepOutcome& outcome);

}  // namespace rooftile
