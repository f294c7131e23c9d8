#include "rooftile/measure/composed.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>

#include "rooftile/core/arena.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/runtime/kernel_codes.hpp"

namespace rooftile {
namespace {

constexpr std::size_t max_tensors = 64;  // of a part: a launch allocates nothing

/// Where a part's tensor is: a tensor of the plan, or a place in its workspace.
struct Place {
    std::optional<std::size_t> tensor;
    std::size_t offset = 0;
};

class Composed final : public Runnable, public SeveralKernels {
  public:
    Composed(const Plan& plan, std::vector<CompiledKernel> parts) : tensors_(plan.operation->tensors(plan.problem)), parts_(std::move(parts)) {
        std::vector<std::int64_t> workspaces;
        for (const CompiledKernel& part : parts_) workspaces.push_back(std::int64_t(part.workspace_bytes()));
        arena_ = arena_of(plan, workspaces);
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            places_.emplace_back();
            for (const Wire& wire : plan.wires.at(i)) places_.back().push_back(place_of(wire));
            if (places_.back().size() > max_tensors) throw RequestError(fmt::format("part {} has {} tensors; at most {} are taken here", i + 1, places_.back().size(), max_tensors));
        }
    }

    KernelCode code() const override {
        KernelCode code = parts_.front().code();
        for (std::size_t i = 1; i < parts_.size(); ++i) {
            const KernelCode& other = parts_[i].code();
            code.name += ", then " + other.name;
            if (code.source.empty()) code.source = other.source;
            code.from_cache = code.from_cache && other.from_cache;
            code.compile_seconds += other.compile_seconds;
        }
        return code;
    }
    std::vector<KernelCode> codes() const override {
        std::vector<KernelCode> all;
        for (const CompiledKernel& part : parts_)
            for (KernelCode& code : codes_of(part)) all.push_back(std::move(code));
        return all;
    }
    std::string ptx() const override {
        std::string all;
        for (const CompiledKernel& part : parts_) all += part.ptx();
        return all;
    }
    std::size_t workspace_bytes() const override { return std::size_t(arena_.bytes); }
    std::int64_t shared_bytes() const override {
        std::int64_t most = 0;
        for (const CompiledKernel& part : parts_) most = std::max(most, part.shared_bytes());
        return most;
    }
    void load() const override {
        for (const CompiledKernel& part : parts_) part.load();
    }

    void launch(Stream stream, std::span<void* const> tensors, void* workspace) const override {
        if (tensors.size() != tensors_.size()) throw RequestError(fmt::format("{} tensors are given; there are {}", tensors.size(), tensors_.size()));
        for (std::size_t i = 0; i < tensors.size(); ++i)
            if (!tensors[i]) throw RequestError(fmt::format("the pointer to {} is null", tensors_[i].name));
        if (arena_.bytes > 0 && !workspace) throw RequestError(fmt::format("the workspace is null; {} B pass between kernels there", arena_.bytes));
        char* const base = static_cast<char*>(workspace);
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            std::array<void*, max_tensors> of_part;
            for (std::size_t t = 0; t < places_[i].size(); ++t) {
                const Place& place = places_[i][t];
                of_part[t] = (place.tensor ? static_cast<char*>(tensors[*place.tensor]) : base) + place.offset;
            }
            parts_[i].runnable().launch(stream, {of_part.data(), places_[i].size()}, parts_[i].workspace_bytes() > 0 ? base + arena_.parts[i] : nullptr);
        }
    }

  private:
    Place place_of(const Wire& wire) const {
        const auto own = std::ranges::find(tensors_, wire.tensor, &TensorInfo::name);
        if (own != tensors_.end()) return {std::size_t(own - tensors_.begin()), std::size_t(wire.offset_bytes)};
        const auto between = arena_.between.find(wire.tensor);
        if (between == arena_.between.end()) throw RequestError("no part stores " + wire.tensor + ", which a later one reads");
        return {std::nullopt, std::size_t(between->second + wire.offset_bytes)};
    }

    std::vector<TensorInfo> tensors_;
    std::vector<CompiledKernel> parts_;
    std::vector<std::vector<Place>> places_;
    Arena arena_;
};

}  // namespace

std::shared_ptr<const Runnable> composed(const Plan& plan, std::vector<CompiledKernel> parts) {
    return std::make_shared<const Composed>(plan, std::move(parts));
}

std::shared_ptr<const Runnable> compiled_parts(const Plan& plan, const CompileOptions& options) {
    std::vector<CompiledKernel> parts;
    for (const Plan& part : plan.parts) parts.push_back(compile(part, options));
    return composed(plan, std::move(parts));
}

}  // namespace rooftile
