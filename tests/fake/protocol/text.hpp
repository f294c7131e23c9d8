// A kernel's text on the CPU, for tests/pipeline/protocol.hpp: record() runs it once for each role, in one thread that stands for a
// warpgroup, and what it does with barriers is written down. Arithmetic is done on whatever is there, and means nothing.
//
// The text is in a namespace of its own, since other tests of this program have other stand-ins of the same functions. So this header
// comes last but for kernels.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "tests/pipeline/protocol.hpp"

namespace rooftile_protocol = rooftile::protocol;
#define rooftile protocol_text
#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__
#define __align__(bytes) __attribute__((aligned(bytes)))

#include "kernels/ptx/tensor_map.hpp"
#include "kernels/types.hpp"

namespace rooftile {

namespace protocol = rooftile_protocol;

struct Index {
    unsigned x = 0, y = 0;
};
inline Index threadIdx, blockIdx, gridDim{1};
alignas(1024) inline unsigned char memory[1 << 18];

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
template <class T>
T __ldcg(const T* from) { return *from; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline void __trap() { std::abort(); }
inline void __syncthreads() {}
inline void __syncwarp() {}
inline void __nanosleep(unsigned) {}
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __logf(float x) { return std::log(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32); }
template <class T>
T __shfl_sync(unsigned, T x, int) { return x; }
template <class T>
T __shfl_up_sync(unsigned, T x, int) { return x; }
template <class T>
T __shfl_xor_sync(unsigned, T x, int) { return x; }
inline bool __any_sync(unsigned, bool) { return false; }
inline unsigned __ballot_sync(unsigned, bool) { return 0; }
inline int __ffs(int x) { return __builtin_ffs(x); }
template <class T>
T __ldg(const T* at) { return *at; }
template <class T>
T min(T a, T b) { return b < a ? b : a; }
template <class T>
T max(T a, T b) { return a < b ? b : a; }

inline unsigned atomicInc(unsigned* counter, unsigned last) {
    const unsigned before = *counter;
    *counter = before >= last ? 0 : before + 1;
    return before;
}

/// What the role that runs has done, and what those before it have told. Addresses of CTA r's shared memory have r + 1 in their upper bits.
struct Recorder {
    struct Told {
        unsigned number, barrier, phase;  ///< heard by whoever has waited for that phase
    };
    struct Late {
        std::size_t behind;  ///< so many steps of the role's first lane that are no arrivals
        protocol::Op op;
    };
    protocol::Recording recording;
    std::map<unsigned, unsigned> copies, announced;          ///< by mbarrier: what comes by itself, and how often it is announced
    std::map<unsigned, std::vector<Told>> told;              ///< by place
    std::vector<std::pair<unsigned, unsigned>> unpublished;  ///< place, and which of its numbers
    std::map<unsigned, unsigned> published;                  ///< by mbarrier: phases that the role's numbers came with
    std::map<unsigned, std::pair<unsigned, int>> waited;     ///< by mbarrier: the last parity, and the phases that are over then
    std::vector<Late> of_other_lanes;
    std::size_t steps = 0;  ///< of this lane, arrivals left out
    unsigned rank = 0, lane = 0;
    bool consumer = false;
    unsigned producer_warps = 1;

    static Recorder& now() {
        static Recorder recorder;
        return recorder;
    }
    unsigned own(unsigned shared) const { return shared >> rank_bits ? shared : of_rank(shared, rank); }
    static unsigned of_rank(unsigned shared, unsigned rank) { return (shared & ((1u << rank_bits) - 1)) | (rank + 1) << rank_bits; }
    unsigned of_named(unsigned id) const { return of_rank(id, rank); }

    void step(protocol::Op op) {
        ++steps;
        if (lane == 0) recording.roles.back().push_back(op);
    }
    /// Of each of a warpgroup's warps, or of a producer's thread.
    unsigned times() const { return consumer ? 4 : producer_warps; }
    void arrive(unsigned barrier, unsigned times) {
        if (lane == 0) recording.roles.back().push_back({protocol::Op::arrive, own(barrier), times});
    }
    /// By a lane for each CTA.
    void arrive_remote(unsigned barrier, unsigned at_rank) {
        const protocol::Op op{protocol::Op::arrive, of_rank(barrier, at_rank), times()};
        if (lane == 0) recording.roles.back().push_back(op);
        else of_other_lanes.push_back({steps, op});
    }
    void expect(unsigned barrier) {
        ++announced[own(barrier)];
        recording.roles.back().push_back({protocol::Op::expect, own(barrier), 0});
    }
    /// By the copy engine, of one thread's asking.
    void copy(unsigned barrier) {
        ++copies[own(barrier)];
        recording.roles.back().push_back({protocol::Op::come, own(barrier), 1});
    }
    void copy_to(unsigned barrier, unsigned ctas) {
        for (unsigned r = 0; ctas >> r != 0; ++r)
            if ((ctas >> r & 1) != 0) copy(of_rank(barrier, r));
    }
    void publish(unsigned barrier) {
        const unsigned phase = published[own(barrier)]++;
        for (const auto& [place, which] : unpublished) told[place][which].barrier = own(barrier), told[place][which].phase = phase;
        unpublished.clear();
    }
    void wait(unsigned barrier, unsigned parity) {
        step({protocol::Op::wait, own(barrier), parity});
        const auto [at, fresh] = waited.try_emplace(own(barrier), parity, parity == 0 ? 1 : 0);
        if (!fresh && at->second.first != parity) at->second = {parity, at->second.second + 1};
    }
    void tell(unsigned place, unsigned number) {
        step({protocol::Op::tell, own(place), number & 0xffff});
        unpublished.emplace_back(own(place), told[own(place)].size());
        told[own(place)].push_back({number, 0, 0});
    }
    unsigned hear(unsigned place) {
        unsigned number = 0;
        for (const Told& t : told[own(place)])
            if (const auto at = waited.find(t.barrier); at != waited.end() && int(t.phase) < at->second.second) number = t.number;
        step({protocol::Op::hear, own(place), number & 0xffff});
        return number;
    }
    /// What other lanes did, between the first one's steps.
    void merge_lanes() {
        std::vector<protocol::Op> merged;
        std::size_t passed = 0;
        const auto late = [&](std::size_t behind) {
            for (const Late& l : of_other_lanes)
                if (l.behind == behind) merged.push_back(l.op);
        };
        for (const protocol::Op& op : recording.roles.back()) {
            if (op.kind != protocol::Op::arrive && op.kind != protocol::Op::expect && op.kind != protocol::Op::come) late(passed++);
            merged.push_back(op);
        }
        late(passed);
        recording.roles.back() = std::move(merged);
        of_other_lanes.clear();
    }
    static constexpr int rank_bits = 20;
};

namespace ptx {

struct WaitLimit {
    void more() const {}
};
inline unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(static_cast<const unsigned char*>(pointer) - memory);
}
inline int warp_uniform(int value) { return value; }
template <class T>
void keep(T&) {}
inline bool elect_one() { return Recorder::now().lane == 0; }
inline unsigned cluster_rank() { return Recorder::now().rank; }
inline void cluster_sync() {}
template <int>
void release_registers() {}
template <int>
void take_registers() {}
inline void launch_dependents() {}
inline void wait_for_dependencies() {}
inline void pause() {}

inline void mbarrier_init(unsigned barrier, unsigned arrivals) { Recorder::now().recording.arrivals[Recorder::now().own(barrier)] = arrivals; }
inline void fence_mbarrier_init() {}
inline void mbarrier_arrive_expect(unsigned barrier, unsigned) {
    Recorder::now().publish(barrier);
    Recorder::now().expect(barrier);
}
inline void mbarrier_arrive(unsigned barrier) {
    Recorder::now().publish(barrier);
    Recorder::now().arrive(barrier, Recorder::now().times());
}
inline void mbarrier_arrive_remote(unsigned barrier, unsigned rank) { Recorder::now().arrive_remote(barrier, rank); }
inline void mbarrier_arrive_remote_release(unsigned barrier, unsigned rank) { Recorder::now().arrive_remote(barrier, rank); }
inline void mbarrier_wait(unsigned barrier, unsigned parity) { Recorder::now().wait(barrier, parity); }
inline void mbarrier_wait_cluster(unsigned barrier, unsigned parity) { mbarrier_wait(barrier, parity); }
inline void named_barrier_sync(int id, int threads) {
    Recorder::now().step({protocol::Op::meet, Recorder::now().of_named(unsigned(id)), unsigned(threads)});
}
inline void named_barrier_arrive(int id, int threads) {
    Recorder::now().step({protocol::Op::pass, Recorder::now().of_named(unsigned(id)), unsigned(threads)});
}
inline bool named_barrier_any(int id, int threads, bool mine) {
    named_barrier_sync(id, threads);
    return mine;
}
inline void store_shared(unsigned shared, unsigned word) { Recorder::now().tell(shared, word); }
inline unsigned load_shared(unsigned shared) { return Recorder::now().hear(shared); }
inline unsigned map_to_rank(unsigned shared, unsigned rank) { return Recorder::of_rank(shared, rank); }
inline void store_cluster_async(unsigned mapped, unsigned word, unsigned barrier) {
    Recorder::now().tell(mapped, word);
    Recorder::now().publish(barrier);
    Recorder::now().copy(barrier);
}

template <class Map, class... Any>
void tma_load_2d(unsigned, const Map&, int, int, unsigned barrier, const Any&...) { Recorder::now().copy(barrier); }
template <class Map, class... Any>
void tma_load_3d(unsigned, const Map&, int, int, int, unsigned barrier, const Any&...) { Recorder::now().copy(barrier); }
template <class Map, class... Any>
void tma_load_4d(unsigned, const Map&, int, int, int, int, unsigned barrier, const Any&...) { Recorder::now().copy(barrier); }
template <class Map, class... Any>
void tma_load_2d_multicast(unsigned, const Map&, int, int, unsigned barrier, unsigned ctas, const Any&...) { Recorder::now().copy_to(barrier, ctas); }
template <class Map, class... Any>
void tma_load_3d_multicast(unsigned, const Map&, int, int, int, unsigned barrier, unsigned ctas, const Any&...) { Recorder::now().copy_to(barrier, ctas); }

// Data, which no protocol depends on.
inline unsigned load_shared_word(unsigned) { return 0; }
inline float load_shared_float(unsigned) { return 0; }
inline unsigned short load_shared_half(unsigned) { return 0; }
inline void store_shared_half(unsigned, unsigned short) {}
inline void store_shared_1(unsigned, float) {}
inline void store_shared_2(unsigned, const float*) {}
inline void store_shared_4(unsigned, const float*) {}
template <int>
void load_cluster(float*, unsigned) {}
template <class... Any>
void tma_store_2d(const Any&...) {}
template <class... Any>
void tma_store_3d(const Any&...) {}
inline void bulk_store(void*, unsigned, unsigned) {}
inline void tma_store_commit() {}
template <int>
void tma_store_wait_read() {}
template <int>
void tma_store_wait() {}
inline void fence_async_proxy() {}
inline void fence_async_proxy_global() {}
template <class... Any>
void store_matrix_x4(const Any&...) {}
template <class... Any>
void store_matrix_x2(const Any&...) {}
template <class... Any>
void store_matrix_x4_transposed(const Any&...) {}
template <class... Any>
void store_matrix_x2_transposed(const Any&...) {}
template <bool, bool, bool, class Map>
void tma_load_pairs(unsigned, const Map&, int, int, int, unsigned barrier, unsigned ctas, unsigned long long) { Recorder::now().copy_to(barrier, ctas); }
inline void wgmma_fence() {}
inline void wgmma_commit() {}
template <int>
void wgmma_wait() {}
inline void wgmma_pin(float&) {}
template <int count>
void wgmma_pin_all(float (&)[count]) {}
inline unsigned long long matrix_descriptor(unsigned, unsigned, unsigned) { return 0; }
template <int, auto..., class... Any>
void wgmma(float*, const Any&...) {}
template <int, auto..., class... Any>
void wgmma_registers(float*, const Any&...) {}
inline unsigned count_arrival(unsigned*, unsigned) { return 0; }
inline void count_release(unsigned*) {}
inline unsigned load_acquire(const unsigned*) { return ~0u; }
inline unsigned load_constant(const unsigned*) { return 0; }
inline void prefetch_l2(const void*) {}
template <auto>
float widen(unsigned) { return 0; }
template <auto>
float widen_upper(unsigned) { return 0; }
template <auto>
float widen_lower(unsigned, unsigned) { return 0; }
template <auto>
unsigned short narrow(float) { return 0; }
template <auto>
unsigned pack2(float, float) { return 0; }
inline float exp2_approx(float) { return 1; }
inline float reciprocal_approx(float) { return 1; }
inline float rsqrt_approx(float) { return 1; }
inline float sqrt_approx(float) { return 1; }
inline float tanh_approx(float) { return 0; }
inline float divide_full(float, float) { return 1; }
inline float product(float x, float y) { return x * y; }
inline float difference(float x, float y) { return x - y; }
inline float product_within_1(float, float) { return 1; }
inline float max_nan(float x, float y) { return x > y ? x : y; }
inline float min_nan(float x, float y) { return x < y ? x : y; }

}  // namespace ptx

/// What `ctas` CTAs of a cluster do, of 1 + `consumers` warpgroups each; `kernel` calls the kernel. Producers come first: they tell.
/// `producer_warps`: that fill a stage themselves, and say so each.
inline protocol::Recording record(int consumers, const std::function<void()>& kernel, unsigned ctas = 1, unsigned producer_warps = 1) {
    Recorder& recorder = Recorder::now();
    recorder = {};
    recorder.producer_warps = producer_warps;
    gridDim.x = ctas;
    for (int role = 0; role <= consumers; ++role)
        for (unsigned rank = 0; rank < ctas; ++rank) {
            recorder.recording.roles.emplace_back();
            recorder.published.clear();
            recorder.consumer = role > 0;
            recorder.rank = blockIdx.x = rank;
            for (unsigned lane = 0; lane < (role > 0 ? ctas : 1); ++lane) {
                recorder.lane = lane, recorder.steps = 0;
                recorder.waited.clear();
                threadIdx.x = 128 * unsigned(role) + lane;
                kernel();
            }
            recorder.merge_lanes();
        }
    // As many copies each time, since stages are alike.
    for (auto& role : recorder.recording.roles)
        for (protocol::Op& op : role)
            if (op.kind == protocol::Op::expect) op.value = recorder.copies[op.at] / recorder.announced[op.at];
    return recorder.recording;
}

}  // namespace rooftile
