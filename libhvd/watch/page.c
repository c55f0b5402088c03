/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.c - the status page and its seqlocks. watch.c makes and maps it; the
 * watchdog, the heartbeats and the threads that submit requests write it.
 *
 * Its memory is allocated when it is made (posix_fallocate), so that a full
 * /dev/shm is an error then and not a SIGBUS in the middle of training.
 *
 * A value of several words is kept under a seqlock (Boehm, Can seqlocks get
 * along with programming language memory models?, 2012). The owner's threads
 * may write at the same time: the second one gives way, for its news is as old.
 */
#include "watch/page.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"

_Static_assert(sizeof(struct hvd__begun) % 8 == 0, "whole words");
_Static_assert(sizeof(struct hvd__in_flight) % 8 == 0, "whole words");

size_t hvd__page_bytes(struct hvd__page_shape shape)
{
    return sizeof(struct hvd__page) +
           (size_t)shape.nlines * sizeof(struct hvd__line) +
           (size_t)shape.nflights * sizeof(struct hvd__flight);
}

static struct hvd__page *map(int fd, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED) {
        hvd__fail(HVD_ERR_MEMORY, "mmap of %zu bytes of shared memory: %s",
                  bytes, strerror(errno));
        return NULL;
    }
    /* A child of a fork is no rank. */
    madvise(memory, bytes, MADV_DONTFORK);
    return memory;
}

struct hvd__page *hvd__page_create(struct hvd__page_shape shape, int *fd)
{
    size_t bytes = hvd__page_bytes(shape);
    struct hvd__page *page = NULL;
    int made = hvd__segment_create(), code;

    if (made < 0) {
        hvd__fail(HVD_ERR_MEMORY, "shared memory (/dev/shm): %s",
                  strerror(-made));
        return NULL;
    }
    code = posix_fallocate(made, 0, (off_t)bytes);
    if (code != 0)
        hvd__fail(HVD_ERR_MEMORY, "%zu bytes of shared memory: %s", bytes,
                  strerror(code));
    else
        page = map(made, bytes);
    if (page) {
        page->nlines = shape.nlines;
        *fd = made;
    } else {
        close(made);
    }
    return page;
}

struct hvd__page *hvd__page_attach(const struct hvd__segment_address *address,
                                   struct hvd__page_shape shape)
{
    struct hvd__page *page;
    int fd = hvd__segment_open(address);

    if (fd < 0) {
        hvd__fail(HVD_ERR_MEMORY,
                  "shared memory of process %d (/proc/%d/fd/%d): %s",
                  (int)address->process, (int)address->process,
                  (int)address->fd, hvd__segment_strerror(-fd));
        return NULL;
    }
    page = map(fd, hvd__page_bytes(shape));
    close(fd);
    return page;
}

void hvd__page_unmap(struct hvd__page *page, struct hvd__page_shape shape)
{
    if (page)
        munmap(page, hvd__page_bytes(shape));
}

/* ----------------------------------------------------------------- seqlocks */

/* Makes the version odd before words are written, and even after. */
static void begin_writing(struct hvd__seqlock *lock)
{
    uint32_t version =
        atomic_load_explicit(&lock->version, memory_order_relaxed);

    atomic_store_explicit(&lock->version, version + 1, memory_order_relaxed);
}

static void end_writing(struct hvd__seqlock *lock)
{
    uint32_t version =
        atomic_load_explicit(&lock->version, memory_order_relaxed);

    atomic_store_explicit(&lock->version, version + 1, memory_order_release);
}

static void write_words(_Atomic uint64_t *words, const void *value,
                        size_t bytes)
{
    const unsigned char *from = value;

    for (size_t i = 0; i < bytes / 8; i++) {
        uint64_t word;

        memcpy(&word, from + 8 * i, 8);
        /* Release, with the acquire in read_words: a reader of a new word sees
         * the odd version too. */
        atomic_store_explicit(&words[i], word, memory_order_release);
    }
}

/* A writer may have been put to sleep in the middle, so readers give it time. A
 * writer that died there must not block readers: after about 10 ms they read
 * the line as it is. */
enum { ATTEMPTS_AT_ONCE = 100, ATTEMPTS = 200 };
#define PAUSE_NS 50000

static void read_words(struct hvd__seqlock *lock, _Atomic uint64_t *words,
                       void *value, size_t bytes)
{
    unsigned char *to = value;

    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        uint32_t before =
            atomic_load_explicit(&lock->version, memory_order_acquire);

        for (size_t i = 0; i < bytes / 8; i++) {
            uint64_t word =
                atomic_load_explicit(&words[i], memory_order_acquire);
            memcpy(to + 8 * i, &word, 8);
        }
        if (before % 2 == 0 &&
            atomic_load_explicit(&lock->version, memory_order_relaxed) ==
                before)
            return;
        if (attempt >= ATTEMPTS_AT_ONCE)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
}

_Static_assert(offsetof(struct hvd__begun, name) == 2 * sizeof(uint64_t),
               "two words before the name");

/* Every request runs this code, so only the bytes in use are written, and they
 * are not put together elsewhere before. */
void hvd__page_write_begun(struct hvd__line *line, int32_t kind,
                           const char name[static HVD__BEGUN_NAME],
                           int64_t since_ns)
{
    const int64_t head[] = {since_ns, kind};
    size_t bytes = strnlen(name, HVD__BEGUN_NAME - 1) + 1;

    begin_writing(&line->doing_lock);
    write_words(line->begun, head, sizeof head);
    write_words(line->begun + 2, name, (bytes + 7) / 8 * 8);
    end_writing(&line->doing_lock);
    atomic_store_explicit(&line->quick_ns, 0, memory_order_release);
}

void hvd__page_write_doing(struct hvd__line *line,
                           const struct hvd__doing *doing)
{
    uint32_t nobody = 0;

    if (!atomic_compare_exchange_strong_explicit(&line->writing, &nobody, 1,
                                                 memory_order_acquire,
                                                 memory_order_relaxed))
        return;
    hvd__page_write_begun(line, HVD__IN_WORDS, doing->text, doing->since_ns);
    atomic_store_explicit(&line->writing, 0, memory_order_release);
}

/* A quick word holds the kind in its upper 8 bits and the number below. */
enum { QUICK_SHIFT = 56 };

void hvd__page_write_quick(struct hvd__line *line, int32_t kind,
                           uint64_t number, int64_t since_ns)
{
    atomic_store_explicit(&line->quick,
                          (uint64_t)kind << QUICK_SHIFT |
                              (number & ((UINT64_C(1) << QUICK_SHIFT) - 1)),
                          memory_order_relaxed);
    /* Release, with the acquire in hvd__page_read_doing: a reader of this time
     * sees that request or a later one. */
    atomic_store_explicit(&line->quick_ns, since_ns, memory_order_release);
}

/* NAME_SHOWN is how much of a name is shown, so that kind and name fit in a
 * text. */
enum { NAME_SHOWN = 96 };

static void read_begun(struct hvd__line *line, struct hvd__doing *doing)
{
    struct hvd__begun begun;
    const char *kind, *name = begun.name;

    read_words(&line->doing_lock, line->begun, &begun, sizeof begun);
    begun.name[sizeof begun.name - 1] = '\0';
    doing->since_ns = begun.since_ns;
    kind = begun.kind == HVD__GROUP ? "group"
                                    : hvd_kind_name((hvd_kind)begun.kind);
    if (begun.kind == HVD__IN_WORDS || !kind) {
        snprintf(doing->text, sizeof doing->text, "%.*s",
                 (int)sizeof doing->text - 1, name);
        return;
    }
    /* A name of the library's own begins with a control character, or is a
     * number. */
    if (name[0] > 0 && name[0] < ' ')
        name++;
    snprintf(doing->text, sizeof doing->text, "%s '%.*s'", kind, NAME_SHOWN,
             name);
}

void hvd__page_read_doing(struct hvd__line *line, struct hvd__doing *doing)
{
    int64_t quick_ns =
        atomic_load_explicit(&line->quick_ns, memory_order_acquire);
    uint64_t quick = atomic_load_explicit(&line->quick, memory_order_relaxed);
    const char *kind = hvd_kind_name((hvd_kind)(quick >> QUICK_SHIFT));

    read_begun(line, doing);
    if (quick_ns == 0 || !kind)
        return;
    doing->since_ns = quick_ns;
    snprintf(doing->text, sizeof doing->text, "%s '%" PRIu64 "'", kind,
             quick & ((UINT64_C(1) << QUICK_SHIFT) - 1));
}

void hvd__page_write_flight(struct hvd__flight *flight,
                            const struct hvd__in_flight *value)
{
    size_t keys = offsetof(struct hvd__in_flight, keys);

    /* A reader looks at valid entries alone, and they are few: the rest of the
     * words keeps what was there. */
    begin_writing(&flight->lock);
    write_words(flight->words, value,
                offsetof(struct hvd__in_flight, requests) +
                    (size_t)value->nrequests * sizeof *value->requests);
    write_words(flight->words + keys / 8, value->keys,
                (size_t)value->nkeys * sizeof *value->keys);
    end_writing(&flight->lock);
}

static int32_t clamp(int32_t n, int32_t most)
{
    return n < 0 ? 0 : n > most ? most : n;
}

void hvd__page_read_flight(struct hvd__flight *flight,
                           struct hvd__in_flight *value)
{
    read_words(&flight->lock, flight->words, value, sizeof *value);
    value->nrequests = clamp(value->nrequests, HVD__PAGE_REQUESTS);
    value->nkeys = clamp(value->nkeys, HVD__PAGE_KEYS);
    for (int32_t i = 0; i < value->nrequests; i++) {
        struct hvd__watch_request *r = &value->requests[i];

        r->name[sizeof r->name - 1] = '\0';
        r->what[sizeof r->what - 1] = '\0';
    }
}

/* ------------------------------------------------------------------ the end */

/* Returns the place of the best cause; -1: there is none. */
static int best_cause(struct hvd__page *page)
{
    int best = -1;

    for (int i = 0; i < HVD__PAGE_CAUSES; i++)
        if (atomic_load(&page->causes[i].is_there) &&
            (best < 0 ||
             page->causes[i].is.finder < page->causes[best].is.finder))
            best = i;
    return best;
}

bool hvd__page_end(struct hvd__page *page, const struct hvd__cause *cause,
                   int64_t now_ns, int64_t settle_ns)
{
    int64_t since = atomic_load(&page->ended_ns), never = 0;
    int32_t place;
    int best = best_cause(page);

    if ((since != 0 && now_ns - since >= settle_ns) ||
        (best >= 0 && cause->finder >= page->causes[best].is.finder))
        return false;
    place = atomic_fetch_add(&page->ncauses, 1);
    if (place >= HVD__PAGE_CAUSES) {
        atomic_store(&page->ncauses, HVD__PAGE_CAUSES);
        return false;
    }
    page->causes[place].is = *cause;
    atomic_store(&page->causes[place].is_there, true);
    atomic_compare_exchange_strong(&page->ended_ns, &never, now_ns);
    return true;
}

bool hvd__page_is_ending(const struct hvd__page *page)
{
    return atomic_load(&page->ended_ns) != 0;
}

bool hvd__page_has_ended(struct hvd__page *page, int64_t now_ns,
                         int64_t settle_ns, struct hvd__cause *cause)
{
    int64_t since = atomic_load(&page->ended_ns);
    int32_t verdict = 0;

    if (since == 0 || now_ns - since < settle_ns)
        return false;
    if (atomic_compare_exchange_strong(&page->verdict, &verdict,
                                       best_cause(page) + 1))
        verdict = atomic_load(&page->verdict);
    *cause = page->causes[verdict - 1].is;
    return true;
}
