/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repeated.c - the type Repeated: a request that is made again in each step, on
 * the gradient of a parameter of PyTorch's (hvd/torch/optimizer.py).
 *
 * It is the hook that PyTorch calls when the gradient has been written. After
 * so many passes it submits the request that it keeps, if the gradient is still
 * where it was; otherwise it calls a function, which finds out what to do. The
 * waits for the requests of a step are one call, wait_repeated.
 *
 * While a request is under way the object has a reference to itself: the
 * library uses the gradient, even if the program has dropped everything.
 */
#include "extension.h"

#include <stddef.h>
#include <structmember.h>

struct repeated {
    PyObject base;
    PyObject *parameter; /* owned, and so are all others */
    PyObject *begin;     /* called with this object, where nothing is kept, and
                            with an error, if what is kept was refused */
    PyObject *begun;     /* a list: it is appended to what has begun */
    PyObject *complaint; /* the text of the error of one pass too many */
    PyObject *finish;    /* what Python waits by; None: nothing */
    PyObject *fields;    /* of the request; None: none is kept */
    PyObject *gradient;  /* for which it is kept */
    PyObject *address;   /* of that */
    hvd_request request; /* borrows from fields */
    hvd_handle handle;   /* 0: it is not under way */
    int passes, delay;   /* passes until it is submitted: in all, and left */
};

static PyTypeObject *repeated_type;
static PyObject *text_grad, *text_data_ptr;

/* ------------------------------------------------------------------ life */

/* The members that refer to other objects. */
#define REFERENCES(X)                                                          \
    X(parameter)                                                               \
    X(begin)                                                                   \
    X(begun)                                                                   \
    X(complaint)                                                               \
    X(finish)                                                                  \
    X(fields)                                                                  \
    X(gradient)                                                                \
    X(address)

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    struct repeated *r = (struct repeated *)self;

    Py_VISIT(Py_TYPE(self));
#define X(name) Py_VISIT(r->name);
    REFERENCES(X)
#undef X
    return 0;
}

static int clear(PyObject *self)
{
    struct repeated *r = (struct repeated *)self;

#define X(name) Py_CLEAR(r->name);
    REFERENCES(X)
#undef X
    return 0;
}

static void destroy(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(self);
    clear(self);
    release(self);
    Py_DECREF(type);
}

static void set(PyObject **member, PyObject *value)
{
    PyObject *old = *member;

    *member = Py_NewRef(value);
    Py_XDECREF(old);
}

/* Repeated(parameter, begin, begun, complaint) */
static int init(PyObject *self, PyObject *args, PyObject *keywords)
{
    struct repeated *r = (struct repeated *)self;
    PyObject *parameter, *begin, *begun, *complaint;

    (void)keywords;
    if (!PyArg_ParseTuple(args, "OOO!U:Repeated", &parameter, &begin,
                          &PyList_Type, &begun, &complaint))
        return -1;
    set(&r->parameter, parameter);
    set(&r->begin, begin);
    set(&r->begun, begun);
    set(&r->complaint, complaint);
    set(&r->finish, Py_None);
    set(&r->fields, Py_None);
    set(&r->gradient, Py_None);
    set(&r->address, Py_None);
    return 0;
}

/* ------------------------------------------------------------- submitting */

static bool submit(struct repeated *r)
{
    PyThreadState *state;
    int status;

    state = PyEval_SaveThread();
    status = binding.submit(&r->request, &r->handle);
    PyEval_RestoreThread(state);
    if (status < 0) {
        r->handle = 0;
        raise_last_error(status);
        return false;
    }
    Py_INCREF((PyObject *)r);
    return PyList_Append(r->begun, (PyObject *)r) == 0;
}

/* Returns 1 if the gradient is the one for which the request is kept, where it
 * was; -1: an exception. */
static int is_kept(const struct repeated *r)
{
    PyObject *gradient, *address;
    int same;

    if (r->fields == Py_None)
        return 0;
    gradient = PyObject_GetAttr(r->parameter, text_grad);
    if (!gradient)
        return -1;
    same = gradient == r->gradient;
    Py_DECREF(gradient);
    if (!same)
        return 0;
    address = PyObject_CallMethodObjArgs(r->gradient, text_data_ptr, NULL);
    if (!address)
        return -1;
    same = PyObject_RichCompareBool(address, r->address, Py_EQ);
    Py_DECREF(address);
    return same;
}

/* Submits the request that is kept, or calls begin. A request that was refused
 * is not submitted again, for the other ranks hear of each refusal: begin gets
 * the error, and raises it in the words of its caller. */
static bool go(struct repeated *r)
{
    PyObject *type, *error, *traceback, *result;
    int kept = is_kept(r);

    if (kept < 0)
        return false;
    if (kept && submit(r))
        return true;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    result = PyObject_CallFunctionObjArgs(r->begin, (PyObject *)r, error, NULL);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    Py_XDECREF(result);
    return result != NULL;
}

static bool is_begun(const struct repeated *r)
{
    return r->handle != 0 || r->finish != Py_None;
}

/* The hook of PyTorch. */
static PyObject *call(PyObject *self, PyObject *args, PyObject *keywords)
{
    struct repeated *r = (struct repeated *)self;

    (void)args, (void)keywords;
    if (is_begun(r) || r->delay <= 0) {
        PyErr_SetObject(PyExc_AssertionError, r->complaint);
        return NULL;
    }
    if (--r->delay == 0 && !go(r))
        return NULL;
    Py_RETURN_NONE;
}

/* start(): begins the request now */
static PyObject *start_now(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    if (!go((struct repeated *)self))
        return NULL;
    Py_RETURN_NONE;
}

/* keep(fields, gradient, address): keeps a request, and submits it */
static PyObject *keep(PyObject *self, PyObject *args)
{
    struct repeated *r = (struct repeated *)self;
    PyObject *fields, *gradient, *address;

    if (!PyArg_ParseTuple(args, "O!OO:keep", &PyTuple_Type, &fields, &gradient,
                          &address) ||
        !request_fill(fields, &r->request))
        return NULL;
    set(&r->fields, fields);
    set(&r->gradient, gradient);
    set(&r->address, address);
    if (!submit(r))
        return NULL;
    Py_RETURN_NONE;
}

/* forget(): keeps nothing any more. What is under way goes on. */
static PyObject *forget(PyObject *self, PyObject *nothing)
{
    struct repeated *r = (struct repeated *)self;

    (void)nothing;
    r->handle = 0; /* the reference to itself stays */
    set(&r->fields, Py_None);
    set(&r->gradient, Py_None);
    set(&r->address, Py_None);
    Py_RETURN_NONE;
}

/* ---------------------------------------------------------------- waiting */

/* Requests that are waited for while the interpreter's lock is released. */
enum { MOST = 64 };
struct some {
    int n, ndone;
    struct repeated *requests[MOST]; /* owned references */
    hvd_handle handles[MOST];
    int status; /* of the first that is not done; 0: it goes on */
};

/* Takes those of the list from first on, up to one that is not under way here.
 */
static void take(struct some *some, PyObject *begun, Py_ssize_t first)
{
    const Py_ssize_t end = PyList_Size(begun);

    some->n = some->ndone = some->status = 0;
    for (Py_ssize_t i = first; i < end && some->n < MOST; i++) {
        struct repeated *r = (struct repeated *)PyList_GetItem(begun, i);

        if (!PyObject_TypeCheck((PyObject *)r, repeated_type) || r->handle == 0)
            return;
        Py_INCREF((PyObject *)r);
        some->requests[some->n] = r;
        some->handles[some->n++] = r->handle;
    }
}

/* Waits for them in turn, as long as a slice allows. */
static void wait_unlocked(struct some *some)
{
    PyThreadState *state = PyEval_SaveThread();

    for (int i = 0; i < some->n; i++) {
        some->status = binding.wait_for(some->handles[i], REQUEST_SLICE_NS);
        if (some->status > 0)
            some->status = binding.wait(some->handles[i]);
        else if (some->status == 0)
            break;
        if (some->status < 0)
            break;
        some->ndone++;
    }
    PyEval_RestoreThread(state);
}

/* Writes down which are over, and lets go of them. */
static void settle(struct some *some)
{
    const int over = some->ndone + (some->status < 0);

    for (int i = 0; i < some->n; i++) {
        struct repeated *r = some->requests[i];

        if (i < over && r->handle == some->handles[i]) {
            r->handle = 0;
            r->delay = r->passes;
            Py_DECREF((PyObject *)r); /* the one of a request under way */
        }
        Py_DECREF((PyObject *)r);
    }
}

/* Waits for those from *done on, and adds how many succeeded. Returns false
 * with an exception. */
static bool wait_for_some(Py_ssize_t *done, struct some *some)
{
    wait_unlocked(some);
    *done += some->ndone;
    if (some->status < 0)
        raise_last_error(some->status);
    settle(some);
    return some->status >= 0 &&
           (some->ndone == some->n || PyErr_CheckSignals() == 0);
}

/* wait_repeated(begun): waits for the requests at the beginning of the list, up
 * to one that is not under way here, and removes them. If one fails, it is the
 * first of the list afterwards. */
PyObject *repeated_wait(PyObject *module, PyObject *begun)
{
    PyObject *type, *value, *traceback;
    Py_ssize_t done = 0;
    struct some some;
    bool good = true;

    (void)module;
    if (!PyList_Check(begun)) {
        PyErr_SetString(PyExc_TypeError, "what has begun is a list");
        return NULL;
    }
    take(&some, begun, 0);
    while (good && some.n > 0) {
        good = wait_for_some(&done, &some);
        if (good)
            take(&some, begun, done);
    }
    PyErr_Fetch(&type, &value, &traceback);
    PyList_SetSlice(begun, 0, done, NULL);
    PyErr_Restore(type, value, traceback);
    return good ? Py_NewRef(Py_None) : NULL;
}

/* --------------------------------------------------------------- the type */

static PyObject *get_is_begun(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(is_begun((struct repeated *)self));
}

#define MEMBER(name) offsetof(struct repeated, name)

static PyMemberDef members[] = {
    {"parameter", T_OBJECT, MEMBER(parameter), READONLY, "the parameter"},
    {"fields", T_OBJECT, MEMBER(fields), READONLY, "of the request, or None"},
    {"address", T_OBJECT, MEMBER(address), READONLY, "of the gradient"},
    {"finish", T_OBJECT, MEMBER(finish), 0, "what Python waits by, or None"},
    {"passes", T_INT, MEMBER(passes), 0, "after how many it is submitted"},
    {"delay", T_INT, MEMBER(delay), 0, "how many are left"},
    {NULL, 0, 0, 0, NULL}};

static PyGetSetDef properties[] = {
    {"is_begun", get_is_begun, NULL, "whether it is under way", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMethodDef methods[] = {
    {"start", start_now, METH_NOARGS, "start(): begins the request now"},
    {"keep", keep, METH_VARARGS,
     "keep(fields, gradient, address): keeps a request, and submits it"},
    {"forget", forget, METH_NOARGS, "forget(): keeps nothing any more"},
    {NULL, NULL, 0, NULL}};

PyObject *repeated_type_new(void)
{
    static PyType_Slot slots[] = {{Py_tp_doc, "A request of each step."},
                                  {Py_tp_new, PyType_GenericNew},
                                  {Py_tp_init, init},
                                  {Py_tp_dealloc, destroy},
                                  {Py_tp_traverse, traverse},
                                  {Py_tp_clear, clear},
                                  {Py_tp_call, call},
                                  {Py_tp_members, members},
                                  {Py_tp_getset, properties},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {
        .name = "hvd._hvd.Repeated",
        .basicsize = sizeof(struct repeated),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots};
    PyObject *type = PyType_FromSpec(&spec);

    repeated_type = (PyTypeObject *)type;
    text_grad = PyUnicode_InternFromString("grad");
    text_data_ptr = PyUnicode_InternFromString("data_ptr");
    return text_grad && text_data_ptr ? type : NULL;
}
