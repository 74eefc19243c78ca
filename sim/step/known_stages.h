/* Cache of priced stages (ms_stage), which many schedules of a search have in common. */
#ifndef MS_SIM_STEP_KNOWN_STAGES_H
#define MS_SIM_STEP_KNOWN_STAGES_H

#include "sim/step/stage.h"

#define MS_NUM_KNOWN_STAGES 64

typedef struct ms_known_stages {
    bool is_known[MS_NUM_KNOWN_STAGES];
    ms_stage_layout layout[MS_NUM_KNOWN_STAGES];
    ms_stage stage[MS_NUM_KNOWN_STAGES];
} ms_known_stages;

/* Empties the cache: required before the costs of the model's blocks change. */
void ms_known_stages_forget(ms_known_stages *known);

/* Makes a stage as ms_stage_make does, or takes it from the cache `known`, whose stages
 * all have the block costs `blocks`; NULL: no cache. */
void ms_known_stage_make(const ms_workload *workload, const ms_block_costs *blocks,
                         const ms_stage_layout *layout, ms_known_stages *known,
                         ms_stage *out);

#endif
