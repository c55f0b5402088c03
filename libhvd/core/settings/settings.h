/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.h - the environment variables of the library. Parsing, messages,
 * hvd-info and the documentation's table are made from one list. This is the
 * door of the room core/settings, which needs no other room of core.
 */
#ifndef HVD_CORE_SETTINGS_H
#define HVD_CORE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

/* The size of a path or another text. */
enum { HVD__SETTING_TEXT = 512 };

/*
 * X(variable, field, kind, default, fallback, its kind, meaning). fallback is
 * Horovod's name of the variable, which is read if the first is not set; it may
 * use another unit. If there is none, fallback is "" and its kind is the same.
 */
#define HVD__SETTINGS(X)                                                       \
    X("HVD_FUSION_THRESHOLD", fusion_threshold, bytes, "64MB",                 \
      "HOROVOD_FUSION_THRESHOLD", bytes,                                       \
      "most bytes of tensors that are moved together; 0 fuses nothing")        \
    X("HVD_HEARTBEAT_TIME", heartbeat_ns, duration, "10s", "", duration,       \
      "a rank that gives no sign of life for so long is lost; 0: never")       \
    X("HVD_START_TIME", start_ns, duration, "10m", "", duration,               \
      "hvd_init fails if it takes so long, and names whom it misses; 0: it "   \
      "waits for ever")                                                        \
    X("HVD_STALL_CHECK_TIME", stall_check_ns, duration, "60s",                 \
      "HOROVOD_STALL_CHECK_TIME_SECONDS", duration,                            \
      "a request that waits so long for other ranks is reported; 0: never")    \
    X("HVD_STALL_SHUTDOWN_TIME", stall_shutdown_ns, duration, "0",             \
      "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", duration,                         \
      "one that waits so long ends the job; 0: never")                         \
    X("HVD_EXIT_GRACE_TIME", exit_grace_ns, duration, "5s", "", duration,      \
      "a process still there so long after the end is ended; 0: it is left")   \
    X("HVD_ELASTIC", elastic, bool, "0", "", bool,                             \
      "survivors of a loss can go on with hvd_recover")                        \
    X("HVD_ELASTIC_MIN", elastic_min, text, "", "", text,                      \
      "a cluster starts when so many of its ranks are there, and the others "  \
      "join later; as many as there are if it is not set")                     \
    X("HVD_SPARES", spares, text, "0", "", text,                               \
      "so many of the ranks wait, with HVD_ELASTIC, and replace lost ones")    \
    X("HVD_STRAGGLER_TIME", straggler_ns, duration, "60s", "", duration,       \
      "a rank that keeps the others waiting in most commits of so long is "    \
      "reported; 0: never")                                                    \
    X("HVD_SHM_SIZE", shm_size, bytes, "1TB", "", bytes,                       \
      "most bytes of shared memory that a rank takes; 0: none is used")        \
    X("HVD_SHM_SMALL", shm_small, bytes, "16KB", "", bytes,                    \
      "tensors up to so many bytes travel with what is said about them, in "   \
      "shared memory between two ranks; of more ranks, smaller ones")          \
    X("HVD_SHM_BLOCK", shm_block, bytes, "32KB", "", bytes,                    \
      "larger ones that are not of hvd_malloc travel in blocks of so many")    \
    X("HVD_EXPRESS", ordered, bool, "1", "", bool,                             \
      "on one host, agree by the order of submission as long as it is the "    \
      "same everywhere")                                                       \
    X("HVD_CONSISTENCY_CHECK", consistency_check, bool, "0", "", bool,         \
      "compare the results of all ranks after each allreduce, allgather and "  \
      "broadcast")                                                             \
    X("HVD_DETERMINISTIC", deterministic, bool, "0", "", bool,                 \
      "the same bits from run to run, also on several hosts")                  \
    X("HVD_TRANSPORT", transport, transport, "auto", "", transport,            \
      "what moves data between hosts: mpi, ucx, tcp without MPI, or auto")     \
    X("HVD_JOB_KEY_FILE", job_key_file, text, "", "", text,                    \
      "a file with the key by which the processes of a cluster know each "     \
      "other; only its owner may read it")                                     \
    X("HVD_JOB_KEY_FD", job_key_fd, text, "", "", text,                        \
      "the same, as the number of a descriptor that is open")                  \
    X("HVD_HOSTS_FILE", hosts_file, text, "", "", text,                        \
      "a file in the form of /etc/hosts, which says where the hosts of a "     \
      "cluster are, and may change")                                           \
    X("HVD_COSTS", costs, text, "auto", "", text,                              \
      "the costs by which algorithms are chosen: auto, default, measure, or "  \
      "a file that hvd-info --topology has written")                           \
    X("HVD_KERNELS", kernels, text, "auto", "", text,                          \
      "the instructions that arithmetic uses: auto, or what hvd-info lists")   \
    X("HVD_TOPK_RATIO", topk_ratio, ratio, "0.01", "", ratio,                  \
      "the part of the values that the compression topk sends")                \
    X("HVD_AUTOTUNE", autotune, bool, "0", "HOROVOD_AUTOTUNE", bool,           \
      "find the fusion threshold and the sizes of algorithms that move most "  \
      "bytes a second")                                                        \
    X("HVD_AUTOTUNE_LOG", autotune_log, text, "", "HOROVOD_AUTOTUNE_LOG",      \
      text, "a CSV file for what was tried, and how it went")                  \
    X("HVD_AUTOTUNE_FILE", autotune_file, text, "", "", text,                  \
      "a file for what was found; if it is there, it counts, and nothing is "  \
      "tried")                                                                 \
    X("HVD_METRICS", metrics_file, text, "", "", text,                         \
      "a file for metrics in the form of Prometheus; %r becomes the rank, "    \
      "else only rank 0 writes it")                                            \
    X("HVD_METRICS_INTERVAL", metrics_interval_ns, duration, "10s", "",        \
      duration, "how often it is written, beside at the end")                  \
    X("HVD_TIMELINE", timeline_file, text, "", "HOROVOD_TIMELINE", text,       \
      "a file for what all ranks do when, as JSON for Perfetto; DYNAMIC: "     \
      "none "                                                                  \
      "before hvd_start_timeline")                                             \
    X("HVD_TIMELINE_MARK_CYCLES", timeline_mark_cycles, bool, "0",             \
      "HOROVOD_TIMELINE_MARK_CYCLES", bool,                                    \
      "timelines mark when a rank begins a batch")                             \
    X("HVD_LOG", log_level, level, "warning", "HOROVOD_LOG_LEVEL", level,      \
      "what is written to stderr: error, warning, info, debug or trace")

enum hvd__transport_choice {
    HVD__TRANSPORT_AUTO,
    HVD__TRANSPORT_MPI,
    HVD__TRANSPORT_UCX,
    HVD__TRANSPORT_TCP
};

struct hvd__settings {
    size_t fusion_threshold;
    int64_t heartbeat_ns;
    int64_t start_ns;
    int64_t stall_check_ns;
    int64_t stall_shutdown_ns;
    int64_t exit_grace_ns;
    bool elastic;
    char elastic_min[HVD__SETTING_TEXT];
    char spares[HVD__SETTING_TEXT];
    int64_t straggler_ns;
    size_t shm_size;
    size_t shm_small;
    size_t shm_block;
    bool ordered;
    bool consistency_check;
    bool deterministic;
    enum hvd__transport_choice transport;
    char job_key_file[HVD__SETTING_TEXT];
    char job_key_fd[HVD__SETTING_TEXT];
    char hosts_file[HVD__SETTING_TEXT];
    char costs[HVD__SETTING_TEXT];
    char kernels[HVD__SETTING_TEXT];
    double topk_ratio;
    bool autotune;
    char autotune_log[HVD__SETTING_TEXT];
    char autotune_file[HVD__SETTING_TEXT];
    char metrics_file[HVD__SETTING_TEXT];
    int64_t metrics_interval_ns;
    char timeline_file[HVD__SETTING_TEXT];
    bool timeline_mark_cycles;
    enum hvd__log_level log_level;
};

/* Reads all settings. On HVD_ERR_CONFIG the message names the variable, its
 * value and the accepted values. Settings that are not set have their defaults,
 * also on failure. The kernels are chosen at once; processes may differ in
 * them, because the results are the same. */
int hvd__settings_read(struct hvd__settings *settings);

/* Receives one setting in readable form. The texts are valid during the call.
 */
typedef void hvd__setting_visitor(void *context, const char *variable,
                                  const char *value, const char *origin,
                                  const char *meaning);

/* Calls visit for all settings in the order of the list. value is as it was
 * given; origin is "default" or the variable that gave the value. */
void hvd__settings_each(hvd__setting_visitor *visit, void *context);

/* Finds an unknown variable of the environment that begins with HVD_ and writes
 * it, with the most similar known name, as one line into text. Returns false if
 * there is none. */
bool hvd__settings_stray(char *text, size_t size);

/* Parses a number of bytes: digits, then nothing, B, or K, M, G, T with or
 * without B or iB, in upper or lower case, all powers of 1024. Fails with
 * HVD_ERR_CONFIG without a message. */
int hvd__parse_bytes(const char *text, size_t *bytes);

/* Parses a time that is not negative: a decimal number, then nothing (seconds),
 * ns, us, ms, s, m (or min) or h. Fails with HVD_ERR_CONFIG without a message.
 */
int hvd__parse_duration(const char *text, int64_t *ns);

#endif
