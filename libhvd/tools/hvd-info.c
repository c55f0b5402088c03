/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd-info - prints what this build of libhvd is, what machine it finds, and
 * the values of its variables, or how a TF_CONFIG is read. It starts neither
 * MPI nor the library, but for --topology.
 */
#include <argp.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster.h"
#include "core/settings/settings.h"
#include "hvd.h"
#include "kernels/kernels.h"
#include "topology.h"
#include "transport/transport.h"

static bool check_build, shows_topology, shows_cluster;
static struct topology_options topology;
static const char *cluster_file; /* NULL: TF_CONFIG */

static error_t parse(int key, char *argument, struct argp_state *state)
{
    bool is_alone = !shows_topology;

    if (key == 'b')
        check_build = true;
    else if (key == 't')
        shows_topology = true;
    else if (key == 'C')
        shows_cluster = true;
    else if (key == 'm')
        topology.measures = true;
    else if (key == 'c')
        topology.is_csv = true;
    else if (key == 'o')
        topology.output = argument;
    else if (key == ARGP_KEY_END && is_alone &&
             (topology.measures || topology.is_csv || topology.output))
        argp_error(state, "--measure, --csv and --output are for --topology");
    else if (key == ARGP_KEY_ARG && shows_cluster && !cluster_file)
        cluster_file = argument;
    else if (key == ARGP_KEY_ARG)
        argp_error(state, shows_cluster
                              ? "--cluster takes one file"
                              : "there are no arguments, only options");
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

/* ------------------------------------------------------------------ machine */

static void print_cpu(void)
{
    char line[256], name[200] = "unknown";
    FILE *file = fopen("/proc/cpuinfo", "re");

    while (file && fgets(line, sizeof line, file)) {
        char *colon = strstr(line, ": ");

        if (strncmp(line, "model name", 10) == 0 && colon) {
            snprintf(name, sizeof name, "%s", colon + 2);
            name[strcspn(name, "\n")] = '\0';
            break;
        }
    }
    if (file)
        fclose(file);
    printf("  cpu          %s\n", name);
}

/* Returns the quota of this process's control group, in cores; 0: none. */
static double quota(void)
{
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
    double most, period, cores = 0;

    if (file && fscanf(file, "%lf %lf", &most, &period) == 2 && period > 0)
        cores = most / period;
    if (file)
        fclose(file);
    return cores;
}

static void print_kernels(void)
{
    const char *offered;

    printf("  kernels      %s, of", hvd__kernels_name());
    for (int i = 0; (offered = hvd__kernels_offered(i)); i++)
        printf("%s %s", i ? "," : "", offered);
    puts("");
}

static void print_machine(void)
{
    cpu_set_t cpus;
    char host[80] = "";
    double cores = quota();

    gethostname(host, sizeof host - 1);
    printf("Machine:\n  host         %s\n", host);
    print_cpu();
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
        printf("  cores        %d of %ld may be used\n", CPU_COUNT(&cpus),
               sysconf(_SC_NPROCESSORS_ONLN));
    if (cores > 0)
        printf("  quota        %.2f cores\n", cores);
    printf("  memory       %ld MiB\n",
           sysconf(_SC_PHYS_PAGES) / 1024 * (sysconf(_SC_PAGESIZE) / 1024));
    print_kernels();
}

/* -------------------------------------------------------------------- build */

static void print_build(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;

    MPI_Get_library_version(library, &length);
    library[strcspn(library, ",\n")] = '\0';
    printf("Build:\n  hvd          %s\n", hvd_version());
    printf("  compiler     %s\n", __VERSION__);
#ifdef OMPI_MAJOR_VERSION
    printf("  built with   Open MPI %d.%d.%d\n", OMPI_MAJOR_VERSION,
           OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
#endif
    printf("  found        %s\n", library);
    if (hvd__ucx_version())
        printf("  transports   self, mpi, ucx %s\n", hvd__ucx_version());
    else
        printf("  transports   self, mpi; not ucx: %s\n", hvd_last_error());
}

/* Prints the lines of horovodrun's --check-build. */
static void print_boxes(void)
{
    printf("hvd v%s:\n\n"
           "Available Frameworks:\n    [X] C\n    [X] C++\n\n"
           "Available Controllers:\n    [X] MPI\n    [ ] Gloo\n\n"
           "Available Tensor Operations:\n    [ ] NCCL\n    [ ] DDL\n"
           "    [ ] CCL\n    [X] MPI\n    [ ] Gloo\n",
           hvd_version());
}

static void print_setting(void *context, const char *variable,
                          const char *value, const char *origin,
                          const char *meaning)
{
    (void)context;
    printf("  %-24s %-12s %-24s %s\n", variable, *value ? value : "-", origin,
           meaning);
}

/* Returns the exit status. */
static int tell(int status)
{
    if (status < 0)
        fprintf(stderr, "hvd-info: error: %s\n", hvd_last_error());
    return status < 0;
}

int main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"check-build", 'b', NULL, 0,
         "Say what is built in, as horovodrun does", 0},
        {"cluster", 'C', NULL, 0,
         "Tell how TF_CONFIG, or the FILE of such a text, is read: tasks, "
         "ranks, addresses",
         0},
        {"topology", 't', NULL, 0,
         "Start a world, also under mpirun, and tell where its ranks are, what "
         "messages cost and which algorithms are chosen",
         0},
        {"measure", 'm', NULL, 0, "... with costs measured now", 0},
        {"csv", 'c', NULL, 0, "... the algorithms alone, as CSV", 0},
        {"output", 'o', "FILE", 0,
         "... and write the costs to FILE, for HVD_COSTS", 0},
        {0}};
    static const struct argp argp = {
        options,
        parse,
        "[FILE]",
        "Tell what this build of libhvd is, what machine it finds, and what "
        "its environment variables are set to.",
        NULL,
        NULL,
        NULL};
    char version[32], stray[256];
    struct hvd__settings settings;
    int status;

    snprintf(version, sizeof version, "hvd-info %s", hvd_version());
    argp_program_version = version;
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, NULL);
    if (check_build) {
        print_boxes();
        return 0;
    }
    if (shows_cluster)
        return tell(cluster_print(cluster_file));
    if (shows_topology)
        return tell(topology_print(&topology));
    status = hvd__settings_read(&settings);
    print_build();
    print_machine();
    printf("Variables:\n");
    hvd__settings_each(print_setting, NULL);
    if (hvd__settings_stray(stray, sizeof stray))
        fprintf(stderr, "hvd-info: warning: %s\n", stray);
    return tell(status);
}
