/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_target.h - the hardware to compile for: chips, systems of several chips,
 * and the configuration that chooses among them. ipu.h includes it.
 *
 * A target describes one chip; the model derives all cycles from it. Bytes per
 * second are decimal, and count one direction.
 *
 * Errors and threads are as in ipu.h: functions return a negative status, and
 * ipu_last_error() returns its text. None of these functions blocks for long;
 * several threads may call them at once for different objects.
 */
#ifndef IPU_TARGET_H
#define IPU_TARGET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------- a chip */

/* Fill it with ipu_target_init, _find or _load; then change the fields that
 * differ. The JSON file uses the same names. The numbers are those of a Mk2. */
typedef struct ipu_target {
    uint32_t size;          /* sizeof(ipu_target) */
    int32_t tiles;          /* 1472 */
    int64_t bytes_per_tile; /* 624 KiB */
    double clock_hz;        /* 1.325e9 */
    char name[32];          /* "mk2" */

    /* A tile has several hardware contexts. Each of them issues one bundle of
     * instructions every `workers` cycles, whether the others work or not. */
    int32_t workers;        /* contexts of a tile: 6 */
    int32_t load_bytes;     /* bytes that one bundle can load: 16 */
    int32_t store_bytes;    /* bytes that it can store at the same time: 8 */
    int32_t vector_bytes;   /* width of one access and of arithmetic: 8 */
    int32_t macs_float16;   /* multiply-accumulates a cycle: 64 */
    int32_t macs_float32;   /* multiply-accumulates a cycle: 16 */
    int32_t memory_element; /* bytes of memory with one port: 32 KiB */

    /* The exchange connects the tiles; islands of tiles stand in columns. */
    int32_t columns;                 /* 16 */
    int32_t tiles_per_island;        /* 4 */
    double exchange_bytes_per_cycle; /* received by one tile: 4 */
    int32_t exchange_setup_cycles;   /* cycles to start an exchange */
    int32_t column_cycles;           /* latency from column to column */
    int32_t island_cycles;           /* latency between islands of a column */
    int32_t sync_cycles;             /* cycles to synchronise all tiles */

    /* Links connect the chip to other chips, the host and its DRAM. */
    int32_t links;                     /* number of IPU-Links */
    double link_bytes_per_second;      /* raw bandwidth of each link */
    double link_efficiency;            /* fraction left after headers */
    double hop_seconds;                /* latency to the next chip in a sync */
    double host_bytes_per_second;      /* bandwidth of PCI Express */
    double host_latency_seconds;       /* time until the first byte arrives */
    double streaming_bytes_per_second; /* bandwidth of DRAM; 0: no DRAM */

    int32_t io_tiles; /* tiles that only serve streams, not counted in tiles */

    /* A product without room for all of its inputs is cut into slices of the
     * dimension that is summed (0), or into slices of its output only (1), as
     * compilers for the Mk1 did. */
    int32_t output_slices;
    int32_t half_sums; /* products of float16 keep sums in float32 (0), or in
                          float16 (1), like partialsType half */
    double watts;      /* power of the chip; 0: not known */
} ipu_target;

/* Describes a Mk2 (GC200). size is sizeof(ipu_target) as the caller knows it;
 * what goes beyond this version's struct is filled with zeros. */
void ipu_target_init(ipu_target *target, size_t size);

/* Describes a chip by name: "mk1" (GC2), "mk2" (GC200), "bow", or the names of
 * the IPU Model, "ipu1", "ipu2", "ipu21"; or "c600", a card with a Mk2 on PCI
 * Express. The text of IPU_ERR_NAME lists them. target->size must be set. */
int ipu_target_find(const char *name, ipu_target *target);

/*
 * Reads a chip from a JSON file: one object, whose "based_on" names the chip
 * that it starts from (mk2), and whose other members are fields of ipu_target.
 * The text of IPU_ERR_DATA names the file, and the line or the field.
 * target->size must be set; *target is changed only on success.
 */
int ipu_target_load(const char *path, ipu_target *target);

/* Checks every field. The text of IPU_ERR_ARGUMENT names the field that is out
 * of range, and the range. */
int ipu_target_check(const ipu_target *target);

/* Peak rates of a whole chip, derived from its target. */
typedef struct ipu_target_peaks {
    uint32_t size; /* sizeof(ipu_target_peaks), set by the caller */
    int32_t threads;
    int64_t memory_bytes;
    double read_bytes_per_second;     /* local loads */
    double memory_bytes_per_second;   /* local loads and stores */
    double exchange_bytes_per_second; /* received by all tiles */
    double flops_float16;             /* a multiply-accumulate is two flops */
    double flops_float32;
    double link_bytes_per_second; /* all links, both directions */
} ipu_target_peaks;

int ipu_target_get_peaks(const ipu_target *target, ipu_target_peaks *peaks);

/* --------------------------------------------------------- several chips */

/*
 * Chips form pairs, and pairs form a ladder: links connect each chip to the
 * other one of its pair and to the chips above and below it. The gateways of
 * the boards connect racks, each of which is such a ladder.
 */
typedef struct ipu_system {
    uint32_t size; /* sizeof(ipu_system), set by the caller */
    char name[32];
    ipu_target ipu;
    int32_t ipus;
    int32_t ipus_per_board; /* 2 on a C2 card, 4 in an IPU-Machine */
    int32_t links_in_pair;  /* links between the two chips of a pair */
    int32_t links_to_next;  /* links from a chip to the one above */
    double host_share;      /* fraction of the host bandwidth that is reached */
    double gateway_bytes_per_second;   /* per board, to other racks; 0: none */
    int64_t streaming_bytes_per_board; /* DRAM */
    double watts_per_board;            /* 0: not known */
    int32_t ipus_per_rack;             /* length of a ladder; 0: one ladder */
    int32_t reserved;
} ipu_system;

/* Describes a system by name: "C2"; "M2000", "Pod16", "Pod64", "Pod128",
 * "Pod256"; "Bow-2000", "Bow-Pod16", "Bow-Pod64", "Bow-Pod128", "Bow-Pod256";
 * or "model" (one Mk2, no board). system->size must be set. */
int ipu_system_find(const char *name, ipu_system *system);

/* Returns the bandwidth from one chip to another, in one direction, when
 * nothing else moves, and the number of hops. Either output may be NULL. */
int ipu_system_path(const ipu_system *system, int32_t from, int32_t to,
                    double *bytes_per_second, int32_t *hops);

/* Peak rates of a whole system. */
typedef struct ipu_system_peaks {
    uint32_t size; /* sizeof(ipu_system_peaks), set by the caller */
    int64_t memory_bytes;
    int32_t tiles;
    double flops_float16;
    double flops_float32;
    double pair_bytes_per_second;   /* within a pair, both directions */
    double next_bytes_per_second;   /* from pair to pair, both directions */
    double board_bytes_per_second;  /* leaving a board: IPU-Links, gateway */
    double fabric_bytes_per_second; /* the same and links within the board */
    int64_t streaming_bytes;
} ipu_system_peaks;

int ipu_system_get_peaks(const ipu_system *system, ipu_system_peaks *peaks);

/* --------------------------------------------------------- configuration */

/*
 * A configuration holds attributes by their dotted names, as Graphcore's
 * IPUConfig does. These have a meaning here:
 *
 *   system ("M2000")            the system to choose from; "model": one chip
 *   auto_select_ipus ([])       the number of IPUs of each device, one number
 *                               or several
 *   select_ipus ([])            or the devices themselves, by id: ids count
 *                               first the chips, then the pairs, fours, ...
 *   selection_order ("AUTO")    ZIGZAG, SNAKE, HOOF
 *   device_connection.type ("ALWAYS"), .version ("")
 *   matmuls.poplar_options.availableMemoryProportion (0.6),
 *   convolutions.poplar_options.availableMemoryProportion (0.6)
 *                               ipu_config_compile_options passes them on
 *   io_tiles.num_io_tiles (0), .place_ops_on_io_tiles (false),
 *           .available_memory_proportion (0.9)
 *   ipu_model.version ("ipu2"), .tiles_per_ipu (0: those of the version)
 *   norms.experimental.distributed_batch_norm_replica_group_size (1)
 *   experimental.multi_replica_distribution.process_index (0),
 *           .process_count (0: not distributed)
 */
typedef struct ipu_config ipu_config;

int ipu_config_new(ipu_config **config);
void ipu_config_free(ipu_config *config); /* NULL is accepted */

/* Sets an attribute. value is JSON; a word needs no quotes. Returns
 * IPU_ERR_NAME for an attribute that does not exist (the text has the nearest
 * that does) or has no meaning here (the text says why), and IPU_ERR_ARGUMENT
 * for a value of the wrong type. */
int ipu_config_set(ipu_config *config, const char *attribute,
                   const char *value);

/* Sets auto_select_ipus for one device. */
int ipu_config_auto_select(ipu_config *config, int32_t ipus);

/* Sets every attribute in a JSON file of nested objects or dotted names. */
int ipu_config_load(ipu_config *config, const char *path);

/* Prints all attributes as sorted JSON. Writes at most size bytes with the NUL,
 * returns the length that the text needs. */
int64_t ipu_config_print(const ipu_config *config, char *text, int64_t size);

enum { IPU_MAX_IPUS = 256 };

/* One or several chips that run a program together. */
typedef struct ipu_device {
    int32_t id;    /* the id that select_ipus takes */
    int32_t count; /* number of chips */
    int32_t ipus[IPU_MAX_IPUS];
} ipu_device;

/*
 * Checks the configuration as a whole and chooses the devices, of which it
 * writes at most capacity. *system (size must be set) receives the configured
 * chips. Returns the number of devices, IPU_ERR_ARGUMENT for attributes that
 * contradict each other, IPU_ERR_STATE if there are not enough chips. Nothing
 * is written on failure.
 */
int ipu_config_apply(const ipu_config *config, ipu_system *system,
                     ipu_device *devices, int32_t capacity);

/* Copies the configuration's availableMemoryProportion of matmuls and of
 * convolutions to options, whose size must be set; all other options stay.
 * Returns IPU_ERR_ARGUMENT for one that is not within 0 and 1. */
struct ipu_compile_options; /* ipu_compile.h */
int ipu_config_compile_options(const ipu_config *config,
                               struct ipu_compile_options *options);

#ifdef __cplusplus
}
#endif

#endif
