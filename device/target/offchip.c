/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offchip.c - data that leaves the chip: over IPU-Links, to the host, and to
 * streaming memory. The cost is bytes over bandwidth, after all chips have
 * synchronised.
 *
 * Chips synchronise over the links: 15 ns a hop, there and back, along half of
 * the ladder. This figure, the width of a link and the share that headers leave
 * of it (85 %) are Graphcore's own figures for its models.
 *
 *     tiles  ----exchange----  block = link = block  ----exchange----  tiles
 *              on
 *           <------
 *              packets
 *           ------>
 *
 * The compiler times nothing between chips: data travels in packets with
 * headers, and an exchange block at each link has a queue of tiles that want to
 * send. A request starts it; then it signals a tile to send (on), takes that
 * tile's packets, and proceeds to the next (Graphcore's patent US 10,558,595).
 * So a turn takes the path there and back over the chip, and the packets, at 4
 * bytes a cycle. A link carries several times that, so several tiles must have
 * their turn at once. Their number is not published. The model assumes as many
 * as keep the link busy if each sends one full packet, the rule for the size of
 * queues (bandwidth times delay). Then small messages wait for turns, and large
 * ones for bytes.
 *
 * The size of the largest packet is not published. The model assumes 128 bytes,
 * the smallest maximum of PCI Express, whose lanes have the rate of these
 * links.
 * The size of a header follows from the share that headers leave of a stream of
 * full packets.
 */
#include <math.h>

#include "base/error.h"
#include "target/cost.h"
#include "target/target.h"

/* The most that a packet carries. */
enum { PACKET_BYTES = 128 };

/* Centuries on any chip; sums of them still count in 64 bits. */
static const double MOST_CYCLES = 0x1p60;

static int check_arguments(const ipu_system *system, int64_t bytes,
                           const ipu_cycles *cycles)
{
    if (!system)
        return ipu__fail(IPU_ERR_ARGUMENT, "the system is NULL");
    IPU_TRY(ipu__check_size("system", system->size, sizeof *system));
    IPU_TRY(ipu__check_model(&system->ipu, cycles));
    if (bytes < 0 || bytes > (int64_t)1 << 50)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "a transfer of %lld bytes; 0 to "
                         "2^50",
                         (long long)bytes);
    return IPU_OK;
}

static int64_t cycles_of(const ipu_system *system, double seconds)
{
    return (int64_t)ceil(seconds * system->ipu.clock_hz - 1e-9);
}

/* Returns the cycles of a sync along half of a ladder and through the racks. */
static int64_t global_sync(const ipu_system *system)
{
    int64_t racks = ipu__rack_of(system, system->ipus - 1);
    int64_t ladder = racks > 0 ? system->ipus_per_rack : system->ipus;
    int64_t hops = 1 + ladder / 2 / 2 + racks;

    if (system->ipus == 1)
        return system->ipu.sync_cycles;
    return cycles_of(system, system->ipu.hop_seconds * (double)hops * 2);
}

int ipu_model_global_sync(const ipu_system *system, int64_t *cycles)
{
    ipu_cycles ignored = {.size = sizeof ignored};

    IPU_TRY(check_arguments(system, 0, &ignored));
    if (!cycles)
        return ipu__fail(IPU_ERR_ARGUMENT, "the place for cycles is NULL");
    if (system->ipus > 1 && system->ipus % 2)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "%d chips: a ladder has an even number of them",
                         (int)system->ipus);
    *cycles = global_sync(system);
    return IPU_OK;
}

/* The way that a message of each of some tiles leaves a chip. */
struct queue {
    double turn;   /* cycles from the signal to send until all has come */
    double every;  /* cycles from the end of one turn to that of the next */
    int64_t turns; /* turns of the tiles that share a link */
};

/* Bytes on the wire, with the headers of all packets. */
static double wire_bytes(const ipu_target *chip, int64_t bytes)
{
    double header = PACKET_BYTES * (1 / chip->link_efficiency - 1);

    return (double)bytes + header * (double)ipu__ceil_div(bytes, PACKET_BYTES);
}

/* Returns the cycles of one tile's turn, with that many bytes on the wire. */
static double turn_cycles(const ipu_target *chip, double wire)
{
    return 2 * (double)ipu__mean_path(chip) +
           ceil(wire / chip->exchange_bytes_per_cycle);
}

static struct queue queue_of(const ipu_target *chip, double bandwidth,
                             int64_t bytes, int64_t senders)
{
    double wire = wire_bytes(chip, bytes);
    double packet = wire_bytes(chip, PACKET_BYTES);
    double link = chip->link_bytes_per_second / chip->clock_hz;
    double links = fmax(1, bandwidth / chip->link_bytes_per_second);
    double at_once = ceil(turn_cycles(chip, packet) * link / packet);
    struct queue q;

    q.turn = turn_cycles(chip, wire);
    q.every = fmax(wire / link, q.turn / at_once);
    q.turn = fmax(q.turn, q.every);
    q.turns = (int64_t)ceil((double)senders / links);
    return q;
}

/* Cycles until the last message of the queue has left, or the mean one. */
static int64_t wait_in(const struct queue *q, int32_t loaded)
{
    double before = (double)(q->turns - 1) * q->every;

    if (loaded == IPU_LINK_MEAN)
        before /= 2;
    /* The sum may be more than 64 bits hold, if the target describes no real
     * chip. */
    return (int64_t)fmin(ceil(before + q->turn), MOST_CYCLES);
}

/* Counts as ipu_model_link does, for tiles that each send the same number of
 * bytes. */
static int link_cycles(const ipu_system *system, int32_t from, int32_t to,
                       int64_t bytes, int64_t senders, int32_t loaded,
                       ipu_cycles *cycles)
{
    ipu_cycles counted = {0};
    double bandwidth;
    int32_t hops;

    IPU_TRY(check_arguments(system, bytes, cycles));
    IPU_TRY(ipu_system_path(system, from, to, &bandwidth, &hops));
    if (from == to || !(bandwidth > 0))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "there is no link from IPU %d to %d of %s", (int)from,
                         (int)to, system->name);
    if (bytes > 0) {
        const ipu_target *chip = &system->ipu;
        const struct queue q = queue_of(chip, bandwidth, bytes, senders);

        counted.sync = chip->sync_cycles + global_sync(system);
        counted.exchange = chip->exchange_setup_cycles + ipu__mean_path(chip) +
                           wait_in(&q, loaded) +
                           cycles_of(system, chip->hop_seconds * hops) +
                           ipu__longest_path(chip);
        counted.exchange_bytes = bytes;
        counted.exchange_code_bytes = IPU__MESSAGE_CODE_BYTES;
    }
    counted.estimate = "how large packets are, and how many tiles have their "
                       "turn at a link at once, is not published; hops are "
                       "Graphcore's for a sync";
    ipu__finish(&counted, cycles);
    return IPU_OK;
}

int ipu_model_link(const ipu_system *system, int32_t from, int32_t to,
                   int64_t bytes, int32_t loaded, ipu_cycles *cycles)
{
    IPU_TRY(check_arguments(system, bytes, cycles));
    return link_cycles(system, from, to, bytes, loaded ? system->ipu.tiles : 1,
                       loaded, cycles);
}

/* Counts a latency and then bytes, through whatever is between. */
static void count_stream(const ipu_system *system, int64_t bytes,
                         double latency, double bandwidth, const char *estimate,
                         ipu_cycles *cycles)
{
    ipu_cycles counted = {.estimate = estimate};

    if (bytes > 0) {
        counted.sync = global_sync(system);
        counted.exchange =
            cycles_of(system, latency + (double)bytes / bandwidth);
        counted.exchange_bytes = ipu__ceil_div(bytes, system->ipu.tiles);
        counted.exchange_code_bytes = IPU__MESSAGE_CODE_BYTES;
    }
    ipu__finish(&counted, cycles);
}

int ipu_model_host(const ipu_system *system, int64_t bytes, ipu_cycles *cycles)
{
    IPU_TRY(check_arguments(system, bytes, cycles));
    count_stream(system, bytes, system->ipu.host_latency_seconds,
                 system->ipu.host_bytes_per_second * system->host_share,
                 system->host_share < 1
                     ? "the gateway's share of PCI Express is a measurement "
                       "whose source contradicts itself: 5.5 or 2.8 GB/s"
                     : "the host's latency is typical of PCI Express, not of "
                       "this system",
                 cycles);
    return IPU_OK;
}

int ipu_model_streaming(const ipu_system *system, int64_t bytes,
                        ipu_cycles *cycles)
{
    IPU_TRY(check_arguments(system, bytes, cycles));
    if (!(system->ipu.streaming_bytes_per_second > 0) ||
        system->streaming_bytes_per_board <= 0)
        return ipu__fail(IPU_ERR_ARGUMENT, "%s has no streaming memory",
                         system->name);
    count_stream(system, bytes, system->ipu.host_latency_seconds,
                 system->ipu.streaming_bytes_per_second,
                 "20 GB/s a chip is not confirmed", cycles);
    return IPU_OK;
}

int ipu__send_cycles(const ipu_system *system, int32_t from, int32_t to,
                     int64_t bytes, ipu_cycles *cycles)
{
    int64_t grains = ipu__ceil_div(bytes, IPU__GRAIN_BYTES);
    int64_t senders = ipu__least(grains, system->ipu.tiles);

    cycles->size = sizeof *cycles;
    return link_cycles(system, from, to,
                       ipu__ceil_div(bytes, senders > 0 ? senders : 1), senders,
                       IPU_LINK_LOADED, cycles);
}

/*
 * Every replica cuts the tensor into as many pieces as there are replicas; for
 * R - 1 steps each sends a piece on and adds what comes, then for R - 1 steps
 * the finished pieces go around. A step moves a piece over each link of the
 * ring at the same time, and takes as long as the longest way, the last
 * replica's back to the first.
 */
int ipu__ring_cycles(const ipu_system *system, int32_t replicas, int32_t stride,
                     int64_t bytes, int64_t *sent, int64_t *cycles)
{
    int64_t piece = (bytes + replicas - 1) / replicas, longest = 0;

    *cycles = 0;
    if (replicas < 2 || bytes == 0)
        return IPU_OK;
    for (int32_t r = 0; r < replicas; r++) {
        ipu_cycles c = {.total = 0};

        IPU_TRY(ipu__send_cycles(system, r * stride,
                                 (r + 1) % replicas * stride, piece, &c));
        longest = longest > c.total ? longest : c.total;
    }
    *sent += 2 * (replicas - 1) * piece;
    *cycles = 2 * (replicas - 1) * longest;
    return IPU_OK;
}
