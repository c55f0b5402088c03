/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - the texts of a cluster. Addresses in canonical form need no escapes
 * in JSON, so a text is put together as it is, and has the same bytes wherever
 * it is made.
 */
#include <stdlib.h>

#include "base/fingerprint.h"
#include "base/status.h"
#include "base/text.h"
#include "cluster/parts.h"

static void add_cluster(const hvd_cluster *cluster, struct hvd__text *text)
{
    const char *between = "";

    hvd__text_add(text, "{\"cluster\":{");
    for (int role = 0; role < HVD_NUM_ROLES; role++) {
        const struct hvd__tasks *tasks = &cluster->tasks[role];

        if (tasks->count == 0)
            continue;
        hvd__text_add(text, "%s\"%s\":[", between, hvd_role_name(role));
        for (int32_t i = 0; i < tasks->count; i++)
            hvd__text_add(text, "%s\"%s\"", i ? "," : "", tasks->addresses[i]);
        hvd__text_add(text, "]");
        between = ",";
    }
    hvd__text_add(text, "}");
}

/* Makes the text of the cluster and, if task is not NULL, of what task says.
 * The caller frees text->data. */
static int make_text(const hvd_cluster *cluster, const char *task,
                     struct hvd__text *text)
{
    char *data;

    if (!cluster || cluster->count == 0)
        return hvd__fail(HVD_ERR_ARGUMENT, "the cluster %s",
                         cluster ? "has no tasks" : "is NULL");
    data = malloc(cluster->bytes);
    if (!data)
        return hvd__fail_memory(cluster->bytes);
    *text = hvd__text_at(data, cluster->bytes);
    add_cluster(cluster, text);
    hvd__text_add(text, "%s}", task);
    return HVD_OK;
}

/* Hands a text over to a caller, and frees it. Returns its length. */
static int hand_over(struct hvd__text *made, char *text, int64_t size)
{
    int length = (int)made->used;
    struct hvd__text to;

    if (size > 0) {
        to = hvd__text_at(text, (size_t)size);
        hvd__text_add(&to, "%s", made->data);
    }
    free(made->data);
    return length;
}

static int check_room(const char *text, int64_t size)
{
    return size < 0 || (size > 0 && !text)
               ? hvd__fail(HVD_ERR_ARGUMENT,
                           "the room for a text is NULL or has a negative size")
               : HVD_OK;
}

int hvd_cluster_text(const hvd_cluster *cluster, char *text, int64_t size)
{
    struct hvd__text made = {NULL, 0, 0};

    HVD_TRY(check_room(text, size));
    HVD_TRY(make_text(cluster, "", &made));
    return hand_over(&made, text, size);
}

int hvd_cluster_tf_config(const hvd_cluster *cluster, hvd_role role,
                          int32_t index, char *text, int64_t size)
{
    char task[64], reason[HVD__MESSAGE_MAX];
    struct hvd__text why = hvd__text_at(reason, sizeof reason);
    struct hvd__text task_text = hvd__text_at(task, sizeof task);
    struct hvd__text made = {NULL, 0, 0};

    HVD_TRY(check_room(text, size));
    HVD_TRY(hvd_cluster_count(cluster, role)); /* it checks both */
    if (!hvd__cluster_may_be(cluster, role, index, &why))
        return hvd__fail(HVD_ERR_ARGUMENT, "task: %s", reason);
    hvd__text_add(&task_text, ",\"task\":{\"type\":\"%s\",\"index\":%d}",
                  hvd_role_name(role), (int)index);
    HVD_TRY(make_text(cluster, task, &made));
    return hand_over(&made, text, size);
}

int hvd_cluster_fingerprint(const hvd_cluster *cluster, uint64_t *fingerprint)
{
    struct hvd__text made = {NULL, 0, 0};

    if (!fingerprint)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the place for a fingerprint is NULL");
    HVD_TRY(make_text(cluster, "", &made));
    *fingerprint =
        hvd__fingerprint(cluster->servers_have_ranks, made.data, made.used);
    free(made.data);
    return HVD_OK;
}
