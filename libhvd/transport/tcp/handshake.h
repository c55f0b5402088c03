/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handshake.h - how two processes convince each other that they are ranks of
 * the same job, on a connection that anybody may have opened.
 *
 *     caller                                  called
 *       hello: who I am, whom I want, nonce ->
 *            <- challenge: answer, nonce, proof
 *       proof                               ->
 *            <- result
 *
 * A proof is HMAC-SHA-256 of the whole hello, the called side's nonce and the
 * side that proves, with the key of the job. So a handshake that was recorded
 * proves nothing later or in the other direction. All records have a fixed
 * size: a stranger cannot make a rank allocate anything. What follows on the
 * connection is neither encrypted nor authenticated.
 *
 * A refusal before the proofs is open to everybody; it only tells that versions
 * or descriptions of the cluster differ.
 */
#ifndef HVD_TRANSPORT_TCP_HANDSHAKE_H
#define HVD_TRANSPORT_TCP_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HVD__NONCE_BYTES = 32, HVD__PROOF_BYTES = 32 };

/* The answers to a caller: X(constant, whether calling again can help, text
 * after "it "). Their numbers travel: new ones go to the end. */
#define HVD__ANSWERS(X)                                                        \
    X(HVD__ANSWER_WELCOME, false, "accepts")                                   \
    X(HVD__ANSWER_LATER, true, "is not ready yet")                             \
    X(HVD__ANSWER_TAKEN, true, "has a process of this task already")           \
    X(HVD__ANSWER_UNDER_WAY, true,                                             \
      "is in a run of the job that began without this process")                \
    X(HVD__ANSWER_VERSION, false, "runs another version of hvd")               \
    X(HVD__ANSWER_CLUSTER, false, "has another description of the cluster")    \
    X(HVD__ANSWER_OTHER, false, "is another task than its address says")       \
    X(HVD__ANSWER_KEY, false, "has another key of the job")                    \
    X(HVD__ANSWER_ELASTIC, false, "has another value of HVD_ELASTIC")

enum hvd__answer {
#define X(constant, again, text) constant,
    HVD__ANSWERS(X)
#undef X
        HVD__NANSWERS
};

/* A job, as one of its processes knows it. */
struct hvd__job {
    int rank, size;
    uint64_t cluster; /* fingerprint of the description that all ranks share */
    uint64_t session; /* number of this run; 0: not known yet */
    bool is_started;  /* all ranks have met */
    const void *key;  /* borrowed; NULL if key_bytes is 0 */
    size_t key_bytes;
};

struct hvd__hello {
    uint32_t magic;
    uint32_t protocol;
    char version[16]; /* of libhvd */
    uint64_t cluster;
    uint64_t session;
    uint32_t from, to; /* ranks */
    uint8_t nonce[HVD__NONCE_BYTES];
};

struct hvd__challenge {
    uint32_t magic;
    uint32_t answer; /* enum hvd__answer; the rest is 0 unless it is WELCOME */
    uint8_t nonce[HVD__NONCE_BYTES];
    uint8_t proof[HVD__PROOF_BYTES];
};

struct hvd__result {
    uint32_t magic;
    uint32_t answer;
};

/* Fills random bytes; false if the kernel gives none. */
bool hvd__random(void *bytes, size_t count);

bool hvd__hello_fill(struct hvd__hello *hello, const struct hvd__job *job,
                     int to);

/* Returns whether bytes, of which there are at least 4, can be the beginning of
 * a record of this protocol. */
bool hvd__handshake_knows(const void *bytes);

/* Judges whether the two are of one cluster, and whether the caller has reached
 * whom it wanted. */
enum hvd__answer hvd__hello_identify(const struct hvd__hello *hello,
                                     const struct hvd__job *job);

/* Judges a hello by all but its key. */
enum hvd__answer hvd__hello_judge(const struct hvd__hello *hello,
                                  const struct hvd__job *job);

/* Fills an answer to a hello; if it is WELCOME, with a nonce and the proof of
 * the called side. */
bool hvd__challenge_fill(struct hvd__challenge *challenge,
                         const struct hvd__hello *hello,
                         const struct hvd__job *job, enum hvd__answer answer);

/* Returns the answer of a challenge, whose proof it checks. */
enum hvd__answer hvd__challenge_judge(const struct hvd__challenge *challenge,
                                      const struct hvd__hello *hello,
                                      const struct hvd__job *job);

/* Makes the caller's proof, or checks it. */
void hvd__proof_fill(uint8_t proof[HVD__PROOF_BYTES],
                     const struct hvd__challenge *challenge,
                     const struct hvd__hello *hello,
                     const struct hvd__job *job);
bool hvd__proof_holds(const uint8_t proof[HVD__PROOF_BYTES],
                      const struct hvd__challenge *challenge,
                      const struct hvd__hello *hello,
                      const struct hvd__job *job);

struct hvd__result hvd__result_of(enum hvd__answer answer);

/* Returns whether it can help to call again, and what follows "it ". */
bool hvd__answer_is_passing(enum hvd__answer answer);
const char *hvd__answer_text(enum hvd__answer answer);

#endif
