// C[M x N] = A[M x K] * B[K x N] of at most 64 rows, whose time is that of reading B: bf16 or fp16 in and out, fp32 sums. B
// is read as it lies, once, wherever its rows begin; or a batch of such products, and a caller's expression of the sums.
//
// A CTA has tile_n columns of C, rows of B, and all rows of A; a ring of `stages` blocks of K is filled by cp.async. Rows of B that are
// eight apart begin equally far past a multiple of 16 B, whatever the leading dimension is. So each of the eight warps multiplies the rows
// of one such shift: counted from those multiples, a block's elements of all its rows are below each other, and ldmatrix brings them as
// mma.sync wants them, columns of C on its m. What the shift moves are A's elements, on its n: few, which a lane reads from shared memory
// by the word wherever they are. A pair that begins amid a word is put together from two.
//
// Where tiles are fewer than the GPU holds CTAs, parts of K have a CTA each. They leave their sums in device memory, and whoever
// comes last adds them up in the order of the parts: the same bits every time.
#pragma once

#include "kernels/gemm/sm80_few_gemm_load.cuh"
#include "kernels/matrix/epilogue_pair.cuh"
#include "kernels/pipeline/came_last.cuh"
#include "kernels/ptx/matrix_store.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/stream.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

template <Sm80FewConfig C>
constexpr bool obeys_the_hardware() {
    static_assert(C.tile_m % C.mma_n == 0 && C.tile_m >= C.mma_n && C.tile_m <= C.most_rows, "whole mma.m16n8k16");
    static_assert(!C.along_k() || C.tile_n % (C.mma_m * C.shifts) == 0, "a warp owns whole mma.m16n8k16 of one shift");
    static_assert(C.along_k() || (C.copied_n() % C.mma_m == 0 && C.tile_k % (C.mma_k * C.shifts) == 0), "the same of K");
    static_assert(C.line_chunks() % C.bank_chunks == 0, "a chunk of eight rows lies in eight groups of banks");
    static_assert(C.a_pitch_chunks() % 2 == 1, "so do chunks of A");
    static_assert(C.a_words() <= C.most_a_words, "A comes by registers");
    static_assert(C.stages >= 2, "a ring needs two stages");
    static_assert(C.stage_bytes() % C.tile_alignment == 0 && C.sums_bytes() <= C.shared_bytes(), "the ring holds the sums in the end");
    return true;
}

/// Which piece of which tile a CTA has.
template <Sm80FewConfig C>
struct FewTile {
    int piece = 0, tile, product = 0, column;  // `column`: the first of C
    __device__ explicit FewTile(const Sm80FewArguments& args) : tile(blockIdx.x) {
        if constexpr (C.in_pieces) {
            tile = blockIdx.x / args.pieces;
            piece = blockIdx.x % args.pieces;
        }
        int of_product = tile;
        if constexpr (C.batched) {
            const int tiles = (args.n - 1) / C.tile_n + 1;
            product = tile / tiles;
            of_product -= product * tiles;
        }
        column = of_product * C.tile_n;
    }
    template <class T>
    __device__ T* matrix(T* first, long long stride) const {
        if constexpr (C.batched) return first + product * stride;
        else return first;
    }
};

/// A warp's sums: [warp_tiles][row_tiles] of m16n8, transposed.
template <Sm80FewConfig C>
using FewSums = float[C.warp_tiles()][C.row_tiles()][4];

/// Where a lane finds what it multiplies. Along K lines of B are columns of C, and its chunks are of K; along N lines are K's, and ldmatrix
/// transposes: element i of a k-step is then the warp's i-th line, eight further on in K than the one before.
template <Sm80FewConfig C>
struct FewReader {
    static constexpr bool along_k = C.along_k();
    static constexpr int element_step = along_k ? 1 : C.shifts;                  // of A, from one of a k-step to the next
    static constexpr int step_bytes = C.mma_k * element_step * C.element_bytes;  // of A, from one k-step to the next
    static constexpr int row_bytes = C.a_pitch_chunks() * C.chunk_bytes;         // of A
    static constexpr int line_bytes = C.line_chunks() * C.chunk_bytes, lines_bytes = C.mma_m * C.shifts * line_bytes;
    unsigned b_line, b_twist;  // from the stage's begin; its chunks' places are xored
    unsigned a_word;           // the same, of the word that the lane's first element of a block is in, in the first rows
    unsigned a_select;         // the two halves of two words that it takes

    __device__ explicit FewReader(const FewLoader<C>& from) {
        const int lane = threadIdx.x % 32, warp = ptx::warp_uniform(threadIdx.x / 32);
        // Matrices of ldmatrix are 8 columns, then the other 8, of 8 of K, then of the other 8.
        const int i = along_k ? lane % 16 : lane % 8 + lane / 16 * 8, chunk = along_k ? lane / 16 : lane / 8 % 2;
        b_line = C.a_bytes() + few_b_line(warp, 0, i) * line_bytes;
        b_twist = (chunk ^ i % C.bank_chunks) * C.chunk_bytes;
        const int begin = along_k ? -few_shift_of(from.b_line(warp)) : warp;  // of the warp's elements in the block
        const int element = few_a_element(begin);
        a_word = lane / 4 * row_bytes + (element / 2 + lane % 4 * element_step) * 4;
        a_select = element % 2 == 0 ? along_k ? 0x3210 : 0x5410 : along_k ? 0x5432 : 0x7632;
    }
    __device__ void load_b(unsigned (&to)[4], unsigned stage, int tile, int k_step) const {
        if constexpr (along_k)
            ptx::load_matrix_x4(to, stage + b_line + tile * lines_bytes + (b_twist ^ k_step * (C.mma_k * C.element_bytes)));
        else ptx::load_matrix_x4_transposed(to, stage + b_line + k_step * lines_bytes + (b_twist ^ tile * (C.mma_m * C.element_bytes)));
    }
    /// Elements 2 (lane % 4) and the next of row lane / 4; those 8 further on.
    __device__ void load_a(unsigned (&to)[2], unsigned stage, int j, int k_step) const {
        constexpr int half = step_bytes / 2, next = along_k ? 4 : C.shifts * C.element_bytes;  // to the second word
        const unsigned at = stage + a_word + j * (C.mma_n * row_bytes) + k_step * step_bytes;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            to[i] = ptx::load_shared(at + i * half);
            if constexpr (!along_k || C.odd_rows) to[i] = __byte_perm(to[i], ptx::load_shared(at + i * half + next), a_select);
        }
    }
    __device__ void multiply(FewSums<C>& sums, unsigned stage) const {
#pragma unroll
        for (int k_step = 0; k_step < C.k_steps(); ++k_step) {
            unsigned b[C.warp_tiles()][4];
#pragma unroll
            for (int i = 0; i < C.warp_tiles(); ++i) load_b(b[i], stage, i, k_step);
#pragma unroll
            for (int j = 0; j < C.row_tiles(); ++j) {
                unsigned a[2];
                load_a(a, stage, j, k_step);
#pragma unroll
                for (int i = 0; i < C.warp_tiles(); ++i) ptx::mma<C.type>(sums[i][j], b[i], a[0], a[1]);
            }
        }
    }
};

/// A warp's sums to where each is in a tile of C, in shared memory at `shared`; along N in a part of its own.
template <Sm80FewConfig C>
__device__ void leave(const FewSums<C>& sums, unsigned shared, const FewLoader<C>& from) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int shift = C.along_k() ? 0 : few_shift_of(from.b_line(warp));
    if constexpr (!C.along_k()) shared += warp * C.part_bytes();
#pragma unroll
    for (int i = 0; i < C.warp_tiles(); ++i)
#pragma unroll
        for (int j = 0; j < C.row_tiles(); ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int of_tile = lane / 4 + e / 2 * 8, row = C.mma_n * j + lane % 4 * 2 + e % 2;
                const int column = C.along_k() ? few_b_line(warp, i, of_tile) : i * C.mma_m + of_tile - shift;
                if (C.along_k() || (column >= 0 && column < C.tile_n))
                    ptx::store_shared_1(shared + (row * C.sums_pitch() + column) * 4, sums[i][j][e]);
            }
}

/// A tile of C on its way out: neighbours along a row in pairs, one thread's `threads` pairs apart.
template <Sm80FewConfig C>
struct FewStore {
    static constexpr int pairs_a_row = C.tile_n / 2, of_tile = C.tile_m * pairs_a_row;
    static constexpr int pairs = (of_tile + C.threads() - 1) / C.threads();  // of a thread
    static constexpr int together = pairs % C.pairs_in_flight == 0 ? C.pairs_in_flight : pairs % 2 == 0 ? 2 : 1;
    static constexpr bool ragged = of_tile % C.threads() != 0;  // the last ones of some threads are beyond the tile
    using Pairs = float[together][2];

    const Sm80FewArguments& args;
    const FewTile<C>& at;
    unsigned shared;

    static __device__ int index(int pair) { return pair * C.threads() + threadIdx.x; }
    __device__ float* left(int piece, int pair) const {
        const long long tile = static_cast<long long>(at.tile) * args.pieces + piece;
        return args.sums + (tile * of_tile + index(pair)) * 2;
    }
    static __device__ bool is_inside(int pair) { return !ragged || index(pair) < of_tile; }
    __device__ void from_shared(Pairs& x, int first) const {
#pragma unroll
        for (int i = 0; i < together; ++i) {
            const int row = index(first + i) / pairs_a_row, column = index(first + i) % pairs_a_row * 2;
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                x[i][e] = 0;
#pragma unroll
                for (int part = 0; part < C.parts(); ++part)
                    if (is_inside(first + i))
                        x[i][e] +=
                            __uint_as_float(ptx::load_shared(shared + part * C.part_bytes() + (row * C.sums_pitch() + column + e) * 4));
            }
        }
    }
    /// Leaves this piece's sums in device memory.
    __device__ void leave_piece() const {
#pragma unroll 1
        for (int first = 0; first < pairs; first += together) {
            Pairs x;
            from_shared(x, first);
#pragma unroll
            for (int i = 0; i < together; ++i)
                if (is_inside(first + i))
                    ptx::store_words(left(at.piece, first + i), ptx::Words<8>{{__float_as_uint(x[i][0]), __float_as_uint(x[i][1])}});
        }
    }
    /// Sums of all pieces, in their order.
    __device__ void from_pieces(Pairs& x, int first) const {
#pragma unroll
        for (int i = 0; i < together; ++i) x[i][0] = x[i][1] = 0;
#pragma unroll 1
        for (int piece = 0; piece < args.pieces; piece += C.pieces_in_flight) {
            ptx::Words<8> words[C.pieces_in_flight][together] = {};
#pragma unroll
            for (int p = 0; p < C.pieces_in_flight; ++p)
#pragma unroll
                for (int i = 0; i < together; ++i)
                    if (piece + p < args.pieces && is_inside(first + i)) ptx::load_in_order(words[p][i], left(piece + p, first + i));
#pragma unroll
            for (int p = 0; p < C.pieces_in_flight; ++p)
#pragma unroll
                for (int i = 0; i < together; ++i)
#pragma unroll
                    for (int e = 0; e < 2; ++e) x[i][e] += __uint_as_float(words[p][i].word[e]);
        }
    }
    __device__ EpiloguePair place(int pair) const {
        EpiloguePair to{
            index(pair) / pairs_a_row, at.column + index(pair) % pairs_a_row * 2, 0, 0, args.m, args.n, at.product, false, false};
        to.first = to.row < args.m && to.column < args.n;
        to.second = to.row < args.m && to.column + 1 < args.n;
        return to;
    }
    template <class Epilogue>
    __device__ void finish(Pairs& x, const Epilogue& epilogue, int first) const {
        const typename Epilogue::Once once = epilogue.once();
        typename Epilogue::Operands operands[together];
#pragma unroll
        for (int i = 0; i < together; ++i) epilogue.template load<false>(operands[i], place(first + i));
#pragma unroll
        for (int i = 0; i < together; ++i) {
            float to[2];
            epilogue.template apply<false>(to, x[i][0], x[i][1], operands[i], once, place(first + i));
            x[i][0] = to[0], x[i][1] = to[1];
        }
    }
    __device__ void store(const Pairs& x, unsigned short* c, int first) const {
#pragma unroll
        for (int i = 0; i < together; ++i) {
            const EpiloguePair to = place(first + i);
            const unsigned packed = ptx::pack2<C.type>(x[i][0], x[i][1]);
            unsigned short* element = c + to.row * args.ldc + to.column;
            if (to.second && reinterpret_cast<unsigned long long>(element) % 4 == 0) {
                ptx::store_words(element, ptx::Words<4>{{packed}});
                continue;
            }
            if (to.first) element[0] = static_cast<unsigned short>(packed);
            if (to.second) element[1] = static_cast<unsigned short>(packed >> 16);
        }
    }
    template <class Epilogue>
    __device__ void all(const Epilogue& epilogue) const {
        unsigned short* c = at.matrix(static_cast<unsigned short*>(args.c), args.c_stride);
#pragma unroll 1
        for (int first = 0; first < pairs; first += together) {
            Pairs x;
            if constexpr (C.in_pieces) from_pieces(x, first);
            else from_shared(x, first);
            if constexpr (!is_plain<Epilogue>()) finish(x, epilogue, first);
            store(x, c, first);
        }
    }
};

/// The blocks of K of one piece.
struct FewBlocks {
    int begin, end;
};
template <Sm80FewConfig C>
__device__ FewBlocks blocks_of(const Sm80FewArguments& args, const FewTile<C>& at, const FewLoader<C>& from) {
    int shift = 0;
    if constexpr (C.along_k()) {
#pragma unroll
        for (int i = 0; i < C.shifts; ++i)
            if (const int other = few_shift_of(from.b_line(i)); other > shift) shift = other;
    }
    const int all = static_cast<int>(few_blocks(C, args.k, shift));
    if constexpr (C.in_pieces) {
        const int most = (all - 1) / args.pieces + 1;
        const long long begin = static_cast<long long>(at.piece) * most, end = begin + most;
        return {begin < all ? static_cast<int>(begin) : all, end < all ? static_cast<int>(end) : all};
    } else {
        return {0, all};
    }
}

/// What every thread of a CTA does.
template <Sm80FewConfig C, class Epilogue>
__device__ __forceinline__ void run_cta(const Sm80FewArguments& args, const Epilogue& epilogue) {
    static_assert(obeys_the_hardware<C>());
    extern __shared__ __align__(C.tile_alignment) unsigned char memory[];
    const unsigned ring = ptx::shared_address(memory);
    const FewTile<C> at(args);
    const FewLoader<C> loader{
        at.matrix(static_cast<const unsigned short*>(args.a), args.a_stride),
        at.matrix(static_cast<const unsigned short*>(args.b), args.b_stride) + (C.along_k() ? at.column * args.ldb : 0),
        args.lda,
        args.ldb,
        args.m,
        at.column,
        args.n - at.column,
        args.k};
    const FewBlocks blocks = blocks_of<C>(args, at, loader);
    const unsigned ring_end = ring + C.stages * C.stage_bytes();
    const auto behind = [&](unsigned stage) { return stage + C.stage_bytes() == ring_end ? ring : stage + C.stage_bytes(); };
    const unsigned short* next_b = loader.b_chunk(blocks.begin);
    const auto fill = [&](unsigned stage, int block) {  // as one group of copies: an empty one where nothing is left
        if (block < blocks.end) loader.copy_b(stage + C.a_bytes(), block, next_b);
        next_b += loader.b_step();
        ptx::copy_async_commit();
    };
    const auto fill_ring = [&] {
#pragma unroll 1
        for (int s = 0; s < C.stages - 1; ++s) fill(ring + s * C.stage_bytes(), blocks.begin + s);
    };
    // The kernel in front may still write what this one reads, and read what it writes: B alone is asked for before the wait, and where
    // early_weights says that it was there before.
    if constexpr (C.early_weights) fill_ring();
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    if constexpr (!C.early_weights) fill_ring();
    // A is a block ahead in shared memory, and the next ones are on their way to registers.
    constexpr int on_their_way = C.a_blocks();
    FewTurner<C> turner(loader, blocks.begin);
#pragma unroll
    for (int i = 0; i < on_their_way; ++i) turner.ask(i, blocks.begin + i);
    if (blocks.begin == 0) loader.copy_heads(ring);  // while all that is on its way
    turner.store(0, ring);
    turner.ask(0, blocks.begin + on_their_way);

    const FewReader<C> reader(loader);
    FewSums<C> sums = {};
    unsigned before = ring_end - C.stage_bytes(), stage = ring;
#pragma unroll 1
    for (int first = blocks.begin; first < blocks.end; first += on_their_way)
#pragma unroll
        for (int i = 0; i < on_their_way; ++i) {
            const int block = first + i, next = (i + 1) % on_their_way;
            if (i > 0 && block >= blocks.end) break;
            ptx::copy_async_wait<C.stages - 2>();  // the block is in shared memory as far as this thread copied it
            __syncthreads();                       // and all of it; nobody reads the stage of the one before any more
            fill(before, block + C.stages - 1);
            turner.store(next, behind(stage));
            turner.ask(next, block + 1 + on_their_way);
            reader.multiply(sums, stage);
            before = stage, stage = behind(stage);
        }
    ptx::copy_async_wait<0>();  // none but empty groups
    __syncthreads();
    leave<C>(sums, ring, loader);
    __syncthreads();
    const FewStore<C> store{args, at, ring};
    if constexpr (C.in_pieces) {
        store.leave_piece();
        if (!came_last(0, C.threads(), args.arrived + at.tile, args.pieces)) return;
    }
    store.all(epilogue);
}

template <Sm80FewConfig C>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm) sm80_few_gemm(const __grid_constant__ Sm80FewArguments args) {
    run_cta<C>(args, NoEpilogue{});
}

/// The same, and what is stored is an expression of the sums.
template <Sm80FewConfig C, class Epilogue>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm80_few_gemm_epilogue(const __grid_constant__ Sm80FewArguments args, const __grid_constant__ Epilogue epilogue) {
    run_cta<C>(args, epilogue);
}

}  // namespace rooftile
