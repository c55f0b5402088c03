/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits_shapes.h - the ways to write each digit, as the points its strokes
 * pass through, on a sheet of 100 by 100 with y downward. A point given twice
 * is a corner. Only digits.c includes this file.
 */
#ifndef MODELS_DIGITS_SHAPES_H
#define MODELS_DIGITS_SHAPES_H

#include <stdint.h>

/* Marks in place of x: the pen lifts; the digit is complete. */
enum { SHAPE_LIFT = -1, SHAPE_END = -2 };

struct shape_point {
    int8_t x, y;
};

struct shape_class {
    int count;
    const struct shape_point *variants[4];
};

#define LIFT                                                                   \
    {                                                                          \
        SHAPE_LIFT, 0                                                          \
    }
#define END                                                                    \
    {                                                                          \
        SHAPE_END, 0                                                           \
    }
#define SHAPE static const struct shape_point

/* Points in rows are easier to read than one on each line. */
/* clang-format off */
SHAPE zero_round[] = {
    {52, 4}, {26, 12}, {12, 42}, {18, 80}, {48, 97}, {78, 82}, {88, 46},
    {74, 13}, {52, 4}, END};
SHAPE zero_open[] = {
    {62, 10}, {34, 8}, {14, 36}, {14, 72}, {42, 96}, {76, 84}, {88, 48},
    {76, 16}, {46, 3}, END};
SHAPE zero_narrow[] = {
    {50, 3}, {30, 20}, {25, 55}, {36, 90}, {54, 97}, {70, 78}, {75, 40},
    {64, 10}, {46, 2}, END};

SHAPE one_plain[] = {{52, 3}, {50, 50}, {48, 97}, END};
SHAPE one_flag[] = {{30, 26}, {54, 4}, {54, 4}, {51, 50}, {50, 97}, END};
SHAPE one_foot[] = {
    {30, 24}, {52, 4}, {52, 4}, {51, 95}, LIFT,
    {24, 96}, {78, 95}, END};

SHAPE two_plain[] = {
    {17, 26}, {30, 8}, {55, 3}, {78, 18}, {74, 42}, {48, 70}, {15, 95},
    {15, 95}, {50, 93}, {86, 95}, END};
SHAPE two_loop[] = {
    {18, 22}, {44, 3}, {74, 14}, {72, 40}, {46, 74}, {24, 93}, {14, 84},
    {26, 76}, {52, 90}, {72, 96}, {90, 86}, END};
SHAPE two_wave[] = {
    {22, 14}, {52, 3}, {76, 16}, {68, 44}, {38, 76}, {14, 94}, {34, 88},
    {58, 96}, {88, 90}, END};

SHAPE three_cusp[] = {
    {18, 15}, {44, 3}, {74, 13}, {72, 35}, {44, 47}, {44, 47}, {76, 56},
    {83, 78}, {56, 97}, {17, 87}, END};
SHAPE three_flat[] = {
    {18, 6}, {78, 6}, {78, 6}, {46, 42}, {46, 42}, {78, 52}, {84, 77},
    {56, 97}, {17, 88}, END};
SHAPE three_loop[] = {
    {22, 12}, {52, 3}, {76, 18}, {62, 40}, {44, 50}, {38, 44}, {54, 46},
    {80, 62}, {78, 86}, {48, 97}, {16, 84}, END};

SHAPE four_open[] = {
    {28, 4}, {20, 34}, {18, 58}, {18, 58}, {50, 57}, {86, 54}, LIFT,
    {68, 8}, {66, 50}, {63, 97}, END};
SHAPE four_closed[] = {
    {66, 3}, {40, 34}, {12, 64}, {12, 64}, {50, 64}, {92, 62}, LIFT,
    {66, 3}, {65, 50}, {63, 97}, END};
SHAPE four_round[] = {
    {24, 6}, {22, 38}, {40, 54}, {66, 44}, {76, 8}, {76, 8}, {72, 50},
    {68, 97}, END};

SHAPE five_one[] = {
    {80, 5}, {32, 6}, {32, 6}, {27, 43}, {27, 43}, {56, 37}, {82, 56},
    {76, 85}, {46, 97}, {15, 87}, END};
SHAPE five_two[] = {
    {32, 8}, {27, 44}, {27, 44}, {56, 38}, {80, 58}, {74, 87}, {46, 97},
    {17, 86}, LIFT,
    {31, 8}, {58, 8}, {86, 4}, END};
SHAPE five_wave[] = {
    {82, 8}, {54, 4}, {32, 16}, {30, 38}, {56, 48}, {76, 66}, {66, 90},
    {40, 97}, {16, 86}, END};

SHAPE six_round[] = {
    {70, 5}, {40, 22}, {18, 58}, {26, 90}, {56, 98}, {80, 80}, {70, 57},
    {44, 54}, {20, 74}, END};
SHAPE six_curl[] = {
    {58, 3}, {30, 34}, {18, 72}, {36, 96}, {64, 92}, {74, 72}, {54, 57},
    {30, 66}, {26, 84}, END};
SHAPE six_long[] = {
    {48, 2}, {28, 28}, {20, 62}, {28, 92}, {58, 96}, {74, 78}, {60, 60},
    {34, 64}, {22, 78}, END};

SHAPE seven_plain[] = {
    {14, 9}, {50, 8}, {85, 7}, {85, 7}, {60, 48}, {42, 97}, END};
SHAPE seven_bar[] = {
    {15, 9}, {50, 8}, {84, 7}, {84, 7}, {60, 48}, {40, 97}, LIFT,
    {34, 52}, {78, 48}, END};
SHAPE seven_serif[] = {
    {14, 22}, {17, 8}, {17, 8}, {52, 9}, {84, 5}, {84, 5}, {52, 50},
    {44, 97}, END};

SHAPE eight_one[] = {
    {72, 16}, {50, 3}, {27, 14}, {30, 36}, {54, 49}, {79, 67}, {74, 90},
    {48, 98}, {22, 86}, {26, 64}, {52, 48}, {74, 32}, {72, 16}, END};
SHAPE eight_two[] = {
    {50, 3}, {28, 14}, {29, 36}, {50, 46}, {72, 36}, {72, 14}, {50, 3}, LIFT,
    {50, 46}, {22, 60}, {20, 85}, {50, 97}, {80, 85}, {78, 60}, {50, 46},
    END};
SHAPE eight_open[] = {
    {78, 10}, {50, 4}, {27, 18}, {40, 42}, {66, 58}, {72, 82}, {48, 97},
    {26, 82}, {36, 60}, {64, 38}, {84, 14}, END};

SHAPE nine_straight[] = {
    {76, 20}, {54, 4}, {28, 13}, {22, 37}, {42, 53}, {66, 43}, {77, 18},
    {77, 18}, {73, 58}, {67, 97}, END};
SHAPE nine_curved[] = {
    {76, 22}, {54, 3}, {28, 14}, {24, 38}, {46, 53}, {70, 42}, {77, 20},
    {77, 20}, {76, 62}, {56, 93}, {24, 92}, END};
SHAPE nine_loop[] = {
    {70, 28}, {60, 6}, {36, 8}, {24, 30}, {38, 50}, {62, 42}, {72, 22},
    {70, 54}, {56, 97}, END};
/* clang-format on */

#undef LIFT
#undef END
#undef SHAPE

static const struct shape_class shape_classes[10] = {
    {3, {zero_round, zero_open, zero_narrow}},
    {3, {one_plain, one_flag, one_foot}},
    {3, {two_plain, two_loop, two_wave}},
    {3, {three_cusp, three_flat, three_loop}},
    {3, {four_open, four_closed, four_round}},
    {3, {five_one, five_two, five_wave}},
    {3, {six_round, six_curl, six_long}},
    {3, {seven_plain, seven_bar, seven_serif}},
    {3, {eight_one, eight_two, eight_open}},
    {3, {nine_straight, nine_curved, nine_loop}},
};

#endif
