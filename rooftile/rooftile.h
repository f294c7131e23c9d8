/* Rooftile for C, and for every language that calls C: plans from a request, their texts, kernels compiled and launched.
 *
 * Every function that can fail returns a status, 0 where it succeeded, and leaves what it was to give untouched where it did
 * not; rooftile_error_message() then says why, in one line that a user can act on. A pointer that is null where something has to
 * be is ROOFTILE_BAD_REQUEST; counts of a null handle are 0, what it has is null, and freeing it does nothing. No function but
 * rooftile_main() ends the process, and none lets a C++ exception out. Handles may be used by any number of threads at once; free
 * each once, when none uses it any more. Texts are UTF-8, ended by a zero byte; those given out through `char**` are freed with
 * rooftile_free_text().
 *
 * The interface is stable: functions and members of structs are added, never changed. Everything an operation has (its fields,
 * its tensors) comes as data, so none is named here. rooftile/rooftile.hpp is the same for C++. */
#ifndef ROOFTILE_ROOFTILE_H
#define ROOFTILE_ROOFTILE_H

#include <stddef.h> /* NOLINT(modernize-deprecated-headers) */
#include <stdint.h> /* NOLINT(modernize-deprecated-headers) */

#ifdef __cplusplus
extern "C" {
#endif

/** What a function returns: the exit codes of the command line, docs/command-line.md. */
typedef enum rooftile_status {
    ROOFTILE_DONE = 0,
    ROOFTILE_INTERNAL = 1,            /**< our own fault */
    ROOFTILE_BAD_REQUEST = 2,         /**< a field, a size, a pointer or a file is not what is accepted */
    ROOFTILE_VERIFICATION_FAILED = 3, /**< a kernel computed something else than it should */
    ROOFTILE_NO_GPU = 4,              /**< no usable driver or GPU, or one of another architecture */
    ROOFTILE_COMPILE_FAILED = 5,      /**< the kernel compiler is missing or refuses; its log is the detail */
    ROOFTILE_GPU_FAILED = 6,          /**< the driver reports an error */
    ROOFTILE_COUNTERS_DENIED = 7,
    ROOFTILE_THRESHOLD_MISSED = 8,
    ROOFTILE_NO_PLAN =
        10 /**< the request is right, but no plan fits; the document with the reasons is the detail */
} rooftile_status;

/** "RequestError" of ROOFTILE_BAD_REQUEST: the name of the exception that other languages raise; "" of ROOFTILE_DONE. */
const char* rooftile_status_name(int status);
/** Why the last call on this thread failed; valid until the thread's next call that fails. */
const char* rooftile_error_message(void);
/** What is too long for that line: a compiler's log, a document. May be empty. */
const char* rooftile_error_detail(void);

/** The library's version, "0.1.0". */
const char* rooftile_version(void);
/** The command line, docs/command-line.md, in the caller's process: main() of a program that is this and no more. Takes over stdout,
 * stderr and the handlers of signals, and an interrupt ends the process. Returns the exit code. In librooftile_c.so alone. */
int rooftile_main(int argc, char** argv);
void rooftile_free_text(char* text);

/** A folder to look for CUDA's libraries in, before all others but ROOFTILE_CUDA_PATH: a toolkit, or the site-packages that
 * hold NVIDIA's wheels. Call it before anything is compiled. */
int rooftile_add_cuda_folder(const char* folder);

/** The operations with their fields, as JSON: [{name, meaning, example, array_function, fields: [{key, form, meaning,
 * group, kind}]}]. `kind` is value, list, positional or on; the last is a boolean. `array_function` is what libraries of arrays
 * call what it computes, null where they have no word for it. */
int rooftile_operations(char** json);
/** The machines shipped with the library, as a document `rooftile/machines/1`. */
int rooftile_machines(char** json);
/** One machine with every number's unit and source, as a document `rooftile/machine/1`. `id`: one of those, or a machine
 * file's path; null: the GPU of this computer. */
int rooftile_machine(const char* id, char** json);

/** A tensor of a problem: what is handed to a launch. */
typedef struct rooftile_tensor {
    const char* name;
    const char* type; /**< "bf16" */
    int element_bits;
    int is_output;
    int rank;
    const int64_t* extents;
    const int64_t* strides; /**< elements, one an extent */
    int64_t offset;         /**< elements from an address that is a multiple of 256 B to the first */
} rooftile_tensor;

/** A dense array in host memory, `rows` of `columns`. */
typedef struct rooftile_array {
    const void* data;
    const char* type; /**< "int8", "fp32" */
    int64_t rows, columns;
} rooftile_array;

/** The plans of a request, best first. */
typedef struct rooftile_plans rooftile_plans;
/** A compiled plan. */
typedef struct rooftile_kernel rooftile_kernel;

/** Plans what a JSON object asks for. `op` names the operation; its fields follow under their keys as in rooftile_operations():
 * text, numbers, booleans, lists of these. `machine` is an id or a file (without it: the GPU here, else h100-sxm), `set` a list
 * of "KEY=VALUE", `buildable_only` leaves out what no kernel exists for. A field of kind list may have an s after its key.
 * Needs neither GPU nor toolkit. ROOFTILE_BAD_REQUEST, ROOFTILE_NO_PLAN. */
int rooftile_plan(const char* request, rooftile_plans** plans);
/** The same for tensors that lie somewhere, the inputs in the order of a launch: what they say need not be in the request.
 * A name may be null where the order says it; `is_output` is not read. */
int rooftile_plan_tensors(const char* request, const rooftile_tensor* inputs, int count,
                          rooftile_plans** plans);
/** The fewest kernels for a range: the text under one field is "A..B", as in "1..16384", and `within` the percentage by which a
 * value's plan may be slower than its own best (3). As a document `rooftile/range/1`, whose `plans` have the part that each
 * serves, from `from` to `to`, and the `fields` that get it from rooftile_plan() for any value of the part; parts of one
 * `kernel` are compiled once. `inputs` as of rooftile_plan_tensors(), or `count` 0. Takes some seconds. */
int rooftile_plan_range(const char* request, const rooftile_tensor* inputs, int count, char** json);
/** Bytes of the tensor that a request's kernels read packed: weights of 4 or 8 bits with their scales. */
int rooftile_packed_bytes(const char* request, size_t* bytes);
/** Packs that tensor of plain arrays: `q`, `scales` and, where the request says so, zero points. `packed` has `bytes` bytes, those of
 * rooftile_packed_bytes(), in host memory. ROOFTILE_BAD_REQUEST where an array or a number does not fit. */
int rooftile_pack(const char* request, const rooftile_array* arrays, int count, void* packed, size_t bytes);
/** Weights of a GGUF or safetensors file, what they take packed (`packed_bytes`) and the `request` of one row by them, as `rooftile pack`
 * writes them. `tensor`: its name there, of a layer of several tensors theirs without the last part. `scale`: the packed scales' type;
 * null: the one that holds the file's best. */
int rooftile_stored_weights(const char* file, const char* tensor, const char* scale, char** json);
/** Packs them; `bytes` are `packed_bytes`. */
int rooftile_pack_stored(const char* file, const char* tensor, const char* scale, void* packed, size_t bytes);
void rooftile_free_plans(rooftile_plans* plans);
int rooftile_plan_count(const rooftile_plans* plans);
/** The document `rooftile/plan/1`, docs/command-line.md. */
int rooftile_plans_json(const rooftile_plans* plans, char** json);
/** As text: every step that led to plan `rank` (from 1), where its time comes from, and of plan 1 why the others lost.
 * `width`: columns to wrap at, 0: none. */
int rooftile_explain(const rooftile_plans* plans, int rank, int width, char** text);
/** The same as data, a document `rooftile/explanation/1`: `attainability`, the steps from the roof to the prediction in ns;
 * `counterfactuals`, single numbers of the machine that would let the plan win; `reasons` and `walls`, each a title and a text. */
int rooftile_explanation(const rooftile_plans* plans, int rank, char** json);
/** Pictures of plan `rank`, a document `rooftile/pictures/1`: each has `id`, `title`, `data`, `vega_lite` (a specification) and `svg`.
 * `id`: that one alone ("waterfall", "tile_map", ...), NULL: all. The map of tiles takes many searches, a second or so. */
int rooftile_pictures(const rooftile_plans* plans, int rank, const char* id, char** json);
/** Plan `rank` as one CUDA C++ file that nvcc compiles by itself, with a launcher: what `rooftile emit` writes. Needs NVRTC. */
int rooftile_source(const rooftile_plans* plans, int rank, char** text);
int rooftile_tensor_count(const rooftile_plans* plans);
/** In the order of a launch; valid as long as `plans`. Null where there is no such tensor. */
const rooftile_tensor* rooftile_tensor_at(const rooftile_plans* plans, int index);

/** Compiles plan `rank`, or takes it from the cache; rank 0: the first that can be built. Needs NVRTC, no GPU. `plans` may be
 * freed before the kernel. ROOFTILE_BAD_REQUEST where it is not buildable, ROOFTILE_COMPILE_FAILED. */
int rooftile_compile(const rooftile_plans* plans, int rank, rooftile_kernel** kernel);
void rooftile_free_kernel(rooftile_kernel* kernel);
/** The kernel for the same problem but that `field` is `value`, by the same code: in microseconds, since nothing is searched,
 * predicted or compiled. *at is null where this code is not known to compute it: that value has a plan of its own. */
int rooftile_kernel_at(const rooftile_kernel* kernel, const char* field, int64_t value, rooftile_kernel** at);
/** What it is launched on, as rooftile_tensor_count() and rooftile_tensor_at() of its plan; valid as long as `kernel`. */
int rooftile_kernel_tensor_count(const rooftile_kernel* kernel);
const rooftile_tensor* rooftile_kernel_tensor_at(const rooftile_kernel* kernel, int index);
/** Name, architecture, registers, shared memory, hash, and whether it came from the cache, as JSON. */
int rooftile_kernel_json(const rooftile_kernel* kernel, char** json);

/* On a GPU. `device` is the ordinal whose primary context is made current for the call (as PyTorch and CUDA's runtime have it);
 * -1: the context that is current. */

/** Loads the code, once a context; a launch does it at its first call, but not while a graph is captured. */
int rooftile_load(const rooftile_kernel* kernel, int device);
/** Bytes that a launch needs beside its tensors, zeroed before the first launch; each leaves them ready for the next. Launches
 * that may overlap need a workspace each, and so do kernels, those of rooftile_kernel_at() among them: where one counts another may
 * have left sums. 0: none. */
int rooftile_workspace_bytes(const rooftile_kernel* kernel, int device, size_t* bytes);
/** Device memory for a workspace; rooftile_allocate() may not be called while a graph is captured. */
int rooftile_allocate(int device, size_t bytes, void** memory);
int rooftile_free_memory(int device, void* memory);
/** 1 where `stream` is being captured into a graph. */
int rooftile_is_capturing(int device, void* stream, int* capturing);
/** Zeroes device memory in `stream`. */
int rooftile_zero(int device, void* stream, void* memory, size_t bytes);
/** Launches the kernel in `stream`, a CUstream or cudaStream_t, on device pointers in the order of rooftile_tensor_at(): to the
 * first element of each, of the planned extents and strides. Neither synchronises nor, once loaded, allocates; may be captured,
 * and the graph then keeps the code, though not the workspace, when `kernel` is freed before it.
 * ROOFTILE_BAD_REQUEST where a pointer is null or not aligned as planned. */
int rooftile_launch(const rooftile_kernel* kernel, int device, void* stream, void* const* tensors, int count,
                    void* workspace);
/** The rank, among `plans` (planned with "top": 32, as `rooftile tune` does), of the one that is the fastest on this GPU: the choice that
 * is kept, else one that is made now. For that `count` unlike plans (2 to 16) are compiled and timed on these tensors, as rooftile_launch() takes them, for some 0.3 s: results are
 * written again and again, with the same values, and inputs are not. Waits for `stream` first. The choice is kept beside the cached
 * kernels where that can be written. *rank is 0 while `stream` is being captured and no choice is kept. `count` 0: only a choice that
 * is kept, else *rank is 0; neither stream nor tensors are used then. */
int rooftile_tune(const rooftile_plans* plans, int count, int device, void* stream, void* const* tensors, int tensor_count, int* rank);

/* Kernels of one's own, as functions to call. */

/** Kernels of one source. */
typedef struct rooftile_module rooftile_module;
/** What a kernel's parameter takes. */
typedef struct rooftile_parameter {
    int bytes;
    const char* kind; /**< "pointer", "int", "uint" (booleans and enums too), "float", "struct" */
} rooftile_parameter;

/** Compiles kernels of a public `.cu` as it lies: what is for the host is left out. `request` is a JSON object: `file` or `text`;
 * `functions`, a list of names as C++ calls them, templates with their arguments ("gelu<float>"), without it all that are no
 * templates; `include`, a list of folders where includes look beside the file's own or, of a text, the current one; `arch`
 * ("sm_90") or `machine` (an id or a file), without which the GPU of the current context, or the first one, says what to compile for.
 * ROOFTILE_BAD_REQUEST, ROOFTILE_COMPILE_FAILED, ROOFTILE_NO_GPU. */
int rooftile_load_source(const char* request, rooftile_module** module);
void rooftile_free_module(rooftile_module* module);
/** As JSON: arch, functions [{name, registers, spill_bytes, static_shared_bytes, parameters [{kind, bytes}]}], left_out. */
int rooftile_module_json(const rooftile_module* module, char** json);
/** Functions in the order of the request, and their parameters. Null where there is no such parameter; valid as long as `module`. */
int rooftile_module_function_count(const rooftile_module* module);
int rooftile_module_parameter_count(const rooftile_module* module, int function);
const rooftile_parameter* rooftile_module_parameter_at(const rooftile_module* module, int function, int index);
/** Loads the code, once a context; a launch does it at its first call, but not while a graph is captured. */
int rooftile_module_load(const rooftile_module* module, int device);
/** Launches a function in `stream`. `grid`, `block` and `cluster` have three extents; `cluster` null: 1, or as the kernel says
 * itself. A grid with an extent of 0 launches nothing. arguments[i] points to the value of parameter i, which has sizes[i] bytes. Neither
 * synchronises nor, once loaded, allocates; may be captured, and the graph then keeps the code. ROOFTILE_BAD_REQUEST, before
 * anything is launched, where the arguments are not what the function declares, or no such launch can start. */
int rooftile_module_launch(const rooftile_module* module, int function, int device, void* stream, const int64_t* grid,
                           const int64_t* block, const int64_t* cluster, size_t shared_bytes, void* const* arguments,
                           const size_t* sizes, int count);

#ifdef __cplusplus
}
#endif

#endif
