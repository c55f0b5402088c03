/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - the type Executable: compiling a graph, and what the compiled
 * program takes of a chip. */
#include <stdlib.h>
#include <string.h>

#include "extension.h"

int target_of(const char *name, ipu_target *target)
{
    ipu_target_init(target, sizeof *target);
    if (strchr(name, '.') || strchr(name, '/'))
        return ipu_target_load(name, target);
    return ipu_target_find(name, target);
}

#define FIELD(type, name, kind)                                                \
    {                                                                          \
#name, offsetof(type, name), kind                                      \
    }

PyObject *program_target(PyObject *module, PyObject *name)
{
    static const struct field fields[] = {
        FIELD(ipu_target, tiles, 'i'),
        FIELD(ipu_target, bytes_per_tile, 'q'),
        FIELD(ipu_target, clock_hz, 'd'),
        FIELD(ipu_target, watts, 'd'),
        {NULL, 0, 0}};
    const char *text;
    ipu_target target;
    int status;

    (void)module;
    if (!get_text(name, "the target", &text))
        return NULL;
    status = target_of(text, &target);
    return status < 0 ? raise_ipu(status) : dict_of(&target, fields);
}

/* ---------------------------------------------------------------- compiling */

/* Gets the graph and the target that both functions below begin with. */
static bool get_graph(PyObject *const *args, struct graph **graph,
                      ipu_target *target)
{
    const char *name;
    int status;

    if (!PyObject_TypeCheck(args[0], graph_type)) {
        PyErr_Format(PyExc_TypeError, "%R is no graph", args[0]);
        return false;
    }
    *graph = (struct graph *)args[0];
    if (!graph_get(*graph) || !get_text(args[1], "the target", &name))
        return false;
    status = target_of(name, target);
    if (status < 0)
        raise_ipu(status);
    return status >= 0;
}

PyObject *program_compile(PyObject *module, PyObject *const *args,
                          Py_ssize_t nargs)
{
    ipu_target target;
    ipu_compile_options options = {.size = sizeof options, .target = &target};
    struct executable *made;
    struct graph *graph;
    PyThreadState *state;
    int32_t ipus;
    int status;

    (void)module;
    if (!has_arguments("compile", nargs, 6) ||
        !get_graph(args, &graph, &target) ||
        !get_int32(args[2], "out_of_memory", &options.allow_out_of_memory) ||
        !get_double(args[3], "the proportion",
                    &options.available_memory_proportion) ||
        !get_int32(args[4], "brief", &options.brief) ||
        !get_int32(args[5], "ipus", &ipus))
        return NULL;
    made = PyObject_New(struct executable, executable_type);
    if (!made)
        return NULL;
    made->executable = NULL;
    graph->busy = true;
    state = PyEval_SaveThread();
    status = ipus > 1
                 ? ipu_compile_shards(graph->graph, &options, ipus,
                                      &made->executable)
                 : ipu_compile_with(graph->graph, &options, &made->executable);
    PyEval_RestoreThread(state);
    graph->busy = false;
    if (status >= 0)
        return (PyObject *)made;
    made->executable = NULL;
    Py_DECREF(made);
    return raise_ipu(status);
}

static void free_executable(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    ipu_executable_free(((struct executable *)self)->executable);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ----------------------------------------------------------------- remedies */

static const struct field remedy_fields[] = {
    FIELD(ipu_remedy, parts, 'i'),        FIELD(ipu_remedy, runs, 'i'),
    FIELD(ipu_remedy, fits, 'i'),         FIELD(ipu_remedy, tile_bytes, 'q'),
    FIELD(ipu_remedy, remote_bytes, 'q'), FIELD(ipu_remedy, cycles, 'q'),
    FIELD(ipu_remedy, seconds, 'd'),      {NULL, 0, 0}};

/* try_remedy(graph, target, proportion, number, parts): (name, dict), or (name,
 * why not) */
PyObject *program_remedy(PyObject *module, PyObject *const *args,
                         Py_ssize_t nargs)
{
    ipu_target target;
    ipu_compile_options options = {
        .size = sizeof options, .target = &target, .brief = 1};
    ipu_remedy remedy = {.size = sizeof remedy};
    PyThreadState *state;
    struct graph *graph;
    int64_t kind;
    int32_t parts;
    int status;

    (void)module;
    if (!has_arguments("try_remedy", nargs, 5) ||
        !get_graph(args, &graph, &target) ||
        !get_double(args[2], "the proportion",
                    &options.available_memory_proportion) ||
        !get_int(args[3], "the remedy", 0, IPU_NUM_REMEDIES - 1, &kind) ||
        !get_int32(args[4], "parts", &parts))
        return NULL;
    graph->busy = true;
    state = PyEval_SaveThread();
    status = ipu_remedy_try(graph->graph, &options, (ipu_remedy_kind)kind,
                            parts, &remedy);
    PyEval_RestoreThread(state);
    graph->busy = false;
    if (status == IPU_ERR_STATE)
        return Py_BuildValue("ss", ipu_remedy_name((ipu_remedy_kind)kind),
                             ipu_last_error());
    if (status < 0)
        return raise_ipu(status);
    return Py_BuildValue("sN", ipu_remedy_name(remedy.kind),
                         dict_of(&remedy, remedy_fields));
}

/* ------------------------------------------------------------------ queries */

static const struct field memory_fields[] = {
    FIELD(ipu_memory_info, steps, 'i'),
    FIELD(ipu_memory_info, always_live_bytes, 'q'),
    FIELD(ipu_memory_info, peak_bytes, 'q'),
    FIELD(ipu_memory_info, planned_bytes, 'q'),
    FIELD(ipu_memory_info, bytes_per_tile, 'q'),
    FIELD(ipu_memory_info, fullest_tile_bytes, 'q'),
    FIELD(ipu_memory_info, fullest_tile, 'i'),
    FIELD(ipu_memory_info, fullest_step, 'i'),
    FIELD(ipu_memory_info, remote_bytes, 'q'),
    {NULL, 0, 0}};

static PyObject *memory(PyObject *self, PyObject *unused)
{
    ipu_memory_info info = {.size = sizeof info};
    int status =
        ipu_executable_memory(((struct executable *)self)->executable, &info);

    (void)unused;
    return status < 0 ? raise_ipu(status) : dict_of(&info, memory_fields);
}

static const struct field cycles_fields[] = {
    FIELD(ipu_program_cycles, compute, 'q'),
    FIELD(ipu_program_cycles, exchange, 'q'),
    FIELD(ipu_program_cycles, sync, 'q'),
    FIELD(ipu_program_cycles, host, 'q'),
    FIELD(ipu_program_cycles, total, 'q'),
    FIELD(ipu_program_cycles, seconds, 'd'),
    FIELD(ipu_program_cycles, flops, 'd'),
    FIELD(ipu_program_cycles, estimates, 'i'),
    {NULL, 0, 0}};

static PyObject *cycles(PyObject *self, PyObject *unused)
{
    ipu_program_cycles info = {.size = sizeof info};
    int status =
        ipu_executable_cycles(((struct executable *)self)->executable, &info);

    (void)unused;
    return status < 0 ? raise_ipu(status) : dict_of(&info, cycles_fields);
}

static const struct field step_fields[] = {
    FIELD(ipu_step_info, op, 's'),
    FIELD(ipu_step_info, tensor, 's'),
    FIELD(ipu_step_info, parts, 's'),
    FIELD(ipu_step_info, compute_cycles, 'q'),
    FIELD(ipu_step_info, exchange_cycles, 'q'),
    FIELD(ipu_step_info, sync_cycles, 'q'),
    FIELD(ipu_step_info, total_cycles, 'q'),
    FIELD(ipu_step_info, exchange_bytes, 'q'),
    FIELD(ipu_step_info, flops, 'd'),
    FIELD(ipu_step_info, busy_tiles, 'i'),
    FIELD(ipu_step_info, fullest_tile_bytes, 'q'),
    FIELD(ipu_step_info, estimate, 's'),
    {NULL, 0, 0}};

static PyObject *step(PyObject *self, PyObject *number)
{
    ipu_step_info info = {.size = sizeof info};
    int32_t at;
    int status;

    if (!get_int32(number, "the step", &at))
        return NULL;
    status =
        ipu_executable_step(((struct executable *)self)->executable, at, &info);
    return status < 0 ? raise_ipu(status) : dict_of(&info, step_fields);
}

static const struct field tile_fields[] = {
    FIELD(ipu_tile_info, code_bytes, 'q'),
    FIELD(ipu_tile_info, always_live_bytes, 'q'),
    FIELD(ipu_tile_info, not_always_live_bytes, 'q'),
    FIELD(ipu_tile_info, peak_bytes, 'q'),
    FIELD(ipu_tile_info, peak_step, 'i'),
    FIELD(ipu_tile_info, exchange_code_bytes, 'q'),
    FIELD(ipu_tile_info, state_bytes, 'q'),
    FIELD(ipu_tile_info, constant_bytes, 'q'),
    FIELD(ipu_tile_info, tensor_bytes, 'q'),
    FIELD(ipu_tile_info, temporary_bytes, 'q'),
    {NULL, 0, 0}};

static PyObject *tile(PyObject *self, PyObject *number)
{
    ipu_tile_info info = {.size = sizeof info};
    int32_t at;
    int status;

    if (!get_int32(number, "the tile", &at))
        return NULL;
    status =
        ipu_executable_tile(((struct executable *)self)->executable, at, &info);
    return status < 0 ? raise_ipu(status) : dict_of(&info, tile_fields);
}

static const struct field chip_fields[] = {
    FIELD(ipu_shard_info, steps, 'i'),
    FIELD(ipu_shard_info, variable_bytes, 'q'),
    FIELD(ipu_shard_info, received_bytes, 'q'),
    FIELD(ipu_shard_info, cycles, 'q'),
    FIELD(ipu_shard_info, tile_bytes, 'q'),
    FIELD(ipu_shard_info, bytes_per_tile, 'q'),
    {NULL, 0, 0}};

static PyObject *chip(PyObject *self, PyObject *number)
{
    ipu_shard_info info = {.size = sizeof info};
    int32_t at;
    int status;

    if (!get_int32(number, "the chip", &at))
        return NULL;
    status = ipu_executable_shard(((struct executable *)self)->executable, at,
                                  &info);
    return status < 0 ? raise_ipu(status) : dict_of(&info, chip_fields);
}

static const struct field sharding_fields[] = {
    FIELD(ipu_sharding_info, shards, 'i'),
    FIELD(ipu_sharding_info, inter_ipu_bytes, 'q'),
    FIELD(ipu_sharding_info, exchange_cycles, 'q'),
    FIELD(ipu_sharding_info, total_cycles, 'q'),
    FIELD(ipu_sharding_info, seconds, 'd'),
    {NULL, 0, 0}};

static PyObject *sharding(PyObject *self, PyObject *unused)
{
    ipu_sharding_info info = {.size = sizeof info};
    int status = ipu_executable_sharding(
        ((struct executable *)self)->executable, NULL, &info);

    (void)unused;
    return status < 0 ? raise_ipu(status) : dict_of(&info, sharding_fields);
}

/* Returns variable number i as (name, dtype, shape), or None beyond the last.
 */
static PyObject *variable(PyObject *self, PyObject *number)
{
    ipu_variable_info info = {.size = sizeof info};
    PyObject *shape;
    int32_t at;
    int status;

    if (!get_int32(number, "the variable", &at))
        return NULL;
    status = ipu_executable_variable(((struct executable *)self)->executable,
                                     at, &info);
    if (status == IPU_ERR_NAME)
        Py_RETURN_NONE;
    if (status < 0)
        return raise_ipu(status);
    shape = tuple_of(info.shape, info.ndim);
    return shape ? Py_BuildValue("siN", info.name, (int)info.dtype, shape)
                 : NULL;
}

static PyObject *text(PyObject *self, PyObject *unused)
{
    const ipu_executable *of = ((struct executable *)self)->executable;
    int64_t size = ipu_executable_print(of, NULL, 0) + 1;
    char *words = PyMem_Malloc((size_t)size);
    PyObject *made;

    (void)unused;
    if (!words)
        return PyErr_NoMemory();
    ipu_executable_print(of, words, size);
    made = PyUnicode_DecodeUTF8(words, (Py_ssize_t)size - 1, "replace");
    PyMem_Free(words);
    return made;
}

/* ----------------------------------------------------------------- profiles */

static int make_profile(const ipu_executable *executable,
                        const ipu_engine *engine, const char *name,
                        const char *directory, char **words)
{
    ipu_profile *profile = NULL;
    int status = ipu_profile_new(name, &profile);

    if (status >= 0)
        status = ipu_profile_add(profile, name, 0, executable, engine);
    if (status >= 0 && directory)
        status = ipu_profile_write(profile, directory);
    if (status >= 0 && words)
        status = ipu_profile_print(profile, IPU_PROFILE_TEXT, words);
    ipu_profile_free(profile);
    return status;
}

/* profile(engine or None, name, directory or None): the text */
static PyObject *profile(PyObject *self, PyObject *const *args,
                         Py_ssize_t nargs)
{
    struct engine *engine = NULL;
    const char *name, *directory = NULL;
    PyThreadState *state;
    PyObject *made;
    char *words = NULL;
    int status;

    if (!has_arguments("profile", nargs, 3) ||
        !get_text(args[1], "the name", &name) ||
        (args[2] != Py_None && !get_text(args[2], "the directory", &directory)))
        return NULL;
    if (args[0] != Py_None) {
        if (!PyObject_TypeCheck(args[0], engine_type)) {
            PyErr_Format(PyExc_TypeError, "%R is no engine", args[0]);
            return NULL;
        }
        engine = (struct engine *)args[0];
        if (is_busy(engine->busy, "engine"))
            return NULL;
        engine->busy = true;
    }
    state = PyEval_SaveThread();
    status =
        make_profile(((struct executable *)self)->executable,
                     engine ? engine->engine : NULL, name, directory, &words);
    PyEval_RestoreThread(state);
    if (engine)
        engine->busy = false;
    if (status < 0)
        return raise_ipu(status);
    made = PyUnicode_DecodeUTF8(words, (Py_ssize_t)strlen(words), "replace");
    free(words);
    return made;
}

PyObject *executable_type_new(void)
{
    static PyMethodDef methods[] = {
        {"memory", memory, METH_NOARGS, "memory(): a dict"},
        {"cycles", cycles, METH_NOARGS, "cycles(): a dict"},
        {"step", step, METH_O, "step(number): a dict"},
        {"tile", tile, METH_O, "tile(number): a dict"},
        {"chip", chip, METH_O, "chip(number): a dict"},
        {"sharding", sharding, METH_NOARGS,
         "sharding(): what passes between the chips, a dict"},
        {"variable", variable, METH_O,
         "variable(number): (name, dtype, shape), or None"},
        {"text", text, METH_NOARGS, "text(): a line for each step"},
        {"profile", FAST(profile), METH_FASTCALL,
         "profile(engine, name, directory): the profile as text"},
        {NULL, NULL, 0, NULL}};
    PyType_Slot slots[] = {
        {Py_tp_dealloc, free_executable}, {Py_tp_methods, methods}, {0, NULL}};

    return type_new("ipu._ipu.Executable", "A compiled graph.",
                    sizeof(struct executable), slots);
}
