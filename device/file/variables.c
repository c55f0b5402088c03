/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variables.c - writes the variables of an engine to a file, and reads them.
 *
 * The file has the count, then the name, the dtype, the number of dimensions,
 * the dimensions and the elements of each variable. An engine finds them by
 * name, so the program may have changed since. All variables are compared
 * before the first one is changed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/engine.h"
#include "file/container.h"
#include "file/shared.h"

enum { LEAST_VARIABLE = IPU__LEAST_TEXT + 4 + 4 + 8 };

static bool is_variable(const struct ipu__value *value)
{
    return value->kind == IPU__VARIABLE;
}

/* ------------------------------------------------------------------ writing */

static int put_variable(struct ipu__writer *w, ipu_engine *engine,
                        const struct ipu__value *v)
{
    void *elements = malloc(v->bytes ? v->bytes : 1);
    int status = elements ? ipu_engine_read(engine, v->name, elements, v->bytes)
                          : ipu__fail_memory(v->bytes);

    if (status == IPU_OK) {
        ipu__put_text(w, v->name);
        ipu__put_int(w, v->shape.dtype);
        ipu__put_int(w, v->shape.ndim);
        for (int32_t i = 0; i < v->shape.ndim; i++)
            ipu__put_long(w, v->shape.extents[i]);
        ipu__put_block(w, elements, v->bytes);
    }
    free(elements);
    return status;
}

static int put_variables(struct ipu__writer *w, ipu_engine *engine)
{
    const ipu_executable *e = ipu__engine_executable(engine);
    int32_t count = 0;

    for (int32_t i = 0; i < e->nvalues; i++)
        count += is_variable(&e->values[i]);
    ipu__put_int(w, count);
    for (int32_t i = 0; i < e->nvalues; i++)
        if (is_variable(&e->values[i]))
            IPU_TRY(put_variable(w, engine, &e->values[i]));
    return IPU_OK;
}

static int check_arguments(const char *what, const ipu_engine *engine,
                           const char *path)
{
    if (!engine || !path)
        return ipu__fail(IPU_ERR_ARGUMENT, "%s: %s is NULL", what,
                         engine ? "the file's name" : "the engine");
    if (ipu__engine_is_running(engine))
        return ipu__fail(IPU_ERR_STATE,
                         "%s %s: the engine is running, and its variables are "
                         "between the old and the new",
                         what, path);
    return IPU_OK;
}

int ipu_engine_save_variables(ipu_engine *engine, const char *path)
{
    struct ipu__writer w = {0};
    int status;

    IPU_TRY(check_arguments("save", engine, path));
    ipu__file_begin(&w);
    status = put_variables(&w, engine);
    if (status == IPU_OK)
        status = ipu__file_write(path, IPU__FILE_VARIABLES, NULL, &w);
    ipu__writer_fini(&w);
    return status;
}

/* ------------------------------------------------------------------ reading */

struct entry {
    char *name; /* owned */
    struct ipu__shape shape;
    const unsigned char *elements; /* points into the file's memory */
    bool used;
};

struct entries {
    struct entry *list; /* owned */
    int32_t count;
};

/* Finds the first entry of that name; a second one would be a duplicate. */
static const struct entry *find_entry(const struct entries *entries,
                                      const char *name)
{
    for (int32_t i = 0; i < entries->count; i++)
        if (strcmp(entries->list[i].name, name) == 0)
            return &entries->list[i];
    return NULL;
}

static int get_shape(struct ipu__reader *r, struct ipu__shape *shape)
{
    IPU_TRY(ipu__get_int(r, &shape->dtype));
    IPU_TRY(ipu__get_index(r, "dimensions", 0, IPU_MAX_DIMS, &shape->ndim));
    for (int32_t i = 0; i < shape->ndim; i++)
        IPU_TRY(ipu__get_long(r, &shape->extents[i]));
    return ipu__check_shape(r, "a variable", shape);
}

static int get_entry(struct ipu__reader *r, struct entries *entries)
{
    struct entry *entry = &entries->list[entries->count];
    int64_t bytes;

    IPU_TRY(ipu__get_text(r, "a variable's name", false, &entry->name));
    entries->count++;
    IPU_TRY(get_shape(r, &entry->shape));
    IPU_TRY(ipu__get_long(r, &bytes));
    if (bytes < 0 || (uint64_t)bytes != ipu__shape_bytes(&entry->shape) ||
        (uint64_t)bytes > r->bytes - r->at)
        return ipu__damaged(r, "the elements of '%.60s'", entry->name);
    entry->elements = r->data + r->at;
    r->at += (size_t)bytes;
    return IPU_OK;
}

static int get_entries(struct ipu__reader *r, struct entries *entries)
{
    int32_t count;

    IPU_TRY(ipu__get_count(r, "variables", LEAST_VARIABLE, &count));
    IPU_TRY(
        ipu__new_array(&entries->list, (size_t)count, sizeof *entries->list));
    while (entries->count < count)
        IPU_TRY(get_entry(r, entries));
    return ipu__get_end(r);
}

/* A sentence that lists names: "; ", a verb, then names while there is room. */
struct names {
    char text[IPU__MESSAGE_MAX / 2];
    size_t used;
    int32_t count;
};

static void add_name(struct names *names, const char *what, const char *name)
{
    size_t room = sizeof names->text - names->used;
    int n = snprintf(names->text + names->used, room, "%s'%.80s'",
                     names->count ? ", " : what, name);

    if (n > 0 && (size_t)n < room)
        names->used += (size_t)n;
    else
        memcpy(names->text + sizeof names->text - 5, ", ..", 5);
    names->count++;
}

static int check_shape(const char *path, const struct ipu__value *v,
                       const struct entry *entry)
{
    if (ipu__shape_equal(&v->shape, &entry->shape))
        return IPU_OK;
    return ipu__fail(IPU_ERR_SHAPE, "%s: '%s' is %s there, and %s here", path,
                     v->name, ipu__shape_print(&entry->shape).text,
                     ipu__shape_print(&v->shape).text);
}

/* Checks that file and program have the same variables, unless the caller does
 * not mind. */
static int compare_variables(const char *path, const ipu_executable *e,
                             struct entries *entries, int32_t flags)
{
    struct names missing = {.used = 0}, extra = {.used = 0};

    for (int32_t i = 0; i < e->nvalues; i++) {
        const struct ipu__value *v = &e->values[i];
        const struct entry *entry;

        if (!is_variable(v))
            continue;
        entry = find_entry(entries, v->name);
        if (entry) {
            IPU_TRY(check_shape(path, v, entry));
            entries->list[entry - entries->list].used = true;
        } else if (!(flags & IPU_LOAD_MISSING)) {
            add_name(&missing, "it has no ", v->name);
        }
    }
    for (int32_t i = 0; i < entries->count; i++)
        if (!entries->list[i].used && !(flags & IPU_LOAD_EXTRA))
            add_name(&extra, "the engine has no ", entries->list[i].name);
    if (missing.count + extra.count == 0)
        return IPU_OK;
    return ipu__fail(IPU_ERR_NAME, "%s: other variables: %s%s%s", path,
                     missing.text, missing.count && extra.count ? "; " : "",
                     extra.text);
}

static int load(ipu_engine *engine, struct ipu__reader *r,
                struct entries *entries, int32_t flags)
{
    IPU_TRY(get_entries(r, entries));
    IPU_TRY(compare_variables(r->path, ipu__engine_executable(engine), entries,
                              flags));
    for (int32_t i = 0; i < entries->count; i++) {
        const struct entry *entry = &entries->list[i];

        if (entry->used)
            IPU_TRY(ipu_engine_write(engine, entry->name, entry->elements,
                                     ipu__shape_bytes(&entry->shape)));
    }
    return IPU_OK;
}

int ipu_engine_load_variables(ipu_engine *engine, const char *path,
                              int32_t flags)
{
    struct entries entries = {0};
    struct ipu__reader reader;
    unsigned char *memory;
    int status;

    IPU_TRY(check_arguments("load", engine, path));
    if (flags & ~(IPU_LOAD_MISSING | IPU_LOAD_EXTRA))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "load %s: flags %d have an unknown one", path,
                         (int)flags);
    IPU_TRY(ipu__file_read(path, IPU__FILE_VARIABLES, &reader, &memory));
    status = load(engine, &reader, &entries, flags);
    for (int32_t i = 0; i < entries.count; i++)
        free(entries.list[i].name);
    free(entries.list);
    free(memory);
    return status;
}
