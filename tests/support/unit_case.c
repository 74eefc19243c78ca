#include "tests/support/unit_case.h"

#include "exec/core/plan_types.h"

#include "sim/step/step.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

const ms_unit_sharding ms_unit_shardings[MS_NUM_UNIT_SHARDINGS] = {
    {"zero 0", 0, true}, {"zero 1", 1, true},       {"zero 2", 2, true},
    {"zero 3", 3, true}, {"zero 3 kept", 3, false},
};

/* ---- a case ---- */

ms_model ms_unit_case_model(ms_arena *arena, ms_make_model *make, bool tied, long vocab)
{
    ms_model model = make();
    model.tied_embeddings = tied;
    model.vocab = vocab;
    model.kind_of_layer = MS_NEW_ARRAY(arena, model.num_layers, unsigned char);
    return model;
}

static ms_plan plan_of(const ms_unit_layout *l, ms_sharding sharding)
{
    ms_plan plan = ms_plan_default(l->pp * l->dp_replicate * l->dp_shard * l->cp * l->tp);
    const long size[MS_NUM_PLAN_AXES] = {l->pp, l->dp_replicate, l->dp_shard, l->cp,
                                         l->tp};
    memcpy(plan.size, size, sizeof size);
    plan.ep = l->ep;
    plan.etp = l->etp;
    plan.sequence_length = MS_SMALL_SEQUENCE;
    plan.microbatch = 1;
    plan.global_batch = 4 * l->dp_replicate * l->dp_shard;
    plan.zero = ms_unit_shardings[sharding].zero;
    plan.reshard_after_forward = ms_unit_shardings[sharding].reshard;
    plan.sequence_parallel = true;
    plan.optimizer = l->optimizer;
    return plan;
}

/* A stack with the runner's bytes per parameter in fp64. */
static const ms_stack *stack_of(ms_ctx *cx)
{
    const ms_stack *generic;
    ASSERT_OK(ms_stack_load(cx, "generic", &generic), cx);
    ms_stack *stack = MS_NEW(cx->arena, ms_stack);
    *stack = *generic;
    stack->param_bytes.value = stack->grad_bytes.value = 8;
    stack->param_comm_bytes.value = stack->grad_comm_bytes.value = 8;
    stack->master_bytes.value = stack->head_grad_bytes.value = 0;
    stack->moment_bytes.value = 16;
    return stack;
}

/* Sets the largest unit of a rank, for which embedding and head count, too. */
static void set_largest_unit(const ms_unit_case *s, int pipeline_rank, ms_rank_load *load)
{
    const ms_stage_blocks *blocks = &s->whole->parts[pipeline_rank];
    load->unit_dense_params = load->unit_expert_params = 0.0;
    for (int i = 0; i < blocks->num; i++) {
        const ms_block_cost *part = blocks->blocks[i]->block;
        double dense = part->dense_params;
        if (blocks->blocks[i]->program->key.block == MS_BLOCK_HEAD)
            /* the head uses a tied matrix, too */
            dense = s->planned.blocks.head.dense_params;
        load->unit_dense_params = fmax(load->unit_dense_params, dense);
        load->unit_expert_params = fmax(load->unit_expert_params, part->expert_params);
    }
}

ms_unit_case *ms_unit_case_open(ms_ctx *cx, const ms_model *model,
                                const ms_unit_layout *layout, ms_sharding sharding)
{
    ms_unit_case *s = MS_NEW(cx->arena, ms_unit_case);
    s->layout = layout;
    s->plan = plan_of(layout, sharding);
    ms_workload_inputs inputs = {.model = model, .stack = stack_of(cx)};
    ASSERT_OK(ms_cluster_load(cx, "hgx-h100", &inputs.cluster), cx);
    ASSERT_OK(ms_profile_load(cx, inputs.cluster->device.profile, &inputs.profile), cx);
    ASSERT_OK(ms_plan_check(cx, &s->plan, model, MS_NOWHERE), cx);
    ASSERT_OK(ms_workload_make(cx, &inputs, &s->plan, &s->workload), cx);
    ms_planned_open(cx, s->workload, &s->plan, &s->planned);
    s->world = ms_world_make(cx->arena, &s->plan);
    ms_initial initial = {.seed = 7, .deviation = 0.02, .spread = 0.1};
    s->whole = ms_whole_make(cx->arena, &s->planned, &s->world, initial);
    for (int rank = 0; rank < layout->pp; rank++) {
        s->loads[rank] = ms_planned_load(cx, &s->planned, rank);
        set_largest_unit(s, rank, &s->loads[rank]);
    }
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

ms_status ms_unit_case_run(ms_ctx *cx, ms_unit_case *s, ms_rank_main *main)
{
    ms_backend_job job = {
        .backend = &ms_backend_loop, .world = &s->world, .type = MS_REAL_FP64};
    MS_TRY(job.backend->open(cx, &job));
    ms_status status = job.backend->run(cx, &job, main, s);
    job.backend->close(&job);
    return status;
}

/* ---- units of a rank ---- */

static ms_status make_unit(ms_held *h, int stage, int part)
{
    const ms_unit_case *s = h->of;
    const ms_block_ops *ops = s->whole->parts[stage].blocks[part];
    const ms_program *program = ops->program;
    bool uses_embedding = h->num > 0 && program->key.block == MS_BLOCK_HEAD &&
                          program->model->tied_embeddings &&
                          h->parts[0]->program->key.block == MS_BLOCK_EMBED;
    ms_unit_options options = {.program = program,
                               .ops = ops,
                               .layer = ms_whole_layer(s->whole, stage, part),
                               .tied = uses_embedding ? h->units[0] : NULL,
                               .is_copy = s->layout->twins && h->rank.place->pp == 1};
    int at = h->num++;
    h->parts[at] = ops;
    h->layers[at] = options.layer;
    h->cells[at] = MS_NEW_ARRAY(h->rank.cx->arena, program->num_tensors, ms_local);
    for (int t = 0; t < program->num_tensors; t++)
        if (program->tensors[t].role == MS_ROLE_WEIGHT)
            h->cells[at][t] = ms_world_local(&s->world, program, t, h->rank.place);
    return ms_unit_make(&h->rank, &options, &h->units[at]);
}

static ms_status make_units(ms_held *h)
{
    const ms_unit_case *s = h->of;
    int first = s->layout->twins ? 0 : (int)h->rank.place->pp;
    int last = s->layout->twins ? (int)s->layout->pp - 1 : first;
    for (int stage = first; stage <= last; stage++)
        for (int i = 0; i < s->whole->parts[stage].num; i++)
            MS_TRY(make_unit(h, stage, i));
    return ms_unit_buffers_make(&h->rank, h->units, h->num, &h->buffers);
}

static ms_status check_ledger(const ms_held *h)
{
    const ms_unit_case *s = h->of;
    static const ms_memory_category checked[] = {MS_MEMORY_PARAMS, MS_MEMORY_GRADS,
                                                 MS_MEMORY_OPTIMIZER,
                                                 MS_MEMORY_GATHERED_PARAMS};
    double want[MS_NUM_MEMORY_CATEGORIES];
    ms_rank_memory(s->workload, &s->loads[h->rank.place->pp], s->planned.sharding,
                   &s->planned.pipeline.shards, want);
    for (size_t i = 0; i < sizeof checked / sizeof *checked; i++) {
        double got = h->rank.ledger.now_bytes[checked[i]];
        /* sums of rows and columns are padded to shards: 8 bytes in each segment */
        double pad_bytes = s->layout->uneven ? HUGE_VAL
                           : s->plan.optimizer == MS_OPTIMIZER_ADAFACTOR
                               ? 8.0 * 4.0 * h->num
                               : 0.0;
        bool padded = got >= want[checked[i]] && got <= want[checked[i]] + pad_bytes;
        if (got != want[checked[i]] && !padded && !s->layout->twins)
            return ms_fail(h->rank.cx, MS_ECHECK, MS_NOWHERE, "%s: %.0f bytes, not %.0f",
                           ms_memory_category_names[checked[i]], got, want[checked[i]]);
    }
    return MS_OK;
}

ms_status ms_held_open(ms_held *h, ms_unit_case *of, ms_ctx *cx, ms_device_rank *device,
                       long rank, const ms_backend *backend)
{
    *h = (ms_held){.of = of,
                   .rank = {.cx = cx,
                            .world = &of->world,
                            .place = &of->world.places[rank],
                            .planned = &of->planned,
                            .backend = backend,
                            .device = device,
                            .precision = ms_precision_of_plan(MS_REAL_FP64, &of->plan)}};
    MS_TRY(make_units(h));
    return check_ledger(h);
}

ms_status ms_held_close(ms_held *h)
{
    ms_unit_buffers_close(&h->rank, h->buffers);
    for (int i = h->num - 1; i >= 0; i--)
        ms_unit_close(&h->rank, h->units[i]);
    if (h->rank.ledger.now_total_bytes != 0.0 || h->rank.ledger.workspace_bytes != 0.0)
        return ms_fail(h->rank.cx, MS_ECHECK, MS_NOWHERE, "%.0f bytes are left",
                       h->rank.ledger.now_total_bytes + h->rank.ledger.workspace_bytes);
    return MS_OK;
}

ms_status ms_held_wait(ms_held *h, ms_event event)
{
    return h->rank.backend->wait(h->rank.cx, h->rank.device, event);
}

ms_status ms_held_check_weights(ms_held *h, int at)
{
    const ms_program *program = h->parts[at]->program;
    ms_unit_bind(h->units[at], h->cells[at]);
    for (int t = 0; t < program->num_tensors; t++) {
        ms_weight_name name;
        const ms_local *local = &h->cells[at][t];
        if (program->tensors[t].role != MS_ROLE_WEIGHT)
            continue;
        ms_weight_name_of(program, t, h->layers[at], &name);
        ms_whole_cursor cursor = {h->of->whole, &name, local, -1, NULL};
        for (long e = 0; e < local->count; e++) {
            long place = ms_whole_place(&cursor, e);
            double got = ((const double *)local->data)[e];
            double want = place >= 0 ? cursor.tensor->initial[place] : 0.0;
            if (got != want)
                return ms_fail(h->rank.cx, MS_ECHECK, MS_NOWHERE,
                               "%s[%ld] is used as %.17g, not %.17g", name.name, place,
                               got, want);
        }
    }
    return MS_OK;
}
