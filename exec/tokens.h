/* The tokens of a run: synthetic ones by a counter-based generator, or from a file.
 * Sequence i of step t is the same whatever the layout. */
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
    const int *labels; /* the token after each of from_file; NULL: the next one there */
    long num_from_file;
} ms_tokens;

/* Reads the tokens of a file into `tokens`, whose vocab and sequence_length must be set:
 * whitespace-separated numbers, or safetensors (by the first bytes of the file, or a name
 * that ends in .safetensors) with integers `input_ids` and `labels` [sequences,
 * sequence_length], labels already shifted. MS_EINPUT: what is no token of the vocabulary
 * (line and column), fewer tokens than one sequence and its next token, other names or
 * shapes. Steps go through the file from the start, around its end. */
ms_status ms_tokens_load(ms_ctx *cx, const char *path, ms_tokens *tokens);
/* Numbers as text from memory; `name` stands for the file in messages. */
ms_status ms_tokens_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                         ms_tokens *tokens);

/* How often `num_steps` steps go through the tokens of the file; 0: they are synthetic. */
double ms_tokens_passes(const ms_tokens *tokens, long num_steps);

/* inputs and targets (sequence_length) of a sequence of a step. Synthetic sequences can
 * be learned: nine times in ten a token follows from the one before it by a fixed rule,
 * so that the loss falls. Of a vocabulary above 256 they use 256 tokens, evenly spread. */
void ms_tokens_sequence(const ms_tokens *tokens, long step, long sequence, int *inputs,
                        int *targets);

#endif
