/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.c - reads the environment strictly: a value that is not understood
 * is an error, because a default in its place would be noticed much later.
 * world.c calls it on each rank; hvd-info lists the settings.
 */
#include "core/settings/settings.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/status.h"
#include "kernels/kernels.h"

/* ------------------------------------------------------------------ numbers */

static const char *const byte_units = "BKMGT";

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
        const char *unit = strchr(byte_units, toupper((unsigned char)*at));
        const char *rest = at + 1;

        if (!unit || !*unit)
            return HVD_ERR_CONFIG;
        if (unit == byte_units ? *rest
                               : *rest && strcasecmp(rest, "B") != 0 &&
                                     strcasecmp(rest, "iB") != 0)
            return HVD_ERR_CONFIG;
        for (; unit > byte_units; unit--)
            if (__builtin_mul_overflow(value, 1024u, &value))
                return HVD_ERR_CONFIG;
    }
    if (value > PTRDIFF_MAX)
        return HVD_ERR_CONFIG;
    *bytes = (size_t)value;
    return HVD_OK;
}

/* Parses digits with at most one point. strtod would take more (a sign, an
 * exponent, infinity), and in some locales a comma for the point. *rest is what
 * follows. */
static int parse_decimal(const char *text, double *value, const char **rest)
{
    size_t length = strspn(text, "0123456789.");
    double scale = 1;
    bool point = false;

    if (text[0] < '0' || text[0] > '9' || length > 63)
        return HVD_ERR_CONFIG;
    *value = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '.' && point)
            return HVD_ERR_CONFIG;
        if (text[i] == '.') {
            point = true;
            continue;
        }
        *value = 10 * *value + (text[i] - '0');
        scale *= point ? 10 : 1;
    }
    *value /= scale; /* up to 15 digits both operands are exact, so the result
                        is rounded once */
    *rest = text + length;
    return HVD_OK;
}

int hvd__parse_duration(const char *text, int64_t *ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"", 1e9},     {"s", 1e9},    {"ms", 1e6},
                 {"us", 1e3},   {"ns", 1.0},   {"m", 60e9},
                 {"min", 60e9}, {"h", 3600e9}, {"sec", 1e9}};
    const char *rest;
    double value;

    HVD_TRY(parse_decimal(text, &value, &rest));
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(rest, units[i].unit) != 0)
            continue;
        value *= units[i].ns;
        if (value > 1e18) /* thirty years */
            return HVD_ERR_CONFIG;
        *ns = (int64_t)value;
        return HVD_OK;
    }
    return HVD_ERR_CONFIG;
}

/* ----------------------------------------------- one parser a kind of value */

static int parse_bytes(const char *variable, const char *text, size_t *bytes)
{
    if (hvd__parse_bytes(text, bytes) == HVD_OK)
        return HVD_OK;
    return hvd__fail(HVD_ERR_CONFIG,
                     "%s='%s' is not a number of bytes: give digits and a "
                     "unit of B, KB, MB, GB or TB, such as 64MB",
                     variable, text);
}

static int parse_duration(const char *variable, const char *text, int64_t *ns)
{
    if (hvd__parse_duration(text, ns) == HVD_OK)
        return HVD_OK;
    return hvd__fail(HVD_ERR_CONFIG,
                     "%s='%s' is not a time: give a number and a unit of ms, "
                     "s, m or h, such as 30s",
                     variable, text);
}

static int parse_text(const char *variable, const char *text,
                      char (*value)[HVD__SETTING_TEXT])
{
    if (strlen(text) >= HVD__SETTING_TEXT)
        return hvd__fail(HVD_ERR_CONFIG, "%s is longer than %d bytes: %.40s...",
                         variable, HVD__SETTING_TEXT - 1, text);
    strcpy(*value, text);
    return HVD_OK;
}

static int parse_ratio(const char *variable, const char *text, double *ratio)
{
    const char *rest;
    double value;

    if (parse_decimal(text, &value, &rest) == HVD_OK && !*rest && value > 0 &&
        value <= 1) {
        *ratio = value;
        return HVD_OK;
    }
    return hvd__fail(HVD_ERR_CONFIG,
                     "%s='%s' is not a part of the whole: give a number more "
                     "than 0 and not more than 1, such as 0.01",
                     variable, text);
}

static int parse_bool(const char *variable, const char *text, bool *value)
{
    static const char *const no[] = {"0", "off", "false", "no"};
    static const char *const yes[] = {"1", "on", "true", "yes"};

    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (strcasecmp(text, no[i]) == 0 || strcasecmp(text, yes[i]) == 0) {
            *value = strcasecmp(text, yes[i]) == 0;
            return HVD_OK;
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
    if (strcasecmp(text, "fatal") == 0) { /* Horovod's name */
        *level = HVD__LOG_ERROR;
        return HVD_OK;
    }
    return hvd__fail(HVD_ERR_CONFIG,
                     "%s='%s' is not a level: give error, warning, info, "
                     "debug or trace",
                     variable, text);
}

static int parse_transport(const char *variable, const char *text,
                           enum hvd__transport_choice *choice)
{
    static const char *const names[] = {"auto", "mpi", "ucx", "tcp"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(text, names[i]) == 0) {
            *choice = (enum hvd__transport_choice)i;
            return HVD_OK;
        }
    return hvd__fail(HVD_ERR_CONFIG,
                     "%s='%s' is not a transport: give auto, mpi, ucx or tcp",
                     variable, text);
}

/* -------------------------------------------------------------- all of them */

/* Returns the value that applies and the variable that gave it, or NULL for the
 * default. */
static const char *given(const char *variable, const char *fallback,
                         const char **origin)
{
    const char *text = getenv(variable);

    *origin = variable;
    if (text && *text)
        return text;
    *origin = fallback;
    text = *fallback ? getenv(fallback) : NULL;
    return text && *text ? text : NULL;
}

/* Horovod has a switch where this library uses a time of 0. */
static int read_stall_disable(struct hvd__settings *settings)
{
    const char *variable = "HOROVOD_STALL_CHECK_DISABLE";
    const char *text = getenv(variable), *ours = getenv("HVD_STALL_CHECK_TIME");
    bool disabled = false;

    if (!text || !*text || (ours && *ours))
        return HVD_OK;
    HVD_TRY(parse_bool(variable, text, &disabled));
    if (disabled)
        settings->stall_check_ns = settings->stall_shutdown_ns = 0;
    return HVD_OK;
}

/*
 * Ranges outside of which a value is understood but surely a mistake. Bounds
 * are written as in the environment; "": no bound. A setting that is not listed
 * accepts every value of its kind.
 */
static const struct range {
    const char *variable;
    bool takes_zero; /* 0 is accepted in addition to the range */
    const char *least, *most;
    const char *why;
} ranges[] = {
    {"HVD_HEARTBEAT_TIME", true, "100ms", "",
     "a rank that only waits for a processor would count as frozen"},
    {"HVD_START_TIME", true, "100ms", "",
     "ranks that only wait for a processor would be given up"},
    {"HVD_STALL_CHECK_TIME", true, "100ms", "",
     "requests that only wait for a processor would be reported"},
    {"HVD_STALL_SHUTDOWN_TIME", true, "100ms", "",
     "requests that only wait for a processor would end the job"},
    {"HVD_EXIT_GRACE_TIME", true, "100ms", "",
     "a process would be ended before it can say why"},
    {"HVD_METRICS_INTERVAL", false, "10ms", "",
     "the whole file is written each time"},
    {"HVD_SHM_SMALL", true, "0", "32KB",
     "several tensors must fit into the 256 KB that a rank has for them"},
    {"HVD_SHM_BLOCK", false, "64", "128KB",
     "blocks are whole cache lines, and two ranks have 2 MB for theirs"},
};

enum { NRANGES = sizeof ranges / sizeof *ranges };

static int parse_bound(const char *text, int64_t *bound)
{
    size_t bytes;

    if (hvd__parse_bytes(text, &bytes) < 0)
        return hvd__parse_duration(text, bound);
    *bound = (int64_t)bytes;
    return HVD_OK;
}

static int out_of_range(const struct range *range, const char *origin,
                        const char *text, bool above)
{
    return hvd__fail(
        HVD_ERR_CONFIG, "%s='%s' is %s than %s: %s%s", origin, text,
        above ? "more" : "less", above ? range->most : range->least, range->why,
        range->takes_zero && !above ? "; 0 switches this off" : "");
}

/* Reads a setting's value from text, which the variable origin gave. Only
 * numbers of 64 bits have ranges. */
static int check_range(const char *variable, const char *origin,
                       const char *text, const void *field)
{
    const struct range *range = ranges, *end = ranges + NRANGES;
    int64_t value, bound;

    while (range < end && strcmp(range->variable, variable) != 0)
        range++;
    if (range == end)
        return HVD_OK;
    memcpy(&value, field, sizeof value);
    if (value == 0 && range->takes_zero)
        return HVD_OK;
    if (parse_bound(range->least, &bound) == HVD_OK && value < bound)
        return out_of_range(range, origin, text, false);
    if (*range->most && parse_bound(range->most, &bound) == HVD_OK &&
        value > bound)
        return out_of_range(range, origin, text, true);
    return HVD_OK;
}

static int check_together(const struct hvd__settings *settings)
{
    if (settings->stall_shutdown_ns > 0 &&
        settings->stall_shutdown_ns < settings->stall_check_ns)
        return hvd__fail(HVD_ERR_CONFIG,
                         "HVD_STALL_SHUTDOWN_TIME, %.3g s, is less than "
                         "HVD_STALL_CHECK_TIME, %.3g s: a stall must be "
                         "reported before it ends the job",
                         (double)settings->stall_shutdown_ns * 1e-9,
                         (double)settings->stall_check_ns * 1e-9);
    return HVD_OK;
}

int hvd__settings_read(struct hvd__settings *settings)
{
    const char *text, *origin;

    /* All defaults are set first, so that a failure leaves no field unset. */
#define X(variable, field, kind, standard, fallback, fallback_kind, meaning)   \
    HVD_TRY(parse_##kind(variable, standard, &settings->field));
    HVD__SETTINGS(X)
#undef X
#define X(variable, field, kind, standard, fallback, fallback_kind, meaning)   \
    if ((text = given(variable, fallback, &origin))) {                         \
        if (strcmp(origin, variable) == 0)                                     \
            HVD_TRY(parse_##kind(variable, text, &settings->field));           \
        else                                                                   \
            HVD_TRY(parse_##fallback_kind(origin, text, &settings->field));    \
        if (check_range(variable, origin, text, &settings->field) < 0) {       \
            parse_##kind(variable, standard, &settings->field);                \
            return HVD_ERR_CONFIG;                                             \
        }                                                                      \
    }
    HVD__SETTINGS(X)
#undef X
    HVD_TRY(read_stall_disable(settings));
    HVD_TRY(hvd__kernels_choose(settings->kernels));
    return check_together(settings);
}

void hvd__settings_each(hvd__setting_visitor *visit, void *context)
{
    const char *text, *origin;

#define X(variable, field, kind, standard, fallback, fallback_kind, meaning)   \
    text = given(variable, fallback, &origin);                                 \
    visit(context, variable, text ? text : standard,                           \
          text ? origin : "default", meaning);
    HVD__SETTINGS(X)
#undef X
}

/* ----------------------------------------------------------- misspelt names */

static const char *const variables[] = {
#define X(variable, field, kind, standard, fallback, fallback_kind, meaning)   \
    variable,
    HVD__SETTINGS(X)
#undef X
};

enum { NVARIABLES = sizeof variables / sizeof *variables, NAME_MAX_ = 64 };

/* Returns the number of edits that turn one text into the other (the
 * Levenshtein distance). */
static int distance(const char *a, const char *b)
{
    int row[NAME_MAX_ + 1], n = (int)strlen(b);

    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; *a; i++, a++) {
        int diagonal = row[0];

        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int above = row[j], best = diagonal + (*a != b[j - 1]);

            if (above + 1 < best)
                best = above + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[n];
}

/* Returns true for variables that the launcher, programs and tests of this
 * project read. */
static bool is_others(const char *name)
{
    return strcmp(name, "HVD_TTY") == 0 || strcmp(name, "HVD_BUILD") == 0 ||
           strcmp(name, "HVD_LIBRARY") == 0 ||
           strcmp(name, "HVD_PYTHON") == 0 ||
           strcmp(name, "HVD_RESTART") == 0 ||
           strcmp(name, "HVD_TORCH_KEEP_MEMORY") == 0 ||
           strncmp(name, "HVD_TEST_", 9) == 0;
}

static bool is_known(const char *name)
{
    for (int i = 0; i < NVARIABLES; i++)
        if (strcmp(name, variables[i]) == 0)
            return true;
    return is_others(name);
}

bool hvd__settings_stray(char *text, size_t size)
{
    for (char **entry = environ; *entry; entry++) {
        const char *nearest = variables[0];
        size_t length = strcspn(*entry, "=");
        char name[NAME_MAX_ + 1];
        int best = NAME_MAX_;

        if (strncmp(*entry, "HVD_", 4) != 0 || length > NAME_MAX_)
            continue;
        memcpy(name, *entry, length);
        name[length] = '\0';
        if (is_known(name))
            continue;
        for (int i = 0; i < NVARIABLES; i++) {
            int d = distance(name, variables[i]);
            if (d < best) {
                best = d;
                nearest = variables[i];
            }
        }
        if (best <= 4)
            snprintf(text, size,
                     "%s is not a variable of libhvd: did you "
                     "mean %s?",
                     name, nearest);
        else
            snprintf(text, size,
                     "%s is not a variable of libhvd; hvd-info "
                     "lists them",
                     name);
        return true;
    }
    return false;
}
