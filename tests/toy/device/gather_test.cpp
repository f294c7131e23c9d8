// The toy matrix operation on a GPU: drawn problems, every element against fp64.
#include "tests/toy/gather.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/measure/numbers.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/runtime/compiled_kernel.hpp"
#include "tests/core/example.hpp"
#include "tests/device/device.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

template <class T>
DeviceBuffer on_device(const std::vector<T>& values) {
    DeviceBuffer buffer(values.size() * sizeof(T));
    copy_to_device(buffer.address(), values.data(), values.size() * sizeof(T));
    return buffer;
}

float uniform(Random& random) { return float(random.whole(-(1 << 20), 1 << 20)) / float(1 << 19); }
double rounded(double x) { return value_of_bits(round_to_bits(x, Type::bf16), Type::bf16); }

void expect_right(const Plan& plan, Random& random) {
    const auto& p = plan.own.as<GatherPlan>();
    SCOPED_TRACE(toy_gather().short_name(plan.problem) + " by " + toy_gather().label(plan));
    // Rows that the list does not name are NaN: they are not read. Behind C nothing is written.
    constexpr unsigned short poison = 0x7fc1;
    constexpr std::size_t behind = 4096;
    std::vector<int> rows(std::size_t(p.m));
    std::vector<float> a(std::size_t(p.source_rows * p.k), std::numeric_limits<float>::quiet_NaN());
    std::vector<unsigned short> b(std::size_t(p.n * p.k)), c(std::size_t(p.m * p.n) + behind, poison);
    for (int& row : rows) {
        row = int(random.whole(0, p.source_rows - 1));
        if (!std::isnan(a[std::size_t(row * p.k)])) continue;
        for (std::int64_t k = 0; k < p.k; ++k) a[std::size_t(row * p.k + k)] = uniform(random);
    }
    for (unsigned short& x : b) x = static_cast<unsigned short>(round_to_bits(uniform(random), Type::bf16));
    const DeviceBuffer rows_there = on_device(rows), a_there = on_device(a), b_there = on_device(b), c_there = on_device(c);
    void* const tensors[] = {rows_there.data(), a_there.data(), b_there.data(), c_there.data()};
    compile_gather(plan).launch(nullptr, tensors);
    synchronize();
    copy_to_host(c.data(), c_there.address(), c.size() * sizeof(c[0]));

    std::vector<double> b_values(b.size());
    for (std::size_t i = 0; i < b.size(); ++i) b_values[i] = value_of_bits(b[i], Type::bf16);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < p.m; ++i) {
        std::vector<double> line(std::size_t(p.k));
        for (std::int64_t k = 0; k < p.k; ++k) line[std::size_t(k)] = rounded(a[std::size_t(rows[std::size_t(i)] * p.k + k)]);
        for (std::int64_t j = 0; j < p.n; ++j) {
            double sum = 0, magnitude = 0;
            for (std::int64_t k = 0; k < p.k; ++k) {
                const double term = line[std::size_t(k)] * b_values[std::size_t(j * p.k + k)];
                sum += term, magnitude += std::fabs(term);
            }
            // fp32 rounds or cuts each of k additions at most, then bf16 rounds to its 8 bits.
            const double bound = double(p.k) * 0x1p-23 * magnitude * (1 + 0x1p-8) + std::fabs(sum) * 0x1p-8;
            const double got = value_of_bits(c[std::size_t(i * p.n + j)], Type::bf16);
            if (!(std::fabs(got - sum) <= bound) && ++wrong == 1) ADD_FAILURE() << "C[" << i << ", " << j << "] is " << got << ", not " << sum << " +- " << bound;
        }
    }
    EXPECT_EQ(wrong, 0);
    for (std::size_t i = c.size() - behind; i < c.size(); ++i) ASSERT_EQ(c[i], poison) << "behind C";
}

class ToyGatherTest : public DeviceTest {};

TEST_F(ToyGatherTest, DrawnProblemsAreRight) {
    const Operation& toy = toy_gather();
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    Random random(from_environment("ROOFTILE_TEST_SEED", 49));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 6); ++i) {
        GatherPlan p{random.whole(1, 700), random.whole(1, 900), 8 * random.whole(1, 60), 8 * random.whole(1, 100)};
        const PlanSet set = toy.derive(machine, {&toy, Own::of(p)}, toy.request(Given(), {.top = 64}));
        ASSERT_FALSE(set.plans.empty());
        expect_right(set.plans[random.pick(set.plans.size())], random);
    }
    // More tiles than any GPU has SMs: the ring runs on into the next tile.
    GatherPlan many{random.whole(3000, 4000), random.whole(1, 900), 8 * random.whole(100, 120), 8 * random.whole(1, 20)};
    const PlanSet set = toy.derive(machine, {&toy, Own::of(many)}, toy.request(given_of(toy, "--tile-m 64 --tile-n 64"), {.top = 1}));
    expect_right(set.plans.front(), random);
}

}  // namespace
}  // namespace rooftile
