/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wraps.h - declares functions that stand in for others (ld --wrap). One whose
 * parameters are no longer those of the function it stands in for does not
 * compile.
 */
#ifndef TESTS_SIM_WRAPS_H
#define TESTS_SIM_WRAPS_H

#define SIM_WRAPS(function) __typeof__(function) __wrap_##function

#endif
