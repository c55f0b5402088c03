/* SPDX-License-Identifier: Apache-2.0 */
/* The members that attributes have. file/layouts.c says how to add one. */
#include "graph/graph.h"
#include "graph/layout.h"

#define IPU__STRUCT struct ipu__attributes
static const struct ipu__layout_member attributes[] = {
    IPU__MEMBER(1, IPU__INT32, stride),
    IPU__MEMBER(2, IPU__INT32, dilation),
    IPU__MEMBER(3, IPU__INT32, pad),
    IPU__MEMBER(4, IPU__INT32, pad_after),
    IPU__MEMBER(5, IPU__INT32, groups),
    IPU__MEMBER(6, IPU__INT32, size),
    IPU__MEMBER(7, IPU__BOOL, transpose),
    IPU__MEMBER(8, IPU__REAL, scale),
    IPU__MEMBER(9, IPU__REAL, offset),
    IPU__MEMBER(10, IPU__REAL, factors),
    IPU__MEMBER(11, IPU__INT64, seed),
    IPU__MEMBER(12, IPU__INT64, view),
    IPU__MEMBER(13, IPU__INT32, axis),
    IPU__MEMBER(14, IPU__INT32, order),
    IPU__MEMBER(15, IPU__INT64, starts),
    IPU__MEMBER(16, IPU__BOOL, axes),
    IPU__MEMBER(17, IPU__BOOL, keep),
    IPU__SHAPE_MEMBERS(18, shape),
    IPU__MEMBER(21, IPU__REAL, proportion),
};
IPU__LAYOUT(ipu__attributes_layout, "what an op is told", attributes);
#undef IPU__STRUCT
