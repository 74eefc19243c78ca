/* Parameters of ranks against whole tensors: every layout and sharding starts with the same weights, reduces gradients to the same sums, and updates to the same weights
 * as one array does. */
#include "exec/unit.h"
#include "tests/support/small_models.h"
#include "tests/support/whole_tensors.h"

#include "tests/test.h"

#include <pthread.h>

#define NUM_MICROBATCHES 2
#define NUM_STEPS        2

typedef struct layout {
    long pp, dp_replicate, dp_shard, cp, tp, ep, etp;
    bool
        twins; /* every rank has all stages; those of the second pipeline rank are copies */
    bool uneven; /* shards are padded */
} layout;

typedef struct sharding_row {
    const char *name;
    long zero;
    bool reshard;
} sharding_row;

static const sharding_row shardings[] = {
    {"zero 0", 0, true}, {"zero 1", 1, true},       {"zero 2", 2, true},
    {"zero 3", 3, true}, {"zero 3 kept", 3, false},
};

static const ms_initial initial = {.seed = 7, .deviation = 0.02, .spread = 0.1};
static const ms_adamw adamw = {.learning_rate = 0.01,
                               .beta1 = 0.9,
                               .beta2 = 0.95,
                               .epsilon = 1e-8,
                               .weight_decay = 0.1,
                               .gradient_scale = 0.5};

/* ---- a case ---- */

/* Read by all ranks, but for what the lock guards. */
typedef struct shared {
    const layout *layout;
    ms_planned planned;
    ms_workload *workload;
    ms_world world;
    ms_whole *whole;
    ms_rank_load loads[2]; /* by pipeline rank */
    pthread_mutex_t lock;
    double sum_of_squares;
} shared;

static ms_model model_of(ms_arena *arena, ms_make_model *make, bool tied, long vocab)
{
    ms_model model = make();
    model.tied_embeddings = tied;
    model.vocab = vocab;
    model.kind_of_layer = MS_NEW_ARRAY(arena, model.num_layers, unsigned char);
    return model;
}

static ms_plan plan_of(const layout *l, const sharding_row *sharding)
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
    plan.zero = sharding->zero;
    plan.reshard_after_forward = sharding->reshard;
    plan.sequence_parallel = true;
    return plan;
}

/* The runner's bytes in fp64. */
static ms_stack stack_of(ms_ctx *cx)
{
    const ms_stack *generic;
    ASSERT_OK(ms_stack_load(cx, "generic", &generic), cx);
    ms_stack stack = *generic;
    stack.param_bytes.value = stack.grad_bytes.value = 8;
    stack.param_comm_bytes.value = stack.grad_comm_bytes.value = 8;
    stack.master_bytes.value = stack.head_grad_bytes.value = 0;
    stack.moment_bytes.value = 16;
    return stack;
}

/* The largest unit, embedding and head among them. */
static void set_largest_unit(const shared *s, int pipeline_rank, ms_rank_load *load)
{
    const ms_stage_parts *parts = &s->whole->parts[pipeline_rank];
    load->unit_dense_params = load->unit_expert_params = 0.0;
    for (int i = 0; i < parts->num; i++) {
        const ms_part *part = parts->parts[i]->part;
        double dense = part->dense_params;
        if (part == &s->planned.parts.tied_head)
            dense += s->planned.parts.head_params; /* it uses the embedding's */
        load->unit_dense_params = fmax(load->unit_dense_params, dense);
        load->unit_expert_params = fmax(load->unit_expert_params, part->expert_params);
    }
}

static shared *open_case(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                         const layout *l)
{
    shared *s = MS_NEW(cx->arena, shared);
    ms_workload_parts parts = {.model = model};
    ms_stack stack = stack_of(cx);
    parts.stack = &stack;
    ASSERT_OK(ms_cluster_load(cx, "hgx-h100", &parts.cluster), cx);
    ASSERT_OK(ms_profile_load(cx, parts.cluster->device.profile, &parts.profile), cx);
    ASSERT_OK(ms_plan_check(cx, plan, model, MS_NOWHERE), cx);
    ASSERT_OK(ms_workload_make(cx, &parts, plan, &s->workload), cx);
    ms_planned_open(cx, s->workload, plan, &s->planned);
    s->layout = l;
    s->world = ms_world_make(cx->arena, plan);
    s->whole = ms_whole_make(cx->arena, &s->planned, &s->world, initial);
    for (int rank = 0; rank < l->pp; rank++) {
        s->loads[rank] = ms_planned_load(cx, &s->planned, rank);
        set_largest_unit(s, rank, &s->loads[rank]);
    }
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

/* ---- units of a rank ---- */

#define MAX_UNITS 8

typedef struct held {
    ms_rank rank;
    shared *shared;
    int num;
    ms_param_unit *units[MAX_UNITS];
    const ms_part_ops *parts[MAX_UNITS];
    long layers[MAX_UNITS];
    ms_local *cells[MAX_UNITS];
    ms_unit_rooms *rooms;
} held;

static ms_status make_unit(held *h, int stage, int part)
{
    const shared *s = h->shared;
    const ms_part_ops *ops = s->whole->parts[stage].parts[part];
    const ms_program *program = ops->program;
    bool uses_embedding = h->num > 0 && program->key.part == MS_PART_HEAD &&
                          program->model->tied_embeddings &&
                          h->parts[0]->program->key.part == MS_PART_EMBED;
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

static ms_status open_units(held *h)
{
    const shared *s = h->shared;
    int first = s->layout->twins ? 0 : (int)h->rank.place->pp;
    int last = s->layout->twins ? (int)s->layout->pp - 1 : first;
    for (int stage = first; stage <= last; stage++)
        for (int i = 0; i < s->whole->parts[stage].num; i++)
            MS_TRY(make_unit(h, stage, i));
    return ms_unit_rooms_make(&h->rank, h->units, h->num, &h->rooms);
}

static ms_status check_ledger(const held *h)
{
    const shared *s = h->shared;
    static const ms_memory_part checked[] = {MS_MEMORY_PARAMS, MS_MEMORY_GRADS,
                                             MS_MEMORY_OPTIMIZER,
                                             MS_MEMORY_GATHERED_PARAMS};
    double want[MS_NUM_MEMORY_PARTS];
    ms_rank_memory(s->workload, &s->loads[h->rank.place->pp], s->planned.sharding,
                   &s->planned.pipeline.shards, want);
    for (size_t i = 0; i < sizeof checked / sizeof *checked; i++) {
        double got = h->rank.ledger.now_bytes[checked[i]];
        bool padded = s->layout->uneven && got >= want[checked[i]];
        if (got != want[checked[i]] && !padded && !s->layout->twins)
            return ms_fail(h->rank.cx, MS_ECHECK, MS_NOWHERE, "%s: %.0f bytes, not %.0f",
                           ms_memory_part_names[checked[i]], got, want[checked[i]]);
    }
    return MS_OK;
}

static ms_status close_units(held *h)
{
    ms_unit_rooms_close(&h->rank, h->rooms);
    for (int i = h->num - 1; i >= 0; i--)
        ms_unit_close(&h->rank, h->units[i]);
    if (h->rank.ledger.now_total_bytes != 0.0 || h->rank.ledger.workspace_bytes != 0.0)
        return ms_fail(h->rank.cx, MS_ECHECK, MS_NOWHERE, "%.0f bytes are left",
                       h->rank.ledger.now_total_bytes + h->rank.ledger.workspace_bytes);
    return MS_OK;
}

/* ---- whole tensors ---- */

enum {
    PHASE_INITIAL,
    PHASE_GRADIENTS,
    PHASE_UPDATED = PHASE_GRADIENTS + NUM_STEPS,
    PHASE_LOADED
};
#define VISIT(phase) (1 << (6 * (phase))) /* counts of each phase by themselves */

typedef struct visit {
    held *h;
    int phase;
} visit;

static const double *expected(const ms_whole_tensor *t, int phase)
{
    if (phase == PHASE_INITIAL || phase == PHASE_LOADED)
        return t->initial;
    return phase == PHASE_UPDATED ? t->weight : t->gradient;
}

static ms_status see(void *state, const ms_weight_name *name, long expert,
                     const long *places, const double *values, long count)
{
    visit *v = state;
    shared *s = v->h->shared;
    char text[MS_NAME_TEXT];
    ms_weight_name_text(name, expert, text);
    ms_whole_tensor *t = ms_whole_find(s->whole, text);
    const double *want = expected(t, v->phase);
    double tolerance = v->phase == PHASE_UPDATED ? 1e-13 : 0.0;
    ms_status status = MS_OK;
    pthread_mutex_lock(&s->lock);
    for (long i = 0; i < count && status == MS_OK; i++) {
        t->visits[places[i]] += VISIT(v->phase);
        if (!(fabs(values[i] - want[places[i]]) <= tolerance))
            status = ms_fail(v->h->rank.cx, MS_ECHECK, MS_NOWHERE,
                             "phase %d: %s[%ld] is %.17g, not %.17g", v->phase, text,
                             places[i], values[i], want[places[i]]);
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

static ms_status look(held *h, ms_unit_content content, int phase)
{
    visit v = {h, phase};
    for (int i = 0; i < h->num; i++)
        MS_TRY(ms_unit_visit(&h->rank, h->units[i], content, see, &v));
    return MS_OK;
}

static const double *find_initial(void *state, const char *name, int num_dims,
                                  const long *shape)
{
    const ms_whole_tensor *t = ms_whole_find(state, name);
    long count = 1;
    for (int d = 0; d < num_dims; d++)
        count *= shape[d];
    return t != NULL && t->count == count ? t->initial : NULL;
}

/* ---- a step ---- */

static ms_status wait_for(held *h, ms_event event)
{
    return h->rank.backend->wait(h->rank.cx, h->rank.device, event);
}

/* What a program finds: whole weights, as they were made or loaded. */
static ms_status check_weights(held *h, int at)
{
    const ms_program *program = h->parts[at]->program;
    ms_unit_bind(h->units[at], h->cells[at]);
    for (int t = 0; t < program->num_tensors; t++) {
        ms_weight_name name;
        const ms_local *local = &h->cells[at][t];
        if (program->tensors[t].role != MS_ROLE_WEIGHT)
            continue;
        ms_weight_name_of(program, t, h->layers[at], &name);
        ms_whole_cursor cursor = {h->shared->whole, &name, local, -1, NULL};
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

static void contribute(held *h, int at, long microbatch)
{
    const ms_program *program = h->parts[at]->program;
    ms_unit_bind(h->units[at], h->cells[at]);
    for (int t = 0; t < program->num_tensors; t++) {
        ms_weight_name name;
        int gradient = program->tensors[t].gradient;
        if (program->tensors[t].role != MS_ROLE_WEIGHT || gradient < 0)
            continue;
        ms_weight_name_of(program, t, h->layers[at], &name);
        const ms_local *local = &h->cells[at][t];
        double *to = h->cells[at][gradient].data;
        ms_whole_cursor cursor = {h->shared->whole, &name, local, -1, NULL};
        for (long e = 0; e < local->count; e++) {
            long place = ms_whole_place(&cursor, e);
            if (place >= 0)
                to[e] += ms_whole_contribution(h->shared->whole, program, t,
                                               h->rank.place, microbatch, place);
        }
    }
}

static bool gathers_by_use(const held *h)
{
    return h->rank.planned->sharding == MS_ZERO_3;
}

static ms_status gather_all(held *h)
{
    ms_event done[MAX_UNITS];
    for (int i = 0; i < h->num && !gathers_by_use(h); i++)
        MS_TRY(ms_unit_gather(&h->rank, h->units[i], NULL, 0, &done[i]));
    for (int i = 0; i < h->num && !gathers_by_use(h); i++)
        MS_TRY(wait_for(h, done[i]));
    return MS_OK;
}

/* One unit ahead, as the runner does. */
static ms_status forward(held *h, bool check)
{
    ms_event done[MAX_UNITS + 1] = {0};
    for (int i = 0; i < h->num; i++) {
        if (gathers_by_use(h) && i == 0)
            MS_TRY(ms_unit_gather(&h->rank, h->units[0], NULL, 0, &done[0]));
        MS_TRY(wait_for(h, done[i]));
        if (gathers_by_use(h) && i + 1 < h->num)
            MS_TRY(ms_unit_gather(&h->rank, h->units[i + 1], NULL, 0, &done[i + 1]));
        if (check)
            MS_TRY(check_weights(h, i));
        ms_unit_release(&h->rank, h->units[i]);
    }
    return MS_OK;
}

static ms_status backward(held *h, long microbatch)
{
    for (int i = h->num - 1; i >= 0; i--) {
        ms_event done;
        MS_TRY(ms_unit_begin_gradients(&h->rank, h->units[i]));
        contribute(h, i, microbatch);
        MS_TRY(ms_unit_reduce(&h->rank, h->units[i], NULL, 0, &done));
        MS_TRY(wait_for(h, done));
        MS_TRY(ms_unit_end_reduction(&h->rank, h->units[i]));
    }
    return MS_OK;
}

/* The other pipeline rank with the same coordinates. */
static long peer_of(const held *h)
{
    ms_members members = h->rank.world->members[MS_TRAFFIC_PP][h->rank.place->rank];
    return members.ranks[1 - members.own];
}

static ms_status exchange_copies(held *h)
{
    const shared *s = h->shared;
    for (int i = 0; i < h->num && s->layout->twins; i++)
        MS_TRY(ms_unit_exchange_twin(&h->rank, h->units[i], peer_of(h), i));
    bool tied = h->parts[0]->program->model->tied_embeddings && s->layout->pp == 2 &&
                !s->layout->twins;
    int end = h->rank.place->pp == 0 ? 0 : h->num - 1;
    return tied ? ms_unit_exchange_tied(&h->rank, h->units[end], peer_of(h), 1) : MS_OK;
}

static ms_status complete_gradients(held *h)
{
    ms_event done[MAX_UNITS][3];
    for (int i = h->num - 1; i >= 0; i--) {
        MS_TRY(ms_unit_reduce_last(&h->rank, h->units[i], NULL, 0, &done[i][0]));
        MS_TRY(ms_unit_replicate(&h->rank, h->units[i], NULL, 0, &done[i][1]));
        MS_TRY(ms_unit_reduce_over_tp(&h->rank, h->units[i], NULL, 0, &done[i][2]));
    }
    for (int i = 0; i < 3 * h->num; i++)
        MS_TRY(wait_for(h, done[i / 3][i % 3]));
    return exchange_copies(h);
}

static void add_squares(held *h)
{
    double sum = 0.0;
    for (int i = 0; i < h->num; i++)
        sum += ms_unit_sum_of_squares(&h->rank, h->units[i]);
    pthread_mutex_lock(&h->shared->lock);
    h->shared->sum_of_squares += sum;
    pthread_mutex_unlock(&h->shared->lock);
}

static ms_status take_step(held *h, int step)
{
    ms_adamw how = adamw;
    how.step = step + 1;
    MS_TRY(gather_all(h));
    for (int i = 0; i < h->num; i++)
        ms_unit_clear_gradients(&h->rank, h->units[i]);
    for (long m = 0; m < NUM_MICROBATCHES; m++) {
        MS_TRY(forward(h, step == 0));
        MS_TRY(backward(h, m));
    }
    MS_TRY(complete_gradients(h));
    MS_TRY(look(h, MS_UNIT_GRADIENTS, PHASE_GRADIENTS + step));
    add_squares(h);
    for (int i = 0; i < h->num; i++)
        MS_TRY(ms_unit_update(&h->rank, h->units[i], &how));
    return MS_OK;
}

/* ---- a run ---- */

static ms_status take_all_steps(held *h)
{
    ms_ledger before = h->rank.ledger;
    for (int i = 0; i < h->num; i++)
        MS_TRY(ms_unit_initialise(&h->rank, h->units[i], &initial));
    MS_TRY(look(h, MS_UNIT_WEIGHTS, PHASE_INITIAL));
    for (int step = 0; step < NUM_STEPS; step++)
        MS_TRY(take_step(h, step));
    MS_TRY(look(h, MS_UNIT_WEIGHTS, PHASE_UPDATED));
    for (int i = 0; i < h->num; i++)
        MS_TRY(ms_unit_load(&h->rank, h->units[i], find_initial, h->shared->whole));
    MS_TRY(look(h, MS_UNIT_WEIGHTS, PHASE_LOADED));
    MS_TRY(gather_all(h));
    MS_TRY(forward(h, true));
    if (h->rank.ledger.peak_bytes != before.now_total_bytes)
        return ms_fail(h->rank.cx, MS_ECHECK, MS_NOWHERE, "bytes rise during a step");
    return MS_OK;
}

static ms_status rank_main(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    shared *s = state;
    held h = {.rank = {.cx = cx,
                       .world = &s->world,
                       .place = &s->world.places[rank],
                       .planned = &s->planned,
                       .backend = &ms_backend_loop,
                       .device = device,
                       .kernels = ms_cpu_kernels(MS_REAL_FP64)},
              .shared = s};
    MS_TRY(open_units(&h));
    ms_status status = check_ledger(&h);
    if (status == MS_OK)
        status = take_all_steps(&h);
    ms_status closed = close_units(&h);
    return status != MS_OK ? status : closed;
}

/* Copies give the same once more. */
static void expect(shared *s)
{
    ms_whole_sum(s->whole, NUM_MICROBATCHES);
    for (int i = 0; i < s->whole->num && s->layout->twins; i++)
        for (long e = 0; e < s->whole->tensors[i].count; e++)
            s->whole->tensors[i].gradient[e] *= 2;
    ms_adamw how = adamw;
    for (how.step = 1; how.step <= NUM_STEPS; how.step++)
        ms_whole_update(s->whole, &how);
}

static void check_visits(const shared *s)
{
    const int weights = VISIT(PHASE_INITIAL) + VISIT(PHASE_UPDATED) + VISIT(PHASE_LOADED);
    const int gradients = VISIT(PHASE_GRADIENTS) + VISIT(PHASE_GRADIENTS + 1);
    for (int i = 0; i < s->whole->num; i++) {
        const ms_whole_tensor *t = &s->whole->tensors[i];
        for (long e = 0; e < t->count; e++)
            if (t->visits[e] != weights + (t->has_gradient[e] ? gradients : 0))
                fail_msg("%s[%ld] has visits %x", t->name, e, (unsigned)t->visits[e]);
    }
}

static void check_case(const ms_model *model, const layout *l, const sharding_row *how)
{
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of(l, how);
    shared *s = open_case(cx, model, &plan, l);
    expect(s);
    ms_backend_job job = {
        .backend = &ms_backend_loop, .world = &s->world, .type = MS_REAL_FP64};
    ASSERT_OK(job.backend->open(cx, &job), cx);
    ms_status status = job.backend->run(cx, &job, rank_main, s);
    job.backend->close(&job);
    if (status != MS_OK)
        fail_msg("%s, pp %ld, dp %ld x %ld, cp %ld, tp %ld, ep %ld x %ld, %s:\n%s",
                 model->name, l->pp, l->dp_replicate, l->dp_shard, l->cp, l->tp, l->ep,
                 l->etp, how->name, test_messages(cx));
    check_visits(s);
    ASSERT_NEAR(s->sum_of_squares, NUM_STEPS * ms_whole_sum_of_squares(s->whole), 1e-13);
    ms_workload_close(s->workload);
}

static void check_layouts(const ms_model *model, const layout *layouts, size_t num)
{
    for (size_t i = 0; i < num; i++)
        for (size_t j = 0; j < sizeof shardings / sizeof *shardings; j++)
            check_case(model, &layouts[i], &shardings[j]);
}

/* ---- tests ---- */

static const layout dense_layouts[] = {
    {.pp = 1, .dp_replicate = 1, .dp_shard = 1, .cp = 1, .tp = 1, .ep = 1, .etp = 1},
    {.pp = 1, .dp_replicate = 2, .dp_shard = 1, .cp = 1, .tp = 2, .ep = 1, .etp = 1},
    {.pp = 1, .dp_replicate = 1, .dp_shard = 2, .cp = 2, .tp = 1, .ep = 1, .etp = 1},
    {.pp = 1, .dp_replicate = 2, .dp_shard = 2, .cp = 1, .tp = 2, .ep = 1, .etp = 1},
    {.pp = 2, .dp_replicate = 1, .dp_shard = 2, .cp = 1, .tp = 2, .ep = 1, .etp = 1},
    {1, 1, 3, 1, 2, 1, 1, .uneven = true},
    {2, 1, 2, 1, 2, 1, 1, .twins = true},
};
#define NUM_DENSE (sizeof dense_layouts / sizeof *dense_layouts)

static const layout expert_layouts[] = {
    {.pp = 1, .dp_replicate = 1, .dp_shard = 2, .cp = 1, .tp = 1, .ep = 1, .etp = 1},
    {.pp = 1, .dp_replicate = 1, .dp_shard = 2, .cp = 1, .tp = 2, .ep = 2, .etp = 1},
    {.pp = 1, .dp_replicate = 2, .dp_shard = 2, .cp = 1, .tp = 2, .ep = 2, .etp = 2},
    {.pp = 1, .dp_replicate = 1, .dp_shard = 2, .cp = 2, .tp = 1, .ep = 4, .etp = 1},
    {.pp = 2, .dp_replicate = 1, .dp_shard = 4, .cp = 1, .tp = 1, .ep = 2, .etp = 1},
};
#define NUM_EXPERT (sizeof expert_layouts / sizeof *expert_layouts)

static void dense_parameters_are_those_of_one_array(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model llama = model_of(cx->arena, ms_small_llama, false, 32);
    check_layouts(&llama, dense_layouts, NUM_DENSE);
}

/* The vocabulary is padded over tp 2. */
static void tied_matrices_are_one(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model gpt = model_of(cx->arena, ms_small_gpt, true, 33);
    check_layouts(&gpt, dense_layouts, NUM_DENSE);
}

static void experts_are_those_of_one_array(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model mixtral = model_of(cx->arena, ms_small_mixtral, false, 32);
    check_layouts(&mixtral, expert_layouts, NUM_EXPERT);
}

/* Latent attention, shared experts, and a router's bias that has no gradient. */
static void weights_without_gradient_stay(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model deepseek = model_of(cx->arena, ms_small_deepseek, true, 32);
    check_layouts(&deepseek, expert_layouts, NUM_EXPERT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_parameters_are_those_of_one_array),
        cmocka_unit_test(tied_matrices_are_one),
        cmocka_unit_test(experts_are_those_of_one_array),
        cmocka_unit_test(weights_without_gradient_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
