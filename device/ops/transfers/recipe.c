/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipe.c - reads which collectives carry bfloat16.
 *
 * A recipe is made for a whole model of TensorFlow, so most of the types that
 * it lists are none of collectives; they are passed over. A collective is in
 * TensorFlow a pair of types where one process sends and others receive; a
 * recipe that lists either of them means both, since both ends must agree.
 *
 * On Gaudi, an op of the conditional list is converted if one is that it takes
 * from or gives to. What is reduced are gradients, which products make: so a
 * conditional reduction is converted if the recipe converts products, as it is
 * by the recipe that the word "full" stands for. Nothing else of a program here
 * is converted, so that a conditional broadcast or gather never is.
 */
#include "ops/transfers/recipe.h"

#include <jansson.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "target/target.h"

enum {
    REDUCE = IPU_COLLECTIVE_REDUCE,
    KINDS = IPU_COLLECTIVE_GATHER + 1,
    ALL_KINDS = KINDS,
    NO_KIND = -1
};

/* Names of tensors for which the answer is no, or yes. */
struct exception {
    regex_t name;
    int kind; /* ALL_KINDS: of any collective */
    bool yes;
};

struct ipu_bf16_recipe {
    bool takes[KINDS], converts[KINDS];
    bool is_conditional[KINDS];   /* it is in the conditional list */
    bool has_products;            /* they are converted */
    struct exception *exceptions; /* owned; the first that matches counts */
    size_t nexceptions;
};

/* A file that is being read. */
struct reading {
    const char *path;
    ipu_bf16_recipe *recipe;
};

static bool is_version(const char *text)
{
    return !*text || strcmp(text, "V2") == 0 || strcmp(text, "V3") == 0;
}

/* Returns the kind of a type of ops; NO_KIND if it is no collective. */
static int kind_of(const char *type)
{
    static const struct {
        const char *type;
        int kind;
    } types[] = {{"CollectiveReduce", IPU_COLLECTIVE_REDUCE},
                 {"CollectiveBcastSend", IPU_COLLECTIVE_BROADCAST},
                 {"CollectiveBcastRecv", IPU_COLLECTIVE_BROADCAST},
                 {"CollectiveGather", IPU_COLLECTIVE_GATHER}};

    if (strncmp(type, "Hpu", 3) == 0)
        type += 3;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        size_t length = strlen(types[i].type);

        if (strncmp(type, types[i].type, length) == 0 &&
            is_version(type + length))
            return types[i].kind;
    }
    return NO_KIND;
}

/* Returns whether ops of a type make the gradient of a weight. */
static bool makes_gradients(const char *type)
{
    static const char *const types[] = {
        "MatMul", "BatchMatMul", "BatchMatMulV2", "Conv2DBackpropFilter",
        "HabanaConv2DWithPaddingBackpropFilter"};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i]) == 0)
            return true;
    return false;
}

/* -------------------------------------------------------------- the members */

enum list { ALLOW, CONDITIONAL, STRICT };

static void list_type(ipu_bf16_recipe *recipe, const char *type, enum list list)
{
    int kind = kind_of(type);

    if (kind == NO_KIND) {
        recipe->has_products |= list == ALLOW && makes_gradients(type);
        return;
    }
    recipe->takes[kind] = true;
    recipe->converts[kind] |= list == ALLOW;
    recipe->is_conditional[kind] |= list == CONDITIONAL;
}

/* Reads a list of types. */
static int read_list(struct reading *r, const char *key, const json_t *types,
                     enum list list)
{
    if (!json_is_array(types))
        return ipu__fail(IPU_ERR_DATA,
                         "%s: '%s' must be a list of types of ops, [\"...\"]",
                         r->path, key);
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));

        if (!type)
            return ipu__fail(IPU_ERR_DATA,
                             "%s: '%s', number %zu: a type of ops is a word "
                             "in quotes",
                             r->path, key, i + 1);
        list_type(r->recipe, type, list);
    }
    return IPU_OK;
}

static int add_exception(struct reading *r, const char *key,
                         const char *expression, int kind, bool yes)
{
    struct exception *e = &r->recipe->exceptions[r->recipe->nexceptions];
    int error = regcomp(&e->name, expression, REG_EXTENDED | REG_NOSUB);
    char why[128];

    if (error) {
        regerror(error, &e->name, why, sizeof why);
        return ipu__fail(IPU_ERR_DATA,
                         "%s: '%s': the regular expression '%s': %s", r->path,
                         key, expression, why);
    }
    e->kind = kind;
    e->yes = yes;
    r->recipe->nexceptions++;
    return IPU_OK;
}

/* Reads pairs of an expression and a type. */
static int read_exceptions(struct reading *r, const char *key,
                           const json_t *list, bool yes)
{
    size_t count = json_array_size(list) + r->recipe->nexceptions;
    struct exception *grown =
        realloc(r->recipe->exceptions, (count + 1) * sizeof *grown);

    if (!grown)
        return ipu__fail_memory(count * sizeof *grown);
    r->recipe->exceptions = grown;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *pair = json_array_get(list, i);
        const char *expression = json_string_value(json_array_get(pair, 0));
        const char *type = json_string_value(json_array_get(pair, 1));
        int kind;

        if (json_array_size(pair) != 2 || !expression || !type)
            return ipu__fail(IPU_ERR_DATA,
                             "%s: '%s', number %zu: an exception is a pair, "
                             "[\"expression\", \"type of ops\"]",
                             r->path, key, i + 1);
        kind = *type ? kind_of(type) : ALL_KINDS;
        if (kind != NO_KIND)
            IPU_TRY(add_exception(r, key, expression, kind, yes));
    }
    return json_is_array(list)
               ? IPU_OK
               : ipu__fail(IPU_ERR_DATA, "%s: '%s' must be a list of pairs",
                           r->path, key);
}

static int read_member(struct reading *r, const char *key, const json_t *value)
{
    /* Habana's files have the first name, its documentation the second. */
    if (strcmp(key, "allowlist") == 0 || strcmp(key, "allow_list") == 0)
        return read_list(r, key, value, ALLOW);
    if (strcmp(key, "conditional_list") == 0)
        return read_list(r, key, value, CONDITIONAL);
    if (strcmp(key, "strict_conditional_list") == 0)
        return read_list(r, key, value, STRICT);
    if (strcmp(key, "convertible_exceptions") == 0)
        return read_exceptions(r, key, value, true);
    if (strcmp(key, "non_convertible_exceptions") == 0)
        return read_exceptions(r, key, value, false);
    return ipu__fail(IPU_ERR_DATA,
                     "%s: a recipe has no '%s': allowlist, conditional_list, "
                     "strict_conditional_list, convertible_exceptions or "
                     "non_convertible_exceptions",
                     r->path, key);
}

static int read_recipe(struct reading *r, json_t *root)
{
    const char *key;
    json_t *value;

    if (!json_is_object(root))
        return ipu__fail(IPU_ERR_DATA,
                         "%s: a recipe is one object, {\"allowlist\": "
                         "[\"CollectiveReduce\"]}",
                         r->path);
    if (json_object_get(root, "allowlist") &&
        json_object_get(root, "allow_list"))
        return ipu__fail(IPU_ERR_DATA,
                         "%s: 'allowlist' and 'allow_list' are one: give all "
                         "types in one of them",
                         r->path);
    json_object_foreach(root, key, value) IPU_TRY(read_member(r, key, value));
    if (r->recipe->has_products && r->recipe->is_conditional[REDUCE])
        r->recipe->converts[REDUCE] = true;
    return IPU_OK;
}

/* -------------------------------------------------------------- the setting */

static bool is_one_of(const char *setting, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(setting, *words) == 0)
            return true;
    return false;
}

static int follow_setting(const char *setting, ipu_bf16_recipe *recipe)
{
    static const char *const none[] = {"", "0", "false", "basic", NULL};
    static const char *const all[] = {"1", "true", "full", NULL};
    struct reading r = {setting, recipe};
    json_t *root = NULL;
    int status;

    if (is_one_of(setting, none))
        return IPU_OK;
    if (is_one_of(setting, all)) {
        for (int k = 0; k < KINDS; k++)
            recipe->takes[k] = recipe->converts[k] = true;
        return IPU_OK;
    }
    IPU_TRY(ipu__json_load(setting, "the recipe of bfloat16: ", &root));
    status = read_recipe(&r, root);
    json_decref(root);
    return status;
}

int ipu_bf16_recipe_new(const char *setting, ipu_bf16_recipe **recipe)
{
    ipu_bf16_recipe *made;
    int status;

    if (!setting || !recipe)
        return ipu__fail(IPU_ERR_ARGUMENT, "recipe of bfloat16: %s is NULL",
                         setting ? "the place for it" : "the setting");
    IPU_TRY(ipu__new(&made, sizeof *made));
    status = follow_setting(setting, made);
    if (status < 0) {
        ipu_bf16_recipe_free(made);
        return status;
    }
    *recipe = made;
    return IPU_OK;
}

void ipu_bf16_recipe_free(ipu_bf16_recipe *recipe)
{
    if (!recipe)
        return;
    for (size_t i = 0; i < recipe->nexceptions; i++)
        regfree(&recipe->exceptions[i].name);
    free(recipe->exceptions);
    free(recipe);
}

/* -------------------------------------------------------------- the answers */

static bool answer(const ipu_bf16_recipe *recipe, const bool *lists,
                   ipu_collective_kind kind, const char *name)
{
    for (size_t i = 0; i < recipe->nexceptions; i++) {
        const struct exception *e = &recipe->exceptions[i];

        if ((e->kind == kind || e->kind == ALL_KINDS) &&
            regexec(&e->name, name, 0, NULL, 0) == 0)
            return e->yes;
    }
    return lists[kind];
}

bool ipu__recipe_takes(const ipu_bf16_recipe *recipe, ipu_collective_kind kind,
                       const char *name)
{
    return recipe && answer(recipe, recipe->takes, kind, name);
}

bool ipu__recipe_converts(const ipu_bf16_recipe *recipe,
                          ipu_collective_kind kind, const char *name)
{
    return recipe && answer(recipe, recipe->converts, kind, name);
}
