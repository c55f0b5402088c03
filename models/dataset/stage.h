/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.h - what data sets and iterators are made of.
 *
 * A data set is a tree of immutable nodes. An iterator opens a tree of stages
 * beside it, one for each node, which have all that changes. The thread that
 * fills batches uses the stages; only stage_get and stage_look may be called by
 * several at once.
 *
 * A node with random access serves elements by number: it has look (pointers
 * into memory that lives as long as the stage), get (copies), or place (it is
 * an element of an input: which one). The others have next.
 */
#ifndef MODELS_STAGE_H
#define MODELS_STAGE_H

#include <hvd_dataset.h>
#include <stdatomic.h>
#include <stdbool.h>

struct crew;
struct stage;

/* The share of a worker: how an iterator's data is divided. */
struct share {
    int workers, worker, replicas;
    bool by_file; /* merges have only this worker's inputs */
    bool by_data; /* batches have only this worker's elements */
    bool join;    /* HVD_UNEVEN_JOIN */
};

/* The stages of an iterator share this. */
struct run {
    struct share share;
    struct crew *crew;     /* owned; NULL: the caller works alone */
    atomic_bool stop;      /* relaxed: whoever sees it fails soon */
    int64_t rows;          /* of the batch that was filled last */
    int64_t *replica_rows; /* [replicas], owned */
};

/* The functions of nodes of one kind. NULL: what is said. */
struct kind {
    const char *name;
    /* Elements of an epoch, -1: unknown. NULL: those of the input. */
    int64_t (*count)(const hvd_dataset *set, const struct share *share);
    int (*open)(struct stage *stage);   /* NULL: nothing to do */
    void (*close)(struct stage *stage); /* also after open failed */
    /* Begins an epoch. NULL: the inputs do. */
    int (*begin)(struct stage *stage, int64_t epoch);
    struct stage *(*place)(struct stage *stage, int64_t *index);
    int (*look)(struct stage *stage, int64_t index, const void **at);
    int (*get)(struct stage *stage, int64_t index, char *room,
               void *const *out);
    int (*next)(struct stage *stage, void *const *out);
    /* Skips up to n elements, and returns how many. NULL: by reading. */
    int64_t (*skip)(struct stage *stage, int64_t n);
    /* Goes to a sample of an epoch of the stage below that has them, and
     * returns the epoch of this stage. Called for repeat, prefetch, and what
     * stands behind a batch; else, and for NULL, by beginning and skipping. */
    int64_t (*restore)(struct stage *stage, int64_t epoch, int64_t samples);
    void (*free)(hvd_dataset *set); /* its parameters */
};

struct hvd_dataset {
    const struct kind *kind;
    atomic_int references;
    bool random;  /* has random access */
    bool batched; /* is, or comes behind, a batch */
    bool endless;
    int32_t ncomponents;
    hvd_component components[HVD_MAX_COMPONENTS];
    char names[HVD_MAX_COMPONENTS][HVD_MAX_COMPONENT_NAME + 1];
    int32_t ninputs;
    hvd_dataset **inputs; /* owned references */
    void *parameters;     /* owned, of the kind */
};

struct stage {
    const hvd_dataset *set;
    struct run *run;
    int32_t ninputs;
    struct stage **inputs; /* owned; under by_file perhaps fewer */
    int64_t count;         /* elements of an epoch; -1: unknown */
    int64_t position;      /* elements of the epoch that are used */
    int64_t epoch;
    size_t bytes[HVD_MAX_COMPONENTS]; /* of an element's components */
    size_t room;   /* for an element, and what the inputs need for one */
    char *scratch; /* owned, room bytes, of the thread that fills batches */
    void *state;   /* of the kind */
};

/* ------------------------------------------------------------------- nodes */

/* Makes a node of zeroed parameters with the components of the first input,
 * and takes the inputs over. NULL, with the text kept, if an input is NULL,
 * which frees the others. */
hvd_dataset *node_make(const struct kind *kind, int32_t ninputs,
                       hvd_dataset *const *inputs, size_t parameters);

/* Gives a node other components. On failure frees it and returns NULL. */
hvd_dataset *node_components(hvd_dataset *set, int32_t n,
                             const hvd_component *components);

/* Keeps a text for a function that makes nodes, frees what it got and returns
 * NULL. */
__attribute__((format(printf, 3, 4))) hvd_dataset *node_fail(hvd_dataset *set,
                                                             int status,
                                                             const char *format,
                                                             ...);

int64_t node_count(const hvd_dataset *set, const struct share *share);
int32_t node_find(const hvd_dataset *set, const char *name); /* -1: not there */

int check_components(int32_t n, const hvd_component *components);
int64_t component_count(const hvd_component *component); /* of numbers */
size_t component_bytes(const hvd_component *component);
bool component_equal(const hvd_component *a, const hvd_component *b);

/* ------------------------------------------------------------------ stages */

int stage_open(const hvd_dataset *set, struct run *run, struct stage **stage);
void stage_close(struct stage *stage);
int stage_begin(struct stage *stage, int64_t epoch);

/* Fills an element: 0, HVD_END_OF_DATA or a failure. */
int stage_next(struct stage *stage, void *const *out);
int64_t stage_skip(struct stage *stage, int64_t n);

/* Goes to a sample, and returns the stage's epoch or a failure. */
int64_t stage_restore(struct stage *stage, int64_t epoch, int64_t samples);

/* Random access. room is memory of stage->room bytes for one thread. */
int stage_get(struct stage *stage, int64_t index, char *room, void *const *out);
/* Finds the stage that has an element itself, by look or get, and its number
 * there. */
struct stage *stage_find(struct stage *stage, int64_t *index);
/* Sets pointers to an element. It may be computed in room. */
int stage_look(struct stage *stage, int64_t index, char *room, const void **at);

/* Has the processor fetch an element that will be asked for soon. */
void stage_expect(struct stage *stage, int64_t index);

/* Lays an element out in memory at multiples of 64 bytes; base NULL: only
 * measures. Returns the bytes. */
size_t stage_lay_out(const struct stage *stage, char *base, void **at);

/* ------------------------------------------------------------------- kinds */

extern const struct kind batch_kind;

/* Of a stage of batch_kind. */
int64_t batch_of_all(const struct stage *stage);   /* elements of a step */
int64_t batch_capacity(const struct stage *stage); /* rows of a replica */
int64_t batch_tell(const struct stage *stage);     /* begin of the next batch */
/* Steps of an epoch, the same for all workers; -1: unknown. */
int64_t batch_steps(const hvd_dataset *set, const struct share *share);
bool batch_drops(const hvd_dataset *set);

bool is_repeat(const hvd_dataset *set);
bool is_merge(const hvd_dataset *set); /* concatenates or interleaves */
int64_t repeat_times(const hvd_dataset *set);
uint64_t shuffle_seed(const hvd_dataset *set);  /* 0: it is no shuffle */
int32_t map_threads(const hvd_dataset *set);    /* 0: it is no map */
int32_t prefetch_depth(const hvd_dataset *set); /* 0: it is no prefetch */

#endif
