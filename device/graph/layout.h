/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - the members of a struct as data. Files keep structs by them
 * (file/members.h), and the compiler compares attributes by them.
 */
#ifndef IPU_GRAPH_LAYOUT_H
#define IPU_GRAPH_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

enum ipu__member_type {
    IPU__BOOL = 1,
    IPU__INT32,
    IPU__INT64, /* also size_t and uint64_t */
    IPU__REAL,
    IPU__INDEX /* an int32_t, -1: none; files have index + 1 */
};

struct ipu__layout_member {
    uint8_t number; /* ascending, from 1 */
    uint8_t type;
    uint32_t offset, bytes;
    const char *name;
};

struct ipu__layout {
    const char *name; /* name for messages: "a step" */
    const struct ipu__layout_member *members;
    int32_t nmembers;
    size_t bytes; /* size of the whole struct */
};

/* Defines a layout of the struct IPU__STRUCT, which the including file defines.
 */
#define IPU__MEMBER(number, type, name)                                        \
    {                                                                          \
        number, type, offsetof(IPU__STRUCT, name),                             \
            sizeof(((IPU__STRUCT *)0)->name), #name                            \
    }
/* Defines the three members of a shape, numbered from number on. */
#define IPU__SHAPE_MEMBERS(number, name)                                       \
    IPU__MEMBER(number, IPU__INT32, name.dtype),                               \
        IPU__MEMBER((number) + 1, IPU__INT32, name.ndim),                      \
        IPU__MEMBER((number) + 2, IPU__INT64, name.extents)
#define IPU__LAYOUT(symbol, text, of)                                          \
    const struct ipu__layout symbol = {text, of, sizeof of / sizeof *of,       \
                                       sizeof(IPU__STRUCT)}

/* The attributes of a node, except fn and context, which files cannot keep. */
extern const struct ipu__layout ipu__attributes_layout;

#endif
