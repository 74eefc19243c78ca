#include "sim/step/known_stages.h"

#include <string.h>

void ms_known_stages_forget(ms_known_stages *known)
{
    memset(known->is_known, 0, sizeof known->is_known);
}

static bool is_same(const ms_stage_layout *a, const ms_stage_layout *b)
{
    return a->first_layer == b->first_layer && a->num_layers == b->num_layers &&
           a->has_embedding == b->has_embedding && a->has_head == b->has_head &&
           a->head_beside_embedding == b->head_beside_embedding && a->mode == b->mode &&
           a->recompute_layers == b->recompute_layers &&
           a->compute_alone == b->compute_alone;
}

static unsigned slot_of(const ms_stage_layout *layout)
{
    unsigned hash = (unsigned)layout->first_layer;
    hash = hash * 31U + (unsigned)layout->num_layers;
    hash = hash * 31U + (unsigned)layout->mode;
    hash = hash * 31U + (unsigned)layout->recompute_layers;
    hash = 2U * hash + layout->head_beside_embedding;
    hash = 2U * hash + layout->compute_alone;
    return (hash * 2654435761U >> 16) % MS_NUM_KNOWN_STAGES;
}

void ms_known_stage_make(const ms_workload *workload, const ms_block_costs *blocks,
                         const ms_stage_layout *layout, ms_known_stages *known,
                         ms_stage *out)
{
    if (known == NULL) {
        ms_stage_make(workload, blocks, layout, out);
        return;
    }
    unsigned i = slot_of(layout);
    if (!known->is_known[i] || !is_same(&known->layout[i], layout)) {
        ms_stage_make(workload, blocks, layout, &known->stage[i]);
        known->layout[i] = *layout;
        known->is_known[i] = true;
    }
    *out = known->stage[i];
}
