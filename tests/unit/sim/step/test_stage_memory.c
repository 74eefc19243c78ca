/* Peak activations of a backward of a stage, against going through the blocks of
 * random stages one by one. */
#include "tests/unit/stage_bench.h"

#include "base/rng.h"

static ms_tensor_bytes random_bytes(ms_rng *rng)
{
    return (ms_tensor_bytes){(double)ms_rng_below(rng, 50),
                             (double)ms_rng_below(rng, 10)};
}

static void set_random_memory(ms_rng *rng, ms_block_cost *part)
{
    part->memory.saved = random_bytes(rng);
    part->memory.delayed = random_bytes(rng);
    for (int half = 0; half < MS_NUM_BILL_HALVES; half++)
        part->memory.transient[half] = random_bytes(rng);
}

static double total(ms_tensor_bytes bytes)
{
    return bytes.activation_bytes + bytes.logits_bytes;
}

/* Peak bytes of the whole backward or of one `half`. Blocks run from last to first. While
 * a block runs, alive are: its own tensors, tensors that forward saved for the blocks
 * before it, and tensors that the blocks after it have left for the weight half. */
static double worst_bytes(const ms_block_cost *const *parts, int num, int half,
                          double head_grad_bytes)
{
    double worst = 0;
    for (int at = 0; at < num; at++) {
        double live = total(parts[at]->memory.transient[half]);
        for (int i = 0; i < num; i++) {
            const ms_bill_memory *memory = &parts[i]->memory;
            double before =
                total(half == MS_BILL_WEIGHT_HALF ? memory->delayed : memory->saved);
            double after = half == MS_BILL_INPUT_HALF ? total(memory->delayed) : 0.0;
            live += i > at ? after : before;
        }
        bool makes = at == num - 1 && half != MS_BILL_INPUT_HALF;
        worst = fmax(worst, live + (makes ? head_grad_bytes : 0.0));
    }
    return worst;
}

static void expect_worst(const bench *b, ms_rng *rng)
{
    ms_block_costs p = {.head_params = (double)ms_rng_below(rng, 20)};
    set_random_memory(rng, &p.embed);
    set_random_memory(rng, &p.head);
    for (int kind = 0; kind < 2; kind++)
        for (int mode = 0; mode < MS_NUM_RECOMPUTE; mode++)
            set_random_memory(rng, &p.layer[kind][mode]);
    long first = (long)ms_rng_below(rng, 4), num = 1 + (long)ms_rng_below(rng, 4);
    long full = (long)ms_rng_below(rng, 6);
    ms_stage_layout layout = {.first_layer = first,
                              .num_layers = num,
                              .has_embedding = first == 0,
                              .has_head = ms_rng_below(rng, 2) == 0,
                              .mode = MS_RECOMPUTE_FULL,
                              .recompute_layers = full};
    const ms_block_cost *parts[10];
    int n = 0;
    if (layout.has_embedding)
        parts[n++] = &p.embed;
    for (long i = 0; i < num; i++) {
        bool recomputed = full == 0 || i < full;
        parts[n++] = &p.layer[b->model.kind_of_layer[first + i]]
                             [recomputed ? MS_RECOMPUTE_FULL : MS_RECOMPUTE_NONE];
    }
    if (layout.has_head)
        parts[n++] = &p.head;
    ms_stage stage = stage_of(b, &p, layout);
    for (int half = 0; half < MS_NUM_BILL_HALVES; half++) {
        const ms_bill_memory *sum = &stage.sum.memory;
        const ms_live_bytes *most = &stage.transient[half];
        double kept = total(half == MS_BILL_WEIGHT_HALF ? sum->delayed : sum->saved);
        ASSERT_NEAR(
            kept + most->activation_bytes + most->logits_bytes + most->head_grad_bytes,
            worst_bytes(parts, n, half, layout.has_head ? 3 * p.head_params : 0), 0);
    }
}

static void parts_behind_have_left_when_a_part_is_at_work(void **state)
{
    (void)state;
    bench *b = open_bench();
    b->stack.head_grad_bytes.value = 3;
    ms_rng rng = ms_rng_seed(11);
    for (int i = 0; i < 2000; i++) {
        int kinds[8];
        for (int layer = 0; layer < 8; layer++)
            kinds[layer] = (int)ms_rng_below(&rng, 2);
        set_kinds(b, kinds);
        expect_worst(b, &rng);
    }
}

/* A stage without layers holds only the gradient that it passes on, in the whole
 * backward and in the input half. */
static void an_empty_stage_has_what_it_hands_on(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_block_costs p = {.send_bytes = 7};
    ms_stage stage = stage_of(b, &p, (ms_stage_layout){.first_layer = 3});
    ASSERT_NEAR(stage.transient[MS_BILL_WHOLE].activation_bytes, 7, 0);
    ASSERT_NEAR(stage.transient[MS_BILL_INPUT_HALF].activation_bytes, 7, 0);
    ASSERT_NEAR(stage.transient[MS_BILL_WEIGHT_HALF].activation_bytes, 0, 0);
}

/* Two copies of received inputs and of outputs, 7 bytes each, for every live micro-batch:
 * the first stage receives nothing, the last one sends nothing. */
static void pipeline_engines_keep_copies(void **state)
{
    (void)state;
    bench *b = open_bench();
    b->stack.boundary_copies.value = 2;
    ms_block_costs p = {.send_bytes = 7};
    ms_stage_layout layout = {.first_layer = 3, .num_layers = 2};
    ASSERT_NEAR(stage_of(b, &p, layout).sum.memory.saved.activation_bytes, 2 * 2 * 7, 0);
    layout.has_embedding = true;
    ASSERT_NEAR(stage_of(b, &p, layout).sum.memory.saved.activation_bytes, 2 * 7, 0);
    layout.has_head = true;
    ASSERT_NEAR(stage_of(b, &p, layout).sum.memory.saved.activation_bytes, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_behind_have_left_when_a_part_is_at_work),
        cmocka_unit_test(pipeline_engines_keep_copies),
        cmocka_unit_test(an_empty_stage_has_what_it_hands_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
