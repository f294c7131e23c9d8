/* rooftile._rooftile.Source: kernels of a source, launched with tensors and numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor.h"

typedef struct {
    PyObject_HEAD rooftile_module* module;
} Source;

/* A launch: values lie in `memory`, which is one block, each at an address for its size. */
typedef struct {
    void** values;
    size_t* sizes;
    PyObject** capsules; /* of tensors, until it is launched */
    int count;
    int device; /* of the tensors; -1: none was given */
    const DLPackExchangeAPI* api;
    PyObject* order; /* the stream that __dlpack__ is told */
} Call;

enum { value_alignment = 16 };
static size_t room_of(const rooftile_parameter* parameter) {
    return ((size_t)parameter->bytes + value_alignment - 1) / value_alignment * value_alignment;
}

static int is_tensor(PyObject* object) {
    return PyObject_HasAttrString(object, "__dlpack__") || PyObject_HasAttrString(object, "__cuda_array_interface__");
}

static int read_pointer(Call* call, int index, const char* name, PyObject* object) {
    Argument argument;
    void* pointer = NULL;
    if (object != Py_None) {
        if (!is_tensor(object)) {
            raise_request("%s is a pointer, and %R is given: give a tensor on a CUDA device, or None for null", name, object);
            return -1;
        }
        const int negative = is_negative(object), conjugate = negative == 0 ? is_conjugate(object) : 0;
        if (negative < 0 || conjugate < 0) return -1;
        if (negative || conjugate) {
            raise_request("%s has torch's %s bit, which a kernel does not see: give its resolve_%s()", name,
                          negative ? "negative" : "conjugate", negative ? "neg" : "conj");
            return -1;
        }
        if (read_tensor(object, name, call->order, &argument) != 0) return -1;
        call->capsules[index] = argument.capsule;
        if (argument.view.device.type != dlpack_cuda && argument.view.device.type != dlpack_cuda_managed) {
            raise_request("%s is not on a CUDA device (DLPack device type %d)", name, (int)argument.view.device.type);
            return -1;
        }
        if (call->device >= 0 && argument.view.device.id != call->device) {
            raise_request("%s is on device %d, a tensor before it on device %d", name, (int)argument.view.device.id, call->device);
            return -1;
        }
        call->device = argument.view.device.id;
        if (!call->api) call->api = argument.api;
        pointer = span_bytes(&argument.view) > 0 ? first_element(&argument) : NULL;
    }
    memcpy(call->values[index], &pointer, sizeof pointer);
    return 0;
}

/* What `item()` makes of a number of an array library; a new reference, null where it raised. */
static PyObject* plain_number(const char* name, const char* kind, PyObject* object) {
    if (PyLong_Check(object) || PyFloat_Check(object)) return Py_NewRef(object);
    if (is_tensor(object) || object == Py_None || PyUnicode_Check(object))
        return raise_request("%s is %s, and a %R is given", name, kind, (PyObject*)Py_TYPE(object));
    PyObject* item = PyObject_CallMethod(object, "item", NULL);
    if (item) return item;
    PyErr_Clear();
    return Py_NewRef(object);
}

static int read_whole(Call* call, int index, const char* name, int is_signed, PyObject* object) {
    const int bits = 8 * (int)call->sizes[index];
    PyObject* number = plain_number(name, "a whole number", object);
    PyObject* whole = number ? PyNumber_Index(number) : NULL;
    Py_XDECREF(number);
    if (!number) return -1;
    if (!whole) {
        PyErr_Clear();
        raise_request("%s is a whole number of %d bits, and %R is given", name, bits, object);
        return -1;
    }
    unsigned long long value = 0;
    int fits = 1;
    if (is_signed) {
        const long long given = PyLong_AsLongLong(whole);
        if (bits < 64) fits = given >= -(1LL << (bits - 1)) && given < 1LL << (bits - 1);
        value = (unsigned long long)given;
    } else {
        value = PyLong_AsUnsignedLongLong(whole);
        if (bits < 64) fits = value < 1ULL << bits;
    }
    Py_DECREF(whole);
    if (PyErr_Occurred() || !fits) {
        PyErr_Clear();
        raise_request("%s is %s whole number of %d bits, into which %R does not fit", name, is_signed ? "a" : "an unsigned", bits, object);
        return -1;
    }
    memcpy(call->values[index], &value, call->sizes[index]); /* little endian, as the GPU is */
    return 0;
}

static int read_float(Call* call, int index, const char* name, PyObject* object) {
    PyObject* number = plain_number(name, "a floating-point number", object);
    if (!number) return -1;
    const double value = PyFloat_AsDouble(number);
    Py_DECREF(number);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        raise_request("%s is a floating-point number, and %R is given", name, object);
        return -1;
    }
    const float narrow = (float)value;
    if (call->sizes[index] == sizeof narrow && isfinite(value) && !isfinite(narrow)) {
        raise_request("%s is a floating-point number of 32 bits, into which %R does not fit", name, object);
        return -1;
    }
    if (call->sizes[index] == sizeof narrow) memcpy(call->values[index], &narrow, sizeof narrow);
    else memcpy(call->values[index], &value, sizeof value);
    return 0;
}

static int read_struct(Call* call, int index, const char* name, PyObject* object) {
    Py_buffer buffer;
    if (is_tensor(object) || PyObject_GetBuffer(object, &buffer, PyBUF_SIMPLE) != 0) {
        PyErr_Clear();
        raise_request("%s is a struct of %d B, and a %R is given: give its bytes, as struct.pack(), ctypes or a numpy scalar has them",
                      name, (int)call->sizes[index], (PyObject*)Py_TYPE(object));
        return -1;
    }
    const int fits = (size_t)buffer.len == call->sizes[index];
    if (fits) memcpy(call->values[index], buffer.buf, call->sizes[index]);
    else raise_request("%s is a struct of %d B, and %d B are given", name, (int)call->sizes[index], (int)buffer.len);
    PyBuffer_Release(&buffer);
    return fits ? 0 : -1;
}

static int read_arguments(Call* call, const rooftile_module* module, int function, PyObject* function_name, PyObject* arguments) {
    PyObject* text = PyUnicode_AsUTF8String(function_name);
    if (!text) return -1;
    int status = 0;
    for (int i = 0; status == 0 && i < call->count; ++i) {
        const rooftile_parameter* parameter = rooftile_module_parameter_at(module, function, i);
        PyObject* object = PyTuple_GetItem(arguments, i);
        char name[120];
        snprintf(name, sizeof name, "argument %d of %.90s", i + 1, PyBytes_AsString(text));
        if (!strcmp(parameter->kind, "pointer")) status = read_pointer(call, i, name, object);
        else if (!strcmp(parameter->kind, "int")) status = read_whole(call, i, name, 1, object);
        else if (!strcmp(parameter->kind, "uint")) status = read_whole(call, i, name, 0, object);
        else if (!strcmp(parameter->kind, "float")) status = read_float(call, i, name, object);
        else status = read_struct(call, i, name, object);
    }
    Py_DECREF(text);
    return status;
}

/* A number, or up to three. */
static int read_size(PyObject* object, const char* name, int64_t* extents) {
    const int one = !PyTuple_Check(object) && !PyList_Check(object);
    const Py_ssize_t count = one ? 1 : PySequence_Size(object);
    int good = count >= 1 && count <= 3;
    extents[0] = extents[1] = extents[2] = 1;
    for (Py_ssize_t i = 0; good && i < count; ++i) {
        PyObject* item = one ? Py_NewRef(object) : PySequence_GetItem(object, i);
        PyObject* whole = item ? PyNumber_Index(item) : NULL;
        extents[i] = whole ? PyLong_AsLongLong(whole) : -1;
        Py_XDECREF(whole);
        Py_XDECREF(item);
        good = !PyErr_Occurred();
    }
    if (good) return 0;
    PyErr_Clear();
    raise_request("%s is %R; accepted is a whole number, or a tuple of up to three", name, object);
    return -1;
}

/* The stream that is given, or that the tensors' library works in, or that `current(device)` gives with the device where there is no tensor. */
static int find_stream(Call* call, PyObject* given, PyObject* current, void** stream) {
    if (given != Py_None && call->device >= 0) return stream_of(given, stream);
    if (given == Py_None && call->api && call->api->current_work_stream)
        return call->api->current_work_stream(dlpack_cuda, call->device, stream);
    PyObject* pair = PyObject_CallFunction(current, "i", call->device);
    PyObject *device = pair ? PyTuple_GetItem(pair, 0) : NULL, *handle = device ? PyTuple_GetItem(pair, 1) : NULL;
    int status = -1;
    if (handle) {
        call->device = (int)PyLong_AsLong(device);
        status = PyErr_Occurred() ? -1 : stream_of(given != Py_None ? given : handle, stream);
    }
    Py_XDECREF(pair);
    return status;
}

static PyObject* source_launch(PyObject* object, PyObject* arguments) {
    const rooftile_module* module = ((Source*)object)->module;
    int function = 0;
    unsigned long long shared = 0;
    PyObject *name = NULL, *values = NULL, *grid = NULL, *block = NULL, *cluster = NULL, *bytes = NULL, *stream = NULL, *current = NULL;
    int64_t extents[3][3];
    void* handle = NULL;
    if (!PyArg_ParseTuple(arguments, "iUO!OOOOOO", &function, &name, &PyTuple_Type, &values, &grid, &block, &cluster, &bytes, &stream,
                          &current))
        return NULL;
    if (read_size(grid, "grid", extents[0]) != 0 || read_size(block, "block", extents[1]) != 0) return NULL;
    if (cluster != Py_None && read_size(cluster, "cluster", extents[2]) != 0) return NULL;
    PyObject* whole = PyNumber_Index(bytes);
    if (whole) shared = PyLong_AsUnsignedLongLong(whole);
    Py_XDECREF(whole);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return raise_request("shared is %R; accepted is a number of bytes", bytes);
    }
    Call call = {.count = rooftile_module_parameter_count(module, function), .device = -1};
    if (PyTuple_Size(values) != call.count)
        return raise_request("%U takes %d arguments; given are %d", name, call.count, (int)PyTuple_Size(values));
    size_t room = 0;
    for (int i = 0; i < call.count; ++i) room += room_of(rooftile_module_parameter_at(module, function, i));
    const size_t lists = (size_t)(call.count + 1);
    char* memory = PyMem_Calloc(1, room + value_alignment + lists * (sizeof *call.values + sizeof *call.sizes + sizeof *call.capsules));
    if (!memory) return PyErr_NoMemory();
    char* at = memory;
    for (int i = 0; i < 3; ++i, at += lists * sizeof(void*)) {
        if (i == 0) call.values = (void**)at;
        else if (i == 1) call.sizes = (size_t*)at;
        else call.capsules = (PyObject**)at;
    }
    at += value_alignment - (size_t)((uintptr_t)at % value_alignment);
    for (int i = 0; i < call.count; ++i) {
        const rooftile_parameter* parameter = rooftile_module_parameter_at(module, function, i);
        call.values[i] = at;
        call.sizes[i] = (size_t)parameter->bytes;
        at += room_of(parameter);
    }
    PyObject* out = NULL;
    /* 1 is the legacy default stream. */
    if (stream != Py_None && stream_of(stream, &handle) != 0) goto end;
    call.order = PyLong_FromVoidPtr(handle ? handle : (void*)1);
    if (!call.order || read_arguments(&call, module, function, name, values) != 0 || find_stream(&call, stream, current, &handle) != 0)
        goto end;
    PyThreadState* state = PyEval_SaveThread(); /* a full queue waits for the GPU */
    const int status = rooftile_module_launch(module, function, call.device, handle, extents[0], extents[1],
                                              cluster != Py_None ? extents[2] : NULL, (size_t)shared, call.values, call.sizes, call.count);
    PyEval_RestoreThread(state);
    out = status == ROOFTILE_DONE ? Py_NewRef(Py_None) : raise_status(status);
end:
    for (int i = 0; i < call.count; ++i) Py_XDECREF(call.capsules[i]);
    Py_XDECREF(call.order);
    PyMem_Free(memory);
    return out;
}

static PyObject* source_json(PyObject* self, PyObject* unused) {
    (void)unused;
    char* text = NULL;
    const int status = rooftile_module_json(((Source*)self)->module, &text);
    return text_or_raise(status, text);
}

static PyObject* source_load(PyObject* self, PyObject* arguments) {
    int device = 0, status = 0;
    if (!PyArg_ParseTuple(arguments, "|i", &device)) return NULL;
    PyThreadState* state = PyEval_SaveThread();
    status = rooftile_module_load(((Source*)self)->module, device);
    PyEval_RestoreThread(state);
    if (status != ROOFTILE_DONE) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject* source_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
    const char* request = NULL;
    rooftile_module* module = NULL;
    int status = 0;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "s", &request)) return NULL;
    PyThreadState* state = PyEval_SaveThread();
    status = rooftile_load_source(request, &module);
    PyEval_RestoreThread(state);
    if (status != ROOFTILE_DONE) return raise_status(status);
    Source* self = (Source*)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self) self->module = module;
    else rooftile_free_module(module);
    return (PyObject*)self;
}

static void source_dealloc(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    rooftile_free_module(((Source*)object)->module);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"json", source_json, METH_NOARGS, "json() -> str\n\nIts functions, as JSON."},
    {"load", source_load, METH_VARARGS, "load(device=0)\n\nLoads the code onto a GPU."},
    {"launch", source_launch, METH_VARARGS,
     "launch(function, name, arguments, grid, block, cluster, shared, stream, current)\n\n`current(device)` gives a device and a stream "
     "where the tensors say none."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot slots[] = {{Py_tp_new, source_new},
                              {Py_tp_dealloc, source_dealloc},
                              {Py_tp_methods, methods},
                              {Py_tp_doc, "Source(request): what rooftile.load() compiles."},
                              {0, NULL}};
static PyType_Spec spec = {"rooftile._rooftile.Source", sizeof(Source), 0, Py_TPFLAGS_DEFAULT, slots};

int add_source_type(PyObject* module) {
    PyObject* type = PyType_FromSpec(&spec);
    if (!type) return -1;
    const int added = PyModule_AddObjectRef(module, "Source", type);
    Py_DECREF(type);
    return added;
}
