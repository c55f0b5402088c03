/* SPDX-License-Identifier: Apache-2.0 */
#include "options/values.h"

#include "output/problem.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int value_whole(const char *option, const char *value, int64_t low,
                int64_t high, int64_t *number)
{
    const char *digits = value + (*value == '-');
    bool whole = *digits != '\0' && digits[strspn(digits, "0123456789")] == 0;

    errno = 0;
    long long parsed = whole ? strtoll(value, NULL, 10) : 0;
    if (!whole || errno != 0 || parsed < low || parsed > high)
        return problem_set("%s: '%s' is not a whole number from %lld to %lld",
                           option, value, (long long)low, (long long)high);
    *number = parsed;
    return 0;
}

int value_int(const char *option, const char *value, int low, int high,
              int *number)
{
    int64_t wide = 0;
    int status = value_whole(option, value, low, high, &wide);

    if (status == 0)
        *number = (int)wide;
    return status;
}

int value_real(const char *option, const char *value, int zero, double high,
               double *number)
{
    char *end = NULL;
    double parsed = strtod(value, &end);
    bool fits = *value != '\0' &&
                value[strspn(value, "0123456789.eE+-")] == '\0' &&
                *end == '\0' && isfinite(parsed) && parsed <= high &&
                (parsed > 0 || (zero && parsed == 0));

    if (fits) {
        *number = parsed;
        return 0;
    }
    if (isfinite(high))
        return problem_set("%s: '%s' is not a number %s 0 and at most %g",
                           option, value, zero ? "of at least" : "above", high);
    return problem_set("%s: '%s' is not a number %s 0 (like 0.001)", option,
                       value, zero ? "of at least" : "above");
}

int value_name(const char *option, const char *value, const char *const *names,
               int *number)
{
    char all[160] = "";

    for (int i = 0; names[i]; i++) {
        size_t used = strlen(all);

        if (strcmp(names[i], value) == 0) {
            *number = i;
            return 0;
        }
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "",
                 names[i]);
    }
    return problem_set("%s: '%s' is none of %s", option, value, all);
}

int value_path(const char *option, const char *value, const char **path)
{
    if (*value == '\0')
        return problem_set("%s: '' is not a path", option);
    *path = value;
    return 0;
}

int value_take(const struct value_form *form, const char *name,
               const char *value, void *to)
{
    char option[40];

    snprintf(option, sizeof option, "--%s", name);
    switch (form->kind) {
    case VALUE_FLAG: *(bool *)to = true; return 0;
    case VALUE_TEXT: *(const char **)to = value; return 0;
    case VALUE_PATH: return value_path(option, value, to);
    case VALUE_REAL:
        return value_real(option, value, form->zero, form->most, to);
    case VALUE_NAME: return value_name(option, value, form->names, to);
    default:
        return form->bytes == sizeof(int64_t)
                   ? value_whole(option, value, form->low, form->high, to)
                   : value_int(option, value, (int)form->low, (int)form->high,
                               to);
    }
}
