/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compress.c - the table of compression schemes, and the state that they keep.
 *
 * The library's own encoding schemes are registered through the same struct as
 * a program's. The state that a scheme keeps between two requests of one name
 * (the error that it feeds back) lies in a table by process set, name, scheme
 * and count: a name that is reused for another size begins with empty state.
 * Requests without a name have no state.
 *
 * Any thread that submits calls hvd__compress_encode; the driver calls
 * hvd__compress_add. A lock guards both tables, another one each state.
 */
#include "core/request/compress.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/status.h"
#include "core/request/hash.h"
#include "core/request/names.h"
#include "core/request/topk.h"

enum { MOST_REGISTERED = 64 };

struct scheme {
    hvd_compressor functions;
    char *name; /* owned */
};

/* The key of a state: a name of a process set, for one scheme and count. */
struct topic {
    uint64_t key;
    int32_t process_set;
};

struct memory {
    uint64_t key;
    int32_t process_set;
    UT_hash_handle hh;
    pthread_mutex_t lock; /* one encoding at a time */
    void *state;          /* owned; zeroed at first */
};

/* Guards the variables below. Schemes are never unregistered, so a scheme that
 * was found once may be read without the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct scheme registered[MOST_REGISTERED];
static int nregistered;
static struct memory *memories;

static const hvd_compressor *find_compressor(hvd_compression compression)
{
    int i = compression - HVD_COMPRESSION_REGISTERED;
    const hvd_compressor *found = NULL;

    if (compression == HVD_COMPRESSION_TOPK)
        return &hvd__topk;
    pthread_mutex_lock(&lock);
    if (i >= 0 && i < nregistered)
        found = &registered[i].functions;
    pthread_mutex_unlock(&lock);
    return found;
}

const char *hvd_compression_name(hvd_compression compression)
{
    const hvd_compressor *functions;

    switch (compression) {
    case HVD_COMPRESSION_NONE: return "none";
    case HVD_COMPRESSION_FP16: return "fp16";
    case HVD_COMPRESSION_BF16: return "bf16";
    default:
        functions = find_compressor(compression);
        return functions ? functions->name : NULL;
    }
}

int hvd_compression_from_name(const char *name)
{
    if (!name)
        return hvd__fail(HVD_ERR_ARGUMENT, "the name of a compression is NULL");
    for (hvd_compression c = HVD_COMPRESSION_NONE;
         c < HVD_COMPRESSION_REGISTERED + MOST_REGISTERED; c++) {
        const char *known = hvd_compression_name(c);

        if (known && strcmp(known, name) == 0)
            return c;
    }
    return hvd__fail(HVD_ERR_ARGUMENT, "there is no compression '%s'", name);
}

bool hvd__compression_encodes(hvd_compression compression)
{
    return compression == HVD_COMPRESSION_TOPK ||
           compression >= HVD_COMPRESSION_REGISTERED;
}

hvd_dtype hvd__compression_wire(hvd_compression compression, hvd_dtype dtype)
{
    switch (compression) {
    case HVD_COMPRESSION_FP16: return HVD_FLOAT16;
    case HVD_COMPRESSION_BF16: return HVD_BFLOAT16;
    default: return dtype;
    }
}

int hvd_register_compressor(const hvd_compressor *compressor)
{
    char *name;
    int i;

    if (!compressor || compressor->size < sizeof *compressor ||
        !compressor->name || !compressor->name[0] || !compressor->max_bytes ||
        !compressor->encode || !compressor->add)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "a compressor must have its size, a name, max_bytes, "
                         "encode and add");
    HVD_TRY(hvd__name_check(compressor->name));
    name = strdup(compressor->name);
    if (!name)
        return hvd__fail_memory(strlen(compressor->name));
    pthread_mutex_lock(&lock);
    i = nregistered;
    if (i < MOST_REGISTERED) {
        registered[i].functions = *compressor;
        registered[i].functions.name = name;
        registered[i].name = name;
        nregistered++;
    }
    pthread_mutex_unlock(&lock);
    if (i < MOST_REGISTERED) /* the table owns the name now */
        /* cppcheck-suppress memleak */
        return HVD_COMPRESSION_REGISTERED + i;
    free(name);
    return hvd__fail(HVD_ERR_UNSUPPORTED,
                     "%d compressors are registered, "
                     "and there is no room for more",
                     MOST_REGISTERED);
}

/* ----------------------------------------------------------------- memories */

static struct memory *memory_new(uint64_t key, int64_t bytes)
{
    struct memory *m = calloc(1, sizeof *m);

    if (!m)
        return NULL;
    m->key = key;
    m->state = calloc(1, bytes > 0 ? (size_t)bytes : 1);
    if (m->state && pthread_mutex_init(&m->lock, NULL) == 0)
        return m;
    free(m->state);
    free(m);
    return NULL;
}

static void memory_free(struct memory *m)
{
    if (!m)
        return;
    pthread_mutex_destroy(&m->lock);
    free(m->state);
    free(m);
}

/* Returns NULL if memory runs out. */
static struct memory *recall_memory(const struct topic *topic, int64_t bytes)
{
    struct memory *m;

    pthread_mutex_lock(&lock);
    HASH_FIND(hh, memories, &topic->key, sizeof topic->key, m);
    if (!m && (m = memory_new(topic->key, bytes))) {
        m->process_set = topic->process_set;
        HASH_ADD(hh, memories, key, sizeof m->key, m);
        if (!m->hh.tbl) {
            memory_free(m);
            m = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return m;
}

void hvd__compress_forget(void)
{
    struct memory *m, *next;

    pthread_mutex_lock(&lock);
    m = memories;
    HASH_CLEAR(hh,
               memories); /* frees the table; its elements are still a list */
    for (; m; m = next) {
        next = m->hh.next;
        memory_free(m);
    }
    pthread_mutex_unlock(&lock);
}

void hvd__compress_forget_set(int32_t process_set)
{
    struct memory *m, *next;

    pthread_mutex_lock(&lock);
    HASH_ITER (hh, memories, m, next) {
        /* cppcheck-suppress uninitvar; HASH_ITER sets m */
        if (m->process_set != process_set)
            continue;
        /* The analyzer does not see that the list begins behind one that has
         * been taken out. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        HASH_DEL(memories, m);
        memory_free(m);
    }
    pthread_mutex_unlock(&lock);
}

static struct topic topic_of(hvd_compression compression, int32_t process_set,
                             const char *name, int64_t count)
{
    const int64_t numbers[] = {compression, process_set, count};

    return (struct topic){
        .key = hvd__fingerprint(hvd__fingerprint(0, name, strlen(name)),
                                numbers, sizeof numbers),
        .process_set = process_set,
    };
}

/* ----------------------------------------------------------------- encoding */

static int64_t encode_with(const hvd_compressor *f, struct memory *memory,
                           const float *values, int64_t count, void *code)
{
    int64_t bytes;

    pthread_mutex_lock(&memory->lock);
    bytes = f->encode(f->context, f->state_bytes ? memory->state : NULL, values,
                      count, code);
    pthread_mutex_unlock(&memory->lock);
    return bytes;
}

static int cannot_do(const hvd_compressor *f, int64_t count)
{
    return hvd__fail(HVD_ERR_UNSUPPORTED,
                     "the compressor '%s' cannot do %lld values", f->name,
                     (long long)count);
}

/* topic is the key of a state that is kept, or NULL for state that is not.
 * Returns the bytes, at most 'most'. */
static int64_t encode_values(const hvd_compressor *f, const struct topic *topic,
                             const float *values, int64_t count, void *code,
                             int64_t most)
{
    int64_t bytes = f->state_bytes ? f->state_bytes(f->context, count) : 0;
    struct memory *memory;
    int64_t result;

    if (bytes < 0)
        return cannot_do(f, count);
    memory = topic ? recall_memory(topic, bytes) : memory_new(0, bytes);
    if (!memory)
        return hvd__fail_memory((size_t)bytes);
    result = encode_with(f, memory, values, count, code);
    if (!topic)
        memory_free(memory);
    if (result < 0)
        return hvd__fail((int)result, "the compressor '%s' failed: %s", f->name,
                         hvd_strerror((int)result));
    if (result > most)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the compressor '%s' made a code of %lld bytes, and "
                         "max_bytes had said %lld",
                         f->name, (long long)result, (long long)most);
    return result;
}

int hvd__compress_encode(hvd_compression compression, int32_t process_set,
                         const char *name, const float *values, int64_t count,
                         double factor, void **code, int64_t *bytes)
{
    const hvd_compressor *f = find_compressor(compression);
    const struct topic topic = topic_of(compression, process_set, name, count);
    int64_t most = f->max_bytes(f->context, count);
    float *scaled = NULL;

    if (most < 0)
        return cannot_do(f, count);
    *code = malloc((size_t)most + 1);
    if (!*code)
        return hvd__fail_memory((size_t)most);
    if (factor != 1) {
        scaled = malloc((size_t)count * sizeof *scaled + 1);
        if (!scaled)
            return hvd__fail_memory((size_t)count * sizeof *scaled);
        for (int64_t i = 0; i < count; i++)
            scaled[i] = (float)((double)values[i] * factor);
    }
    *bytes = encode_values(f, name[0] ? &topic : NULL, scaled ? scaled : values,
                           count, *code, most);
    free(scaled);
    return *bytes < 0 ? (int)*bytes : HVD_OK;
}

int hvd__compress_add(hvd_compression compression, const void *code,
                      int64_t bytes, float *sum, int64_t count)
{
    const hvd_compressor *f = find_compressor(compression);
    int status = f->add(f->context, code, bytes, sum, count);

    if (status < 0)
        return hvd__fail(status,
                         "the compressor '%s' could not read a code "
                         "of %lld bytes",
                         f->name, (long long)bytes);
    return HVD_OK;
}
