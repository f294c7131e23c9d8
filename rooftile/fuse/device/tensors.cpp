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

constexpr std::int64_t alignment = 256;
constexpr std::int64_t pattern_elements = 1024 * 1024 - 3;  // prime: no rows repeat each other

std::int64_t padded(std::int64_t bytes) {
    return std::max(alignment, (bytes + alignment - 1) / alignment * alignment);
}

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

std::int64_t FuseSets::set_bytes(const ExpressionGraph& problem) {
    std::int64_t bytes = 0;
    for (int i : problem.inputs) bytes += padded(bytes_of(problem.nodes[size_t(i)]));
    for (const GraphOutput& o : problem.outputs) bytes += padded(bytes_of(problem.nodes[size_t(o.node)]));
    return bytes;
}

FuseSets::FuseSets(const ExpressionGraph& problem, std::int64_t sets, std::uint64_t seed)
    : problem_(problem), sets_(sets), buffer_(size_t(set_bytes(problem) * sets)) {
    DevicePointer at = buffer_.address();
    for (std::int64_t set = 0; set < sets; ++set) {
        for (size_t i = 0; i < problem.inputs.size(); ++i) {
            inputs_.push_back(reinterpret_cast<const void*>(at));
            at += DevicePointer(padded(bytes_of(problem.nodes[size_t(problem.inputs[i])])));
        }
        for (const GraphOutput& o : problem.outputs) {
            outputs_.push_back(reinterpret_cast<void*>(at));
            at += DevicePointer(padded(bytes_of(problem.nodes[size_t(o.node)])));
        }
    }
    fill_bytes(buffer_.address(), 0xff, buffer_.bytes(), nullptr);  // what no kernel writes shows
    for (size_t i = 0; i < problem.inputs.size(); ++i) {
        const GraphNode& n = problem.nodes[size_t(problem.inputs[i])];
        const std::int64_t bytes = bytes_of(n), count = std::min(pattern_elements, elements_of(n.shape));
        const std::vector<char> pattern =
            elements_of_values(random_values(count, n.element, seed + i), n.element);
        for (std::int64_t set = 0; set < sets && bytes > 0; ++set) {
            const auto to = reinterpret_cast<DevicePointer>(this->inputs(set)[i]);
            if (set > 0) {
                copy_on_device(to, reinterpret_cast<DevicePointer>(inputs_[i]), size_t(bytes), nullptr);
                continue;
            }
            copy_to_device(to, pattern.data(), pattern.size());
            // What is there already doubles until the tensor is full.
            for (auto filled = std::int64_t(pattern.size()); filled < bytes;) {
                const std::int64_t more = std::min(filled, bytes - filled);
                copy_on_device(to + DevicePointer(filled), to, size_t(more), nullptr);
                filled += more;
            }
        }
    }
    synchronize(Stream(nullptr));
}

std::span<const void* const> FuseSets::inputs(std::int64_t set) const {
    const size_t count = problem_.inputs.size();
    return {inputs_.data() + size_t(set) * count, count};
}
std::span<void* const> FuseSets::outputs(std::int64_t set) const {
    const size_t count = problem_.outputs.size();
    return {outputs_.data() + size_t(set) * count, count};
}

void FuseSets::poison_outputs() const {
    const std::span<void* const> all = outputs(0);
    for (size_t o = 0; o < all.size(); ++o) {
        const GraphNode& n = problem_.nodes[size_t(problem_.outputs[o].node)];
        fill_bytes(reinterpret_cast<DevicePointer>(all[o]), 0xff, size_t(bytes_of(n)), nullptr);
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

void compare(Verification& check, const std::string& name, Element element, const std::vector<double>& got,
             const BoundedTensor& expected) {
    for (size_t i = 0; i < got.size(); ++i) {
        const Bounded& e = expected[i];
        ++check.checked_elements;
        if (std::isinf(e.error)) {
            ++check.undecided_elements;
            continue;
        }
        const double bound = e.error + (is_floating(element) ? ulp_of(e.value, element) : 0);
        if (std::isfinite(e.value) && std::isfinite(got[i]) && bound > 0) {
            const double ratio = std::fabs(got[i] - e.value) / bound;
            if (ratio > check.max_error) {
                check.max_error = ratio;
                check.bound = bound;
            }
        }
        if (!agrees(got[i], e, element) && check.failure.empty())
            check.failure = fmt::format("{}, sampled element {}: got {}, expected {} within {}", name, i,
                                        got[i], e.value, bound);
    }
}

}  // namespace

std::vector<double> FuseSets::read_input(int input, std::int64_t first, std::int64_t count) const {
    return read(inputs(0)[size_t(input)], problem_.nodes[size_t(problem_.inputs[size_t(input)])].element,
                first, count);
}
std::vector<double> FuseSets::read_output(int output, std::int64_t first, std::int64_t count) const {
    const GraphNode& n = problem_.nodes[size_t(problem_.outputs[size_t(output)].node)];
    return read(outputs(0)[size_t(output)], n.element, first, count);
}

FuseReference::FuseReference(const ExpressionGraph& problem, const FuseSets& sets, std::uint64_t seed,
                             std::int64_t elements)
    : problem_(problem) {
    std::int64_t most = 0, columns = 1;
    for (const GraphNode& n : problem.nodes)
        if (elements_of(n.shape) >= most && !n.shape.empty()) {
            most = elements_of(n.shape);
            columns = std::max(columns, n.shape.back());
        }
    const std::int64_t rows = most / columns;
    if (most > elements) {
        sample_ = sample_rows(rows, std::max<std::int64_t>(2, elements / columns), seed);
        cut_ = rows_of(problem, std::int64_t(sample_.size()));
        if (!cut_ || rows == 1) {
            why_not_ = fmt::format(
                "not compared with fp64: {} elements in one row, or a reduction of them all", most);
            return;
        }
    }
    std::vector<std::vector<double>> inputs;
    for (size_t i = 0; i < problem.inputs.size(); ++i)
        inputs.push_back(taken(problem.inputs[i], [&](std::int64_t first, std::int64_t count) {
            return sets.read_input(int(i), first, count);
        }));
    expected_ = evaluate(cut_ ? *cut_ : problem, inputs, sample_);
}

/// A tensor of the cut problem with rows of its own stands for rows of the whole; any other is whole.
std::vector<double> FuseReference::taken(int node, const ReadRange& read_range) const {
    const GraphNode& whole = problem_.nodes[size_t(node)];
    const GraphNode& part = (cut_ ? *cut_ : problem_).nodes[size_t(node)];
    if (!cut_ || whole.shape.size() < 2 || part.shape.size() != 2
        || elements_of(whole.shape) == elements_of(part.shape))
        return read_range(0, elements_of(whole.shape));
    std::vector<double> out;
    for (std::int64_t row : sample_) {
        const std::vector<double> one = read_range(row * part.shape[1], part.shape[1]);
        out.insert(out.end(), one.begin(), one.end());
    }
    return out;
}

Verification FuseReference::check(const FuseSets& sets) const {
    Verification check;
    check.failure = why_not_;
    if (!why_not_.empty()) return check;
    for (size_t o = 0; o < problem_.outputs.size(); ++o) {
        const int node = problem_.outputs[o].node;
        const auto got = taken(node, [&](std::int64_t first, std::int64_t count) {
            return sets.read_output(int(o), first, count);
        });
        compare(check, problem_.outputs[o].name, problem_.nodes[size_t(node)].element, got, expected_[o]);
    }
    check.random = check.failure.empty();
    return check;
}

}  // namespace rooftile
