#include "rooftile/fuse/device/tensors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "kernels/measure/numbers.hpp"
#include "rooftile/expression/evaluate.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t pattern_elements = 1024 * 1024 - 3;  // prime: no rows repeat each other

}  // namespace

std::vector<char> elements_of_values(std::span<const double> values, Element element) {
    const size_t size = size_t(bytes_of(element));
    std::vector<char> out(values.size() * size);
    for (size_t i = 0; i < values.size(); ++i) {
        const double v = values[i];
        std::uint64_t bits = 0;
        if (element == Element::fp32) bits = std::bit_cast<std::uint32_t>(float(v));
        else if (is_floating(element)) bits = round_to_bits(v, type_of(element));
        else bits = std::uint64_t(std::int64_t(v));
        std::memcpy(out.data() + i * size, &bits, size);  // little-endian, as the GPU
    }
    return out;
}

std::vector<double> values_of_elements(const char* bytes, std::int64_t count, Element element) {
    const size_t size = size_t(bytes_of(element));
    std::vector<double> out(static_cast<size_t>(count));
    for (size_t i = 0; i < out.size(); ++i) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, bytes + i * size, size);
        if (element == Element::fp32) out[i] = std::bit_cast<float>(std::uint32_t(bits));
        else if (is_floating(element)) out[i] = value_of_bits(unsigned(bits), type_of(element));
        else out[i] = double(std::int64_t(bits));
    }
    return out;
}

std::vector<double> random_values(std::int64_t count, Element element, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> out(static_cast<size_t>(count));
    for (double& v : out)
        v = element == Element::boolean ? double(random() & 1) : rounded_to(normal(random), element);
    return out;
}

std::span<const VerifyCase> FuseReference::cases() const {
    static constexpr VerifyCase all[] = {VerifyCase::random};
    return all;
}

FuseReference::FuseReference(const ExpressionGraph& problem, std::int64_t elements)
    : problem_(problem), elements_(elements) {}

void FuseReference::fill(Stream stream, VerifyCase, std::uint64_t seed, TensorPointers tensors) const {
    for (size_t i = 0; i < problem_.inputs.size(); ++i) {
        const GraphNode& n = problem_.nodes[size_t(problem_.inputs[i])];
        const std::int64_t bytes = bytes_of(n), count = std::min(pattern_elements, elements_of(n.shape));
        if (bytes == 0) continue;
        const std::vector<char> pattern =
            elements_of_values(random_values(count, n.element, seed + i), n.element);
        const auto to = reinterpret_cast<DevicePointer>(tensors[i]);
        synchronize(stream);
        copy_to_device(to, pattern.data(), pattern.size());
        // What is there already doubles until the tensor is full.
        for (auto filled = std::int64_t(pattern.size()); filled < bytes;) {
            const std::int64_t more = std::min(filled, bytes - filled);
            copy_on_device(to + DevicePointer(filled), to, size_t(more), stream);
            filled += more;
        }
    }
}

namespace {

std::vector<double> read(const void* tensor, Element element, std::int64_t first, std::int64_t count) {
    std::vector<char> bytes(size_t(count * bytes_of(element)));
    if (!bytes.empty())
        copy_to_host(bytes.data(),
                     reinterpret_cast<DevicePointer>(tensor) + DevicePointer(first * bytes_of(element)),
                     bytes.size());
    return values_of_elements(bytes.data(), count, element);
}

/// Rows of the loop to look at: the first, the last and some between, in order.
std::vector<std::int64_t> sample_rows(std::int64_t rows, std::int64_t count, std::uint64_t seed) {
    std::vector<std::int64_t> out;
    if (rows <= count) {
        for (std::int64_t r = 0; r < rows; ++r) out.push_back(r);
        return out;
    }
    std::mt19937_64 random(seed);
    out = {0, rows - 1};
    while (std::int64_t(out.size()) < count) out.push_back(std::int64_t(random() % std::uint64_t(rows)));
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

void compare(CaseOutcome& check, const std::string& name, Element element, const std::vector<double>& got,
             const BoundedTensor& expected) {
    for (size_t i = 0; i < got.size(); ++i) {
        const Bounded& e = expected[i];
        ++check.checked;
        if (std::isinf(e.error)) {
            ++check.undecided;
            continue;
        }
        const double bound = e.error + (is_floating(element) ? ulp_of(e.value, element) : 0);
        if (std::isfinite(e.value) && std::isfinite(got[i]) && bound > 0) {
            const double ratio = std::fabs(got[i] - e.value) / bound;
            if (ratio > check.ratio) {
                check.ratio = ratio;
                check.bound = bound;
            }
        }
        if (!agrees(got[i], e, element) && check.failure.empty())
            check.failure = fmt::format("{}, sampled element {}: got {}, expected {} within {}", name, i,
                                        got[i], e.value, bound);
    }
}

}  // namespace

/// A tensor of the cut problem with rows of its own stands for rows of the whole; any other is whole.
std::vector<double> FuseReference::taken(int node, const std::optional<ExpressionGraph>& cut,
                                         const std::vector<std::int64_t>& sample, const ReadRange& read_range) const {
    const GraphNode& whole = problem_.nodes[size_t(node)];
    const GraphNode& part = (cut ? *cut : problem_).nodes[size_t(node)];
    if (!cut || whole.shape.size() < 2 || part.shape.size() != 2
        || elements_of(whole.shape) == elements_of(part.shape))
        return read_range(0, elements_of(whole.shape));
    std::vector<double> out;
    for (std::int64_t row : sample) {
        const std::vector<double> one = read_range(row * part.shape[1], part.shape[1]);
        out.insert(out.end(), one.begin(), one.end());
    }
    return out;
}

std::vector<CaseOutcome> FuseReference::judge(Stream stream, VerifyCase, std::uint64_t seed,
                                              std::span<const TensorPointers> results) const {
    synchronize(stream);
    std::vector<CaseOutcome> outcomes(results.size());
    std::int64_t most = 0, columns = 1;
    for (const GraphNode& n : problem_.nodes)
        if (elements_of(n.shape) >= most && !n.shape.empty()) {
            most = elements_of(n.shape);
            columns = std::max(columns, n.shape.back());
        }
    const std::int64_t rows = most / columns;
    std::vector<std::int64_t> sample;
    std::optional<ExpressionGraph> cut;
    if (most > elements_) {
        sample = sample_rows(rows, std::max<std::int64_t>(2, elements_ / columns), seed);
        cut = rows_of(problem_, std::int64_t(sample.size()));
        if (!cut || rows == 1) {
            for (CaseOutcome& outcome : outcomes)
                outcome.failure = fmt::format(
                    "not compared with fp64: {} elements in one row, or a reduction of them all", most);
            return outcomes;
        }
    }
    std::vector<std::vector<double>> inputs;
    for (size_t i = 0; i < problem_.inputs.size(); ++i)
        inputs.push_back(taken(problem_.inputs[i], cut, sample, [&](std::int64_t first, std::int64_t count) {
            return read(results[0][i], problem_.nodes[size_t(problem_.inputs[i])].element, first, count);
        }));
    const std::vector<BoundedTensor> expected = evaluate(cut ? *cut : problem_, inputs, sample);
    for (size_t r = 0; r < results.size(); ++r) {
        for (size_t o = 0; o < problem_.outputs.size(); ++o) {
            const int node = problem_.outputs[o].node;
            const Element element = problem_.nodes[size_t(node)].element;
            const auto got = taken(node, cut, sample, [&](std::int64_t first, std::int64_t count) {
                return read(results[r][problem_.inputs.size() + o], element, first, count);
            });
            compare(outcomes[r], problem_.outputs[o].name, element, got, expected[o]);
        }
        outcomes[r].right = outcomes[r].failure.empty();
    }
    return outcomes;
}

}  // namespace rooftile
