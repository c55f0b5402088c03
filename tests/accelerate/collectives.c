/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every collective that libhvd-mpi.so takes, as blocking and as nonblocking
 * call, against the same call of PMPI_: what is received, and every byte around
 * it, must be the same. Values are small integers, so sums are exact.
 *
 * The first argument is the level of threads to ask for. With a second one, N,
 * it tries every Nth case: across hosts, on a machine with other work, a call
 * takes milliseconds.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 20, MOST_RANKS = 16 };

static int rank, size, failures;
static int every = 1, ncases; /* the cases of a communicator so far */
static int room;              /* bytes of the buffers that the test uses */
static char *in, *out, *expected;
static MPI_Comm comm;

enum way { BY_PMPI, BLOCKING, NONBLOCKING, WAYS };

/* Calls PMPI_NAME, MPI_NAME or MPI_INAME with the arguments, and the
 * communicator. */
#define CALL(way, name, iname, ...)                                            \
    do {                                                                       \
        MPI_Request request_ = MPI_REQUEST_NULL;                               \
        if ((way) == BY_PMPI)                                                  \
            PMPI_##name(__VA_ARGS__, comm);                                    \
        else if ((way) == BLOCKING)                                            \
            MPI_##name(__VA_ARGS__, comm);                                     \
        else                                                                   \
            MPI_##iname(__VA_ARGS__, comm, &request_);                         \
        if ((way) == NONBLOCKING)                                              \
            MPI_Wait(&request_, MPI_STATUS_IGNORE);                            \
    } while (0)

/* A case of the test: what is called, and with what. */
struct test {
    const char *name;
    void (*call)(const struct test *test, enum way way);
    MPI_Datatype type; /* of this rank's; a derived one on some */
    MPI_Op op;
    int count; /* elements of a type of size bytes, of one block */
    int root, in_place;
    int bytes;    /* of an element */
    int is_float; /* of so many bytes, or 0 */
    int scale;    /* elements of the type are 1 / scale as many */
};

static void alltoallv(const struct test *t, enum way way);

static void fill(const struct test *test, char *buffer, int salt)
{
    for (int i = 0; i < room / 8; i++) {
        int64_t value = (i * 7 + rank * 3 + salt) % 3 + 1;

        if (test->is_float == 4)
            ((float *)buffer)[i] = (float)value;
        else if (test->is_float == 8)
            ((double *)buffer)[i] = (double)value;
        else if (test->bytes == 1)
            buffer[i] = (char)(test->type == MPI_C_BOOL ? value % 2 : value);
        else if (test->bytes == 2)
            ((int16_t *)buffer)[i] = (int16_t)-value;
        else if (test->bytes == 4)
            ((int32_t *)buffer)[i] = (int32_t)-value;
        else
            ((int64_t *)buffer)[i] = -value;
    }
}

static void check(const struct test *test)
{
    const int64_t needed = (int64_t)(test->count + 8) * size * 24;

    if (ncases++ % every != 0)
        return;
    room = (int)(needed < ROOM ? needed : ROOM);
    for (enum way way = BY_PMPI; way < WAYS; way++) {
        /* Open MPI's own MPI_Ialltoallv in place gives something else. */
        if (way == NONBLOCKING && test->in_place && test->call == alltoallv)
            continue;
        fill(test, in, 0);
        fill(test, out, 5);
        test->call(test, way);
        if (way == BY_PMPI)
            memcpy(expected, out, (size_t)room);
        else if (memcmp(expected, out, (size_t)room) != 0) {
            if (failures++ < 10)
                printf("rank %d of %d: %s%s, %d elements of %d "
                       "bytes, root %d, "
                       "in place %d: another result\n",
                       rank, size, way == NONBLOCKING ? "nonblocking " : "",
                       test->name, test->count, test->bytes, test->root,
                       test->in_place);
        }
    }
}

/* -------------------------------------------------------------- reductions */

static const void *input_of(const struct test *t)
{
    return t->in_place ? MPI_IN_PLACE : in;
}

static void allreduce(const struct test *t, enum way way)
{
    CALL(way, Allreduce, Iallreduce, input_of(t), out, t->count, t->type,
         t->op);
}

static void reduce(const struct test *t, enum way way)
{
    CALL(way, Reduce, Ireduce, rank == t->root ? input_of(t) : in,
         rank == t->root ? out : NULL, t->count, t->type, t->op, t->root);
}

static void reduce_scatter_block(const struct test *t, enum way way)
{
    CALL(way, Reduce_scatter_block, Ireduce_scatter_block, input_of(t), out,
         t->count, t->type, t->op);
    /* In place, what lies behind the result is anything. */
    if (t->in_place)
        memset(out + t->count * t->bytes, 0,
               (size_t)(room - t->count * t->bytes));
}

static void reduce_scatter(const struct test *t, enum way way)
{
    int counts[MOST_RANKS];

    for (int i = 0; i < size; i++)
        counts[i] = i % 3 == 2 ? t->count / 2 : t->count;
    CALL(way, Reduce_scatter, Ireduce_scatter, input_of(t), out, counts,
         t->type, t->op);
    if (t->in_place)
        memset(out + counts[rank] * t->bytes, 0,
               (size_t)(room - counts[rank] * t->bytes));
}

static void check_reductions(const struct test *base)
{
    /* All sizes for sums, one for the other operations. */
    const int ncounts = base->op == MPI_SUM ? 4 : 1;
    static const int counts[] = {7, 0, 1, 5003};
    static const struct {
        const char *name;
        void (*call)(const struct test *, enum way);
    } calls[] = {{"Allreduce", allreduce},
                 {"Reduce", reduce},
                 {"Reduce_scatter", reduce_scatter},
                 {"Reduce_scatter_block", reduce_scatter_block}};

    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (int i = 0; i < ncounts; i++)
            for (int in_place = 0; in_place < 2; in_place++) {
                struct test t = *base;

                t.name = calls[c].name;
                t.call = calls[c].call;
                t.count = counts[i];
                t.root = (i + base->bytes) % size;
                t.in_place = in_place;
                check(&t);
            }
}

static void check_types(void)
{
    const struct {
        MPI_Datatype type;
        int is_float;
    } types[] = {{MPI_SIGNED_CHAR, 0},
                 {MPI_UNSIGNED_CHAR, 0},
                 {MPI_SHORT, 0},
                 {MPI_UNSIGNED_SHORT, 0},
                 {MPI_INT, 0},
                 {MPI_UNSIGNED, 0},
                 {MPI_LONG, 0},
                 {MPI_UNSIGNED_LONG, 0},
                 {MPI_INT64_T, 0},
                 {MPI_AINT, 0},
                 {MPI_FLOAT, 4},
                 {MPI_DOUBLE, 8},
                 {MPI_C_FLOAT_COMPLEX, 4},
                 {MPI_C_DOUBLE_COMPLEX, 8},
                 {MPI_INTEGER, 0},
                 {MPI_DOUBLE_PRECISION, 8},
                 {MPI_C_BOOL, 0}};
    const MPI_Op ops[] = {MPI_SUM,  MPI_PROD, MPI_MIN, MPI_MAX,
                          MPI_LAND, MPI_LOR,  MPI_BXOR};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
            struct test t = {.type = types[i].type,
                             .op = ops[o],
                             .is_float = types[i].is_float};
            int is_logical = t.type == MPI_C_BOOL,
                is_complex = t.type == MPI_C_FLOAT_COMPLEX ||
                             t.type == MPI_C_DOUBLE_COMPLEX;

            /* Those that MPI defines. */
            if ((o > 3 && (t.type == MPI_INTEGER || t.type == MPI_AINT)) ||
                (is_logical && o < 4) || (is_logical && o == 6) ||
                (is_complex && o > 1) || (t.is_float && o > 3))
                continue;
            MPI_Type_size(t.type, &t.bytes);
            check_reductions(&t);
        }
}

/* ---------------------------------------------------------------- movement */

static void bcast(const struct test *t, enum way way)
{
    CALL(way, Bcast, Ibcast, out, t->count / t->scale, t->type, t->root);
}

static void allgather(const struct test *t, enum way way)
{
    CALL(way, Allgather, Iallgather, input_of(t), t->count, MPI_INT, out,
         t->count / t->scale, t->type);
}

/* Blocks of different sizes, in reverse, with gaps. */
static void make_blocks(const struct test *t, int *counts, int *displs)
{
    for (int i = 0; i < size; i++) {
        counts[i] = (i % 2 ? t->count / 2 : t->count) / t->scale;
        displs[i] = (size - 1 - i) * (t->count / t->scale + 3);
    }
}

/* The input has the type of the output, because Open MPI multiplies the size of
 * the one with the counts of the other. */
static void allgatherv(const struct test *t, enum way way)
{
    int counts[MOST_RANKS], displs[MOST_RANKS];

    make_blocks(t, counts, displs);
    CALL(way, Allgatherv, Iallgatherv, input_of(t), counts[rank], t->type, out,
         counts, displs, t->type);
}

static void alltoall(const struct test *t, enum way way)
{
    CALL(way, Alltoall, Ialltoall, input_of(t), t->count, MPI_INT, out,
         t->count / t->scale, t->type);
}

static void alltoallv(const struct test *t, enum way way)
{
    int counts[MOST_RANKS], displs[MOST_RANKS];
    int out_counts[MOST_RANKS], out_displs[MOST_RANKS];

    for (int i = 0; i < size; i++) {
        counts[i] = (rank + i) % 3 * (t->count / 2);
        displs[i] = i * (t->count + 2);
        out_counts[i] = counts[i] / t->scale;
        out_displs[i] = i * (t->count + 5);
    }
    CALL(way, Alltoallv, Ialltoallv, input_of(t), counts, displs, MPI_INT, out,
         out_counts, out_displs, t->type);
}

/* Only odd ranks have the derived type, of two ints in the order of memory: the
 * signatures are the same. */
static void check_movement(void)
{
    MPI_Datatype pair;

    static const int counts[] = {0, 40, 300, 4000, 20000};
    static const struct {
        const char *name;
        void (*call)(const struct test *, enum way);
    } calls[] = {{"Bcast", bcast},
                 {"Allgather", allgather},
                 {"Allgatherv", allgatherv},
                 {"Alltoall", alltoall},
                 {"Alltoallv", alltoallv}};

    MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            for (int in_place = 0; in_place < 2; in_place++)
                for (int derived = 0; derived < 2; derived++) {
                    int is_pair = derived && rank % 2;
                    struct test t = {.name = calls[c].name,
                                     .call = calls[c].call,
                                     .type = is_pair ? pair : MPI_INT,
                                     .scale = is_pair ? 2 : 1,
                                     .count = counts[i] / size / 4 * 4,
                                     .root = (int)i % size,
                                     .in_place = in_place,
                                     .bytes = 4};

                    check(&t);
                }
    MPI_Type_free(&pair);
}

/* Checks a communicator, which this frees, as a rank of it. */
static void check_communicator(MPI_Comm checked)
{
    const struct test sums = {
        .type = MPI_DOUBLE, .op = MPI_SUM, .bytes = 8, .is_float = 8};

    if (checked == MPI_COMM_NULL)
        return;
    comm = checked;
    ncases = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    /* libhvd does nothing before there was a blocking collective. */
    MPI_Barrier(comm);
    check_movement();
    check_reductions(&sums);
    MPI_Comm_free(&checked);
}

static void become_world(void)
{
    comm = MPI_COMM_WORLD;
    ncases = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
}

/* Those of some ranks: none waits for ranks that are in no collective or in
 * that of another communicator. Communicators have the memory of others that
 * were freed. */
static void check_communicators(void)
{
    MPI_Comm made, rest;

    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    check_communicator(made);
    become_world();
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &made);
    check_communicator(made);
    become_world();
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &made);
    check_communicator(made);
    become_world();
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 0, -rank, &made);
    check_communicator(made);
    become_world();
    MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1 ? MPI_UNDEFINED : 0, 0,
                   &rest);
    if (rest != MPI_COMM_NULL) {
        MPI_Comm_rank(rest, &rank);
        MPI_Comm_split(rest, rank / 2, 0, &made);
        check_communicator(made);
    }
    check_communicator(rest);
    become_world();
}

int main(int argc, char **argv)
{
    int level = argc > 1 ? atoi(argv[1]) : MPI_THREAD_SINGLE, all = 0;

    if (argc > 2)
        every = atoi(argv[2]);
    MPI_Init_thread(&argc, &argv, level, &level);
    in = malloc(ROOM);
    out = malloc(ROOM);
    expected = malloc(ROOM);
    become_world();
    check_types();
    check_movement();
    check_communicators();
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d wrong\n", all);
    MPI_Finalize();
    return all != 0;
}
