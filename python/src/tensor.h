/* Tensors of any library: read by DLPack or __cuda_array_interface__, held against what a plan expects. */
#ifndef ROOFTILE_PYTHON_TENSOR_H
#define ROOFTILE_PYTHON_TENSOR_H

#include "dlpack.h"
#include "module.h"

enum { most_axes = 16 };

/* An argument of a launch. What it points to belongs to the object, or to `capsule`. */
typedef struct {
    DLTensor view;
    PyObject* capsule;            /* null where the tensor came in another way */
    int64_t extents[most_axes], strides[most_axes]; /* of a tensor that came by __cuda_array_interface__ */
    const DLPackExchangeAPI* api; /* of its type; null: none */
} Argument;

/* Element types by the names that plans have; code -1: DLPack has none. */
DLDataType dtype_of(const char* type);

/* The exchange interface of an object's type, null where it has none. */
const DLPackExchangeAPI* exchange_of(PyObject* object);
/* Fills `argument` from an object; -1 where it raised. `stream`: an integer that __dlpack__ orders its work before. */
int read_tensor(PyObject* object, const char* name, PyObject* stream, Argument* argument);
/* 1 where its memory holds the negative of what it says: torch's x.conj().imag. -1 where it raised. */
int is_negative(PyObject* tensor);
/* The same of the conjugate: torch's x.conj(), of complex numbers, which no operation takes. */
int is_conjugate(PyObject* tensor);
void release(Argument* argument);
/* That it is what the plan has under `expected`, on a GPU; -1 where it raised RequestError. */
int check_tensor(const rooftile_tensor* expected, DLDataType dtype, const Argument* argument);
/* Its first element, and the bytes from there to the end of its last. */
char* first_element(const Argument* argument);
int64_t span_bytes(const DLTensor* view);
/* A stream handle from an integer, an object with one (torch, CuPy) or with __cuda_stream__. -1 where it raised. */
int stream_of(PyObject* object, void** stream);

#endif
