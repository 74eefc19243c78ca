/* The tokens of a run: synthetic ones by a counter-based generator, or from a file. Sequence i of step t is the same whatever the layout. */
#ifndef MS_EXEC_TOKENS_H
#define MS_EXEC_TOKENS_H

#include "base/diag.h"

#include <stdint.h>

typedef struct ms_tokens {
    uint64_t seed;
    long vocab;
    long sequence_length;
    long global_batch;    /* sequences a step */
    const int *from_file; /* NULL: synthetic */
    long num_from_file;
} ms_tokens;

/* A file of whitespace-separated numbers, or (ending in .safetensors) of `input_ids` and `labels`. MS_EINPUT: a token outside of the vocabulary (line and column),
 * fewer tokens than one sequence and its next token. Steps go through the file from the start, around its end. */
ms_status ms_tokens_load(ms_ctx *cx, const char *path, ms_tokens *tokens);
/* inputs and targets (sequence_length) of a sequence of a step. Synthetic sequences can be learned: each token follows from the one before it by a rule,
 * with some noise, so that the loss falls. */
void ms_tokens_sequence(const ms_tokens *tokens, long step, long sequence, int *inputs,
                        int *targets);

#endif
