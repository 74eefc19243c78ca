/* Tests of sharded parameter units (exec/params/unit.h) against whole tensors: for every
 * mesh and sharding, initial weights, reduced gradients and updates by every optimizer
 * equal those of one array. */
#include "tests/support/unit_case.h"
#include "tests/support/whole_optimizers.h"

#include "tests/test.h"

#define NUM_MICROBATCHES 2
#define NUM_STEPS        2

static const ms_adamw adamw = {.learning_rate = 0.01,
                               .beta1 = 0.9,
                               .beta2 = 0.95,
                               .epsilon = 1e-8,
                               .weight_decay = 0.1,
                               .gradient_scale = 0.5};

/* ---- whole tensors ---- */

enum {
    PHASE_INITIAL,
    PHASE_GRADIENTS,
    PHASE_UPDATED = PHASE_GRADIENTS + NUM_STEPS,
    PHASE_LOADED
};
#define VISIT(phase) (1 << (6 * (phase))) /* a count of 6 bits for each test phase */

typedef struct visit {
    ms_held *h;
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
    ms_unit_case *s = v->h->of;
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

static ms_status look(ms_held *h, ms_unit_content content, int phase)
{
    visit v = {h, phase};
    for (int i = 0; i < h->num; i++)
        MS_TRY(ms_unit_visit(&h->rank, h->units[i], content, see, &v));
    return MS_OK;
}

/* ---- a step ---- */

static void contribute(ms_held *h, int at, long microbatch)
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
        if (ms_unit_is_first(h->units[at], gradient))
            memset(to, 0, (size_t)local->count * sizeof *to);
        ms_whole_cursor cursor = {h->of->whole, &name, local, -1, NULL};
        for (long e = 0; e < local->count; e++) {
            long place = ms_whole_place(&cursor, e);
            if (place >= 0)
                to[e] += ms_whole_contribution(h->of->whole, program, t, h->rank.place,
                                               microbatch, place);
        }
    }
}

static bool gathers_by_use(const ms_held *h)
{
    return h->rank.planned->sharding == MS_ZERO_3;
}

static ms_status gather_all(ms_held *h)
{
    ms_event done[MS_MAX_HELD];
    for (int i = 0; i < h->num && !gathers_by_use(h); i++)
        MS_TRY(ms_unit_gather(&h->rank, h->units[i], NULL, 0, &done[i]));
    for (int i = 0; i < h->num && !gathers_by_use(h); i++)
        MS_TRY(ms_held_wait(h, done[i]));
    return MS_OK;
}

/* Runs the forward of all units, gathering the parameters one unit ahead as the runner
 * does. */
static ms_status forward(ms_held *h, bool check)
{
    ms_event done[MS_MAX_HELD + 1] = {0};
    for (int i = 0; i < h->num; i++) {
        if (gathers_by_use(h) && i == 0)
            MS_TRY(ms_unit_gather(&h->rank, h->units[0], NULL, 0, &done[0]));
        MS_TRY(ms_held_wait(h, done[i]));
        if (gathers_by_use(h) && i + 1 < h->num)
            MS_TRY(ms_unit_gather(&h->rank, h->units[i + 1], NULL, 0, &done[i + 1]));
        if (check)
            MS_TRY(ms_held_check_weights(h, i));
        ms_unit_release(&h->rank, h->units[i]);
    }
    return MS_OK;
}

static ms_status backward(ms_held *h, long microbatch)
{
    for (int i = h->num - 1; i >= 0; i--) {
        ms_event done;
        MS_TRY(ms_unit_begin_gradients(&h->rank, h->units[i]));
        contribute(h, i, microbatch);
        MS_TRY(ms_unit_reduce(&h->rank, h->units[i], NULL, 0, &done));
        MS_TRY(ms_held_wait(h, done));
        MS_TRY(ms_unit_end_reduction(&h->rank, h->units[i]));
    }
    return MS_OK;
}

/* Returns the other pipeline rank with the same coordinates on all other axes. */
static long peer_of(const ms_held *h)
{
    ms_members members = h->rank.world->members[MS_TRAFFIC_PP][h->rank.place->rank];
    return members.ranks[1 - members.own];
}

static ms_status exchange_copies(ms_held *h)
{
    const ms_unit_case *s = h->of;
    for (int i = 0; i < h->num && s->layout->twins; i++)
        MS_TRY(ms_unit_exchange_replica(&h->rank, h->units[i], peer_of(h), i));
    bool tied = h->parts[0]->program->model->tied_embeddings && s->layout->pp == 2 &&
                !s->layout->twins;
    int end = h->rank.place->pp == 0 ? 0 : h->num - 1;
    return tied ? ms_unit_exchange_tied(&h->rank, h->units[end], peer_of(h), 1) : MS_OK;
}

static ms_status complete_gradients(ms_held *h)
{
    ms_event done[MS_MAX_HELD][3];
    for (int i = h->num - 1; i >= 0; i--) {
        MS_TRY(ms_unit_reduce_last(&h->rank, h->units[i], NULL, 0, &done[i][0]));
        MS_TRY(ms_unit_replicate(&h->rank, h->units[i], NULL, 0, &done[i][1]));
        MS_TRY(ms_unit_reduce_over_tp(&h->rank, h->units[i], NULL, 0, &done[i][2]));
    }
    for (int i = 0; i < 3 * h->num; i++)
        MS_TRY(ms_held_wait(h, done[i / 3][i % 3]));
    return exchange_copies(h);
}

static ms_status add_squares(ms_held *h)
{
    double sum = 0.0;
    for (int i = 0; i < h->num; i++)
        ms_unit_add_squares(&h->rank, h->units[i], 0);
    MS_TRY(h->rank.backend->arrays->read_sums(h->rank.cx, h->rank.device, &sum, 1));
    pthread_mutex_lock(&h->of->lock);
    h->of->sum_of_squares += sum;
    pthread_mutex_unlock(&h->of->lock);
    return MS_OK;
}

static ms_status take_step(ms_held *h, int step)
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
    MS_TRY(add_squares(h));
    for (int i = 0; i < h->num; i++)
        MS_TRY(ms_unit_update(&h->rank, h->units[i], &how));
    return MS_OK;
}

/* ---- a run ---- */

static ms_status take_all_steps(ms_held *h)
{
    ms_ledger before = h->rank.ledger;
    for (int i = 0; i < h->num; i++)
        MS_TRY(ms_unit_initialise(&h->rank, h->units[i], &h->of->whole->initial));
    MS_TRY(look(h, MS_UNIT_WEIGHTS, PHASE_INITIAL));
    for (int step = 0; step < NUM_STEPS; step++)
        MS_TRY(take_step(h, step));
    MS_TRY(look(h, MS_UNIT_WEIGHTS, PHASE_UPDATED));
    for (int i = 0; i < h->num; i++)
        MS_TRY(ms_unit_load(&h->rank, h->units[i], ms_whole_find_initial, h->of->whole));
    MS_TRY(look(h, MS_UNIT_WEIGHTS, PHASE_LOADED));
    MS_TRY(gather_all(h));
    MS_TRY(forward(h, true));
    if (h->rank.ledger.peak_bytes != before.now_total_bytes)
        return ms_fail(h->rank.cx, MS_ECHECK, MS_NOWHERE, "bytes rise during a step");
    return MS_OK;
}

static ms_status rank_main(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    ms_held h;
    ms_status status = ms_held_open(&h, state, cx, device, rank, &ms_backend_loop);
    if (status == MS_OK)
        status = take_all_steps(&h);
    ms_status closed = ms_held_close(&h);
    return status != MS_OK ? status : closed;
}

/* Computes the expected gradients and weights; replicated stages (twins) double each
 * gradient. */
static void expect(ms_unit_case *s)
{
    ms_whole_sum(s->whole, NUM_MICROBATCHES);
    for (int i = 0; i < s->whole->num && s->layout->twins; i++)
        for (long e = 0; e < s->whole->tensors[i].count; e++)
            s->whole->tensors[i].gradient[e] *= 2;
    ms_adamw how = adamw;
    for (how.step = 1; how.step <= NUM_STEPS; how.step++)
        ms_whole_update_by(s->whole, s->layout->optimizer, &how);
}

static void check_visits(const ms_unit_case *s)
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

static void check_case(const ms_model *model, const ms_unit_layout *l,
                       ms_sharding sharding)
{
    ms_ctx *cx = test_cx();
    ms_unit_case *s = ms_unit_case_open(cx, model, l, sharding);
    expect(s);
    if (ms_unit_case_run(cx, s, rank_main) != MS_OK)
        fail_msg("%s, pp %ld, dp %ld x %ld, cp %ld, tp %ld, ep %ld x %ld, %s:\n%s",
                 model->name, l->pp, l->dp_replicate, l->dp_shard, l->cp, l->tp, l->ep,
                 l->etp, ms_unit_shardings[sharding].name, test_messages(cx));
    check_visits(s);
    ASSERT_NEAR(s->sum_of_squares, NUM_STEPS * ms_whole_sum_of_squares(s->whole), 1e-13);
    ms_workload_close(s->workload);
}

static void check_layouts(const ms_model *model, const ms_unit_layout *layouts,
                          size_t num)
{
    for (size_t i = 0; i < num; i++)
        for (int sharding = 0; sharding < MS_NUM_SHARDINGS; sharding++)
            check_case(model, &layouts[i], (ms_sharding)sharding);
}

/* ---- tests ---- */

static const ms_unit_layout dense_layouts[] = {
    {.pp = 1, .dp_replicate = 1, .dp_shard = 1, .cp = 1, .tp = 1, .ep = 1, .etp = 1},
    {.pp = 1, .dp_replicate = 1, .dp_shard = 2, .cp = 2, .tp = 1, .ep = 1, .etp = 1},
    {.pp = 1, .dp_replicate = 2, .dp_shard = 2, .cp = 1, .tp = 2, .ep = 1, .etp = 1},
    {.pp = 2, .dp_replicate = 1, .dp_shard = 2, .cp = 1, .tp = 1, .ep = 1, .etp = 1},
    {1, 1, 3, 1, 1, 1, 1, .uneven = true},
    {2, 1, 2, 1, 1, 1, 1, .twins = true},
};
#define NUM_DENSE (sizeof dense_layouts / sizeof *dense_layouts)

static const ms_unit_layout expert_layouts[] = {
    {.pp = 1, .dp_replicate = 1, .dp_shard = 2, .cp = 1, .tp = 1, .ep = 1, .etp = 1},
    {.pp = 1, .dp_replicate = 1, .dp_shard = 2, .cp = 1, .tp = 2, .ep = 2, .etp = 1},
    {.pp = 1, .dp_replicate = 2, .dp_shard = 2, .cp = 1, .tp = 2, .ep = 2, .etp = 2},
    {.pp = 1, .dp_replicate = 1, .dp_shard = 2, .cp = 2, .tp = 1, .ep = 4, .etp = 1},
    {.pp = 2, .dp_replicate = 1, .dp_shard = 2, .cp = 1, .tp = 1, .ep = 2, .etp = 1},
};
#define NUM_EXPERT (sizeof expert_layouts / sizeof *expert_layouts)

static void dense_parameters_are_those_of_one_array(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model llama = ms_unit_case_model(cx->arena, ms_small_llama, false, 32);
    check_layouts(&llama, dense_layouts, NUM_DENSE);
}

/* A matrix shared by embedding and head, with a vocabulary of 33 that is padded over tp
 * 2. */
static void tied_matrices_are_one(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model gpt = ms_unit_case_model(cx->arena, ms_small_gpt, true, 33);
    check_layouts(&gpt, dense_layouts + 1, NUM_DENSE - 1);
}

static void experts_are_those_of_one_array(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model mixtral = ms_unit_case_model(cx->arena, ms_small_mixtral, false, 32);
    check_layouts(&mixtral, expert_layouts, NUM_EXPERT);
}

/* Weights without gradient keep their values: DeepSeek's latent attention, shared experts
 * and router correction bias. */
static void weights_without_gradient_stay(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model deepseek = ms_unit_case_model(cx->arena, ms_small_deepseek, true, 32);
    check_layouts(&deepseek, expert_layouts + 2, NUM_EXPERT - 2);
}

/* Layouts of the model with every optimizer but that in 8 bits, and Muon on the parts of
 * tp ranks. */
static void check_optimizers(const ms_model *model, const ms_unit_layout *layouts,
                             size_t num)
{
    static const ms_optimizer optimizers[] = {MS_OPTIMIZER_SGD, MS_OPTIMIZER_LION,
                                              MS_OPTIMIZER_ADAFACTOR, MS_OPTIMIZER_MUON};
    for (size_t k = 0; k < sizeof optimizers / sizeof *optimizers; k++) {
        for (size_t i = 0; i < num; i++) {
            ms_unit_layout *layout = MS_NEW(test_cx()->arena, ms_unit_layout);
            *layout = layouts[i];
            layout->optimizer = optimizers[k];
            if (optimizers[k] != MS_OPTIMIZER_MUON || layout->tp == 1)
                check_layouts(model, layout, 1);
        }
    }
}

static void every_optimizer_updates_as_on_one_array(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model llama = ms_unit_case_model(cx->arena, ms_small_llama, false, 32);
    ms_model tied = ms_unit_case_model(cx->arena, ms_small_llama, true, 33);
    ms_model mixtral = ms_unit_case_model(cx->arena, ms_small_mixtral, false, 32);
    tied.name = "tied llama";
    check_optimizers(&llama, dense_layouts, NUM_DENSE);
    check_optimizers(&tied, dense_layouts + 1, NUM_DENSE - 1);
    check_optimizers(&mixtral, expert_layouts, NUM_EXPERT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_parameters_are_those_of_one_array),
        cmocka_unit_test(tied_matrices_are_one),
        cmocka_unit_test(experts_are_those_of_one_array),
        cmocka_unit_test(weights_without_gradient_stay),
        cmocka_unit_test(every_optimizer_updates_as_on_one_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
