// A compiled kernel in every context that launches it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/driver_table.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {

/// A cubin, loaded once, with what `Loaded` keeps of it in each context. Any thread may ask.
template <class Loaded>
class InContexts {
  public:
    /// What `load(module, device)` made in the current context, which is called where nobody has asked there before. Throws where no
    /// context is current, or its GPU does not run code for `arch` ("sm_90").
    template <class Load>
    const Loaded& of_module(const Compiled& compiled, const std::string& arch, Load load) const {
        const std::uint64_t id = context_id(current_context());
        std::lock_guard lock(mutex_);
        if (auto found = contexts_.find(id); found != contexts_.end()) return found->second;
        const int device = current_device();  // throws where no context is current
        Driver::instance().require_arch(device, arch);
        if (!module_) module_ = Module(compiled.cubin);
        return contexts_.emplace(id, load(module_, device)).first->second;
    }
    /// The same of a cubin's first entry: `load(function, device)`.
    template <class Load>
    const Loaded& here(const Compiled& compiled, const std::string& arch, Load load) const {
        return of_module(compiled, arch,
                         [&](const Module& module, int device) { return load(module.function(compiled.lowered_names.front()), device); });
    }

  private:
    mutable std::mutex mutex_;
    mutable Module module_;
    mutable std::map<std::uint64_t, Loaded> contexts_;  // references into a map stay valid
};

}  // namespace rooftile
