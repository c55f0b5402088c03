/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend_gloo_absent.c - stands for backend_gloo.cc where Gloo is not
 * installed.
 */
#include "cluster/backend.h"

bool gloo_backend(int variant, struct backend *backend)
{
    (void)variant;
    (void)backend;
    return false;
}
