#include "tensor.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char* name;
    DLDataType dtype;
} dtypes[] = {
    {"bf16", {dlpack_bfloat, 16, 1}},
    {"fp16", {dlpack_float, 16, 1}},
    {"fp32", {dlpack_float, 32, 1}},
    {"fp64", {dlpack_float, 64, 1}},
    {"tf32", {dlpack_float, 32, 1}},
    {"fp8_e4m3", {dlpack_float8_e4m3fn, 8, 1}},
    {"fp8_e5m2", {dlpack_float8_e5m2, 8, 1}},
    {"int8", {dlpack_int, 8, 1}},
    {"int16", {dlpack_int, 16, 1}},
    {"int32", {dlpack_int, 32, 1}},
    {"int64", {dlpack_int, 64, 1}},
    {"uint8", {dlpack_uint, 8, 1}},
    {"bool", {dlpack_bool, 8, 1}},
};
enum { dtype_count = sizeof dtypes / sizeof dtypes[0] };

DLDataType dtype_of(const char* type) {
    const DLDataType none = {255, 0, 0};
    for (int i = 0; i < dtype_count; ++i)
        if (!strcmp(dtypes[i].name, type)) return dtypes[i].dtype;
    return none;
}

static int same(DLDataType a, DLDataType b) {
    return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

static const char* dtype_name(DLDataType dtype) {
    for (int i = 0; i < dtype_count; ++i)
        if (same(dtypes[i].dtype, dtype)) return dtypes[i].name;
    return "another type";
}

/* "[8,16]" into `text`. */
static const char* list_text(char* text, size_t bytes, const int64_t* numbers, int count) {
    size_t end = (size_t)snprintf(text, bytes, "[");
    for (int i = 0; i < count && end < bytes; ++i)
        end += (size_t)snprintf(text + end, bytes - end, i ? ",%lld" : "%lld", (long long)numbers[i]);
    if (end < bytes) snprintf(text + end, bytes - end, "]");
    return text;
}

const DLPackExchangeAPI* exchange_of(PyObject* object) {
    /* A few types are all that a process hands over; the GIL guards the table, which keeps its types alive. */
    static struct {
        PyTypeObject* type;
        const DLPackExchangeAPI* api;
    } known[16];
    static int count = 0;
    PyTypeObject* type = Py_TYPE(object);
    for (int i = 0; i < count; ++i)
        if (known[i].type == type) return known[i].api;
    const DLPackExchangeAPI* api = NULL;
    PyObject* capsule = PyObject_GetAttrString((PyObject*)type, "__dlpack_c_exchange_api__");
    if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
        api = (const DLPackExchangeAPI*)PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    Py_XDECREF(capsule);
    PyErr_Clear();
    while (api && api->header.version.major != DLPACK_MAJOR)
        api = (const DLPackExchangeAPI*)api->header.prev_api;
    if (api && !api->dltensor_from_py_object_no_sync) api = NULL;
    if (count < (int)(sizeof known / sizeof known[0])) {
        Py_INCREF((PyObject*)type);
        known[count].type = type;
        known[count++].api = api;
    }
    return api;
}

enum { negative_bit, conjugate_bit, lazy_bits };

static int has_lazy_bit(PyObject* tensor, int which) {
    static const char* const names[lazy_bits] = {"is_neg", "is_conj"};
    /* As above: asked once a type. */
    static struct {
        PyTypeObject* type;
        int has_bit[lazy_bits];
    } known[16];
    static int count = 0;
    static PyObject* interned[lazy_bits] = {NULL};
    PyTypeObject* type = Py_TYPE(tensor);
    int has_bit = -1;
    for (int i = 0; has_bit < 0 && i < count; ++i)
        if (known[i].type == type) has_bit = known[i].has_bit[which];
    if (has_bit < 0) {
        has_bit = PyObject_HasAttrString((PyObject*)type, names[which]);
        if (count < (int)(sizeof known / sizeof known[0])) {
            Py_INCREF((PyObject*)type);
            known[count].type = type;
            for (int bit = 0; bit < lazy_bits; ++bit) known[count].has_bit[bit] = PyObject_HasAttrString((PyObject*)type, names[bit]);
            ++count;
        }
    }
    if (!has_bit) return 0;
    if (!interned[which]) interned[which] = PyUnicode_InternFromString(names[which]);
    PyObject* is = interned[which] ? PyObject_CallMethodObjArgs(tensor, interned[which], NULL) : NULL;
    const int bit = is ? PyObject_IsTrue(is) : -1;
    Py_XDECREF(is);
    return bit;
}

int is_negative(PyObject* tensor) { return has_lazy_bit(tensor, negative_bit); }
int is_conjugate(PyObject* tensor) { return has_lazy_bit(tensor, conjugate_bit); }

/* obj.__dlpack__(stream=..., max_version=(1, 3)), without the version where the producer is older than that. */
static PyObject* capsule_of(PyObject* object, const char* name, PyObject* stream) {
    PyObject* export = PyObject_GetAttrString(object, "__dlpack__");
    if (!export) {
        PyErr_Clear();
        return raise_request(
            "%s is a %R, which has no __dlpack__: give a tensor of a library that has DLPack", name,
            (PyObject*)Py_TYPE(object));
    }
    PyObject* none = PyTuple_New(0);
    PyObject* keywords = Py_BuildValue("{s:O,s:(ii)}", "stream", stream, "max_version", DLPACK_MAJOR, 3);
    PyObject* capsule = none && keywords ? PyObject_Call(export, none, keywords) : NULL;
    if (!capsule && none && keywords && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        if (PyDict_DelItemString(keywords, "max_version") == 0)
            capsule = PyObject_Call(export, none, keywords);
    }
    Py_XDECREF(none);
    Py_XDECREF(keywords);
    Py_DECREF(export);
    return capsule;
}

/* A tensor that is not on a GPU may not be asked to order its work in a stream of one. */
static int on_gpu(PyObject* object, const char* name) {
    PyObject* device = PyObject_CallMethod(object, "__dlpack_device__", NULL);
    if (!device) {
        PyErr_Clear();
        return 1;
    }
    int type = 0, id = 0;
    const int read = PyArg_ParseTuple(device, "ii", &type, &id);
    Py_DECREF(device);
    if (!read) return 0;
    if (type == dlpack_cuda || type == dlpack_cuda_managed) return 1;
    raise_request("%s is not on a CUDA device (DLPack device type %d)", name, type);
    return 0;
}

/* "<f4" and the like: what __cuda_array_interface__ calls a type. */
static DLDataType dtype_of_typestr(const char* text) {
    DLDataType dtype = {255, 0, 1};
    if (strlen(text) != 3 || text[0] == '>') return dtype;
    dtype.bits = (uint8_t)(8 * (text[2] - '0'));
    dtype.code = text[1] == 'f'   ? dlpack_float
                 : text[1] == 'i' ? dlpack_int
                 : text[1] == 'u' ? dlpack_uint
                                  : 255;
    if (text[1] == 'b') dtype.code = dlpack_bool;
    return dtype;
}

static int read_axes(PyObject* sequence, int64_t* numbers, int64_t unit) {
    const Py_ssize_t count = PySequence_Size(sequence);
    if (count < 0 || count > most_axes) return -1;
    for (Py_ssize_t axis = 0; axis < count; ++axis) {
        PyObject* number = PySequence_GetItem(sequence, axis);
        numbers[axis] = number ? PyLong_AsLongLong(number) / unit : 0;
        Py_XDECREF(number);
        if (PyErr_Occurred()) return -1;
    }
    return (int)count;
}

/* Version 3 of Numba's interface. Its work must be in our stream, or be done: it names no way to order streams. */
static int read_interface(PyObject* interface, const char* name, PyObject* stream, Argument* argument) {
    PyObject* shape = PyDict_GetItemString(interface, "shape");
    PyObject* type = PyDict_GetItemString(interface, "typestr");
    PyObject* data = PyDict_GetItemString(interface, "data");
    PyObject* strides = PyDict_GetItemString(interface, "strides");
    PyObject* theirs = PyDict_GetItemString(interface, "stream");
    PyObject* text = type ? PyUnicode_AsASCIIString(type) : NULL;
    DLTensor* view = &argument->view;
    memset(view, 0, sizeof *view);
    if (text) view->dtype = dtype_of_typestr(PyBytes_AsString(text));
    Py_XDECREF(text);
    PyObject* pointer = data ? PySequence_GetItem(data, 0) : NULL;
    if (pointer) view->data = PyLong_AsVoidPtr(pointer);
    Py_XDECREF(pointer);
    view->ndim = shape ? read_axes(shape, argument->extents, 1) : -1;
    int read = view->ndim >= 0 && view->dtype.bits > 0 && data && !PyErr_Occurred();
    if (read && strides && strides != Py_None) {
        read = read_axes(strides, argument->strides, view->dtype.bits / 8) == view->ndim;
        view->strides = argument->strides;
    }
    if (!read) {
        PyErr_Clear();
        raise_request("%s: its __cuda_array_interface__ cannot be read", name);
        return -1;
    }
    view->shape = argument->extents;
    view->device.type = dlpack_cuda;
    if (!theirs || theirs == Py_None || PyObject_RichCompareBool(theirs, stream, Py_EQ) == 1) return 0;
    PyErr_Clear();
    raise_request("%s is written in stream %R: give it as stream=", name, theirs);
    return -1;
}

static int read_view(PyObject* object, const char* name, PyObject* stream, Argument* argument) {
    argument->capsule = NULL;
    argument->api = exchange_of(object);
    if (argument->api) return argument->api->dltensor_from_py_object_no_sync(object, &argument->view);
    if (!PyObject_HasAttrString(object, "__dlpack__")) {
        PyObject* interface = PyObject_GetAttrString(object, "__cuda_array_interface__");
        PyErr_Clear();
        if (interface) {
            const int read = PyDict_Check(interface) ? read_interface(interface, name, stream, argument) : -1;
            if (read != 0 && !PyErr_Occurred())
                raise_request("%s: its __cuda_array_interface__ is no dict", name);
            Py_DECREF(interface);
            return read;
        }
    }
    if (PyObject_HasAttrString(object, "__dlpack_device__") && !on_gpu(object, name)) return -1;
    PyObject* capsule = capsule_of(object, name, stream);
    if (!capsule) return -1;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        const DLManagedTensorVersioned* tensor = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (tensor->version.major != DLPACK_MAJOR) {
            raise_request("%s is exported by DLPack %d; %d is accepted", name, (int)tensor->version.major,
                          DLPACK_MAJOR);
            Py_DECREF(capsule);
            return -1;
        }
        argument->view = tensor->dl_tensor;
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        argument->view = ((DLManagedTensor*)PyCapsule_GetPointer(capsule, "dltensor"))->dl_tensor;
    } else {
        raise_request("%s: __dlpack__ gave no DLPack capsule", name);
        Py_DECREF(capsule);
        return -1;
    }
    argument->capsule = capsule; /* unconsumed: its own destructor frees the tensor */
    return 0;
}

int read_tensor(PyObject* object, const char* name, PyObject* stream, Argument* argument) {
    if (read_view(object, name, stream, argument) != 0) return -1;
    if (argument->view.ndim >= 0 && argument->view.ndim <= most_axes) return 0;
    raise_request("%s has %d axes; up to %d are accepted", name, (int)argument->view.ndim, most_axes);
    release(argument);
    return -1;
}

void release(Argument* argument) { Py_CLEAR(argument->capsule); }

char* first_element(const Argument* argument) {
    return (char*)argument->view.data + argument->view.byte_offset;
}

/* Its strides in elements: into `dense` where it has none, since its elements then follow each other. */
static const int64_t* strides_of(const DLTensor* view, int64_t* dense) {
    int64_t elements = 1;
    if (view->strides) return view->strides;
    for (int axis = view->ndim - 1; axis >= 0; --axis) {
        dense[axis] = elements;
        elements *= view->shape[axis];
    }
    return dense;
}

int64_t span_bytes(const DLTensor* view) {
    int64_t dense[most_axes], last = 0;
    const int64_t* strides = strides_of(view, dense);
    for (int axis = 0; axis < view->ndim; ++axis) {
        if (view->shape[axis] == 0) return 0;
        last += (view->shape[axis] - 1) * strides[axis];
    }
    return (last + 1) * view->dtype.bits / 8;
}

static int refuse_strides(const rooftile_tensor* expected, const DLTensor* view, const int64_t* strides) {
    char is[256], wanted[256];
    list_text(is, sizeof is, strides, view->ndim);
    list_text(wanted, sizeof wanted, expected->strides, expected->rank);
    raise_request(
        "%s has strides %s; the plan has %s (elements): hand over a tensor that lies so, or plan for this "
        "one",
        expected->name, is, wanted);
    return -1;
}

int check_tensor(const rooftile_tensor* expected, DLDataType dtype, const Argument* argument) {
    const DLTensor* view = &argument->view;
    char is[256], wanted[256];
    if (view->device.type != dlpack_cuda && view->device.type != dlpack_cuda_managed) {
        raise_request("%s is not on a CUDA device (DLPack device type %d)", expected->name,
                      (int)view->device.type);
        return -1;
    }
    if (!same(view->dtype, dtype)) {
        raise_request("%s is %s; the plan has %s", expected->name, dtype_name(view->dtype), expected->type);
        return -1;
    }
    /* One row of a product is a plan's vector: what lies before its axes has an extent of 1. */
    const int before = view->ndim > expected->rank ? view->ndim - expected->rank : 0;
    int equal = view->ndim == expected->rank + before;
    for (int axis = 0; equal && axis < view->ndim; ++axis)
        equal = view->shape[axis] == (axis < before ? 1 : expected->extents[axis - before]);
    if (!equal) {
        list_text(is, sizeof is, view->shape, view->ndim);
        list_text(wanted, sizeof wanted, expected->extents, expected->rank);
        raise_request("%s is %s; the plan has %s", expected->name, is, wanted);
        return -1;
    }
    for (int axis = 0; axis < view->ndim; ++axis)
        if (view->shape[axis] == 0) return 0;
    int64_t dense[most_axes];
    const int64_t* strides = strides_of(view, dense);
    for (int axis = 0; axis < expected->rank; ++axis)
        if (expected->extents[axis] > 1 && strides[before + axis] != expected->strides[axis])
            return refuse_strides(expected, view, strides);
    return 0;
}
