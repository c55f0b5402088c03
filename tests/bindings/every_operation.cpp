/* SPDX-License-Identifier: Apache-2.0 */
/* Every operation of hvd.hpp, on any number of ranks. */
#include <mpi.h>

#include <hvd.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define MUST(what)                                                             \
    do {                                                                       \
        if (!(what)) {                                                         \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, #what);            \
            std::exit(1);                                                      \
        }                                                                      \
    } while (0)

static void operations(int r, int n)
{
    std::vector<float> x(6), y(6), all(6u * static_cast<unsigned>(n));
    const double ranks = n * (n - 1) / 2.0;

    for (int i = 0; i < 6; i++)
        x[static_cast<unsigned>(i)] = static_cast<float>(r + i);
    hvd::allreduce(x.data(), y.data(), 6);
    for (unsigned i = 0; i < 6; i++)
        MUST(y[i] == static_cast<float>(ranks / n + i));
    auto handle = hvd::allreduce_async("x", x.data(), y.data(), 6, hvd::max);
    (void)handle.poll();
    while (!handle.wait_for(std::chrono::milliseconds(100)))
        continue;
    handle.wait();
    MUST(y[5] == static_cast<float>(n - 1 + 5));
    auto copy = x;
    hvd::broadcast(copy.data(), 6, n - 1);
    MUST(copy[0] == static_cast<float>(n - 1));
    hvd::broadcast_async("b", copy.data(), 6, 0).wait();
    hvd::allgather(x.data(), all.data(), 6);
    MUST(all[6u * static_cast<unsigned>(n - 1)] == static_cast<float>(n - 1));
    std::vector<std::int64_t> counts(static_cast<unsigned>(n));
    hvd::allgatherv(x.data(), r % 2 + 1, all.data(), 6 * n, counts.data());
    for (int k = 0; k < n; k++)
        MUST(counts[static_cast<unsigned>(k)] == k % 2 + 1);
    auto gathered = hvd::allgather_async("g", x.data(), r + 1).get();
    MUST(gathered.size() == static_cast<unsigned>(n * (n + 1) / 2));
    MUST(gathered[gathered.size() - 1] == static_cast<float>(2 * (n - 1)) ||
         n > 6);
    hvd::gather(x.data(), all.data(), 6, 0);
    hvd::reduce(x.data(), y.data(), 6, hvd::sum, n - 1);
    MUST(r != n - 1 || y[0] == static_cast<float>(ranks));
    hvd::reducescatter(x.data(), y.data(), 6);
    MUST(r != 0 || y[0] == static_cast<float>(ranks / n));
    auto share = hvd::reducescatter_async("rs", x.data(), 6, hvd::min).get();
    MUST(share.shape().size() == 1);
    std::vector<std::int32_t> to(static_cast<unsigned>(n)), from(to);
    for (int k = 0; k < n; k++)
        to[static_cast<unsigned>(k)] = 10 * r + k;
    hvd::alltoall(to.data(), from.data(), n);
    for (int k = 0; k < n; k++)
        MUST(from[static_cast<unsigned>(k)] == 10 * k + r);
    std::vector<std::int64_t> splits(static_cast<unsigned>(n), 1);
    hvd::alltoallv(to.data(), splits.data(), from.data(), n, counts.data());
    auto exchanged = hvd::alltoall_async("a", to.data(), n).get();
    MUST(exchanged[0] == r);
    std::int64_t index = r;
    auto sparse = hvd::sparse_allreduce("s", &index, x.data(), 1, 6, hvd::sum);
    MUST(sparse.first.size() == static_cast<unsigned>(n));
    MUST(sparse.second[1] == 1);
    hvd::Buffer<double> memory(3);
    memory[0] = 1;
    hvd::allreduce(memory.data(), memory.data(), 3, hvd::sum);
    MUST(memory[0] == n && memory[2] == 0);
    bool flag = r == 0;
    hvd::allreduce(&flag, &flag, 1, hvd::max);
    MUST(flag);
    hvd::bfloat16 one{0x3f80};
    hvd::allreduce(&one, &one, 1, hvd::adasum);
    MUST(one.bits == 0x3f80);

    const std::vector<std::int64_t> shape{6};
    auto a = hvd::request(HVD_ALLREDUCE, nullptr, x.data(), x.data(), shape);
    auto b = hvd::request(HVD_ALLREDUCE, nullptr, y.data(), y.data(), shape);
    for (auto &each : hvd::submit_group("group", {a, b}))
        each.wait();
    hvd::barrier();
}

static void errors(int r, int n)
{
    float value = 1;

    try {
        hvd::allreduce(&value, &value, r == n - 1 ? -1 : 1);
        MUST(false);
    } catch (const hvd::Error &error) {
        MUST(error.status() == (r == n - 1 ? HVD_ERR_ARGUMENT : HVD_ERR_PEER));
        MUST(std::strstr(error.what(), "-1"));
    }
    if (n == 1)
        return;
    hvd::ProcessSet first({0});
    MUST(first.included() == (r == 0) && first.size() == 1);
    const std::vector<std::int64_t> shape{1};
    auto on_set = hvd::request(HVD_ALLREDUCE, "s", &value, &value, shape);
    MUST(on_set.op == hvd::average);
    on_set.process_set = first.id();
    if (first.included())
        hvd::submit(on_set).wait();
    first.remove();
}

/* Every short form among the ranks of a set. */
static void on_a_set(const hvd::ProcessSet &set, int r)
{
    const int m = set.size(), me = set.rank();
    const auto members = static_cast<unsigned>(m);
    const hvd::Options urgent(set, 3);
    const float mine = static_cast<float>(r + 1);
    float first = 0, sum = 0, mean = 0;
    std::vector<float> all(members), x(members, mine), y(members);
    std::vector<std::int64_t> counts(members), ones(members, 1);

    hvd::allreduce(&mine, &sum, 1, hvd::sum, set);
    hvd::allreduce(&mine, &mean, 1, hvd::average, urgent);
    MUST(mean * static_cast<float>(m) - sum < 1e-5f * sum);
    hvd::allreduce_async("x", &mine, &sum, 1, hvd::max, urgent).wait();
    hvd::allgather(&mine, all.data(), 1, set);
    MUST(all[static_cast<unsigned>(me)] == mine && all[members - 1] == sum);
    hvd::allgatherv(&mine, 1, y.data(), m, counts.data(), set);
    MUST(y == all && counts == ones);
    hvd::allgatherv(&mine, 0, y.data(), 0, counts.data(), set);
    MUST(counts[0] == 0);
    try {
        hvd::allgatherv(&mine, me == 0, y.data(), 0, nullptr, set);
        MUST(false);
    } catch (const hvd::Error &error) {
        MUST(error.status() == HVD_ERR_ARGUMENT);
    }
    MUST(hvd::allgather_async("g", &mine, 1, set).get()[0] == all[0]);
    /* Its first rank, as the world counts. */
    const int root = static_cast<int>(all[0]) - 1;
    first = mine;
    hvd::broadcast(&first, 1, root, set);
    MUST(first == all[0]);
    first = mine;
    hvd::broadcast_async("b", &first, 1, root, urgent).wait();
    MUST(first == all[0]);
    hvd::gather(&mine, me == 0 ? y.data() : nullptr, 1, root, set);
    MUST(me != 0 || y == all);
    hvd::reduce(&mine, &first, 1, hvd::max, root, set);
    MUST(first == (me == 0 ? sum : all[0]));
    hvd::reducescatter(x.data(), &first, m, hvd::min, set);
    MUST(first == all[0]);
    MUST(hvd::reducescatter_async("rs", x.data(), m, hvd::min, set).get()[0] ==
         all[0]);
    hvd::alltoall(x.data(), y.data(), m, set);
    MUST(y == all);
    hvd::alltoallv(x.data(), ones.data(), y.data(), m, counts.data(), set);
    MUST(y == all && counts == ones);
    MUST(hvd::alltoall_async("a", x.data(), m, ones.data(), set).get()[0] ==
         all[0]);
    hvd::barrier(urgent);
    MUST(hvd::join(set) >= 0);
    hvd::allreduce(&mine, &first, 1, hvd::max, hvd::Options::urgent(2));
}

/* A value that all ranks pull at, and a rank that throws in mid-step. */
/* The strategy has made two steps, of SGD, with the variable w. */
static void states(hvd::Strategy &strategy, float *w, int r)
{
    const float before = w[0];
    std::int64_t updates = 0, many = 40;

    MUST(strategy.state().size() == 1);
    MUST(strategy.state()[0].name == std::string("w/updates"));
    MUST(strategy.state()[0].dtype == HVD_INT64);
    strategy.read_state({&updates});
    MUST(updates == 2);
    w[0] = static_cast<float>(r);
    strategy.write_state({&many});
    strategy.read_state({&updates});
    MUST(updates == 40 && w[0] == 0);
    w[0] = before;
    strategy.write_state();
    strategy.read_state({&updates});
    MUST(updates == 0 && w[0] == before);
    try {
        strategy.write_state({&many, &many});
        MUST(false);
    } catch (const hvd::Error &error) {
        MUST(error.status() == HVD_ERR_ARGUMENT);
    }
    try {
        strategy.read_state({});
        MUST(false);
    } catch (const hvd::Error &error) {
        MUST(error.status() == HVD_ERR_ARGUMENT);
    }
}

static void strategies(int r, int n)
{
    auto options = hvd::Strategy::options();
    float w[2] = {static_cast<float>(r), 7};

    options.optimizer = HVD_SGD;
    options.learning_rate = 0.5;
    hvd::Strategy strategy(options);
    int v = strategy.add("w", w, {2});
    float own[1] = {0}, mean[1] = {1};
    MUST(strategy.add_statistic("norm/mean", own, mean, {1}) == 0);
    strategy.start();
    MUST(w[0] == 0);
    own[0] = static_cast<float>(2 * r);
    strategy.read_statistics();
    MUST(mean[0] == static_cast<float>(n - 1));
    for (int step = 0; step < 2; step++) {
        strategy.gradient(v)[0] = static_cast<float>(2 * r);
        strategy.gradient(v)[1] = 0;
        strategy.ready(v);
        strategy.step();
    }
    MUST(w[0] == static_cast<float>(1 - n) && w[1] == 7);
    strategy.check();
    states(strategy, w, r);
    MUST(strategy.stats().steps == 2);
    for (int step = 0; step < r; step++) {
        strategy.gradient(v)[0] = strategy.gradient(v)[1] = 1;
        strategy.ready(v);
        strategy.step();
    }
    MUST(strategy.join() == n - 1);
    MUST(n == 1 || w[1] < 7);
    strategy.check();
    try {
        strategy.set_momentum(0.5);
        MUST(false);
    } catch (const hvd::Error &error) {
        MUST(error.status() == HVD_ERR_ARGUMENT);
    }
    hvd::Strategy moved(std::move(strategy));
    {
        float table[3][2] = {{0, 0}, {4, 5}, {6, 7}};
        const std::int64_t rows[2] = {2, 2};
        const float ones[4] = {1, 2, 1, 2};
        hvd::Strategy sparse(options);
        int t = sparse.add_sparse("table", table[0], 3, 2);
        sparse.start();
        sparse.ready_rows(t, rows, ones, r == 0 ? 2 : 0, 2);
        sparse.step();
        sparse.read_rows(t, rows, 2);
        MUST(std::abs(table[2][0] - (6 - 1.0F / static_cast<float>(n))) < 1e-6F);
        MUST(std::abs(table[2][1] - (7 - 2.0F / static_cast<float>(n))) < 1e-6F);
        MUST(table[1][1] == 5);
    }
    try {
        moved.load("/nowhere/state");
        MUST(false);
    } catch (const hvd::Error &error) {
        MUST(error.status() == HVD_ERR_FILE);
    }

    try {
        hvd::Strategy broken(options);
        float x = 0;
        broken.add("x", &x, {});
        broken.start();
        if (r == n - 1)
            throw std::runtime_error("no data");
        *broken.gradient(0) = 1;
        broken.ready(0);
        broken.step();
        MUST(false);
    } catch (const hvd::Error &error) {
        MUST(r < n - 1 && error.status() == HVD_ERR_PEER);
        MUST(std::strstr(error.what(), "an exception"));
    } catch (const std::runtime_error &) {
        MUST(r == n - 1);
    }
}

static void on_communicators(int r)
{
    MPI_Comm half;

    MPI_Comm_split(MPI_COMM_WORLD, r % 2, 0, &half);
    {
        hvd::World world(half);
        MUST(hvd::rank() == r / 2);
    }
    hvd::World world(MPI_COMM_WORLD);
    MUST(hvd::rank() == r);
    MPI_Comm_free(&half);
}

static void alone(int r)
{
    hvd::World world = hvd::World::of({r});

    MUST(hvd::size() == 1 && hvd::rank() == 0);
}

static void clusters(int r, int n)
{
    using hvd::Cluster;
    Cluster cluster;

    for (int k = 0; k <= n; k++)
        MUST(cluster.add(HVD_ROLE_WORKER, "h:" + std::to_string(k + 1)) == k);
    MUST(cluster.add(HVD_ROLE_EVALUATOR, "E:1") == 0);
    cluster.check_allreduce();
    cluster.set_task({HVD_ROLE_WORKER, r});
    MUST(cluster.task().index == r && cluster.rank() == r);
    MUST(cluster.is_chief() == (r == 0) && cluster.size() == n + 1);
    MUST(cluster.count(HVD_ROLE_EVALUATOR) == 1);
    MUST(cluster.address({HVD_ROLE_EVALUATOR, 0}) == "e:1");
    MUST(cluster.rank(cluster.task(n)) == n);
    auto read = Cluster::parse(cluster.tf_config({HVD_ROLE_WORKER, n}));
    MUST(read.rank() == n && read.text() == cluster.text());
    MUST(read.fingerprint() == cluster.fingerprint());
    read = Cluster::parse(cluster.text(), HVD_CLUSTER_NO_TASK);
    MUST(hvd_cluster_size(read.get()) == n + 1);
    setenv("TF_CONFIG", cluster.tf_config({HVD_ROLE_WORKER, n}).c_str(), 1);
    MUST(Cluster::from_environment()->rank() == n);
    unsetenv("TF_CONFIG");
    MUST(!Cluster::from_environment());
    try {
        (void)Cluster::load("/no/such/file");
        MUST(!"a file that does not exist");
    } catch (const hvd::Error &error) {
        MUST(error.status() == HVD_ERR_FILE);
    }
    try {
        (void)cluster.address({HVD_ROLE_PS, 0});
        MUST(!"a task that does not exist");
    } catch (const hvd::Error &error) {
        MUST(std::strstr(error.what(), "no ps 0"));
    }
}

int main()
{
    int r, n;

    {
        hvd::World world;
        r = hvd::rank();
        n = hvd::size();
        operations(r, n);
        errors(r, n);
        strategies(r, n);
        std::vector<std::int32_t> even, odd;
        for (int k = 0; k < n; k++)
            (k % 2 ? odd : even).push_back(k);
        if (n > 1) {
            hvd::ProcessSet evens(even), odds(odd);
            on_a_set(r % 2 ? odds : evens, r);
            evens.remove();
            odds.remove();
        }
        MUST(hvd::join() >= 0);
    }
    on_communicators(r);
    alone(r);
    clusters(r, n);
    std::printf("rank %d of %d: every operation\n", r, n);
}
