/* Tests of weight names and initial values: every parameter of a model lies at exactly
 * one element of one Hugging Face tensor, with the shapes of `transformers`. */
#include "exec/params/names.h"

#include "tests/support/program_cases.h"
#include "tests/test.h"

#define MAX_NAMED 256

/* A named tensor of a model, with the number of times that each element was visited. */
typedef struct named {
    char name[MS_NAME_TEXT];
    ms_weight_name as;
    unsigned char *hits;
} named;

typedef struct catalogue {
    ms_arena *arena;
    int num;
    named at[MAX_NAMED];
} catalogue;

static named *find(catalogue *all, const char *name)
{
    for (int i = 0; i < all->num; i++)
        if (strcmp(all->at[i].name, name) == 0)
            return &all->at[i];
    return NULL;
}

static named *find_or_add(catalogue *all, const ms_weight_name *as, long expert)
{
    char name[MS_NAME_TEXT];
    ms_weight_name_text(as, expert, name);
    named *found = find(all, name);
    if (found != NULL) {
        ASSERT_INT(found->as.num_dims, as->num_dims);
        for (int d = 0; d < as->num_dims; d++)
            ASSERT_INT(found->as.shape[d], as->shape[d]);
        return found;
    }
    assert_true(all->num < MAX_NAMED);
    named *added = &all->at[all->num++];
    memcpy(added->name, name, sizeof name);
    added->as = *as;
    added->hits = MS_NEW_ARRAY(all->arena, as->count, unsigned char);
    return added;
}

/* Counts a visit at every element of a weight; elements beyond the end are padding of the
 * vocabulary. */
static void hit_all(catalogue *all, const ms_program *program, const ms_tensor *tensor,
                    const ms_weight_name *as)
{
    long size[MS_MAX_DIMS] = {1, 1, 1, 1}, count = 1;
    int num_dims = (int)strlen(tensor->dims);
    for (int d = 0; d < num_dims; d++)
        count *= size[d] = (long)program->size[tensor->dims[d] - '0'];
    long expert = 0;
    for (long i = 0; i < count; i++) {
        long place = as->offset, rest = i, row = 0;
        for (int d = num_dims; d-- > 0; rest /= size[d]) {
            place += as->stride[d] * (rest % size[d]);
            if (d == as->expert_dim)
                expert = rest % size[d];
            if (tensor->dims[d] == MS_DIM_VOCAB)
                row = rest % size[d];
        }
        assert_true((place >= as->count) == (row >= program->model->vocab));
        if (place < as->count)
            find_or_add(all, as, expert)->hits[place]++;
    }
}

static void add_part(catalogue *all, const ms_model *model, const ms_program_key *key,
                     long layer)
{
    const ms_program *program = ms_case_program(all->arena, model, key, 1);
    for (int t = 0; t < program->num_tensors; t++) {
        if (program->tensors[t].role != MS_ROLE_WEIGHT)
            continue;
        ms_weight_name as;
        ms_weight_name_of(program, t, layer, &as);
        if (as.is_tied)
            assert_non_null(find(all, as.name));
        else
            hit_all(all, program, &program->tensors[t], &as);
    }
}

/* Counts visits of all weights of a model; with `split` the programs are those of several
 * ranks. */
static catalogue *read_all(ms_arena *arena, ms_model *model, bool split)
{
    catalogue *all = MS_NEW(arena, catalogue);
    all->arena = arena;
    for (int part = 0; part < MS_NUM_BLOCK_KINDS; part++) {
        ms_program_key key = split ? ms_case_split_key((ms_block_kind)part)
                                   : ms_case_whole_key((ms_block_kind)part);
        long num_layers = part == MS_BLOCK_LAYER ? model->num_layers : 1;
        for (long layer = 0; layer < num_layers; layer++)
            add_part(all, model, &key, layer);
    }
    return all;
}

static double num_hits(const catalogue *all)
{
    double num = 0.0;
    for (int i = 0; i < all->num; i++)
        for (long k = 0; k < all->at[i].as.count; k++) {
            if (all->at[i].hits[k] != 1)
                fail_msg("%s: place %ld is hit %d times", all->at[i].name, k,
                         all->at[i].hits[k]);
            num += 1.0;
        }
    return num;
}

static ms_model small_model(int index, ms_arena *arena)
{
    ms_model model = ms_case_model(index);
    model.kind_of_layer = MS_NEW_ARRAY(arena, model.num_layers, unsigned char);
    return model;
}

static void every_parameter_has_one_place(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * (MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE); i++) {
        ms_ctx *cx = test_cx();
        ms_model model = small_model(i / 2, cx->arena);
        model.tied_embeddings = i % 2 == 1;
        double want = ms_model_params(&model).total;
        ASSERT_NEAR(num_hits(read_all(cx->arena, &model, false)), want, 0.0);
        /* a model of no family has this project's own weight names */
        model.family = NULL;
        ASSERT_NEAR(num_hits(read_all(cx->arena, &model, false)), want, 0.0);
    }
}

/* Sharded programs hit the same tensor elements, also with a vocabulary that tp does not
 * divide. */
static void ranks_do_not_change_names(void **state)
{
    (void)state;
    for (int i = 0; i < MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE; i++) {
        ms_ctx *cx = test_cx();
        ms_model model = small_model(i, cx->arena);
        model.vocab = 31;
        catalogue *whole = read_all(cx->arena, &model, false);
        catalogue *split = read_all(cx->arena, &model, true);
        ASSERT_INT(split->num, whole->num);
        ASSERT_NEAR(num_hits(split), num_hits(whole), 0.0);
        for (int k = 0; k < whole->num; k++)
            assert_memory_equal(&find(split, whole->at[k].name)->as, &whole->at[k].as,
                                sizeof(ms_weight_name));
    }
}

/* ---- the names and shapes of transformers ---- */

typedef struct named_shape {
    ms_make_model *model;
    const char *name;
    long rows, columns; /* columns 0: a tensor with one dim */
} named_shape;

/* shapes from state_dict() of the `transformers` classes with hidden 16, 8 heads of width
 * 4 (4 key/value heads), MLP 24, vocabulary 32, experts of width 12 */
static const named_shape shapes[] = {
    {ms_small_llama, "model.embed_tokens.weight", 32, 16},
    {ms_small_llama, "model.layers.0.input_layernorm.weight", 16, 0},
    {ms_small_llama, "model.layers.1.self_attn.q_proj.weight", 32, 16},
    {ms_small_llama, "model.layers.1.self_attn.k_proj.weight", 16, 16},
    {ms_small_llama, "model.layers.1.self_attn.v_proj.weight", 16, 16},
    {ms_small_llama, "model.layers.1.self_attn.o_proj.weight", 16, 32},
    {ms_small_llama, "model.layers.1.post_attention_layernorm.weight", 16, 0},
    {ms_small_llama, "model.layers.1.mlp.gate_proj.weight", 24, 16},
    {ms_small_llama, "model.layers.1.mlp.up_proj.weight", 24, 16},
    {ms_small_llama, "model.layers.1.mlp.down_proj.weight", 16, 24},
    {ms_small_llama, "model.norm.weight", 16, 0},
    {ms_small_llama, "lm_head.weight", 32, 16},
    {ms_small_qwen, "model.layers.0.self_attn.q_norm.weight", 4, 0},
    {ms_small_qwen, "model.layers.0.self_attn.k_norm.weight", 4, 0},
    {ms_small_biased, "model.layers.0.self_attn.q_proj.bias", 32, 0},
    {ms_small_biased, "model.layers.0.self_attn.v_proj.bias", 16, 0},
    {ms_small_biased, "model.layers.0.self_attn.o_proj.bias", 16, 0},
    {ms_small_biased, "model.layers.0.mlp.gate_proj.bias", 24, 0},
    {ms_small_biased, "model.layers.0.mlp.up_proj.bias", 24, 0},
    {ms_small_biased, "model.layers.0.mlp.down_proj.bias", 16, 0},
    {ms_small_gemma, "model.layers.0.input_layernorm.weight", 16, 0},
    {ms_small_gemma, "model.layers.0.post_attention_layernorm.weight", 16, 0},
    {ms_small_gemma, "model.layers.0.pre_feedforward_layernorm.weight", 16, 0},
    {ms_small_gemma, "model.layers.0.post_feedforward_layernorm.weight", 16, 0},
    {ms_small_gpt, "wte.weight", 32, 16},
    {ms_small_gpt, "wpe.weight", 16, 16},
    {ms_small_gpt, "h.0.ln_1.weight", 16, 0},
    {ms_small_gpt, "h.0.ln_1.bias", 16, 0},
    {ms_small_gpt, "h.1.attn.c_attn.weight", 16, 96},
    {ms_small_gpt, "h.1.attn.c_attn.bias", 96, 0},
    {ms_small_gpt, "h.1.attn.c_proj.weight", 32, 16},
    {ms_small_gpt, "h.1.attn.c_proj.bias", 16, 0},
    {ms_small_gpt, "h.1.ln_2.weight", 16, 0},
    {ms_small_gpt, "h.1.mlp.c_fc.weight", 16, 24},
    {ms_small_gpt, "h.1.mlp.c_fc.bias", 24, 0},
    {ms_small_gpt, "h.1.mlp.c_proj.weight", 24, 16},
    {ms_small_gpt, "h.1.mlp.c_proj.bias", 16, 0},
    {ms_small_gpt, "ln_f.weight", 16, 0},
    {ms_small_gpt, "ln_f.bias", 16, 0},
    {ms_small_mixtral, "model.layers.0.block_sparse_moe.gate.weight", 8, 16},
    {ms_small_mixtral, "model.layers.0.block_sparse_moe.experts.7.w1.weight", 12, 16},
    {ms_small_mixtral, "model.layers.0.block_sparse_moe.experts.7.w2.weight", 16, 12},
    {ms_small_mixtral, "model.layers.0.block_sparse_moe.experts.7.w3.weight", 12, 16},
    {ms_small_qwen_moe, "model.layers.0.mlp.gate.weight", 8, 16},
    {ms_small_qwen_moe, "model.layers.0.mlp.experts.3.gate_proj.weight", 12, 16},
    {ms_small_qwen_moe, "model.layers.0.mlp.experts.3.up_proj.weight", 12, 16},
    {ms_small_qwen_moe, "model.layers.0.mlp.experts.3.down_proj.weight", 16, 12},
    {ms_small_qwen_moe, "model.layers.0.mlp.shared_expert.down_proj.weight", 16, 20},
    {ms_small_qwen_moe, "model.layers.0.mlp.shared_expert_gate.weight", 1, 16},
    {ms_small_latent, "model.layers.0.self_attn.q_a_proj.weight", 8, 16},
    {ms_small_latent, "model.layers.0.self_attn.q_a_layernorm.weight", 8, 0},
    {ms_small_latent, "model.layers.0.self_attn.q_b_proj.weight", 48, 8},
    {ms_small_deepseek, "model.layers.0.self_attn.q_proj.weight", 48, 16},
    {ms_small_deepseek, "model.layers.0.self_attn.kv_a_proj_with_mqa.weight", 10, 16},
    {ms_small_deepseek, "model.layers.0.self_attn.kv_a_layernorm.weight", 8, 0},
    {ms_small_deepseek, "model.layers.0.self_attn.kv_b_proj.weight", 64, 8},
    {ms_small_deepseek, "model.layers.0.self_attn.o_proj.weight", 16, 32},
    {ms_small_deepseek, "model.layers.0.mlp.gate.e_score_correction_bias", 8, 0},
    {ms_small_deepseek, "model.layers.0.mlp.shared_experts.up_proj.weight", 12, 16},
    {ms_small_falcon, "model.layers.0.attention.norm.bias", 16, 0},
};

static void shapes_are_those_of_transformers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        ms_ctx *cx = test_cx();
        const named_shape *want = &shapes[i];
        ms_model model = want->model();
        const named *got = find(read_all(cx->arena, &model, false), want->name);
        if (got == NULL)
            fail_msg("no %s", want->name);
        ASSERT_INT(got->as.num_dims, want->columns == 0 ? 1 : 2);
        ASSERT_INT(got->as.shape[0], want->rows);
        ASSERT_INT(got->as.count, want->rows * (want->columns == 0 ? 1 : want->columns));
    }
}

static ms_weight_name name_in_layer(ms_arena *arena, ms_make_model *make,
                                    const char *weight)
{
    ms_model model = make();
    ms_program_key key = ms_case_whole_key(MS_BLOCK_LAYER);
    const ms_program *program = ms_case_program(arena, &model, &key, 1);
    ms_weight_name as = {.num_dims = 0};
    for (int t = program->num_tensors; t-- > 0;)
        if (program->tensors[t].role == MS_ROLE_WEIGHT &&
            strcmp(program->tensors[t].name, weight) == 0)
            ms_weight_name_of(program, t, 0, &as);
    assert_true(as.num_dims > 0);
    return as;
}

/* Strides of weights: rows are a product's outputs, except in GPT-2, where the columns of
 * one matrix hold query, key and value. */
static void elements_lie_as_in_transformers(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_weight_name query = name_in_layer(cx->arena, ms_small_llama, "attention.query");
    ASSERT_INT(query.stride[0], 1);      /* stride of hidden size */
    ASSERT_INT(query.stride[1], 4 * 16); /* stride of heads */
    ASSERT_INT(query.stride[2], 16);     /* stride of head width */
    ms_weight_name value = name_in_layer(cx->arena, ms_small_gpt, "attention.value");
    ASSERT_INT(value.offset, 64);
    ASSERT_INT(value.stride[0], 96);
    ASSERT_INT(value.stride[1], 4);
    ASSERT_INT(value.stride[2], 1);
    ms_weight_name rope =
        name_in_layer(cx->arena, ms_small_deepseek, "attention.key_rope");
    ASSERT_INT(rope.offset, 8 * 16);
    ms_weight_name up = name_in_layer(cx->arena, ms_small_mixtral, "experts.up");
    ASSERT_INT(up.expert_dim, 0);
    ASSERT_INT(up.stride[0], 0);
    assert_true(
        name_in_layer(cx->arena, ms_small_qwen, "attention.key_position").is_norm);
    assert_true(name_in_layer(cx->arena, ms_small_deepseek, "router.bias").is_bias);
    assert_true(name_in_layer(cx->arena, ms_small_gpt, "mlp.norm").is_norm);
}

/* ---- initial values ---- */

static void initial_values_are_normal(void **state)
{
    (void)state;
    enum {
        NUM = 100000
    };
    ms_initial initial = {.seed = 1, .deviation = 0.02};
    uint64_t key = ms_initial_key(&initial, "model.embed_tokens.weight");
    double sum = 0.0, squares = 0.0, products = 0.0, before = 0.0;
    int num_beyond = 0;
    for (long i = 0; i < NUM; i++) {
        double x = ms_initial_value(&initial, key, i, false, false) / 0.02;
        sum += x;
        squares += x * x;
        products += x * before;
        num_beyond += fabs(x) > 1.959963985;
        before = x;
    }
    assert_true(fabs(sum / NUM) < 4.0 / sqrt(NUM));
    assert_true(fabs(squares / NUM - 1.0) < 4.0 * sqrt(2.0 / NUM));
    assert_true(fabs(products / NUM) < 4.0 / sqrt(NUM));
    assert_true(fabs(num_beyond / (double)NUM - 0.05) < 4.0 * sqrt(0.05 * 0.95 / NUM));
}

static void initial_values_depend_on_seed_name_and_place_only(void **state)
{
    (void)state;
    ms_initial one = {.seed = 1, .deviation = 1.0}, two = {.seed = 2, .deviation = 1.0};
    uint64_t key = ms_initial_key(&one, "lm_head.weight");
    assert_true(key != ms_initial_key(&two, "lm_head.weight"));
    assert_true(key != ms_initial_key(&one, "lm_head.weighs"));
    double x = ms_initial_value(&one, key, 7, false, false);
    ms_initial_value(&one, key, 3, false, false);
    ASSERT_NEAR(ms_initial_value(&one, key, 7, false, false), x, 0.0);
    assert_true(ms_initial_value(&one, key, 8, false, false) != x);
}

/* Initial values never change between versions, so that saved runs can be repeated.
 * tests/oracle/torch/make_oracle.py computes the same numbers independently. */
static void initial_values_stay(void **state)
{
    (void)state;
    ms_initial initial = {.seed = 1, .deviation = 1.0, .spread = 0.5};
    uint64_t key = ms_initial_key(&initial, "lm_head.weight");
    assert_true(key == 0x899d4444427e3f3au);
    ASSERT_NEAR(ms_initial_value(&initial, key, 0, false, false), -0.41176139062485639,
                1e-14);
    ASSERT_NEAR(ms_initial_value(&initial, key, 12345678901, false, false),
                -0.30317739383127179, 1e-14);
    ASSERT_NEAR(ms_initial_value(&initial, key, 2, true, false), 1.1835852668547155, 0.0);
}

static void norms_start_at_one_and_biases_at_zero(void **state)
{
    (void)state;
    ms_initial initial = {.seed = 1, .deviation = 0.02};
    uint64_t key = ms_initial_key(&initial, "model.norm.weight");
    ASSERT_NEAR(ms_initial_value(&initial, key, 5, true, false), 1.0, 0.0);
    ASSERT_NEAR(ms_initial_value(&initial, key, 5, false, true), 0.0, 0.0);
    initial.spread = 0.1;
    double low = 1.0, high = -1.0;
    for (long i = 0; i < 1000; i++) {
        double x = ms_initial_value(&initial, key, i, false, true);
        ASSERT_NEAR(ms_initial_value(&initial, key, i, true, false), 1.0 + x, 0.0);
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    assert_true(low >= -0.1 && low < -0.09 && high <= 0.1 && high > 0.09);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_parameter_has_one_place),
        cmocka_unit_test(ranks_do_not_change_names),
        cmocka_unit_test(shapes_are_those_of_transformers),
        cmocka_unit_test(elements_lie_as_in_transformers),
        cmocka_unit_test(initial_values_are_normal),
        cmocka_unit_test(initial_values_depend_on_seed_name_and_place_only),
        cmocka_unit_test(initial_values_stay),
        cmocka_unit_test(norms_start_at_one_and_biases_at_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
