/* Modules that selective recomputation repeats and shared experts beside exchanges of
 * tokens: bytes, FLOP and seconds of layers of DeepSeek-V3 by counting. */
#include "sim/simulate/simulation.h"
#include "sim/step/bill_key.h"
#include "sim/step/planned.h"

#include "base/number.h"
#include "tests/test.h"

#include <math.h>

/* deepseek-v3 */
#define TOKENS     4096.0
#define HIDDEN     7168.0
#define HEADS      128.0
#define KEY_WIDTH  192.0 /* 128 without and 64 with rotation */
#define VALUES     128.0
#define Q_LATENT   1536.0
#define KV_LATENT  512.0
#define ROPE       64.0
#define DENSE_FFN  18432.0
#define EXPERT_FFN 2048.0 /* width of a routed expert and of the shared one */
#define CHOICES    8.0
#define EXPERTS    256.0
#define VALUE      2.0 /* bytes of an activation */

#define QUERY_KEY_VALUE (HEADS * (2.0 * KEY_WIDTH + VALUES))
#define SHARED          (3.0 * EXPERT_FFN)

static ms_plan plan_of(int modules)
{
    ms_plan plan = ms_plan_default(8);
    plan.model = "deepseek-v3";
    plan.ep = 8;
    plan.sequence_length = (long)TOKENS;
    plan.global_batch = 8;
    plan.recompute = modules != 0 ? MS_RECOMPUTE_SELECTIVE : MS_RECOMPUTE_NONE;
    plan.recompute_modules = modules;
    ms_plan_fill_defaults(&plan);
    return plan;
}

/* The bill of a layer with a dense MLP (kind 0), or with experts (kind 1). */
static ms_bill layer_of(const ms_plan *plan, int kind)
{
    ms_ctx *cx = test_cx();
    ms_workload *workload = NULL;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ASSERT_INT(workload->model->kinds[kind].moe, kind == 1);
    ms_bill_key key = ms_plan_bill_key(workload, plan);
    ms_bill_set *bills = ms_workload_bills(workload, &key);
    ms_layer_mode mode = ms_plan_layer_mode(plan);
    ms_workload_add_modes(workload, bills, 1U << mode);
    ms_bill bill = ms_bill_copy(cx->arena, bills->layer[kind][mode]);
    ms_workload_close(workload);
    return bill;
}

/* Bytes a token that a module drops, and FLOP a token that it repeats. */
typedef struct module_case {
    int modules, kind;
    double dropped_bytes, repeated_flop;
} module_case;

static const double of_up_projections =
    2.0 * HEADS * (Q_LATENT * KEY_WIDTH + KV_LATENT * (KEY_WIDTH - ROPE + VALUES));
static const double of_shared = 2.0 * HIDDEN * SHARED;
/* rows before and after dispatch are not both saved; those that come back are weighted
 * in the experts (weighs_in_experts) */
static const double of_experts_bytes =
    VALUE * (CHOICES * (HIDDEN + 3.0 * EXPERT_FFN) + SHARED);
/* logits, weights and numbers of the chosen experts, in fp32 */
static const double of_router_bytes = 4.0 * (EXPERTS + 2.0 * CHOICES);
static const double of_moe =
    2.0 * HIDDEN * (EXPERTS + CHOICES * 3.0 * EXPERT_FFN + SHARED);

static void a_module_drops_its_tensors_and_repeats_its_products(void **state)
{
    (void)state;
    const module_case cases[] = {
        {MS_MODULE_LAYERNORM, 1, VALUE * 2.0 * HIDDEN, 0},
        /* the norm before a dense MLP is part of its first linear layer */
        {MS_MODULE_LAYERNORM, 0, VALUE * HIDDEN, 0},
        {MS_MODULE_NORMS, 0, VALUE * (2.0 * HIDDEN + Q_LATENT + KV_LATENT), 0},
        /* the shared key before its rotation is saved instead */
        {MS_MODULE_MLA_UP_PROJ, 1, VALUE * (QUERY_KEY_VALUE - ROPE), of_up_projections},
        {MS_MODULE_MOE_ACT, 1, VALUE * CHOICES * EXPERT_FFN, 0},
        {MS_MODULE_MOE_ACT, 0, 0, 0},
        {MS_MODULE_ACTIVATIONS, 1, VALUE * (CHOICES + 1.0) * EXPERT_FFN, 0},
        {MS_MODULE_SHARED_EXPERTS, 1, VALUE * SHARED, of_shared},
        {MS_MODULE_MLP, 0, VALUE * (HIDDEN + 3.0 * DENSE_FFN), 6.0 * HIDDEN * DENSE_FFN},
        {MS_MODULE_MLP, 1, 0, 0},
        {MS_MODULE_MOE, 1, of_experts_bytes + of_router_bytes, of_moe},
        {MS_MODULE_MOE | MS_MODULE_MOE_ACT | MS_MODULE_SHARED_EXPERTS, 1,
         of_experts_bytes + of_router_bytes, of_moe},
        {MS_MODULE_MOE | MS_MODULE_MLA_UP_PROJ, 1,
         of_experts_bytes + of_router_bytes + VALUE * (QUERY_KEY_VALUE - ROPE),
         of_moe + of_up_projections},
        /* the log-sum-exp of fused attention */
        {MS_MODULE_SCORES, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_plan none = plan_of(0), plan = plan_of(cases[i].modules);
        ms_bill all = layer_of(&none, cases[i].kind),
                some = layer_of(&plan, cases[i].kind);
        double dropped_bytes =
            all.memory.saved.activation_bytes - some.memory.saved.activation_bytes;
        ASSERT_NEAR(dropped_bytes, TOKENS * cases[i].dropped_bytes, 1e-12);
        ASSERT_NEAR(some.recompute_flop, TOKENS * cases[i].repeated_flop, 1e-12);
        ASSERT_NEAR(some.compute_s[MS_BILL_FORWARD], all.compute_s[MS_BILL_FORWARD], 0);
        double more_s =
            some.compute_s[MS_BILL_BACKWARD] - all.compute_s[MS_BILL_BACKWARD];
        assert_true(more_s >= 0.0);
        assert_true(cases[i].repeated_flop == 0.0 || more_s > 0.0);
    }
}

/* The attention core saves its result for the next projection alone: backward repeats the
 * kernel for its log-sum-exp, 4 bytes a head. */
static void the_attention_core_is_repeated_for_its_statistics(void **state)
{
    (void)state;
    ms_plan none = plan_of(0), plan = plan_of(MS_MODULE_CORE_ATTN);
    ms_bill all = layer_of(&none, 0), some = layer_of(&plan, 0);
    ASSERT_NEAR(all.memory.saved.activation_bytes - some.memory.saved.activation_bytes,
                4.0 * HEADS * TOKENS, 1e-12);
    ASSERT_NEAR(some.recompute_flop,
                HEADS * (KEY_WIDTH + VALUES) * TOKENS * (TOKENS + 1.0), 1e-12);
    plan.recompute_modules = 0; /* Megatron's own */
    ms_bill usual = layer_of(&plan, 0);
    ASSERT_NEAR(usual.memory.saved.activation_bytes, some.memory.saved.activation_bytes,
                0);
}

static int num_exchanges(const ms_bill *bill)
{
    int num = 0;
    for (int i = 0; i < bill->num_comms[MS_BILL_BACKWARD]; i++)
        if (bill->comms[MS_BILL_BACKWARD][i].axis == MS_BILL_EP)
            num += bill->comms[MS_BILL_BACKWARD][i].count;
    return num;
}

/* Megatron's checkpoint of a layer of experts exchanges all tokens again. */
static void repeated_experts_exchange_again(void **state)
{
    (void)state;
    ms_plan none = plan_of(0), plan = plan_of(MS_MODULE_MOE);
    ms_bill all = layer_of(&none, 1), some = layer_of(&plan, 1);
    ASSERT_INT(num_exchanges(&all), 2);
    ASSERT_INT(num_exchanges(&some), 4);
}

/* ---- shared experts beside exchanges ---- */

static const ms_planned *open_plan(const ms_plan *plan, ms_workload **workload)
{
    ms_ctx *cx = test_cx();
    ms_planned *planned = MS_NEW(cx->arena, ms_planned);
    ASSERT_OK(ms_workload_open(cx, plan, workload), cx);
    ASSERT_OK(ms_planned_open_listed(cx, *workload, plan, planned), cx);
    return planned;
}

/* A layer's forward is shorter by what of its dispatch is as long as the shared experts'
 * gate, up and activation, and of its combine as down, but for interference. */
static void exchanges_hide_behind_shared_experts(void **state)
{
    (void)state;
    ms_plan plan = plan_of(0);
    ms_workload *workload;
    const ms_planned *apart = open_plan(&plan, &workload);
    plan.shared_overlap = true;
    ms_workload *other;
    const ms_planned *beside = open_plan(&plan, &other);
    const ms_bill_segments *s = &beside->bills->layer[1][0]->segments;
    double gained_frac = 1.0 - workload->stack->interference_frac.value,
           hidden_s[2] = {0};
    for (int i = 0; i < MS_NUM_BILL_EXCHANGES; i++) {
        double seconds =
            ms_collective_s(&apart->links.law[MS_BILL_EP][s->exchange_collective[i]],
                            s->exchange_bytes[i]);
        assert_true(s->exchange_beside_s[i] > 0.0);
        hidden_s[i >= MS_EXCHANGE_COMBINE_BACKWARD] +=
            gained_frac * ms_min(seconds, s->exchange_beside_s[i]);
    }
    /* two products and an activation beside dispatch, one product beside combine */
    assert_true(s->exchange_beside_s[MS_EXCHANGE_DISPATCH] >
                1.5 * s->exchange_beside_s[MS_EXCHANGE_COMBINE]);
    const ms_block_cost *a = &apart->blocks.layer[1][0], *b = &beside->blocks.layer[1][0];
    ASSERT_NEAR(a->forward_s - b->forward_s, hidden_s[0], 1e-9);
    ASSERT_NEAR(a->backward_s - b->backward_s, hidden_s[1], 1e-9);
    ASSERT_NEAR(a->forward_compute_s, b->forward_compute_s, 1e-12);
    ASSERT_NEAR(a->exchange_forward_s - b->exchange_forward_s, hidden_s[0], 1e-9);
    ms_workload_close(workload);
    ms_workload_close(other);
}

/* A simulation with a task per node takes as long as the closed form. With tp a gather
 * that backward repeats lies between the shared experts' gradients: an exchange then hides
 * behind those after it alone, which is below 0.5 % of the step. */
static void node_graphs_hide_as_much(void **state)
{
    (void)state;
    static const ms_recompute modes[] = {MS_RECOMPUTE_NONE, MS_RECOMPUTE_FULL};
    for (int mode = 0; mode < 2; mode++) {
        for (int tp = 1; tp <= 2; tp++) {
            ms_ctx *cx = test_cx();
            double step_s[2];
            for (int overlap = 0; overlap < 2; overlap++) {
                ms_plan plan = plan_of(0);
                plan.recompute = modes[mode];
                plan.size[MS_TP] = tp;
                plan.size[MS_DP_SHARD] = 8 / tp;
                plan.sequence_parallel = tp > 1;
                plan.shared_overlap = overlap == 1;
                ms_workload *workload;
                const ms_planned *planned = open_plan(&plan, &workload);
                const ms_simulate_options options = {.engine = MS_ENGINE_REPLAY,
                                                     .detail = MS_DETAIL_NODE};
                ms_simulation simulation;
                ASSERT_OK(ms_simulate(cx, planned, &options, &simulation), cx);
                ASSERT_NEAR(simulation.step_s, simulation.predicted_step_s,
                            tp == 1 ? 1e-9 : 5e-3);
                step_s[overlap] = simulation.step_s;
                ms_workload_close(workload);
            }
            assert_true(step_s[1] < step_s[0]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_drops_its_tensors_and_repeats_its_products),
        cmocka_unit_test(the_attention_core_is_repeated_for_its_statistics),
        cmocka_unit_test(repeated_experts_exchange_again),
        cmocka_unit_test(exchanges_hide_behind_shared_experts),
        cmocka_unit_test(node_graphs_hide_as_much)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
