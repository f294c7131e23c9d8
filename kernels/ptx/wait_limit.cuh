// An end of waits that would have none. PTX ISA 10 "Special Registers", %globaltimer.
#pragma once

namespace rooftile::ptx {

/// Of a loop that waits for other threads: more() in each turn. Compiled with ROOFTILE_WAIT_LIMIT_NS it ends the kernel by a trap behind
/// so many nanoseconds, so that kernels whose roles miss each other can be tested; else it is nothing.
class WaitLimit {
  public:
#ifdef ROOFTILE_WAIT_LIMIT_NS
    __device__ WaitLimit() : begin_(now()) {}
    __device__ void more() const {
        if (now() - begin_ > ROOFTILE_WAIT_LIMIT_NS) __trap();
    }

  private:
    __device__ static unsigned long long now() {
        unsigned long long ns;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
        return ns;
    }
    unsigned long long begin_;
#else
    __device__ void more() const {}
#endif
};

}  // namespace rooftile::ptx
