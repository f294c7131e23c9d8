// A caller's expression between the sums and the store. EpilogueSums stands where OwnSums or SumsOfParts would, so every
// way out takes it: by epilogue tiles, transposed, and by elements. The expression and its operands are a class of their own,
// which the host writes; with NoEpilogue the kernel is as it is without.
//
// A pure function of its operands: tiles may overlap, and what two of them store is the same. So no operand may lie where
// the result does.
#pragma once

#include "kernels/matrix/epilogue_pair.cuh"
#include "kernels/matrix/store.cuh"
#include "kernels/ptx/load.cuh"
#include "kernels/ptx/stream.cuh"

namespace rooftile {

/// Asks L2 for a CTA's part of an operand that has an element for each of the result, long before it is read: by `threads`
/// threads, of which this is `thread`.
template <MatrixConfig C, bool by_product, class T>
__device__ inline void prefetch_tile(const T* from, const MatrixArguments& args, const TileOrigin& at, int thread, int threads) {
    if constexpr (by_product) from += static_cast<long long>(at.batch) * args.m * C.result_columns(args.n);
    constexpr int line = 128 / sizeof(T);  // elements
    constexpr int lines = (C.result_columns(C.tile_n) + line - 1) / line;
    const int columns = C.result_columns(args.n);
    for (int i = thread; i < C.tile_m * lines; i += threads) {
        const unsigned row = at.m + i / lines, column = at.n + i % lines * line;
        if (row < static_cast<unsigned>(args.m) && column < static_cast<unsigned>(columns))
            ptx::prefetch_l2(from + static_cast<long long>(row) * columns + column);
    }
}

/// Values of `Sums`, which are of the part of the result that begins at m, n, through the expression. Of several results it is one:
/// what is common to them is computed for each, and takes no registers meanwhile.
template <MatrixConfig C, class Epilogue, class Sums, int result = 0>
struct EpilogueSums {
    const Sums& sums;
    const Epilogue& epilogue;
    const MatrixArguments& args;
    int m, n, product;
    const StoreTarget<C>& target;
    typename Epilogue::Once once;  // read for all of a tile

    template <int stride = 1, int count>
    __device__ void pairs(unsigned (&to)[count], int i, int j) const {
        finish<stride, count>(i, j, [&to](int e, float first, float second) { to[e] = ptx::pack2<C.c_type>(first, second); });
    }
    template <int stride = 1, int count>
    __device__ void take(float (&to)[count], int i, int j) const {
        finish<stride, count / 2>(i, j, [&to](int e, float first, float second) { to[2 * e] = first, to[2 * e + 1] = second; });
    }

  private:
    /// put(e, first, second) for each of `count` pairs.
    template <int stride, int count, class Put>
    __device__ void finish(int i, int j, const Put& put) const {
        const int thread = threadIdx.x % C.warpgroup_threads;
        // Of pairs with swap_ab a warp's 16 rows of wgmma are 8 gates and their ups: 8 columns of the result.
        const int along_m = thread / 32 * (C.pairs && C.swap_ab ? 8 : 16) + thread % 32 / 4, along_n = thread % 4 * 2;
        const int row = m + (C.swap_ab ? along_n : along_m), column = n + (C.swap_ab ? along_m : along_n);
        const auto place = [&](int e) { return this->place(row, column, i, j + 2 * stride * e); };
        float values[2 * count];
        [[maybe_unused]] float ups[2 * count];
        if constexpr (C.pairs) take_pairs<stride>(values, ups, i, j);
        else sums.template take<stride>(values, i, j);
        constexpr int in_flight = Epilogue::template pairs_in_flight<C.swap_ab>;
#pragma unroll
        for (int first = 0; first < count; first += in_flight) {
            const int end = min(count, first + in_flight);
            // What lies outside nobody stores. And a branch is what ptxas moves nothing across: else it begins the loads and
            // the dropout of all of them at once, and registers are counted for so many. Before a branch all results take a
            // register beside their sums, so there is none where an element is light.
            if constexpr (!Epilogue::is_light) {
#pragma unroll
                for (int e = first; e < end; ++e) put(e, 0, 0);
                if (!any_inside(place(first), place(min(end, first + 2) - 1))) continue;
            }
            typename Epilogue::Operands operands[in_flight];
#pragma unroll
            for (int e = first; e < end; ++e)  // all loads before the first use
                epilogue.template load<C.swap_ab>(operands[e - first], place(e));
#pragma unroll
            for (int e = first; e < end; ++e) {
                float x[2 * C.results];
                if constexpr (C.pairs)
                    epilogue.template apply<C.swap_ab>(x, values[2 * e], values[2 * e + 1], ups[2 * e], ups[2 * e + 1], operands[e - first],
                                                       once, place(e));
                else epilogue.template apply<C.swap_ab>(x, values[2 * e], values[2 * e + 1], operands[e - first], once, place(e));
                put(e, x[2 * result], x[2 * result + 1]);
            }
        }
    }

    /// Gates and ups of `count` values of the result, whose accumulators would begin at `j`: of eight of its columns those of eight
    /// columns of B, and of the next eight. With swap_ab, and a stride of 2, `j` is the gate's own: its up stands eight rows of wgmma
    /// below.
    template <int stride, int count>
    __device__ void take_pairs(float (&gates)[count], float (&ups)[count], int i, int j) const {
#pragma unroll
        for (int e = 0; e < count; e += 2) {
            const int at = j + stride * e, step = C.pair_step / 2;
            const int gate = C.swap_ab ? at : at / step * 2 * step + at % step, up = gate + (C.swap_ab ? 2 : step);
            float two[2];
            sums.take(two, i, gate);
            gates[e] = two[0], gates[e + 1] = two[1];
            sums.take(two, i, up);
            ups[e] = two[0], ups[e + 1] = two[1];
        }
    }

    /// Of pairs one after the other: the later ones lie further right (transposed: down), every other one in the other of two rows
    /// (columns), so that the first two tell.
    __device__ static bool any_inside(const EpiloguePair& x, const EpiloguePair& y) { return x.first || y.first; }
    /// Where wgmma leaves accumulators `j` and `j` + 1 of the part's i-th 64 rows, of a thread whose first are at row, column.
    __device__ EpiloguePair place(int row, int column, int i, int j) const {
        const int along_m = (C.pairs && C.swap_ab ? C.turned_columns() : 64) * i + j / 2 % 2 * 8, along_n = j / 4 * 8;
        const int columns = C.result_columns(args.n);
        EpiloguePair at{row, column, C.swap_ab ? along_n : along_m, C.swap_ab ? along_m : along_n, args.m, columns, product, false, false};
        // Beyond the last tile these are below 0.
        const int down = args.m - row - at.down, right = columns - column - at.right;
        at.first = down > 0 && right > 0;
        at.second = C.swap_ab ? down > 1 && right > 0 : down > 0 && right > 1;
        if constexpr (C.operand_staged) {
            at.first_at = staged(row - m + at.down, column - n + at.right);
            if constexpr (C.swap_ab) at.second_at = staged(row - m + at.down + 1, column - n + at.right);
        }
        return at;
    }
    /// Of the staged operand's element in that row and column of what the warpgroup stores.
    __device__ unsigned staged(int row, int column) const {
        constexpr int row_bytes = C.epilogue_columns() * C.result_bytes();
        return swizzled<C>(target.operand + (row - target.operand_row) * row_bytes + (column - target.operand_column) * C.result_bytes());
    }
};

/// Results from `result` on, one after the other.
template <MatrixConfig C, int result, class Epilogue, class Sums>
__device__ void store_results(const Epilogue& epilogue, const Sums& sums, StoreTarget<C>& target, const MatrixArguments& args,
                              const TileOrigin& at) {
    store<C, result>(EpilogueSums<C, Epilogue, Sums, result>{sums, epilogue, args, at.m, at.n, at.batch, target, epilogue.once()}, target, args,
                     at);
    if constexpr (result + 1 < C.results) store_results<C, result + 1>(epilogue, sums, target, args, at);
}

/// A tile's sums on their way out.
template <MatrixConfig C, class Epilogue, class Sums>
__device__ void store_finished(const Epilogue& epilogue, const Sums& sums, StoreTarget<C>& target, const MatrixArguments& args,
                               const TileOrigin& of_sums) {
    const TileOrigin at = of_sums.template result<C>();
    if constexpr (is_plain<Epilogue>()) store<C>(sums, target, args, at);
    else store_results<C, 0>(epilogue, sums, target, args, at);
}

/// Beside a tile's first products: what its epilogue will read.
template <MatrixConfig C, class Epilogue>
__device__ void prefetch_operands(const Epilogue& epilogue, const MatrixArguments& args, const TileOrigin& at) {
    if constexpr (!is_plain<Epilogue>()) {
        constexpr bool alone = C.schedule == Schedule::pingpong;  // a warpgroup has the tile
        constexpr int threads = C.warpgroup_threads * (alone ? 1 : C.consumer_warpgroups);
        epilogue.template prefetch<C>(args, at, (threadIdx.x - C.warpgroup_threads) % threads, threads);
    }
}

}  // namespace rooftile
