#include "module.h"

#include <stdarg.h>

/* {status: exception class}, filled by rooftile/_errors.py. */
static PyObject* errors = NULL;

static PyObject* raise(int status, const char* message, const char* detail) {
    PyObject* key = PyLong_FromLong(status);
    PyObject* class = key ? PyDict_GetItemWithError(errors, key) : NULL;
    Py_XDECREF(key);
    if (!class) class = PyExc_RuntimeError;
    PyObject* error = PyObject_CallFunction(class, "s", message);
    if (!error) return NULL;
    if (class != PyExc_RuntimeError) {
        PyObject* text = PyUnicode_FromString(detail);
        const int set = text ? PyObject_SetAttrString(error, "detail", text) : -1;
        Py_XDECREF(text);
        if (set != 0) {
            Py_DECREF(error);
            return NULL;
        }
    }
    PyErr_SetObject(class, error);
    Py_DECREF(error);
    return NULL;
}

PyObject* raise_status(int status) {
    return raise(status, rooftile_error_message(), rooftile_error_detail());
}

PyObject* raise_request(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    PyObject* text = PyUnicode_FromFormatV(format, arguments);
    va_end(arguments);
    if (!text) return NULL;
    PyObject* bytes = PyUnicode_AsUTF8String(text);
    Py_DECREF(text);
    if (!bytes) return NULL;
    raise(ROOFTILE_BAD_REQUEST, PyBytes_AsString(bytes), "");
    Py_DECREF(bytes);
    return NULL;
}

PyObject* text_or_raise(int status, char* text) {
    if (status != ROOFTILE_DONE) return raise_status(status);
    PyObject* out = PyUnicode_FromString(text);
    rooftile_free_text(text);
    return out;
}

static PyObject* version(PyObject* self, PyObject* unused) {
    (void)self, (void)unused;
    return PyUnicode_FromString(rooftile_version());
}

static PyObject* operations(PyObject* self, PyObject* unused) {
    (void)self, (void)unused;
    char* text = NULL;
    const int status = rooftile_operations(&text);
    return text_or_raise(status, text);
}

static PyObject* machines(PyObject* self, PyObject* unused) {
    (void)self, (void)unused;
    char* text = NULL;
    const int status = rooftile_machines(&text);
    return text_or_raise(status, text);
}

static PyObject* machine(PyObject* self, PyObject* arguments) {
    (void)self;
    const char* id = NULL;
    char* text = NULL;
    if (!PyArg_ParseTuple(arguments, "z", &id)) return NULL;
    const int status = rooftile_machine(id, &text);
    return text_or_raise(status, text);
}

static PyObject* add_cuda_folder(PyObject* self, PyObject* arguments) {
    (void)self;
    const char* folder = NULL;
    if (!PyArg_ParseTuple(arguments, "s", &folder)) return NULL;
    const int status = rooftile_add_cuda_folder(folder);
    if (status != ROOFTILE_DONE) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject* status_name(PyObject* self, PyObject* arguments) {
    (void)self;
    int status = 0;
    if (!PyArg_ParseTuple(arguments, "i", &status)) return NULL;
    return PyUnicode_FromString(rooftile_status_name(status));
}

enum { most_arrays = 8 };

/* The buffers of `arrays`, (buffer, type, rows, columns) each, as rooftile_pack() takes them; how many were taken, -1 where it raised. */
static int read_arrays(PyObject* arrays, Py_buffer* buffers, rooftile_array* out, int* taken) {
    const Py_ssize_t count = PyTuple_Size(arrays);
    if (count < 0) return -1;
    if (count > most_arrays) {
        raise_request("%d arrays are given; at most %d are packed", (int)count, most_arrays);
        return -1;
    }
    for (; *taken < (int)count; ++*taken) {
        PyObject* buffer = NULL;
        const char* type = NULL;
        long long rows = 0, columns = 0;
        PyObject* array = PyTuple_GetItem(arrays, *taken);
        if (!array || !PyArg_ParseTuple(array, "OsLL", &buffer, &type, &rows, &columns)) return -1;
        if (PyObject_GetBuffer(buffer, &buffers[*taken], PyBUF_C_CONTIGUOUS) != 0) return -1;
        out[*taken] = (rooftile_array){buffers[*taken].buf, type, rows, columns};
        if (rows < 0 || columns < 0 || (rows > 0 && buffers[*taken].len / rows != columns * buffers[*taken].itemsize)) {
            raise_request("array %d has %zd bytes, not those of %lld x %lld", *taken + 1, buffers[*taken].len, rows, columns);
            ++*taken;
            return -1;
        }
    }
    return (int)count;
}

static PyObject* pack(PyObject* self, PyObject* arguments) {
    (void)self;
    const char* request = NULL;
    PyObject* arrays = NULL;
    if (!PyArg_ParseTuple(arguments, "sO!", &request, &PyTuple_Type, &arrays)) return NULL;
    Py_buffer buffers[most_arrays];
    rooftile_array given[most_arrays];
    int taken = 0;
    PyObject* packed = NULL;
    const int count = read_arrays(arrays, buffers, given, &taken);
    if (count >= 0) {
        size_t bytes = 0;
        int status = rooftile_packed_bytes(request, &bytes);
        if (status == ROOFTILE_DONE && (packed = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes))) {
            char* to = PyByteArray_AsString(packed);
            Py_BEGIN_ALLOW_THREADS
            status = rooftile_pack(request, given, count, to, bytes);
            Py_END_ALLOW_THREADS
        }
        if (status != ROOFTILE_DONE) {
            Py_CLEAR(packed);
            raise_status(status);
        }
    }
    for (int i = 0; i < taken; ++i) PyBuffer_Release(&buffers[i]);
    return packed;
}

static PyObject* packed_bytes(PyObject* self, PyObject* arguments) {
    (void)self;
    const char* request = NULL;
    size_t bytes = 0;
    if (!PyArg_ParseTuple(arguments, "s", &request)) return NULL;
    const int status = rooftile_packed_bytes(request, &bytes);
    return status == ROOFTILE_DONE ? PyLong_FromSize_t(bytes) : raise_status(status);
}

static PyObject* stored_weights(PyObject* self, PyObject* arguments) {
    (void)self;
    const char *file = NULL, *tensor = NULL, *scale = NULL;
    char* text = NULL;
    if (!PyArg_ParseTuple(arguments, "ssz", &file, &tensor, &scale)) return NULL;
    PyThreadState* state = PyEval_SaveThread();
    const int status = rooftile_stored_weights(file, tensor, scale, &text);
    PyEval_RestoreThread(state);
    return text_or_raise(status, text);
}

static PyObject* pack_stored(PyObject* self, PyObject* arguments) {
    (void)self;
    const char *file = NULL, *tensor = NULL, *scale = NULL;
    Py_ssize_t bytes = 0;
    if (!PyArg_ParseTuple(arguments, "sszn", &file, &tensor, &scale, &bytes)) return NULL;
    PyObject* packed = PyByteArray_FromStringAndSize(NULL, bytes);
    if (!packed) return NULL;
    char* to = PyByteArray_AsString(packed);
    PyThreadState* state = PyEval_SaveThread();
    const int status = rooftile_pack_stored(file, tensor, scale, to, (size_t)bytes);
    PyEval_RestoreThread(state);
    if (status == ROOFTILE_DONE) return packed;
    Py_DECREF(packed);
    return raise_status(status);
}

static PyMethodDef functions[] = {
    {"version", version, METH_NOARGS, "The library's version."},
    {"operations", operations, METH_NOARGS, "The operations with their fields, as JSON."},
    {"machines", machines, METH_NOARGS, "The shipped machines, as JSON."},
    {"machine", machine, METH_VARARGS, "machine(id | None): one machine, as JSON; None: the GPU here."},
    {"add_cuda_folder", add_cuda_folder, METH_VARARGS,
     "add_cuda_folder(folder): where CUDA's libraries may lie."},
    {"plan_range", plan_range, METH_VARARGS, "plan_range(request, inputs=()): a document rooftile/range/1."},
    {"pack", pack, METH_VARARGS, "pack(request, arrays): a bytearray of what arrays (buffer, type, rows, columns) are packed into."},
    {"packed_bytes", packed_bytes, METH_VARARGS, "packed_bytes(request): of the tensor that a request's kernels read packed."},
    {"stored_weights", stored_weights, METH_VARARGS, "stored_weights(file, tensor, scale | None): what they are and take packed, as JSON."},
    {"pack_stored", pack_stored, METH_VARARGS, "pack_stored(file, tensor, scale | None, bytes): a bytearray of them, packed."},
    {"status_name", status_name, METH_VARARGS, "status_name(status): the exception of a status."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_rooftile", "rooftile.h for Python.", -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__rooftile(void) {
    PyObject* module = PyModule_Create(&definition);
    if (!module) return NULL;
    errors = PyDict_New();
    if (!errors || PyModule_AddObjectRef(module, "errors", errors) != 0 || add_plans_type(module) != 0
        || add_kernel_type(module) != 0 || add_source_type(module) != 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
