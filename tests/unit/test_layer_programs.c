/* Layer programs executed: every sharded program must give what the unsharded one gives, do the FLOP and send the
 * bytes it claims; and the unsharded backward must agree with finite differences of the forward. */
#include "costmodel/program.h"

#include "base/rng.h"
#include "tests/support/interpreter.h"
#include "tests/test.h"

#define SEQUENCE   16
#define MICROBATCH 2

static int num_wrong; /* cases of the running test that failed; each is printed */

/* ---- models ---- */

static ms_model dense_model(const char *name)
{
    ms_model model = {.name = name,
                      .num_layers = 2,
                      .hidden = 16,
                      .num_heads = 8,
                      .num_kv_heads = 4,
                      .head_dim = 4,
                      .value_head_dim = 4,
                      .ffn_hidden = 24,
                      .vocab = 32,
                      .max_positions = SEQUENCE,
                      .norm = MS_NORM_RMS,
                      .norms_per_layer = 2,
                      .final_norm = true,
                      .activation = MS_ACT_SWIGLU,
                      .num_kinds = 1};
    return model;
}

static ms_model gpt_model(const char *name)
{
    ms_model model = dense_model(name);
    model.num_kv_heads = model.num_heads;
    model.norm = MS_NORM_LAYER;
    model.norm_bias = model.qkv_bias = model.attention_out_bias = model.mlp_bias = true;
    model.activation = MS_ACT_GELU;
    model.position = MS_POSITION_LEARNED;
    return model;
}

static ms_model moe_model(const char *name, ms_router_kind router)
{
    ms_model model = dense_model(name);
    model.kinds[0].moe = true;
    model.moe.num_experts = 8;
    model.moe.top_k = 2;
    model.moe.ffn_hidden = 12;
    model.moe.router = router;
    return model;
}

static void use_latent_attention(ms_model *model, long q_lora_rank)
{
    model->attention = MS_ATTENTION_MLA;
    model->num_kv_heads = model->num_heads;
    model->mla.q_lora_rank = q_lora_rank;
    model->mla.kv_lora_rank = 8;
    model->mla.nope_head_dim = 4;
    model->mla.rope_head_dim = 2;
    model->head_dim = 6;
}

/* ---- programs ---- */

static ms_program_key whole_key(ms_program_part part)
{
    return (ms_program_key){.part = (unsigned char)part,
                            .attention_fused = true,
                            .tp = 1,
                            .cp = 1,
                            .ep = 1,
                            .etp = 1,
                            .microbatch = MICROBATCH};
}

/* The sharded case: tp 2 x cp 2 x dp 2. */
static ms_program_key split_key(ms_program_part part)
{
    ms_program_key key = whole_key(part);
    key.tp = key.cp = 2;
    key.loss_parallel = true;
    return key;
}

static const ms_program *make_program(ms_arena *arena, const ms_model *model,
                                      const ms_program_key *key, long data_parallel)
{
    const ms_program *program =
        ms_program_make(arena, model, key, SEQUENCE, data_parallel, MS_BF16);
    const char *why = "";
    if (!ms_program_check(program, &why))
        fail_msg("%s: the program is not sound: %s", model->name, why);
    return program;
}

static const char *describe(ms_arena *arena, const ms_model *model,
                            const ms_program_key *key)
{
    return ms_arena_printf(
        arena,
        "%s part %d tp %d cp %d ep %d etp %d sp %d recompute %d fused %d "
        "regather %d loss_parallel %d",
        model->name, key->part, key->tp, key->cp, key->ep, key->etp,
        key->sequence_parallel, key->recompute, key->attention_fused, key->regather,
        key->loss_parallel);
}

static int start_cases(void **state)
{
    (void)state;
    num_wrong = 0;
    return 0;
}

static void finish_cases(void)
{
    if (num_wrong > 0)
        fail_msg("%d cases are wrong", num_wrong);
}

static void wrong(const char *label, const char *what)
{
    num_wrong++;
    print_error("%s: %s\n", label, what);
}

/* ---- comparing two runs ---- */

static void compare_tensor(ms_interp *got, int got_tensor, ms_interp *want,
                           int want_tensor, const char *label, const char *what)
{
    ms_arena *arena = got->arena;
    if (got_tensor < 0 || want_tensor < 0) {
        if (got_tensor != want_tensor)
            wrong(label, ms_arena_printf(arena, "only one program has the %s", what));
        return;
    }
    const char *name = got->program->tensors[got_tensor].name;
    long got_count, want_count;
    const double *got_values = ms_interp_gather(got, got_tensor, &got_count);
    const double *want_values = ms_interp_gather(want, want_tensor, &want_count);
    if (got_values == NULL || want_values == NULL || got_count != want_count) {
        wrong(label, got->why);
        got->why[0] = '\0';
        return;
    }
    double difference = ms_interp_difference(got_values, want_values, got_count);
    if (!(difference <= 1e-12))
        wrong(label,
              ms_arena_printf(arena, "%s %s differs by %.3g from the unsharded program",
                              what, name, difference));
}

static void compare_runs(ms_interp *got, ms_interp *want, const char *label)
{
    const ms_program *g = got->program, *w = want->program;
    compare_tensor(got, g->output, want, w->output, label, "output");
    compare_tensor(got, g->input_gradient, want, w->input_gradient, label,
                   "input gradient");
    int n = 0;
    for (; ms_interp_weight(g, n) >= 0 && ms_interp_weight(w, n) >= 0; n++) {
        const ms_tensor *weight = &g->tensors[ms_interp_weight(g, n)];
        compare_tensor(got, weight->gradient, want,
                       w->tensors[ms_interp_weight(w, n)].gradient, label, "gradient of");
    }
    if (ms_interp_weight(g, n) != ms_interp_weight(w, n))
        wrong(label, "the programs have different numbers of weights");
}

/* ---- what a program says about itself ---- */

static void check_flop(const ms_interp *run, const char *label)
{
    const ms_program *program = run->program;
    for (int i = 0; i < program->num_nodes; i++) {
        double claimed_flop = ms_node_flop(program, &program->nodes[i]) * run->num_ranks;
        if (claimed_flop != run->node_flop[i])
            wrong(label,
                  ms_arena_printf(
                      run->arena, "node %d (%s, %s) claims %.17g FLOP and executes %.17g",
                      i, program->nodes[i].name, ms_op_names[program->nodes[i].op],
                      claimed_flop, run->node_flop[i]));
    }
}

static double claimed_bytes(const ms_program *program, const ms_node *node)
{
    ms_node_comm comm;
    bool is_comm = node->op == MS_OP_REDISTRIBUTE || node->op == MS_OP_EXCHANGE;
    if (!is_comm || !ms_node_communicates(program, node, &comm))
        return 0;
    return ms_collective_wire_bytes(
        comm.collective, program->mesh_size[comm.mesh][comm.axis], comm.size_bytes);
}

/* Rows of the sparse mesh are ragged, so only sums over ranks are exact there, and exchanges only when balanced. */
static void check_bytes(const ms_interp *run, const char *label)
{
    const ms_program *program = run->program;
    for (int i = 0; i < program->num_nodes; i++) {
        const ms_node *node = &program->nodes[i];
        double claimed = claimed_bytes(program, node), sum = 0, widest = 0;
        for (int rank = 0; rank < run->num_ranks; rank++) {
            double sent = run->node_wire_bytes[(long)i * run->num_ranks + rank];
            sum += sent;
            widest = fmax(widest, fabs(sent - claimed));
        }
        bool is_ragged =
            strchr(program->tensors[node->in[0]].dims, MS_DIM_ROWS) != NULL &&
            !run->options.balanced_routing;
        if (is_ragged && node->op == MS_OP_EXCHANGE)
            continue;
        double off = is_ragged ? fabs(sum - claimed * run->num_ranks) : widest;
        if (!(off <= 1e-12 * claimed))
            wrong(label,
                  ms_arena_printf(
                      run->arena,
                      "node %d (%s, %s) claims %.17g bytes per rank and sends %.17g", i,
                      node->name, ms_op_names[node->op], claimed, sum / run->num_ranks));
    }
}

static void check_sizes(const ms_interp *run, const char *label)
{
    for (int t = 0; t < run->program->num_tensors; t++) {
        const ms_tensor *tensor = &run->program->tensors[t];
        bool is_ragged =
            strchr(tensor->dims, MS_DIM_ROWS) != NULL && !run->options.balanced_routing;
        double sum = 0, claimed = ms_tensor_local_elements(run->program, t);
        for (int rank = 0; rank < run->num_ranks; rank++) {
            double held = (double)run->cells[(long)t * run->num_ranks + rank].count;
            sum += held;
            if (!is_ragged && held != claimed)
                wrong(label, ms_arena_printf(run->arena,
                                             "%s claims %g elements, rank %d holds %g",
                                             tensor->name, claimed, rank, held));
        }
        if (sum != claimed * run->num_ranks)
            wrong(label,
                  ms_arena_printf(run->arena, "%s claims %g elements, the ranks hold %g",
                                  tensor->name, claimed * run->num_ranks, sum));
    }
}

/* What is kept for backward is used there, unless the policy keeps tensors by name. */
static void check_saved(const ms_interp *run, const char *label)
{
    const ms_program *program = run->program;
    bool *is_used = MS_NEW_ARRAY(run->arena, program->num_tensors, bool);
    for (int i = program->num_forward_nodes; i < program->num_nodes; i++)
        for (int j = 0; j < program->nodes[i].num_in; j++)
            is_used[program->nodes[i].in[j]] = true;
    for (int t = 0; t < program->num_tensors; t++)
        if (program->tensors[t].saved && !is_used[t] &&
            program->key.recompute != MS_RECOMPUTE_PER_OP)
            wrong(label,
                  ms_arena_printf(run->arena, "%s is saved, but backward does not use it",
                                  program->tensors[t].name));
}

/* ---- one case ---- */

typedef struct reference {
    ms_arena *arena;
    ms_interp *run;
    long positions[SEQUENCE];
    bool balanced_routing;
} reference;

static ms_interp *execute(ms_arena *arena, const ms_program *program,
                          const reference *ref)
{
    ms_interp_options options = {.seed = 20240607,
                                 .positions = ref->positions,
                                 .balanced_routing = ref->balanced_routing};
    return ms_interp_run(arena, program, &options);
}

/* The unsharded run over as many sequences as `data_parallel` ranks see together. */
static void open_reference(reference *ref, const ms_model *model, ms_program_part part,
                           long cp, long data_parallel)
{
    ref->arena = ms_arena_open();
    ms_interp_positions(ref->positions, SEQUENCE, cp);
    ms_program_key key = whole_key(part);
    key.microbatch = (int)(MICROBATCH * data_parallel);
    ref->run = execute(ref->arena, make_program(ref->arena, model, &key, 1), ref);
    if (ref->run->why[0] != '\0')
        wrong(describe(ref->arena, model, &key), ref->run->why);
    check_flop(ref->run, model->name);
    check_bytes(ref->run, model->name);
}

static void check_case(const reference *ref, const ms_model *model,
                       const ms_program_key *key, long data_parallel)
{
    ms_arena *arena = ms_arena_open();
    const char *label = describe(arena, model, key);
    ms_interp *run = execute(arena, make_program(arena, model, key, data_parallel), ref);
    if (run->why[0] != '\0') {
        wrong(label, run->why);
    } else {
        compare_runs(run, ref->run, label);
        check_flop(run, label);
        check_bytes(run, label);
        check_sizes(run, label);
        check_saved(run, label);
    }
    ms_arena_close(arena);
}

/* Sequence parallelism on and off and every recompute mode, with each way to run attention and to keep gathers. */
static void check_modes(const reference *ref, const ms_model *model, ms_program_key key)
{
    for (int mode = 0; mode < MS_NUM_RECOMPUTE; mode++) {
        for (int i = 0; i < 8; i++) {
            key.recompute = (unsigned char)mode;
            key.sequence_parallel = (i & 1) != 0;
            key.attention_fused = (i & 2) != 0;
            key.regather = (i & 4) != 0;
            check_case(ref, model, &key, 2);
        }
    }
}

/* One of these for each recompute mode. */
static void check_few_modes(const reference *ref, const ms_model *model,
                            ms_program_key key)
{
    for (int i = 0; i < 2 * MS_NUM_RECOMPUTE; i++) {
        key.recompute = (unsigned char)(i / 2);
        key.sequence_parallel = i % 2 != 0;
        key.attention_fused = i < 4;
        key.regather = i >= 2;
        check_case(ref, model, &key, 2);
    }
}

static void check_dense_layer(const ms_model *model)
{
    reference ref = {0};
    open_reference(&ref, model, MS_PART_LAYER, 2, 2);
    check_modes(&ref, model, split_key(MS_PART_LAYER));
    ms_arena_close(ref.arena);
}

/* Expert axes of the mesh; with etp 1 all tp ranks of a group own different experts. */
static void check_moe_layer(const ms_model *model, bool balanced_routing)
{
    static const short meshes[][2] = {{1, 1}, {2, 1}, {4, 1}, {8, 1},
                                      {1, 2}, {2, 2}, {4, 2}};
    reference ref = {.balanced_routing = balanced_routing};
    open_reference(&ref, model, MS_PART_LAYER, 2, 2);
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        ms_program_key key = split_key(MS_PART_LAYER);
        key.ep = meshes[i][0];
        key.etp = meshes[i][1];
        key.sequence_parallel = i % 2 == 0;
        if (balanced_routing)
            check_case(&ref, model, &key, 2);
        else
            check_few_modes(&ref, model, key);
    }
    ms_arena_close(ref.arena);
}

static void check_ends(const ms_model *model, ms_program_part part)
{
    reference ref = {0};
    open_reference(&ref, model, part, 2, 2);
    ms_program_key key = split_key(part);
    for (int i = 0; i < 8; i++) {
        key.sequence_parallel = (i & 1) != 0;
        key.loss_parallel = (i & 2) != 0;
        key.regather = (i & 4) != 0;
        check_case(&ref, model, &key, 2);
    }
    ms_arena_close(ref.arena);
}

/* ---- finite differences ---- */

#define STEP            1e-5
#define NUM_COORDINATES 3
#define ROUNDING        1e-8 /* of a difference of two losses near 10, over the step */

static double loss_at(const ms_program *program, ms_interp_options options, double nudge)
{
    ms_arena *arena = ms_arena_open();
    options.forward_only = true;
    options.nudge = nudge;
    ms_interp *run = ms_interp_run(arena, program, &options);
    double loss = ms_interp_loss(run);
    ms_arena_close(arena);
    return loss;
}

/* Some coordinates of one tensor; a tensor without gradient must not change the loss. */
static void check_slope(ms_interp *run, int tensor, ms_rng *rng, const char *label)
{
    const ms_program *program = run->program;
    int gradient_tensor = tensor == program->input ? program->input_gradient
                                                   : program->tensors[tensor].gradient;
    long count, gradient_count = 0;
    const double *gradient = NULL;
    if (ms_interp_gather(run, tensor, &count) == NULL ||
        (gradient_tensor >= 0 &&
         (gradient = ms_interp_gather(run, gradient_tensor, &gradient_count)) == NULL)) {
        wrong(label, run->why);
        return;
    }
    double largest = gradient == NULL ? 1 : 0;
    for (long i = 0; i < gradient_count; i++)
        largest = fmax(largest, fabs(gradient[i]));
    for (int i = 0; i < NUM_COORDINATES; i++) {
        ms_interp_options options = run->options;
        options.num_nudged = 1;
        options.nudged = tensor;
        options.nudged_element = (long)ms_rng_below(rng, (uint64_t)count);
        double slope =
            (loss_at(program, options, STEP) - loss_at(program, options, -STEP)) /
            (2 * STEP);
        double claimed = gradient != NULL ? gradient[options.nudged_element] : 0;
        if (!(fabs(slope - claimed) <= 1e-6 * largest + ROUNDING))
            wrong(label,
                  ms_arena_printf(run->arena,
                                  "gradient of %s[%ld] is %.12g, differences give %.12g",
                                  program->tensors[tensor].name, options.nudged_element,
                                  claimed, slope));
    }
}

static void check_slopes(const ms_model *model, ms_program_part part,
                         bool attention_fused)
{
    ms_arena *arena = ms_arena_open();
    ms_program_key key = whole_key(part);
    key.microbatch = 1;
    key.attention_fused = attention_fused;
    const ms_program *program =
        ms_program_make(arena, model, &key, SEQUENCE / 2, 1, MS_BF16);
    ms_interp_options options = {.seed = 4711};
    ms_interp *run = ms_interp_run(arena, program, &options);
    ms_rng rng = ms_rng_seed(1);
    const char *label = describe(arena, model, &key);
    if (run->why[0] != '\0')
        wrong(label, run->why);
    for (int n = 0; run->why[0] == '\0' && ms_interp_weight(program, n) >= 0; n++)
        check_slope(run, ms_interp_weight(program, n), &rng, label);
    if (run->why[0] == '\0' && program->input >= 0)
        check_slope(run, program->input, &rng, label);
    ms_arena_close(arena);
}

/* ---- the models of the tests ---- */

static ms_model llama(void)
{
    return dense_model("llama");
}

static ms_model qwen(void)
{
    ms_model model = dense_model("qwen");
    model.qk_norm = true;
    return model;
}

static ms_model biased(void)
{
    ms_model model = dense_model("biased");
    model.qkv_bias = model.attention_out_bias = model.mlp_bias = true;
    return model;
}

static ms_model gpt(void)
{
    ms_model model = gpt_model("gpt");
    model.dropout = true;
    return model;
}

static ms_model gemma(void)
{
    ms_model model = dense_model("gemma");
    model.activation = MS_ACT_GEGLU;
    model.post_norms = true;
    model.norms_per_layer = 4;
    model.kinds[0].window_tokens = 5;
    return model;
}

static ms_model falcon(void)
{
    ms_model model = gpt_model("falcon");
    model.parallel_block = true;
    model.norms_per_layer = 1;
    model.position = MS_POSITION_ROTARY;
    model.mlp_bias = false;
    return model;
}

static ms_model neox(void)
{
    ms_model model = gpt_model("neox");
    model.parallel_block = true;
    model.position = MS_POSITION_ROTARY;
    model.activation = MS_ACT_RELU2;
    return model;
}

static ms_model latent(void)
{
    ms_model model = dense_model("latent");
    use_latent_attention(&model, 8);
    return model;
}

static ms_model mixtral(void)
{
    return moe_model("mixtral", MS_ROUTER_TOPK_SOFTMAX);
}

static ms_model qwen_moe(void)
{
    ms_model model = moe_model("qwen-moe", MS_ROUTER_SOFTMAX_TOPK);
    model.moe.shared_ffn_hidden = 20;
    model.moe.shared_gate = true;
    return model;
}

static ms_model softmax_moe(void)
{
    ms_model model = moe_model("softmax-moe", MS_ROUTER_SOFTMAX_TOPK);
    model.moe.norm_topk = true;
    return model;
}

static ms_model deepseek(void)
{
    ms_model model = moe_model("deepseek", MS_ROUTER_SIGMOID);
    use_latent_attention(&model, 0);
    model.moe.shared_ffn_hidden = 12;
    model.moe.router_bias = model.moe.norm_topk = true;
    return model;
}

typedef ms_model make_model(void);
static make_model *const all_layers[] = {llama,   qwen,     biased,      gpt,
                                         gemma,   falcon,   neox,        latent,
                                         mixtral, qwen_moe, softmax_moe, deepseek};
#define NUM_DENSE 8

/* ---- tests ---- */

static void the_input_leads_to_its_gradient(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model = llama();
    ms_program_key key = split_key(MS_PART_LAYER);
    const ms_program *program = make_program(cx->arena, &model, &key, 2);
    ASSERT_INT(program->tensors[program->input].gradient, program->input_gradient);
}

static void sharded_dense_layers_give_what_unsharded_ones_give(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_DENSE; i++) {
        ms_model model = all_layers[i]();
        check_dense_layer(&model);
    }
    finish_cases();
}

static void sharded_expert_layers_give_what_unsharded_ones_give(void **state)
{
    (void)state;
    for (size_t i = NUM_DENSE; i < sizeof all_layers / sizeof *all_layers; i++) {
        ms_model model = all_layers[i]();
        check_moe_layer(&model, false);
    }
    finish_cases();
}

static void balanced_exchanges_send_the_bytes_they_claim(void **state)
{
    (void)state;
    for (size_t i = NUM_DENSE; i < sizeof all_layers / sizeof *all_layers; i++) {
        ms_model model = all_layers[i]();
        check_moe_layer(&model, true);
    }
    finish_cases();
}

static void other_meshes_give_what_one_rank_gives(void **state)
{
    (void)state;
    static const short meshes[][5] = {/* dp cp tp ep etp */
                                      {1, 1, 4, 4, 1}, {1, 4, 1, 2, 1}, {4, 1, 1, 4, 1},
                                      {1, 1, 4, 1, 4}, {2, 1, 2, 2, 2}, {1, 2, 2, 4, 1}};
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        ms_model model = deepseek();
        ms_program_key key = whole_key(MS_PART_LAYER);
        key.cp = meshes[i][1];
        key.tp = meshes[i][2];
        key.ep = meshes[i][3];
        key.etp = meshes[i][4];
        key.sequence_parallel = key.tp > 1;
        reference ref = {0};
        open_reference(&ref, &model, MS_PART_LAYER, key.cp, meshes[i][0]);
        check_case(&ref, &model, &key, meshes[i][0]);
        ms_arena_close(ref.arena);
    }
    finish_cases();
}

static void sharded_embeddings_give_what_unsharded_ones_give(void **state)
{
    (void)state;
    ms_model model = llama();
    check_ends(&model, MS_PART_EMBED);
    model = gpt();
    check_ends(&model, MS_PART_EMBED);
    model.embedding_norm = true;
    check_ends(&model, MS_PART_EMBED);
    finish_cases();
}

static void sharded_heads_give_what_unsharded_ones_give(void **state)
{
    (void)state;
    ms_model model = llama();
    check_ends(&model, MS_PART_HEAD);
    model = gpt();
    model.head_bias = true;
    check_ends(&model, MS_PART_HEAD);
    model.final_norm = false;
    check_ends(&model, MS_PART_HEAD);
    finish_cases();
}

static void layer_gradients_agree_with_finite_differences(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof all_layers / sizeof *all_layers; i++) {
        ms_model model = all_layers[i]();
        check_slopes(&model, MS_PART_LAYER, i % 2 == 0);
    }
    finish_cases();
}

static void end_gradients_agree_with_finite_differences(void **state)
{
    (void)state;
    ms_model model = llama();
    check_slopes(&model, MS_PART_EMBED, true);
    check_slopes(&model, MS_PART_HEAD, true);
    model = gpt();
    model.head_bias = model.embedding_norm = true;
    check_slopes(&model, MS_PART_EMBED, true);
    check_slopes(&model, MS_PART_HEAD, true);
    finish_cases();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_input_leads_to_its_gradient),
        cmocka_unit_test_setup(layer_gradients_agree_with_finite_differences,
                               start_cases),
        cmocka_unit_test_setup(end_gradients_agree_with_finite_differences, start_cases),
        cmocka_unit_test_setup(sharded_dense_layers_give_what_unsharded_ones_give,
                               start_cases),
        cmocka_unit_test_setup(sharded_expert_layers_give_what_unsharded_ones_give,
                               start_cases),
        cmocka_unit_test_setup(balanced_exchanges_send_the_bytes_they_claim, start_cases),
        cmocka_unit_test_setup(other_meshes_give_what_one_rank_gives, start_cases),
        cmocka_unit_test_setup(sharded_embeddings_give_what_unsharded_ones_give,
                               start_cases),
        cmocka_unit_test_setup(sharded_heads_give_what_unsharded_ones_give, start_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
