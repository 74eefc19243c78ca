/* Sequences of unequal lengths in a run: which tokens are packed into one row, or real in
 * a padded one. Lengths depend only on seed, step and row, whatever the parallelization. */
#ifndef MS_EXEC_PARAMS_DOCUMENTS_H
#define MS_EXEC_PARAMS_DOCUMENTS_H

#include "costmodel/plan/sequence_lengths.h"

#include <stdint.h>

typedef struct ms_documents {
    ms_packing packing;
    const ms_lengths *lengths; /* unused if not packed or padded */
    uint64_t seed;
    long sequence_length, global_batch; /* a row's tokens; rows of a step */
} ms_documents;

/* Packed: writes for each position of a row the position at which its sequence starts
 * (sequence_length). Lengths are drawn until the row is full; the last is cut. */
void ms_documents_starts(const ms_documents *documents, long step, long row, int *starts);

/* Tokens of a row that are no padding. */
long ms_documents_tokens(const ms_documents *documents, long step, long row);
/* Sum of ms_documents_tokens over all rows of a step. */
double ms_documents_step_tokens(const ms_documents *documents, long step);

#endif
