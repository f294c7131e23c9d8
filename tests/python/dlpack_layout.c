/* What a DLPack header says of memory, one line each: compiled with the package's own header and with the published one, it prints the same.
 * -DHEADER="..." names it; the published one spells device and constants its own way. */
#include <stddef.h>
#include <stdio.h>

#include HEADER

#ifdef PUBLISHED
#define dlpack_cpu kDLCPU
#define dlpack_cuda kDLCUDA
#define dlpack_cuda_managed kDLCUDAManaged
#define dlpack_int kDLInt
#define dlpack_uint kDLUInt
#define dlpack_float kDLFloat
#define dlpack_bfloat kDLBfloat
#define dlpack_bool kDLBool
#define dlpack_float8_e4m3fn kDLFloat8_e4m3fn
#define dlpack_float8_e5m2 kDLFloat8_e5m2
#define DLPACK_MAJOR DLPACK_MAJOR_VERSION
#define type_of_device device_type
#define id_of_device device_id
#else
#define type_of_device type
#define id_of_device id
#endif

#define SIZE(TYPE) printf("%s %zu\n", #TYPE, sizeof(TYPE))
#define PLACE(TYPE, MEMBER) printf("%s.%d %zu %zu\n", #TYPE, __LINE__, offsetof(TYPE, MEMBER), sizeof(((TYPE*)0)->MEMBER))
#define CONSTANT(LINE) printf("constant %d\n", (int)(LINE))

int main(void) {
    SIZE(DLDevice);
    PLACE(DLDevice, type_of_device);
    PLACE(DLDevice, id_of_device);
    SIZE(DLDataType);
    PLACE(DLDataType, code);
    PLACE(DLDataType, bits);
    PLACE(DLDataType, lanes);
    SIZE(DLTensor);
    PLACE(DLTensor, data);
    PLACE(DLTensor, device);
    PLACE(DLTensor, ndim);
    PLACE(DLTensor, dtype);
    PLACE(DLTensor, shape);
    PLACE(DLTensor, strides);
    PLACE(DLTensor, byte_offset);
    SIZE(DLManagedTensor);
    PLACE(DLManagedTensor, dl_tensor);
    PLACE(DLManagedTensor, manager_ctx);
    PLACE(DLManagedTensor, deleter);
    SIZE(DLPackVersion);
    PLACE(DLPackVersion, major);
    PLACE(DLPackVersion, minor);
    SIZE(DLManagedTensorVersioned);
    PLACE(DLManagedTensorVersioned, version);
    PLACE(DLManagedTensorVersioned, manager_ctx);
    PLACE(DLManagedTensorVersioned, deleter);
    PLACE(DLManagedTensorVersioned, flags);
    PLACE(DLManagedTensorVersioned, dl_tensor);
    SIZE(DLPackExchangeAPIHeader);
    PLACE(DLPackExchangeAPIHeader, version);
    PLACE(DLPackExchangeAPIHeader, prev_api);
    SIZE(DLPackExchangeAPI);
    PLACE(DLPackExchangeAPI, header);
    PLACE(DLPackExchangeAPI, managed_tensor_allocator);
    PLACE(DLPackExchangeAPI, managed_tensor_from_py_object_no_sync);
    PLACE(DLPackExchangeAPI, managed_tensor_to_py_object_no_sync);
    PLACE(DLPackExchangeAPI, dltensor_from_py_object_no_sync);
    PLACE(DLPackExchangeAPI, current_work_stream);
    CONSTANT(dlpack_cpu);
    CONSTANT(dlpack_cuda);
    CONSTANT(dlpack_cuda_managed);
    CONSTANT(dlpack_int);
    CONSTANT(dlpack_uint);
    CONSTANT(dlpack_float);
    CONSTANT(dlpack_bfloat);
    CONSTANT(dlpack_bool);
    CONSTANT(dlpack_float8_e4m3fn);
    CONSTANT(dlpack_float8_e5m2);
    CONSTANT(DLPACK_MAJOR);
    return 0;
}
