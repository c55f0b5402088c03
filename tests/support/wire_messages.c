/* SPDX-License-Identifier: Apache-2.0 */
#include "wire_messages.h"

#include <limits.h>
#include <string.h>

enum { MOST_RECORDS = 12 };

static uint64_t state;

void fuzz_seed(uint64_t seed)
{
    state = seed;
}

uint32_t fuzz_any(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state * UINT64_C(0x2545f4914f6cdd1d)) >> 32) % below;
}

/* ------------------------------------------------------------ good messages */

static uint64_t any_key(void)
{
    return fuzz_any(50)
               ? UINT64_C(0x1111111111111111) * (1 + fuzz_any(FUZZ_KEYS))
               : hvd__join_key();
}

static struct hvd__signature any_signature(void)
{
    static const hvd_kind kinds[] = {
        HVD_ALLREDUCE, HVD_ALLGATHER,     HVD_BROADCAST, HVD_ALLTOALL,
        HVD_BARRIER,   HVD_REDUCESCATTER, HVD_GATHER,    HVD_REDUCE};
    struct hvd__signature s = {.kind = kinds[fuzz_any(8)],
                               .dtype = (int32_t)fuzz_any(HVD_NUM_DTYPES),
                               .op = (int32_t)fuzz_any(HVD_NUM_OPS),
                               .root = (int32_t)fuzz_any(FUZZ_RANKS),
                               .ndim = (int32_t)fuzz_any(4),
                               .prescale = 1 + fuzz_any(2),
                               .postscale = 1};

    for (int i = 0; i < s.ndim; i++)
        s.shape[i] = fuzz_any(9);
    if (s.ndim > 0 && hvd__kind_has(s.kind, HVD__MAY_VARY) && fuzz_any(2))
        s.shape[0] = HVD__VARIES;
    return s;
}

static const char *any_text(void)
{
    static char text[64];
    uint32_t n = fuzz_any(sizeof text);

    for (uint32_t i = 0; i < n; i++)
        text[i] = (char)(1 + fuzz_any(255));
    text[n] = '\0';
    return text;
}

static void write_failure(struct hvd__writer *out)
{
    hvd__write_long(out, -1 - (int32_t)fuzz_any(27));
    hvd__write_text(out, any_text());
}

static void write_ranks(struct hvd__writer *out)
{
    int ranks[FUZZ_RANKS];

    for (int i = 0; i < FUZZ_RANKS; i++)
        ranks[i] = (int)fuzz_any(2);
    hvd__write_ranks(out, ranks, FUZZ_RANKS);
}

/* The places that the sender speaks for. */
static int first_place, nplaces;

/* Writes for which of them a record is, and returns their number. */
static int write_who(struct hvd__writer *out)
{
    int who[FUZZ_RANKS], n = 0;

    for (int i = 0; i < nplaces; i++) {
        who[i] = fuzz_any(3) > 0;
        n += who[i];
    }
    if (n == 0)
        n = who[0] = 1;
    hvd__write_ranks(out, who, nplaces);
    return n;
}

static void write_place(struct hvd__writer *out)
{
    hvd__write_long(out, first_place + (int32_t)fuzz_any((uint32_t)nplaces));
}

static void write_longs(struct hvd__writer *out, int n)
{
    hvd__write_long(out, n);
    for (int i = 0; i < n; i++)
        hvd__write_long(out, fuzz_any(100));
}

static void write_announcement(struct hvd__writer *out)
{
    bool refused = fuzz_any(4) == 0;
    const char *text = refused ? any_text() : "";
    int n = refused ? 0 : 1 + (int)fuzz_any(2), nwho = write_who(out);
    struct hvd__signature signatures[2];
    size_t bytes = refused ? strlen(text) + 1 : (size_t)n * sizeof *signatures;
    struct hvd__statement what = {.fingerprint = refused ? 0 : fuzz_any(2),
                                  .bytes = (int32_t)(sizeof what + bytes),
                                  .status = refused ? -1 - (int32_t)fuzz_any(27)
                                                    : HVD_OK,
                                  .nsignatures = n};

    for (int i = 0; i < n; i++) {
        signatures[i] = any_signature();
        what.nnumbers += hvd__signature_carries(&signatures[i]);
    }
    hvd__write_long(out, (int64_t)any_key());
    hvd__write_long(out, (int32_t)fuzz_any(3));
    hvd__write_bytes(out, &what, sizeof what);
    hvd__write_bytes(out, refused ? (const void *)text : signatures, bytes);
    for (int i = 0; i < what.nnumbers * nwho; i++)
        hvd__write_long(out, fuzz_any(100));
}

static void write_batch(struct hvd__writer *out)
{
    int n = 1 + (int)fuzz_any(3);

    hvd__write_long(out, fuzz_any(1 << 20));
    write_ranks(out);
    hvd__write_long(out, n);
    for (int i = 0; i < n; i++) {
        hvd__write_long(out, (int64_t)any_key());
        hvd__write_long(out, (int32_t)fuzz_any(2));
        write_longs(out, fuzz_any(2) ? FUZZ_RANKS : 0);
    }
}

static void write_record(struct hvd__writer *out, enum hvd__record_type type)
{
    hvd__write_type(out, type);
    switch (type) {
    case HVD__ANNOUNCE: write_announcement(out); break;
    case HVD__BATCH: write_batch(out); break;
    case HVD__END:
        hvd__write_long(out, (int64_t)any_key());
        write_failure(out);
        hvd__write_long(out, (int32_t)fuzz_any(FUZZ_RANKS));
        write_ranks(out);
        break;
    case HVD__BREAK: write_failure(out); break;
    case HVD__OPEN:
        hvd__write_long(out, (int32_t)fuzz_any(5));
        hvd__write_long(out, fuzz_any(100));
        break;
    case HVD__GONE:
        write_place(out);
        hvd__write_long(out, 1 + (int32_t)fuzz_any(3));
        break;
    case HVD__CLOSE: break;
    }
}

void fuzz_write_message(struct hvd__writer *out, enum hvd__record_type least,
                        enum hvd__record_type most, int first, int n)
{
    first_place = first;
    nplaces = n;
    out->bytes = 0;
    hvd__write_long(out, fuzz_any(40) ? 0 : (int32_t)fuzz_any(3) - 1);
    /* Leaving and breaking are made rare, or they would soon be all there is.
     */
    for (uint32_t left = fuzz_any(MOST_RECORDS); left > 0; left--) {
        enum hvd__record_type type = (enum hvd__record_type)(
            least + fuzz_any((uint32_t)(most - least) + 1));

        if (type == HVD__GONE && fuzz_any(20))
            type = HVD__ANNOUNCE;
        write_record(out, type);
    }
}

/* ----------------------------------------------------------------- spoiling */

static void replace_number(unsigned char *data, size_t bytes)
{
    static const int64_t extremes[] = {
        0,         -1,     1,      INT_MAX, INT_MIN,         INT64_MAX,
        INT64_MIN, 0xffff, 0x7fff, 255,     INT64_C(1) << 32};
    int64_t number = extremes[fuzz_any(sizeof extremes / sizeof *extremes)];
    size_t width = (size_t)1 << fuzz_any(4);

    if (bytes >= width)
        memcpy(data + fuzz_any((uint32_t)(bytes - width + 1)), &number, width);
}

/* Inserts some bytes of `from` before some byte of data. Returns the new
 * size. */
static size_t put_in(unsigned char *data, size_t bytes,
                     const unsigned char *from, size_t from_bytes)
{
    size_t start = fuzz_any((uint32_t)from_bytes + 1),
           at = fuzz_any((uint32_t)bytes + 1);
    size_t n = fuzz_any((uint32_t)(from_bytes - start) + 1);
    unsigned char piece[FUZZ_MOST_BYTES];

    if (bytes + n > FUZZ_MOST_BYTES)
        return bytes;
    memcpy(piece, from + start, n); /* from may be data */
    memmove(data + at + n, data + at, bytes - at);
    memcpy(data + at, piece, n);
    return bytes + n;
}

static size_t take_out(unsigned char *data, size_t bytes)
{
    size_t at = fuzz_any((uint32_t)bytes + 1),
           n = fuzz_any((uint32_t)(bytes - at) + 1);

    memmove(data + at, data + at + n, bytes - at - n);
    return bytes - n;
}

size_t fuzz_spoil(const struct hvd__writer *message,
                  const struct hvd__writer *other, unsigned char *data)
{
    size_t bytes =
        message->bytes < FUZZ_MOST_BYTES ? message->bytes : FUZZ_MOST_BYTES;

    memcpy(data, message->data, bytes);
    for (uint32_t times = fuzz_any(4); times > 0 && bytes > 0; times--)
        switch (fuzz_any(7)) {
        case 0:
            data[fuzz_any((uint32_t)bytes)] ^=
                (unsigned char)(1u << fuzz_any(8));
            break;
        case 1:
            data[fuzz_any((uint32_t)bytes)] = (unsigned char)fuzz_any(256);
            break;
        case 2: replace_number(data, bytes); break;
        case 3: bytes = fuzz_any((uint32_t)bytes); break;
        case 4: bytes = put_in(data, bytes, data, bytes); break;
        case 5: bytes = put_in(data, bytes, other->data, other->bytes); break;
        default: bytes = take_out(data, bytes); break;
        }
    if (fuzz_any(16) == 0)
        for (size_t i = 0; i < bytes; i++)
            data[i] = (unsigned char)fuzz_any(fuzz_any(2) ? 256 : 16);
    return bytes;
}
