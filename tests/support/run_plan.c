#include "tests/support/run_plan.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

const ms_model *ms_pubrun_model(ms_arena *arena, ms_make_model *make)
{
    ms_model *model = MS_NEW(arena, ms_model);
    *model = make();
    model->dropout = false; /* not executed */
    model->num_layers = 4;
    model->kind_of_layer = MS_NEW_ARRAY(arena, model->num_layers, unsigned char);
    return model;
}

const ms_model *ms_run_wide_model(ms_arena *arena, ms_make_model *make, int num_layers)
{
    ms_model *model = MS_NEW(arena, ms_model);
    *model = make();
    model->dropout = false;
    model->num_layers = num_layers;
    model->kind_of_layer = MS_NEW_ARRAY(arena, model->num_layers, unsigned char);
    model->hidden = 64;
    model->head_dim = model->value_head_dim = 8;
    model->ffn_hidden = 96;
    model->moe.ffn_hidden = model->moe.num_experts > 0 ? 32 : 0;
    return model;
}

ms_plan ms_run_base_plan(void)
{
    ms_plan plan = ms_plan_default(1);
    plan.sequence_length = MS_SMALL_SEQUENCE;
    plan.global_batch = 8;
    plan.microbatch = 8;
    plan.compute = MS_FP32;
    plan.zero = 0;
    ms_plan_fill_defaults(&plan);
    return plan;
}

ms_runner_options ms_run_options(const ms_model *model, const ms_plan *plan,
                                 ms_real_type type)
{
    return (ms_runner_options){.type = type,
                               .num_steps = 1,
                               .initial = {.seed = 3, .deviation = 0.1, .spread = 0.2},
                               .tokens = {.seed = 5,
                                          .vocab = model->vocab,
                                          .sequence_length = plan->sequence_length,
                                          .global_batch = plan->global_batch},
                               .optimizer = {.learning_rate = 1e-3,
                                             .beta1 = 0.9,
                                             .beta2 = 0.95,
                                             .epsilon = 1e-6,
                                             .weight_decay = 0.1},
                               .clip_norm = 1.0,
                               .wants_weights = true,
                               .wants_gradients = true,
                               .wants_updated = true};
}

/* Gives a cluster and profile rates of fp64 and fp4, those of fp32, so that such plans can
 * be opened; predicted times do not matter. */
static void give_rates(ms_arena *arena, ms_workload_inputs *inputs)
{
    static const ms_dtype types[] = {MS_FP64, MS_FP4};
    ms_cluster *cluster = MS_NEW(arena, ms_cluster);
    ms_profile *profile = MS_NEW(arena, ms_profile);
    *cluster = *inputs->cluster;
    *profile = *inputs->profile;
    for (int i = 0; i < 2; i++) {
        double *peaks = cluster->device.peak_flop_per_s;
        peaks[types[i]] = peaks[MS_FP32];
        profile->gemm[types[i]] = profile->gemm[MS_FP32];
    }
    inputs->cluster = cluster;
    inputs->profile = profile;
}

ms_status ms_run_open(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                      const char *stack, ms_run_opened *out)
{
    ms_workload_inputs inputs = {.model = model};
    ms_planned *planned = MS_NEW(cx->arena, ms_planned);
    ms_world *world = MS_NEW(cx->arena, ms_world);
    MS_TRY(ms_cluster_load(cx, "hgx-h100", &inputs.cluster));
    MS_TRY(ms_profile_load(cx, inputs.cluster->device.profile, &inputs.profile));
    give_rates(cx->arena, &inputs);
    MS_TRY(ms_stack_load(cx, stack, &inputs.stack));
    MS_TRY(ms_workload_make(cx, &inputs, plan, &out->workload));
    ms_planned_open(cx, out->workload, plan, planned);
    *world = ms_world_make(cx->arena, plan);
    world->ties_embeddings = ms_head_shares_weights(out->workload);
    out->planned = planned;
    out->world = world;
    return MS_OK;
}

void ms_run_close(ms_run_opened *opened)
{
    ms_workload_close(opened->workload);
}

static ms_status run_job(ms_ctx *cx, ms_backend_job *job, const ms_run_opened *opened,
                         const ms_runner_options *options, ms_outcome *out)
{
    MS_TRY(job->backend->open(cx, job));
    ms_status status = ms_runner_run(cx, job, opened->planned, options, out);
    /* frees the recorded events, which tests do not read */
    for (long i = 0; i < out->num_ranks; i++)
        ms_recorder_close(&out->ranks[i].recorder);
    job->backend->close(job);
    return status;
}

ms_status ms_run_opened_plan(ms_ctx *cx, const ms_run_opened *opened,
                             const ms_backend *backend, const ms_runner_options *options,
                             ms_outcome *out)
{
    /* longer timeout, as more ranks run than the machine has cores */
    const double patience_s = 5 * MS_DEFAULT_TIMEOUT_S;
    ms_backend_job job = {.backend = backend,
                          .world = opened->world,
                          .type = options->type,
                          .timeout_s = patience_s};
    return run_job(cx, &job, opened, options, out);
}

ms_status ms_run_plan(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                      const char *stack, const ms_backend *backend,
                      const ms_runner_options *options, ms_outcome *out)
{
    ms_run_opened opened;
    MS_TRY(ms_run_open(cx, model, plan, stack, &opened));
    ms_status status = ms_run_opened_plan(cx, &opened, backend, options, out);
    ms_run_close(&opened);
    return status;
}

ms_status ms_run_plan_faulty(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                             ms_faulty *faulty, const ms_runner_options *options,
                             ms_outcome *out)
{
    ms_run_opened opened;
    MS_TRY(ms_run_open(cx, model, plan, "generic", &opened));
    ms_backend_job job = {
        .backend = faulty->inner, .world = opened.world, .type = options->type};
    ms_faulty_wrap(faulty, &job);
    ms_status status = run_job(cx, &job, &opened, options, out);
    ms_run_close(&opened);
    return status;
}

static double tensor_difference(const ms_safe_tensor *got, const ms_safe_tensor *want)
{
    double largest = 1e-6, difference = 0.0;
    if (strcmp(got->name, want->name) != 0 || got->count != want->count)
        return HUGE_VAL;
    for (long i = 0; i < want->count; i++) {
        if (isnan(got->values[i]) || isnan(want->values[i]))
            return HUGE_VAL;
        largest = ms_max(largest, fabs(want->values[i]));
        difference = ms_max(difference, fabs(got->values[i] - want->values[i]));
    }
    return difference / largest;
}

double ms_run_difference(const ms_safe_file *got, const ms_safe_file *want,
                         const char **worst)
{
    double most = got->num_tensors == want->num_tensors ? 0.0 : HUGE_VAL;
    for (int i = 0; most < HUGE_VAL && i < want->num_tensors; i++) {
        double difference = tensor_difference(&got->tensors[i], &want->tensors[i]);
        if (difference >= most && worst != NULL)
            *worst = want->tensors[i].name;
        most = ms_max(most, difference);
    }
    return most;
}

double ms_run_relative_norm(const ms_safe_file *got, const ms_safe_file *want)
{
    double squares = 0.0, of_difference = 0.0;
    if (got->num_tensors != want->num_tensors)
        return HUGE_VAL;
    for (int i = 0; i < want->num_tensors; i++) {
        const ms_safe_tensor *x = &got->tensors[i], *y = &want->tensors[i];
        if (strcmp(x->name, y->name) != 0 || x->count != y->count)
            return HUGE_VAL;
        for (long j = 0; j < y->count; j++) {
            double difference = x->values[j] - y->values[j];
            squares += y->values[j] * y->values[j];
            of_difference += difference * difference;
        }
    }
    double relative = sqrt(of_difference / squares);
    return isnan(relative) ? HUGE_VAL : relative;
}
