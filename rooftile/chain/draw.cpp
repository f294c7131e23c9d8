#include "rooftile/chain/draw.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

constexpr double most_flops = 2e13;
constexpr std::int64_t step = 64;

std::int64_t in_steps(double x) { return std::max<std::int64_t>(1, std::llround(x / double(step))) * step; }

}  // namespace

DrawLaw chain_law(const DrawRequest& request) {
    if (request.law == "any") throw RequestError("rows of a chain begin at multiples of 16 bytes; the law draw works");
    static constexpr std::string_view laws[] = {"draw"};
    law_index(request, laws);
    return {"draw",
            "m log-uniform 1024 to 1048576, d log-uniform 64 to 8192 and ff = d x 2 to 5, both in steps of 64, any activation, half with "
            "residual, at most 2e13 FLOP",
            Mode::sustained};
}

ChainProblem drawn_chain(Random& random) {
    for (;;) {
        ChainProblem p;
        p.m = std::llround(random.log_uniform(1 << 10, 1 << 20));
        p.d = in_steps(random.log_uniform(64, 8192));
        p.ff = in_steps(double(p.d) * random.uniform(2, 5));
        p.act = ChainAct(random.pick(4));
        p.residual = random.coin();
        if (p.flops() > most_flops) continue;
        check(p);
        return p;
    }
}

ProblemTraits chain_traits(const ChainProblem& p) {
    constexpr std::int64_t narrow = 256, wide = 1024;
    ProblemTraits t;
    t.law = "draw";
    t.band = p.d <= narrow ? "d <= 256" : p.d <= wide ? "d 257 .. 1024" : "d > 1024";
    t.features = {{"residual", p.residual},
                  {"gelu", p.act == ChainAct::gelu},
                  {"silu", p.act == ChainAct::silu},
                  {"relu", p.act == ChainAct::relu},
                  {"swiglu", p.act == ChainAct::swiglu},
                  {"d 64 or 128", p.d <= 128}};
    t.x = {"m", double(p.m)};
    t.y = {"d", double(p.d)};
    t.flops = p.flops();
    return t;
}

}  // namespace rooftile
