// The context of a call.
#pragma once

#include <optional>

#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/driver_table.hpp"

namespace rooftile::c {

/// Of the context that is current; -1: none is.
inline int device_of_context() {
    const DriverTable* driver = driver_table_if_usable();
    CUdevice device = -1;
    return driver && driver->cuCtxGetDevice(&device) == CUDA_SUCCESS ? device : -1;
}

/// Makes the primary context of `device` current as long as it lives, where the current one is not of that device; -1: none.
class OnDevice {
  public:
    explicit OnDevice(int device) {
        if (device >= 0 && device_of_context() != device) context_.emplace(device);
    }

  private:
    std::optional<Context> context_;
};

}  // namespace rooftile::c
