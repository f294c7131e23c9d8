// A row of values with errors that one thread goes over, as kernels/expression/row_meaning.hpp asks for it.
#pragma once

#include <cstdint>

#include "rooftile/expression/bounded.hpp"

namespace rooftile {

struct HostRow {
    const Bounded* first;
    long long n;
    double epsilon = 0;
    int weights = 0;
    const Bounded* weight_of[2] = {};  ///< gamma, beta
    Bounded* out = nullptr;            ///< one element, or n
    long long step = 1;                ///< elements from one to the next

    Bounded x(long long i) const { return first[i * step]; }
    Bounded weight(int w, long long i) const { return weight_of[w][i]; }
    template <class R, class Add>
    R reduce(Add add) const {
        R r;
        for (long long i = 0; i < n; ++i) add(r, x(i), i);
        return r;
    }
    template <class F>
    void each(F f) const {
        for (long long i = 0; i < n; ++i) out[i] = settled(f(x(i), i));
    }
    void give(Bounded b) const { *out = settled(b); }
};

}  // namespace rooftile
