/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layouts.c - the members of each struct that files keep. To add a member to
 * one of these structs, add a line here with the next number, and raise the
 * version in container.c if that version has been released; a test compares the
 * sizes.
 *
 * Names, other texts, data, ops and functions are missing here because they are
 * no numbers: graph.c and executable.c write them next to the struct.
 */
#include "compiler/program.h"
#include "file/members.h"

#define MEMBER(number, type, name)                                             \
    {                                                                          \
        number, type, offsetof(STRUCT, name), sizeof(((STRUCT *)0)->name),     \
            #name                                                              \
    }
/* Defines three members of a shape, from that number on. */
#define SHAPE(number, name)                                                    \
    MEMBER(number, IPU__INT32, name.dtype),                                    \
        MEMBER((number) + 1, IPU__INT32, name.ndim),                           \
        MEMBER((number) + 2, IPU__INT64, name.extents)
#define LAYOUT(symbol, text, of)                                               \
    const struct ipu__layout symbol = {text, of, sizeof of / sizeof *of,       \
                                       sizeof(STRUCT)}

/* -------------------------------------------------------------------- graphs
 */

#define STRUCT struct ipu__tensor
static const struct ipu__layout_member tensor[] = {
    SHAPE(1, shape),
    MEMBER(4, IPU__INT32, kind),
    MEMBER(5, IPU__INT32, source.line),
    MEMBER(6, IPU__BOOL, checkpoint),
    MEMBER(7, IPU__INT32, map.first),
    MEMBER(8, IPU__INT32, map.tiles),
    MEMBER(9, IPU__INT32, shard),
    MEMBER(10, IPU__INT32, offload),
    MEMBER(11, IPU__BOOL, remote),
    MEMBER(12, IPU__INT32, renews),
    MEMBER(13, IPU__INT32, own),
};
LAYOUT(ipu__tensor_layout, "a tensor", tensor);
#undef STRUCT

#define STRUCT struct ipu__node
static const struct ipu__layout_member node[] = {
    MEMBER(1, IPU__INT32, inputs), MEMBER(2, IPU__INT32, output),
    MEMBER(3, IPU__INT32, region), MEMBER(4, IPU__INT32, derived),
    MEMBER(5, IPU__INT32, after),  MEMBER(6, IPU__BOOL, again),
    MEMBER(7, IPU__INT32, beside), MEMBER(8, IPU__INT32, loop),
};
LAYOUT(ipu__node_layout, "a node", node);
#undef STRUCT

#define STRUCT struct ipu__attributes
static const struct ipu__layout_member attributes[] = {
    MEMBER(1, IPU__INT32, stride),     MEMBER(2, IPU__INT32, dilation),
    MEMBER(3, IPU__INT32, pad),        MEMBER(4, IPU__INT32, pad_after),
    MEMBER(5, IPU__INT32, groups),     MEMBER(6, IPU__INT32, size),
    MEMBER(7, IPU__BOOL, transpose),   MEMBER(8, IPU__REAL, scale),
    MEMBER(9, IPU__REAL, offset),      MEMBER(10, IPU__REAL, factors),
    MEMBER(11, IPU__INT64, seed),      MEMBER(12, IPU__INT64, view),
    MEMBER(13, IPU__INT32, axis),      MEMBER(14, IPU__INT32, order),
    MEMBER(15, IPU__INT64, starts),    MEMBER(16, IPU__BOOL, axes),
    MEMBER(17, IPU__BOOL, keep),       SHAPE(18, shape),
    MEMBER(21, IPU__REAL, proportion),
};
LAYOUT(ipu__attributes_layout, "what an op is told", attributes);
#undef STRUCT

#define STRUCT struct ipu__sink
static const struct ipu__layout_member sink[] = {
    MEMBER(1, IPU__INT32, tensor),
};
LAYOUT(ipu__sink_layout, "an output", sink);
#undef STRUCT

#define STRUCT struct ipu__assign
static const struct ipu__layout_member assign[] = {
    MEMBER(1, IPU__INT32, variable),
    MEMBER(2, IPU__INT32, value),
};
LAYOUT(ipu__assign_layout, "an assignment", assign);
#undef STRUCT

#define STRUCT struct ipu__region
static const struct ipu__layout_member region[] = {
    MEMBER(1, IPU__INT32, count),         MEMBER(2, IPU__INT32, counter),
    MEMBER(3, IPU__INT32, due),           MEMBER(4, IPU__INT32, offload),
    MEMBER(5, IPU__INT64, minimum_bytes), MEMBER(6, IPU__INT32, within),
    MEMBER(7, IPU__BOOL, conditional),
};
LAYOUT(ipu__region_layout, "an update region", region);
#undef STRUCT

#define STRUCT ipu_feed_tensor
static const struct ipu__layout_member feed_tensor[] = {
    MEMBER(1, IPU__INT32, dtype),
    MEMBER(2, IPU__INT32, ndim),
    MEMBER(3, IPU__INT64, shape),
};
LAYOUT(ipu__feed_tensor_layout, "a queue's tensor", feed_tensor);
#undef STRUCT

/* --------------------------------------------------------------- executables
 */

#define STRUCT ipu_target
static const struct ipu__layout_member target[] = {
    MEMBER(1, IPU__INT32, tiles),
    MEMBER(2, IPU__INT64, bytes_per_tile),
    MEMBER(3, IPU__REAL, clock_hz),
    MEMBER(4, IPU__INT32, workers),
    MEMBER(5, IPU__INT32, load_bytes),
    MEMBER(6, IPU__INT32, store_bytes),
    MEMBER(7, IPU__INT32, vector_bytes),
    MEMBER(8, IPU__INT32, macs_float16),
    MEMBER(9, IPU__INT32, macs_float32),
    MEMBER(10, IPU__INT32, memory_element),
    MEMBER(11, IPU__INT32, columns),
    MEMBER(12, IPU__INT32, tiles_per_island),
    MEMBER(13, IPU__REAL, exchange_bytes_per_cycle),
    MEMBER(14, IPU__INT32, exchange_setup_cycles),
    MEMBER(15, IPU__INT32, column_cycles),
    MEMBER(16, IPU__INT32, island_cycles),
    MEMBER(17, IPU__INT32, sync_cycles),
    MEMBER(18, IPU__INT32, links),
    MEMBER(19, IPU__REAL, link_bytes_per_second),
    MEMBER(20, IPU__REAL, link_efficiency),
    MEMBER(21, IPU__REAL, hop_seconds),
    MEMBER(22, IPU__REAL, host_bytes_per_second),
    MEMBER(23, IPU__REAL, host_latency_seconds),
    MEMBER(24, IPU__REAL, streaming_bytes_per_second),
    MEMBER(25, IPU__INT32, io_tiles),
    MEMBER(26, IPU__REAL, watts),
    MEMBER(27, IPU__INT32, output_slices),
    MEMBER(28, IPU__INT32, half_sums),
};
LAYOUT(ipu__target_layout, "a target", target);
#undef STRUCT

#define STRUCT struct ipu_executable
static const struct ipu__layout_member executable[] = {
    MEMBER(1, IPU__INT64, code_bytes),
    MEMBER(2, IPU__INT64, stream_cycles),
    MEMBER(3, IPU__INT64, memory_bytes),
    MEMBER(4, IPU__INT32, info.steps),
    MEMBER(5, IPU__INT64, info.always_live_bytes),
    MEMBER(6, IPU__INT64, info.peak_bytes),
    MEMBER(7, IPU__INT64, info.planned_bytes),
    MEMBER(8, IPU__INT64, info.unshared_bytes),
    MEMBER(9, IPU__INT64, info.bytes_on_fullest_tile),
    MEMBER(10, IPU__INT64, info.code_bytes_per_tile),
    MEMBER(11, IPU__INT64, info.bytes_per_tile),
    MEMBER(12, IPU__INT64, info.fullest_tile_bytes),
    MEMBER(13, IPU__INT32, info.fullest_tile),
    MEMBER(14, IPU__INT32, info.fullest_step),
    MEMBER(15, IPU__INT64, info.remote_bytes),
    MEMBER(16, IPU__INT64, exchange_code_bytes),
    MEMBER(17, IPU__INT64, state_bytes),
    MEMBER(18, IPU__INT64, info.shared_code_bytes),
    MEMBER(19, IPU__INT64, info.automatic_bytes),
    MEMBER(20, IPU__INT64, info.tile_bytes_without),
    MEMBER(21, IPU__REAL, proportions),
};
LAYOUT(ipu__executable_layout, "a program", executable);
#undef STRUCT

#define STRUCT struct ipu__value
static const struct ipu__layout_member value[] = {
    SHAPE(1, shape),
    MEMBER(4, IPU__INT32, kind),
    MEMBER(5, IPU__INT32, line),
    MEMBER(6, IPU__INT32, birth),
    MEMBER(7, IPU__INT32, death),
    MEMBER(8, IPU__INT32, block),
    MEMBER(9, IPU__BOOL, opens),
    MEMBER(10, IPU__BOOL, renewed),
    MEMBER(11, IPU__BOOL, remote),
    MEMBER(12, IPU__BOOL, inner),
    MEMBER(13, IPU__INT32, buffer),
    MEMBER(14, IPU__INT32, map.first),
    MEMBER(15, IPU__INT32, map.tiles),
    MEMBER(16, IPU__INT32, shard),
    MEMBER(17, IPU__BOOL, rows),
    MEMBER(18, IPU__BOOL, bound),
    MEMBER(19, IPU__BOOL, shared),
    MEMBER(20, IPU__INT32, own),
};
LAYOUT(ipu__value_layout, "a value", value);
#undef STRUCT

#define STRUCT struct ipu__block
static const struct ipu__layout_member block[] = {
    MEMBER(1, IPU__INT64, bytes),  MEMBER(2, IPU__INT32, birth),
    MEMBER(3, IPU__INT32, death),  MEMBER(4, IPU__BOOL, always),
    MEMBER(5, IPU__INT64, offset), MEMBER(6, IPU__INT32, first_tile),
    MEMBER(7, IPU__BOOL, remote),  MEMBER(8, IPU__BOOL, constant),
    MEMBER(9, IPU__INT32, tiles),
};
LAYOUT(ipu__block_layout, "a block", block);
#undef STRUCT

#define STRUCT struct ipu__step
static const struct ipu__layout_member step[] = {
    MEMBER(1, IPU__INT32, kind),
    MEMBER(2, IPU__INT32, inputs),
    MEMBER(3, IPU__INT32, output),
    MEMBER(4, IPU__INT32, stream),
    MEMBER(5, IPU__INT64, cycles.compute),
    MEMBER(6, IPU__INT64, cycles.exchange),
    MEMBER(7, IPU__INT64, cycles.sync),
    MEMBER(8, IPU__INT64, cycles.total),
    MEMBER(9, IPU__INT64, cycles.exchange_bytes),
    MEMBER(10, IPU__INT64, cycles.temporary_bytes),
    MEMBER(11, IPU__INT64, cycles.code_bytes),
    MEMBER(12, IPU__INT64, cycles.exchange_code_bytes),
    MEMBER(13, IPU__REAL, cycles.flops),
    MEMBER(14, IPU__INT64, busy_tiles),
    MEMBER(15, IPU__INT32, fullest_tile),
    MEMBER(16, IPU__INT64, tile_bytes),
    MEMBER(17, IPU__INT32, gate),
    MEMBER(18, IPU__INT32, count),
    MEMBER(19, IPU__BOOL, again),
    MEMBER(20, IPU__INT32, first_part),
    MEMBER(21, IPU__INT32, nparts),
    MEMBER(22, IPU__INT64, elements),
    MEMBER(23, IPU__INT64, block),
    MEMBER(24, IPU__INT32, nbuffers),
    MEMBER(25, IPU__INT64, messages),
    MEMBER(26, IPU__INT64, fetch_bytes),
    MEMBER(27, IPU__INT64, full_bytes),
    MEMBER(28, IPU__INT64, cycles.partial_bytes),
    MEMBER(29, IPU__INT64, give_bytes),
    MEMBER(30, IPU__INT32, loop),
    MEMBER(31, IPU__INT32, body),
    MEMBER(32, IPU__INT32, calls),
    MEMBER(33, IPU__INT32, copies),
    MEMBER(34, IPU__INT64, copied_bytes),
    MEMBER(35, IPU__INT64, held_bytes),
    MEMBER(36, IPU__INT64, cycles.waiting),
    MEMBER(37, IPU__REAL, proportion),
};
LAYOUT(ipu__step_layout, "a step", step);
#undef STRUCT

#define STRUCT struct ipu__step_op
static const struct ipu__layout_member part[] = {
    MEMBER(1, IPU__INT32, inputs),
    MEMBER(2, IPU__INT32, output),
};
LAYOUT(ipu__part_layout, "a part of a step", part);
#undef STRUCT

#define STRUCT struct ipu__stream
static const struct ipu__layout_member stream[] = {
    MEMBER(1, IPU__INT32, value), MEMBER(2, IPU__INT64, bytes),
    MEMBER(3, IPU__INT32, kind),  MEMBER(4, IPU__INT64, cycles),
    MEMBER(5, IPU__INT32, gate),
};
LAYOUT(ipu__stream_layout, "a stream", stream);
#undef STRUCT

#define STRUCT struct ipu__tile
static const struct ipu__layout_member tile[] = {
    MEMBER(1, IPU__INT64, always_bytes),
    MEMBER(2, IPU__INT64, peak_bytes),
    MEMBER(3, IPU__INT32, peak_step),
    MEMBER(4, IPU__INT64, constant_bytes),
    MEMBER(5, IPU__INT64, fetch_bytes),
    MEMBER(6, IPU__INT64, partial_bytes),
    MEMBER(7, IPU__INT64, temporary_bytes),
};
LAYOUT(ipu__tile_layout, "a tile", tile);
#undef STRUCT
