/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/costs.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"

const struct hvd__costs hvd__default_costs = {
    .between = {.step = 10000, .message = 8000, .kib_moved = 1000},
    .within = {.step = 1000, .message = 500, .kib_moved = 100},
    .kib_reduced = 100,
};

/* TCP over 1 Gbit/s Ethernet. From SLOW_FROM_NS for a KiB on, in the middle
 * between its time at 1 and at 10 Gbit/s, a link counts as that. */
static const struct hvd__link_costs slow_link = {
    .step = 15000, .message = 10000, .kib_moved = 8600};
enum { SLOW_FROM_NS = 3000 };

struct hvd__costs hvd__costs_at_rate(int64_t kib_ns)
{
    struct hvd__costs costs = hvd__default_costs;

    if (kib_ns >= SLOW_FROM_NS)
        costs.between = slow_link;
    return costs;
}

/* Ten seconds: sums of many of them fit into 64 bits. */
#define MOST_NS INT64_C(10000000000)

static const struct {
    const char *name;
    size_t offset;
} fields[] = {
#define X(name, field) {name, offsetof(struct hvd__costs, field)},
    HVD__COSTS(X)
#undef X
};

enum { NFIELDS = sizeof fields / sizeof *fields };

static int64_t *field_of(struct hvd__costs *costs, int i)
{
    return (int64_t *)((char *)costs + fields[i].offset);
}

/* Parses digits up to the end of a line. */
static bool parse_ns(const char *text, size_t length, int64_t *ns)
{
    *ns = 0;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
        *ns = 10 * *ns + (text[i] - '0');
        if (*ns > MOST_NS)
            return false;
    }
    return length > 0;
}

static int parse_line(const char *path, int number, const char *line,
                      size_t length, struct hvd__costs *costs, bool *seen)
{
    const char *equals = memchr(line, '=', length);
    size_t name = equals ? (size_t)(equals - line) : length;
    int i = 0;

    while (i < NFIELDS && (strlen(fields[i].name) != name ||
                           memcmp(fields[i].name, line, name) != 0))
        i++;
    if (!equals || i == NFIELDS)
        return hvd__fail(HVD_ERR_CONFIG,
                         "'%s', line %d: '%.*s' is not a cost; hvd-info "
                         "--topology --output writes such a file",
                         path, number, (int)(name < 40 ? name : 40), line);
    if (seen[i])
        return hvd__fail(HVD_ERR_CONFIG, "'%s', line %d: %s is there twice",
                         path, number, fields[i].name);
    seen[i] = true;
    if (parse_ns(equals + 1, length - name - 1, field_of(costs, i)))
        return HVD_OK;
    return hvd__fail(HVD_ERR_CONFIG,
                     "'%s', line %d: %s is not a number of nanoseconds from 0 "
                     "to 10000000000",
                     path, number, fields[i].name);
}

int hvd__costs_parse(const char *path, const char *text,
                     struct hvd__costs *costs)
{
    struct hvd__costs found = {0};
    bool seen[NFIELDS] = {false};

    for (int number = 1; *text; number++) {
        size_t length = strcspn(text, "\n");

        if (length > 0 && *text != '#')
            HVD_TRY(parse_line(path, number, text, length, &found, seen));
        text += length + (text[length] == '\n');
    }
    for (int i = 0; i < NFIELDS; i++)
        if (!seen[i])
            return hvd__fail(HVD_ERR_CONFIG, "'%s' lacks %s", path,
                             fields[i].name);
    *costs = found;
    return HVD_OK;
}

void hvd__costs_print(const struct hvd__costs *costs, const char *origin,
                      char *text, size_t size)
{
    struct hvd__text out = hvd__text_at(text, size);
    struct hvd__costs copy = *costs;

    hvd__text_add(&out, "# Costs of messages and reductions: %s.\n", origin);
    for (int i = 0; i < NFIELDS; i++)
        hvd__text_add(&out, "%s=%lld\n", fields[i].name,
                      (long long)*field_of(&copy, i));
}
