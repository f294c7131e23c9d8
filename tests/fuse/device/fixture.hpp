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
#include <string>
#include <vector>

#include "rooftile/fuse/device/kernel.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/expression/element_bits.hpp"
#include "rooftile/fuse/staging.hpp"
#include "rooftile/expression/evaluate.hpp"
#include "rooftile/expression/expression.hpp"
#include "tests/accepted.hpp"
#include "tests/device/device.hpp"

namespace rooftile {

/// A problem on given values; its tensors begin `shift` bytes behind a multiple of 256.
class FuseTrial {
  public:
    using Values = std::vector<std::vector<double>>;  ///< of each input

    FuseTrial(ExpressionGraph problem, Values inputs, std::int64_t shift = 0)
        : problem_(std::move(problem)), values_(std::move(inputs)), shift_(shift) {
        for (std::size_t i = 0; i < values_.size(); ++i) {
            const Element element = input(i).element;
            std::vector<char> bytes = elements_of_values(values_[i], element);
            inputs_.push_back(tensor(bytes));
            reverse_elements(bytes, std::size_t(bytes_of(element)));
            backwards_.push_back(tensor(bytes));
        }
        for (const GraphOutput& o : problem_.outputs)
            outputs_.emplace_back(std::size_t(bytes_of(problem_.nodes[std::size_t(o.node)])) + 512);
    }

    const ExpressionGraph& problem() const { return problem_; }

    /// The bytes of every output. The second launch finds the workspace as the first left it, which saw the same
    /// values in another order.
    /// `counter`: what the workspace begins with, before each launch where that is not 0, which it ends with; none: launches
    /// without.
    std::vector<std::vector<char>> run(const FusePlan& plan, std::optional<unsigned> counter = 0) const {
        const FuseKernel kernel = compile(plan);
        const DeviceBuffer workspace(std::max<std::size_t>(16, kernel.workspace_bytes()));
        fill_bytes(workspace.address(), 0, workspace.bytes(), nullptr);
        std::vector<void*> out;
        for (const DeviceBuffer& o : outputs_) out.push_back(begin(o));
        for (const std::vector<DeviceBuffer>* order : {&backwards_, &inputs_}) {
            std::vector<const void*> in;
            for (const DeviceBuffer& i : *order) in.push_back(begin(i));
            for (const DeviceBuffer& o : outputs_) fill_bytes(o.address(), 0xff, o.bytes(), nullptr);
            if (counter.value_or(0) > 0) copy_to_device(workspace.address(), &*counter, sizeof(*counter));
            kernel.launch(nullptr, in, out, counter ? workspace.data() : nullptr);
        }
        synchronize(Stream(nullptr));
        unsigned left = 0;
        copy_to_host(&left, workspace.address(), sizeof(left));
        EXPECT_EQ(left, 0u) << kernel.text();
        std::vector<std::vector<char>> results;
        for (std::size_t o = 0; o < out.size(); ++o) results.push_back(read(o, out[o], kernel));
        return results;
    }

    void expect_right(const FusePlan& plan) {
        if (accepted_.empty()) {
            std::vector<BoundedTensor> expected = evaluate(problem_, values_);
            for (std::size_t o = 0; o < expected.size(); ++o)
                accepted_.emplace_back(std::move(expected[o]), output(o).element);
        }
        const std::vector<std::vector<char>> got = run(plan);
        constexpr std::size_t max_told = 3;
        std::size_t told = 0;
        for (std::size_t o = 0; o < got.size(); ++o)
            for (const std::size_t i :
                 accepted_[o].wrong(got[o].data(), max_told - std::min(max_told, told))) {
                ++told;
                const FuseConfig& c = plan.config;
                ADD_FAILURE() << problem_.text << "\nplan " << plan.rank << " " << name_of(c.row_storage)
                              << " of " << c.threads_per_row << " x " << c.cluster << ", vector_width "
                              << c.vector_width << ", " << problem_.outputs[o].name << " at " << i << ": got "
                              << accepted_[o].value(got[o].data(), i) << ", expected "
                              << accepted_[o].expected(i).value << " within "
                              << accepted_[o].expected(i).error;
            }
    }

  private:
    const GraphNode& input(std::size_t i) const { return problem_.nodes[std::size_t(problem_.inputs[i])]; }
    const GraphNode& output(std::size_t o) const {
        return problem_.nodes[std::size_t(problem_.outputs[o].node)];
    }
    void* begin(const DeviceBuffer& buffer) const {
        return reinterpret_cast<void*>(buffer.address() + DevicePointer(shift_));
    }

    DeviceBuffer tensor(const std::vector<char>& bytes) const {
        DeviceBuffer buffer(bytes.size() + 512);
        if (!bytes.empty())
            copy_to_device(buffer.address() + DevicePointer(shift_), bytes.data(), bytes.size());
        return buffer;
    }

    static void reverse_elements(std::vector<char>& bytes, std::size_t size) {
        std::reverse(bytes.begin(), bytes.end());
        for (auto at = bytes.begin(); at != bytes.end(); at += std::ptrdiff_t(size))
            std::reverse(at, at + std::ptrdiff_t(size));
    }

    /// An output, after a look at what lies behind it.
    std::vector<char> read(std::size_t o, void* from, const FuseKernel& kernel) const {
        const auto size = std::ptrdiff_t(bytes_of(output(o)));
        std::vector<char> bytes(std::size_t(size) + 16);
        copy_to_host(bytes.data(), reinterpret_cast<DevicePointer>(from), bytes.size());
        const auto written = [](char byte) { return static_cast<unsigned char>(byte) != 0xff; };
        const auto behind = std::find_if(bytes.begin() + size, bytes.end(), written);
        EXPECT_TRUE(behind == bytes.end())
            << problem_.outputs[o].name << " has " << size << " bytes; byte " << behind - bytes.begin()
            << " is written too, " << std::count_if(behind, bytes.end(), written) << " of "
            << bytes.end() - behind << " from there on\n"
            << kernel.text();
        return bytes;
    }

    ExpressionGraph problem_;
    Values values_;
    std::int64_t shift_;
    std::vector<DeviceBuffer> inputs_, backwards_, outputs_;
    std::vector<Accepted> accepted_;  ///< of each output, once somebody asks
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
        FuseTrial trial(p, random_inputs(p, 11));
        int found = 0;
        for (const FusePlan& plan : plans) {
            const FuseConfig& c = plan.config;
            if (c.row_storage == RowStorage::pipelined || grid_resident_rows(c))
                std::cerr << fmt::format(
                    "  {} of {}: {} CTAs a row reduce in a {}, {} x {} vectors, {} slots{}\n", text,
                    tensors[0], c.cluster, reduce_scope_of(c), c.threads_per_row, c.vectors_per_thread,
                    c.stages, c.early_weights ? ", weights kept" : "");
            for (int i = 0; i < times; ++i) trial.expect_right(plan);
            found += wanted && wanted(c);
        }
        return found;
    }
};

}  // namespace rooftile
