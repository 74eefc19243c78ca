#include "exec/params/documents.h"

#include "base/rng.h"

#include <math.h>

/* A stream of its own: tokens are drawn from the seed itself. */
#define STREAM 0x6c656e67746873ULL

static ms_rng rng_of(const ms_documents *documents, long step, long row)
{
    ms_rng rng = ms_rng_split(ms_rng_seed(documents->seed), STREAM);
    return ms_rng_split(ms_rng_split(rng, (uint64_t)step), (uint64_t)row);
}

/* Draws a length: the first whose probability of being reached is above a uniform number. */
static long draw(const ms_lengths *lengths, ms_rng *rng)
{
    double uniform = ms_rng_uniform(rng);
    int low = 0, high = lengths->num - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (lengths->at_most[middle] > uniform)
            high = middle;
        else
            low = middle + 1;
    }
    return lround(fmax(lengths->tokens[low], 1.0));
}

void ms_documents_starts(const ms_documents *documents, long step, long row, int *starts)
{
    ms_rng rng = rng_of(documents, step, row);
    long end = 0, start = 0;
    for (long i = 0; i < documents->sequence_length; i++) {
        if (i == end) {
            start = end;
            end += draw(documents->lengths, &rng);
        }
        starts[i] = (int)start;
    }
}

long ms_documents_tokens(const ms_documents *documents, long step, long row)
{
    if (documents->packing != MS_PADDED_TO_SEQUENCE)
        return documents->sequence_length;
    ms_rng rng = rng_of(documents, step, row);
    return draw(documents->lengths, &rng);
}

double ms_documents_step_tokens(const ms_documents *documents, long step)
{
    double sum = 0.0;
    for (long row = 0; row < documents->global_batch; row++)
        sum += (double)ms_documents_tokens(documents, step, row);
    return sum;
}
