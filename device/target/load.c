/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - a target from a JSON file. A field that the file leaves out keeps
 * the number of a known chip, so that a variant is two lines.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "disk/disk.h"
#include "target/target.h"

static int set_field(const char *path, const char *key, const json_t *value,
                     ipu_target *target)
{
    const struct ipu__field *f = ipu__target_fields;
    char *at = (char *)target;
    double number = json_number_value(value);

    while (f->name && strcmp(f->name, key) != 0)
        f++;
    if (!f->name) {
        const char *near =
            ipu__nearest(key, ipu__target_fields, sizeof *ipu__target_fields);
        return ipu__fail(IPU_ERR_DATA, "%s: a target has no '%s'%s%s%s", path,
                         key, near ? "; did you mean '" : "", near ? near : "",
                         near ? "'?" : "");
    }
    if (!json_is_number(value))
        return ipu__fail(IPU_ERR_DATA, "%s: '%s' must be a number", path, key);
    if (f->type != IPU__FIELD_REAL && number != floor(number))
        return ipu__fail(IPU_ERR_DATA, "%s: '%s' is %g, not a whole number",
                         path, key, number);
    if (ipu__field_check(f, number, path) < 0)
        return IPU_ERR_DATA; /* the text of the error is set */
    at += f->offset;
    if (f->type == IPU__FIELD_INT32)
        *(int32_t *)(void *)at = (int32_t)number;
    else if (f->type == IPU__FIELD_INT64)
        *(int64_t *)(void *)at = (int64_t)number;
    else
        *(double *)(void *)at = number;
    return IPU_OK;
}

static int set_word(const char *path, const char *key, const json_t *value,
                    const char **word)
{
    *word = json_string_value(value);
    return *word ? IPU_OK
                 : ipu__fail(IPU_ERR_DATA, "%s: '%s' must be a word in quotes",
                             path, key);
}

int ipu__target_from_json(const char *path, json_t *root, ipu_target *target)
{
    const char *key, *word;
    json_t *value, *based_on = json_object_get(root, "based_on");

    if (!json_is_object(root))
        return ipu__fail(IPU_ERR_DATA,
                         "%s: a target is one object, {\"tiles\": 1472, ...}",
                         path);
    if (based_on) {
        IPU_TRY(set_word(path, "based_on", based_on, &word));
        IPU_TRY(ipu_target_find(word, target));
    }
    json_object_foreach(root, key, value)
    {
        if (strcmp(key, "based_on") == 0)
            continue;
        if (strcmp(key, "name") == 0) {
            IPU_TRY(set_word(path, key, value, &word));
            snprintf(target->name, sizeof target->name, "%s", word);
        } else {
            IPU_TRY(set_field(path, key, value, target));
        }
    }
    return IPU_OK;
}

int ipu__json_load(const char *path, const char *fault, json_t **root)
{
    json_error_t error;
    int status;
    FILE *file = disk__read_stream(path, &status);

    if (!file)
        return ipu__fail(IPU_ERR_DATA, "%s: cannot be read: %s", path,
                         disk__text(status));
    errno = 0;
    *root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    fclose(file);
    if (*root)
        return IPU_OK;
    if (error.line > 0)
        return ipu__fail(IPU_ERR_DATA, "%s, line %d: %s%s", path, error.line,
                         fault, error.text);
    return ipu__fail(IPU_ERR_DATA, "%s: cannot be read: %s", path,
                     errno ? strerror(errno) : error.text);
}

int ipu_target_load(const char *path, ipu_target *target)
{
    ipu_target loaded;
    json_t *root = NULL;
    int status;

    if (!path || !target)
        return ipu__fail(IPU_ERR_ARGUMENT, "target: %s is NULL",
                         path ? "the place for it" : "the file's name");
    IPU_TRY(ipu__check_size("target", target->size, sizeof *target));
    ipu_target_init(&loaded, sizeof loaded);
    IPU_TRY(ipu__json_load(path, "", &root));
    status = ipu__target_from_json(path, root, &loaded);
    json_decref(root);
    if (status < 0)
        return status;
    loaded.size = target->size;
    memcpy(target, &loaded, sizeof loaded);
    return IPU_OK;
}
