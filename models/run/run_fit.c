/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_fit.c - see run_fit.h.
 *
 * The fullest tile decides whether a program fits. Its shares are those of the
 * step at which it is fullest, so they add up to what it holds. The library
 * compiles a changed copy of the graph for each remedy, so remedies are tried
 * only if the program does not fit.
 *
 * On several chips a batch goes from one to the next. As a pipeline they work
 * at the same time, on batches that follow each other: in inference one leaves
 * in the time of the slowest chip. Of a training the library makes the pipeline
 * itself, for its optimiser and what it keeps (the remedy of that name).
 */
#include "run/run_fit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int run_find_target(const char *name, ipu_target *target)
{
    ipu_target_init(target, sizeof *target);
    if (strchr(name, '.') || strchr(name, '/'))
        return ipu_target_load(name, target);
    return ipu_target_find(name, target);
}

static void print_share(const char *what, int64_t bytes, int64_t of)
{
    printf("  %-22s %12" PRId64 " %7.1f\n", what, bytes,
           100 * (double)bytes / (double)of);
}

static int print_tile(const struct run_model *run, const ipu_memory_info *info)
{
    ipu_tile_info tile = {.size = sizeof tile};
    int64_t of = info->bytes_per_tile;
    int status =
        ipu_executable_tile(run->executable, info->fullest_tile, &tile);

    if (status < 0)
        return status;
    printf("  %-22s %12s %7s\n", "fullest tile", "bytes", "percent");
    print_share("constants", tile.constant_bytes, of);
    print_share("variables", tile.always_live_bytes - tile.constant_bytes, of);
    print_share("activations, streams", tile.tensor_bytes, of);
    print_share("temporary", tile.temporary_bytes, of);
    print_share("exchange code", tile.exchange_code_bytes, of);
    print_share("vertex state", tile.state_bytes, of);
    print_share("vertex code",
                tile.code_bytes - tile.exchange_code_bytes - tile.state_bytes,
                of);
    print_share("sum", tile.peak_bytes, of);
    return IPU_OK;
}

static void print_remedy(const ipu_remedy *remedy)
{
    printf("  %-12s %5d %5s %10" PRId64 " %12" PRId64 " %10.3f\n",
           ipu_remedy_name(remedy->kind), (int)remedy->parts,
           remedy->fits ? "yes" : "no", remedy->tile_bytes,
           remedy->remote_bytes, 1e3 * remedy->seconds);
}

/* Returns why a remedy cannot be taken: the library's text without the name of
 * the remedy, which the row has. */
static const char *reason(ipu_remedy_kind kind)
{
    const char *text = ipu_last_error();
    char prefix[64];
    size_t length;

    snprintf(prefix, sizeof prefix, "remedy: %s: ", ipu_remedy_name(kind));
    length = strlen(prefix);
    return strncmp(text, prefix, length) ? text : text + length;
}

/* A remedy that the program cannot take is a row with the reason. */
static int print_remedies(const struct run_model *run, const ipu_target *target)
{
    const ipu_compile_options options = {
        .size = sizeof options, .target = target, .brief = 1};

    printf("  %-12s %5s %5s %10s %12s %10s\n", "remedy", "parts", "fits",
           "tile bytes", "DRAM bytes", "ms");
    for (ipu_remedy_kind kind = 0; kind < IPU_NUM_REMEDIES; kind++) {
        ipu_remedy remedy = {.size = sizeof remedy};
        int status = ipu_remedy_try(run->graph, &options, kind, 0, &remedy);

        if (status == IPU_ERR_STATE)
            printf("  %-12s %s\n", ipu_remedy_name(kind), reason(kind));
        else if (status < 0)
            return status;
        else
            print_remedy(&remedy);
    }
    return IPU_OK;
}

/* ------------------------------------------------------------ several chips */

static double ms_of(const ipu_target *target, int64_t cycles)
{
    return 1e3 * ipu_model_seconds(target, cycles);
}

/* Prints a row for each chip. Sets the cycles of the slowest, and the bytes of
 * the fullest tile. */
static int print_chips(const struct run_model *run, const ipu_target *target,
                       int32_t chips, int64_t *slowest)
{
    printf("  %3s %6s %14s %10s %7s %10s %14s\n", "IPU", "steps",
           "weight bytes", "tile bytes", "percent", "ms", "bytes received");
    for (int32_t i = 0; i < chips; i++) {
        ipu_shard_info info = {.size = sizeof info};
        int status = ipu_executable_shard(run->executable, i, &info);

        if (status < 0)
            return status;
        printf("  %3d %6d %14" PRId64 " %10" PRId64 " %7.1f %10.3f %14" PRId64
               "\n",
               (int)i, (int)info.steps, info.variable_bytes, info.tile_bytes,
               100 * (double)info.tile_bytes / (double)info.bytes_per_tile,
               ms_of(target, info.cycles), info.received_bytes);
        if (*slowest < info.cycles)
            *slowest = info.cycles;
    }
    return IPU_OK;
}

/* Prints how a training does as a pipeline of as many stages, or why it cannot
 * be one. */
static int print_pipeline(const struct run_model *run, const ipu_target *target,
                          int32_t chips)
{
    const ipu_compile_options options = {
        .size = sizeof options, .target = target, .brief = 1};
    ipu_remedy remedy = {.size = sizeof remedy};
    int status = ipu_remedy_try(run->graph, &options, IPU_REMEDY_PIPELINE,
                                chips, &remedy);

    if (status == IPU_ERR_STATE)
        printf("as a pipeline: %s\n", reason(IPU_REMEDY_PIPELINE));
    else if (status >= 0)
        printf(
            "as a pipeline of %d stages it %s: %" PRId64
            " bytes on the fullest tile, %.3f ms for the batch in %d parts\n",
            (int)chips, remedy.fits ? "fits" : "does not fit",
            remedy.tile_bytes, 1e3 * remedy.seconds, 2 * (int)chips);
    return status == IPU_ERR_STATE ? IPU_OK : status;
}

static int print_chips_fit(const struct run_model *run,
                           const ipu_target *target, int32_t chips, int *fits)
{
    ipu_remedy whole = {.size = sizeof whole};
    ipu_sharding_info sharding = {.size = sizeof sharding};
    int64_t most = 0, slowest = 0;
    int status;

    for (int32_t i = 0; i < chips; i++) {
        ipu_shard_info info = {.size = sizeof info};

        status = ipu_executable_shard(run->executable, i, &info);
        if (status < 0)
            return status;
        if (most < info.tile_bytes)
            most = info.tile_bytes;
        whole.bytes_per_tile = info.bytes_per_tile;
    }
    *fits = most <= whole.bytes_per_tile;
    printf("%s on %d IPUs of %s: %" PRId64 " of %" PRId64
           " bytes on the fullest tile\n",
           *fits ? "fits" : "does not fit", (int)chips, target->name, most,
           whole.bytes_per_tile);
    status = ipu_executable_sharding(run->executable, NULL, &sharding);
    if (status < 0)
        return status;
    printf("a batch takes %" PRId64 " cycles, %.3f ms, of which %.3f between "
           "IPUs\n",
           sharding.total_cycles, 1e3 * sharding.seconds,
           ms_of(target, sharding.exchange_cycles));
    printf(*fits ? "layers are divided so that the slowest IPU is as fast as "
                   "can be\n"
                 : "layers are divided by bytes, for no division fits\n");
    status = print_chips(run, target, chips, &slowest);
    if (status < 0)
        return status;
    if (run->trains)
        status = print_pipeline(run, target, chips);
    else
        printf("as a pipeline, a batch leaves every %.3f ms\n",
               ms_of(target, slowest));
    return status;
}

int run_print_fit(const struct run_model *run, const ipu_target *target,
                  int *fits)
{
    ipu_memory_info info = {.size = sizeof info};
    ipu_program_cycles cycles = {.size = sizeof cycles};
    int32_t chips = ipu_executable_shards(run->executable);
    int status = ipu_executable_memory(run->executable, &info);

    if (status >= 0 && chips > 1) {
        status = print_chips_fit(run, target, chips, fits);
        return status >= 0 && !*fits ? print_remedies(run, target) : status;
    }
    if (status >= 0)
        status = ipu_executable_cycles(run->executable, &cycles);
    if (status < 0)
        return status;
    *fits = info.fullest_tile_bytes <= info.bytes_per_tile;
    printf("%s on %s: %" PRId64 " of %" PRId64 " bytes on the fullest tile\n",
           *fits ? "fits" : "does not fit", target->name,
           info.fullest_tile_bytes, info.bytes_per_tile);
    printf("a run takes %" PRId64 " cycles, %.3f ms\n", cycles.total,
           1e3 * cycles.seconds);
    status = print_tile(run, &info);
    if (status >= 0 && !*fits)
        status = print_remedies(run, target);
    return status;
}
