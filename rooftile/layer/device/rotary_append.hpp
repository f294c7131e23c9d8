// The kernel that turns queries and keys by their position and appends keys and values to a cache, compiled and launched.
#pragma once

#include <string>

#include "kernels/layer/rotary_append_config.hpp"
#include "rooftile/runtime/cache.hpp"
#include "rooftile/runtime/compile_options.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/in_contexts.hpp"

namespace rooftile {

class RotaryAppend {
  public:
    /// Compiles, or reads from the cache; needs NVRTC, no GPU. Throws RequestError where a head's sizes are none that the kernel takes.
    RotaryAppend(const RotaryConfig& config, const std::string& arch, const CompileOptions& options = {});

    const RotaryConfig& config() const { return config_; }
    const Compiled& compiled() const { return compiled_.compiled; }
    void load() const { loaded(); }
    /// In the current context; waits for the launch before by itself, so that it may begin while that one ends. Throws RequestError where a
    /// pointer is missing or not aligned to 16 bytes.
    void launch(Stream stream, const RotaryArguments& arguments) const;

  private:
    const Function& loaded() const;
    RotaryConfig config_;
    std::string arch_;
    CachedCompile compiled_;
    InContexts<Function> contexts_;
};

/// What it is compiled from. Throws as the constructor.
Source rotary_source(const RotaryConfig& config, const std::string& arch);

}  // namespace rooftile
