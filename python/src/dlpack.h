/* DLPack 1.3 as far as it is used here: tensors of any library, and the C functions that spare a Python call a tensor.
 * dmlc/dlpack, include/dlpack/dlpack.h; its ABI is fixed within a major version. */
#ifndef ROOFTILE_PYTHON_DLPACK_H
#define ROOFTILE_PYTHON_DLPACK_H

#include <stdint.h>

enum { dlpack_cpu = 1, dlpack_cuda = 2, dlpack_cuda_managed = 13 };
enum {
    dlpack_int = 0,
    dlpack_uint = 1,
    dlpack_float = 2,
    dlpack_bfloat = 4,
    dlpack_bool = 6,
    dlpack_float8_e4m3fn = 10,
    dlpack_float8_e5m2 = 12
};
#define DLPACK_MAJOR 1

typedef struct {
    int32_t type, id;
} DLDevice;
typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} DLDataType;
typedef struct {
    void* data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t* shape;
    int64_t* strides; /* elements; null: dense, last axis first */
    uint64_t byte_offset;
} DLTensor;

/* What a capsule "dltensor" holds. */
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void* manager_ctx;
    void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

/* What a capsule "dltensor_versioned" holds. */
typedef struct {
    uint32_t major, minor;
} DLPackVersion;
typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void* manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned* self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

/* What type(tensor).__dlpack_c_exchange_api__ points to, a capsule "dlpack_exchange_api". */
typedef struct DLPackExchangeAPIHeader {
    DLPackVersion version;
    struct DLPackExchangeAPIHeader* prev_api;
} DLPackExchangeAPIHeader;
typedef struct {
    DLPackExchangeAPIHeader header;
    int (*managed_tensor_allocator)(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
                                    void (*set_error)(void* error_ctx, const char* kind,
                                                      const char* message));
    int (*managed_tensor_from_py_object_no_sync)(void* object, DLManagedTensorVersioned** out);
    int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned* tensor, void** out);
    int (*dltensor_from_py_object_no_sync)(void* object, DLTensor* out);
    int (*current_work_stream)(int32_t device_type, int32_t device_id, void** out);
} DLPackExchangeAPI;

#endif
