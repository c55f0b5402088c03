/* SPDX-License-Identifier: Apache-2.0 */
#include "output/profile.h"

#include "output/problem.h"

#include <ipu.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int device_problem(void)
{
    return problem_set("--profile: %s", ipu_last_error());
}

static bool is_text(const char *where)
{
    return strcmp(where, "text") == 0;
}

int profile_check(const char *where)
{
    if (!where || is_text(where))
        return 0;
    return ipu_profile_check_directory(where) < 0 ? device_problem() : 0;
}

int profile_record(struct ipu_engine *engine, bool on)
{
    return ipu_engine_profile(engine, on) < 0 ? device_problem() : 0;
}

int profile_start(const char *where, struct ipu_engine *engine)
{
    return where ? profile_record(engine, true) : 0;
}

static int print_profile(const ipu_profile *profile)
{
    char *text = NULL;

    if (ipu_profile_print(profile, IPU_PROFILE_TEXT, &text) < 0)
        return device_problem();
    printf("\n%s", text); /* main checks that standard output took it */
    free(text);
    return 0;
}

static int write_files(const ipu_profile *profile, const char *directory)
{
    if (ipu_profile_write(profile, directory) < 0)
        return device_problem();
    printf("profile        %s/report.html\n", directory);
    return 0;
}

int profile_put(const char *where, const struct ipu_profile *profile)
{
    return is_text(where) ? print_profile(profile)
                          : write_files(profile, where);
}

int profile_add(ipu_profile *profile, const struct profile_program *program)
{
    if (program->pipeline)
        return ipu_pipeline_profile(program->pipeline, profile);
    return ipu_profile_add(profile, program->name, 0, program->executable,
                           program->engine);
}

static int fill(const char *title, int count,
                const struct profile_program *programs, ipu_profile **profile)
{
    int status = ipu_profile_new(title, profile);

    for (int i = 0; i < count && status >= 0; i++)
        status = profile_add(*profile, &programs[i]);
    return status < 0 ? device_problem() : 0;
}

int profile_write(const char *folder, const char *title, int count,
                  const struct profile_program *programs)
{
    ipu_profile *profile = NULL;
    int status = fill(title, count, programs, &profile);

    if (status == 0 && ipu_profile_check_directory(folder) < 0)
        status = device_problem();
    if (status == 0 && ipu_profile_write(profile, folder) < 0)
        status = device_problem();
    ipu_profile_free(profile);
    return status;
}

int profile_finish(const char *where, const char *title, int count,
                   const struct profile_program *programs)
{
    ipu_profile *profile = NULL;
    int status;

    if (!where)
        return 0;
    status = fill(title, count, programs, &profile);
    if (status == 0)
        status = profile_put(where, profile);
    ipu_profile_free(profile);
    return status;
}
