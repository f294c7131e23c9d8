#include "rooftile/gemm/device/verify.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/core.h>

#include "rooftile/measure/product_verdict.hpp"

namespace rooftile {

CaseOutcome judge(std::span<const VerifyRecord> records, const GemmProblem& p, VerifyCase which) {
    return judge_product(records, {p.m, p.n, p.batch, p.c_type, error_model_of(p)}, which);
}

namespace {

/// Adds another product's outcome to that of those before.
void join(CaseOutcome& all, const CaseOutcome& more, std::int64_t product) {
    if (all.failure.empty() && !more.failure.empty()) all.failure = fmt::format("product {}: {}", product, more.failure);
    all.right = all.right && more.right;
    all.checked += more.checked, all.wrong += more.wrong, all.undecided += more.undecided;
    if (more.ratio > all.ratio) all.ratio = more.ratio, all.bound = more.bound;
}

}  // namespace

GemmReference::GemmReference(const MeasureKernels& kernels, const GemmProblem& problem, bool rounded)
    : kernels_(kernels),
      problem_(problem),
      rounded_(rounded),
      records_(sizeof(VerifyRecord) * static_cast<std::size_t>(kernels.verify_ctas() * verify_max)) {
    if (problem.groups) {
        const std::vector<std::int32_t> offsets = problem.groups->offsets();
        offsets_ = DeviceBuffer(offsets.size() * sizeof(offsets[0]));
        copy_to_device(offsets_.address(), offsets.data(), offsets_.bytes());
        synchronize(Stream(nullptr));  // a copy from pageable memory may return before it has arrived
    }
    if (problem.is_quantised()) {
        packed_ = std::make_unique<QuantisedReference>(problem);
        weights_ = DeviceBuffer(std::size_t(packed_->dequantised_bytes(Type::fp32)));
    }
    if (problem.image_is_b()) image_ = std::make_unique<UnrolledImage>(*problem.image, UnrolledImage::channels_together(*problem.image), UnrolledImage::Columns::one_tap);
    else if (problem.image) {  // n-major filters have a line for each channel's tap
        ImageOperand words = *problem.image;  // of 16 bits: two channels of 8 are one
        words.channels = words.channels * bytes_of(problem.a_type) / 2;
        const bool in_order = problem.b_major == Major::k;
        image_ = std::make_unique<UnrolledImage>(words, words.channels, in_order ? UnrolledImage::Columns::taps : UnrolledImage::Columns::reversed);
    }
    if (!problem.epilogue) return;
    epilogue_ = std::make_unique<ExpressionReference>(problem.epilogue->graph,
                                                      Driver::instance().device(current_device()).arch());
    std::vector<std::int64_t> pitches(problem.results(), problem.result_n());
    pitches.front() = problem.ldc;
    epilogue_->set_result_pitches(std::move(pitches));
    if (is_fp8(problem.c_type)) epilogue_->set_stored(problem.c_type);
}

std::span<const VerifyCase> GemmReference::cases() const {
    static constexpr VerifyCase all[] = {VerifyCase::exact, VerifyCase::random, VerifyCase::special};
    return all;
}

void GemmReference::fill(Stream stream, VerifyCase which, std::uint64_t seed, TensorPointers tensors) const {
    const Fill fill = which == VerifyCase::exact ? Fill::integer : Fill::normal;
    if (problem_.groups) copy_on_device(reinterpret_cast<DevicePointer>(tensors[2]), offsets_.address(), offsets_.bytes(), stream);
    if (epilogue_) {
        // The first inputs are sums, which nobody fills; whole numbers are asked of A and B alone.
        constexpr std::uint64_t apart = 0x9e3779b97f4a7c15ull;  // from the numbers of A and B
        epilogue_->set_made_inputs(std::vector<MadeRows>(problem_.epilogue->sums(), [](Stream, std::int64_t, std::int64_t, Bounded*) {}));
        const bool differ = std::ranges::any_of(problem_.epilogue->operands, &EpilogueOperand::by_product);
        const std::int64_t products = problem_.groups && !differ ? 1 : problem_.epilogue->batch;
        for (std::int64_t product = 0; product < products; ++product) {  // of what all share the last fill stays
            std::vector<void*> inputs;
            for (const void* input : operands_of(tensors, product)) inputs.push_back(const_cast<void*>(input));
            epilogue_->fill(stream, which == VerifyCase::exact ? VerifyCase::random : which, (seed + std::uint64_t(product)) ^ apart, inputs);
        }
    }
    if (problem_.block_scales())
        for (const bool of_b : {false, true})
            kernels_.fill(stream, scale_fill(of_b ? problem_.b_scales() : problem_.a_scales(), of_b, tensors[problem_.first_scale() + (of_b ? 1 : 0)], fill, seed));
    if (image_) fill_image(stream, fill, seed, tensors);
    for (const Operand operand : {Operand::a, Operand::b}) {
        if (image_) break;
        if (packed_ && operand == Operand::b) {
            packed_->fill(stream, reinterpret_cast<DevicePointer>(tensors[1]), which == VerifyCase::exact, seed);
            continue;
        }
        const auto data = reinterpret_cast<DevicePointer>(tensors[static_cast<std::size_t>(operand)]);
        const OperandBatch batch = batch_of(problem_, operand);
        for (std::int64_t i = 0; i < batch.matrices; ++i) {
            const MatrixView view = operand_view(problem_, operand, data + DevicePointer(i * batch.stride * bytes_of(operand == Operand::a ? problem_.a_type : problem_.b_type)));
            kernels_.fill(stream, fill_arguments(problem_, operand, view, fill, seed, i));
        }
    }
    if (which != VerifyCase::special) return;
    for (const InjectedValue& injected : special_values(problem_, seed)) {
        const auto data = reinterpret_cast<DevicePointer>(tensors[static_cast<std::size_t>(injected.operand)]);
        const std::int64_t offset = injected.matrix * batch_of(problem_, injected.operand).stride
                                    + (problem_.image && problem_.image_is_b() == (injected.operand == Operand::b) ? injected.row * problem_.image->channels + injected.column
                                                                                        : offset_of(problem_, injected.operand, injected.row, injected.column));
        const int bytes = bytes_of(injected.operand == Operand::a ? problem_.a_type : problem_.b_type);
        kernels_.inject(stream, data + DevicePointer(bytes * offset), injected.bits, bytes);
    }
}

void GemmReference::fill_image(Stream stream, Fill fill, std::uint64_t seed, TensorPointers tensors) const {
    const ImageOperand& image = *problem_.image;
    GemmProblem filled = problem_;
    filled.k = 2 * problem_.k;  // each tap begins anew where wide numbers stand, so that there are up to twice as many
    const std::int64_t taps = image.taps(), pixels = image.pixels();
    const MatrixView of_image{nullptr, pixels, image.channels, image.channels};
    MatrixView views[] = {of_image, {nullptr, problem_.n * taps, image.channels, image.channels}};
    if (problem_.image_is_b()) views[0] = {nullptr, problem_.k, problem_.m, problem_.m}, views[1] = of_image;
    else if (problem_.b_major != Major::k) views[1] = {nullptr, image.channels, taps * problem_.n, taps * problem_.n};
    for (const Operand operand : {Operand::a, Operand::b}) {
        const auto i = static_cast<std::size_t>(operand);
        views[i].data = tensors[i];
        FillArguments of = fill_arguments(filled, operand, views[i], fill, seed);
        // Of 8 bits one a tap may be more than sums have room for.
        if (is_fp8(of.type) && of.exact.period > image.channels) of.exact.wide = of.exact.range;
        if (problem_.image_is_b()) {
            // A pixel is at many places of K: wide numbers are A's alone, and meet any number.
            of.exact.period = of.exact.period * of.exact.range | 1;
            if (operand == Operand::b) of.exact = {.range = of.exact.range, .sparsity = 1, .wide = of.exact.range, .period = of.exact.period}, of.k_is_width = true;
        }
        kernels_.fill(stream, of);
    }
}

std::vector<const void*> GemmReference::operands_of(TensorPointers tensors, std::int64_t product) const {
    std::vector<const void*> inputs(problem_.epilogue->sums(), nullptr);
    for (std::size_t i = 0; i < problem_.epilogue->operands.size(); ++i) {
        const EpilogueOperand& o = problem_.epilogue->operands[i];
        const std::int64_t before = o.by_product ? product * o.elements_of_a_product(problem_.m, problem_.result_n()) : 0;
        inputs.push_back(static_cast<const unsigned char*>(tensors[problem_.first_operand() + i]) + before * bytes_of(o.element));
    }
    return inputs;
}

std::vector<CaseOutcome> GemmReference::judge_epilogue(Stream stream, VerifyCase which,
                                                       std::span<const TensorPointers> results) const {
    std::vector<CaseOutcome> all = judge_product(stream, which, results, 0);
    for (std::int64_t product = 1; product < problem_.batch; ++product) {
        const std::vector<CaseOutcome> more = judge_product(stream, which, results, product);
        for (std::size_t i = 0; i < all.size(); ++i) join(all[i], more[i], product);
    }
    return all;
}

namespace {

/// Of B's columns the gates alone, or the ups.
void take_half(VerifyArguments& of, const GemmProblem& p, bool of_ups) {
    const bool interleaved = p.pairs() == Pairs::interleaved;
    const std::int64_t first_up = interleaved ? of.b_n_stride : p.n / 2 * of.b_n_stride;
    if (of_ups) of.b = static_cast<const unsigned char*>(of.b) + first_up * bytes_of(of.b_type);
    if (interleaved) of.b_n_stride *= 2;
    of.n = p.n / 2;
}

}  // namespace

/// Those of blocks, from `row` of A on and of B's matrix `group`.
void GemmReference::give_scales(VerifyArguments& of, TensorPointers tensors, std::int64_t row, std::int64_t group) const {
    const std::size_t scale = problem_.first_scale();
    const ScaleLayout of_b = problem_.b_scales();
    of.a_scales = static_cast<const float*>(tensors[scale]) + row, of.a_scale_pitch = problem_.a_scales().pitch();
    of.b_scales = static_cast<const float*>(tensors[scale + 1]) + group * of_b.matrix_elements(), of.b_scale_pitch = of_b.pitch();
}

std::vector<CaseOutcome> GemmReference::judge_product(Stream stream, VerifyCase which, std::span<const TensorPointers> results,
                                                      std::int64_t product) const {
    const TensorPointers first = results[0];
    // Parts of the rows, as the expression's evaluation asks for them: of all columns, or of gates and of ups.
    const auto sums = [&](bool of_ups, Stream to, std::int64_t row, std::int64_t rows, Bounded* out) {
        VerifyArguments of = verify_arguments(problem_, first[0], first[1], {}, product);
        if (problem_.pairs() != Pairs::none) take_half(of, problem_, of_ups);
        if (image_) {
            for (std::int64_t done = 0; done < rows; done += image_->room()) {
                of.m = std::min(image_->room(), rows - done);
                of.a = image_->rows_of(to, first[0], row + done, of.m);
                kernels_.bounded_sums(to, of, which == VerifyCase::exact, out + done * problem_.n);
            }
            return;
        }
        of.a = static_cast<const unsigned char*>(of.a) + row * of.a_m_stride * bytes_of(of.a_type);
        of.m = rows;
        if (problem_.block_scales()) give_scales(of, first, row, 0);
        if (!packed_) return kernels_.bounded_sums(to, of, which == VerifyCase::exact, out);
        of.b = reinterpret_cast<const void*>(weights_.address()), of.b_type = Type::fp32;
        packed_->bounded_sums(to, of, which == VerifyCase::exact, out, kernels_.verify_ctas());
    };
    std::vector<MadeRows> made;
    for (std::size_t i = 0; i < problem_.epilogue->sums(); ++i)
        made.emplace_back([&sums, i](Stream to, std::int64_t row, std::int64_t rows, Bounded* out) { sums(i > 0, to, row, rows, out); });
    epilogue_->set_made_inputs(std::move(made));
    const std::size_t of_each = problem_.results();
    std::vector<void*> stored;
    for (const TensorPointers& result : results)
        for (std::size_t i = 0; i < of_each; ++i) {
            const std::int64_t stride = i == 0 ? problem_.c_stride : problem_.m * problem_.result_n();
            stored.push_back(static_cast<unsigned char*>(result[result.size() - of_each + i]) + product * stride * bytes_of(problem_.c_type));
        }
    std::vector<std::span<void* const>> outputs;
    for (std::size_t i = 0; i < results.size(); ++i) outputs.emplace_back(std::span<void* const>(stored).subspan(i * of_each, of_each));
    return epilogue_->judge(stream, operands_of(first, product), outputs, undecided_limit(epilogue_->graph(), which));
}

std::vector<JudgedRows> GemmReference::rows_of_groups(TensorPointers tensors) const {
    if (std::ranges::none_of(problem_.epilogue->operands, &EpilogueOperand::by_product)) return {{0, problem_.m, operands_of(tensors, 0)}};
    std::vector<JudgedRows> all;
    std::int64_t row = 0;
    for (std::int64_t group = 0; group < problem_.groups->count(); ++group) {
        const std::int64_t rows = problem_.groups->rows()[std::size_t(group)];
        if (rows > 0) all.push_back({row, rows, operands_of(tensors, group)});
        row += rows;
    }
    return all;
}

void GemmReference::sums_of_groups(Stream stream, VerifyCase which, TensorPointers tensors, bool of_ups, std::int64_t first, std::int64_t rows,
                                   Bounded* out) const {
    std::int64_t begin = 0;
    for (std::int64_t group = 0; group < problem_.groups->count() && begin < first + rows; ++group) {
        const std::int64_t end = begin + problem_.groups->rows()[std::size_t(group)], from = std::max(begin, first), to = std::min(end, first + rows);
        if (from < to) {
            VerifyArguments of = verify_group(problem_, tensors[0], tensors[1], {}, group, from);
            of.m = to - from;
            if (problem_.pairs() != Pairs::none) take_half(of, problem_, of_ups);
            if (problem_.block_scales()) give_scales(of, tensors, from, group);
            kernels_.bounded_sums(stream, of, which == VerifyCase::exact, out + (from - first) * problem_.result_n());
        }
        begin = end;
    }
}

std::vector<CaseOutcome> GemmReference::judge_groups(Stream stream, VerifyCase which, std::span<const TensorPointers> results) const {
    std::vector<MadeRows> made;
    for (std::size_t i = 0; i < problem_.epilogue->sums(); ++i)
        made.emplace_back([&, i](Stream to, std::int64_t row, std::int64_t rows, Bounded* out) {
            sums_of_groups(to, which, results[0], i > 0, row, rows, out);
        });
    epilogue_->set_made_inputs(std::move(made));
    std::vector<std::span<void* const>> outputs;
    for (const TensorPointers& result : results) outputs.emplace_back(&result.back(), 1);
    return epilogue_->judge(stream, rows_of_groups(results[0]), outputs, undecided_limit(epilogue_->graph(), which));
}

void GemmReference::verify_image(Stream stream, VerifyCase which, TensorPointers inputs, std::span<const void* const> c) const {
    if (problem_.image_is_b()) {
        const std::int64_t channels = problem_.image->channels, together = image_->channels();
        for (std::int64_t column = 0; column < problem_.n; column += together) {
            const void* rows = image_->rows_of(stream, inputs[1], 0, problem_.k, column % channels, column / channels);
            VerifyArguments of = verify_arguments(problem_, inputs[0], rows, c);
            for (int i = 0; i < of.results; ++i) of.c[i] = static_cast<const unsigned char*>(of.c[i]) + column * bytes_of(problem_.c_type);
            of.n = of.b_k_stride = together;
            kernels_.verify(stream, of, which == VerifyCase::exact, records_.address());
        }
        return;
    }
    for (std::int64_t row = 0; row < problem_.m; row += image_->room()) {
        const std::int64_t rows = std::min(image_->room(), problem_.m - row);
        VerifyArguments of = verify_arguments(problem_, image_->rows_of(stream, inputs[0], row, rows), inputs[1], c);
        for (int i = 0; i < of.results; ++i) of.c[i] = static_cast<const unsigned char*>(of.c[i]) + row * problem_.ldc * bytes_of(problem_.c_type);
        of.first_row = row, of.m = rows;
        kernels_.verify(stream, of, which == VerifyCase::exact, records_.address());  // each adds to the records
    }
}

std::vector<CaseOutcome> GemmReference::judge(Stream stream, VerifyCase which, std::uint64_t,
                                              std::span<const TensorPointers> results) const {
    if (packed_) packed_->dequantise(stream, reinterpret_cast<DevicePointer>(results[0][1]), weights_.address(), Type::fp32, rounded_);
    if (epilogue_ && problem_.groups) return judge_groups(stream, which, results);
    if (epilogue_) return judge_epilogue(stream, which, results);
    std::vector<const void*> c;
    for (const TensorPointers& result : results) c.push_back(result.back());
    fill_bytes(records_.address(), 0, records_.bytes(), stream);
    std::int64_t row = 0;
    for (std::int64_t group = 0; problem_.groups && group < problem_.groups->count(); ++group) {
        const std::int64_t rows = problem_.groups->rows()[std::size_t(group)];
        VerifyArguments of = verify_group(problem_, results[0][0], results[0][1], c, group, row);
        if (packed_) {
            of.b = reinterpret_cast<const void*>(weights_.address() + DevicePointer(group * problem_.b_stride * bytes_of(Type::fp32)));
            of.b_type = Type::fp32;
        }
        if (rows > 0 && packed_) packed_->verify(stream, of, which == VerifyCase::exact, records_.address(), kernels_.verify_ctas());
        else if (rows > 0) kernels_.verify(stream, of, which == VerifyCase::exact, records_.address());
        row += rows;
    }
    if (packed_ && !problem_.groups) {
        VerifyArguments of = verify_arguments(problem_, results[0][0], reinterpret_cast<const void*>(weights_.address()), c, 0);
        of.b_type = Type::fp32;
        packed_->verify(stream, of, which == VerifyCase::exact, records_.address(), kernels_.verify_ctas());
    }
    if (image_) verify_image(stream, which, results[0], c);
    for (std::int64_t product = 0; !problem_.groups && !packed_ && !image_ && product < problem_.batch; ++product)  // each adds to the records
        kernels_.verify(stream, verify_arguments(problem_, results[0][0], results[0][1], c, product), which == VerifyCase::exact,
                        records_.address());
    synchronize(stream);
    const auto ctas = static_cast<std::size_t>(kernels_.verify_ctas());
    std::vector<VerifyRecord> records(ctas * results.size());
    copy_to_host(records.data(), records_.address(), records.size() * sizeof(VerifyRecord));
    std::vector<CaseOutcome> outcomes;
    for (std::size_t i = 0; i < results.size(); ++i)
        outcomes.push_back(rooftile::judge(std::span(records).subspan(i * ctas, ctas), problem_, which));
    return outcomes;
}

}  // namespace rooftile
