#include "sim/step/step.h"

ms_stage *ms_pipeline_stages(ms_arena *arena, const ms_pipeline *pipeline)
{
    const ms_split *split = pipeline->split;
    ms_stage *stages = MS_TAKE_ARRAY(arena, split->num_classes, ms_stage);
    for (int i = 0; i < split->num_classes; i++) {
        int s = split->stage_of_class[i];
        ms_stage_layout layout =
            ms_split_layout(split, s, pipeline->mode, pipeline->recompute_layers);
        ms_prices own = ms_pipeline_prices(pipeline, s);
        ms_stage_make(own.workload, own.blocks, &layout, &stages[i]);
    }
    return stages;
}

ms_rank_load ms_pipeline_load(const ms_pipeline *pipeline, const ms_rank_sides *sides,
                              const ms_rank_live *live)
{
    const ms_stack *stack = pipeline->workload->stack;
    int num_microbatches = ms_schedule_stage_microbatches(&pipeline->shape);
    double buffer_bytes = ms_message_buffer_bytes(
        stack, sides, pipeline->blocks->send_bytes, num_microbatches);
    buffer_bytes +=
        ms_held_output_bytes(stack, pipeline->stages, live->run, num_microbatches) +
        pipeline->blocks->held_bytes;
    ms_rank_load load;
    ms_rank_load_make(pipeline->stages, live, buffer_bytes, &load);
    load.is_only_backward = num_microbatches == 1;
    return load;
}
