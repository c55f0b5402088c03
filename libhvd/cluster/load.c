/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - where a text comes from: the program, a file, the environment. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "cluster/parts.h"
#include "disk/disk.h"

static int check_arguments(const char *text, int64_t bytes, int32_t flags,
                           hvd_cluster **cluster)
{
    if (cluster)
        *cluster = NULL;
    if (!text || !cluster)
        return hvd__fail(HVD_ERR_ARGUMENT, "the %s a cluster is NULL",
                         text ? "place for" : "text or the file of");
    if (bytes < 0)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "a cluster's text cannot have %lld bytes",
                         (long long)bytes);
    if (flags & ~HVD_CLUSTER_NO_TASK)
        return hvd__fail(HVD_ERR_ARGUMENT, "0x%x are not flags of a cluster",
                         (unsigned)flags);
    return HVD_OK;
}

int hvd_cluster_parse(const char *text, int64_t bytes, int32_t flags,
                      hvd_cluster **cluster)
{
    struct hvd__source source = {"the description of the cluster", text,
                                 (size_t)bytes};

    HVD_TRY(check_arguments(text, bytes, flags, cluster));
    return hvd__cluster_read(&source, flags, cluster);
}

/* Reads up to one byte more than a text may have. Returns the bytes. */
static int64_t read_file(const char *path, char *text)
{
    int status;
    FILE *file = disk__read_stream(path, &status);
    size_t bytes = 0;

    if (file) {
        errno = 0;
        bytes = fread(text, 1, HVD_CLUSTER_MAX_BYTES + 1, file);
        status = ferror(file) ? -errno : 0;
        fclose(file);
    }
    return status < 0 ? hvd__fail(HVD_ERR_FILE, "cannot read '%.400s': %s",
                                  path, disk__text(status))
                      : (int64_t)bytes;
}

int hvd_cluster_load(const char *path, int32_t flags, hvd_cluster **cluster)
{
    char name[512], *text;
    struct hvd__source source = {name, NULL, 0};
    int64_t status;

    HVD_TRY(check_arguments(path, 0, flags, cluster));
    text = malloc(HVD_CLUSTER_MAX_BYTES + 1);
    if (!text)
        return hvd__fail_memory(HVD_CLUSTER_MAX_BYTES + 1);
    snprintf(name, sizeof name, "'%.300s'", path);
    status = read_file(path, text);
    if (status >= 0) {
        source.text = text;
        source.bytes = (size_t)status;
        status = hvd__cluster_read(&source, flags, cluster);
    }
    free(text);
    return (int)status;
}

int hvd_cluster_from_environment(hvd_cluster **cluster)
{
    const char *text = getenv("TF_CONFIG");
    struct hvd__source source = {"TF_CONFIG", text, text ? strlen(text) : 0};

    HVD_TRY(check_arguments("", 0, 0, cluster));
    if (!text)
        return 0;
    HVD_TRY(hvd__cluster_read(&source, 0, cluster));
    return 1;
}
