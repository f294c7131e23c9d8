// A program for the profiler, which does on the fake driver what its words say, one after the other:
//   init          starts CUDA and loads a kernel    launch=N      launches it N times, at once in as many calls
//   graph=N       captures three launches and launches the graph N times
//   copy          a copy there and back, a memset   sync          waits for the stream
//   push=NAME pop an NVTX range                      start stop    cuProfilerStart, cuProfilerStop
//   sleep=MS      print=TEXT                         exec=PROGRAM  runs it with no arguments in its place
//   fork=N        a child that launches N times and ends; this one waits for it
//   forks=N       N children that end at once, while another thread launches; this one waits for each
//   crash abort kill _exit=N exit=N   how it ends; else by 0
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include <cuda.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fake/listener.hpp"

namespace {

void* driver = nullptr;
CUfunction kernel{};
CUstream stream{};

template <class Function>
Function function(const char* name) {
    auto found = reinterpret_cast<Function>(dlsym(driver, name));
    if (!found) std::fprintf(stderr, "the driver has no %s\n", name), std::exit(99);
    return found;
}
#define DRIVER(NAME) function<decltype(&NAME)>(#NAME)
#define DRIVER_V2(NAME) function<decltype(&NAME)>(#NAME "_v2")

void init() {
    const char* folder = std::getenv("ROOFTILE_CUDA_PATH");
    driver = dlopen((std::string(folder ? folder : ".") + "/libcuda.so.1").c_str(), RTLD_NOW);
    if (!driver) std::fprintf(stderr, "%s\n", dlerror()), std::exit(99);
    CUlibrary library{};
    CUkernel loaded{};
    if (DRIVER(cuInit)(0) != CUDA_SUCCESS) std::exit(98);
    DRIVER(cuLibraryLoadData)(&library, "", nullptr, nullptr, 0, nullptr, nullptr, 0);
    DRIVER(cuLibraryGetKernel)(&loaded, library, "write_down");
    DRIVER(cuKernelGetFunction)(&kernel, loaded);
    DRIVER(cuStreamCreate)(&stream, 0);
}

void launch(int times) {
    for (int i = 0; i < times; ++i) {
        void *out = nullptr, *in = nullptr;
        int number = 4711;
        unsigned char byte = 1;
        float real = 2;
        double wide = 3;
        long long whole = 4;
        char rest[12] = {};
        void* arguments[] = {&out, &in, &number, &byte, &real, &wide, &whole, rest};
        CUlaunchConfig config{};
        config.gridDimX = 66, config.gridDimY = config.gridDimZ = 1, config.blockDimX = 128, config.blockDimY = config.blockDimZ = 1,
        config.hStream = stream;
        DRIVER(cuLaunchKernelEx)(&config, kernel, arguments, nullptr);
    }
}

void graph(int times) {
    CUgraph made{};
    CUgraphExec executable{};
    DRIVER_V2(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    launch(3);
    DRIVER(cuStreamEndCapture)(stream, &made);
    DRIVER(cuGraphInstantiateWithFlags)(&executable, made, 0);
    for (int i = 0; i < times; ++i) DRIVER(cuGraphLaunch)(executable, stream);
}

void copy() {
    CUdeviceptr there{};
    char here[64] = {};
    DRIVER_V2(cuMemAlloc)(&there, sizeof here);
    DRIVER_V2(cuMemcpyHtoD)(there, here, sizeof here);
    DRIVER(cuMemsetD8Async)(there, 0, sizeof here, stream);
    DRIVER_V2(cuMemcpyDtoH)(here, there, sizeof here);
}

// As NVTX's headers do it: what is called at first asks who listens, and the table has who answers from then on.
void* nvtx_functions[16] = {};
void** nvtx_places[16] = {};
const fake::NvtxCallbacks nvtx{sizeof(fake::NvtxCallbacks), [](int module, void**** table, unsigned* entries) {
                                   for (int i = 0; i < 16; ++i) nvtx_places[i] = &nvtx_functions[i];
                                   return *table = nvtx_places, *entries = 16, int(module == fake::nvtx_core);
                               }};
void* nvtx_function(int which) {
    static const bool asked = [] {
        const char* path = std::getenv("NVTX_INJECTION64_PATH");
        void* library = path ? dlopen(path, RTLD_NOW) : nullptr;
        auto* initialize = library ? reinterpret_cast<int (*)(fake::NvtxExportTable)>(dlsym(library, "InitializeInjectionNvtx2")) : nullptr;
        return initialize && initialize([](std::uint32_t id) -> const void* { return id == fake::nvtx_callbacks ? &nvtx : nullptr; });
    }();
    return asked ? nvtx_functions[which] : nullptr;
}

}  // namespace

int main(int count, char** words) {
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i], name = word.substr(0, word.find('=')),
                          value = word.find('=') == word.npos ? "" : word.substr(word.find('=') + 1);
        const int number = std::atoi(value.c_str());
        if (name == "init") init();
        else if (name == "launch") launch(number);
        else if (name == "graph") graph(number);
        else if (name == "copy") copy();
        else if (name == "sync") DRIVER(cuStreamSynchronize)(stream);
        else if (name == "start") function<CUresult (*)()>("cuProfilerStart")();
        else if (name == "stop") function<CUresult (*)()>("cuProfilerStop")();
        else if (name == "push") {
            if (void* push = nvtx_function(fake::nvtx_push)) reinterpret_cast<int (*)(const char*)>(push)(value.c_str());
        } else if (name == "pop") {
            if (void* pop = nvtx_function(fake::nvtx_pop)) reinterpret_cast<int (*)()>(pop)();
        } else if (name == "sleep") usleep(useconds_t(number) * 1000);
        else if (name == "print") std::puts(value.c_str()), std::fflush(stdout);
        else if (name == "exec") execlp(value.c_str(), value.c_str(), nullptr);
        else if (name == "fork") {
            if (const pid_t child = fork(); child != 0) waitpid(child, nullptr, 0);
            else launch(number), std::exit(3);
        } else if (name == "forks") {
            std::atomic<bool> done{false};
            std::thread launching([&] {
                while (!done) launch(1);
            });
            for (int n = 0; n < number; ++n)
                if (const pid_t child = fork(); child != 0) waitpid(child, nullptr, 0);
                else std::exit(0);
            done = true;
            launching.join();
        } else if (name == "crash") raise(SIGSEGV);
        else if (name == "abort") std::abort();
        else if (name == "kill") raise(SIGKILL);
        else if (name == "_exit") _exit(number);
        else if (name == "exit") std::exit(number);
        else return std::fprintf(stderr, "no such word: %s\n", words[i]), 97;
    }
}
