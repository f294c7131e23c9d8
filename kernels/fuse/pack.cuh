// Elements of a few to a vector, as they lie in memory and in registers.
#pragma once

#include "kernels/expression/element.cuh"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/matrix_store.cuh"
#include "kernels/ptx/stream.cuh"

namespace rooftile::fuse {

using namespace expression;  // a value's element and functions

constexpr int least(int x, int y) { return x < y ? x : y; }

/// `vector_width` consecutive elements of type T in registers.
template <class T, int vector_width>
struct alignas(least(16, vector_width* static_cast<int>(sizeof(T)))) Pack {
    T element[vector_width];

    /// Two 16-bit numbers a word: one instruction each, where taking them out first would cost another.
    __device__ auto operator[](int k) const {
        if constexpr (sizeof(T) == 2 && vector_width % 2 == 0) {
            const unsigned word = reinterpret_cast<const unsigned*>(this)[k / 2];
            return k % 2 ? ptx::widen_upper<T::type>(word) : ptx::widen<T::type>(word);
        } else {
            return widened(element[k]);
        }
    }
    /// The same of two 16-bit numbers a word; `half_up` is FuseSizes::half_up.
    __device__ float at(int k, unsigned half_up) const {
        const unsigned word = reinterpret_cast<const unsigned*>(this)[k / 2];
        return k % 2 ? ptx::widen_upper<T::type>(word) : ptx::widen_lower<T::type>(word, half_up);
    }
};

/// Stays as it is, in elements: else the compiler widens it once and holds twice the registers until the next
/// pass. No instruction.
template <class T, int vector_width>
__device__ inline void hold(Pack<T, vector_width>& pack) {
    if constexpr (sizeof(pack) % 4 == 0 && sizeof(T) < 4)
#pragma unroll
        for (int i = 0; i < static_cast<int>(sizeof(pack)) / 4; ++i)
            asm volatile("" : "+r"(reinterpret_cast<unsigned*>(&pack)[i]));
}

/// Reads vector number `vector` + `further` of a tensor, in accesses of 16 bytes where the vector has as many. What is
/// constant stands in `further`: then several loads share one address and have their distances in the instruction.
/// `policy`: how long L2 keeps the lines.
template <ptx::LoadPath path, CachePolicy policy, class T, int vector_width>
__device__ inline void load_by(Pack<T, vector_width>& to, const T* tensor, long long vector,
                               unsigned further) {
    const T* from = tensor + vector * vector_width + further * vector_width;
    constexpr int bytes = vector_width * static_cast<int>(sizeof(T));
    constexpr int access = least(16, bytes);
    if constexpr (access < 4) {
#pragma unroll
        for (int k = 0; k < vector_width; ++k) to.element[k] = from[k];
    } else {
        using Words = ptx::Words<access>;
#pragma unroll
        for (int i = 0; i < bytes / access; ++i)
            ptx::load_global<path, policy>(reinterpret_cast<Words*>(&to)[i],
                                           reinterpret_cast<const Words*>(from) + i);
    }
}

/// What passes through once, past L1: faster where most of the traffic is reading (docs/facts.md 47).
template <CachePolicy policy = CachePolicy::normal, class T, int vector_width>
__device__ inline void load(Pack<T, vector_width>& to, const T* tensor, long long vector,
                            unsigned further = 0) {
    load_by<ptx::LoadPath::past_l1, policy>(to, tensor, vector, further);
}

/// The same in the order of the text: what is written first is asked for first. Vectors of fewer than 4 bytes have no
/// order.
template <CachePolicy policy = CachePolicy::normal, class T, int vector_width>
__device__ inline void load_in_order(Pack<T, vector_width>& to, const T* tensor, long long vector,
                                     unsigned further = 0) {
    load_by<ptx::LoadPath::in_order, policy>(to, tensor, vector, further);
}

/// The same through L1: faster where as much is written, and in long passes.
template <CachePolicy policy = CachePolicy::normal, class T, int vector_width>
__device__ inline void load_cached(Pack<T, vector_width>& to, const T* tensor, long long vector,
                                   unsigned further = 0) {
    load_by<ptx::LoadPath::l1, policy>(to, tensor, vector, further);
}

/// Reads what other rows read too: through L1.
template <class T, int vector_width>
__device__ inline void load_again(Pack<T, vector_width>& to, const T* tensor, long long vector,
                                  unsigned further = 0) {
    to = reinterpret_cast<const Pack<T, vector_width>*>(tensor + vector * vector_width)[further];
}

/// The same in the order of the text, among such loads. So no pass begins before all that a thread holds is on its way:
/// left to itself the compiler moves loads behind a reduction, to save registers, and every row waits for them. Vectors
/// of fewer than 4 bytes have no order.
template <CachePolicy policy = CachePolicy::normal, class T, int vector_width>
__device__ inline void load_cached_in_order(Pack<T, vector_width>& to, const T* tensor, long long vector,
                                            unsigned further = 0) {
    load_by<ptx::LoadPath::l1_in_order, policy>(to, tensor, vector, further);
}

template <class T, int vector_width>
__device__ inline void store(T* tensor, long long vector, const Pack<T, vector_width>& from,
                             unsigned further = 0) {
    T* to = tensor + vector * vector_width + further * vector_width;
    constexpr int bytes = vector_width * static_cast<int>(sizeof(T));
    constexpr int access = least(16, bytes);
    if constexpr (access < 4) {
#pragma unroll
        for (int k = 0; k < vector_width; ++k) to[k] = from.element[k];
    } else {
        using Words = ptx::Words<access>;
#pragma unroll
        for (int i = 0; i < bytes / access; ++i)
            ptx::store_words(reinterpret_cast<Words*>(to) + i, reinterpret_cast<const Words*>(&from)[i]);
    }
}

/// Values as a vector of T, two 16-bit numbers an instruction.
template <class T, class Value, int vector_width>
__device__ inline Pack<T, vector_width> packed(const Value (&values)[vector_width]) {
    Pack<T, vector_width> pack;
    if constexpr (sizeof(T) == 2 && vector_width % 2 == 0) {
#pragma unroll
        for (int k = 0; k < vector_width; k += 2)
            reinterpret_cast<unsigned*>(&pack)[k / 2] = ptx::pack2<T::type>(values[k], values[k + 1]);
    } else {
#pragma unroll
        for (int k = 0; k < vector_width; ++k) pack.element[k] = narrowed<T>(values[k]);
    }
    return pack;
}

}  // namespace rooftile::fuse
