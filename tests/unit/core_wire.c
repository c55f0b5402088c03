/* SPDX-License-Identifier: Apache-2.0 */
/* Records are written as bytes and read back, cut short, and made impossible.
 * (tests/fuzz has garbage.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/agree/wire.h"
#include "suite.h"

static struct hvd__signature example(void)
{
    struct hvd__signature s = {.kind = HVD_ALLREDUCE,
                               .dtype = HVD_BFLOAT16,
                               .op = HVD_MAX,
                               .ndim = 3,
                               .prescale = 0.25,
                               .postscale = -1e300};

    s.shape[0] = 7;
    s.shape[1] = 0;
    s.shape[2] = INT64_C(1) << 40;
    return s;
}

/* Writes a statement of one signature. */
static void write_statement(struct hvd__writer *w, struct hvd__signature s)
{
    const struct hvd__statement what = {.bytes = sizeof what + sizeof s,
                                        .nsignatures = 1,
                                        .nnumbers = hvd__signature_carries(&s)};

    hvd__write_bytes(w, &what, sizeof what);
    hvd__write_bytes(w, &s, sizeof s);
}

/* Reads it back. Returns whether it is accepted and has that signature. */
static bool read_statement(struct hvd__reader *in, struct hvd__signature want)
{
    struct hvd__statement *what;
    bool good;

    ck_assert_int_eq(hvd__read_statement(in, &what), HVD_OK);
    ck_assert(in->failed == !what);
    good = what && what->nsignatures == 1 &&
           hvd__signature_equal(&what->signatures[0], &want);
    free(what);
    return good;
}

/* Writes one record of every type. */
static void write_all(struct hvd__writer *w)
{
    const int ranks[11] = {1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1};

    hvd__write_type(w, HVD__ANNOUNCE);
    hvd__write_text(w, "a name, \xff");
    write_statement(w, example());
    hvd__write_long(w, -123456);
    hvd__write_ranks(w, ranks, 11);
    hvd__write_text(w, "");
}

/* Reads everything back. Returns whether all of it is as it was written. */
static bool read_back(struct hvd__reader *in)
{
    char text[32], empty[1];
    int ranks[11];
    bool good = hvd__read_type(in) == HVD__ANNOUNCE;

    hvd__read_text(in, text, sizeof text);
    good &= strcmp(text, "a name, \xff") == 0;
    good &= read_statement(in, example());
    good &= hvd__read_int(in) == -123456;
    hvd__read_ranks(in, 11, ranks);
    good &= ranks[0] && !ranks[1] && ranks[3] && ranks[8] && ranks[10];
    hvd__read_text(in, empty, sizeof empty);
    return good && !in->failed && !hvd__reader_more(in);
}

TEST(there_and_back)
{
    struct hvd__writer w = {0};
    struct hvd__reader in;

    write_all(&w);
    in = (struct hvd__reader){.data = w.data, .bytes = w.bytes};
    ck_assert(read_back(&in));
    hvd__writer_fini(&w);
}

TEST(every_truncation_fails)
{
    struct hvd__writer w = {0};

    write_all(&w);
    for (size_t bytes = 0; bytes < w.bytes; bytes++) {
        /* A copy of exactly that size: a sanitizer sees each byte too far. */
        unsigned char *copy = malloc(bytes + !bytes);
        struct hvd__reader in = {.data = copy, .bytes = bytes};

        memcpy(copy, w.data, bytes);
        ck_assert(!read_back(&in));
        ck_assert(in.failed);
        ck_assert(!hvd__reader_more(&in));
        free(copy);
    }
    hvd__writer_fini(&w);
}

static bool refuses_text(const void *data, size_t bytes)
{
    struct hvd__reader in = {.data = data, .bytes = bytes};
    char text[8] = "before";

    hvd__read_text(&in, text, sizeof text);
    ck_assert_str_eq(in.failed ? "" : "ab", text);
    return in.failed;
}

TEST(texts_that_cannot_be_fail)
{
    ck_assert(!refuses_text("\2\0ab", 4));
    ck_assert(refuses_text("\3\0a\0b", 5));       /* a NUL within */
    ck_assert(refuses_text("\10\0abcdefgh", 10)); /* no room for a NUL */
    ck_assert(refuses_text("\3\0ab", 4));
}

TEST(ranks_that_cannot_be_fail)
{
    const unsigned char bits[] = {0, 0xff, 0x02}, neither = 2;
    struct hvd__reader in;
    int of[10];

    /* The ninth rank is none of seven; all of eight are written shorter. */
    for (int n = 7; n <= 10; n++) {
        in = (struct hvd__reader){.data = bits, .bytes = sizeof bits};
        hvd__read_ranks(&in, n, of);
        ck_assert_int_eq(in.failed, n != 10);
    }
    in = (struct hvd__reader){.data = &neither, .bytes = 1};
    hvd__read_ranks(&in, 3, of);
    ck_assert(in.failed);
}

static bool refuses_signature(struct hvd__signature s)
{
    struct hvd__writer w = {0};
    struct hvd__reader in;
    bool good;

    write_statement(&w, s);
    in = (struct hvd__reader){.data = w.data, .bytes = w.bytes};
    good = read_statement(&in, s);
    ck_assert(good != in.failed);
    hvd__writer_fini(&w);
    return !good;
}

TEST(signatures_that_cannot_be_fail)
{
    struct hvd__signature good = example();

    good.shape[1] = 1;
    ck_assert(!refuses_signature(good));
    for (int which = 0; which < 9; which++) {
        struct hvd__signature s = good;

        switch (which) {
        case 0: s.kind = 77; break;
        case 1: s.dtype = HVD_NUM_DTYPES; break;
        case 2: s.op = -1; break;
        case 3: s.shape[0] = -2; break;
        case 4: s.ndim = HVD_MAX_DIMS + 1; break;
        case 5: s.ndim = -1; break;
        case 6: s.shape[3] = 1; break; /* behind the last extent */
        case 7: s.unused = 1; break;
        default: s.shape[0] = INT64_C(1) << 40; break; /* overflows */
        }
        ck_assert_msg(refuses_signature(s), "%d", which);
    }
}

static bool refuses_refusal(struct hvd__statement *what, const char *text,
                            size_t bytes)
{
    struct hvd__writer w = {0};
    struct hvd__statement *got;
    struct hvd__reader in;

    what->bytes = (int32_t)(sizeof *what + bytes);
    hvd__write_bytes(&w, what, sizeof *what);
    hvd__write_bytes(&w, text, bytes);
    in = (struct hvd__reader){.data = w.data, .bytes = w.bytes};
    ck_assert_int_eq(hvd__read_statement(&in, &got), HVD_OK);
    ck_assert(in.failed == !got);
    free(got);
    hvd__writer_fini(&w);
    return in.failed;
}

TEST(refusals_that_cannot_be_fail)
{
    struct hvd__statement what = {.status = -1};

    ck_assert(!refuses_refusal(&what, "why", 4));
    ck_assert(refuses_refusal(&what, "why", 3));   /* no end */
    ck_assert(refuses_refusal(&what, "w\0hy", 5)); /* two of them */
    ck_assert(refuses_refusal(&what, "", 0));
    what.nnumbers = 1;
    ck_assert(refuses_refusal(&what, "why", 4));
    what = (struct hvd__statement){.status = HVD_OK};
    ck_assert(refuses_refusal(&what, "", 0)); /* nothing is submitted */
    what.status = 1;
    ck_assert(refuses_refusal(&what, "why", 4));
}

TEST(sets_of_ranks)
{
    for (int n = 1; n <= 40; n++)
        for (int step = 1; step <= 5; step++) {
            struct hvd__writer w = {0};
            int of[40], got[40];

            for (int rank = 0; rank < n; rank++)
                of[rank] = rank % step == 0;
            hvd__write_ranks(&w, of, n);
            ck_assert_uint_eq(
                w.bytes, step == 1 || n == 1 ? 1 : 1 + (size_t)(n + 7) / 8);
            hvd__read_ranks(
                &(struct hvd__reader){.data = w.data, .bytes = w.bytes}, n,
                got);
            for (int rank = 0; rank < n; rank++)
                ck_assert_int_eq(got[rank], of[rank]);
            hvd__writer_fini(&w);
        }
}

TEST_MAIN("core_wire", .seconds = 120)
