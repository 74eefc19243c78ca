/* Training tokens of a run, synthetic or from a file, whatever the parallelization. */
#ifndef MS_EXEC_PARAMS_TOKENS_H
#define MS_EXEC_PARAMS_TOKENS_H

#include "base/diag.h"

#include <stdint.h>

typedef struct ms_tokens {
    uint64_t seed;
    long vocab;
    long sequence_length;
    long global_batch;    /* sequences per step */
    const int *from_file; /* tokens of a file; NULL if synthetic */
    const int *labels;    /* target of each token of from_file; NULL: the next token */
    long num_from_file;
} ms_tokens;

/* Reads tokens from a text file of numbers, or from safetensors (known by first bytes or
 * file ending) with integer tensors `input_ids` and `labels` [sequences,
 * sequence_length], labels already shifted. `tokens` must have vocab and sequence_length
 * set. MS_EINPUT, with line and column, for a word that is no token of the vocabulary,
 * for fewer than sequence_length + 1 tokens, for other tensors. A run begins again at the
 * file's end. */
ms_status ms_tokens_load(ms_ctx *cx, const char *path, ms_tokens *tokens);
/* Parses tokens from text in memory; `name` stands for the file in messages. */
ms_status ms_tokens_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                         ms_tokens *tokens);

/* Epochs: how often num_steps steps pass through the file's tokens; 0 if synthetic. */
double ms_tokens_passes(const ms_tokens *tokens, long num_steps);

/* Writes the inputs and targets (sequence_length each) of one sequence of a step.
 * Synthetic ones can be learned: a fixed rule gives nine in ten tokens from the one
 * before. They use at most 256 tokens, evenly spread over the vocabulary. */
void ms_tokens_sequence(const ms_tokens *tokens, long step, long sequence, int *inputs,
                        int *targets);

#endif
