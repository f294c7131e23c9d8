/* rooftile._rooftile.Plans: the plans of a request. */
#include "tensor.h"

enum { most_inputs = 64 };

/* A sequence of integers into `numbers`; how many, or -1 where it raised. */
static int read_numbers(PyObject* sequence, int64_t* numbers) {
    const Py_ssize_t count = PySequence_Size(sequence);
    if (count > most_axes)
        raise_request("a tensor has %d axes; up to %d are accepted", (int)count, most_axes);
    if (count < 0 || count > most_axes) return -1;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* number = PySequence_GetItem(sequence, i);
        numbers[i] = number ? PyLong_AsLongLong(number) : -1;
        Py_XDECREF(number);
        if (PyErr_Occurred()) return -1;
    }
    return (int)count;
}

/* (name | None, type, element_bits, extents, strides, offset): what points into the tuple lives as long as that. */
static int read_input(PyObject* entry, rooftile_tensor* tensor, int64_t* extents, int64_t* strides) {
    PyObject *shape = NULL, *steps = NULL;
    long long offset = 0;
    if (!PyArg_ParseTuple(entry, "zsiOOL", &tensor->name, &tensor->type, &tensor->element_bits, &shape,
                          &steps, &offset))
        return -1;
    tensor->offset = offset;
    tensor->is_output = 0;
    tensor->rank = read_numbers(shape, extents);
    if (tensor->rank < 0 || read_numbers(steps, strides) != tensor->rank) {
        if (!PyErr_Occurred()) raise_request("a tensor has not as many strides as extents");
        return -1;
    }
    tensor->extents = extents;
    tensor->strides = strides;
    return 0;
}

/* (request, inputs) of a call: a text, and a tuple of at most `most_inputs` tensors. */
typedef struct {
    const char* request;
    int count;
    rooftile_tensor tensors[most_inputs];
    int64_t extents[most_inputs][most_axes], strides[most_inputs][most_axes];
} Asked;

static int read_asked(PyObject* arguments, Asked* asked) {
    PyObject* inputs = NULL;
    if (!PyArg_ParseTuple(arguments, "s|O!", &asked->request, &PyTuple_Type, &inputs)) return -1;
    const Py_ssize_t count = inputs ? PyTuple_Size(inputs) : 0;
    if (count > most_inputs) {
        raise_request("%d tensors are given; up to %d are accepted", (int)count, most_inputs);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; ++i)
        if (read_input(PyTuple_GetItem(inputs, i), &asked->tensors[i], asked->extents[i], asked->strides[i]) != 0) return -1;
    asked->count = (int)count;
    return 0;
}

static PyObject* plans_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
    rooftile_plans* plans = NULL;
    Asked asked;
    int status = 0;
    if (keywords && PyDict_Size(keywords) > 0)
        return PyErr_Format(PyExc_TypeError, "Plans() takes no keyword");
    if (read_asked(arguments, &asked) != 0) return NULL;
    PyThreadState* state = PyEval_SaveThread();
    status = rooftile_plan_tensors(asked.request, asked.tensors, asked.count, &plans);
    PyEval_RestoreThread(state);
    if (status != ROOFTILE_DONE) return raise_status(status);
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Plans* self = (Plans*)allocate(type, 0);
    if (!self) rooftile_free_plans(plans);
    else self->plans = plans;
    return (PyObject*)self;
}

PyObject* plan_range(PyObject* self, PyObject* arguments) {
    (void)self;
    Asked asked;
    char* text = NULL;
    int status = 0;
    if (read_asked(arguments, &asked) != 0) return NULL;
    PyThreadState* state = PyEval_SaveThread();
    status = rooftile_plan_range(asked.request, asked.tensors, asked.count, &text);
    PyEval_RestoreThread(state);
    return text_or_raise(status, text);
}

static void plans_dealloc(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    rooftile_free_plans(((Plans*)object)->plans);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static Py_ssize_t plans_length(PyObject* self) { return rooftile_plan_count(((Plans*)self)->plans); }

static PyObject* plans_json(PyObject* self, PyObject* unused) {
    (void)unused;
    char* text = NULL;
    const int status = rooftile_plans_json(((Plans*)self)->plans, &text);
    return text_or_raise(status, text);
}

static PyObject* plans_explain(PyObject* self, PyObject* arguments) {
    int rank = 1, width = 0;
    char* text = NULL;
    if (!PyArg_ParseTuple(arguments, "ii", &rank, &width)) return NULL;
    const int status = rooftile_explain(((Plans*)self)->plans, rank, width, &text);
    return text_or_raise(status, text);
}

static PyObject* plans_explanation(PyObject* self, PyObject* arguments) {
    int rank = 1;
    char* text = NULL;
    if (!PyArg_ParseTuple(arguments, "i", &rank)) return NULL;
    const int status = rooftile_explanation(((Plans*)self)->plans, rank, &text);
    return text_or_raise(status, text);
}

static PyObject* plans_pictures(PyObject* self, PyObject* arguments) {
    int rank = 1;
    const char* name = NULL;
    char* text = NULL;
    if (!PyArg_ParseTuple(arguments, "iz", &rank, &name)) return NULL;
    PyThreadState* state = PyEval_SaveThread();
    const int status = rooftile_pictures(((Plans*)self)->plans, rank, name, &text);
    PyEval_RestoreThread(state);
    return text_or_raise(status, text);
}

static PyObject* plans_source(PyObject* self, PyObject* arguments) {
    int rank = 1;
    char* text = NULL;
    if (!PyArg_ParseTuple(arguments, "i", &rank)) return NULL;
    const int status = rooftile_source(((Plans*)self)->plans, rank, &text);
    return text_or_raise(status, text);
}

static PyObject* tuple_of(const int64_t* numbers, int count) {
    PyObject* out = PyTuple_New(count);
    for (int i = 0; out && i < count; ++i) {
        PyObject* number = PyLong_FromLongLong(numbers[i]);
        if (!number || PyTuple_SetItem(out, i, number) != 0) Py_CLEAR(out);
    }
    return out;
}

static PyObject* plans_tensors(PyObject* self, PyObject* unused) {
    (void)unused;
    rooftile_plans* plans = ((Plans*)self)->plans;
    const int count = rooftile_tensor_count(plans);
    PyObject* out = PyTuple_New(count);
    for (int i = 0; out && i < count; ++i) {
        const rooftile_tensor* tensor = rooftile_tensor_at(plans, i);
        PyObject* entry =
            Py_BuildValue("(ssNNN)", tensor->name, tensor->type, tuple_of(tensor->extents, tensor->rank),
                          tuple_of(tensor->strides, tensor->rank), PyBool_FromLong(tensor->is_output));
        if (!entry || PyTuple_SetItem(out, i, entry) != 0) Py_CLEAR(out);
    }
    return out;
}

static PyObject* plans_compile(PyObject* self, PyObject* arguments) {
    int rank = 0, status = 0;
    PyObject* plan = NULL;
    rooftile_kernel* kernel = NULL;
    if (!PyArg_ParseTuple(arguments, "iO", &rank, &plan)) return NULL;
    PyThreadState* state = PyEval_SaveThread();
    status = rooftile_compile(((Plans*)self)->plans, rank, &kernel);
    PyEval_RestoreThread(state);
    if (status != ROOFTILE_DONE) return raise_status(status);
    return make_kernel(kernel, plan);
}

static PyObject* plans_tuned(PyObject* self, PyObject* arguments) {
    int device = 0, rank = 0, status = 0;
    if (!PyArg_ParseTuple(arguments, "i", &device)) return NULL;
    PyThreadState* state = PyEval_SaveThread();
    status = rooftile_tune(((Plans*)self)->plans, 0, device, NULL, NULL, 0, &rank);
    PyEval_RestoreThread(state);
    return status == ROOFTILE_DONE ? PyLong_FromLong(rank) : raise_status(status);
}

static PyMethodDef methods[] = {
    {"json", plans_json, METH_NOARGS, "The document rooftile/plan/1."},
    {"explain", plans_explain, METH_VARARGS, "explain(rank, width): every step, as text."},
    {"explanation", plans_explanation, METH_VARARGS, "explanation(rank): the document rooftile/explanation/1."},
    {"pictures", plans_pictures, METH_VARARGS, "pictures(rank, name): the document rooftile/pictures/1."},
    {"source", plans_source, METH_VARARGS, "source(rank): CUDA C++."},
    {"tensors", plans_tensors, METH_NOARGS, "((name, type, extents, strides, is_output), ...)."},
    {"tuned", plans_tuned, METH_VARARGS, "tuned(device): the rank of the choice that is kept for that GPU; 0: none is."},
    {"compile", plans_compile, METH_VARARGS, "compile(rank, plan): a Kernel."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot slots[] = {
    {Py_tp_new, plans_new},
    {Py_tp_dealloc, plans_dealloc},
    {Py_tp_methods, methods},
    {Py_sq_length, plans_length},
    {Py_tp_doc, "Plans(request, inputs=()): the plans of a JSON request, best first."},
    {0, NULL}};
static PyType_Spec spec = {"rooftile._rooftile.Plans", sizeof(Plans), 0, Py_TPFLAGS_DEFAULT, slots};

static PyTypeObject* plans_type = NULL;

rooftile_plans* plans_of(PyObject* object) {
    if (Py_TYPE(object) == plans_type) return ((Plans*)object)->plans;
    PyErr_Format(PyExc_TypeError, "%R is no Plans", object);
    return NULL;
}

int add_plans_type(PyObject* module) {
    PyObject* type = PyType_FromSpec(&spec);
    if (!type) return -1;
    plans_type = (PyTypeObject*)type;
    return PyModule_AddObjectRef(module, "Plans", type);
}
