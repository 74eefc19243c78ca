/* Memory of a rank over a step: saved activations appear with a forward and disappear
 * with its backward; in a split backward, part of them after its first half. */
#ifndef MS_SIM_SIMULATE_MEMORY_TIME_H
#define MS_SIM_SIMULATE_MEMORY_TIME_H

#include "sim/simulate/step_graph.h"

typedef struct ms_memory_track {
    int num_samples; /* number of samples, ordered by time; the first is at time 0 */
    const ms_memory_sample *samples;
    int peak_sample;
    double peak_bytes;
    /* task at whose start or end memory peaks; 0: start of the step */
    int peak_task;
} ms_memory_track;

/* Memory over the step of a simulated rank on `pipeline_rank`. Times are those of the
 * tasks of its schedule actions (`spans`) and of its update, task `optimizer`. States,
 * gathered parameters and buffers keep the sizes of ms_rank_memory; transient tensors of
 * a backward exist from its start to its end. The peak is that of ms_planned_load. With
 * options.first_step the optimizer's moments exist only from the update on, when
 * activations are gone (PyTorch, torch/optim/adam.py, _init_group: the first step creates
 * them); master weights exist from the start. The result lives in cx->arena. */
ms_memory_track ms_memory_over_time(ms_ctx *cx, const ms_simulation *sim,
                                    int pipeline_rank, const ms_action_span *spans,
                                    int optimizer);

#endif
