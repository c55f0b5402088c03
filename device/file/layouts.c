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

/* ------------------------------------------------------------------- graphs */

#define IPU__STRUCT struct ipu__tensor
static const struct ipu__layout_member tensor[] = {
    IPU__SHAPE_MEMBERS(1, shape),
    IPU__MEMBER(4, IPU__INT32, kind),
    IPU__MEMBER(5, IPU__INT32, source.line),
    IPU__MEMBER(6, IPU__BOOL, checkpoint),
    IPU__MEMBER(7, IPU__INT32, map.first),
    IPU__MEMBER(8, IPU__INT32, map.tiles),
    IPU__MEMBER(9, IPU__INT32, shard),
    IPU__MEMBER(10, IPU__INT32, offload),
    IPU__MEMBER(11, IPU__BOOL, remote),
    IPU__MEMBER(12, IPU__INDEX, renews),
    IPU__MEMBER(13, IPU__INT32, own),
};
IPU__LAYOUT(ipu__tensor_layout, "a tensor", tensor);
#undef IPU__STRUCT

#define IPU__STRUCT struct ipu__node
static const struct ipu__layout_member node[] = {
    IPU__MEMBER(1, IPU__INT32, inputs), IPU__MEMBER(2, IPU__INT32, output),
    IPU__MEMBER(3, IPU__INDEX, region), IPU__MEMBER(4, IPU__INDEX, derived),
    IPU__MEMBER(5, IPU__INDEX, after),  IPU__MEMBER(6, IPU__BOOL, again),
    IPU__MEMBER(7, IPU__INDEX, beside), IPU__MEMBER(8, IPU__INDEX, loop),
};
IPU__LAYOUT(ipu__node_layout, "a node", node);
#undef IPU__STRUCT

#define IPU__STRUCT struct ipu__sink
static const struct ipu__layout_member sink[] = {
    IPU__MEMBER(1, IPU__INT32, tensor),
};
IPU__LAYOUT(ipu__sink_layout, "an output", sink);
#undef IPU__STRUCT

#define IPU__STRUCT struct ipu__assign
static const struct ipu__layout_member assign[] = {
    IPU__MEMBER(1, IPU__INT32, variable),
    IPU__MEMBER(2, IPU__INT32, value),
};
IPU__LAYOUT(ipu__assign_layout, "an assignment", assign);
#undef IPU__STRUCT

#define IPU__STRUCT struct ipu__region
static const struct ipu__layout_member region[] = {
    IPU__MEMBER(1, IPU__INT32, count),
    IPU__MEMBER(2, IPU__INT32, counter),
    IPU__MEMBER(3, IPU__INT32, due),
    IPU__MEMBER(4, IPU__INT32, offload),
    IPU__MEMBER(5, IPU__INT64, minimum_bytes),
    IPU__MEMBER(6, IPU__INDEX, within),
    IPU__MEMBER(7, IPU__BOOL, conditional),
};
IPU__LAYOUT(ipu__region_layout, "an update region", region);
#undef IPU__STRUCT

#define IPU__STRUCT ipu_feed_tensor
static const struct ipu__layout_member feed_tensor[] = {
    IPU__MEMBER(1, IPU__INT32, dtype),
    IPU__MEMBER(2, IPU__INT32, ndim),
    IPU__MEMBER(3, IPU__INT64, shape),
};
IPU__LAYOUT(ipu__feed_tensor_layout, "a queue's tensor", feed_tensor);
#undef IPU__STRUCT

/* -------------------------------------------------------------- executables */

#define IPU__STRUCT ipu_target
static const struct ipu__layout_member target[] = {
    IPU__MEMBER(1, IPU__INT32, tiles),
    IPU__MEMBER(2, IPU__INT64, bytes_per_tile),
    IPU__MEMBER(3, IPU__REAL, clock_hz),
    IPU__MEMBER(4, IPU__INT32, workers),
    IPU__MEMBER(5, IPU__INT32, load_bytes),
    IPU__MEMBER(6, IPU__INT32, store_bytes),
    IPU__MEMBER(7, IPU__INT32, vector_bytes),
    IPU__MEMBER(8, IPU__INT32, macs_float16),
    IPU__MEMBER(9, IPU__INT32, macs_float32),
    IPU__MEMBER(10, IPU__INT32, memory_element),
    IPU__MEMBER(11, IPU__INT32, columns),
    IPU__MEMBER(12, IPU__INT32, tiles_per_island),
    IPU__MEMBER(13, IPU__REAL, exchange_bytes_per_cycle),
    IPU__MEMBER(14, IPU__INT32, exchange_setup_cycles),
    IPU__MEMBER(15, IPU__INT32, column_cycles),
    IPU__MEMBER(16, IPU__INT32, island_cycles),
    IPU__MEMBER(17, IPU__INT32, sync_cycles),
    IPU__MEMBER(18, IPU__INT32, links),
    IPU__MEMBER(19, IPU__REAL, link_bytes_per_second),
    IPU__MEMBER(20, IPU__REAL, link_efficiency),
    IPU__MEMBER(21, IPU__REAL, hop_seconds),
    IPU__MEMBER(22, IPU__REAL, host_bytes_per_second),
    IPU__MEMBER(23, IPU__REAL, host_latency_seconds),
    IPU__MEMBER(24, IPU__REAL, streaming_bytes_per_second),
    IPU__MEMBER(25, IPU__INT32, io_tiles),
    IPU__MEMBER(26, IPU__REAL, watts),
    IPU__MEMBER(27, IPU__INT32, output_slices),
    IPU__MEMBER(28, IPU__INT32, half_sums),
};
IPU__LAYOUT(ipu__target_layout, "a target", target);
#undef IPU__STRUCT

#define IPU__STRUCT struct ipu_executable
static const struct ipu__layout_member executable[] = {
    IPU__MEMBER(1, IPU__INT64, code_bytes),
    IPU__MEMBER(2, IPU__INT64, stream_cycles),
    IPU__MEMBER(3, IPU__INT64, memory_bytes),
    IPU__MEMBER(4, IPU__INT32, info.steps),
    IPU__MEMBER(5, IPU__INT64, info.always_live_bytes),
    IPU__MEMBER(6, IPU__INT64, info.peak_bytes),
    IPU__MEMBER(7, IPU__INT64, info.planned_bytes),
    IPU__MEMBER(8, IPU__INT64, info.unshared_bytes),
    IPU__MEMBER(9, IPU__INT64, info.bytes_on_fullest_tile),
    IPU__MEMBER(10, IPU__INT64, info.code_bytes_per_tile),
    IPU__MEMBER(11, IPU__INT64, info.bytes_per_tile),
    IPU__MEMBER(12, IPU__INT64, info.fullest_tile_bytes),
    IPU__MEMBER(13, IPU__INT32, info.fullest_tile),
    IPU__MEMBER(14, IPU__INT32, info.fullest_step),
    IPU__MEMBER(15, IPU__INT64, info.remote_bytes),
    IPU__MEMBER(16, IPU__INT64, exchange_code_bytes),
    IPU__MEMBER(17, IPU__INT64, state_bytes),
    IPU__MEMBER(18, IPU__INT64, info.shared_code_bytes),
    IPU__MEMBER(19, IPU__INT64, info.automatic_bytes),
    IPU__MEMBER(20, IPU__INT64, info.tile_bytes_without),
    IPU__MEMBER(21, IPU__REAL, proportions),
};
IPU__LAYOUT(ipu__executable_layout, "a program", executable);
#undef IPU__STRUCT

#define IPU__STRUCT struct ipu__value
static const struct ipu__layout_member value[] = {
    IPU__SHAPE_MEMBERS(1, shape),
    IPU__MEMBER(4, IPU__INT32, kind),
    IPU__MEMBER(5, IPU__INT32, line),
    IPU__MEMBER(6, IPU__INT32, birth),
    IPU__MEMBER(7, IPU__INT32, death),
    IPU__MEMBER(8, IPU__INT32, block),
    IPU__MEMBER(9, IPU__BOOL, opens),
    IPU__MEMBER(10, IPU__BOOL, renewed),
    IPU__MEMBER(11, IPU__BOOL, remote),
    IPU__MEMBER(12, IPU__BOOL, inner),
    IPU__MEMBER(13, IPU__INT32, buffer),
    IPU__MEMBER(14, IPU__INT32, map.first),
    IPU__MEMBER(15, IPU__INT32, map.tiles),
    IPU__MEMBER(16, IPU__INT32, shard),
    IPU__MEMBER(17, IPU__BOOL, rows),
    IPU__MEMBER(18, IPU__BOOL, bound),
    IPU__MEMBER(19, IPU__BOOL, shared),
    IPU__MEMBER(20, IPU__INT32, own),
};
IPU__LAYOUT(ipu__value_layout, "a value", value);
#undef IPU__STRUCT

#define IPU__STRUCT struct ipu__block
static const struct ipu__layout_member block[] = {
    IPU__MEMBER(1, IPU__INT64, bytes),  IPU__MEMBER(2, IPU__INT32, birth),
    IPU__MEMBER(3, IPU__INT32, death),  IPU__MEMBER(4, IPU__BOOL, always),
    IPU__MEMBER(5, IPU__INT64, offset), IPU__MEMBER(6, IPU__INT32, first_tile),
    IPU__MEMBER(7, IPU__BOOL, remote),  IPU__MEMBER(8, IPU__BOOL, constant),
    IPU__MEMBER(9, IPU__INT32, tiles),
};
IPU__LAYOUT(ipu__block_layout, "a block", block);
#undef IPU__STRUCT

#define IPU__STRUCT struct ipu__step
static const struct ipu__layout_member step[] = {
    IPU__MEMBER(1, IPU__INT32, kind),
    IPU__MEMBER(2, IPU__INT32, inputs),
    IPU__MEMBER(3, IPU__INT32, output),
    IPU__MEMBER(4, IPU__INT32, stream),
    IPU__MEMBER(5, IPU__INT64, cycles.compute),
    IPU__MEMBER(6, IPU__INT64, cycles.exchange),
    IPU__MEMBER(7, IPU__INT64, cycles.sync),
    IPU__MEMBER(8, IPU__INT64, cycles.total),
    IPU__MEMBER(9, IPU__INT64, cycles.exchange_bytes),
    IPU__MEMBER(10, IPU__INT64, cycles.temporary_bytes),
    IPU__MEMBER(11, IPU__INT64, cycles.code_bytes),
    IPU__MEMBER(12, IPU__INT64, cycles.exchange_code_bytes),
    IPU__MEMBER(13, IPU__REAL, cycles.flops),
    IPU__MEMBER(14, IPU__INT64, busy_tiles),
    IPU__MEMBER(15, IPU__INT32, fullest_tile),
    IPU__MEMBER(16, IPU__INT64, tile_bytes),
    IPU__MEMBER(17, IPU__INDEX, gate),
    IPU__MEMBER(18, IPU__INT32, count),
    IPU__MEMBER(19, IPU__BOOL, again),
    IPU__MEMBER(20, IPU__INT32, first_part),
    IPU__MEMBER(21, IPU__INT32, nparts),
    IPU__MEMBER(22, IPU__INT64, elements),
    IPU__MEMBER(23, IPU__INT64, block),
    IPU__MEMBER(24, IPU__INT32, nbuffers),
    IPU__MEMBER(25, IPU__INT64, messages),
    IPU__MEMBER(26, IPU__INT64, fetch_bytes),
    IPU__MEMBER(27, IPU__INT64, full_bytes),
    IPU__MEMBER(28, IPU__INT64, cycles.partial_bytes),
    IPU__MEMBER(29, IPU__INT64, give_bytes),
    IPU__MEMBER(30, IPU__INT32, loop),
    IPU__MEMBER(31, IPU__INDEX, body),
    IPU__MEMBER(32, IPU__INT32, calls),
    IPU__MEMBER(33, IPU__INT32, copies),
    IPU__MEMBER(34, IPU__INT64, copied_bytes),
    IPU__MEMBER(35, IPU__INT64, held_bytes),
    IPU__MEMBER(36, IPU__INT64, cycles.waiting),
    IPU__MEMBER(37, IPU__REAL, proportion),
};
IPU__LAYOUT(ipu__step_layout, "a step", step);
#undef IPU__STRUCT

#define IPU__STRUCT struct ipu__step_op
static const struct ipu__layout_member part[] = {
    IPU__MEMBER(1, IPU__INT32, inputs),
    IPU__MEMBER(2, IPU__INT32, output),
};
IPU__LAYOUT(ipu__part_layout, "a part of a step", part);
#undef IPU__STRUCT

#define IPU__STRUCT struct ipu__stream
static const struct ipu__layout_member stream[] = {
    IPU__MEMBER(1, IPU__INT32, value), IPU__MEMBER(2, IPU__INT64, bytes),
    IPU__MEMBER(3, IPU__INT32, kind),  IPU__MEMBER(4, IPU__INT64, cycles),
    IPU__MEMBER(5, IPU__INDEX, gate),
};
IPU__LAYOUT(ipu__stream_layout, "a stream", stream);
#undef IPU__STRUCT

#define IPU__STRUCT struct ipu__tile
static const struct ipu__layout_member tile[] = {
    IPU__MEMBER(1, IPU__INT64, always_bytes),
    IPU__MEMBER(2, IPU__INT64, peak_bytes),
    IPU__MEMBER(3, IPU__INT32, peak_step),
    IPU__MEMBER(4, IPU__INT64, constant_bytes),
    IPU__MEMBER(5, IPU__INT64, fetch_bytes),
    IPU__MEMBER(6, IPU__INT64, partial_bytes),
    IPU__MEMBER(7, IPU__INT64, temporary_bytes),
};
IPU__LAYOUT(ipu__tile_layout, "a tile", tile);
#undef IPU__STRUCT
