/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script.c - draws what happens in a run of the explorer (script.h).
 *
 * Sizes are drawn around the boundaries of libhvd's ways: data in a slot, next
 * to it, in a message between hosts, in a batch, in several blocks.
 */
#include "script.h"

#include <string.h>

struct script script;

static struct sim_random draw, empties;

static int any(int n)
{
    return sim_below(&draw, n);
}

static bool once_in(int n)
{
    return sim_once_in(&draw, n);
}

/* -------------------------------------------------------------------- ranks */

/* Blocks of an alltoall go straight where no host has several ranks. */
static void draw_ranks(void)
{
    bool alone;

    script.nhosts = once_in(4) ? 1 : 1 + any(6);
    if (once_in(8)) /* a speaker has no more than eight children */
        script.nhosts = 9 + any(4);
    alone = script.nhosts > 2 && once_in(4);
    script.nranks = 0;
    for (int host = 0; host < script.nhosts; host++) {
        int n = alone ? 1 : 1 + any(script.nhosts > 6 ? 2 : 4);

        script.shares[host] = !(script_has(WITH_HERMITS) && once_in(4));
        while (n-- > 0)
            script.host_of[script.nranks++] = host;
    }
    if (script.nranks == 1)
        script.host_of[script.nranks++] = 0;
    /* Ranks of a host need not be neighbours. */
    for (int i = script.nranks - 1; i > 0 && once_in(2); i--) {
        int j = any(i + 1), host = script.host_of[i];

        script.host_of[i] = script.host_of[j];
        script.host_of[j] = host;
    }
}

static void draw_settings(void)
{
    static const size_t thresholds[] = {0, 256, 4096, 65536, 1 << 20};
    static const size_t smalls[] = {0, 64, 1024, 16384, 65536};
    static const size_t blocks[] = {64, 256, 4096, 32768};
    struct hvd__settings *s = &sim.settings;

    *s = (struct hvd__settings){.fusion_threshold = 65536,
                                .shm_size = (size_t)1 << 40,
                                .shm_small = 16384,
                                .shm_block = 4096,
                                .ordered = true,
                                .kernels = "auto",
                                .topk_ratio = 0.01};
    if (!script_has(WITH_SETTINGS))
        return;
    s->fusion_threshold = thresholds[any(5)];
    s->shm_small = smalls[any(5)];
    s->shm_block = blocks[any(4)];
    s->ordered = !once_in(6);
    s->deterministic = once_in(3);
    s->consistency_check = once_in(8);
    if (once_in(8))
        s->shm_size = 0;
}

/* Links that are thought slow make other algorithms the best. */
static void draw_choices(struct sim_random random)
{
    sim.costs = hvd__default_costs;
    if (script_has(WITH_SETTINGS) && sim_once_in(&random, 2))
        sim.costs.between.kib_moved *= sim_once_in(&random, 2) ? 10 : 100;
}

static void draw_slots(void)
{
    sim_slots = HVD__LOG_SLOTS;
    if (script_has(WITH_FEW_SLOTS))
        sim_slots = (uint16_t)(2 << any(6));
}

static void draw_costs(void)
{
    static const int alphas[] = {200, 5000, 50000, 1000000};
    static const size_t eagers[] = {0, 64, 4096, 1 << 30};

    script.costs = (struct sim_costs){
        .alpha_ns = alphas[any(4)],
        .local_ns = alphas[any(3)],
        .overhead_ns = any(500),
        .beta_ns = any(4) * 0.25,
        .varies = true,
        .has_stragglers = script_has(WITH_STRAGGLERS),
        .eager = eagers[any(4)],
        .poisons = once_in(2),
    };
}

static void draw_sets(void)
{
    script.nsets = script_has(WITH_SETS) && script.nranks > 2 ? 1 + any(2) : 0;
    for (int i = 0; i < script.nsets; i++) {
        struct script_set *set = &script.sets[i];

        memset(set, 0, sizeof *set);
        for (int rank = 0; rank < script.nranks; rank++)
            if (once_in(2)) {
                set->has[rank] = true;
                set->ranks[set->n++] = rank;
            }
        /* All sets differ, and none is all ranks. */
        if (set->n == 0 || set->n == script.nranks ||
            (i > 0 &&
             memcmp(set->has, script.sets[0].has, sizeof set->has) == 0)) {
            script.nsets = i;
            return;
        }
        set->id = i + 1;
    }
}

/* ----------------------------------------------------------------- requests */

static int members(int set)
{
    return set < 0 ? script.nranks : script.sets[set].n;
}

static int member(int set, int i)
{
    return set < 0 ? i : script.sets[set].ranks[i];
}

static int64_t draw_count(size_t element, int n)
{
    const int64_t small = (int64_t)sim.settings.shm_small;
    const int64_t bounds[] = {
        0,         1,        24,
        64,        4096 / n, 2 * small / n,
        2 * small, 4096,     (int64_t)sim.settings.fusion_threshold,
        32768,     65536};
    int nbounds = !script_has(WITH_LARGE) ? 5 : once_in(4) ? 11 : 8;
    int64_t bytes = bounds[any(nbounds)] + (any(3) - 1) * (int64_t)element;

    if (bytes > 70000)
        bytes = 70000;
    return bytes < 0 ? 0 : bytes / (int64_t)element;
}

static void draw_type(struct script_op *op)
{
    static const hvd_dtype dtypes[] = {HVD_FLOAT32,  HVD_INT32,   HVD_FLOAT64,
                                       HVD_UINT8,    HVD_FLOAT16, HVD_INT64,
                                       HVD_BFLOAT16, HVD_INT8,    HVD_UINT16};
    static const hvd_op ops[] = {HVD_SUM, HVD_AVERAGE, HVD_MIN, HVD_MAX,
                                 HVD_PRODUCT};

    op->dtype = dtypes[once_in(2) ? 0 : any(9)];
    op->op = ops[once_in(2) ? 0 : any(5)];
    op->prescale = op->postscale = 1;
    if (once_in(8) && op->dtype == HVD_FLOAT32 && op->op == HVD_SUM) {
        op->prescale = 2;
        op->postscale = 0.25;
    }
}

static void draw_rows(struct script_op *op)
{
    int n = members(op->set);

    if (!script_has(WITH_ROWS) || once_in(2) ||
        (op->kind != HVD_ALLGATHER && op->kind != HVD_ALLTOALL &&
         op->kind != HVD_GATHER))
        return;
    op->has_rows = true;
    for (int i = 0; i < n; i++) {
        int64_t *splits = op->splits[member(op->set, i)], sum = 0;
        int64_t most = op->count / n + 2;

        for (int j = 0; j < n; j++)
            sum += splits[j] = any((int)most);
        op->rows[member(op->set, i)] =
            op->kind == HVD_ALLTOALL ? sum : any((int)op->count + 2);
    }
}

/* Lets a rank give no rows to the request, or get none. */
static void empty_rank(struct script_op *op, int place)
{
    int n = members(op->set), rank = member(op->set, place);
    bool gets_none = op->kind == HVD_ALLTOALL && sim_once_in(&empties, 2);

    if (!gets_none)
        op->rows[rank] = 0;
    for (int i = 0; i < n && op->kind == HVD_ALLTOALL; i++) {
        int other = member(op->set, i);

        if (gets_none) {
            op->rows[other] -= op->splits[other][place];
            op->splits[other][place] = 0;
        } else {
            op->splits[rank][i] = 0;
        }
    }
}

/* A reducescatter of fewer elements than ranks leaves nothing for the last. */
static void draw_empty(struct script_op *op)
{
    int n = members(op->set);

    if (!script_has(WITH_EMPTY) || !sim_once_in(&empties, 3))
        return;
    if (op->kind == HVD_REDUCESCATTER)
        op->count = sim_below(&empties, n);
    for (int i = 0; i < n && op->has_rows; i++)
        if (sim_once_in(&empties, 2))
            empty_rank(op, i);
}

static void draw_op(struct script_op *op, int set, bool may_fail)
{
    static const hvd_kind kinds[] = {
        HVD_ALLREDUCE,     HVD_BROADCAST, HVD_ALLGATHER, HVD_ALLTOALL,
        HVD_REDUCESCATTER, HVD_GATHER,    HVD_REDUCE,    HVD_BARRIER};
    int n = members(set);

    memset(op, 0, sizeof *op);
    op->set = set;
    op->kind =
        once_in(2) ? HVD_ALLREDUCE : kinds[any(script_has(WITH_KINDS) ? 8 : 2)];
    draw_type(op);
    op->count = draw_count((size_t)hvd_dtype_size(op->dtype), n);
    if ((op->kind == HVD_ALLGATHER || op->kind == HVD_GATHER) &&
        op->count > 2048)
        op->count /= n;
    if (op->kind == HVD_ALLTOALL)
        op->count = (op->count + n - 1) / n * n;
    if (op->kind != HVD_BROADCAST && op->kind != HVD_GATHER &&
        op->kind != HVD_REDUCE)
        op->root = 0;
    else
        op->root = member(set, any(n));
    op->has_callback = once_in(4);
    draw_rows(op);
    draw_empty(op);
    op->in_place = (op->kind == HVD_ALLREDUCE ||
                    (op->kind == HVD_ALLTOALL && !op->has_rows)) &&
                   once_in(3);
    if (!may_fail || n < 2 || op->kind == HVD_BARRIER)
        return;
    op->faulty = member(set, any(n));
    if (script_has(WITH_REFUSALS) && once_in(10))
        op->fault = REFUSED;
    else if (script_has(WITH_MISMATCHES) && once_in(10))
        op->fault = DIFFERS;
}

static void shuffle_units(const struct script_phase *phase, int *order)
{
    int unnamed[SCRIPT_OPS], n = 0;

    for (int i = phase->nunits - 1; i > 0; i--) {
        int j = any(i + 1), unit = order[i];

        order[i] = order[j];
        order[j] = unit;
    }
    /* Requests without a name are matched by their order. */
    for (int i = 0; i < phase->nunits; i++)
        if (!phase->units[i].is_named)
            unnamed[n++] = i;
    n = 0;
    for (int i = 0; i < phase->nunits; i++)
        if (!phase->units[order[i]].is_named)
            order[i] = unnamed[n++];
}

static void draw_orders(struct script_phase *phase)
{
    bool differ = script_has(WITH_ORDERS) && once_in(2);

    for (int rank = 0; rank < script.nranks; rank++) {
        for (int i = 0; i < phase->nunits; i++)
            phase->orders[rank][i] = i;
        if (differ && once_in(2))
            shuffle_units(phase, phase->orders[rank]);
    }
}

static int draw_set(bool exist)
{
    return exist && script.nsets > 0 && once_in(3) ? any(script.nsets) : -1;
}

static void draw_requests(struct script_phase *phase, bool sets_exist)
{
    int want = 1 + any(SCRIPT_OPS);

    phase->kind = PHASE_REQUESTS;
    phase->repeats = once_in(3) ? 1 + any(4) : 1;
    while (phase->nops < want) {
        struct script_unit *unit = &phase->units[phase->nunits];

        unit->first = phase->nops;
        unit->set = draw_set(sets_exist);
        unit->n = 1;
        unit->is_group = script_has(WITH_GROUPS) && once_in(4);
        if (unit->is_group)
            unit->n += any(want - phase->nops < 4 ? want - phase->nops : 4);
        unit->is_named = !(script_has(WITH_UNNAMED) && once_in(2));
        for (int rank = 0; rank < script.nranks; rank++)
            if (script_has(WITH_PRIORITIES) && once_in(4))
                unit->priorities[rank] = any(3) - 1;
        for (int i = 0; i < unit->n; i++) {
            draw_op(&phase->ops[phase->nops], unit->set, !unit->is_group);
            phase->ops[phase->nops++].unit = phase->nunits;
        }
        phase->nunits++;
    }
    draw_orders(phase);
}

static void draw_blocking(struct script_phase *phase)
{
    phase->kind = PHASE_BLOCKING;
    phase->repeats = 1 + any(5);
    phase->nops = phase->nunits = 1;
    draw_op(&phase->ops[0], -1, true);
    phase->ops[0].has_rows = false;
    phase->units[0] = (struct script_unit){.n = 1, .set = -1};
}

/* Sums and broadcasts, many of which run in batches of their own: a rank that
 * is slow comes to lack many batches that others have done. */
static void mix_burst(struct script_phase *phase)
{
    struct script_op *op = &phase->ops[0];

    op->root = once_in(2) ? 0 : any(script.nranks);
    op->count = op->count / script.nranks * script.nranks;
    phase->group = 1;
    sim.settings.fusion_threshold = 0;
    sim.settings.ordered &= once_in(2);
}

/* More requests than there are slots, or more data than has room beside them.
 */
static void draw_burst(struct script_phase *phase)
{
    struct script_op *op = &phase->ops[0];

    phase->kind = PHASE_BURST;
    phase->repeats = phase->nops = phase->nunits = 1;
    phase->units[0] = (struct script_unit){.n = 1, .set = -1};
    op->set = -1;
    op->kind = HVD_ALLREDUCE;
    op->dtype = HVD_FLOAT32;
    op->op = HVD_SUM;
    op->prescale = op->postscale = 1;
    phase->is_mixed = once_in(2);
    if (once_in(2)) {
        phase->nburst = sim_slots + 1 + any(200);
        op->count = any(8);
    } else {
        phase->nburst = 60 + any(150);
        op->count = SCRIPT_SHOT / 4 + any(SCRIPT_SHOT / 2);
    }
    phase->group = script_has(WITH_GROUPS) ? 1 + any(SCRIPT_OPS) : 1;
    if (phase->is_mixed)
        mix_burst(phase);
    phase->swapper = any(script.nranks);
    phase->swaps = -1;
    if (script_has(WITH_ORDERS) && once_in(2) &&
        phase->nburst / phase->group > 1)
        phase->swaps = any(phase->nburst / phase->group - 1);
}

/* Reductions, which run in lanes once a rank has joined. The root of one has
 * not. */
static void draw_join(struct script_phase *phase)
{
    static const hvd_kind kinds[] = {HVD_ALLREDUCE, HVD_REDUCESCATTER,
                                     HVD_REDUCE};
    int last = 0;

    phase->kind = PHASE_JOIN;
    phase->repeats = 1;
    phase->nops = phase->nunits = 1 + any(6);
    for (int rank = 0; rank < script.nranks; rank++) {
        phase->njoined[rank] = once_in(2) ? phase->nops : any(phase->nops + 1);
        if (phase->njoined[rank] > phase->njoined[last])
            last = rank;
    }
    for (int i = 0; i < phase->nops; i++) {
        struct script_op *op = &phase->ops[i];

        memset(op, 0, sizeof *op);
        op->set = -1;
        op->kind = kinds[script_has(WITH_KINDS) && once_in(2) ? any(3) : 0];
        op->root = op->kind == HVD_REDUCE ? last : 0;
        draw_type(op);
        op->count =
            draw_count((size_t)hvd_dtype_size(op->dtype), script.nranks);
        phase->units[i] = (struct script_unit){
            .first = i, .n = 1, .is_named = true, .set = -1};
        op->unit = i;
    }
    draw_orders(phase);
    for (int rank = 0; rank < script.nranks; rank++)
        for (int i = 0; i < phase->nunits; i++)
            phase->orders[rank][i] = i;
}

/* Every op is a variable: its count. */
static void draw_strategy(struct script_phase *phase)
{
    int least = 1 + any(3);

    phase->kind = PHASE_STRATEGY;
    phase->repeats = 1;
    phase->nops = 1 + any(SCRIPT_VARIABLES);
    for (int i = 0; i < phase->nops; i++)
        phase->ops[i] =
            (struct script_op){.kind = HVD_ALLREDUCE,
                               .dtype = HVD_FLOAT32,
                               .set = -1,
                               .count = 1 + draw_count(4, script.nranks)};
    phase->is_serial = once_in(4);
    phase->check_every = any(3);
    for (int rank = 0; rank < script.nranks; rank++)
        phase->njoined[rank] = least + (script_has(WITH_JOINS) ? any(3) : 0);
}

static struct script_phase *next_phase(void)
{
    struct script_phase *phase = &script.phases[script.nphases++];

    memset(phase, 0, sizeof *phase);
    return phase;
}

static void draw_phases(void)
{
    int want = 1 + any(SCRIPT_PHASES - SCRIPT_SETS - 1);
    bool sets_exist = false;
    int last_collective = -1;

    while (script.nphases < want) {
        if (script.nsets > 0 && !sets_exist && once_in(2)) {
            for (int i = 0; i < script.nsets; i++) {
                struct script_phase *phase = next_phase();

                phase->kind = PHASE_ADD_SET;
                phase->repeats = 1;
                phase->set = i;
            }
            sets_exist = true;
            last_collective = script.nphases - 1;
        } else if (script_has(WITH_JOINS) && once_in(4)) {
            draw_join(next_phase());
            last_collective = script.nphases - 1;
        } else if (script_has(WITH_STRATEGIES) && once_in(5)) {
            draw_strategy(next_phase());
            last_collective = script.nphases - 1;
        } else if (script_has(WITH_BURSTS) && once_in(10)) {
            draw_burst(next_phase());
        } else if (script_has(WITH_BLOCKING) && once_in(2)) {
            draw_blocking(next_phase());
        } else {
            draw_requests(next_phase(), sets_exist);
        }
    }
    if (sets_exist && once_in(3)) {
        struct script_phase *phase = next_phase();

        phase->kind = PHASE_REMOVE_SET;
        phase->repeats = 1;
        phase->set = script.nsets - 1;
        last_collective = script.nphases - 1;
    }
    script.leaver = -1;
    if (script_has(WITH_LEAVER) && script.nphases > last_collective + 1) {
        int phase =
            last_collective + 1 + any(script.nphases - last_collective - 1);

        if (script.phases[phase].kind != PHASE_REQUESTS)
            return;
        script.leaver = any(script.nranks);
        script.leaves_in = phase;
        script.leaves_after = any(script.phases[phase].nunits + 1);
        script.phases[phase].repeats = 1;
    }
}

void script_draw(uint64_t seed, unsigned mask)
{
    struct sim_random swarm = sim_stream(seed, 3);

    memset(&script, 0, offsetof(struct script, phases));
    script.nsets = 0;
    script.joined_last = -1;
    script.features = (unsigned)sim_next(&swarm) & WITH_ALL & mask;
    if (script_has(WITH_DEATH) && !sim_once_in(&swarm, 3))
        script.features &= ~(unsigned)WITH_DEATH;
    draw = sim_stream(seed, 4);
    empties = sim_stream(seed, 8);
    draw_ranks();
    draw_settings();
    draw_choices(sim_stream(seed, 7));
    draw_slots();
    draw_costs();
    draw_sets();
    draw_phases();
    script.victim = -1;
    if (script_has(WITH_DEATH) && script.leaver < 0) {
        script.victim = any(script.nranks);
        script.dies_after = any(20) * any(20) * any(50);
    }
    sim.has_threads = script_has(WITH_THREADS);
}

/* ---------------------------------------------------------------- in words */

static void print_phase(const struct script_phase *phase, int number)
{
    static const char *const kinds[] = {
        "requests",   "blocking",  "a burst",     "join",
        "a strategy", "add a set", "remove a set"};

    printf("  phase %d: %s, %d times\n", number, kinds[phase->kind],
           phase->repeats);
    for (int i = 0; i < phase->nops; i++) {
        const struct script_op *op = &phase->ops[i];
        const struct script_unit *unit = &phase->units[op->unit];
        static const char *const faults[] = {"", ", differs on rank",
                                             ", refused on rank"};

        printf("    op %d: %s of %lld %s, %s, set %d, root %d%s%s%s", i,
               hvd_kind_name(op->kind), (long long)op->count,
               hvd_dtype_name(op->dtype), hvd_op_name(op->op), op->set + 1,
               op->root, unit->is_group ? ", in a group" : "",
               unit->is_named ? "" : ", unnamed",
               op->has_rows ? ", own rows" : "");
        if (op->fault)
            printf("%s %d", faults[op->fault], op->faulty);
        printf("\n");
    }
}

void script_print(void)
{
    const struct hvd__settings *s = &sim.settings;

    printf("%d ranks on %d hosts:", script.nranks, script.nhosts);
    for (int i = 0; i < script.nranks; i++)
        printf(" %d%s", script.host_of[i],
               script.shares[script.host_of[i]] ? "" : "!");
    printf("\nfeatures %#x, background threads %d\n", script.features,
           sim.has_threads);
    printf("threshold %zu, small %zu, block %zu, shm %d, ordered %d, "
           "deterministic %d, checks %d\n",
           s->fusion_threshold, s->shm_small, s->shm_block, s->shm_size > 0,
           s->ordered, s->deterministic, s->consistency_check);
    printf("alpha %lld ns, local %lld ns, eager %zu, %lld ns a KiB in costs\n",
           (long long)script.costs.alpha_ns, (long long)script.costs.local_ns,
           script.costs.eager, (long long)sim.costs.between.kib_moved);
    for (int i = 0; i < script.nsets; i++) {
        printf("  set %d:", i + 1);
        for (int j = 0; j < script.sets[i].n; j++)
            printf(" %d", script.sets[i].ranks[j]);
        printf("\n");
    }
    for (int i = 0; i < script.nphases; i++)
        print_phase(&script.phases[i], i);
    if (script.leaver >= 0)
        printf("  rank %d shuts down in phase %d after %d units\n",
               script.leaver, script.leaves_in, script.leaves_after);
    if (script.victim >= 0)
        printf("  rank %d dies after %lld steps\n", script.victim,
               (long long)script.dies_after);
}
