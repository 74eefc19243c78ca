#include "costmodel/cost/collective_algorithm.h"

#include <assert.h>
#include <string.h>

static const ms_algorithm_row *const rows[MS_NUM_ALGORITHMS] = {
    [MS_ALGORITHM_RING] = &ms_algorithm_ring,
    [MS_ALGORITHM_TREE] = &ms_algorithm_tree,
    [MS_ALGORITHM_NVLS] = &ms_algorithm_nvls,
    [MS_ALGORITHM_DIRECT] = &ms_algorithm_direct,
    [MS_ALGORITHM_SEND] = &ms_algorithm_send,
};

const ms_algorithm_row *ms_algorithm_row_of(ms_algorithm algorithm)
{
    assert(algorithm > MS_ALGORITHM_NONE && algorithm < MS_NUM_ALGORITHMS);
    return rows[algorithm];
}

const char *ms_algorithm_name(ms_algorithm algorithm)
{
    return algorithm == MS_ALGORITHM_NONE ? "" : ms_algorithm_row_of(algorithm)->name;
}

bool ms_algorithm_parse(const char *text, ms_algorithm *out)
{
    for (int i = MS_ALGORITHM_NONE + 1; i < MS_NUM_ALGORITHMS; i++) {
        bool is_alias = rows[i]->alias != NULL && strcmp(rows[i]->alias, text) == 0;
        if (is_alias || strcmp(rows[i]->name, text) == 0) {
            *out = (ms_algorithm)i;
            return true;
        }
    }
    return false;
}

double ms_algorithm_nic_frac(ms_algorithm algorithm, const ms_span *span)
{
    if (span->tier == 0 || span->size <= 1)
        return 0.0;
    const ms_algorithm_row *row = ms_algorithm_row_of(algorithm);
    return row->nic_frac == NULL
               ? 0.0
               : row->nic_frac((double)span->size, (double)span->per_domain[0]);
}
