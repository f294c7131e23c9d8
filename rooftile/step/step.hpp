// A user's kernel, stepped: its text compiled by g++ behind a small CUDA for the CPU (text/), its CTAs run in a process of their own, every
// access checked. What stepping in an interpreter is to other languages; no GPU.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rooftile/core/field.hpp"
#include "rooftile/expression/graph.hpp"
#include "rooftile/measure/source_kernel.hpp"
#include "rooftile/step/host_text.hpp"

namespace rooftile {

struct StepTensor {
    std::string name, type;  ///< "x", "fp32"
    int bytes = 4;           ///< of an element
    std::optional<Element> element;
    Shape shape;
    std::string fill;  ///< as --fill says; empty: normal numbers where it is of floating point, else zeros
};

struct StepRequest {
    SourceRequest source;  ///< without its problem; `parameters` name `tensors`
    std::string whole;     ///< the file as it is, for the lines that are shown
    std::vector<StepTensor> tensors;
    std::optional<ExpressionGraph> reference;
    std::optional<std::int64_t> cta;  ///< empty: all
    int thread = 0;                   ///< that watches print
    std::vector<Watch> watches;
    std::uint64_t seed = 0;
};

std::span<const Field> step_fields();
/// Reads the file. Throws RequestError, one line.
StepRequest step_request(const Given& given);

/// A line of the user's files; line 0: of none.
struct StepPlace {
    std::string file, text;
    int line = 0;
};

struct StepFault {
    std::string kind;     ///< "outside", "race", "divergent" ...: docs/step.md lists them
    std::string message;  ///< one line: what, with which numbers
    std::string advice;   ///< one line; may be empty
    StepPlace at;
    std::vector<StepPlace> called_from;  ///< innermost first
    std::int64_t cta = 0;
    int thread = 0;
    struct Other {  ///< of a race
        std::int64_t cta = 0;
        int thread = 0;
        std::string did;  ///< "wrote", "read"
        StepPlace at;
    };
    std::optional<Other> other;
    struct Group {            ///< of a divergent barrier
        std::string threads;  ///< "0-15, 40"
        std::string state;    ///< "ended", "waits at a barrier", "waits for its warp"
        StepPlace at;
    };
    std::vector<Group> waiting;
};

struct StepOutcome {
    std::int64_t ctas = 0, stepped = 0;  ///< CTAs of the grid; that ran to their end
    std::optional<StepFault> fault;
    struct Watched {
        int line = 0;
        std::int64_t cta = 0;
        std::string expression, value;
    };
    std::vector<Watched> watched;
    std::string printed;  ///< by the kernel
    struct Changed {
        std::int64_t elements = 0;       ///< that have another value than before
        std::vector<std::string> first;  ///< the first values
    };
    std::vector<Changed> changed;  ///< of the tensors
    std::optional<bool> right;     ///< against the reference; empty: not compared
    std::string comparison;        ///< what is wrong, or why it was not compared
};

/// Throws RequestError where the kernel cannot be stepped or called so, Error(compile_failed) where g++ refuses it. While blocks run,
/// `progress` is called some times a second with how many have ended, and of how many.
StepOutcome step(const StepRequest& request, const std::function<void(std::int64_t, std::int64_t)>& progress = {});

/// "(1,0,0)" of a linear index.
std::array<unsigned, 3> place_of(std::int64_t index, unsigned x, unsigned y);

}  // namespace rooftile
