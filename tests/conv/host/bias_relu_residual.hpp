// The epilogue of the convolutions whose kernels' text runs on the CPU; included behind a kernel's text.
#pragma once

namespace cta_text {

/// max(acc + bias, 0) + r of bias [N] and r [M,N], as the host writes such a class.
/// `paired`: two neighbours of an operand are loaded at once.
template <bool paired>
struct BiasReluResidual {
    const unsigned short *bias, *r;
    struct Once {};
    Once once() const { return {}; }
    struct Operands {
        unsigned short bias[2], r[2];
    };
    template <bool turned>
    void load(Operands& to, const EpiloguePair& at) const {
        load_pair<turned, false, false, true, paired>(to.bias, bias, at);
        load_pair<turned, false, true, true, paired>(to.r, r, at);
    }
    static float element(float acc, unsigned short bias, unsigned short r) {
        return (acc + ptx::number_of(Type::bf16, bias) < 0 ? 0 : acc + ptx::number_of(Type::bf16, bias)) + ptx::number_of(Type::bf16, r);
    }
    template <bool turned>
    void apply(float (&to)[2], float first, float second, const Operands& with, const Once&, const EpiloguePair&) const {
        for (int i = 0; i < 2; ++i) to[i] = element(i == 0 ? first : second, with.bias[i], with.r[i]);
    }
};

}  // namespace cta_text
