// What the fake driver says to the fake CUPTI, where that listens: calls as they begin and end, kernels and copies as they are done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <cuda.h>

namespace fake {

/// A kernel's launch, by itself or a node of a graph.
struct KernelRun {
    std::string name;
    double us = 0;
    unsigned grid[3] = {}, block[3] = {}, shared = 0;
    const void* node = nullptr;  ///< of an executable graph; null: none
    unsigned graph = 0;
    std::uint32_t stream = 7;
};

/// What the parameters of cuLaunchKernelEx are to a callback. CUPTI's own struct is in a header that the driver's source cannot include.
struct LaunchParameters {
    const CUlaunchConfig* config;
    CUfunction function;
    void** arguments;
    void** extra;
};

class Listener {
  public:
    virtual void enter(std::uint32_t call, const void* parameters) = 0;
    virtual void leave(std::uint32_t call, const void* parameters, CUresult result) = 0;
    virtual void kernel(const KernelRun& run) = 0;  ///< asked for by the call that this thread is in
    virtual void copy(unsigned kind, std::size_t bytes) = 0;
    virtual void node(const void* made, const void* original) = 0;  ///< `original`: null of one that a capture makes

  protected:
    ~Listener() = default;
};

/// NVTX's own tables, as its headers have them: a program gives its table away, and whoever listens fills it.
struct NvtxCallbacks {
    std::size_t size;
    int (*module_table)(int module, void**** table, unsigned* entries);
};
constexpr std::uint32_t nvtx_callbacks = 1;  // NVTX_ETID_CALLBACKS
constexpr int nvtx_core = 1, nvtx_push = 9, nvtx_pop = 11;
using NvtxExportTable = const void* (*)(std::uint32_t id);

}  // namespace fake
