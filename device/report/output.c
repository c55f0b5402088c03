/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.c - writes profiles, as texts of three formats and as files in a
 * directory, and reads them.
 *
 * These are the public functions on files and texts; the work is done by
 * print.c, pack.c, page.c, file.c and unpack.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report/file.h"
#include "report/json.h"
#include "report/page.h"
#include "report/print.h"
#include "target/target.h"

static int print_json(const struct ipu_profile *profile, struct ipu__text *text)
{
    json_t *document = NULL;

    IPU_TRY(ipu__profile_pack(profile, &document));
    ipu__text_put_json(text, document);
    json_decref(document);
    return IPU_OK;
}

static int print_html(const struct ipu_profile *profile, struct ipu__text *text)
{
    json_t *document = NULL;

    IPU_TRY(ipu__profile_pack(profile, &document));
    ipu__text_put_page(text, document);
    json_decref(document);
    return IPU_OK;
}

int ipu_profile_print(const ipu_profile *profile, ipu_profile_format format,
                      char **text)
{
    struct ipu__text grown = {0};
    int status;

    if (!profile || !text)
        return ipu__fail(IPU_ERR_ARGUMENT, "profile: %s is NULL",
                         profile ? "the place for the text" : "the profile");
    switch (format) {
    case IPU_PROFILE_TEXT: status = ipu__print_text(profile, &grown); break;
    case IPU_PROFILE_JSON: status = print_json(profile, &grown); break;
    case IPU_PROFILE_HTML: status = print_html(profile, &grown); break;
    default:
        status = ipu__fail(IPU_ERR_ARGUMENT, "profile: there is no format %d",
                           (int)format);
    }
    if (status < 0) {
        ipu__text_free(&grown);
        return status;
    }
    return ipu__text_take(&grown, text);
}

int ipu_profile_check_directory(const char *directory)
{
    if (!directory)
        return ipu__fail(IPU_ERR_ARGUMENT, "profile: the directory is NULL");
    return ipu__directory_check(directory);
}

static int write_format(const struct ipu_profile *profile,
                        const char *directory, const char *name,
                        ipu_profile_format format)
{
    char *text = NULL;
    int status;

    IPU_TRY(ipu_profile_print(profile, format, &text));
    status = ipu__report_file_write(directory, name, text, strlen(text));
    free(text);
    return status;
}

int ipu_profile_write(const ipu_profile *profile, const char *directory)
{
    if (!profile)
        return ipu__fail(IPU_ERR_ARGUMENT, "profile: the profile is NULL");
    IPU_TRY(ipu_profile_check_directory(directory));
    IPU_TRY(write_format(profile, directory, "profile.json", IPU_PROFILE_JSON));
    return write_format(profile, directory, "report.html", IPU_PROFILE_HTML);
}

/* ------------------------------------------------------------------ reading */

static int read_path(const char *path, ipu_profile **profile)
{
    json_t *document = NULL;
    ipu_profile *fresh = NULL;
    int status;

    IPU_TRY(ipu__json_load(path, "is not JSON, or was cut off: ", &document));
    status = ipu_profile_new("", &fresh);
    if (status >= 0)
        status = ipu__profile_unpack(path, document, fresh);
    json_decref(document);
    if (status < 0) {
        ipu_profile_free(fresh);
        return status;
    }
    *profile = fresh;
    return IPU_OK;
}

int ipu_profile_read(const char *path, ipu_profile **profile)
{
    struct stat info;
    char *inside = NULL;
    int status;

    if (!path || !profile)
        return ipu__fail(IPU_ERR_ARGUMENT, "profile: %s is NULL",
                         path ? "the place for it" : "the path");
    if (stat(path, &info) < 0 || !S_ISDIR(info.st_mode))
        return read_path(path, profile);
    if (asprintf(&inside, "%s/profile.json", path) < 0)
        return ipu__fail_memory(strlen(path));
    status = read_path(inside, profile);
    free(inside);
    return status;
}
