/* Masks of dropout by counter-based random numbers: Philox4x32-10 (Salmon et al.
 * 2011, "Parallel random numbers: as easy as 1, 2, 3"). They depend on run and step, layer
 * and place in it, and on the element's indices in the whole tensor of the step, so that
 * masks are the same however a model is sharded and whenever they are made again. */
#ifndef MS_EXEC_CORE_DROPOUT_H
#define MS_EXEC_CORE_DROPOUT_H

#include "exec/core/op_call.h"

#include <stdint.h>

/* One block of Philox4x32-10: four random words of a counter and a key. */
static inline void ms_philox(const uint32_t key[2], const uint32_t counter[4],
                             uint32_t out[4])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
    uint32_t k[2] = {key[0], key[1]};
    for (int round = 0; round < 10; round++) {
        uint64_t first = (uint64_t)0xD2511F53u * c[0],
                 second = (uint64_t)0xCD9E8D57u * c[2];
        c[0] = (uint32_t)(second >> 32) ^ c[1] ^ k[0];
        c[1] = (uint32_t)second;
        c[2] = (uint32_t)(first >> 32) ^ c[3] ^ k[1];
        c[3] = (uint32_t)first;
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; i++)
        out[i] = c[i];
}

/* Places of a layer at which dropout works; heads of attention follow. */
enum {
    MS_DROPOUT_MIXER, /* the branch of attention or Mamba-2, or both branches together */
    MS_DROPOUT_MLP,
    MS_DROPOUT_HEADS
};

/* A row of elements under dropout: hidden states of a token, or the probabilities of a
 * query, whose columns are the positions of keys. */
typedef struct ms_dropout {
    uint32_t key[2], counter[4], words[4];
    uint32_t least; /* words below it drop their element */
    bool is_made;   /* whether `words` are those of `counter` */
} ms_dropout;

/* `sequence`: index in the rank's batch; `row`: position of the token or query. */
static inline ms_dropout ms_dropout_row(const ms_op_call *call, double rate, long place,
                                        long sequence, long row)
{
    long places = call->program->model->num_heads + MS_DROPOUT_HEADS;
    long in_step = call->batch->first_in_step + sequence - call->batch->first_sequence;
    uint64_t key = call->batch->dropout_key;
    return (ms_dropout){.key = {(uint32_t)key, (uint32_t)(key >> 32)},
                        .counter = {0, (uint32_t)row, (uint32_t)in_step,
                                    (uint32_t)((call->layer + 1) * places + place)},
                        .least = (uint32_t)(rate * 4294967296.0)};
}

/* Whether element `column` stays. Four neighbours share a block of random words. */
static inline bool ms_dropout_keeps(ms_dropout *d, long column)
{
    uint32_t block = (uint32_t)(column / 4);
    if (!d->is_made || d->counter[0] != block) {
        d->counter[0] = block;
        ms_philox(d->key, d->counter, d->words);
        d->is_made = true;
    }
    return d->words[column % 4] >= d->least;
}

#endif
