/* rooftile._rooftile.Kernel: a compiled plan that is called with tensors. */
#include <stdlib.h>
#include <string.h>

#include "tensor.h"

enum { most_tensors = 64, most_devices = 64 };

/* Zeroed device memory that one stream's launches share. */
typedef struct {
    int device;
    void* stream;
    void* memory;
    DLManagedTensorVersioned* tensor; /* that owns it; null: rooftile_allocate() */
} Workspace;

typedef struct {
    PyObject_HEAD rooftile_kernel* kernel;
    PyObject* plan; /* what the attribute gives; a callable gives it when it is first asked for */
    int tensors, inputs;
    DLDataType dtypes[most_tensors];
    int64_t workspace_bytes[most_devices]; /* -1: not asked yet */
    Workspace* workspaces;
    int workspace_count;
} Kernel;

/* A call: its tensors, the device and the stream. */
typedef struct {
    Argument arguments[most_tensors];
    void* pointers[most_tensors];
    PyObject* made[most_tensors]; /* outputs, given or made; inputs that had to be made anew */
    int read;                     /* arguments to release */
    int device;
    void* stream;
    int stream_given;
    void* workspace;
} Call;

static const rooftile_tensor* expected(const Kernel* self, int index) {
    return rooftile_kernel_tensor_at(self->kernel, index);
}

static void free_workspace(const Workspace* workspace) {
    if (workspace->tensor) workspace->tensor->deleter(workspace->tensor);
    else rooftile_free_memory(workspace->device, workspace->memory);
}

static void set_error(void* context, const char* kind, const char* message) {
    (void)context;
    PyErr_Format(PyExc_RuntimeError, "%s: %s", kind, message);
}

static DLManagedTensorVersioned* allocated(const DLPackExchangeAPI* api, int device, DLDataType dtype,
                                           int64_t* shape, int rank) {
    DLManagedTensorVersioned* tensor = NULL;
    DLTensor prototype;
    memset(&prototype, 0, sizeof prototype);
    prototype.device.type = dlpack_cuda;
    prototype.device.id = device;
    prototype.dtype = dtype;
    prototype.ndim = rank;
    prototype.shape = shape;
    if (api->managed_tensor_allocator(&prototype, &tensor, NULL, set_error) == 0) return tensor;
    /* Where the GPU cannot be used any more, as after a fork, we know a better reason than its library. */
    int capturing = 0;
    const int status = rooftile_is_capturing(device, NULL, &capturing);
    if (status != ROOFTILE_DONE) {
        PyErr_Clear();
        raise_status(status);
    }
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "the tensors' library allocates no tensor");
    return NULL;
}

int stream_of(PyObject* object, void** stream) {
    static const char* const attributes[] = {"cuda_stream", "ptr", "handle"};
    PyObject* number = NULL;
    if (PyLong_Check(object)) {
        number = object;
        Py_INCREF(number);
    } else if (PyObject_HasAttrString(object, "__cuda_stream__")) {
        PyObject* pair = PyObject_CallMethod(object, "__cuda_stream__", NULL);
        if (!pair) return -1;
        number = PySequence_GetItem(pair, 1);
        Py_DECREF(pair);
    } else {
        for (size_t i = 0; !number && i < sizeof attributes / sizeof attributes[0]; ++i) {
            number = PyObject_GetAttrString(object, attributes[i]);
            if (!number) PyErr_Clear();
        }
        if (!number) {
            raise_request(
                "stream is a %R; accepted is a CUDA stream's handle as an int, or an object that has one",
                (PyObject*)Py_TYPE(object));
            return -1;
        }
    }
    /* Small numbers are the streams that CUDA has names for; no other handle lies in the first page. */
    enum { named_streams = 2, first_page = 4096 };
    const long long handle = number && PyLong_Check(number) ? PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    if (handle < 0 || (handle > named_streams && handle < first_page)) {
        PyErr_Clear();
        raise_request("stream is %R, which is no handle of a CUDA stream", object);
        return -1;
    }
    *stream = (void*)(uintptr_t)handle;
    return 0;
}

/* The stream that the tensors' library works in; without one the legacy default stream, for which __dlpack__ has ordered. */
static int find_stream(Call* call, const DLPackExchangeAPI* api) {
    if (call->stream_given || !api || !api->current_work_stream) return 0;
    return api->current_work_stream(dlpack_cuda, call->device, &call->stream);
}

/* A tensor whose memory holds its negative: an input is made anew, in its library's current stream. Null where it raised. */
static PyObject* as_it_says(Call* call, int index, const rooftile_tensor* tensor, PyObject* object) {
    if (tensor->is_output || call->stream_given)
        return raise_request("%s has torch's negative bit: give %s", tensor->name,
                             tensor->is_output ? "a tensor without it as out=" : "its resolve_neg(), or no stream=");
    call->made[index] = PyObject_CallMethod(object, "resolve_neg", NULL);
    return call->made[index];
}

static int read_argument(Kernel* self, Call* call, int index, PyObject* object, PyObject* stream) {
    Argument* argument = &call->arguments[index];
    const rooftile_tensor* tensor = expected(self, index);
    const int negative = is_negative(object);
    if (negative > 0) object = as_it_says(call, index, tensor, object);
    if (negative < 0 || !object) return -1;
    if (read_tensor(object, tensor->name, stream, argument) != 0) return -1;
    call->read = index + 1;
    if (check_tensor(tensor, self->dtypes[index], argument) != 0) return -1;
    call->pointers[index] = first_element(argument);
    if (index == 0) call->device = argument->view.device.id;
    if (argument->view.device.id == call->device) return 0;
    raise_request("%s is on device %d, %s on device %d", tensor->name, (int)argument->view.device.id,
                  expected(self, 0)->name, call->device);
    return -1;
}

static int make_output(Kernel* self, Call* call, int index, const DLPackExchangeAPI* api) {
    const rooftile_tensor* tensor = expected(self, index);
    int64_t dense = 1;
    if (!api || !api->managed_tensor_allocator || !api->managed_tensor_to_py_object_no_sync) {
        raise_request("%s cannot be made by the library of %s: give it as out=", tensor->name,
                      expected(self, 0)->name);
        return -1;
    }
    for (int axis = tensor->rank - 1; axis >= 0; --axis) {
        if (tensor->extents[axis] > 1 && tensor->strides[axis] != dense) {
            raise_request("%s is not dense in the plan: give it as out=", tensor->name);
            return -1;
        }
        if (tensor->extents[axis] > 1) dense *= tensor->extents[axis];
    }
    DLManagedTensorVersioned* made =
        allocated(api, call->device, self->dtypes[index], (int64_t*)tensor->extents, tensor->rank);
    if (!made) return -1;
    call->pointers[index] = (char*)made->dl_tensor.data + made->dl_tensor.byte_offset;
    void* object = NULL;
    if (api->managed_tensor_to_py_object_no_sync(made, &object) != 0) return -1;
    call->made[index] = (PyObject*)object;
    return 0;
}

/* Inputs are read as memory that nobody writes. */
static int check_overlap(Kernel* self, const Call* call, int output) {
    const char* begin = call->pointers[output];
    const char* end = begin + span_bytes(&call->arguments[output].view);
    for (int i = 0; i < self->tensors; ++i) {
        if (i == output || (i >= self->inputs && i > output)) continue;
        const char* other = call->pointers[i];
        if (begin == end || other >= end || other + span_bytes(&call->arguments[i].view) <= begin) continue;
        raise_request("%s overlaps %s in memory: an output may overlap no other tensor",
                      expected(self, output)->name, expected(self, i)->name);
        return -1;
    }
    return 0;
}

static int given_outputs(Kernel* self, Call* call, PyObject* out, PyObject* stream) {
    const int outputs = self->tensors - self->inputs;
    const int several = PyTuple_Check(out) || PyList_Check(out);
    const Py_ssize_t count = several ? PySequence_Size(out) : 1;
    if (count != outputs) {
        raise_request("out has %d tensors; the plan has %d outputs", (int)count, outputs);
        return -1;
    }
    for (int i = 0; i < outputs; ++i) {
        PyObject* object = several ? PySequence_GetItem(out, i) : out;
        if (!several) Py_INCREF(object);
        if (!object) return -1;
        call->made[self->inputs + i] = object;
        if (read_argument(self, call, self->inputs + i, object, stream) != 0) return -1;
        if (check_overlap(self, call, self->inputs + i) != 0) return -1;
    }
    return 0;
}

static int64_t bytes_of_workspace(Kernel* self, int device) {
    size_t bytes = 0;
    const int keeps = device >= 0 && device < most_devices;
    if (keeps && self->workspace_bytes[device] >= 0) return self->workspace_bytes[device];
    const int status = rooftile_workspace_bytes(self->kernel, device, &bytes);
    if (status != ROOFTILE_DONE) return raise_status(status), -1;
    if (keeps) self->workspace_bytes[device] = (int64_t)bytes;
    return (int64_t)bytes;
}

/* Memory for this launch's stream, zeroed in it. While a graph is captured it is memory of that graph, kept by its library's
 * allocator; then `call->workspace` is freed after the launch, by `kept` being 0. That allocator is told of no stream: of another one than
 * its own it would give the memory to somebody else too early. */
static int find_workspace(Kernel* self, Call* call, const DLPackExchangeAPI* api, Workspace* fresh,
                          int* kept) {
    int64_t bytes = bytes_of_workspace(self, call->device);
    int capturing = 0;
    if (bytes <= 0) return bytes == 0 ? 0 : -1;
    int status = rooftile_is_capturing(call->device, call->stream, &capturing);
    if (status != ROOFTILE_DONE) return raise_status(status), -1;
    for (int i = 0; !capturing && i < self->workspace_count; ++i) {
        const Workspace* known = &self->workspaces[i];
        if (known->device != call->device || known->stream != call->stream) continue;
        call->workspace = known->memory;
        return 0;
    }
    const DLDataType byte = {dlpack_uint, 8, 1};
    Workspace made = {call->device, call->stream, NULL, NULL};
    void* own = NULL;
    int allocates = api && api->managed_tensor_allocator;
    if (allocates && call->stream_given)
        allocates = api->current_work_stream && api->current_work_stream(dlpack_cuda, call->device, &own) == 0 && own == call->stream;
    if (capturing && !allocates) {
        raise_request("a graph is captured, and nothing here can allocate its workspace of %lld B: give it as workspace=, or capture in "
                      "the current stream of a library that has DLPack's C exchange interface",
                      (long long)bytes);
        return -1;
    }
    if (allocates) {
        made.tensor = allocated(api, call->device, byte, &bytes, 1);
        if (!made.tensor) return -1;
        made.memory = (char*)made.tensor->dl_tensor.data + made.tensor->dl_tensor.byte_offset;
    } else {
        status = rooftile_allocate(call->device, (size_t)bytes, &made.memory);
        if (status != ROOFTILE_DONE) return raise_status(status), -1;
    }
    status = rooftile_zero(call->device, call->stream, made.memory, (size_t)bytes);
    Workspace* grown = NULL;
    if (status == ROOFTILE_DONE && !capturing)
        grown = realloc(self->workspaces, (size_t)(self->workspace_count + 1) * sizeof *grown);
    if (status != ROOFTILE_DONE || (!capturing && !grown)) {
        free_workspace(&made);
        return status != ROOFTILE_DONE ? (raise_status(status), -1) : (PyErr_NoMemory(), -1);
    }
    call->workspace = made.memory;
    *kept = !capturing;
    if (capturing) {
        *fresh = made;
        return 0;
    }
    self->workspaces = grown;
    self->workspaces[self->workspace_count++] = made;
    return 0;
}

static PyObject* result_of(Kernel* self, Call* call) {
    const int outputs = self->tensors - self->inputs;
    PyObject* out = outputs == 1 ? call->made[self->inputs] : PyTuple_New(outputs);
    if (outputs == 1) Py_INCREF(out);
    for (int i = 0; out && outputs > 1 && i < outputs; ++i) {
        Py_INCREF(call->made[self->inputs + i]);
        if (PyTuple_SetItem(out, i, call->made[self->inputs + i]) != 0) Py_CLEAR(out);
    }
    return out;
}

/* Inputs are read and checked, outputs found or made; 0 where it raised. `api`: of the first input. */
static int read_call(Kernel* self, Call* call, PyObject* const* inputs, PyObject* out, PyObject* stream, const DLPackExchangeAPI** api) {
    PyObject* order = stream; /* what __dlpack__ is told; 1 is the legacy default stream */
    if (stream != Py_None) {
        if (stream_of(stream, &call->stream) != 0) return 0;
        call->stream_given = 1;
        order = PyLong_FromVoidPtr(call->stream ? call->stream : (void*)1);
    } else {
        order = PyLong_FromLong(1);
    }
    if (!order) return 0;
    int good = 1;
    for (int i = 0; good && i < self->inputs; ++i) good = read_argument(self, call, i, inputs[i], order) == 0;
    *api = good ? call->arguments[0].api : NULL;
    good = good && find_stream(call, *api) == 0;
    if (good && out != Py_None) good = given_outputs(self, call, out, order) == 0;
    else
        for (int i = self->inputs; good && i < self->tensors; ++i)
            good = make_output(self, call, i, *api) == 0;
    Py_DECREF(order);
    return good;
}

/* The kernel launched on what a call gives. */
static PyObject* launched(Kernel* self, Call* call, PyObject* const* inputs, PyObject* out, PyObject* stream,
                          PyObject* workspace) {
    Workspace fresh = {0, NULL, NULL, NULL};
    int kept = 1, status = 0;
    const DLPackExchangeAPI* api = NULL;
    int good = read_call(self, call, inputs, out, stream, &api);
    if (good && workspace != Py_None) {
        Argument given;
        PyObject* number = PyLong_Check(workspace) ? workspace : NULL;
        if (number) call->workspace = PyLong_AsVoidPtr(number);
        else good = read_tensor(workspace, "workspace", Py_None, &given) == 0;
        if (good && !number) {
            call->workspace = first_element(&given);
            if (span_bytes(&given.view) < bytes_of_workspace(self, call->device)) {
                raise_request("the workspace has %lld B; the kernel needs %lld",
                              (long long)span_bytes(&given.view),
                              (long long)bytes_of_workspace(self, call->device));
                good = 0;
            }
            release(&given);
        }
        if (good && PyErr_Occurred()) {
            PyErr_Clear();
            raise_request("workspace is %R, which is no address", workspace);
            good = 0;
        }
    } else if (good) {
        good = find_workspace(self, call, api, &fresh, &kept) == 0;
    }
    if (!good) return NULL;
    PyThreadState* state = PyEval_SaveThread(); /* a full queue waits for the GPU */
    status = rooftile_launch(self->kernel, call->device, call->stream, call->pointers, self->tensors,
                             call->workspace);
    PyEval_RestoreThread(state);
    if (!kept) free_workspace(&fresh);
    if (status != ROOFTILE_DONE) return raise_status(status);
    return result_of(self, call);
}

/* Tensors by position and by name, into `inputs`. -1 where it raised. */
static int bind(Kernel* self, PyObject* positional, PyObject* keywords, PyObject** inputs,
                PyObject** options) {
    static const char* const names[] = {"out", "stream", "workspace"};
    const Py_ssize_t given = PyTuple_Size(positional);
    if (given > self->inputs) {
        raise_request("%d tensors are given; the plan has %d inputs", (int)given, self->inputs);
        return -1;
    }
    for (Py_ssize_t i = 0; i < given; ++i) inputs[i] = PyTuple_GetItem(positional, i);
    Py_ssize_t used = 0;
    if (keywords) {
        for (int i = 0; i < 3; ++i) {
            PyObject* value = PyDict_GetItemString(keywords, names[i]);
            if (value) options[i] = value, ++used;
        }
        for (int i = 0; i < self->inputs; ++i) {
            PyObject* value = PyDict_GetItemString(keywords, expected(self, i)->name);
            if (!value) continue;
            if (inputs[i]) {
                raise_request("%s is given twice", expected(self, i)->name);
                return -1;
            }
            inputs[i] = value;
            ++used;
        }
        if (used != PyDict_Size(keywords)) {
            PyObject* all = PyDict_Keys(keywords);
            raise_request("unknown among %R: a kernel takes its inputs by name, out, stream and workspace",
                          all);
            Py_XDECREF(all);
            return -1;
        }
    }
    for (int i = 0; i < self->inputs; ++i)
        if (!inputs[i]) {
            raise_request("%s is not given", expected(self, i)->name);
            return -1;
        }
    return 0;
}

static void begin_call(Kernel* self, Call* call) {
    call->read = call->device = call->stream_given = 0;
    call->stream = call->workspace = NULL;
    for (int i = 0; i < self->tensors; ++i) call->made[i] = NULL;
}

static void end_call(Kernel* self, Call* call) {
    for (int i = 0; i < call->read; ++i) release(&call->arguments[i]);
    for (int i = 0; i < self->tensors; ++i) Py_XDECREF(call->made[i]);
}

static PyObject* kernel_call(PyObject* object, PyObject* positional, PyObject* keywords) {
    Kernel* self = (Kernel*)object;
    PyObject* inputs[most_tensors] = {NULL};
    PyObject* options[3] = {Py_None, Py_None, Py_None};
    if (bind(self, positional, keywords, inputs, options) != 0) return NULL;
    Call call;
    begin_call(self, &call);
    PyObject* out = launched(self, &call, inputs, options[0], options[1], options[2]);
    end_call(self, &call);
    return out;
}

static PyObject* kernel_tune(PyObject* object, PyObject* arguments) {
    Kernel* self = (Kernel*)object;
    PyObject *of = NULL, *positional = NULL, *keywords = NULL;
    int count = 0, rank = 0, status = ROOFTILE_DONE;
    if (!PyArg_ParseTuple(arguments, "OiO!O!", &of, &count, &PyTuple_Type, &positional, &PyDict_Type, &keywords)) return NULL;
    rooftile_plans* plans = plans_of(of);
    PyObject* inputs[most_tensors] = {NULL};
    PyObject* options[3] = {Py_None, Py_None, Py_None};
    if (!plans || bind(self, positional, keywords, inputs, options) != 0) return NULL;
    Call call;
    const DLPackExchangeAPI* api = NULL;
    begin_call(self, &call);
    const int good = read_call(self, &call, inputs, options[0], options[1], &api);
    if (good) {
        PyThreadState* state = PyEval_SaveThread();
        status = rooftile_tune(plans, count, call.device, call.stream, call.pointers, self->tensors, &rank);
        PyEval_RestoreThread(state);
    }
    end_call(self, &call);
    if (!good) return NULL;
    return status == ROOFTILE_DONE ? PyLong_FromLong(rank) : raise_status(status);
}

static PyObject* kernel_json(PyObject* self, PyObject* unused) {
    (void)unused;
    char* text = NULL;
    const int status = rooftile_kernel_json(((Kernel*)self)->kernel, &text);
    return text_or_raise(status, text);
}

static PyObject* kernel_load(PyObject* self, PyObject* arguments) {
    int device = 0, status = 0;
    if (!PyArg_ParseTuple(arguments, "|i", &device)) return NULL;
    PyThreadState* state = PyEval_SaveThread();
    status = rooftile_load(((Kernel*)self)->kernel, device);
    PyEval_RestoreThread(state);
    if (status != ROOFTILE_DONE) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject* kernel_workspace_bytes(PyObject* self, PyObject* arguments) {
    int device = 0;
    if (!PyArg_ParseTuple(arguments, "|i", &device)) return NULL;
    const int64_t bytes = bytes_of_workspace((Kernel*)self, device);
    return bytes < 0 ? NULL : PyLong_FromLongLong(bytes);
}

static PyObject* kernel_plan(PyObject* object, void* unused) {
    (void)unused;
    Kernel* self = (Kernel*)object;
    if (PyCallable_Check(self->plan)) {
        PyObject* made = PyObject_CallNoArgs(self->plan);
        if (!made) return NULL;
        PyObject* before = self->plan; /* another thread may have been faster */
        self->plan = made;
        Py_DECREF(before);
    }
    Py_INCREF(self->plan);
    return self->plan;
}

static PyObject* kernel_at(PyObject* object, PyObject* arguments) {
    const char* field = NULL;
    long long value = 0;
    PyObject* plan = NULL;
    rooftile_kernel* other = NULL;
    if (!PyArg_ParseTuple(arguments, "sLO", &field, &value, &plan)) return NULL;
    const int status = rooftile_kernel_at(((Kernel*)object)->kernel, field, value, &other);
    if (status != ROOFTILE_DONE) return raise_status(status);
    if (!other) Py_RETURN_NONE;
    return make_kernel(other, plan);
}

static void kernel_dealloc(PyObject* object) {
    Kernel* self = (Kernel*)object;
    PyTypeObject* type = Py_TYPE(object);
    for (int i = 0; i < self->workspace_count; ++i) free_workspace(&self->workspaces[i]);
    free(self->workspaces);
    rooftile_free_kernel(self->kernel);
    Py_XDECREF(self->plan);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"json", kernel_json, METH_NOARGS,
     "json() -> str\n\nRegisters, shared memory (bytes), name and hash of the machine code, as JSON."},
    {"load", kernel_load, METH_VARARGS,
     "load(device=0)\n\nLoads the code onto a GPU, which the first call does too, but not while a graph is "
     "captured.\n"
     "Raises NoGpu on a GPU of another architecture."},
    {"workspace_bytes", kernel_workspace_bytes, METH_VARARGS,
     "workspace_bytes(device=0) -> int\n\nBytes that a launch needs beside its tensors, on that GPU; 0: "
     "none."},
    {"tune", kernel_tune, METH_VARARGS,
     "tune(plans, count, inputs, named) -> int\n\nThe rank, among `plans` of the same problem, of the choice that is kept, or made now on "
     "the tensors of a call\nkernel(*inputs, **named). 0: a graph is captured, and none is kept."},
    {"at", kernel_at, METH_VARARGS,
     "at(field, value, plan) -> Kernel | None\n\nThe kernel for the same problem but that `field` is `value`, by the same code, in "
     "microseconds; its attribute\n`plan` is what is given, or what that returns when it is called. None: that value has a plan of "
     "its own."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef attributes[] = {{"plan", kernel_plan, NULL, "The Plan it was compiled from.", NULL},
                                   {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot slots[] = {{Py_tp_dealloc, kernel_dealloc},
                              {Py_tp_call, kernel_call},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, attributes},
                              {Py_tp_doc,
                               "A compiled plan: kernel(*inputs, out=None, stream=None, workspace=None) -> "
                               "output, or a tuple of several.\n\n"
                               "Inputs are tensors with DLPack (torch, CuPy, JAX) on one CUDA device, by "
                               "position or by name, of the plan's\n"
                               "types, extents and strides (elements). `out`: the outputs, one or a tuple; "
                               "without it they are made by the\n"
                               "inputs' library where that has DLPack's C exchange interface. `stream`: a "
                               "handle or a stream object; without it\n"
                               "the library's current stream, else the legacy default one. `workspace`: "
                               "zeroed memory that no launch beside this\n"
                               "one uses; without it each stream has its own. A call neither synchronises "
                               "nor waits, and can be captured.\n"
                               "Raises RequestError where a tensor is not as planned, NoGpu, GpuFailed."},
                              {0, NULL}};
static PyType_Spec spec = {"rooftile._rooftile.Kernel", sizeof(Kernel), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
static PyTypeObject* kernel_type = NULL;

PyObject* make_kernel(rooftile_kernel* kernel, PyObject* plan) {
    Kernel* self = NULL;
    const int count = rooftile_kernel_tensor_count(kernel);
    if (count > most_tensors)
        raise_request("the plan has %d tensors; up to %d are accepted", count, most_tensors);
    else self = (Kernel*)((allocfunc)PyType_GetSlot(kernel_type, Py_tp_alloc))(kernel_type, 0);
    if (!self) {
        rooftile_free_kernel(kernel);
        return NULL;
    }
    self->kernel = kernel;
    Py_INCREF(plan);
    self->plan = plan;
    self->tensors = count;
    for (int i = 0; i < most_devices; ++i) self->workspace_bytes[i] = -1;
    for (int i = 0; i < count; ++i) {
        const rooftile_tensor* tensor = rooftile_kernel_tensor_at(kernel, i);
        self->dtypes[i] = dtype_of(tensor->type);
        self->inputs += !tensor->is_output; /* inputs stand first */
    }
    return (PyObject*)self;
}

int add_kernel_type(PyObject* module) {
    PyObject* type = PyType_FromSpec(&spec);
    if (!type) return -1;
    kernel_type = (PyTypeObject*)type;
    return PyModule_AddObjectRef(module, "Kernel", type);
}
