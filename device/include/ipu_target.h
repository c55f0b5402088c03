/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_target.h - what is compiled for: chips, systems of several, and the
 * configuration that chooses among them. ipu.h includes it.
 *
 * A target says what a chip is made of; all that the model tells about cycles
 * follows from that. Bytes per second are decimal, and of one direction.
 *
 * Errors and threads are as in ipu.h: a negative status, whose text
 * ipu_last_error() has. None of these functions blocks for long; all may be
 * called from several threads at once, for different objects.
 */
#ifndef IPU_TARGET_H
#define IPU_TARGET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------- a chip */

/* Fill it with ipu_target_init, _find or _load; then change what differs. The
 * names of the fields are those of the JSON file. */
typedef struct ipu_target {
    uint32_t size;          /* sizeof(ipu_target) */
    int32_t tiles;          /* 1472 */
    int64_t bytes_per_tile; /* 624 KiB */
    double clock_hz;        /* 1.325e9 */
    char name[32];          /* "mk2" */

    /* A tile. Each of its contexts issues one bundle of instructions every
     * workers cycles, whether the others have work or not. */
    int32_t workers;        /* 6 */
    int32_t load_bytes;     /* that one bundle can load: 16 */
    int32_t store_bytes;    /* ... and store beside it: 8 */
    int32_t vector_bytes;   /* of one access and of arithmetic: 8 */
    int32_t macs_float16;   /* multiplications and additions a cycle: 64 */
    int32_t macs_float32;   /* 16 */
    int32_t memory_element; /* bytes of memory with one port: 32 KiB */

    /* Between tiles. Islands of tiles stand in columns on the exchange. */
    int32_t columns;                 /* 16 */
    int32_t tiles_per_island;        /* 4 */
    double exchange_bytes_per_cycle; /* into a tile: 4 */
    int32_t exchange_setup_cycles;   /* to start sending and receiving */
    int32_t column_cycles;           /* from column to column */
    int32_t island_cycles;           /* from island to island of a column */
    int32_t sync_cycles;             /* of all tiles of the chip */

    /* Out of the chip. */
    int32_t links;                     /* IPU-Links */
    double link_bytes_per_second;      /* of each */
    double link_efficiency;            /* what headers leave of that */
    double hop_seconds;                /* from chip to chip, for a sync */
    double host_bytes_per_second;      /* PCI Express */
    double host_latency_seconds;       /* until the first byte is there */
    double streaming_bytes_per_second; /* DRAM beside the chip; 0: none */

    int32_t io_tiles; /* not counted in tiles: they only serve streams */

    /* Products without room for all of their inputs come in slices of what is
     * summed up (0), or of their output only (1), as the compilers of the Mk1's
     * time made them. */
    int32_t output_slices;
    int32_t half_sums; /* products of float16 keep their sums in float32 (0), or
                          in float16 (1), as partialsType half has it */
    double watts;      /* of the chip; 0: not known */
} ipu_target;

/* A Mk2 (GC200). A size larger than this header's is filled with zeros. */
void ipu_target_init(ipu_target *target, size_t size);

/* "mk1" (GC2), "mk2" (GC200), "bow", or the model's "ipu1", "ipu2", "ipu21"; or
 * "c600", a card with a Mk2 on PCI Express.
 * IPU_ERR_NAME lists them. target->size must be set. */
int ipu_target_find(const char *name, ipu_target *target);

/*
 * A chip described by a JSON file: one object, whose "based_on" names the
 * chip that it differs from (mk2), and whose other members are fields of
 * ipu_target. IPU_ERR_DATA names the file, and the line or the field.
 * target->size must be set; it is changed only on success.
 */
int ipu_target_load(const char *path, ipu_target *target);

/* IPU_ERR_ARGUMENT names the field that no chip can have, and its range. */
int ipu_target_check(const ipu_target *target);

/* What follows from a target for the whole chip. */
typedef struct ipu_target_peaks {
    uint32_t size; /* sizeof(ipu_target_peaks), set by the caller */
    int32_t threads;
    int64_t memory_bytes;
    double read_bytes_per_second;     /* local loads */
    double memory_bytes_per_second;   /* local loads and stores */
    double exchange_bytes_per_second; /* into all tiles */
    double flops_float16;             /* multiplications and additions, */
    double flops_float32;             /* ... counted as two */
    double link_bytes_per_second;     /* all links, both directions */
} ipu_target_peaks;

int ipu_target_get_peaks(const ipu_target *target, ipu_target_peaks *peaks);

/* --------------------------------------------------------- several chips */

/*
 * Chips stand in pairs, pairs on a ladder: each is joined to its neighbour in
 * the pair and to the chip above and below it. Racks of such ladders are joined
 * by the gateways of their boards.
 */
typedef struct ipu_system {
    uint32_t size; /* sizeof(ipu_system), set by the caller */
    char name[32];
    ipu_target ipu;
    int32_t ipus;
    int32_t ipus_per_board; /* 2 on a C2 card, 4 in an IPU-Machine */
    int32_t links_in_pair;  /* between the two of a pair */
    int32_t links_to_next;  /* from a chip to the one above */
    double host_share;      /* of the target's host bandwidth that arrives */
    double gateway_bytes_per_second;   /* between racks, of a board; 0: none */
    int64_t streaming_bytes_per_board; /* DRAM */
    double watts_per_board;            /* 0: not known */
    int32_t ipus_per_rack;             /* of a ladder; 0: all are on one */
    int32_t reserved;
} ipu_system;

/* "C2"; "M2000", "Pod16", "Pod64", "Pod128", "Pod256"; "Bow-2000", "Bow-Pod16",
 * "Bow-Pod64", "Bow-Pod128", "Bow-Pod256"; or "model" (one Mk2, no board).
 * system->size must be set. */
int ipu_system_find(const char *name, ipu_system *system);

/* Bytes a second from chip to chip, one direction, when nothing else moves,
 * and how many chips away it is. Either may be NULL. */
int ipu_system_path(const ipu_system *system, int32_t from, int32_t to,
                    double *bytes_per_second, int32_t *hops);

typedef struct ipu_system_peaks {
    uint32_t size; /* sizeof(ipu_system_peaks), set by the caller */
    int64_t memory_bytes;
    int32_t tiles;
    double flops_float16;
    double flops_float32;
    double pair_bytes_per_second;   /* between two of a pair, both ways */
    double next_bytes_per_second;   /* between a pair and the next, both ways */
    double board_bytes_per_second;  /* that leave a board: IPU-Links, gateway */
    double fabric_bytes_per_second; /* of a board: between its chips too */
    int64_t streaming_bytes;
} ipu_system_peaks;

int ipu_system_get_peaks(const ipu_system *system, ipu_system_peaks *peaks);

/* --------------------------------------------------------- configuration */

/*
 * Attributes by their dotted names, as in Graphcore's IPUConfig; those that
 * mean something here:
 *
 *   system ("M2000")            the chips there are; "model": none, simulated
 *   auto_select_ipus ([])       how many IPUs for each device, one number or
 *                               several
 *   select_ipus ([])            or the devices themselves, by id: first the
 *                               chips, then the twos, fours, ...
 *   selection_order ("AUTO")    ZIGZAG, SNAKE, HOOF
 *   device_connection.type ("ALWAYS"), .version ("")
 *   matmuls.poplar_options.availableMemoryProportion (0.6),
 *   convolutions.poplar_options.availableMemoryProportion (0.6)
 *                               by ipu_config_compile_options
 *   io_tiles.num_io_tiles (0), .place_ops_on_io_tiles (false),
 *           .available_memory_proportion (0.9)
 *   ipu_model.version ("ipu2"), .tiles_per_ipu (0: as the version has)
 *   norms.experimental.distributed_batch_norm_replica_group_size (1)
 *   experimental.multi_replica_distribution.process_index (0),
 *           .process_count (0: not distributed)
 */
typedef struct ipu_config ipu_config;

int ipu_config_new(ipu_config **config);
void ipu_config_free(ipu_config *config); /* NULL is accepted */

/* value is JSON; a word needs no quotes. IPU_ERR_NAME for an attribute that
 * does not exist, with the nearest that does, or has no meaning here, with
 * the reason; IPU_ERR_ARGUMENT for a value of the wrong type. */
int ipu_config_set(ipu_config *config, const char *attribute,
                   const char *value);

/* auto_select_ipus of one device. */
int ipu_config_auto_select(ipu_config *config, int32_t ipus);

/* Set what a JSON file has: nested objects or dotted names. */
int ipu_config_load(ipu_config *config, const char *path);

/* All attributes as JSON, sorted. Writes at most size bytes with the NUL,
 * returns the length it needs. */
int64_t ipu_config_print(const ipu_config *config, char *text, int64_t size);

enum { IPU_MAX_IPUS = 256 };

/* One or several chips that run a program together. */
typedef struct ipu_device {
    int32_t id;    /* as select_ipus counts */
    int32_t count; /* chips */
    int32_t ipus[IPU_MAX_IPUS];
} ipu_device;

/*
 * Check the configuration as a whole and choose the devices: at most capacity
 * are written. system gets the chips as configured (size must be set).
 * Returns the number of devices, IPU_ERR_ARGUMENT for what does not go
 * together, IPU_ERR_STATE if there are not enough chips. Nothing is written
 * on failure.
 */
int ipu_config_apply(const ipu_config *config, ipu_system *system,
                     ipu_device *devices, int32_t capacity);

/* What the configuration says of compilations: availableMemoryProportion of
 * matmuls and of convolutions. options->size must be set; the rest of it stays.
 * IPU_ERR_ARGUMENT for one that is not within 0 and 1. */
struct ipu_compile_options; /* ipu_compile.h */
int ipu_config_compile_options(const ipu_config *config,
                               struct ipu_compile_options *options);

#ifdef __cplusplus
}
#endif

#endif
