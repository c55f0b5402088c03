/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile.c - ipu_compile: checks the arguments, compiles, and refuses a
 * program that does not fit (fit.c), unless it is to be made all the same.
 */
#include "advice/remedy.h"
#include "base/error.h"
#include "compiler/compiler.h"
#include "target/plans.h"

/* Compiles, and lists remedies if the program does not fit. plans: those of the
 * first compilation serve the ones that advice needs. */
static int compile_to_fit(const ipu_graph *graph,
                          const ipu_compile_options *options,
                          struct ipu__plans *plans, ipu_executable **executable)
{
    const struct ipu__setting setting = {.plans = plans};
    ipu_executable *e = NULL;
    int status = ipu__compile(graph, options, &setting, &e);

    if (status >= 0 && !options->allow_out_of_memory)
        status = ipu__check_fit(e, graph, options, plans);
    if (status < 0) {
        ipu_executable_free(e);
        return status;
    }
    *executable = e;
    return IPU_OK;
}

int ipu_compile_with(const ipu_graph *graph, const ipu_compile_options *options,
                     ipu_executable **executable)
{
    struct ipu__plans *plans;
    int status;

    if (!graph || !options || !executable)
        return ipu__fail(IPU_ERR_ARGUMENT, "compile: %s is NULL",
                         !graph     ? "the graph"
                         : !options ? "options"
                                    : "the place for an executable");
    IPU_TRY(ipu__check_compile_options(options));
    IPU_TRY(ipu__kernels_check());
    if (options->target)
        IPU_TRY(ipu_target_check(options->target));
    plans = ipu__plans_new();
    if (!plans)
        return ipu__fail_memory(1);
    status = compile_to_fit(graph, options, plans, executable);
    ipu__plans_free(plans);
    return status;
}

int ipu_compile(const ipu_graph *graph, const ipu_target *target,
                ipu_executable **executable)
{
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = target};

    return ipu_compile_with(graph, &options, executable);
}
