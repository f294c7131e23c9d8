// A kernel's text on the CPU as a GPU runs it, for kernels without clusters: every thread of a CTA is a fiber, which runs until it
// meets others; what a warp does together is done when all of it is there. Copies of cp.async, of TMA and of the bulk engine arrive as late
// as they may: when somebody waits for them. run_cta_on_cpu() runs one CTA.
//
// The text is in a namespace of its own, since other tests of this program have other stand-ins of the same functions. So this header
// comes last but for kernels.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#define rooftile cta_text
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

struct Index {
    unsigned x = 0, y = 0, z = 0;
};
inline Index threadIdx, blockIdx, gridDim, blockDim;
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
template <class T>
T __ldcg(const T* from) {
    return *from;
}
using std::fmaf;
using std::max;
using std::min;
alignas(1024) inline unsigned char memory[1 << 18];

/// What reads global memory is told here: address and bytes. The second, what asks for some before the wait for the kernel in front.
inline std::function<void(const void*, std::size_t)> on_global_read, on_early_read;

class Fibers {
  public:
    struct Meeting {
        unsigned arrived = 0, turn = 0;
        bool any = false, any_of_last = false;
    };
    struct Copy {
        unsigned to;
        const void* from;
        int bytes, taken;
    };
    /// What is done in groups, as late as it may be: when somebody waits.
    struct Later {
        std::vector<std::function<void()>> begun;
        std::deque<std::vector<std::function<void()>>> groups;
        void commit() { groups.push_back(std::move(begun)), begun.clear(); }
        void wait(std::size_t pending) {
            for (; groups.size() > pending; groups.pop_front())
                for (const auto& each : groups.front()) each();
        }
    };
    struct Thread {
        ucontext_t context{};
        std::unique_ptr<char[]> stack;
        bool over = false;
        std::vector<Copy> copies;              // not yet of a group
        std::deque<std::vector<Copy>> groups;  // not yet arrived
        Later stores, products;                // bulk copies to global memory; wgmma
        bool waited = false;                   // for the kernel in front
    };

    static Fibers& now() {
        static Fibers fibers;
        return fibers;
    }
    void run(unsigned threads, const std::function<void()>& body) {
        body_ = body;
        threads_ = std::vector<Thread>(threads);
        warps_.assign(threads / 32, {});
        all_ = {};
        std::ranges::fill(named_, Meeting{});
        constexpr std::size_t stack_bytes = 1 << 16;
        for (Thread& t : threads_) {
            t.stack = std::make_unique<char[]>(stack_bytes);
            getcontext(&t.context);
            t.context.uc_stack.ss_sp = t.stack.get();
            t.context.uc_stack.ss_size = stack_bytes;
            t.context.uc_link = &main_;
            makecontext(&t.context, &Fibers::begin, 0);
        }
        for (bool left = true; left;) {
            left = false;
            for (unsigned i = 0; i < threads; ++i) {
                if (threads_[i].over) continue;
                left = true;
                threadIdx.x = i;
                swapcontext(&main_, &threads_[i].context);
            }
        }
    }
    Thread& thread() { return threads_[threadIdx.x]; }
    Meeting& warp() { return warps_[threadIdx.x / 32]; }
    Meeting& all() { return all_; }
    Meeting& named(int barrier) { return named_[barrier]; }
    unsigned count() const { return unsigned(threads_.size()); }
    void leave() { swapcontext(&thread().context, &main_); }
    /// Returns when `threads` have come; whether any of them said so.
    bool meet(Meeting& at, unsigned threads, bool mine = false) {
        at.any |= mine;
        const unsigned turn = at.turn;
        arrive(at, threads);
        while (at.turn == turn) swapcontext(&thread().context, &main_);
        return at.any_of_last;
    }
    /// Counts this thread, which does not wait.
    void arrive(Meeting& at, unsigned threads) {
        if (++at.arrived != threads) return;
        at.any_of_last = at.any;
        at.arrived = 0, at.any = false, ++at.turn;
    }

  private:
    static void begin() {
        now().body_();
        now().thread().over = true;
    }
    ucontext_t main_{};
    std::function<void()> body_;
    std::vector<Thread> threads_;
    std::vector<Meeting> warps_;
    Meeting all_, named_[16];
};

/// Values of a warp, for as long as all of its lanes read them.
inline unsigned __shfl_sync(unsigned, unsigned value, int from) {
    static unsigned exchanged[32][32];
    unsigned(&of_warp)[32] = exchanged[threadIdx.x / 32];
    of_warp[threadIdx.x % 32] = value;
    Fibers& fibers = Fibers::now();
    fibers.meet(fibers.warp(), 32);
    const unsigned got = of_warp[from];
    fibers.meet(fibers.warp(), 32);
    return got;
}
inline bool __any_sync(unsigned, bool mine) { return Fibers::now().meet(Fibers::now().warp(), 32, mine); }
inline unsigned __shfl_xor_sync(unsigned mask, unsigned value, int away) { return __shfl_sync(mask, value, int(threadIdx.x % 32) ^ away); }

/// Barriers in shared memory, and what copies bring there when somebody waits.
struct Barrier {
    std::uint16_t expected, pending;
    std::int32_t bytes : 31;
    unsigned phase : 1;
    void turn() {
        if (pending == 0 && bytes == 0) phase ^= 1, pending = expected;
    }
};
static_assert(sizeof(Barrier) == 8);
struct Arriving {
    unsigned barrier, bytes;
    std::function<void()> copy;
};
inline std::deque<Arriving> arriving;

template <class Kernel, class... Arguments>
void run_cta_on_cpu(unsigned block, unsigned threads, Kernel kernel, const Arguments&... arguments) {
    blockIdx.x = block;
    std::memset(memory, 0xff, sizeof memory);  // NaN, whatever is read of it before somebody writes
    arriving.clear();
    Fibers::now().run(threads, [&] { kernel(arguments...); });
}

inline void __syncwarp() { Fibers::now().meet(Fibers::now().warp(), 32); }
inline void __syncthreads() { Fibers::now().meet(Fibers::now().all(), Fibers::now().count()); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned select) {
    const std::uint64_t all = std::uint64_t{high} << 32 | low;
    unsigned out = 0;
    for (int i = 0; i < 4; ++i) out |= unsigned(all >> (select >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return out;
}

namespace ptx {

inline unsigned shared_address(const void* pointer) { return unsigned(static_cast<const unsigned char*>(pointer) - memory); }
inline int warp_uniform(int value) { return value; }
inline void launch_dependents() {}
inline void wait_for_dependencies() { Fibers::now().thread().waited = true; }
inline void named_barrier_sync(int barrier, int threads) { Fibers::now().meet(Fibers::now().named(barrier), unsigned(threads)); }
inline void named_barrier_arrive(int barrier, int threads) { Fibers::now().arrive(Fibers::now().named(barrier), unsigned(threads)); }
inline bool named_barrier_any(int barrier, int threads, bool mine) {
    return Fibers::now().meet(Fibers::now().named(barrier), unsigned(threads), mine);
}
template <int registers>
void take_registers() {}
template <int registers>
void release_registers() {}
inline unsigned count_arrival(unsigned* counter, unsigned last) {
    const unsigned before = *counter;
    *counter = before >= last ? 0 : before + 1;
    return before;
}

template <class T>
T& shared_at(unsigned address) {
    if (address % sizeof(T) != 0 || address + sizeof(T) > sizeof memory) std::abort();
    return *reinterpret_cast<T*>(memory + address);
}
inline unsigned load_constant(const unsigned* global) { return *global; }
inline void prefetch_l2(const void*) {}
inline unsigned load_shared_word(unsigned shared) { return shared_at<unsigned>(shared); }
inline unsigned load_shared(unsigned shared) { return shared_at<unsigned>(shared); }
inline unsigned short load_shared_half(unsigned shared) { return shared_at<unsigned short>(shared); }
inline void store_shared_1(unsigned shared, float x) { shared_at<float>(shared) = x; }
inline void store_shared_4(unsigned shared, const float* x) { shared_at<float4>(shared) = {x[0], x[1], x[2], x[3]}; }
inline void store_shared_half(unsigned shared, unsigned short half) { shared_at<unsigned short>(shared) = half; }
inline void store_element(unsigned shared, unsigned short value) { shared_at<unsigned short>(shared) = value; }

template <int bytes>
void copy_async_filled(unsigned shared, const void* global, int source_bytes) {
    if (shared % bytes != 0 || (source_bytes > 0 && reinterpret_cast<std::uintptr_t>(global) % bytes != 0)) std::abort();
    Fibers::Thread& t = Fibers::now().thread();
    if (!t.waited && source_bytes > 0 && on_early_read) on_early_read(global, std::size_t(source_bytes));
    t.copies.push_back({shared, global, bytes, source_bytes});
}
inline void copy_async_commit() {
    Fibers::Thread& t = Fibers::now().thread();
    t.groups.push_back(std::move(t.copies));
    t.copies.clear();
}
template <int pending>
void copy_async_wait() {
    for (auto& groups = Fibers::now().thread().groups; groups.size() > pending; groups.pop_front())
        for (const Fibers::Copy& c : groups.front()) {
            std::memset(memory + c.to, 0, std::size_t(c.bytes));
            if (c.taken == 0) continue;
            on_global_read(c.from, std::size_t(c.taken));
            std::memcpy(memory + c.to, c.from, std::size_t(c.taken));
        }
}

inline unsigned warp_addresses[32][32];
inline void load_matrix_x4(unsigned (&to)[4], unsigned shared) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    warp_addresses[warp][lane] = shared;
    Fibers::now().meet(Fibers::now().warp(), 32);
    for (unsigned i = 0; i < 4; ++i) to[i] = shared_at<unsigned>(warp_addresses[warp][8 * i + lane / 4] + lane % 4 * 4);
    Fibers::now().meet(Fibers::now().warp(), 32);
}

inline void load_matrix_x4_transposed(unsigned (&to)[4], unsigned shared) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    warp_addresses[warp][lane] = shared;
    Fibers::now().meet(Fibers::now().warp(), 32);
    for (unsigned i = 0; i < 4; ++i) {
        const auto element = [&](unsigned row) {
            return unsigned(shared_at<unsigned short>(warp_addresses[warp][8 * i + row] + lane / 4 * 2));
        };
        to[i] = element(lane % 4 * 2) | element(lane % 4 * 2 + 1) << 16;
    }
    Fibers::now().meet(Fibers::now().warp(), 32);
}

inline void mbarrier_init(unsigned barrier, unsigned arrivals) {
    shared_at<Barrier>(barrier) = {static_cast<std::uint16_t>(arrivals), static_cast<std::uint16_t>(arrivals), 0, 0};
}
inline void fence_mbarrier_init() {}
inline void mbarrier_arrive(unsigned barrier) {
    Barrier& at = shared_at<Barrier>(barrier);
    if (at.pending == 0) std::abort();
    --at.pending, at.turn();
}
inline void mbarrier_arrive_expect(unsigned barrier, unsigned bytes) {
    shared_at<Barrier>(barrier).bytes += int(bytes);
    mbarrier_arrive(barrier);
}
inline void mbarrier_wait(unsigned barrier, unsigned parity) {
    while (shared_at<Barrier>(barrier).phase == parity) {
        const auto next = std::find_if(arriving.begin(), arriving.end(), [barrier](const Arriving& a) { return a.barrier == barrier; });
        if (next == arriving.end()) {
            Fibers::now().leave();
            continue;
        }
        next->copy();
        Barrier& at = shared_at<Barrier>(barrier);
        at.bytes -= int(next->bytes), at.turn();
        arriving.erase(next);
    }
}
inline void mbarrier_arrive_remote(unsigned, unsigned) { std::abort(); }
inline void mbarrier_arrive_remote_release(unsigned, unsigned) { std::abort(); }

template <CachePolicy policy>
void bulk_load(unsigned shared, const void* global, unsigned bytes, unsigned barrier) {
    if (shared % 16 != 0 || reinterpret_cast<std::uintptr_t>(global) % 16 != 0 || bytes % 16 != 0 || shared + bytes > sizeof memory)
        std::abort();
    if (!Fibers::now().thread().waited && on_early_read) on_early_read(global, bytes);
    arriving.push_back({barrier, bytes, [=] { on_global_read(global, bytes), std::memcpy(memory + shared, global, bytes); }});
}

inline void bulk_store(void* global, unsigned shared, unsigned bytes) {
    if (shared % 16 != 0 || reinterpret_cast<std::uintptr_t>(global) % 16 != 0 || bytes % 16 != 0 || shared + bytes > sizeof memory) std::abort();
    Fibers::now().thread().stores.begun.push_back([=] { std::memcpy(global, memory + shared, bytes); });
}
inline void tma_store_commit() { Fibers::now().thread().stores.commit(); }
template <int pending>
void tma_store_wait_read() {
    Fibers::now().thread().stores.wait(pending);
}
inline void fence_async_proxy() {}

/// What a TensorMap is here: elements of 16 bits, extents and steps of up to four axes, a box, rows of 128 B swizzled.
struct FakeMap {
    const unsigned short* base;
    int extents[4], box[4];
    long long steps[4];  ///< elements
};
inline TensorMap fake_map(const FakeMap& map) {
    static_assert(sizeof(FakeMap) <= sizeof(TensorMap));
    TensorMap out{};
    std::memcpy(&out, &map, sizeof map);
    return out;
}
inline void tma_load_4d(unsigned shared, const TensorMap& encoded, int x, int y, int z, int w, unsigned barrier) {
    FakeMap map{};
    std::memcpy(&map, &encoded, sizeof map);
    if (shared % 1024 != 0 || map.box[0] * 2 != 128) std::abort();
    if (!Fibers::now().thread().waited && on_early_read) on_early_read(map.base, 2);
    const int lines = map.box[1] * map.box[2] * map.box[3];
    arriving.push_back({barrier, unsigned(lines * 128), [=] {
                            for (int line = 0; line < lines; ++line)
                                for (int i = 0; i < map.box[0]; ++i) {
                                    const int at[4] = {x + i, y + line % map.box[1], z + line / map.box[1] % map.box[2],
                                                       w + line / map.box[1] / map.box[2]};
                                    unsigned short value = 0;
                                    bool inside = true;
                                    long long offset = 0;
                                    for (int axis = 0; axis < 4; ++axis) {
                                        inside = inside && at[axis] < map.extents[axis];
                                        offset += at[axis] * map.steps[axis];
                                    }
                                    if (inside) on_global_read(map.base + offset, 2), value = map.base[offset];
                                    const unsigned to = shared + unsigned(line) * 128;
                                    shared_at<unsigned short>(to + ((unsigned(i) / 8 ^ to / 128 % 8) * 8 + unsigned(i) % 8) * 2) = value;
                                }
                        }});
}
inline void tma_load_2d(unsigned shared, const TensorMap& map, int x, int y, unsigned barrier) {
    tma_load_4d(shared, map, x, y, 0, 0, barrier);
}

inline bool elect_one() { return threadIdx.x % 32 == 0; }
inline void keep(unsigned&) {}
inline void keep(long long&) {}
inline unsigned load_shared_byte(unsigned shared) { return shared_at<unsigned char>(shared); }
inline void load_shared_words(unsigned (&to)[4], unsigned shared) {
    const uint4 words = shared_at<uint4>(shared);
    to[0] = words.x, to[1] = words.y, to[2] = words.z, to[3] = words.w;
}
inline float load_shared_float(unsigned shared) { return shared_at<float>(shared); }
inline float number_of(Type type, unsigned short bits) {
    if (type == Type::bf16) return std::bit_cast<float>(unsigned(bits) << 16);
    _Float16 half;
    std::memcpy(&half, &bits, 2);
    return float(half);
}
inline unsigned mma_operands[32][32][6];
/// Sums in the order of k.
template <Type type>
void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned(&own)[32][6] = mma_operands[warp];
    for (int i = 0; i < 4; ++i) own[lane][i] = a[i];
    own[lane][4] = b0, own[lane][5] = b1;
    Fibers::now().meet(Fibers::now().warp(), 32);
    const auto element = [&](unsigned row, unsigned word, unsigned k) {  // of 8 x 8 of that word
        return number_of(type, static_cast<unsigned short>(own[row * 4 + k / 2][word] >> k % 2 * 16));
    };
    for (unsigned e = 0; e < 4; ++e)
        for (unsigned k = 0; k < 16; ++k)
            d[e] += element(lane / 4, e / 2 + k / 8 * 2, k % 8) * element(lane % 4 * 2 + e % 2, 4 + k / 8, k % 8);
    Fibers::now().meet(Fibers::now().warp(), 32);
}

// wgmma with its first operand in registers multiplies as late as it may: when somebody waits for it. So registers and shared memory that
// change before are seen changed.
inline void wgmma_fence() {}
inline void wgmma_commit() { Fibers::now().thread().products.commit(); }
template <int pending>
void wgmma_wait() {
    Fibers::now().thread().products.wait(pending);
}
inline void wgmma_pin(float&) {}
template <int count>
void wgmma_pin_all(float (&)[count]) {}
/// The tile's address, in 16 B, and how far apart columns of 64 elements are: rows of 128 B, swizzled, groups of eight 1024 B apart.
inline unsigned long long matrix_descriptor(unsigned shared, unsigned leading_bytes, unsigned stride_bytes) {
    if (stride_bytes != 1024 || shared % 16 != 0) std::abort();
    return std::uint64_t{leading_bytes} << 32 | shared / 16;
}
/// Element `i` of row `line`, which is a row of 64 elements that the next row follows by 128 B.
template <Type type>
float swizzled_number(unsigned tile, unsigned line, unsigned i) {
    const unsigned at = tile + line * 128 + i * 2;
    return number_of(type, shared_at<unsigned short>(at ^ (at >> 7 & 7) << 4));
}
/// Of both operands in shared memory, the first one's rows along k. Each warp has its 16 rows.
template <int n, Type type, Type b_type, Major a_major, Major b_major>
void wgmma(float* d, unsigned long long a, unsigned long long b, int scale_d) {
    static_assert(a_major == Major::k && type == b_type && n % 8 == 0);
    Fibers::now().thread().products.begun.push_back([=] {
        const unsigned lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane / 4;
        const auto first = unsigned(a) * 16, second = unsigned(b) * 16, leading = unsigned(b >> 32);
        float rows[2][16];
        for (unsigned k = 0; k < 16; ++k)
            for (unsigned half = 0; half < 2; ++half) rows[half][k] = swizzled_number<type>(first, row + 8 * half, k);
        for (unsigned i = 0; i < n / 2; ++i) {
            const unsigned column = i / 4 * 8 + lane % 4 * 2 + i % 2;
            float sum = scale_d ? d[i] : 0;
            for (unsigned k = 0; k < 16; ++k)
                sum += rows[i / 2 % 2][k]
                       * (b_major == Major::k ? swizzled_number<type>(second, column, k) : swizzled_number<type>(second + column / 64 * leading, k, column % 64));
            d[i] = sum;
        }
    });
}
inline unsigned wgmma_operands[32][32][4];
template <int n, Type type, Major b_major>
void wgmma_registers(float* d, const unsigned* a, unsigned long long descriptor, int scale_d) {
    static_assert(b_major == Major::k && n % 32 == 0);
    Fibers::now().thread().products.begun.push_back([=] {
        const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        std::copy(a, a + 4, wgmma_operands[warp][lane]);
        Fibers::now().meet(Fibers::now().warp(), 32);
        const auto first = [&](unsigned row, unsigned k) {
            const unsigned word = wgmma_operands[warp][row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2];
            return number_of(type, static_cast<unsigned short>(word >> k % 2 * 16));
        };
        const auto second = [&](unsigned k, unsigned column) {
            const unsigned at = unsigned(descriptor) * 16 + column / 8 * 1024 + column % 8 * 128 + k * 2;
            return number_of(type, shared_at<unsigned short>(at ^ (at >> 7 & 7) << 4));
        };
        for (unsigned i = 0; i < n / 2; ++i) {
            const unsigned row = lane / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
            float sum = scale_d ? d[i] : 0;
            for (unsigned k = 0; k < 16; ++k) sum += first(row, k) * second(k, column);
            d[i] = sum;
        }
        Fibers::now().meet(Fibers::now().warp(), 32);
    });
}

template <int bytes>
struct Words {
    unsigned word[bytes / 4];
};
template <int bytes>
void store_words(void* to, const Words<bytes>& from) {
    if (reinterpret_cast<std::uintptr_t>(to) % bytes != 0) std::abort();
    std::memcpy(to, from.word, bytes);
}
template <int bytes>
void load_in_order(Words<bytes>& to, const void* from) {
    std::memcpy(to.word, from, bytes);
}

template <int bytes>
void load_once(Words<bytes>& to, const void* from) {
    if (reinterpret_cast<std::uintptr_t>(from) % bytes != 0) std::abort();
    if (on_global_read) on_global_read(from, bytes);
    std::memcpy(to.word, from, bytes);
}
template <int bytes>
void load_words(Words<bytes>& to, const void* from) {
    load_once(to, from);
}

inline unsigned short bits_of(Type type, float x) {
    if (type == Type::bf16) {
        const unsigned bits = std::bit_cast<unsigned>(x);
        return static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
    const _Float16 half = _Float16(x);
    unsigned short bits;
    std::memcpy(&bits, &half, 2);
    return bits;
}
template <Type type>
unsigned pack2(float low, float high) {
    return bits_of(type, low) | unsigned(bits_of(type, high)) << 16;
}
template <Type type>
unsigned fma2(unsigned x, unsigned by, unsigned more) {
    const auto half = [](unsigned word, int i) { return number_of(type, static_cast<unsigned short>(word >> 16 * i)); };
    return pack2<type>(std::fma(half(x, 0), half(by, 0), half(more, 0)), std::fma(half(x, 1), half(by, 1), half(more, 1)));
}
template <Type type>
float widened(unsigned short bits) {
    return number_of(type, bits);
}

}  // namespace ptx
}  // namespace rooftile
