/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_dataset.h - pipelines of training data (libhvd-train).
 *
 * A data set is a value that sources make and transformations change:
 *
 *     hvd_dataset *d = hvd_dataset_idx(2, names, paths);
 *     d = hvd_dataset_cast(d, "images", HVD_FLOAT32, 255);
 *     d = hvd_dataset_shuffle(d, seed, 0);
 *     d = hvd_dataset_batch(d, 64, 1);
 *     d = hvd_dataset_prefetch(d, 2);
 *     if (hvd_iterator_new(d, NULL, &iterator) < 0)
 *         puts(hvd_last_error());
 *
 * It has elements, and each element has the same components: arrays with a
 * name, a dtype and a shape, such as "images", float32, [784]. Nothing is
 * computed until an iterator asks for it.
 *
 * Every function that makes a data set takes over the data sets that it gets,
 * also on failure; hvd_dataset_keep makes another reference to use one twice.
 * It returns NULL on failure, and also if it gets NULL, so that a chain needs
 * one look at its end: hvd_last_error() tells what failed first, with the file,
 * the place in it, and what to do.
 *
 * A data set has random access if each of its elements can be had by its
 * number. All sources here have it but hvd_dataset_generate, and
 * transformations keep it but for hvd_dataset_repeat, a shuffle with a buffer,
 * and hvd_dataset_batch. Without it, it is a stream.
 *
 * Names of components, paths and other texts are copied. Making and freeing is
 * safe from any thread; a data set may feed any number of iterators, each used
 * by one thread at a time. No function here is collective.
 */
#ifndef HVD_DATASET_H
#define HVD_DATASET_H

#include <hvd.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HVD_MAX_COMPONENTS = 16,
    HVD_MAX_COMPONENT_DIMS = 7,
    HVD_MAX_COMPONENT_NAME = 47, /* bytes */
    HVD_END_OF_DATA = 1          /* of hvd_iterator_next and callbacks */
};

typedef struct hvd_dataset hvd_dataset;

/* One array of an element. */
typedef struct hvd_component {
    const char *name; /* borrowed from whoever gives the struct */
    hvd_dtype dtype;
    int32_t ndim; /* 0: one number */
    int64_t shape[HVD_MAX_COMPONENT_DIMS + 1];
} hvd_component;

/* Returns the components, valid as long as the data set; count, which may be
 * NULL, gets their number. NULL if dataset is NULL. Batches have them with one
 * dimension more (hvd_batch). */
const hvd_component *hvd_dataset_components(const hvd_dataset *dataset,
                                            int32_t *count);

/* Returns the number of elements (of batches: on one worker with one replica);
 * -1: only the end of the data will tell, or there is none. */
int64_t hvd_dataset_count(const hvd_dataset *dataset);

/* Returns the same data set, to be freed, or taken over, once more. */
hvd_dataset *hvd_dataset_keep(hvd_dataset *dataset);

/* NULL is accepted. Iterators keep what they need. */
void hvd_dataset_free(hvd_dataset *dataset);

/* -------------------------------------------------------------------- sources
 *
 * Files are regular ones. Those of IDX, CSV, TFRecord and text, and .npy, may
 * be compressed by gzip, whatever their names are. Archives and safetensors
 * files are mapped into memory, and must not be cut short while they are used.
 */

/* Arrays of count elements one after the other; those that do not lie at a
 * multiple of their dtype's size are copied. release(context) is called when
 * nobody needs the arrays any more, also if making the data set fails; NULL:
 * they are borrowed until all data sets and iterators made of them are freed.
 */
hvd_dataset *hvd_dataset_memory(int32_t ncomponents,
                                const hvd_component *components,
                                const void *const *arrays, int64_t count,
                                void (*release)(void *context), void *context);

/* A file of the IDX format for each component, [elements, ...] of uint8, int8,
 * int16, int32, float32 or float64. All must have as many elements. */
hvd_dataset *hvd_dataset_idx(int32_t n, const char *const *names,
                             const char *const *paths);

/* A component that is made of columns of a CSV file. */
typedef struct hvd_csv_field {
    hvd_component component; /* a scalar is one column, [k] are k neighbours;
                                any dtype but the 16-bit floats */
    const char *column;      /* the first, by its name in the header, or as a
                                number from 0; NULL: the one behind those of the
                                field before */
    int32_t has_default;     /* 0: a field that is empty or "NA" fails */
    double default_value;    /* in place of such a field */
    /* Words in place of numbers: a field is the place of its text in them.
     * NULL: numbers. */
    const char *const *words;
    int32_t nwords;
} hvd_csv_field;

/* Reads a CSV file (RFC 4180) as a whole. delimiter: 0 is ','. header 1: the
 * first line has names. All lines must have as many fields as the first; empty
 * lines are skipped. Errors name file:line:column, the column being that of
 * fields, from 1. */
hvd_dataset *hvd_dataset_csv(const char *path, int32_t nfields,
                             const hvd_csv_field *fields, char delimiter,
                             int32_t header);

/* The rows of an array that numpy saved (.npy), in C order. */
hvd_dataset *hvd_dataset_npy(const char *path, const char *name);

/* Arrays of an archive of numpy (.npz), compressed or not, by their names; n
 * 0: all, in the order of the archive. All must have as many rows. */
hvd_dataset *hvd_dataset_npz(const char *path, int32_t n,
                             const char *const *names);

/* The same with the tensors of a safetensors file. */
hvd_dataset *hvd_dataset_safetensors(const char *path, int32_t n,
                                     const char *const *names);

/*
 * The tf.train.Examples of a TFRecord file: components are features of these
 * names, of which each example must have as many values as the shape says. A
 * list of bytes is uint8, int8 or bool, end to end; lists of float32 and int64
 * become any dtype, as hvd_dataset_cast would, but saturated. All checksums are
 * verified when the data set is made.
 */
hvd_dataset *hvd_dataset_tfrecord(const char *path, int32_t ncomponents,
                                  const hvd_component *components);

/*
 * Windows of a sequence of units, such as the tokens of a text, for a language
 * model: element i has the components "inputs", int32 [window], the units from
 * i * stride on, and "labels", the same one unit further on; neither goes
 * beyond the end. units has count of them, and release(context) is as for
 * hvd_dataset_memory.
 */
hvd_dataset *hvd_dataset_windows(const int32_t *units, int64_t count,
                                 int64_t window, int64_t stride,
                                 void (*release)(void *context), void *context);

/* The unit of a text is what a number stands for. */
typedef int32_t hvd_text_unit;
enum {
    HVD_TEXT_BYTES = 0,     /* the bytes of the file, 0 to 255 */
    HVD_TEXT_CHARACTERS = 1 /* the place of a UTF-8 character in the sorted list
                               of those that occur */
};

/* Does the same with the units of a text. vocabulary may be NULL; it gets the
 * number of different units, 256 for bytes. */
hvd_dataset *hvd_dataset_text(const char *path, hvd_text_unit unit,
                              int64_t window, int64_t stride,
                              int32_t *vocabulary);

/* Elements that a program makes. The functions are called by one thread at a
 * time, for all iterators that are open together: so open one at a time. */
typedef struct hvd_generator {
    /* Fills an element: out has a place for each component. Returns 0,
     * HVD_END_OF_DATA, or a negative status, with a text if it calls
     * hvd_set_last_error. */
    int (*next)(void *context, void *const *out);
    /* Goes to the begin of an epoch, 0, 1, ... NULL: there is one epoch only.
     */
    int (*rewind)(void *context, int64_t epoch);
    /* Called once, when nobody needs the data any more. May be NULL. */
    void (*release)(void *context);
    void *context;
} hvd_generator;

hvd_dataset *hvd_dataset_generate(int32_t ncomponents,
                                  const hvd_component *components,
                                  const hvd_generator *generator);

/* ---------------------------------------------------------- transformations */

/* Computes an element from one; in and out have a pointer for each component.
 * Returns 0 or a negative status, with a text if it calls hvd_set_last_error.
 */
typedef int hvd_map_fn(void *context, const void *const *in, void *const *out);

/* Elements with these components, which function computes. threads above 1: so
 * many threads call it at once, and the order is kept. */
hvd_dataset *hvd_dataset_map(hvd_dataset *dataset, int32_t ncomponents,
                             const hvd_component *components,
                             hvd_map_fn *function, void *context,
                             int32_t threads);

/* Another dtype for a component, any but bool: each number is divided by
 * divisor. For an integer dtype, it is cut off towards 0 then, and must be in
 * the range. */
hvd_dataset *hvd_dataset_cast(hvd_dataset *dataset, const char *name,
                              hvd_dtype dtype, double divisor);

/* Another shape of as many elements for a component. */
hvd_dataset *hvd_dataset_reshape(hvd_dataset *dataset, const char *name,
                                 int32_t ndim, const int64_t *shape);

/* Another order in each epoch, which depends on seed and epoch alone. buffer 0:
 * a full permutation, that of hvd_shuffle, of a data set with random access.
 * Otherwise elements are drawn from a buffer of so many: one comes at most
 * buffer - 1 places early, and any time late. */
hvd_dataset *hvd_dataset_shuffle(hvd_dataset *dataset, uint64_t seed,
                                 int64_t buffer);

/* The first count elements; all but them. Behind a batch, these are steps. */
hvd_dataset *hvd_dataset_take(hvd_dataset *dataset, int64_t count);
hvd_dataset *hvd_dataset_skip(hvd_dataset *dataset, int64_t count);

/* times epochs, one after the other; -1: for ever. Behind a shuffle, each has
 * its own order. Behind a batch, no batch has data of two epochs. */
hvd_dataset *hvd_dataset_repeat(hvd_dataset *dataset, int64_t times);

/* Every n-th element, from index on: sharding by hand. Put it before the
 * shuffle, and give the iterator HVD_SHARD_OFF. */
hvd_dataset *hvd_dataset_shard(hvd_dataset *dataset,
                               int32_t num_input_pipelines,
                               int32_t input_pipeline_id);

/* Data sets with the same components, one after the other. */
hvd_dataset *hvd_dataset_concatenate(int32_t n, hvd_dataset *const *datasets);

/* The same in turn: block elements from each of cycle data sets; where one
 * ends, the next begins. */
hvd_dataset *hvd_dataset_interleave(int32_t n, hvd_dataset *const *datasets,
                                    int32_t cycle, int32_t block);

/* The components of all data sets side by side; as long as the shortest. */
hvd_dataset *hvd_dataset_zip(int32_t n, hvd_dataset *const *datasets);

/* Keeps all elements in memory, which the first iterator fills when it is made.
 * A stream has random access then. */
hvd_dataset *hvd_dataset_cache(hvd_dataset *dataset);

/*
 * Batches. hvd_dataset_batch: of this many elements for each replica of each
 * worker. hvd_dataset_batch_global: of this many for all together, in shares
 * that differ by at most 1 (7 on two workers of two replicas: 2, 2, 2, 1). The
 * last elements that do not fill a batch of all replicas are dropped, or, with
 * drop_remainder 0, make short or empty ones.
 */
hvd_dataset *hvd_dataset_batch(hvd_dataset *dataset, int64_t size,
                               int32_t drop_remainder);
hvd_dataset *hvd_dataset_batch_global(hvd_dataset *dataset, int64_t size,
                                      int32_t drop_remainder);

/* A thread of the iterator reads up to count elements ahead. */
hvd_dataset *hvd_dataset_prefetch(hvd_dataset *dataset, int32_t count);

/* ---------------------------------------------------------------- iterators */

/* This says how the data is divided among workers. */
typedef int32_t hvd_auto_shard;
enum {
    HVD_SHARD_OFF = -1, /* each worker has all, or what a shard by hand left */
    HVD_SHARD_AUTO = 0, /* FILE if there are as many data sets as workers to
                           concatenate or interleave, else DATA */
    HVD_SHARD_FILE = 1, /* worker w of n has every n-th data set of those */
    HVD_SHARD_DATA = 2  /* step t uses elements t*G to (t+1)*G - 1 of one order,
                           G being the batch of all: replica s of N takes every
                           N-th of them, from s on */
};

/* This says what workers do whose files have unequal numbers of elements. */
typedef int32_t hvd_uneven;
enum {
    HVD_UNEVEN_DROP = 0, /* all make as many steps as the shortest */
    HVD_UNEVEN_JOIN = 1  /* all make as many as the longest: the others get
                            empty batches */
};

/* The place of a worker among all. */
typedef struct hvd_input_context {
    uint32_t size;               /* sizeof(hvd_input_context) */
    int32_t num_input_pipelines; /* workers: 1 */
    int32_t input_pipeline_id;   /* this worker: 0 */
    int32_t replicas;            /* of each worker: 1 */
    hvd_auto_shard auto_shard;   /* HVD_SHARD_AUTO */
    hvd_uneven uneven;           /* HVD_UNEVEN_DROP */
} hvd_input_context;

/* Sets all members to their defaults. */
void hvd_input_context_init(hvd_input_context *context, size_t size);

/* An iterator returns batches: each is valid until its next call. */
typedef struct hvd_batch {
    int32_t ncomponents;
    /* Shapes [replicas * capacity, ...]; without a batch in the pipeline, those
     * of the element. */
    const hvd_component *components;
    void *const *data; /* each at a multiple of 64 bytes */
    int64_t rows;      /* real ones, of all replicas */
    int64_t capacity;  /* rows that a replica has room for */
    int32_t replicas;  /* of this worker */
    const int64_t
        *replica_rows; /* [replicas]: real rows of each. Replica r has
                          rows r * capacity and on; the others are 0 */
} hvd_batch;

/* A position says where an iterator stands. It may be stored as numbers, and
 * means the same under any number of workers and replicas. */
typedef struct hvd_position {
    uint32_t size;   /* sizeof(hvd_position) */
    int32_t workers; /* 0: any; else the number of workers for which it holds */
    uint64_t seed;   /* of the shuffle; 0 if there is none */
    int64_t epoch;
    int64_t samples; /* elements of the epoch used by all workers */
} hvd_position;

typedef struct hvd_iterator hvd_iterator;

/*
 * Makes an iterator at the begin of epoch 0. context NULL: one worker with one
 * replica. Keeps the data set. HVD_ERR_ARGUMENT for a context that is none, for
 * fewer files than workers (HVD_SHARD_FILE), and, with the text left as it is,
 * if dataset is NULL.
 */
int hvd_iterator_new(hvd_dataset *dataset, const hvd_input_context *context,
                     hvd_iterator **iterator);

/* Stops the thread that reads ahead, at the element that it is reading. NULL is
 * accepted. */
void hvd_iterator_free(hvd_iterator *iterator);

/*
 * Gets the next batch, or the next element if there are no batches. Returns 0;
 * HVD_END_OF_DATA at the end of an epoch, of which the next call begins
 * another; or a failure, after which only hvd_iterator_restore helps.
 */
int hvd_iterator_next(hvd_iterator *iterator, hvd_batch *batch);

/* Does the same, and puts the data into buffers, one for each component, with
 * room for a whole batch: directly, or by a copy of what was read ahead. Their
 * contents are undefined if it returns anything but 0. */
int hvd_iterator_next_into(hvd_iterator *iterator, void *const *buffers,
                           hvd_batch *batch);

/* Returns the steps of an epoch, the same on all workers; -1: not known before
 * its end, and workers may differ. */
int64_t hvd_iterator_steps(const hvd_iterator *iterator);

/* Returns how many of these are left where the next batch begins: after a
 * change of the number of workers, not what steps and position would give. -1:
 * not known, as above, or because workers have files of their own. */
int64_t hvd_iterator_left(const hvd_iterator *iterator);

/* Returns how the data is divided, in a line such as "60000 elements by element
 * on 2 workers: batches of 32 (64 of all), 937 steps, 32 elements dropped". */
const char *hvd_iterator_description(const hvd_iterator *iterator);

/* Tells where the next batch begins; what is read ahead does not count. */
int hvd_iterator_position(const hvd_iterator *iterator, hvd_position *position);

/* Goes to a position: at once with random access, else by reading up to it.
 * HVD_ERR_ARGUMENT if it is one of another seed, of other files, or beyond the
 * end. */
int hvd_iterator_restore(hvd_iterator *iterator, const hvd_position *position);

/*
 * Measures how fast the elements come: epochs times elements of them, beginning
 * again at their end. *json, which the caller frees, gets for each epoch
 * GB/s, elements a second, elements, seconds and bytes, in the form of
 * ipu_dataset_benchmark.
 */
int hvd_dataset_benchmark(hvd_dataset *dataset, int32_t epochs,
                          int64_t elements, char **json);

#ifdef __cplusplus
}
#endif

#endif
