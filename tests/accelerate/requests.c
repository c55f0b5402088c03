/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What MPI promises of requests, progress, communicators and errors holds with
 * libhvd-mpi.so, too. A promise that is broken is mostly a hang, which the test
 * runner ends.
 *
 * An argument is the level of threads to ask for.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 100000, FEW = 2000 };

static int rank, size, failures;

#define EXPECT(condition)                                                      \
    do {                                                                       \
        if (!(condition) && failures++ < 10)                                   \
            printf("rank %d of %d, line %d: not so: %s\n", rank, size,         \
                   __LINE__, #condition);                                      \
    } while (0)

static double *vector(int count, double value)
{
    double *v = malloc((size_t)count * sizeof *v);

    for (int i = 0; i < count; i++)
        v[i] = value;
    return v;
}

static int all_are(const double *v, int count, double value)
{
    for (int i = 0; i < count; i++)
        if (v[i] != value)
            return 0;
    return 1;
}

static double sum_of_ranks(void)
{
    return size * (size - 1) / 2.0;
}

/* ---------------------------------------------------------------- requests */

enum { NREQUESTS = 6 };

struct mixed {
    MPI_Request requests[NREQUESTS];
    double *small, *large, *sent, *received, *news;
};

/* Starts collectives and messages at the same time. */
static void mixed_start(struct mixed *m)
{
    int next = (rank + 1) % size, last = (rank + size - 1) % size;

    m->small = vector(FEW, rank);
    m->large = vector(LARGE, rank);
    m->sent = vector(LARGE, rank);
    m->received = vector(LARGE, -1);
    m->news = vector(FEW, rank == 0 ? 7 : -1);
    MPI_Irecv(m->received, LARGE, MPI_DOUBLE, last, 1, MPI_COMM_WORLD,
              &m->requests[0]);
    MPI_Iallreduce(MPI_IN_PLACE, m->small, FEW, MPI_DOUBLE, MPI_SUM,
                   MPI_COMM_WORLD, &m->requests[1]);
    MPI_Ibcast(m->news, FEW, MPI_DOUBLE, 0, MPI_COMM_WORLD, &m->requests[2]);
    MPI_Isend(m->sent, LARGE, MPI_DOUBLE, next, 1, MPI_COMM_WORLD,
              &m->requests[3]);
    MPI_Iallreduce(MPI_IN_PLACE, m->large, LARGE, MPI_DOUBLE, MPI_MAX,
                   MPI_COMM_WORLD, &m->requests[4]);
    MPI_Ibarrier(MPI_COMM_WORLD, &m->requests[5]);
}

static void mixed_end(struct mixed *m)
{
    EXPECT(all_are(m->small, FEW, sum_of_ranks()));
    EXPECT(all_are(m->large, LARGE, size - 1));
    EXPECT(all_are(m->received, LARGE, (rank + size - 1) % size));
    EXPECT(all_are(m->news, FEW, 7));
    for (int i = 0; i < NREQUESTS; i++)
        EXPECT(m->requests[i] == MPI_REQUEST_NULL);
    free(m->small);
    free(m->large);
    free(m->sent);
    free(m->received);
    free(m->news);
}

static void all_ways_to_wait(void)
{
    struct mixed m;
    int done = 0, index, n, indices[NREQUESTS];
    MPI_Status status;

    mixed_start(&m);
    MPI_Waitall(NREQUESTS, m.requests, MPI_STATUSES_IGNORE);
    mixed_end(&m);

    mixed_start(&m);
    for (int i = 0; i < NREQUESTS; i++)
        EXPECT(MPI_Waitany(NREQUESTS, m.requests, &index, &status) ==
               MPI_SUCCESS);
    mixed_end(&m);

    mixed_start(&m);
    while (done < NREQUESTS) {
        MPI_Waitsome(NREQUESTS, m.requests, &n, indices, MPI_STATUSES_IGNORE);
        done += n;
    }
    mixed_end(&m);

    mixed_start(&m);
    for (done = 0; !done;)
        MPI_Testall(NREQUESTS, m.requests, &done, MPI_STATUSES_IGNORE);
    mixed_end(&m);

    mixed_start(&m);
    for (int i = NREQUESTS - 1; i >= 0; i--) {
        for (done = 0; !done;)
            MPI_Request_get_status(m.requests[i], &done, MPI_STATUS_IGNORE);
        EXPECT(m.requests[i] != MPI_REQUEST_NULL);
        MPI_Test(&m.requests[i], &done, &status);
        EXPECT(done);
    }
    mixed_end(&m);
}

static void types_and_communicators_may_be_freed_before_the_end(void)
{
    enum { PAIRS = 3000 };
    int *data = calloc(3 * PAIRS, sizeof *data);
    MPI_Request request;
    MPI_Datatype pair;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
    MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    for (int i = 0; rank == 0 && i < 3 * PAIRS; i++)
        data[i] = i;
    MPI_Ibcast(data, PAIRS / 3, pair, 0, comm, &request);
    MPI_Type_free(&pair);
    MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < PAIRS / 3; i++) {
        EXPECT(data[3 * i] == 3 * i && data[3 * i + 2] == 3 * i + 2);
        EXPECT(rank == 0 || data[3 * i + 1] == 0);
    }
    free(data);
}

/* mpi4py frees arrays of counts and displacements when a call has returned. */
static void counts_and_displacements_are_read_in_the_call(void)
{
    enum { FIRST = 400 };
    const int room = size * (FIRST + size);
    double *gathered = vector(room, -1), *own = vector(FIRST + rank, rank);
    int counts[size], displs[size];
    MPI_Request request;

    for (int i = 0; i < size; i++) {
        counts[i] = FIRST + i;
        displs[i] = i * (FIRST + size);
    }
    MPI_Iallgatherv(own, FIRST + rank, MPI_DOUBLE, gathered, counts, displs,
                    MPI_DOUBLE, MPI_COMM_WORLD, &request);
    memset(counts, 0x7f, sizeof counts);
    memset(displs, 0x7f, sizeof displs);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < size; i++) {
        const double *block = gathered + i * (FIRST + size);

        EXPECT(all_are(block, FIRST + i, i));
        EXPECT(all_are(block + FIRST + i, size - i, -1));
    }
    free(gathered);
    free(own);
}

/* ---------------------------------------------------------------- progress */

/* Rank 0 sends what the others wait for only when their collective is done. */
static void collectives_move_while_a_rank_receives(void)
{
    for (int count = 1; count <= LARGE; count *= 10) {
        double *values = vector(count, rank);
        MPI_Request request;
        int token = 0;

        MPI_Iallreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM,
                       MPI_COMM_WORLD, &request);
        if (rank == 0) {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            for (int i = 1; i < size; i++)
                MPI_Send(&token, 1, MPI_INT, i, 2, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&token, 1, MPI_INT, 0, 2, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        EXPECT(all_are(values, count, sum_of_ranks()));
        free(values);
    }
}

/* The last rank sends more than fits into MPI's buffers to ranks that are in a
 * collective already. */
static void messages_move_while_a_rank_reduces(void)
{
    double *values = vector(LARGE, rank), *received = vector(LARGE, -1);
    double one = 1;
    MPI_Request request = MPI_REQUEST_NULL;

    if (rank == size - 1) {
        for (int i = 0; i < size - 1; i++)
            MPI_Send(values, LARGE, MPI_DOUBLE, i, 3, MPI_COMM_WORLD);
    } else {
        MPI_Irecv(received, LARGE, MPI_DOUBLE, size - 1, 3, MPI_COMM_WORLD,
                  &request);
    }
    MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(one == size);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(rank == size - 1 || all_are(received, LARGE, size - 1));
    free(values);
    free(received);
}

/* Waits for a message that the next rank sends when it has left a collective:
 * a rank that has left it owes the others nothing. */
static void wait_for_next(void)
{
    int token = 0;

    for (int first = 0; first < size; first++) {
        int from = (first + 1) % size;

        if (rank == from && size > 1)
            MPI_Send(&token, 1, MPI_INT, first, 4, MPI_COMM_WORLD);
        else if (rank == first && size > 1)
            MPI_Recv(&token, 1, MPI_INT, from, 4, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
}

static void a_rank_that_is_done_owes_nothing(void)
{
    double *in = vector(LARGE, 1), *out = vector(LARGE, 0);

    for (int count = 1; count <= LARGE / size; count *= 7) {
        MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        wait_for_next();
        EXPECT(all_are(out, count, size));
        MPI_Bcast(in, count, MPI_DOUBLE, count % size, MPI_COMM_WORLD);
        wait_for_next();
        MPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, count % size,
                   MPI_COMM_WORLD);
        wait_for_next();
        MPI_Alltoall(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE,
                     MPI_COMM_WORLD);
        wait_for_next();
        MPI_Allgather(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE,
                      MPI_COMM_WORLD);
        wait_for_next();
        MPI_Reduce_scatter_block(in, out, count, MPI_DOUBLE, MPI_SUM,
                                 MPI_COMM_WORLD);
        wait_for_next();
        EXPECT(all_are(out, count, size));
        MPI_Barrier(MPI_COMM_WORLD);
        wait_for_next();
    }
    free(in);
    free(out);
}

/* ----------------------------------------------------------- communicators */

static void ranks_may_start_in_other_orders(void)
{
    MPI_Comm comms[2] = {MPI_COMM_WORLD, MPI_COMM_NULL}, third;
    MPI_Request requests[2];

    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_dup(MPI_COMM_WORLD, &third);
    MPI_Barrier(comms[1]);
    for (int turn = 0; turn < 20; turn++) {
        double *values[2] = {vector(FEW, rank), vector(FEW, 2 * rank)};
        double now = 1;

        for (int i = 0; i < 2; i++) {
            int c = rank % 2 ? 1 - i : i;

            MPI_Iallreduce(MPI_IN_PLACE, values[c], FEW, MPI_DOUBLE, MPI_SUM,
                           comms[c], &requests[c]);
            /* This one comes between the same two, in another order. */
            if (i == 0)
                MPI_Allreduce(MPI_IN_PLACE, &now, 1, MPI_DOUBLE, MPI_SUM,
                              third);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        EXPECT(now == size);
        EXPECT(all_are(values[0], FEW, sum_of_ranks()));
        EXPECT(all_are(values[1], FEW, 2 * sum_of_ranks()));
        free(values[0]);
        free(values[1]);
    }
    MPI_Comm_free(&comms[1]);
    MPI_Comm_free(&third);
}

static void *reduce_often(void *comm)
{
    for (int i = 0; i < 100; i++) {
        double *values = vector(FEW, rank + i);

        MPI_Allreduce(MPI_IN_PLACE, values, FEW, MPI_DOUBLE, MPI_SUM,
                      *(MPI_Comm *)comm);
        EXPECT(all_are(values, FEW, sum_of_ranks() + i * size));
        free(values);
    }
    return NULL;
}

static void threads_use_communicators_of_their_own(void)
{
    MPI_Comm comms[3] = {MPI_COMM_WORLD, MPI_COMM_NULL, MPI_COMM_NULL};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i + 1]);
        pthread_create(&threads[i], NULL, reduce_often, &comms[i + 1]);
    }
    reduce_often(&comms[0]);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        MPI_Comm_free(&comms[i + 1]);
    }
}

/* ---------------------------------------------- communicators of some ranks */

/* Returns a communicator of this rank and the next, or MPI_COMM_NULL: of ranks
 * 0 and 1, 2 and 3, ... if first is 0, and of 1 and 2, ... if it is 1. */
static MPI_Comm pairs(int first)
{
    MPI_Comm comm;
    int n;

    MPI_Comm_split(MPI_COMM_WORLD, (rank + first) / 2, 0, &comm);
    MPI_Comm_size(comm, &n);
    if (n < 2)
        MPI_Comm_free(&comm);
    return comm;
}

/* Each rank is in two pairs. */
static void communicators_may_overlap(void)
{
    MPI_Comm comms[2] = {pairs(0), pairs(1)};

    for (int turn = 0; turn < 50; turn++) {
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        double values[2][FEW], one = 1;

        for (int i = 0; i < 2; i++) {
            int c = rank % 2 ? 1 - i : i;

            for (int k = 0; k < FEW; k++)
                values[c][k] = rank;
            if (comms[c] != MPI_COMM_NULL)
                MPI_Iallreduce(MPI_IN_PLACE, values[c], FEW, MPI_DOUBLE,
                               MPI_SUM, comms[c], &requests[c]);
        }
        for (int c = 0; c < 2; c++)
            if (comms[c] != MPI_COMM_NULL) {
                MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_DOUBLE, MPI_SUM,
                              comms[c]);
                EXPECT(one == 2);
                one = 1;
            }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int c = 0; c < 2; c++)
            if (comms[c] != MPI_COMM_NULL)
                EXPECT(all_are(values[c], FEW,
                               rank + (rank % 2 == c ? rank + 1 : rank - 1)));
    }
    for (int c = 0; c < 2; c++)
        if (comms[c] != MPI_COMM_NULL)
            MPI_Comm_free(&comms[c]);
}

/* The last rank waits for a message that is sent when the others are done. They
 * make communicators, use them and free them meanwhile. */
static void nobody_waits_for_ranks_outside(void)
{
    int token = 0, outside = rank == size - 1;
    MPI_Comm some, comm;

    MPI_Comm_split(MPI_COMM_WORLD, outside ? MPI_UNDEFINED : 0, 0, &some);
    if (outside && size > 1)
        MPI_Recv(&token, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int turn = 0; some != MPI_COMM_NULL && turn < 200; turn++) {
        MPI_Comm_dup(some, &comm);
        for (int i = 0; i < 3; i++) {
            double one = 1;

            MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_DOUBLE, MPI_SUM, comm);
            EXPECT(one == size - 1);
        }
        MPI_Comm_free(&comm);
    }
    if (some != MPI_COMM_NULL)
        MPI_Comm_free(&some);
    if (rank == 0 && size > 1)
        MPI_Send(&token, 1, MPI_INT, size - 1, 5, MPI_COMM_WORLD);
}

/* Starts a sum on communicators of the even ranks and of the odd ones. */
static void start_halves(int n, double values[][FEW], MPI_Comm *comms,
                         MPI_Request *requests)
{
    for (int i = 0; i < n; i++) {
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &comms[i]);
        MPI_Barrier(comms[i]);
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < FEW; k++)
            values[i][k] = rank;
        MPI_Iallreduce(MPI_IN_PLACE, values[i], FEW, MPI_DOUBLE, MPI_SUM,
                       comms[i], &requests[i]);
    }
}

/* More communicators than libhvd has places for: MPI does the collectives of
 * the rest. Those of a few are freed while their collectives are under way,
 * which MPI's own do not survive. */
static void many_communicators_live_and_some_end_with_requests(void)
{
    enum { MANY = 80, FREED = 10 };
    static double values[MANY][FEW];
    const char *choice = getenv("HVD_MPI");
    const int freed = choice && strcmp(choice, "all") == 0 ? FREED : 0;
    MPI_Request requests[MANY];
    MPI_Comm comms[MANY];
    double half = 0;

    for (int i = rank % 2; i < size; i += 2)
        half += i;
    start_halves(freed, values, comms, requests);
    for (int i = 0; i < freed; i++)
        MPI_Comm_free(&comms[i]);
    MPI_Waitall(freed, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < freed; i++)
        EXPECT(all_are(values[i], FEW, half));
    start_halves(MANY, values, comms, requests);
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MANY; i++) {
        EXPECT(all_are(values[i], FEW, half));
        MPI_Comm_free(&comms[i]);
    }
}

static void *reduce_in_pairs(void *comm)
{
    int first;

    for (int i = 0; i < 100; i++) {
        double value = rank;

        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM,
                      *(MPI_Comm *)comm);
        MPI_Comm_rank(*(MPI_Comm *)comm, &first);
        EXPECT(value == (first == 0 ? 2 * rank + 1 : 2 * rank - 1));
    }
    return NULL;
}

/* Threads make process sets at the same time, on ranks that these share. */
static void threads_use_communicators_that_overlap(void)
{
    enum { THREADS = 6 };
    MPI_Comm comms[THREADS];
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        comms[i] = pairs(i % 2);
    for (int i = 0; i < THREADS; i++)
        if (comms[i] != MPI_COMM_NULL)
            pthread_create(&threads[i], NULL, reduce_in_pairs, &comms[i]);
    for (int i = 0; i < THREADS; i++)
        if (comms[i] != MPI_COMM_NULL) {
            pthread_join(threads[i], NULL);
            MPI_Comm_free(&comms[i]);
        }
}

/* ------------------------------------------------------------------ errors */

static int handled;

static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    handled = *code;
}

static void errors_are_mpis(void)
{
    MPI_Errhandler mine;
    MPI_Comm comm;
    int class = 0, in = 1, out = 0;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(handler, &mine);
    MPI_Comm_set_errhandler(comm, mine);
    MPI_Error_class(MPI_Allreduce(&in, &out, -1, MPI_INT, MPI_SUM, comm),
                    &class);
    EXPECT(class == MPI_ERR_COUNT && handled != 0);
    handled = 0;
    MPI_Error_class(MPI_Bcast(&in, 1000, MPI_INT, size, comm), &class);
    EXPECT(class == MPI_ERR_ROOT && handled != 0);
    handled = 0;
    MPI_Error_class(MPI_Bcast(&in, 1000, MPI_DATATYPE_NULL, 0, comm), &class);
    EXPECT(class == MPI_ERR_TYPE && handled != 0);
    MPI_Errhandler_free(&mine);
    MPI_Comm_free(&comm);
    /* It works as before. */
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(out == size);
}

/* libhvd refuses buffers that overlap by a part. On one rank they do. */
static void what_libhvd_refuses_mpi_does(void)
{
    double *values = vector(2 * FEW, 1), *out = vector(FEW, 0);
    double *in = rank == size - 1 ? values + 1 : values;
    double *to = rank == size - 1 ? values : out;

    MPI_Allreduce(in, to, FEW, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    EXPECT(all_are(to, FEW, 1));
    free(values);
    free(out);
}

static void multiply(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((double *)inout)[i] = 2 * ((double *)in)[i] + ((double *)inout)[i];
}

static void operations_of_the_program_are_used(void)
{
    double *in = vector(FEW, rank + 1), *out = vector(FEW, 0);
    double *other = vector(FEW, 0);
    MPI_Op op;

    MPI_Op_create(multiply, 0, &op);
    MPI_Allreduce(in, out, FEW, MPI_DOUBLE, op, MPI_COMM_WORLD);
    PMPI_Allreduce(in, other, FEW, MPI_DOUBLE, op, MPI_COMM_WORLD);
    EXPECT(memcmp(out, other, FEW * sizeof *out) == 0);
    MPI_Op_free(&op);
    free(in);
    free(out);
    free(other);
}

int main(int argc, char **argv)
{
    int wanted = argc > 1 ? atoi(argv[1]) : MPI_THREAD_SINGLE, level, all = 0;

    MPI_Init_thread(&argc, &argv, wanted, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    all_ways_to_wait();
    types_and_communicators_may_be_freed_before_the_end();
    counts_and_displacements_are_read_in_the_call();
    collectives_move_while_a_rank_receives();
    messages_move_while_a_rank_reduces();
    a_rank_that_is_done_owes_nothing();
    ranks_may_start_in_other_orders();
    communicators_may_overlap();
    nobody_waits_for_ranks_outside();
    many_communicators_live_and_some_end_with_requests();
    if (level == MPI_THREAD_MULTIPLE) {
        threads_use_communicators_of_their_own();
        threads_use_communicators_that_overlap();
    }
    errors_are_mpis();
    what_libhvd_refuses_mpi_does();
    operations_of_the_program_are_used();
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d wrong\n", all);
    MPI_Finalize();
    return all != 0;
}
