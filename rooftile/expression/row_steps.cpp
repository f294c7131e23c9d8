#include "rooftile/expression/row_steps.hpp"

namespace rooftile {
namespace {

int weighted(RowSteps& to, const RowCall& call, int normal) {
    if (call.weights.size() > 0) normal = to.compute(Op::multiply, {normal, call.weights[0]});
    if (call.weights.size() > 1) normal = to.compute(Op::add, {normal, call.weights[1]});
    return normal;
}

}  // namespace

int softmax_steps(RowSteps& to, const RowCall& call) {
    const int r = to.reduce(Reduction::exponentials, call.x);
    const int shifted = to.compute(Op::subtract, {call.x, to.part(RowPart::greatest, r)});
    return to.compute(Op::multiply, {to.compute(Op::exp, {shifted}), to.part(RowPart::inverse_sum, r)});
}

int log_softmax_steps(RowSteps& to, const RowCall& call) {
    const int r = to.reduce(Reduction::exponentials, call.x);
    const int shifted = to.compute(Op::subtract, {call.x, to.part(RowPart::greatest, r)});
    return to.compute(Op::subtract, {shifted, to.part(RowPart::log_sum, r)});
}

int layernorm_steps(RowSteps& to, const RowCall& call) {
    const int r = to.reduce(Reduction::moments, call.x);
    const int mean = to.part(RowPart::mean, r);
    const int scale = to.part(RowPart::inverse_deviation, r, call.epsilon);
    // Not one fused product with mean * scale: rounded, that may be more than what differs from the mean.
    return weighted(to, call, to.compute(Op::multiply, {to.compute(Op::subtract, {call.x, mean}), scale}));
}

int rmsnorm_steps(RowSteps& to, const RowCall& call) {
    const int r = to.reduce(Reduction::square_sum, call.x);
    const int scale = to.part(RowPart::inverse_root, r, call.epsilon);
    return weighted(to, call, to.compute(Op::multiply, {call.x, scale}));
}

int softmax_of_one(RowSteps& to, const RowCall& call) {
    return to.compute(Op::exp, {log_softmax_of_one(to, call)});
}

int log_softmax_of_one(RowSteps& to, const RowCall& call) {
    return to.compute(Op::subtract, {call.x, call.x});
}

int layernorm_of_one(RowSteps& to, const RowCall& call) {
    return weighted(to, call, log_softmax_of_one(to, call));
}

int rmsnorm_of_one(RowSteps& to, const RowCall& call) {
    const int square =
        to.compute(Op::add, {to.compute(Op::multiply, {call.x, call.x}), to.number(call.epsilon)});
    return weighted(to, call, to.compute(Op::multiply, {call.x, to.compute(Op::rsqrt, {square})}));
}

int argmax_of_one(RowSteps& to, const RowCall&) {
    return to.compute(Op::multiply, {to.number(0), to.number(0)});
}

int itself_of_one(RowSteps& to, const RowCall& call) {
    // A second value, so that it has a name of its own.
    return to.compute(Op::multiply, {call.x, to.number(1)});
}

}  // namespace rooftile
