#include "rooftile/emit/check.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "rooftile/core/operation.hpp"
#include "rooftile/measure/device_operation.hpp"

namespace rooftile::emit {
namespace {

/// What a tensor's elements are in C++.
std::string type_of(const TensorInfo& t) {
    static constexpr std::pair<std::string_view, std::string_view> types[] = {{"bf16", "__nv_bfloat16"},
                                                                              {"fp16", "__half"},
                                                                              {"fp32", "float"},
                                                                              {"fp8_e4m3", "__nv_fp8_e4m3"},
                                                                              {"fp8_e5m2", "__nv_fp8_e5m2"},
                                                                              {"int64", "long long"},
                                                                              {"int32", "int"},
                                                                              {"bool", "bool"},
                                                                              {"boolean", "bool"}};
    for (const auto& [name, text] : types)
        if (t.type == name) return std::string(text);
    return "unsigned char";
}

constexpr std::string_view common = R"(
namespace rooftile::check {

inline void must(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    printf("%s: %s\n", what, cudaGetErrorString(error));
    exit(2);
}

__host__ __device__ inline unsigned long long mixed(unsigned long long x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}
/// From -1 to 1, by its index and the tensor's number.
__device__ inline float uniform(unsigned long long i, int tensor) {
    return int(mixed(i * 8 + unsigned(tensor) + 0x9e3779b97f4a7c15ull) >> 40) * 0x1p-23f - 1;
}
template <class T>
__device__ double number(const T* p, long long i) {
    return double(float(p[i]));
}
__device__ inline double number(const long long* p, long long i) { return double(p[i]); }
/// A warp has one element to tell of: a long loop may be shared by its lanes.
__device__ inline int lane() { return threadIdx.x % 32; }
__device__ inline double warp_sum(double x) {
    for (int away = 16; away > 0; away /= 2) x += __shfl_xor_sync(0xffffffffu, x, away);
    return x;
}

)";

/// As judge() wants it; of 8 bits nothing: rounding of those is told by their bits.
std::string element_of(const TensorInfo& t) {
    if (t.type == "boolean" || t.type == "bool") return "Element::boolean";
    return t.type == "int64" || t.type == "fp16" || t.type == "bf16" ? "Element::" + t.type : "Element::fp32";
}

}  // namespace

CheckText check_text(const Plan& plan, const std::vector<Parameter>& parameters, std::size_t workspace_bytes) {
    const auto loop = on_device(*plan.operation).plain_loop(plan.problem);
    CheckText out_text;
    out_text.compares = loop.has_value();
    if (loop) out_text.headers.insert(out_text.headers.end(), loop->headers.begin(), loop->headers.end());
    const auto tensors = plan.operation->tensors(plan.problem);
    std::string out(common);
    std::string members, fills, list, sizes;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const TensorInfo& t = tensors[i];
        const std::string type = type_of(t), &name = parameters[i].name;
        members += fmt::format("    {}* {};\n", type, name);
        list += (list.empty() ? "t." : ", t.") + name;
        const std::int64_t elements = spanned_elements(t);
        sizes += fmt::format("    must(cudaMalloc(&t.{0}, {1}ull * sizeof(*t.{0}) + 256), \"memory for {0}\");\n", name, elements);
        if (t.role == TensorRole::out) continue;
        const auto filled = loop ? loop->filled.find(t.name) : std::map<std::string, std::string>::const_iterator();
        const std::string own = on_device(*plan.operation).filled_with(plan.problem, t);
        const std::string value = !own.empty() ? own
                                  : loop && filled != loop->filled.end()        ? filled->second
                                  : type == "bool" || type == "unsigned char" ? fmt::format("uniform(i, {}) < 0", i)
                                  : type == "int" || type == "long long"      ? "0"
                                                                              : fmt::format("uniform(i, {})", i);
        fills += fmt::format("    for (long long i = first; i < {}; i += step) t.{} [i] = static_cast<{}>({});\n", elements, name, type, value);
    }
    std::erase(fills, '\r');
    for (std::size_t at = fills.find(" [i]"); at != std::string::npos; at = fills.find(" [i]")) fills.erase(at, 1);
    const bool remembers = loop && !loop->members.empty();
    if (remembers)
        out +=
            "/// The last element that a reduction was asked for.\nstruct Remembered {\n    long long behind;\n    Bounded value;\n};\n";
    out += fmt::format("struct Tensors {{\n{}{}}};\n\n{}\n", members, remembers ? loop->members : "", loop ? loop->text : "");
    out += fmt::format(
        "__global__ void fill(Tensors t) {{\n    const long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x, step = "
        "gridDim.x * (long long)blockDim.x;\n{}}}\n\n",
        fills);
    std::string checks;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const TensorInfo& t = tensors[i];
        if (t.role != TensorRole::out || !loop) continue;
        std::int64_t elements = 1;
        std::string place, rest = "e";
        for (std::size_t a = t.extents.size(); a-- > 0;) {
            const std::int64_t extent = t.extents[a].most;
            elements *= extent;
            place = fmt::format("{}{}{}", a == 0 ? rest : fmt::format("{} % {}", rest, extent),
                                t.strides[a] == 1 ? "" : fmt::format(" * {}", t.strides[a]), place.empty() ? "" : " + " + place);
            rest = fmt::format("{} / {}", rest, extent);
        }
        if (place.empty()) place = "0";
        const auto samples = std::int64_t(std::clamp(0x1p33 / std::max(1.0, loop->steps), 64.0, 65536.0));
        out += fmt::format(R"(/// Draws elements of {0} and counts those that are off; the greatest error, as a share of what is allowed.
__global__ void compare_{0}(Tensors t, int samples, unsigned* wrong, unsigned* greatest) {{
    const int s = int(blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (s >= samples) return;
    const long long e = samples == {1} ? s : (long long)(mixed(s) % {1}ull);
    const Bounded expected = expected_{0}(t, e);
    const double got = number(t.{0}, {2});
    const double share = {3};
    if (lane() != 0) return;
    if (!(share <= 1)) atomicAdd(wrong, 1u);
    atomicMax(greatest, unsigned(fmin(share == share ? share : 1e6, 1e6) * 1000));
}}

)",
                           parameters[i].name, elements, place,
                           t.type == "fp8_e4m3" || t.type == "fp8_e5m2"
                               ? fmt::format("fabs(got - expected.value) / (expected.error + {} * fabs(expected.value) + 0x1p-9)",
                                             t.type == "fp8_e4m3" ? "0x1p-4" : "0x1p-3")
                               : fmt::format("judge(got, expected, {}).ratio", element_of(t)));
        checks += fmt::format(R"(    {{
        const int samples = {1};
        cudaMemset(counts, 0, 8);
        rooftile::check::compare_{0}<<<(samples + 1) / 2, 64>>>(t, samples, counts, counts + 1);
        unsigned host[2];
        must(cudaMemcpy(host, counts, 8, cudaMemcpyDeviceToHost), "the plain loop of {0}");
        printf("{0}: %u of %d elements wrong, greatest error %.3f of what is allowed\n", host[0], samples, host[1] / 1000.0);
        wrong += host[0];
    }}
)",
                              parameters[i].name, std::min(samples, elements));
    }
    out += "}  // namespace rooftile::check\n\n";
    const std::string work = workspace_bytes > 0 ? ", workspace" : "";
    out += "int main() {\n    using rooftile::check::must;\n    rooftile::check::Tensors t{};\n" + sizes;
    if (workspace_bytes > 0)
        out += fmt::format(
            "    void* workspace = nullptr;\n    must(cudaMalloc(&workspace, {0}), \"the workspace\");\n    must(cudaMemset(workspace, "
            "0, {0}), \"the workspace\");\n",
            workspace_bytes);
    out += fmt::format(
        R"(    rooftile::check::fill<<<1024, 256>>>(t);
    cudaStream_t stream;
    must(cudaStreamCreate(&stream), "a stream");
    must(cudaDeviceSynchronize(), "random data");
    must(rooftile::launch({0}{1}, stream), "launch");
    must(cudaStreamSynchronize(stream), "the kernel");
    unsigned *counts, wrong = 0;
    must(cudaMalloc(&counts, 8), "memory");
{2}
    // Launches as one graph, so that the host's time is not the kernel's.
    constexpr int launches = 20;
    cudaGraph_t graph;
    cudaGraphExec_t run;
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    for (int i = 0; i < launches; ++i) must(rooftile::launch({0}{1}, stream), "launch");
    must(cudaStreamEndCapture(stream, &graph), "capture");
    must(cudaGraphInstantiate(&run, graph, 0), "graph");
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    float best = 1e30f;
    for (int i = 0; i < 10; ++i) {{
        cudaEventRecord(begin, stream);
        cudaGraphLaunch(run, stream);
        cudaEventRecord(end, stream);
        must(cudaEventSynchronize(end), "the kernels");
        float ms = 0;
        cudaEventElapsedTime(&ms, begin, end);
        if (ms < best) best = ms;
    }}
    printf("time: %.2f us a launch, best of 10 times %d\n", best * 1000 / launches, launches);
    return wrong ? 1 : 0;
}}
)",
        list, work,
        loop ? checks : std::string("    cudaFree(counts);\n    puts(\"results: not checked, there is no plain loop of this problem\");\n"));
    out_text.text = std::move(out);
    return out_text;
}

}  // namespace rooftile::emit
