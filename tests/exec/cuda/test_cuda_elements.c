/* Tests of CUDA kernels against the CPU's: activations, sums, dropout masks, gates,
 * rotary positions and the keys of latent attention. */
#include "exec/cuda/cuda_activation.h"
#include "exec/cuda/cuda_rotary.h"
#include "tests/support/cuda_cases.h"
#include "tests/test.h"

static const ms_cuda_kernel activation = {.op = ms_cuda_activation},
                            activation_grad = {.op = ms_cuda_activation_grad},
                            add = {.op = ms_cuda_add},
                            dropout_grad = {.op = ms_cuda_dropout_grad},
                            gate = {.op = ms_cuda_gate},
                            gate_grad = {.op = ms_cuda_gate_grad},
                            rotary = {.op = ms_cuda_rotary,
                                      .workspace = ms_cuda_rotary_bytes},
                            keys = {.op = ms_cuda_mla_keys},
                            keys_grad = {.op = ms_cuda_mla_keys_grad};

/* Sizes: a multiple of 16-byte vectors, vectors and a rest, less than a vector, none. */
static const char *const shapes[] = {"2 3 16", "5 7 11", "1 1 1", "3 1 1000", "2 0 8"};
#define NUM_SHAPES (int)(sizeof shapes / sizeof *shapes)

static void stretch(const ms_local *x, double by)
{
    for (long i = 0; i < x->count; i++)
        ms_cuda_case_values(x)[i] *= by;
}

static void activation_of(int shape, int curve, bool is_gated, bool is_gradient)
{
    ms_arena *arena = test_cx()->arena;
    ms_cuda_case *c =
        ms_cuda_case_make(arena, is_gradient ? MS_OP_ACTIVATION_GRAD : MS_OP_ACTIVATION,
                          (uint64_t)(shape * 100 + curve));
    const bool has_tanh[] = {false, false, false, false, true};
    c->model.activation = (const ms_activation[]){
        MS_ACT_SWIGLU, MS_ACT_RELU, MS_ACT_RELU2, MS_ACT_GEGLU, MS_ACT_GELU}[curve];
    c->model.gelu_tanh = has_tanh[curve];
    stretch(ms_cuda_case_in(c, "bsf", shapes[shape], MS_CASE_REAL), 8);
    if (is_gated)
        ms_cuda_case_in(c, "bsf", shapes[shape], MS_CASE_REAL);
    if (is_gradient)
        ms_cuda_case_in(c, "bsf", shapes[shape], MS_CASE_REAL);
    ms_cuda_case_out(c, "bsf", shapes[shape], MS_CASE_REAL);
    if (is_gradient && is_gated)
        ms_cuda_case_out(c, "bsf", shapes[shape], MS_CASE_REAL);
    ms_cuda_case_run(c,
                     ms_arena_printf(arena, "curve %d of %s, %d %d", curve, shapes[shape],
                                     is_gated, is_gradient),
                     is_gradient ? &activation_grad : &activation);
}

static void all_activations(void **state)
{
    (void)state;
    for (int shape = 0; shape < NUM_SHAPES; shape++)
        for (int curve = 0; curve < 5; curve++)
            for (int variant = 0; variant < 4; variant++)
                activation_of(shape, curve, variant % 2 == 1, variant / 2 == 1);
}

/* Activations of inputs for which exp overflows or underflows in fp32 are finite. */
static void activations_of_large_numbers_are_finite(void **state)
{
    (void)state;
    for (int curve = 0; curve < 5; curve++) {
        for (int gradient = 0; gradient < 2; gradient++) {
            ms_cuda_case *c = ms_cuda_case_make(
                test_cx()->arena, gradient ? MS_OP_ACTIVATION_GRAD : MS_OP_ACTIVATION, 1);
            c->model.activation =
                (const ms_activation[]){MS_ACT_SWIGLU, MS_ACT_RELU, MS_ACT_RELU2,
                                        MS_ACT_GEGLU, MS_ACT_GELU}[curve];
            c->model.gelu_tanh = curve == 4;
            stretch(ms_cuda_case_in(c, "bsf", "1 2 100", MS_CASE_REAL), 1000);
            if (gradient)
                ms_cuda_case_in(c, "bsf", "1 2 100", MS_CASE_REAL);
            ms_cuda_case_out(c, "bsf", "1 2 100", MS_CASE_REAL);
            ms_cuda_case_run(c, "large numbers",
                             gradient ? &activation_grad : &activation);
        }
    }
}

static void sums_and_masks(void **state)
{
    (void)state;
    for (int shape = 0; shape < NUM_SHAPES; shape++) {
        for (int has_mask = 0; has_mask < 2; has_mask++) {
            ms_cuda_case *c = ms_cuda_case_make(test_cx()->arena, MS_OP_ADD, 3);
            ms_cuda_case_in(c, "bsh", shapes[shape], MS_CASE_REAL);
            ms_cuda_case_in(c, "bsh", shapes[shape], MS_CASE_REAL);
            ms_cuda_case_out(c, "bsh", shapes[shape], MS_CASE_REAL);
            if (has_mask)
                ms_cuda_case_out(c, "bsh", shapes[shape], MS_CASE_MASK);
            ms_cuda_case_run(c, shapes[shape], &add);
        }
        ms_cuda_case *c = ms_cuda_case_make(test_cx()->arena, MS_OP_DROPOUT_GRAD, 4);
        ms_cuda_case_in(c, "bsh", shapes[shape], MS_CASE_REAL);
        ms_cuda_case_in(c, "bsh", shapes[shape], MS_CASE_MASK);
        ms_cuda_case_out(c, "bsh", shapes[shape], MS_CASE_REAL);
        ms_cuda_case_run(c, shapes[shape], &dropout_grad);
    }
}

static void gates(void **state)
{
    (void)state;
    const char *const of_gate[] = {"2 3 1", "5 7 1", "1 1 1", "3 1 1", "2 0 1"};
    for (int shape = 0; shape < NUM_SHAPES; shape++) {
        for (int gradient = 0; gradient < 2; gradient++) {
            ms_cuda_case *c = ms_cuda_case_make(
                test_cx()->arena, gradient ? MS_OP_GATE_GRAD : MS_OP_GATE, 5);
            ms_cuda_case_in(c, "bsh", shapes[shape], MS_CASE_REAL);
            stretch(ms_cuda_case_in(c, "bs1", of_gate[shape], MS_CASE_REAL), 5);
            if (gradient)
                ms_cuda_case_in(c, "bsh", shapes[shape], MS_CASE_REAL);
            ms_cuda_case_out(c, "bsh", shapes[shape], MS_CASE_REAL);
            if (gradient)
                ms_cuda_case_out(c, "bs1", of_gate[shape], MS_CASE_REAL);
            ms_cuda_case_run(c, shapes[shape], gradient ? &gate_grad : &gate);
        }
    }
}

/* ---- rotary positions ---- */

static ms_cuda_op rotate_by_table, rotate_without_table;
static const ms_cuda_kernel rotary_by_table = {.op = rotate_by_table};
static const ms_cuda_kernel rotary_without_table = {.op = rotate_without_table,
                                                    .workspace = ms_cuda_rotary_bytes};

static const struct {
    const char *dims, *shape;
    long width, start; /* rotated width of a head; first stored sequence index */
    double base;
    bool has_positions;
} turns[] = {
    {"bsnd", "2 5 3 128", 128, 0, 0, false}, {"bsnd", "2 6 3 24", 16, 4, 500000, true},
    {"bsnd", "1 7 2 10", 6, 3, 10000, true}, {"bso", "3 4 64", 64, 0, 10000, true},
    {"bso", "1 3 2", 2, 100000, 0, false},   {"bsnd", "1 2 9 8", 0, 0, 0, false},
    {"bsnd", "1 0 4 8", 8, 0, 0, false}};

static void *take_table(void *state, size_t bytes)
{
    void *memory = NULL;
    (void)state;
    assert_int_equal(posix_memalign(&memory, 256, bytes + 1), 0);
    memset(memory, 0xff, bytes + 1);
    return memory;
}

/* Rotates by a table that the opposite rotation has made, without a workspace. */
static ms_status rotate_by_table(const ms_cuda_call *call)
{
    ms_cuda_angle_tables tables = {.take = take_table};
    ms_cuda_call by_table = *call;
    ms_node opposite = *call->op->node;
    ms_op_call op = *call->op;
    opposite.inverse = !opposite.inverse;
    op.node = &opposite;
    by_table.angle_tables = &tables;
    by_table.workspace = NULL;
    by_table.op = &op;
    MS_TRY(ms_cuda_rotary(&by_table));
    by_table.op = call->op;
    MS_TRY(ms_cuda_rotary(&by_table));
    ASSERT_INT(tables.num, call->op->in[0]->count > 0 ? 1 : 0);
    for (int i = 0; i < tables.num; i++)
        free(tables.table[i].angles);
    return MS_OK;
}

static int num_refused;

static void *refuse_table(void *state, size_t bytes)
{
    (void)state;
    (void)bytes;
    num_refused++;
    return NULL;
}

/* Rotates where no memory is left for a table, then where the rank has all its tables,
 * which are of other lengths: in both the workspace holds the angles. */
static ms_status rotate_without_table(const ms_cuda_call *call)
{
    bool works = call->op->in[0]->count > 0;
    ms_cuda_angle_tables none = {.take = refuse_table}, full = none;
    ms_cuda_call by_workspace = *call;
    by_workspace.angle_tables = &none;
    num_refused = 0;
    MS_TRY(ms_cuda_rotary(&by_workspace));
    assert_true(num_refused == works && none.num == 0);
    full.num = MS_CUDA_ANGLE_TABLES;
    for (int i = 0; i < full.num; i++)
        full.table[i] = (ms_cuda_angle_table){.length = -1 - i};
    by_workspace.angle_tables = &full;
    MS_TRY(ms_cuda_rotary(&by_workspace));
    assert_true(num_refused == works && full.num == MS_CUDA_ANGLE_TABLES);
    return MS_OK;
}

/* Gives a model one of the laws by which rotary angles are scaled, in turn. */
static void scale_angles(ms_model *model, size_t turn)
{
    model->rotary_scaling =
        (ms_rotary_scaling){.kind = (ms_rotary_scaling_kind)(turn % 4),
                            .factor = 8,
                            .original_positions = 100,
                            .low_frequency_factor = 1,
                            .high_frequency_factor = 4,
                            .beta_fast = 8,
                            .beta_slow = 1};
}

static void rotary_positions(void **state)
{
    (void)state;
    enum {
        NUM_STORED = 16
    };
    /* large positions, whose rotary angles need many digits */
    long positions[NUM_STORED];
    for (long i = 0; i < NUM_STORED; i++)
        positions[i] = (i * 5 + 3) % NUM_STORED * 9001;
    for (size_t i = 0; i < 4 * (sizeof turns / sizeof *turns); i++) {
        ms_cuda_case *c = ms_cuda_case_make(test_cx()->arena, MS_OP_ROTARY, i);
        size_t at = i / 4;
        scale_angles(&c->model, i);
        c->model.rotary_interleaved = i % 4 > 1;
        c->model.rotary_dim = i % 3 == 1 ? turns[at].width : 0;
        c->node.rotary_width = turns[at].width;
        c->node.inverse = i % 2 == 1;
        c->model.rotary_base = turns[at].base;
        c->batch.sequence_length = NUM_STORED;
        c->batch.positions = turns[at].has_positions ? positions : NULL;
        ms_local *x = ms_cuda_case_in(c, turns[at].dims, turns[at].shape, MS_CASE_REAL);
        x->start[1] = turns[at].start;
        ms_cuda_case_out(c, turns[at].dims, turns[at].shape, MS_CASE_REAL);
        ms_cuda_case_run(
            c, ms_arena_printf(c->arena, "turn %zu of %s", i, turns[at].shape), &rotary);
        ms_cuda_case_run(c, ms_arena_printf(c->arena, "turn %zu by a table", i),
                         &rotary_by_table);
        ms_cuda_case_run(c, ms_arena_printf(c->arena, "turn %zu without tables", i),
                         &rotary_without_table);
    }
}

static void keys_of_latent_attention(void **state)
{
    (void)state;
    static const char *const latents[][4] = {
        /* shapes of: projected keys and values, rotary key, keys, values */
        {"2 3 5 48", "2 3 16", "2 3 5 32", "2 3 5 32"},
        {"1 4 9 7", "1 4 2", "1 4 9 6", "1 4 9 3"},
        {"2 1 20 256", "2 1 64", "2 1 20 192", "2 1 20 128"},
        {"1 0 2 16", "1 0 8", "1 0 2 16", "1 0 2 8"},
    };
    for (size_t i = 0; i < sizeof latents / sizeof *latents; i++) {
        ms_cuda_case *c = ms_cuda_case_make(test_cx()->arena, MS_OP_MLA_KEYS, i);
        ms_cuda_case_in(c, "bsnu", latents[i][0], MS_CASE_REAL);
        ms_cuda_case_in(c, "bso", latents[i][1], MS_CASE_REAL);
        ms_cuda_case_out(c, "bsnd", latents[i][2], MS_CASE_REAL);
        ms_cuda_case_out(c, "bsnw", latents[i][3], MS_CASE_REAL);
        ms_cuda_case_run(c, latents[i][0], &keys);
        c = ms_cuda_case_make(test_cx()->arena, MS_OP_MLA_KEYS_GRAD, i);
        ms_cuda_case_in(c, "bsnd", latents[i][2], MS_CASE_REAL);
        ms_cuda_case_in(c, "bsnw", latents[i][3], MS_CASE_REAL);
        ms_cuda_case_out(c, "bsnu", latents[i][0], MS_CASE_REAL);
        ms_cuda_case_out(c, "bso", latents[i][1], MS_CASE_REAL);
        ms_cuda_case_run(c, latents[i][0], &keys_grad);
    }
}

static void nodes_of_programs(void **state)
{
    (void)state;
    const struct {
        ms_op op;
        const ms_cuda_kernel *kernel;
    } ops[] = {
        {MS_OP_ACTIVATION, &activation},
        {MS_OP_ACTIVATION_GRAD, &activation_grad},
        {MS_OP_ADD, &add},
        {MS_OP_DROPOUT_GRAD, &dropout_grad},
        {MS_OP_GATE, &gate},
        {MS_OP_GATE_GRAD, &gate_grad},
        {MS_OP_ROTARY, &rotary},
        {MS_OP_MLA_KEYS, &keys},
        {MS_OP_MLA_KEYS_GRAD, &keys_grad},
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        assert_true(
            ms_cuda_cases_of_programs(test_cx()->arena, ops[i].op, ops[i].kernel) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_activations),
        cmocka_unit_test(activations_of_large_numbers_are_finite),
        cmocka_unit_test(sums_and_masks),
        cmocka_unit_test(gates),
        cmocka_unit_test(rotary_positions),
        cmocka_unit_test(keys_of_latent_attention),
        cmocka_unit_test(nodes_of_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
