#include "rooftile/c/nothing.hpp"

#include <algorithm>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/error.hpp"

namespace rooftile::c {
namespace {

bool is_empty(const TensorInfo& tensor) {
    return std::any_of(tensor.extents.begin(), tensor.extents.end(), [](const Extent& e) { return e.most == 0; });
}

/// Elements follow each other; an axis of none counts as one of 1, as everywhere.
void make_dense(TensorInfo& tensor) {
    std::int64_t dense = 1;
    for (std::size_t axis = tensor.extents.size(); axis-- > 0; dense *= std::max<std::int64_t>(1, tensor.extents[axis].most)) tensor.strides[axis] = dense;
    tensor.offset = 0;
}

/// Those without elements dense, with `size` for 0.
std::vector<TensorInfo> with_size(std::span<const TensorInfo> tensors, std::int64_t size) {
    std::vector<TensorInfo> out(tensors.begin(), tensors.end());
    for (TensorInfo& tensor : out) {
        if (!is_empty(tensor)) continue;
        for (Extent& extent : tensor.extents)
            if (extent.most == 0) extent = Extent::of(size);
        make_dense(tensor);
    }
    return out;
}

Given with_work(const Request& request, std::span<const TensorInfo> inputs, std::int64_t size) {
    Given given = request.operation->with_work(request.given, size);
    if (!inputs.empty()) request.operation->add_tensors(given, with_size(inputs, size));
    return given;
}

/// Numbers of `one` that are others in `other` are 0: they follow from the size that stands in.
void zero_what_differs(Json& one, const Json& other) {
    for (auto& [key, value] : one.items()) {
        if (!other.contains(key)) continue;
        if (value.is_object()) zero_what_differs(value, other.at(key));
        else if (value.is_number() && value != other.at(key)) value = 0;
    }
}

std::size_t bytes_of(const TensorInfo& tensor) {
    return std::size_t((tensor.offset + spanned_elements(tensor)) * tensor.element_bits + 7) / 8;
}

/// By `size` in the place of 0; what differs where it is `another` one has no elements.
StandIn stand_in_of(const Request& request, std::span<const TensorInfo> inputs, std::int64_t size, std::int64_t another) {
    const Operation& operation = *request.operation;
    StandIn out{with_work(request, inputs, size), {}};
    const Problem problem = operation.problem(out.given), larger = operation.problem(with_work(request, inputs, another));
    Nothing& nothing = out.nothing;
    nothing.problem = problem_json(problem);
    zero_what_differs(nothing.problem, problem_json(larger));
    nothing.tensors = operation.tensors(problem);
    const std::vector<TensorInfo> others = operation.tensors(larger);
    for (std::size_t i = 0; i < nothing.tensors.size(); ++i) {
        TensorInfo& tensor = nothing.tensors[i];
        const std::size_t bytes = bytes_of(tensor);
        for (std::size_t axis = 0; axis < tensor.extents.size(); ++axis)
            if (tensor.extents[axis].most != others[i].extents[axis].most) tensor.extents[axis] = Extent::of(0);
        const bool input = tensor.role == TensorRole::in;
        if (!input && is_empty(tensor)) make_dense(tensor);
        nothing.zeros.push_back(input && is_empty(tensor));
        if (nothing.zeros.back()) nothing.zero_bytes = std::max(nothing.zero_bytes, bytes);
        nothing.is_launched |= !input && !is_empty(tensor);
    }
    if (nothing.is_launched && !operation.zeros_serve(problem))
        throw RequestError("there is nothing to compute a result of that has elements");
    if (!nothing.is_launched) nothing.zero_bytes = 0;
    return out;
}

}  // namespace

std::optional<StandIn> stand_in(const Request& request, std::span<const TensorInfo> inputs) {
    if (std::none_of(inputs.begin(), inputs.end(), is_empty)
        && request.operation->with_work(request.given, 1).text() == request.given.text())
        return std::nullopt;
    // Rows of 16 elements are whole words of every type, some extents go in steps of up to 128, and others are bound to what else is given.
    constexpr std::int64_t sizes[] = {16, 128, 1}, another = 3 * 128;
    for (const std::int64_t size : sizes) {
        try {
            return stand_in_of(request, inputs, size, another);
        } catch (const RequestError&) {}
    }
    return std::nullopt;
}

}  // namespace rooftile::c
