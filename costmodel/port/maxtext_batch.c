/* MaxText: repeats of a pipeline, and the batch, which it counts in sequences of a device. */
#include "costmodel/port/maxtext_priv.h"

#include <math.h>

bool ms_maxtext_has_dense_begin(const ms_model *model)
{
    return model->moe.num_experts > 0 && model->num_kinds > 1 &&
           model->kind_of_layer != NULL && model->num_layers > 0 &&
           !model->kinds[model->kind_of_layer[0]].moe;
}

static bool has_pipeline(const ms_plan *plan)
{
    return plan->size[MS_PP] > 1;
}

/* ---- pipeline ---- */

#define REPEATS "num_pipeline_repeats"
#define LAYERS  "num_layers_per_pipeline_stage"
#define PIPED   "pipeline_parallel_layers"

const char *const ms_maxtext_pipeline_keys[] = {REPEATS, LAYERS, PIPED, NULL};
const int ms_maxtext_pipeline_choices[] = {MS_CHOOSE_VIRTUAL_STAGES,
                                           MS_CHOOSE_STAGE_LAYERS, MS_CHOOSE_GROUP, -1};

static bool has_equal_layers(const ms_plan *plan)
{
    for (long i = 1; i < plan->num_stage_layers; i++)
        if (plan->layers_per_stage[i] != plan->layers_per_stage[0])
            return false;
    return true;
}

/* All micro-batches pass a chunk before the next: looped-bfs, or with one chunk gpipe. */
void ms_maxtext_put_pipeline(ms_port *port)
{
    const ms_plan *plan = port->plan;
    long stages = plan->size[MS_PP] * plan->virtual_stages;
    if (!has_pipeline(plan))
        return;
    bool looped = plan->schedule == MS_LOOPED_BFS;
    if (!looped && !(plan->schedule == MS_GPIPE && plan->virtual_stages == 1))
        ms_port_leave_choice(port, MS_CHOOSE_SCHEDULE);
    if (plan->microbatch_group > 0)
        ms_port_leave_choice(port, MS_CHOOSE_GROUP);
    if (!has_equal_layers(plan))
        ms_port_leave_choice(port, MS_CHOOSE_STAGE_LAYERS);
    else if (port->model->num_layers % stages != 0)
        ms_port_leave_out(port, "%ld layers over %ld stages", port->model->num_layers,
                          stages);
    if (ms_maxtext_has_dense_begin(port->model))
        ms_port_leave_out(port, "a pipeline with the dense layers of model %s",
                          port->model->name);
    ms_port_put_whole(port, REPEATS, plan->virtual_stages);
    ms_port_put_whole(port, LAYERS, port->model->num_layers / stages);
}

/* Repeats of the pipeline: those stated, or as many as the layers need. */
static ms_status take_repeats(ms_port *port, long layers, long per_stage, long *repeats)
{
    long stages = port->plan->size[MS_PP];
    MS_TRY(ms_port_take_whole(port, REPEATS, -1, 4096, repeats));
    if (*repeats <= 0)
        *repeats = layers / (stages * per_stage);
    if (layers == 0 || *repeats * stages * per_stage == layers)
        return MS_OK;
    const ms_port_setting *setting = ms_port_find(port, REPEATS);
    ms_loc loc = setting != NULL ? setting->loc : port->settings->rows[0].loc;
    ms_fail(port->cx, MS_EINPUT, loc,
            "%ld stages x %ld repeats x %ld layers a stage are not %ld layers", stages,
            *repeats, per_stage, layers);
    return ms_hint(port->cx, REPEATS " and " LAYERS " say how the layers are split");
}

ms_status ms_maxtext_take_pipeline(ms_port *port)
{
    ms_plan *plan = port->plan;
    long layers = port->model->num_layers, per_stage = 1, piped = -1, repeats = -1;
    MS_TRY(ms_port_take_whole(port, LAYERS, 1, 4096, &per_stage));
    MS_TRY(ms_port_take_whole(port, PIPED, -1, 4096, &piped));
    if (!has_pipeline(plan)) {
        (void)ms_port_has(port, REPEATS);
        return MS_OK;
    }
    if (ms_maxtext_has_dense_begin(port->model) || (piped > 0 && piped != layers))
        return ms_fail(port->cx, MS_EINPUT, port->settings->rows[0].loc,
                       "layers outside of the pipeline: no plan has them");
    MS_TRY(take_repeats(port, layers, per_stage, &repeats));
    plan->virtual_stages = repeats > 0 ? repeats : 1;
    ms_plan_set_schedule(plan, plan->virtual_stages > 1 ? MS_LOOPED_BFS : MS_GPIPE);
    if (!ms_port_has(port, REPEATS) && !ms_port_is_given(port, MS_CHOOSE_VIRTUAL_STAGES))
        ms_port_assume(port, REPEATS " %ld, as many as the layers need",
                       plan->virtual_stages);
    return MS_OK;
}

/* ---- batch ---- */

#define PER_DEVICE "per_device_batch_size"
#define STEPS      "gradient_accumulation_steps"
#define MICRO      "num_pipeline_microbatches"
#define LENGTH     "max_target_length"

const char *const ms_maxtext_batch_keys[] = {LENGTH, PER_DEVICE, STEPS, MICRO, NULL};
const int ms_maxtext_batch_choices[] = {MS_CHOOSE_GLOBAL_BATCH, MS_CHOOSE_MICROBATCH, -1};

/* The batch of a device: a fraction of which MaxText takes the whole part once it is
 * multiplied by the devices. */
static double per_device(long sequences, long gpus)
{
    double value = (double)sequences / (double)gpus;
    while ((long)((double)gpus * value) < sequences)
        value = nextafter(value, INFINITY);
    return value;
}

void ms_maxtext_put_batch(ms_port *port)
{
    const ms_plan *plan = port->plan;
    bool piped = has_pipeline(plan);
    long microbatches = ms_plan_microbatches(plan);
    long forward = plan->microbatch * ms_plan_data_parallel(plan);
    ms_port_put_whole(port, LENGTH, plan->sequence_length);
    ms_port_put_number(port, PER_DEVICE,
                       per_device(forward * (piped ? microbatches : 1), plan->gpus));
    if (piped)
        ms_port_put_whole(port, MICRO, microbatches);
    else
        ms_port_put_whole(port, STEPS, microbatches);
}

static void assume_batch(ms_port *port)
{
    if (!ms_port_has(port, LENGTH) && !ms_port_is_given(port, MS_CHOOSE_SEQUENCE_LENGTH))
        ms_port_assume(port, LENGTH " 2048");
    if (!ms_port_has(port, PER_DEVICE) && !ms_port_is_given(port, MS_CHOOSE_GLOBAL_BATCH))
        ms_port_assume(port, PER_DEVICE " 12");
}

/* Sets the micro-batch of a forward batch that is cut in `parts`. */
static ms_status cut_batch(ms_port *port, long forward, long parts)
{
    long ranks = ms_plan_data_parallel(port->plan) * parts;
    const ms_port_setting *setting = ms_port_find(port, PER_DEVICE);
    ms_loc loc = setting != NULL ? setting->loc : port->settings->rows[0].loc;
    if (forward < ranks || forward % ranks != 0) {
        return ms_fail(port->cx, MS_EINPUT, loc,
                       PER_DEVICE ": %ld sequences of a forward pass are no whole "
                                  "micro-batches of %ld data-parallel ranks%s",
                       forward, ranks / parts,
                       parts > 1 ? ms_arena_printf(port->cx->arena, " x %ld", parts)
                                 : "");
    }
    port->plan->microbatch = forward / ranks;
    return MS_OK;
}

ms_status ms_maxtext_take_batch(ms_port *port)
{
    ms_plan *plan = port->plan;
    double sequences = 12.0;
    long steps = 1, parts = -1, length = 2048;
    assume_batch(port);
    MS_TRY(ms_port_take_whole(port, LENGTH, 1, 4294967296, &length));
    MS_TRY(ms_port_take_number(port, PER_DEVICE, 0.0, 16777216.0, &sequences));
    MS_TRY(ms_port_take_whole(port, STEPS, 1, 16777216, &steps));
    MS_TRY(ms_port_take_whole(port, MICRO, -1, 16777216, &parts));
    bool piped = has_pipeline(plan);
    if (piped && steps > 1)
        return ms_port_fail(port, ms_port_find(port, STEPS),
                            "several flushes of the pipeline a step: no plan has them");
    parts = !piped ? 1 : parts > 0 ? parts : plan->size[MS_PP];
    if (piped && !ms_port_has(port, MICRO) &&
        !ms_port_is_given(port, MS_CHOOSE_MICROBATCH))
        ms_port_assume(port, MICRO " %ld, as many as stages", parts);
    long forward = (long)(sequences * (double)plan->gpus);
    if ((double)forward * (double)steps > ms_plan_fields[MS_CHOOSE_GLOBAL_BATCH].high)
        return ms_fail(port->cx, MS_EINPUT, port->settings->rows[0].loc,
                       "%ld x %ld sequences a step are too many", forward, steps);
    plan->sequence_length = length;
    plan->global_batch = forward * steps;
    return cut_batch(port, forward, parts);
}
