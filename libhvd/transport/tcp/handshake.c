/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp/handshake.h"

#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <string.h>
#include <sys/random.h>

/* The number is in the byte order of the host: a process of the other order is
 * no match. */
#define MAGIC UINT32_C(0x68766454)
enum { PROTOCOL = 1 };

/* A hello is sent as it lies in memory. */
_Static_assert(sizeof(struct hvd__hello) == 80, "a hello has no gaps");
_Static_assert(sizeof(struct hvd__challenge) == 72, "a challenge has no gaps");

bool hvd__random(void *bytes, size_t count)
{
    return getrandom(bytes, count, 0) == (ssize_t)count;
}

bool hvd__hello_fill(struct hvd__hello *hello, const struct hvd__job *job,
                     int to)
{
    /* A number that an earlier rank 0 has told means nothing to the next. */
    bool is_in_session = job->is_started || job->rank == 0;

    *hello = (struct hvd__hello){
        .magic = MAGIC,
        .protocol = PROTOCOL,
        .version = HVD_VERSION_STRING,
        .cluster = job->cluster,
        .session = is_in_session ? job->session : 0,
        .from = (uint32_t)job->rank,
        .to = (uint32_t)to,
    };
    return hvd__random(hello->nonce, sizeof hello->nonce);
}

bool hvd__handshake_knows(const void *bytes)
{
    const uint32_t magic = MAGIC;

    return memcmp(bytes, &magic, sizeof magic) == 0;
}

/* Before the ranks have met, rank 0 expects newcomers, and others expect rank
 * 0: a rank that has met all others may call one that does not know it yet. */
static enum hvd__answer judge_session(const struct hvd__hello *hello,
                                      const struct hvd__job *job)
{
    if (job->is_started)
        return hello->session == job->session ? HVD__ANSWER_WELCOME
                                              : HVD__ANSWER_UNDER_WAY;
    if (job->rank == 0)
        return hello->session == 0 ? HVD__ANSWER_WELCOME
                                   : HVD__ANSWER_UNDER_WAY;
    return hello->from == 0 && hello->session != 0 ? HVD__ANSWER_WELCOME
                                                   : HVD__ANSWER_LATER;
}

enum hvd__answer hvd__hello_identify(const struct hvd__hello *hello,
                                     const struct hvd__job *job)
{
    if (hello->magic != MAGIC || hello->protocol != PROTOCOL ||
        strncmp(hello->version, HVD_VERSION_STRING, sizeof hello->version) != 0)
        return HVD__ANSWER_VERSION;
    if (hello->cluster != job->cluster)
        return HVD__ANSWER_CLUSTER;
    if (hello->to != (uint32_t)job->rank || hello->from >= (uint32_t)job->size)
        return HVD__ANSWER_OTHER;
    return HVD__ANSWER_WELCOME;
}

enum hvd__answer hvd__hello_judge(const struct hvd__hello *hello,
                                  const struct hvd__job *job)
{
    enum hvd__answer found = hvd__hello_identify(hello, job);

    return found == HVD__ANSWER_WELCOME ? judge_session(hello, job) : found;
}

static void prove(const char *side, const struct hvd__hello *hello,
                  const uint8_t nonce[HVD__NONCE_BYTES],
                  const struct hvd__job *job, uint8_t proof[HVD__PROOF_BYTES])
{
    static const uint8_t none[1];
    struct hmac_sha256_ctx hmac;

    hmac_sha256_set_key(&hmac, job->key_bytes, job->key ? job->key : none);
    hmac_sha256_update(&hmac, strlen(side) + 1, (const uint8_t *)side);
    hmac_sha256_update(&hmac, sizeof *hello, (const uint8_t *)hello);
    hmac_sha256_update(&hmac, HVD__NONCE_BYTES, nonce);
    hmac_sha256_digest(&hmac, HVD__PROOF_BYTES, proof);
}

static bool holds(const char *side, const uint8_t proof[HVD__PROOF_BYTES],
                  const struct hvd__challenge *challenge,
                  const struct hvd__hello *hello, const struct hvd__job *job)
{
    uint8_t expected[HVD__PROOF_BYTES];

    prove(side, hello, challenge->nonce, job, expected);
    return memeql_sec(expected, proof, sizeof expected);
}

bool hvd__challenge_fill(struct hvd__challenge *challenge,
                         const struct hvd__hello *hello,
                         const struct hvd__job *job, enum hvd__answer answer)
{
    *challenge = (struct hvd__challenge){.magic = MAGIC, .answer = answer};
    if (answer != HVD__ANSWER_WELCOME)
        return true;
    if (!hvd__random(challenge->nonce, sizeof challenge->nonce))
        return false;
    prove("called", hello, challenge->nonce, job, challenge->proof);
    return true;
}

enum hvd__answer hvd__challenge_judge(const struct hvd__challenge *challenge,
                                      const struct hvd__hello *hello,
                                      const struct hvd__job *job)
{
    if (challenge->magic != MAGIC || challenge->answer >= HVD__NANSWERS)
        return HVD__ANSWER_VERSION;
    if (challenge->answer != HVD__ANSWER_WELCOME)
        return (enum hvd__answer)challenge->answer;
    return holds("called", challenge->proof, challenge, hello, job)
               ? HVD__ANSWER_WELCOME
               : HVD__ANSWER_KEY;
}

void hvd__proof_fill(uint8_t proof[HVD__PROOF_BYTES],
                     const struct hvd__challenge *challenge,
                     const struct hvd__hello *hello, const struct hvd__job *job)
{
    prove("caller", hello, challenge->nonce, job, proof);
}

bool hvd__proof_holds(const uint8_t proof[HVD__PROOF_BYTES],
                      const struct hvd__challenge *challenge,
                      const struct hvd__hello *hello,
                      const struct hvd__job *job)
{
    return holds("caller", proof, challenge, hello, job);
}

struct hvd__result hvd__result_of(enum hvd__answer answer)
{
    return (struct hvd__result){MAGIC, answer};
}

static const struct {
    bool is_passing;
    const char *text;
} answers[] = {
#define X(constant, again, words) {again, words},
    HVD__ANSWERS(X)
#undef X
};

bool hvd__answer_is_passing(enum hvd__answer answer)
{
    return answers[answer].is_passing;
}

const char *hvd__answer_text(enum hvd__answer answer)
{
    return answers[answer].text;
}
