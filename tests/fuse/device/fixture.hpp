// What tests of fused kernels on a GPU begin with: a problem's values, put into device memory once, and what its
// results may be, for any number of launches.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "rooftile/expression/element_bits.hpp"
#include "rooftile/expression/expression.hpp"
#include "rooftile/fuse/device/kernel.hpp"
#include "rooftile/fuse/staging.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/measure/expression_reference.hpp"
#include "tests/device/device.hpp"

namespace rooftile {

/// A problem in device memory; its tensors begin `shift` bytes behind a multiple of 256, among bytes that nobody may write. The
/// reference is evaluated there, too.
class FuseTrial {
  public:
    using Values = std::vector<std::vector<double>>;  ///< of each input

    /// On given values.
    FuseTrial(ExpressionGraph problem, const Values& inputs, std::int64_t shift = 0)
        : FuseTrial(shift, std::move(problem)) {
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const Element element = input(i).element;
            std::vector<char> bytes = elements_of_values(inputs[i], element);
            put(inputs_[i], bytes);
            reverse_elements(bytes, std::size_t(bytes_of(element)));
            put(others_[i], bytes);
        }
    }
    /// On random ones, in the special case with what is not finite and near the types' ends in some rows, in the shifted one around a large mean.
    FuseTrial(ExpressionGraph problem, std::uint64_t seed, std::int64_t shift = 0,
              VerifyCase which = VerifyCase::random)
        : FuseTrial(shift, std::move(problem)) {
        limit_ = undecided_limit(problem_, which);
        for (auto* tensors : {&others_, &inputs_}) {
            std::vector<void*> to;
            for (const DeviceBuffer& i : *tensors) to.push_back(begin(i));
            reference_.fill(nullptr, which, seed++, to);
        }
    }

    const ExpressionGraph& problem() const { return problem_; }
    bool has(VerifyCase which) const { return std::ranges::count(reference_.cases(), which) > 0; }

    /// Where values are given of which the reference cannot bound the result.
    void allow_undecided(double share) { limit_.share = share; }

    /// The bytes of every output. The second launch finds the workspace as the first left it, which saw other values.
    /// `counter`: what the workspace begins with, before each launch where that is not 0, which it ends with; none: launches
    /// without.
    std::vector<std::vector<char>> run(const FusePlan& plan, std::optional<unsigned> counter = 0) const {
        const FuseKernel kernel = compile(plan);
        launch(kernel, counter);
        std::vector<std::vector<char>> results;
        for (std::size_t o = 0; o < outputs_.size(); ++o) results.push_back(read(o, kernel));
        return results;
    }

    void expect_right(const FusePlan& plan) {
        const FuseKernel kernel = compile(plan);
        launch(kernel, 0);
        std::vector<const void*> in;
        std::vector<void*> out;
        for (const DeviceBuffer& i : inputs_) in.push_back(begin(i));
        for (std::size_t o = 0; o < outputs_.size(); ++o) {
            expect_guarded(o, kernel);
            out.push_back(begin(outputs_[o]));
        }
        const std::span<void* const> results[] = {out};
        const CaseOutcome outcome = reference_.judge(nullptr, in, results, limit_).at(0);
        const FuseConfig& c = plan.config;
        EXPECT_TRUE(outcome.right) << problem_.text << "\nplan " << plan.rank << " " << name_of(c.row_storage)
                                   << " of " << c.threads_per_row << " x " << c.cluster << ", vectors of "
                                   << c.vector_width << ", " << c.vectors_per_thread
                                   << " a thread: " << outcome.failure;
    }

  private:
    FuseTrial(std::int64_t shift, ExpressionGraph problem)
        : problem_(std::move(problem)),
          reference_(problem_, Driver::instance().device(0).arch()),
          shift_(shift) {
        for (std::size_t i = 0; i < problem_.inputs.size(); ++i)
            for (auto* tensors : {&inputs_, &others_}) {
                const DeviceBuffer& made =
                    tensors->emplace_back(std::size_t(bytes_of(input(i))) + 2 * guard + std::size_t(shift));
                fill_bytes(made.address(), 0xff, made.bytes(), nullptr);  // NaN beside it
            }
        for (std::size_t o = 0; o < problem_.outputs.size(); ++o)
            outputs_.emplace_back(std::size_t(bytes_of(output(o))) + 2 * guard + std::size_t(shift));
    }

    void launch(const FuseKernel& kernel, std::optional<unsigned> counter) const {
        const DeviceBuffer workspace(std::max<std::size_t>(16, kernel.workspace_bytes()));
        fill_bytes(workspace.address(), 0, workspace.bytes(), nullptr);
        std::vector<void*> out;
        for (const DeviceBuffer& o : outputs_) out.push_back(begin(o));
        for (const std::vector<DeviceBuffer>* tensors : {&others_, &inputs_}) {
            std::vector<const void*> in;
            for (const DeviceBuffer& i : *tensors) in.push_back(begin(i));
            for (const DeviceBuffer& o : outputs_) fill_bytes(o.address(), 0xff, o.bytes(), nullptr);
            if (counter.value_or(0) > 0) copy_to_device(workspace.address(), &*counter, sizeof(*counter));
            kernel.launch(nullptr, in, out, counter ? workspace.data() : nullptr);
        }
        synchronize(Stream(nullptr));
        unsigned left = 0;
        copy_to_host(&left, workspace.address(), sizeof(left));
        EXPECT_EQ(left, 0u) << kernel.text();
    }

    const GraphNode& input(std::size_t i) const { return problem_.nodes[std::size_t(problem_.inputs[i])]; }
    const GraphNode& output(std::size_t o) const {
        return problem_.nodes[std::size_t(problem_.outputs[o].node)];
    }
    /// Behind as many bytes as lie behind its end at least.
    void* begin(const DeviceBuffer& buffer) const {
        return reinterpret_cast<void*>(buffer.address() + DevicePointer(guard + shift_));
    }
    void put(const DeviceBuffer& tensor, const std::vector<char>& bytes) const {
        if (!bytes.empty())
            copy_to_device(reinterpret_cast<DevicePointer>(begin(tensor)), bytes.data(), bytes.size());
    }

    static void reverse_elements(std::vector<char>& bytes, std::size_t size) {
        std::reverse(bytes.begin(), bytes.end());
        for (auto at = bytes.begin(); at != bytes.end(); at += std::ptrdiff_t(size))
            std::reverse(at, at + std::ptrdiff_t(size));
    }

    std::vector<char> read(std::size_t o, const FuseKernel& kernel) const {
        expect_guarded(o, kernel);
        std::vector<char> bytes(std::size_t(bytes_of(output(o))));
        copy_to_host(bytes.data(), reinterpret_cast<DevicePointer>(begin(outputs_[o])), bytes.size());
        return bytes;
    }

    /// Nothing beside an output was written.
    void expect_guarded(std::size_t o, const FuseKernel& kernel) const {
        const DeviceBuffer& buffer = outputs_[o];
        const std::size_t before = guard + std::size_t(shift_),
                          end = before + std::size_t(bytes_of(output(o)));
        for (const auto& [from, to] : {std::pair(std::size_t(0), before), std::pair(end, buffer.bytes())}) {
            std::vector<char> bytes(to - from);
            copy_to_host(bytes.data(), buffer.address() + DevicePointer(from), bytes.size());
            const auto written = std::count_if(bytes.begin(), bytes.end(), [](char byte) {
                return static_cast<unsigned char>(byte) != 0xff;
            });
            EXPECT_EQ(written, 0) << "bytes " << (from == 0 ? "before " : "behind ")
                                  << problem_.outputs[o].name << " are written\n"
                                  << kernel.text();
        }
    }

    static constexpr std::size_t guard = 256;
    ExpressionGraph problem_;
    ExpressionReference reference_;
    UndecidedLimit limit_;
    std::int64_t shift_;
    std::vector<DeviceBuffer> inputs_, others_, outputs_;  ///< others_: of the first launch
};

class FuseTest : public DeviceTest {
  protected:
    static const Machine& machine() {
        static const Machine live = live_machine(0).machine;
        return live;
    }

    static ExpressionGraph made(std::string_view text, const std::vector<std::string>& tensors) {
        std::vector<TensorDeclaration> declared;
        for (const std::string& t : tensors) declared.push_back(tensor_declaration(t));
        return expression_graph(text, declared);
    }

    /// Each number one of a million, drawn anew: no sums of rows are alike.
    static FuseTrial::Values random_inputs(const ExpressionGraph& p, std::uint64_t seed) {
        constexpr std::int64_t different = 1048576;
        FuseTrial::Values inputs;
        for (int i : p.inputs) {
            const GraphNode& n = p.nodes[std::size_t(i)];
            const std::int64_t count = elements_of(n.shape);
            std::vector<double> values = random_values(std::min(count, different), n.element, seed++);
            values.resize(std::size_t(count));
            std::minstd_rand draw(std::uint32_t(seed + 1));
            for (std::int64_t at = different; at < count; ++at)
                values[std::size_t(at)] = values[draw() % different];
            inputs.push_back(std::move(values));
        }
        return inputs;
    }

    /// The best launches that a request allows; none where there are none.
    static std::vector<FusePlan> plans_of(const ExpressionGraph& p, const FuseRequest& request) {
        auto outcome = derive(machine(), p, request);
        auto* plans = std::get_if<FusePlans>(&outcome);
        return plans ? std::move(plans->plans) : std::vector<FusePlan>{};
    }

    /// Every plan of a problem, or the first `most`; how many of them satisfied `wanted`. What runs is said
    /// before it does: a kernel that does not end leaves its name.
    static int check(std::string_view text, const std::vector<std::string>& tensors, int most = 4,
                     FuseRequest request = {}, const std::function<bool(const FuseConfig&)>& wanted = {},
                     int times = 1) {
        const ExpressionGraph p = made(text, tensors);
        request.top = most;
        const std::vector<FusePlan> plans = plans_of(p, request);
        EXPECT_FALSE(plans.empty()) << text << " of " << tensors[0] << " has no plan";
        if (plans.empty()) return 0;
        FuseTrial trial(p, 11);
        std::optional<FuseTrial> shifted;
        if (trial.has(VerifyCase::shifted)) shifted.emplace(p, 12, 0, VerifyCase::shifted);
        int found = 0;
        for (const FusePlan& plan : plans) {
            const FuseConfig& c = plan.config;
            if (c.row_storage == RowStorage::pipelined || grid_resident_rows(c))
                std::cerr << fmt::format(
                    "  {} of {}: {} CTAs a row reduce in a {}, {} x {} vectors, {} slots{}\n", text,
                    tensors[0], c.cluster, reduce_scope_of(c), c.threads_per_row, c.vectors_per_thread,
                    c.stages, c.early_weights ? ", weights kept" : "");
            for (int i = 0; i < times; ++i) trial.expect_right(plan);
            if (shifted) shifted->expect_right(plan);
            found += wanted && wanted(c);
        }
        return found;
    }
};

}  // namespace rooftile
