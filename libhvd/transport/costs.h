/* SPDX-License-Identifier: Apache-2.0 */
/*
 * costs.h - what it takes to move and reduce data: the constants by which
 * algorithms are chosen (algo/cost.h). All ranks of a world have the same.
 *
 * The model is LogGP's, cut short: a step is the time until a message without
 * data has arrived; each message costs its rank time to send it and to receive
 * its counterpart; then bytes. A file of costs has a line "name=value" for each
 * constant, in ns.
 */
#ifndef HVD_TRANSPORT_COSTS_H
#define HVD_TRANSPORT_COSTS_H

#include <stddef.h>
#include <stdint.h>

/* Messages between two ranks, in ns. */
struct hvd__link_costs {
    int64_t step;      /* until a message without data has arrived */
    int64_t message;   /* sending one, and receiving one, on a rank */
    int64_t kib_moved; /* more, for each KiB of a message */
};

struct hvd__costs {
    struct hvd__link_costs between; /* ranks of two hosts */
    struct hvd__link_costs within;  /* ranks of one host, by the transport */
    int64_t kib_reduced;            /* adding a KiB to another, in ns */
};

/* X(name in a file, field). */
#define HVD__COSTS(X)                                                          \
    X("between_step_ns", between.step)                                         \
    X("between_message_ns", between.message)                                   \
    X("between_kib_ns", between.kib_moved)                                     \
    X("within_step_ns", within.step)                                           \
    X("within_message_ns", within.message)                                     \
    X("within_kib_ns", within.kib_moved)                                       \
    X("reduce_kib_ns", kib_reduced)

/* The constants of a world that has no others. Between hosts they are those of
 * TCP over 10 Gbit/s Ethernet, 12 to 25 us for a message and 1.1 GB/s. A faster
 * network moves the sizes at which one algorithm is better than another, and
 * not by much, since latency falls with the time of a byte. */
extern const struct hvd__costs hvd__default_costs;

/* Returns the constants of a world in which a KiB takes kib_ns between hosts:
 * the default ones or, if that is nearer to its time at 1 Gbit/s than at 10,
 * those of TCP over 1 Gbit/s Ethernet. There are only these two, so that a
 * choice does not follow what measured times vary by. */
struct hvd__costs hvd__costs_at_rate(int64_t kib_ns);

/* The size of a file's text. */
enum { HVD__COSTS_TEXT = 2048 };

/* Parses the text of a file, which path names in errors. Lines that are empty
 * or begin with # mean nothing. Every constant must be there once. Fails with
 * HVD_ERR_CONFIG; then *costs is unchanged. */
int hvd__costs_parse(const char *path, const char *text,
                     struct hvd__costs *costs);

/* Writes the text of a file, and a line before that says what origin is. */
void hvd__costs_print(const struct hvd__costs *costs, const char *origin,
                      char *text, size_t size);

#endif
