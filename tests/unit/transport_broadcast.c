/* SPDX-License-Identifier: Apache-2.0 */
#include "simulated_run.h"
#include "suite.h"

static const struct hvd__algorithm *const broadcasts[] = {
    &hvd__broadcast_binomial, &hvd__broadcast_hosts, NULL};
enum { BROADCASTS = sizeof broadcasts / sizeof *broadcasts };

static void broadcast(int size, int layout, int64_t count, int root,
                      const struct hvd__algorithm *algorithm)
{
    struct run run = layout < 0 ? run_begin(size, NULL, 0, size)
                                : run_begin(size, layouts[layout].widths,
                                            layouts[layout].n, size);
    bool applies = true;

    for (int i = 0; i < size; i++) {
        struct member *m = &run.members[i];
        struct hvd__collective *c = &m->collective;

        give(m, 0, (size_t)count, true);
        for (int64_t k = 0; i == root && k < count; k++)
            m->output[k] = (unsigned char)given(root, k);
        c->motion = HVD__SEND_FROM_ROOT;
        c->reduction = (struct hvd__reduction){.dtype = HVD_UINT8};
        c->count = count;
        c->root = root;
        applies = !algorithm || algorithm->applies(c);
    }
    if (applies)
        run_all(&run, algorithm);
    for (int i = 0; applies && i < size; i++)
        for (int64_t k = 0; k < count; k++)
            SIMULATED_ASSERT(run.members[i].output[k] == given(root, k));
    run_end(&run);
}

LOOP_TEST(broadcasts_are_right, 0, BROADCASTS *(LAYOUTS + 1))
{
    static const int64_t counts[] = {1, 31, 10007, 300001};

    for (int n = 2; n <= 17; n = after(n))
        for (int k = 0; k < (n < 9 ? 4 : 3); k++)
            for (int root = 0; root < n; root += k < 2 ? 1 : n / 2)
                broadcast(n, _i / BROADCASTS - 1, counts[k], root,
                          broadcasts[_i % BROADCASTS]);
}

LOOP_TEST(large_broadcasts_are_right, 0, BROADCASTS *(LAYOUTS + 1))
{
    for (int n = 2; n <= 5; n++)
        broadcast(n, _i / BROADCASTS - 1, 4500001, n - 1,
                  broadcasts[_i % BROADCASTS]);
}

TEST_MAIN("transport_broadcast", .set_up = keep_memory,
          .set_up_once = make_data, .seconds = 200)
