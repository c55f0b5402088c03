/* SPDX-License-Identifier: Apache-2.0 */
/* run_test.h - the test folders of ONNX: a model, with inputs and outputs. */
#ifndef MODELS_RUN_TEST_H
#define MODELS_RUN_TEST_H

struct run_tolerance {
    double relative, absolute;
};

/* Runs folders, and prints a line for each, "pass", "refused" or "FAIL", and
 * the sum. Returns the exit status: 1 if one fails, or none passes. */
int run_tests(const char *const *folders, int count,
              const struct run_tolerance *tolerance);

#endif
