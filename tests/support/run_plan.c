#include "tests/support/run_plan.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

const ms_model *ms_run_model(ms_arena *arena, ms_make_model *make)
{
    ms_model *model = MS_NEW(arena, ms_model);
    *model = make();
    model->num_layers = 4;
    model->kind_of_layer = MS_NEW_ARRAY(arena, model->num_layers, unsigned char);
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
    ms_plan_settle(&plan);
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

/* GPUs of no profile are measured with fp64; times do not matter here. */
static void give_fp64(ms_arena *arena, ms_workload_parts *parts)
{
    ms_cluster *cluster = MS_NEW(arena, ms_cluster);
    ms_profile *profile = MS_NEW(arena, ms_profile);
    *cluster = *parts->cluster;
    *profile = *parts->profile;
    cluster->device.peak_flop_per_s[MS_FP64] = cluster->device.peak_flop_per_s[MS_FP32];
    profile->gemm[MS_FP64] = profile->gemm[MS_FP32];
    parts->cluster = cluster;
    parts->profile = profile;
}

typedef struct request {
    const ms_model *model;
    const ms_plan *plan;
    const char *stack;
    const ms_backend *backend;
    ms_faulty *faulty;
    const ms_runner_options *options;
} request;

static ms_status run_planned(ms_ctx *cx, const request *r, const ms_planned *planned,
                             ms_outcome *out)
{
    ms_world world = ms_world_make(cx->arena, r->plan);
    ms_backend_job job = {
        .backend = r->backend, .world = &world, .type = r->options->type};
    if (r->faulty != NULL)
        ms_faulty_wrap(r->faulty, &job);
    ms_status status = job.backend->open(cx, &job);
    if (status == MS_OK) {
        status = ms_runner_run(cx, &job, planned, r->options, out);
        job.backend->close(&job);
    }
    return status;
}

static ms_status run(ms_ctx *cx, const request *r, ms_outcome *out)
{
    ms_workload_parts parts = {.model = r->model};
    ms_workload *workload;
    ms_planned planned;
    MS_TRY(ms_cluster_load(cx, "hgx-h100", &parts.cluster));
    MS_TRY(ms_profile_load(cx, parts.cluster->device.profile, &parts.profile));
    give_fp64(cx->arena, &parts);
    MS_TRY(ms_stack_load(cx, r->stack, &parts.stack));
    MS_TRY(ms_workload_make(cx, &parts, r->plan, &workload));
    ms_planned_open(cx, workload, r->plan, &planned);
    ms_status status = run_planned(cx, r, &planned, out);
    ms_workload_close(workload);
    return status;
}

ms_status ms_run_plan(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                      const char *stack, const ms_backend *backend,
                      const ms_runner_options *options, ms_outcome *out)
{
    const request r = {model, plan, stack, backend, NULL, options};
    return run(cx, &r, out);
}

ms_status ms_run_plan_faulty(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                             ms_faulty *faulty, const ms_runner_options *options,
                             ms_outcome *out)
{
    const request r = {model, plan, "generic", faulty->inner, faulty, options};
    return run(cx, &r, out);
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
