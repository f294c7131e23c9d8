// Kernels that a user wrote as functions to call: a public `.cu` as it lies, compiled at run time, launched on the caller's stream.
//
//     const rooftile::SourceModule mine = rooftile::load("kernels.cu", {"scale", "gelu<float>"});
//     mine.launch("scale", {.grid_x = 64, .block_x = 256, .stream = stream}, y, x, 2.0f, n);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {

// What every GPU that CUDA runs on has alike: of a grid, of a CTA's threads, of the CTAs of a cluster on every GPU which has them.
inline constexpr std::array<std::int64_t, 3> max_grid_extents = {2147483647, 65535, 65535}, max_block_extents = {1024, 1024, 64},
                                             max_cluster_extents = {8, 8, 8};
inline constexpr std::int64_t max_dynamic_shared = 1 << 20;  ///< bytes; the GPU's own limit is checked where it is known

enum class ParameterKind { pointer, int_, uint, float_, struct_ };  ///< bool and enums are whole numbers
std::string_view name_of(ParameterKind kind);                       ///< "pointer", "int", "uint", "float", "struct"

struct ModuleParameter {
    int bytes = 0;
    ParameterKind kind = ParameterKind::struct_;
};

struct ModuleFunction {
    std::string name;  ///< as it was asked for: "gelu<float>"
    EntryInfo entry;   ///< registers and the like
    std::vector<ModuleParameter> parameters;
};

struct LoadOptions {
    std::vector<std::string> include = {};  ///< folders where includes look, beside the file's own or, of a text, the current one
    std::string arch = {};                  ///< "sm_90"; empty: that of the current context's GPU, or of the first
};

/// An argument of a launch: where its value is, and how long it is.
struct ModuleArgument {
    const void* value;
    std::size_t bytes;
};

/// Kernels of one source. A handle: copies share the code, which lives as long as one of them, or a graph that recorded a launch.
class SourceModule {
  public:
    const std::string& arch() const;  ///< "sm_90"
    std::span<const ModuleFunction> functions() const;
    std::span<const std::string> left_out() const;  ///< what was for the host: functions and includes
    /// The place of a function; the part behind its namespaces, and of a template's only instance without its arguments, will do.
    /// Throws RequestError.
    int find(std::string_view name) const;

    /// Loads the code into the current context, once; what a launch does at its first call there, but not while a graph is captured.
    void load() const;
    /// One launch in the current context, in the stream of `launch`. Neither synchronises nor, once loaded, allocates; may be captured;
    /// thread-safe. A grid of no CTAs launches nothing. Throws RequestError, before anything is launched, where the arguments are not
    /// as many, or as long, as the kernel's parameters, or no launch of that size can start.
    void launch(int function, const Launch& launch, std::span<const ModuleArgument> arguments) const;
    template <class... Arguments>
    void launch(std::string_view function, const Launch& configuration, const Arguments&... arguments) const {
        const ModuleArgument all[] = {{&arguments, sizeof arguments}..., {nullptr, 0}};
        launch(find(function), configuration, std::span(all, sizeof...(arguments)));
    }

    struct State;
    explicit SourceModule(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  private:
    std::shared_ptr<const State> state_;
};

/// Compiles kernels of a file in one program; of text, which has a line break or says __global__, likewise. `functions` are as C++ calls
/// them, templates with their arguments; none: all of the file that are no templates. Throws RequestError where a file or a function
/// is not there, Error(compile_failed), whose detail is the compiler's log, and Error(no_gpu) where nothing says what to compile for.
SourceModule load(const std::string& source, std::vector<std::string> functions = {}, const LoadOptions& options = {});

}  // namespace rooftile
