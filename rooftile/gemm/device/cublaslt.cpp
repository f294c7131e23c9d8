#include "rooftile/gemm/device/cublaslt.hpp"

#include <fmt/core.h>

#include <iterator>
#include <numeric>

#include "rooftile/gemm/operation.hpp"
#include "rooftile/measure/tensor_memory.hpp"
#include "rooftile/runtime/library.hpp"
#include "rooftile/gemm/device/cublaslt_api.hpp"
#include "rooftile/gemm/device/cublaslt_epilogue.hpp"

namespace rooftile {

namespace api = cublaslt;

ColumnMajorProblem column_major(const GemmProblem& p) {
    // Read column by column, a row-major X x Y matrix is Y x X: what is contiguous becomes the rows.
    const bool b_k = p.b_major == Major::k, a_k = p.a_major == Major::k;
    return {
        .left = {b_k ? p.k : p.n, b_k ? p.n : p.k, p.ldb, b_k},
        .right = {a_k ? p.k : p.m, a_k ? p.m : p.k, p.lda, !a_k},
        .result = {p.n, p.m, p.ldc, false},
    };
}

/// What problems share: the library's functions, a handle and the workspace.
struct CublasLt::Opened {
    api::Functions f;
    api::Handle handle = nullptr;
    DeviceBuffer workspace;

    ~Opened() {
        if (handle) f.destroy(handle);
    }
};

struct CublasLt::State {
    std::shared_ptr<const Opened> opened;
    api::Description description = nullptr;
    api::Layout left = nullptr, right = nullptr, result = nullptr, added = nullptr;  // added: C, which is dense where it is not the result's own
    api::Preference preference = nullptr;
    std::vector<api::Heuristic> algorithms;
    CublasLtEpilogue epilogue{};
    std::size_t first_operand = 2;
    bool block_scales = false, result_is_fp8 = false;  // to which nothing is added

    ~State() {
        if (!opened) return;
        const api::Functions& f = opened->f;
        if (preference) f.preference_destroy(preference);
        for (api::Layout layout : {left, right, result, added}) {
            if (layout) f.layout_destroy(layout);
        }
        if (description) f.description_destroy(description);
    }
};

namespace {

bool load(const Library& library, api::Functions& f) {
    bool all = true;
    const auto take = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.symbol(name));
        all = all && function;
    };
    take(f.create, "cublasLtCreate");
    take(f.destroy, "cublasLtDestroy");
    take(f.version, "cublasLtGetVersion");
    take(f.description_create, "cublasLtMatmulDescCreate");
    take(f.description_set, "cublasLtMatmulDescSetAttribute");
    take(f.description_destroy, "cublasLtMatmulDescDestroy");
    take(f.layout_create, "cublasLtMatrixLayoutCreate");
    take(f.layout_set, "cublasLtMatrixLayoutSetAttribute");
    take(f.layout_destroy, "cublasLtMatrixLayoutDestroy");
    take(f.preference_create, "cublasLtMatmulPreferenceCreate");
    take(f.preference_set, "cublasLtMatmulPreferenceSetAttribute");
    take(f.preference_destroy, "cublasLtMatmulPreferenceDestroy");
    take(f.heuristic, "cublasLtMatmulAlgoGetHeuristic");
    take(f.matmul, "cublasLtMatmul");
    return all;
}

int data_type(Type type) {
    switch (type) {
        case Type::bf16:
            return api::real_16bf;
        case Type::fp16:
            return api::real_16f;
        case Type::fp8_e4m3:
            return api::real_8f_e4m3;
        case Type::fp8_e5m2:
            return api::real_8f_e5m2;
        case Type::fp32:
            break;
    }
    return api::real_32f;
}

int create_layout(const api::Functions& f, api::Layout& to, Type type,
                  const ColumnMajorProblem::Layout& from) {
    return f.layout_create(&to, data_type(type), static_cast<std::uint64_t>(from.rows),
                           static_cast<std::uint64_t>(from.columns), from.leading);
}

ColumnMajorProblem::Layout added_layout(ColumnMajorProblem::Layout result, const CublasLtEpilogue& epilogue) {
    if (epilogue.residual) result.leading = result.rows;
    return result;
}

/// The first failing call's name, or empty.
std::string set_up(CublasLt::State& s, const GemmProblem& p) {
    const api::Functions& f = s.opened->f;
    const ColumnMajorProblem shape = column_major(p);
    const std::int32_t left_operation =
        shape.left.transposed ? api::operation_transpose : api::operation_none;
    const std::int32_t right_operation =
        shape.right.transposed ? api::operation_transpose : api::operation_none;
    const std::uint64_t workspace = cublaslt_workspace_bytes;
    std::string failed;
    const auto call = [&](const char* name, int status) {
        if (status != api::status_success && failed.empty())
            failed = fmt::format("{} gave status {}", name, status);
        return failed.empty();
    };
    call("cublasLtMatmulDescCreate", f.description_create(&s.description, api::compute_32f, api::real_32f))
        && call("cublasLtMatmulDescSetAttribute", f.description_set(s.description, api::desc_transpose_a,
                                                                    &left_operation, sizeof left_operation))
        && call("cublasLtMatmulDescSetAttribute", f.description_set(s.description, api::desc_transpose_b,
                                                                    &right_operation, sizeof right_operation))
        && call("cublasLtMatmulDescSetAttribute", f.description_set(s.description, api::desc_epilogue, &s.epilogue.kind,
                                                                    sizeof s.epilogue.kind))
        && call("cublasLtMatrixLayoutCreate", create_layout(f, s.left, p.b_type, shape.left))
        && call("cublasLtMatrixLayoutCreate", create_layout(f, s.right, p.a_type, shape.right))
        && call("cublasLtMatrixLayoutCreate", create_layout(f, s.result, p.c_type, shape.result))
        && call("cublasLtMatrixLayoutCreate", create_layout(f, s.added, s.result_is_fp8 ? Type::bf16 : p.c_type, added_layout(shape.result, s.epilogue)))
        && call("cublasLtMatmulPreferenceCreate", f.preference_create(&s.preference))
        && call("cublasLtMatmulPreferenceSetAttribute",
                f.preference_set(s.preference, api::preference_max_workspace, &workspace, sizeof workspace));
    const std::int8_t fast = p.promoted() ? 0 : 1;
    if (is_fp8(p.a_type) && failed.empty())
        call("cublasLtMatmulDescSetAttribute", f.description_set(s.description, api::desc_fast_accum, &fast, sizeof fast));
    const auto set_scales = [&](std::int32_t of_a, std::int32_t of_b) {
        failed.empty() && call("cublasLtMatmulDescSetAttribute", f.description_set(s.description, api::desc_a_scale_mode, &of_a, sizeof of_a))
            && call("cublasLtMatmulDescSetAttribute", f.description_set(s.description, api::desc_b_scale_mode, &of_b, sizeof of_b));
    };
    if (p.block_scales()) set_scales(api::scale_128x128, api::scale_1x128);  // its A is our B
    if (s.epilogue.outer_scales) set_scales(api::scale_outer, api::scale_outer);
    // Of such modes the heuristic offers nothing before the scales lie somewhere; launches say where.
    const void* anywhere = s.opened->workspace.data();
    if (p.block_scales() || s.epilogue.outer_scales)
        for (const int scale : {api::desc_a_scale_pointer, api::desc_b_scale_pointer})
            failed.empty() && call("cublasLtMatmulDescSetAttribute", f.description_set(s.description, scale, &anywhere, sizeof anywhere));
    const auto set_batch = [&](api::Layout layout, std::int64_t stride) {
        const auto batch = std::int32_t(p.batch);
        failed.empty() && call("cublasLtMatrixLayoutSetAttribute", f.layout_set(layout, api::layout_batch, &batch, sizeof batch))
            && call("cublasLtMatrixLayoutSetAttribute", f.layout_set(layout, api::layout_stride, &stride, sizeof stride));
    };
    if (p.batch > 1) set_batch(s.left, p.b_stride), set_batch(s.right, p.a_stride), set_batch(s.result, p.c_stride), set_batch(s.added, s.epilogue.residual ? p.m * p.n : p.c_stride);
    // Algorithms that ask for more than the buffers have would fail, and some that it could take are kept from it where
    // less is said. What lines have of it follows from the layouts.
    const auto begin = [](std::int64_t offset, std::int64_t stride, Type type) { return std::gcd(offset, stride) * bytes_of(type); };
    const std::int64_t result = begin(p.c_offset, p.c_stride, p.c_type);
    const std::int64_t begins[] = {begin(p.b_offset, p.b_stride, p.b_type), begin(p.a_offset, p.a_stride, p.a_type), result, result};
    for (std::size_t i = 0; i < std::size(begins); ++i) {
        const auto alignment = std::uint32_t(std::gcd(tensor_alignment, begins[i]));
        failed.empty()
            && call("cublasLtMatmulPreferenceSetAttribute",
                    f.preference_set(s.preference, api::preference_min_alignment[i], &alignment, sizeof alignment));
    }
    return failed;
}

}  // namespace

CublasLt::CublasLt(std::unique_ptr<State> state) : state_(std::move(state)) {}
CublasLt::~CublasLt() = default;

std::unique_ptr<CublasLt> CublasLt::open(const GemmProblem& problem, std::string& missing,
                                         const CublasLt* before) {
    if (problem.groups) {
        missing = "cublasLtMatmul takes no groups of rows";
        return nullptr;
    }
    auto state = std::make_unique<State>();
    if (before) {
        state->opened = before->state_->opened;
    } else {
        const Library library = open_library(cublaslt_soname);
        if (!library) {
            missing = library.not_found();
            return nullptr;
        }
        auto opened = std::make_shared<Opened>();
        if (!load(library, opened->f)) {
            missing = fmt::format("{} lacks a function of CUDA 13", library.path);
            return nullptr;
        }
        if (const int status = opened->f.create(&opened->handle); status != api::status_success) {
            missing = fmt::format("cublasLtCreate gave status {}", status);
            return nullptr;
        }
        opened->workspace = DeviceBuffer(cublaslt_workspace_bytes);
        state->opened = std::move(opened);
    }
    const auto epilogue = cublaslt_epilogue(problem, missing);
    if (!epilogue) return nullptr;
    state->epilogue = *epilogue;
    state->first_operand = problem.first_operand(), state->block_scales = problem.block_scales(), state->result_is_fp8 = is_fp8(problem.c_type);
    if (missing = set_up(*state, problem); !missing.empty()) return nullptr;

    state->algorithms.resize(cublaslt_algorithms);
    int count = 0;
    const Opened& opened = *state->opened;
    const int status = opened.f.heuristic(opened.handle, state->description, state->left, state->right,
                                          state->added, state->result, state->preference,
                                          cublaslt_algorithms, state->algorithms.data(), &count);
    state->algorithms.resize(status == api::status_success ? static_cast<std::size_t>(count) : 0);
    std::erase_if(state->algorithms, [](const api::Heuristic& h) { return h.state != api::status_success; });
    if (state->algorithms.empty()) {
        missing = fmt::format("cublasLtMatmulAlgoGetHeuristic offers nothing (status {})", status);
        return nullptr;
    }
    return std::unique_ptr<CublasLt>(new CublasLt(std::move(state)));
}

int CublasLt::algorithms() const { return static_cast<int>(state_->algorithms.size()); }
std::size_t CublasLt::version() const { return state_->opened->f.version(); }

bool CublasLt::other_gelu() const { return state_->epilogue.other_gelu; }

void CublasLt::launch(int index, Stream stream, std::span<void* const> tensors) const {
    const State& s = *state_;
    const Opened& opened = *s.opened;
    const CublasLtEpilogue& e = s.epilogue;
    const auto operand = [&](std::size_t i) -> const void* { return tensors[s.first_operand + i]; };
    const auto set = [&](int attribute, const void* address) {
        opened.f.description_set(s.description, attribute, &address, sizeof address);
    };
    const auto point = [&](int attribute, const std::optional<std::size_t>& at) {
        if (at) set(attribute, operand(*at));
    };
    if (s.block_scales) set(api::desc_a_scale_pointer, tensors[3]), set(api::desc_b_scale_pointer, tensors[2]);
    point(api::desc_bias_pointer, e.bias);
    point(api::desc_a_scale_pointer, e.scale_b);  // its A is our B
    point(api::desc_b_scale_pointer, e.scale_a);
    point(api::desc_d_scale_pointer, e.scale_d);
    void* result = tensors.back();
    const void* added = e.residual ? operand(*e.residual) : s.result_is_fp8 ? nullptr : result;
    const int status =
        opened.f.matmul(opened.handle, s.description, &e.alpha, tensors[1], s.left, tensors[0], s.right, &e.beta, added,
                        s.added, result, s.result, &s.algorithms[static_cast<std::size_t>(index)].algorithm,
                        opened.workspace.data(), cublaslt_workspace_bytes, stream);
    if (status != api::status_success) {
        throw Error(ExitCode::gpu_failed, fmt::format("cublasLtMatmul (algorithm {} of {}) gave status {}",
                                                      index, s.algorithms.size(), status));
    }
}

}  // namespace rooftile
