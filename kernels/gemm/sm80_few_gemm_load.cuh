// The copies of sm80_few_gemm: blocks of A and B into the ring, by all threads, some stages ahead of the products.
//
// A line is copied from the multiple of 16 B at or before its first element on, so that every copy is one of 16 B, whatever
// the leading dimension and the base are. Its last copy takes the line's own bytes alone. Its first would take what is before the line,
// where it does not begin at such a multiple: along K that chunk's own elements pass through registers, so that beside a line's elements
// there are zeros. Along N what is before a line makes sums of columns that nobody stores; only before the matrix nothing is read.
//
// A comes by registers, an element at a time: few of them, which so are in shared memory as if each row began at 16 B, whatever its major,
// leading dimension and base are.
#pragma once

#include "kernels/gemm/sm80_few_gemm_arguments.hpp"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/cp_async.cuh"

namespace rooftile {

/// `line` is the address of its first element.
__device__ inline int few_shift_of(const unsigned short* line) { return few_shift(reinterpret_cast<unsigned long long>(line)); }

/// The first chunk of a line of `count` elements that begins amid it: zeros, then elements.
__device__ inline void copy_head(unsigned to, const unsigned short* line, int shift, int count) {
    constexpr int elements = Sm80FewConfig::chunk_elements;
    unsigned short value[elements];
#pragma unroll
    for (int e = 0; e < elements; ++e) value[e] = e >= shift && e - shift < count ? line[e - shift] : 0;
#pragma unroll
    for (int e = 0; e < elements; ++e) ptx::store_element(to + e * Sm80FewConfig::element_bytes, value[e]);
}

/// All threads' copies of one tile's blocks.
template <Sm80FewConfig C>
struct FewLoader {
    const unsigned short *a, *b;  // first row of A; of B the tile's first line along K, or the matrix
    long long lda, ldb;
    int rows, column, columns, k;  // of A; the tile's first of C, and those from there on; of K

    static constexpr int across = C.line_chunks(), down = C.threads() / across;  // threads on a line of B, lines at a time
    static_assert(C.threads() % across == 0 && down % C.shifts == 0 && C.lines() % down == 0,
                  "all lines of B that a thread copies begin alike");

    __device__ const unsigned short* b_line(long long line) const { return b + line * ldb; }

    static __device__ int first_line() { return threadIdx.x / across; }  ///< of B in a block, that this thread copies
    static __device__ int chunk() { return threadIdx.x % across; }       ///< of each of its lines in a block
    /// Where this thread's copies of a block of B begin, and how far on those of the next one do.
    __device__ const unsigned short* b_chunk(int block) const {
        constexpr bool along_k = C.along_k();
        const unsigned short* line = b_line((along_k ? 0 : static_cast<long long>(block) * C.tile_k) + first_line());
        return line - few_shift_of(line) + ((along_k ? static_cast<long long>(block) * across : column / C.chunk_elements) + chunk()) * C.chunk_elements;
    }
    __device__ long long b_step() const { return C.along_k() ? C.tile_k : C.tile_k * ldb; }
    /// Whether a block of B has all its lines, and all that is copied of them is theirs.
    __device__ bool is_whole(int block) const {
        const bool inside = (block + 1ll) * C.tile_k <= k;
        return block > 0 && inside && columns >= (C.along_k() ? C.lines() : C.copied_n());
    }

    /// Begins to copy block `block` of K of B to its part of a stage, at `shared`, but for heads; `from` is b_chunk(block).
    __device__ void copy_b(unsigned shared, int block, const unsigned short* from) const {
        constexpr bool along_k = C.along_k();
        constexpr int copies = C.lines() / down, twists = C.bank_chunks * C.shifts / down;  // lines so far apart lie alike
        const long long step = down * ldb;
        const auto to = [&](int i) { return shared + few_b_place(C, first_line() + i % twists * down, chunk()) + i / twists * (twists * down * across * C.chunk_bytes); };
        if (is_whole(block)) {
#pragma unroll
            for (int i = 0; i < copies; ++i, from += step) ptx::copy_async_filled<C.chunk_bytes>(to(i), from, C.chunk_bytes);
            return;
        }
        const int first = first_line();
        const long long begin = along_k ? 0 : static_cast<long long>(block) * C.tile_k;  // the block's first line
        const int shift = few_shift_of(b_line(begin + first));
        const long long at = (along_k ? static_cast<long long>(block) * across : column / C.chunk_elements) + chunk();  // in the line
        const int bytes = few_copy_bytes(along_k ? k : static_cast<long long>(column) + columns, shift, at);
        const bool head = at == 0 && shift > 0;
        if (along_k && head) return;
        const long long left = (along_k ? columns : k) - begin - first;  // lines
#pragma unroll
        for (int i = 0; i < copies; ++i, from += step) {
            if (!along_k && i == 0 && head && begin + first == 0) continue;
            ptx::copy_async_filled<C.chunk_bytes>(to(i), from, i * down < left ? bytes : 0);
        }
    }
    /// Of the first block of K, whose stage is at `shared`: the heads of lines. Waits for its loads.
    __device__ void copy_heads(unsigned shared) const {
        if constexpr (C.along_k()) {
            for (int line = threadIdx.x; line < C.lines(); line += C.threads())
                if (const int shift = few_shift_of(b_line(line)); shift > 0)
                    copy_head(shared + C.a_bytes() + few_b_place(C, line, 0), b_line(line), shift, line < columns ? k : 0);
        } else if (const int shift = few_shift_of(b); shift > 0 && column == 0 && threadIdx.x == 0) {
            copy_head(shared + C.a_bytes() + few_b_place(C, 0, 0), b, shift, columns);
        }
    }
};

/// Blocks of A on their way to the ring, two elements of K a word: what ask() asked for, store() leaves, each row from a multiple of 16 B
/// on, wherever it begins in memory. Rows that began differently there would be read from the same banks.
///
/// Along K a warp has every eighth row, and lanes words beside each other; its last word is of the chunk before the block, four lanes a row.
/// Along M a thread has one row, and neighbours the next ones.
template <Sm80FewConfig C>
struct FewTurner {
    const FewLoader<C>& loader;
    const unsigned short* next;  ///< of the block that is asked for next, this thread's first word
    unsigned short element[C.a_blocks()][C.a_words()][2] = {};

    static constexpr int lanes = 32, block_words = C.tile_k / 2, row_turns = block_words / lanes;  // along K, of a lane in one row
    static constexpr int halo_words = C.chunk_elements / 2;

    /// Of this thread's `i`-th word the row, and the place in it; beyond the row where there is none.
    static __device__ int row(int i) {
        if constexpr (!C.a_along_k()) return threadIdx.x % C.tile_m;
        const int warp = threadIdx.x / lanes, lane = threadIdx.x % lanes;
        return warp + C.warps() * (i + 1 < C.a_words() ? i / row_turns : lane / halo_words);
    }
    static __device__ int word(int i) {
        if constexpr (!C.a_along_k()) return threadIdx.x / C.tile_m + i * C.a_words_at_once();
        const int lane = threadIdx.x % lanes;
        return i + 1 < C.a_words() ? halo_words + i % row_turns * lanes + lane : lane % halo_words;
    }
    static __device__ bool is_inside(int i) {
        if constexpr (C.a_along_k()) return i + 1 < C.a_words() || row(i) < C.tile_m;
        else return threadIdx.x < C.a_words_at_once() * C.tile_m && word(i) < C.a_row_words();
    }

    __device__ FewTurner(const FewLoader<C>& loader, int block) : loader(loader) {
        next = loader.a + place(0) + (static_cast<long long>(block) * C.tile_k - C.chunk_elements) * step();
    }
    /// Elements from A's begin to this thread's `i`-th word of a block, and from an element of K to the next.
    __device__ long long place(int i) const { return C.a_along_k() ? row(i) * loader.lda + 2 * word(i) : 2 * word(i) * loader.lda + row(i); }
    __device__ long long step() const { return C.a_along_k() ? 1 : loader.lda; }

    /// Asks for a block, the one behind that asked for last, as number `i` of those on their way.
    __device__ void ask(int i, int block) {
        const auto at = [&](int j) { return next + (place(j) - place(0)); };
        const auto is_of_a = [&](int j) { return is_inside(j) && row(j) < loader.rows; };
        if (block > 0 && (block + 1ll) * C.tile_k <= loader.k) {  // what is not of A stays 0
#pragma unroll
            for (int j = 0; j < C.a_words(); ++j)
                if (is_of_a(j)) element[i][j][0] = at(j)[0], element[i][j][1] = at(j)[step()];
        } else {
            const long long first = static_cast<long long>(block) * C.tile_k - C.chunk_elements;
#pragma unroll
            for (int j = 0; j < C.a_words(); ++j) {
                const long long k = first + 2 * word(j);
                element[i][j][0] = is_of_a(j) && k >= 0 && k < loader.k ? at(j)[0] : 0;
                element[i][j][1] = is_of_a(j) && k >= 0 && k + 1 < loader.k ? at(j)[step()] : 0;
            }
        }
        next += C.tile_k * step();
    }
    __device__ void store(int i, unsigned shared) const {
#pragma unroll
        for (int j = 0; j < C.a_words(); ++j)
            if (is_inside(j))
                ptx::store_shared_1(shared + row(j) * (C.a_pitch_chunks() * C.chunk_bytes) + word(j) * 4,
                                    __uint_as_float(element[i][j][0] | unsigned(element[i][j][1]) << 16));
    }
};

}  // namespace rooftile
