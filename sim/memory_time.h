/* What a rank keeps over a step: activations come with a forward and go with the backward
 * that uses them, half of them with its first half. */
#ifndef MS_SIM_MEMORY_TIME_H
#define MS_SIM_MEMORY_TIME_H

#include "sim/step_graph.h"

typedef struct ms_memory_track {
    int num_samples; /* in the order of time; the first is at 0 */
    const ms_memory_sample *samples;
    int peak_sample;
    double peak_bytes;
    int peak_task; /* the action during which it is reached */
} ms_memory_track;

/* Of an actor of a pipeline rank, from the times of its actions and its update. States,
 * gathered parameters and buffers are as ms_rank_memory has them and stay; during a
 * backward its transients are there from its start to its end. The peak is that of
 * ms_planned_load. In the first step the optimizer's moments come with the update
 * (PyTorch, torch/optim/adam.py, _init_group: states are made by the first step), when
 * activations are gone; master weights are there from the start. Lives in cx->arena. */
ms_memory_track ms_memory_over_time(ms_ctx *cx, const ms_simulation *sim,
                                    int pipeline_rank, const ms_action_span *spans,
                                    int optimizer);

#endif
