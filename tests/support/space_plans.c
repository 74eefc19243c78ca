#include "tests/support/space_plans.h"

#include "sim/step/framework_rules.h"

#include <string.h>

ms_space_draw ms_space_draw_open(ms_arena *arena, const ms_space *space,
                                 ms_workload *workload)
{
    ms_space_draw draw = {.space = space, .workload = workload};
    draw.num_meshes = ms_space_meshes(space, workload->model, arena, &draw.meshes,
                                      (long[MS_NUM_REFUSALS]){0});
    return draw;
}

/* ---- single choices ---- */

static long below(ms_rng *rng, long end)
{
    return (long)ms_rng_below(rng, (uint64_t)end);
}

static void draw_mesh(const ms_space_draw *d, ms_rng *rng, ms_plan *plan)
{
    const ms_mesh_choice *mesh = &d->meshes[below(rng, d->num_meshes)];
    memcpy(plan->size, mesh->size, sizeof plan->size);
    plan->ep = mesh->ep;
    plan->etp = mesh->etp;
}

static void draw_order(const ms_space_draw *d, ms_rng *rng, ms_plan *plan)
{
    (void)d;
    for (int i = MS_NUM_PLAN_AXES - 1; i > 0; i--) {
        long other = below(rng, i + 1);
        unsigned char axis = plan->order[i];
        plan->order[i] = plan->order[other];
        plan->order[other] = axis;
    }
}

static void draw_microbatch(const ms_space_draw *d, ms_rng *rng, ms_plan *plan)
{
    long local = d->space->base.global_batch / ms_plan_data_parallel(plan);
    long most = local < d->space->max_microbatch ? local : d->space->max_microbatch;
    plan->microbatch = 1 + below(rng, most > 0 ? most : 1);
}

static void draw_words(const ms_space_draw *d, ms_rng *rng, ms_plan *plan)
{
    const ms_choice_list *lists[] = {&d->space->layers, &d->space->prices};
    for (int l = 0; l < 2; l++)
        for (int i = 0; i < lists[l]->num; i++)
            ms_plan_set(plan, lists[l]->of[i],
                        below(rng, ms_choice_last(lists[l]->of[i]) + 1));
}

static void draw_schedule(const ms_space_draw *d, ms_rng *rng, ms_plan *plan)
{
    plan->schedule = (ms_schedule_kind)below(rng, MS_CUSTOM);
    plan->virtual_stages = 1 + below(rng, d->space->max_virtual_stages);
    plan->microbatch_group = 0;
}

static void draw_sharding(const ms_space_draw *d, ms_rng *rng, ms_plan *plan)
{
    (void)d;
    plan->zero = below(rng, 4);
    plan->reshard_after_forward = plan->zero < 3 || below(rng, 2) == 0;
}

static void draw_recompute(const ms_space_draw *d, ms_rng *rng, ms_plan *plan)
{
    ms_plan_set_layer_mode(plan, (ms_layer_mode)below(rng, MS_NUM_LAYER_MODES));
    plan->recompute_layers = 0;
    if (plan->recompute == MS_RECOMPUTE_FULL && below(rng, 2) == 0)
        plan->recompute_layers = 1 + below(rng, d->workload->model->num_layers);
}

static void (*const draws[])(const ms_space_draw *, ms_rng *, ms_plan *) = {
    draw_mesh,     draw_order,    draw_microbatch, draw_words,
    draw_schedule, draw_sharding, draw_recompute};
#define NUM_DRAWS ((long)(sizeof draws / sizeof *draws))

/* ---- whole plans ---- */

/* Gives choices without effect their defaults, as the search does. */
static void make_plain(const ms_space_draw *d, ms_plan *plan)
{
    const ms_choice_list *lists[] = {&d->space->layers, &d->space->prices};
    for (int l = 0; l < 2; l++)
        for (int i = 0; i < lists[l]->num; i++)
            if (!ms_plan_matters(plan, lists[l]->of[i]))
                ms_plan_reset(plan, lists[l]->of[i]);
    if (!plan->sequence_parallel)
        plan->async_tp = false;
    if (plan->size[MS_PP] == 1) {
        plan->schedule = MS_1F1B;
        plan->virtual_stages = 1;
    }
    ms_space_plain_order(plan);
}

static bool has_words(const ms_space_draw *d, const ms_plan *plan)
{
    const ms_choice_list *lists[] = {&d->space->layers, &d->space->prices};
    for (int l = 0; l < 2; l++) {
        for (int i = 0; i < lists[l]->num; i++) {
            ms_choice choice = lists[l]->of[i];
            const ms_plan_field *field = &ms_plan_fields[choice];
            if (ms_plan_matters(plan, choice) && field->can != NULL &&
                !field->can(d->space->stack, ms_plan_get(plan, choice)))
                return false;
        }
    }
    return true;
}

static bool is_in_space(const ms_space_draw *d, const ms_plan *plan)
{
    const ms_model *model = d->workload->model;
    bool shards = plan->size[MS_DP_SHARD] * plan->size[MS_CP] > 1;
    return ms_plan_refusal(plan, model) == MS_LEGAL &&
           !ms_plan_copies_kv_heads(plan, model) && has_words(d, plan) &&
           ms_space_tries_schedule(d->space, model, plan->size[MS_PP], plan->schedule,
                                   plan->virtual_stages) &&
           ms_space_tries_sharding(d->space, shards, plan->zero,
                                   plan->reshard_after_forward) &&
           ms_space_tries_layer_mode(d->space, ms_plan_layer_mode(plan)) &&
           ms_workload_broken_rule(d->workload, plan) == NULL;
}

bool ms_space_draw_plan(const ms_space_draw *draw, ms_rng *rng, const ms_plan *near,
                        ms_plan *out)
{
    *out = near != NULL ? *near : draw->space->base;
    out->num_stage_layers = 0;
    out->layers_per_stage = NULL;
    for (long i = 0; near == NULL && i < NUM_DRAWS; i++)
        draws[i](draw, rng, out);
    for (long i = near != NULL ? 1 + below(rng, 2) : 0; i > 0; i--)
        draws[below(rng, NUM_DRAWS)](draw, rng, out);
    make_plain(draw, out);
    return is_in_space(draw, out);
}
