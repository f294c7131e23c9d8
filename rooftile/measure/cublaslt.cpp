#include "rooftile/measure/cublaslt.hpp"

#include <fmt/core.h>

#include "rooftile/kernel/library.hpp"
#include "rooftile/measure/cublaslt_api.hpp"

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

struct CublasLt::State {
    api::Functions f;
    api::Handle handle = nullptr;
    api::Description description = nullptr;
    api::Layout left = nullptr, right = nullptr, result = nullptr;
    api::Preference preference = nullptr;
    std::vector<api::Heuristic> algorithms;
    DeviceBuffer workspace;

    ~State() {
        if (preference) f.preference_destroy(preference);
        for (api::Layout layout : {left, right, result}) {
            if (layout) f.layout_destroy(layout);
        }
        if (description) f.description_destroy(description);
        if (handle) f.destroy(handle);
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
    take(f.layout_destroy, "cublasLtMatrixLayoutDestroy");
    take(f.preference_create, "cublasLtMatmulPreferenceCreate");
    take(f.preference_set, "cublasLtMatmulPreferenceSetAttribute");
    take(f.preference_destroy, "cublasLtMatmulPreferenceDestroy");
    take(f.heuristic, "cublasLtMatmulAlgoGetHeuristic");
    take(f.matmul, "cublasLtMatmul");
    return all;
}

int data_type(Type type) {
    return type == Type::bf16 ? api::real_16bf : type == Type::fp16 ? api::real_16f : api::real_32f;
}

int create_layout(const api::Functions& f, api::Layout& to, Type type,
                  const ColumnMajorProblem::Layout& from) {
    return f.layout_create(&to, data_type(type), static_cast<std::uint64_t>(from.rows),
                           static_cast<std::uint64_t>(from.columns), from.leading);
}

/// The first failing call's name, or empty.
std::string set_up(CublasLt::State& s, const GemmProblem& p) {
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
    call("cublasLtCreate", s.f.create(&s.handle))
        && call("cublasLtMatmulDescCreate",
                s.f.description_create(&s.description, api::compute_32f, api::real_32f))
        && call("cublasLtMatmulDescSetAttribute", s.f.description_set(s.description, api::desc_transpose_a,
                                                                      &left_operation, sizeof left_operation))
        && call("cublasLtMatmulDescSetAttribute",
                s.f.description_set(s.description, api::desc_transpose_b, &right_operation,
                                    sizeof right_operation))
        && call("cublasLtMatrixLayoutCreate", create_layout(s.f, s.left, p.b_type, shape.left))
        && call("cublasLtMatrixLayoutCreate", create_layout(s.f, s.right, p.a_type, shape.right))
        && call("cublasLtMatrixLayoutCreate", create_layout(s.f, s.result, p.c_type, shape.result))
        && call("cublasLtMatmulPreferenceCreate", s.f.preference_create(&s.preference))
        && call(
            "cublasLtMatmulPreferenceSetAttribute",
            s.f.preference_set(s.preference, api::preference_max_workspace, &workspace, sizeof workspace));
    return failed;
}

}  // namespace

CublasLt::CublasLt(std::unique_ptr<State> state) : state_(std::move(state)) {}
CublasLt::~CublasLt() = default;

std::unique_ptr<CublasLt> CublasLt::open(const GemmProblem& problem, std::string& missing) {
    const Library library = open_library(cublaslt_soname);
    if (!library) {
        missing = library.not_found();
        return nullptr;
    }
    auto state = std::make_unique<State>();
    if (!load(library, state->f)) {
        missing = fmt::format("{} lacks a function of CUDA 13", library.path);
        return nullptr;
    }
    if (missing = set_up(*state, problem); !missing.empty()) return nullptr;

    state->algorithms.resize(cublaslt_algorithms);
    int count = 0;
    const int status = state->f.heuristic(state->handle, state->description, state->left, state->right,
                                          state->result, state->result, state->preference,
                                          cublaslt_algorithms, state->algorithms.data(), &count);
    state->algorithms.resize(status == api::status_success ? static_cast<std::size_t>(count) : 0);
    std::erase_if(state->algorithms, [](const api::Heuristic& h) { return h.state != api::status_success; });
    if (state->algorithms.empty()) {
        missing = fmt::format("cublasLtMatmulAlgoGetHeuristic offers nothing (status {})", status);
        return nullptr;
    }
    state->workspace = DeviceBuffer(cublaslt_workspace_bytes);
    return std::unique_ptr<CublasLt>(new CublasLt(std::move(state)));
}

int CublasLt::algorithms() const { return static_cast<int>(state_->algorithms.size()); }
std::size_t CublasLt::version() const { return state_->f.version(); }

void CublasLt::launch(int index, Stream stream, const void* a, const void* b, void* c) const {
    const State& s = *state_;
    const float one = 1, zero = 0;
    const int status = s.f.matmul(s.handle, s.description, &one, b, s.left, a, s.right, &zero, c, s.result, c,
                                  s.result, &s.algorithms[static_cast<std::size_t>(index)].algorithm,
                                  s.workspace.data(), cublaslt_workspace_bytes, stream);
    if (status != api::status_success) {
        throw Error(ExitCode::gpu_failed, fmt::format("cublasLtMatmul (algorithm {} of {}) gave status {}",
                                                      index, s.algorithms.size(), status));
    }
}

}  // namespace rooftile
