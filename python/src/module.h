/* The extension module rooftile._rooftile: rooftile.h for Python, under the limited API of 3.11, so that one file serves every
 * Python since. */
#ifndef ROOFTILE_PYTHON_MODULE_H
#define ROOFTILE_PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "rooftile/rooftile.h"

/* Raises what a status stands for, with the message and detail of the call that gave it. Returns null. */
PyObject* raise_status(int status);
/* Raises RequestError. Returns null. */
PyObject* raise_request(const char* format, ...);
/* A str of a text that the library gave, which it frees; where the status is a failure, raises it. */
PyObject* text_or_raise(int status, char* text);

typedef struct {
    PyObject_HEAD rooftile_plans* plans;
} Plans;

/* The plans of an object of that type; null where it raised. */
rooftile_plans* plans_of(PyObject* object);
/* plan_range(request, inputs=()): a document rooftile/range/1. */
PyObject* plan_range(PyObject* self, PyObject* arguments);
/* Adds the types to the module; -1 where it raised. */
int add_plans_type(PyObject* module);
int add_kernel_type(PyObject* module);
int add_source_type(PyObject* module);
/* A Kernel; its attribute `plan` is what is given, or what that returns when it is called. */
PyObject* make_kernel(rooftile_kernel* kernel, PyObject* plan);

#endif
