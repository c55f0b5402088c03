/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.c - the type View: memory with a dtype and a shape.
 *
 * A view is made of an object that exports a buffer (view), of numbers (the
 * type itself: for tensors whose address is known), or of new memory of the
 * library (allocate, and the outputs of requests). As long as the view lives,
 * the memory does. It exports a buffer itself, so that numpy makes an array of
 * it without a copy.
 */
#include <string.h>

#include "extension.h"

PyTypeObject *view_type;

/* The letters of the module struct, by dtype. There is none for bfloat16, whose
 * bits are uint16 for numpy. */
static const char *const formats[HVD_NUM_DTYPES] = {
    [HVD_UINT8] = "B",   [HVD_INT8] = "b",    [HVD_UINT16] = "H",
    [HVD_INT16] = "h",   [HVD_INT32] = "i",   [HVD_INT64] = "q",
    [HVD_FLOAT16] = "e", [HVD_FLOAT32] = "f", [HVD_FLOAT64] = "d",
    [HVD_BOOL] = "?",    [HVD_BFLOAT16] = "H"};

static const uint8_t sizes[HVD_NUM_DTYPES] = {
    [HVD_UINT8] = 1,   [HVD_INT8] = 1,  [HVD_UINT16] = 2,  [HVD_INT16] = 2,
    [HVD_INT32] = 4,   [HVD_INT64] = 8, [HVD_FLOAT16] = 2, [HVD_FLOAT32] = 4,
    [HVD_FLOAT64] = 8, [HVD_BOOL] = 1,  [HVD_BFLOAT16] = 2};

static struct view *new_view(void)
{
    return PyObject_New(struct view, view_type);
}

/* Makes all fields those of a view of nothing. */
static struct view *clear_view(struct view *view)
{
    if (view)
        memset((char *)view + offsetof(struct view, buffer), 0,
               sizeof *view - offsetof(struct view, buffer));
    return view;
}

static void free_view(PyObject *self)
{
    struct view *view = (struct view *)self;
    PyTypeObject *type = Py_TYPE(self);

    if (view->buffer.obj)
        PyBuffer_Release(&view->buffer);
    Py_XDECREF(view->owner);
    if (view->memory)
        binding.free(view->memory);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ------------------------------------------------------------------ buffers */

static hvd_dtype signed_of(Py_ssize_t size)
{
    return size == 1   ? HVD_INT8
           : size == 2 ? HVD_INT16
           : size == 4 ? HVD_INT32
           : size == 8 ? HVD_INT64
                       : -1;
}

/* Returns the dtype of elements that a buffer describes, or -1 if the library
 * has none, or this machine's byte order is not theirs. */
static hvd_dtype dtype_of(const char *format, Py_ssize_t size)
{
    hvd_dtype dtype;

    if (!format)
        format = "B";
    if (*format == '@' || *format == '=' ||
        *format == (PY_LITTLE_ENDIAN ? '<' : '>'))
        format++;
    if (format[0] == '\0' || format[1] != '\0')
        return -1;
    switch (*format) {
    case '?': dtype = HVD_BOOL; break;
    case 'e': dtype = HVD_FLOAT16; break;
    case 'f': dtype = HVD_FLOAT32; break;
    case 'd': dtype = HVD_FLOAT64; break;
    case 'B': dtype = HVD_UINT8; break;
    case 'H': dtype = HVD_UINT16; break;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n': dtype = signed_of(size); break;
    default: dtype = -1;
    }
    return dtype >= 0 && sizes[dtype] == size ? dtype : -1;
}

/* Describes a buffer that was got. Returns false if it is not one that the
 * library can use. */
static bool describe_buffer(struct view *view)
{
    const Py_buffer *buffer = &view->buffer;

    view->dtype = dtype_of(buffer->format, buffer->itemsize);
    if (view->dtype < 0 || buffer->ndim > HVD_MAX_DIMS)
        return false;
    view->address = buffer->buf;
    view->ndim = buffer->ndim;
    for (int i = 0; i < buffer->ndim; i++)
        view->shape[i] = buffer->shape[i];
    return true;
}

PyObject *view_of_object(PyObject *module, PyObject *const *args,
                         Py_ssize_t nargs)
{
    struct view *view;
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT;

    (void)module;
    if (!has_arguments("view", nargs, 2))
        return NULL;
    if (args[1] == Py_True)
        flags |= PyBUF_WRITABLE;
    view = clear_view(new_view());
    if (!view)
        return NULL;
    if (PyObject_GetBuffer(args[0], &view->buffer, flags) == 0 &&
        describe_buffer(view))
        return (PyObject *)view;
    /* Why not is found out, and said, in Python. */
    PyErr_Clear();
    Py_DECREF(view);
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------ numbers */

static bool set_shape(struct view *view, PyObject *shape)
{
    Py_ssize_t ndim = PySequence_Size(shape);

    if (ndim < 0)
        return false;
    if (ndim > HVD_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "%zd dimensions are more than %d", ndim,
                     HVD_MAX_DIMS);
        return false;
    }
    view->ndim = (int32_t)ndim;
    for (Py_ssize_t i = 0; i < ndim; i++) {
        PyObject *extent = PySequence_GetItem(shape, i);
        bool got =
            extent && get_integer(extent, "an extent", 64, &view->shape[i]);

        Py_XDECREF(extent);
        if (!got)
            return false;
    }
    return true;
}

static bool set_dtype(struct view *view, PyObject *dtype)
{
    int64_t number;

    if (!get_integer(dtype, "dtype", 32, &number))
        return false;
    if (number < 0 || number >= HVD_NUM_DTYPES) {
        PyErr_Format(PyExc_ValueError, "there is no dtype %lld",
                     (long long)number);
        return false;
    }
    view->dtype = (hvd_dtype)number;
    return true;
}

/* View(address, dtype, shape, owner) */
static PyObject *make_view(PyTypeObject *type, PyObject *args, PyObject *named)
{
    PyObject *address, *dtype, *shape, *owner;
    struct view *view;

    (void)type;
    (void)named;
    if (!PyArg_ParseTuple(args, "OOOO:View", &address, &dtype, &shape, &owner))
        return NULL;
    view = clear_view(new_view());
    if (!view)
        return NULL;
    view->address = PyLong_AsVoidPtr(address);
    if ((!view->address && PyErr_Occurred()) || !set_dtype(view, dtype) ||
        !set_shape(view, shape)) {
        Py_DECREF(view);
        return NULL;
    }
    view->owner = Py_NewRef(owner);
    return (PyObject *)view;
}

/* ----------------------------------------------------- the library's memory */

PyObject *view_of_memory(void *memory, hvd_dtype dtype, int32_t ndim,
                         const int64_t *shape)
{
    struct view *view = clear_view(new_view());

    if (!view) {
        binding.free(memory);
        return NULL;
    }
    view->memory = view->address = memory;
    view->dtype = dtype;
    view->ndim = ndim;
    memcpy(view->shape, shape, (size_t)ndim * sizeof *shape);
    return (PyObject *)view;
}

/* Writes the bytes of a view. Returns false if they are more than there can be,
 * or an extent is negative. */
static bool count_bytes(const struct view *view, size_t *bytes)
{
    *bytes = sizes[view->dtype];
    for (int32_t i = 0; i < view->ndim; i++)
        if (view->shape[i] < 0 ||
            __builtin_mul_overflow(*bytes, (size_t)view->shape[i], bytes) ||
            *bytes > PY_SSIZE_T_MAX)
            return false;
    return true;
}

/* allocate(dtype, shape): a view of memory of hvd_malloc */
PyObject *view_allocate(PyObject *module, PyObject *const *args,
                        Py_ssize_t nargs)
{
    struct view *view;
    size_t bytes;

    (void)module;
    if (!has_arguments("allocate", nargs, 2) ||
        !(view = clear_view(new_view())))
        return NULL;
    if (set_dtype(view, args[0]) && set_shape(view, args[1])) {
        if (!count_bytes(view, &bytes))
            PyErr_Format(PyExc_ValueError, "there is no array of the shape %R",
                         args[1]);
        else if (!(view->memory = view->address = binding.malloc(bytes)))
            raise_last_error(HVD_ERR_MEMORY);
        else
            return (PyObject *)view;
    }
    Py_DECREF(view);
    return NULL;
}

/* ----------------------------------------------------------------- the type */

static PyObject *get_address(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromVoidPtr(((struct view *)self)->address);
}

static PyObject *get_dtype(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(((struct view *)self)->dtype);
}

static PyObject *get_shape(PyObject *self, void *closure)
{
    const struct view *view = (struct view *)self;
    PyObject *shape = PyTuple_New(view->ndim);

    (void)closure;
    for (int32_t i = 0; shape && i < view->ndim; i++) {
        PyObject *extent = PyLong_FromLongLong(view->shape[i]);

        if (!extent || PyTuple_SetItem(shape, i, extent) < 0)
            Py_CLEAR(shape);
    }
    return shape;
}

/* Exports the memory of a view. Shape and strides lie in the view. */
static int export_buffer(PyObject *self, Py_buffer *buffer, int flags)
{
    struct view *view = (struct view *)self;
    int64_t stride = sizes[view->dtype];
    size_t bytes;

    if (!count_bytes(view, &bytes)) {
        PyErr_SetString(PyExc_BufferError, "the view is too large");
        return -1;
    }
    for (int32_t i = view->ndim; i-- > 0; stride *= view->shape[i])
        view->strides[i] = stride;
    *buffer = (Py_buffer){
        .buf = view->address,
        .obj = Py_NewRef(self),
        .len = (Py_ssize_t)bytes,
        .itemsize = sizes[view->dtype],
        .ndim = view->ndim,
        .format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)formats[view->dtype]
                                       : NULL,
        .shape = flags & PyBUF_ND ? (Py_ssize_t *)view->shape : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES
                       ? (Py_ssize_t *)view->strides
                       : NULL};
    return 0;
}

_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t),
               "shapes are those of buffers");

PyObject *view_type_new(void)
{
    static PyGetSetDef attributes[] = {
        {"address", get_address, NULL, "where the memory is", NULL},
        {"dtype", get_dtype, NULL, "the number of the dtype", NULL},
        {"shape", get_shape, NULL, "the extents, a tuple", NULL},
        {NULL, NULL, NULL, NULL, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_doc,
         "View(address, dtype, shape, owner): memory with a dtype and a shape"},
        {Py_tp_new, make_view},
        {Py_tp_dealloc, free_view},
        {Py_tp_getset, attributes},
        {Py_bf_getbuffer, export_buffer},
        {0, NULL}};
    static PyType_Spec spec = {.name = "hvd._hvd.View",
                               .basicsize = sizeof(struct view),
                               .flags = Py_TPFLAGS_DEFAULT,
                               .slots = slots};
    PyObject *type = PyType_FromSpec(&spec);

    view_type = (PyTypeObject *)type;
    return type;
}
