/* SPDX-License-Identifier: Apache-2.0 */
#include "core/env.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/status.h"

static const char *const units = "BKMGT";

int hvd__parse_bytes(const char *text, size_t *bytes)
{
    const char *at = text;
    uint64_t value = 0;

    if (!isdigit((unsigned char)*at))
        return HVD_ERR_CONFIG;
    for (; isdigit((unsigned char)*at); at++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (unsigned)(*at - '0'), &value))
            return HVD_ERR_CONFIG;
    if (*at) {
        const char *unit = strchr(units, toupper((unsigned char)*at));
        const char *rest = at + 1;

        if (!unit || !*unit)
            return HVD_ERR_CONFIG;
        if (unit == units ? *rest
                          : *rest && strcasecmp(rest, "B") != 0 &&
                                strcasecmp(rest, "iB") != 0)
            return HVD_ERR_CONFIG;
        for (; unit > units; unit--)
            if (__builtin_mul_overflow(value, 1024u, &value))
                return HVD_ERR_CONFIG;
    }
    if (value > PTRDIFF_MAX)
        return HVD_ERR_CONFIG;
    *bytes = (size_t)value;
    return HVD_OK;
}

static int parse_bytes(const char *variable, const char *text, size_t *bytes)
{
    if (hvd__parse_bytes(text, bytes) == HVD_OK)
        return HVD_OK;
    return hvd__fail(HVD_ERR_CONFIG,
                     "%s='%s' is not a number of bytes: give digits and a "
                     "unit of B, KB, MB, GB or TB, such as 64MB",
                     variable, text);
}

static int parse_bool(const char *variable, const char *text, bool *value)
{
    static const char *const no[] = {"0", "off", "false", "no"};
    static const char *const yes[] = {"1", "on", "true", "yes"};

    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        if (strcasecmp(text, no[i]) == 0 || strcasecmp(text, yes[i]) == 0) {
            *value = strcasecmp(text, yes[i]) == 0;
            return HVD_OK;
        }
    }
    return hvd__fail(HVD_ERR_CONFIG,
                     "%s='%s' is neither yes nor no: give 1, on, true or yes, "
                     "or 0, off, false or no",
                     variable, text);
}

static int parse_level(const char *variable, const char *text,
                       enum hvd__log_level *level)
{
    static const char *const names[] = {"error", "warning", "info", "debug",
                                        "trace"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(text, names[i]) == 0) {
            *level = (enum hvd__log_level)i;
            return HVD_OK;
        }
    return hvd__fail(HVD_ERR_CONFIG,
                     "%s='%s' is not a level: give error, warning, info, "
                     "debug or trace",
                     variable, text);
}

int hvd__settings_read(struct hvd__settings *settings)
{
    const char *text;

    /* Defaults first, all of them: a failure leaves no field unset. */
#define X(variable, field, kind, standard, meaning)                            \
    HVD_TRY(parse_##kind(variable, standard, &settings->field));
    HVD__SETTINGS(X)
#undef X
#define X(variable, field, kind, standard, meaning)                            \
    if ((text = getenv(variable)) && *text)                                    \
        HVD_TRY(parse_##kind(variable, text, &settings->field));
    HVD__SETTINGS(X)
#undef X
    return HVD_OK;
}
