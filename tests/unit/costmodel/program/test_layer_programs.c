/* Execution of layer programs: every sharded program computes what the unsharded one
 * does, executes the FLOP and sends the bytes that it claims; and the unsharded
 * backward agrees with finite differences of the forward. */
#include "costmodel/program/program.h"
#include "costmodel/program/ring.h"

#include "base/rng.h"
#include "tests/support/interpreter.h"
#include "tests/support/program_cases.h"
#include "tests/test.h"

#define MS_SMALL_SEQUENCE  16
#define MS_CASE_MICROBATCH 2

/* ---- comparing two runs ---- */

static void compare_tensor(ms_interp *got, int got_tensor, ms_interp *want,
                           int want_tensor, const char *label, const char *what)
{
    ms_arena *arena = got->arena;
    if (got_tensor < 0 || want_tensor < 0) {
        if (got_tensor != want_tensor)
            ms_case_wrong(label,
                          ms_arena_printf(arena, "only one program has the %s", what));
        return;
    }
    const char *name = got->program->tensors[got_tensor].name;
    long got_count, want_count;
    const double *got_values = ms_interp_gather(got, got_tensor, &got_count);
    const double *want_values = ms_interp_gather(want, want_tensor, &want_count);
    if (got_values == NULL || want_values == NULL || got_count != want_count) {
        ms_case_wrong(label, got->why);
        got->why[0] = '\0';
        return;
    }
    double difference = ms_interp_difference(got_values, want_values, got_count);
    if (!(difference <= 1e-12))
        ms_case_wrong(label,
                      ms_arena_printf(arena,
                                      "%s %s differs by %.3g from the unsharded program",
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
        ms_case_wrong(label, "the programs have different numbers of weights");
}

/* ---- claims of a program about itself ---- */

static void check_flop(const ms_interp *run, const char *label)
{
    const ms_program *program = run->program;
    for (int i = 0; i < program->num_nodes; i++) {
        double claimed_flop = ms_node_flop(program, &program->nodes[i]) * run->num_ranks;
        if (claimed_flop != run->node_flop[i])
            ms_case_wrong(label,
                          ms_arena_printf(
                              run->arena,
                              "node %d (%s, %s) claims %.17g FLOP and executes %.17g", i,
                              program->nodes[i].name, ms_op_names[program->nodes[i].op],
                              claimed_flop, run->node_flop[i]));
    }
}

static double claimed_bytes(const ms_program *program, const ms_node *node)
{
    ms_ring_transfer transfers[MS_MAX_RING_TRANSFERS];
    double ring_bytes = 0;
    for (int i = ms_ring_transfers(program, node, transfers) - 1; i >= 0; i--)
        ring_bytes += transfers[i].count * transfers[i].size_bytes;
    if (ring_bytes > 0)
        return ring_bytes;
    ms_node_comm comm;
    bool is_comm = node->op == MS_OP_REDISTRIBUTE || node->op == MS_OP_EXCHANGE;
    if (!is_comm || !ms_node_communicates(program, node, &comm))
        return 0;
    return ms_collective_wire_bytes(
        comm.collective, program->mesh_size[comm.mesh][comm.axis], comm.size_bytes);
}

/* Checks that every node sends the bytes that it claims: on each rank, or, for nodes on
 * rows of experts, whose number differs by rank, in the sum over ranks. The exchange of
 * such rows is checked only when routing is balanced. */
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
            ms_case_wrong(
                label,
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
                ms_case_wrong(label,
                              ms_arena_printf(run->arena,
                                              "%s claims %g elements, rank %d holds %g",
                                              tensor->name, claimed, rank, held));
        }
        if (sum != claimed * run->num_ranks)
            ms_case_wrong(label,
                          ms_arena_printf(run->arena,
                                          "%s claims %g elements, the ranks hold %g",
                                          tensor->name, claimed * run->num_ranks, sum));
    }
}

/* Every tensor saved for backward is used in backward, unless the recomputation policy
 * saves tensors by name. */
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
            ms_case_wrong(label,
                          ms_arena_printf(run->arena,
                                          "%s is saved, but backward does not use it",
                                          program->tensors[t].name));
}

/* ---- one case ---- */

typedef struct reference {
    ms_arena *arena;
    ms_interp *run;
    long positions[MS_SMALL_SEQUENCE];
    bool balanced_routing;
    ms_lora lora;
    bool lora_joined;
} reference;

static ms_interp *execute(ms_arena *arena, const ms_program *program,
                          const reference *ref)
{
    ms_interp_options options = {.seed = 20240607,
                                 .positions = ref->positions,
                                 .balanced_routing = ref->balanced_routing};
    return ms_interp_run(arena, program, &options);
}

/* Runs the unsharded program over as many sequences as `data_parallel` ranks have
 * together. */
static void open_reference(reference *ref, const ms_model *model, ms_block_kind part,
                           long cp, long data_parallel)
{
    ref->arena = ms_arena_open();
    ms_interp_positions(ref->positions, MS_SMALL_SEQUENCE, cp);
    ms_program_key key = ms_case_whole_key(part);
    key.microbatch = (int)(MS_CASE_MICROBATCH * data_parallel);
    key.lora = ref->lora;
    key.lora_joined = ref->lora_joined;
    ref->run = execute(ref->arena, ms_case_program(ref->arena, model, &key, 1), ref);
    if (ref->run->why[0] != '\0')
        ms_case_wrong(ms_case_describe(ref->arena, model, &key), ref->run->why);
    check_flop(ref->run, model->name);
    check_bytes(ref->run, model->name);
}

static void check_case(const reference *ref, const ms_model *model,
                       const ms_program_key *key, long data_parallel)
{
    ms_arena *arena = ms_arena_open();
    const char *label = ms_case_describe(arena, model, key);
    ms_interp *run =
        execute(arena, ms_case_program(arena, model, key, data_parallel), ref);
    if (run->why[0] != '\0') {
        ms_case_wrong(label, run->why);
    } else {
        compare_runs(run, ref->run, label);
        check_flop(run, label);
        check_bytes(run, label);
        check_sizes(run, label);
        check_saved(run, label);
    }
    ms_arena_close(arena);
}

/* Checks the model's program in all combinations of the recomputation modes, sequence
 * parallelism on or off, attention fused or unfused, and gathered tensors kept for
 * backward or gathered again. */
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

/* Checks every recomputation mode with sequence parallelism on and off. Each mode has
 * only one choice of fused or unfused attention, and one of keeping gathered tensors or
 * gathering them again. */
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
    open_reference(&ref, model, MS_BLOCK_LAYER, 2, 2);
    check_modes(&ref, model, ms_case_split_key(MS_BLOCK_LAYER));
    ms_arena_close(ref.arena);
}

/* Checks layers with experts on meshes of (ep, etp); with etp 1 the tp ranks own
 * different experts. */
static void check_moe_layer(const ms_model *model, bool balanced_routing)
{
    static const short meshes[][2] = {{1, 1}, {2, 1}, {4, 1}, {8, 1},
                                      {1, 2}, {2, 2}, {4, 2}};
    reference ref = {.balanced_routing = balanced_routing};
    open_reference(&ref, model, MS_BLOCK_LAYER, 2, 2);
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        ms_program_key key = ms_case_split_key(MS_BLOCK_LAYER);
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

/* Checks layers with adapters; joined ones share the matrix A. */
static void check_adapters(const ms_model *model, ms_lora lora)
{
    for (int joined = 0; joined < 2; joined++) {
        reference ref = {.lora = lora, .lora_joined = joined > 0};
        open_reference(&ref, model, MS_BLOCK_LAYER, 2, 2);
        ms_program_key key = ms_case_split_key(MS_BLOCK_LAYER);
        key.lora = lora;
        key.lora_joined = joined > 0;
        check_few_modes(&ref, model, key);
        ms_arena_close(ref.arena);
    }
}

static void check_ends(const ms_model *model, ms_block_kind part)
{
    reference ref = {0};
    open_reference(&ref, model, part, 2, 2);
    ms_program_key key = ms_case_split_key(part);
    for (int i = 0; i < 8; i++) {
        key.sequence_parallel = (i & 1) != 0;
        key.loss_parallel = (i & 2) != 0;
        key.regather = (i & 4) != 0;
        check_case(&ref, model, &key, 2);
    }
    ms_arena_close(ref.arena);
}

/* Adapters of all layers that can have one. */
static ms_lora adapters_of(const ms_model *model)
{
    bool has_experts = model->moe.num_experts > 0;
    return (ms_lora){.rank = 4,
                     .targets = has_experts ? MS_LORA_ATTENTION
                                            : MS_LORA_ATTENTION | MS_LORA_MLP};
}

/* ---- finite differences ---- */

#define STEP            1e-5
#define NUM_COORDINATES 3
/* a slope is the difference of two losses divided by STEP; ROUNDING bounds its error from
 * rounding losses of about 10 */
#define ROUNDING 1e-8

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

/* Compares the gradient of a tensor at some coordinates with finite differences; a
 * tensor without gradient must not change the loss. */
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
        ms_case_wrong(label, run->why);
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
            ms_case_wrong(
                label,
                ms_arena_printf(run->arena,
                                "gradient of %s[%ld] is %.12g, differences give %.12g",
                                program->tensors[tensor].name, options.nudged_element,
                                claimed, slope));
    }
}

/* Checks gradients of all weights, or with adapters of those that are not frozen. */
static void check_slopes(const ms_model *model, ms_block_kind part, bool attention_fused,
                         ms_lora lora)
{
    ms_arena *arena = ms_arena_open();
    ms_program_key key = ms_case_whole_key(part);
    key.microbatch = 1;
    key.attention_fused = attention_fused;
    key.lora = lora;
    const ms_program *program =
        ms_program_make(arena, model, &key, MS_SMALL_SEQUENCE / 2, 1, MS_BF16);
    ms_interp_options options = {.seed = 4711};
    ms_interp *run = ms_interp_run(arena, program, &options);
    ms_rng rng = ms_rng_seed(1);
    const char *label = ms_case_describe(arena, model, &key);
    if (run->why[0] != '\0')
        ms_case_wrong(label, run->why);
    for (int n = 0; run->why[0] == '\0' && ms_interp_weight(program, n) >= 0; n++)
        if (!program->tensors[ms_interp_weight(program, n)].frozen)
            check_slope(run, ms_interp_weight(program, n), &rng, label);
    if (run->why[0] == '\0' && program->input >= 0)
        check_slope(run, program->input, &rng, label);
    ms_arena_close(arena);
}

/* ---- tests ---- */

static void sharded_dense_layers_give_what_unsharded_ones_give(void **state)
{
    (void)state;
    for (int i = 0; i < MS_NUM_SMALL_DENSE; i++) {
        ms_model model = ms_small_dense[i]();
        check_dense_layer(&model);
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

static void sharded_expert_layers_give_what_unsharded_ones_give(void **state)
{
    (void)state;
    for (int i = 0; i < MS_NUM_SMALL_MOE; i++) {
        ms_model model = ms_small_moe[i]();
        check_moe_layer(&model, false);
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

static void balanced_exchanges_send_the_bytes_they_claim(void **state)
{
    (void)state;
    for (int i = 0; i < MS_NUM_SMALL_MOE; i++) {
        ms_model model = ms_small_moe[i]();
        check_moe_layer(&model, true);
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

static void sharded_adapters_give_what_unsharded_ones_give(void **state)
{
    (void)state;
    for (int i = 0; i < MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE; i++) {
        ms_model model = ms_case_model(i);
        check_adapters(&model, adapters_of(&model));
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

static void other_meshes_give_what_one_rank_gives(void **state)
{
    (void)state;
    static const short meshes[][5] = {/* sizes of dp, cp, tp, ep, etp */
                                      {1, 1, 4, 4, 1}, {1, 4, 1, 2, 1}, {4, 1, 1, 4, 1},
                                      {1, 1, 4, 1, 4}, {2, 1, 2, 2, 2}, {1, 2, 2, 4, 1}};
    for (size_t i = 0; i < 2 * sizeof meshes / sizeof *meshes; i++) {
        const short *mesh = meshes[i / 2];
        ms_model model = i % 2 == 0 ? ms_small_deepseek() : ms_small_qwen_moe();
        ms_program_key key = ms_case_whole_key(MS_BLOCK_LAYER);
        key.cp = mesh[1];
        key.tp = mesh[2];
        key.ep = mesh[3];
        key.etp = mesh[4];
        key.sequence_parallel = key.tp > 1;
        reference ref = {0};
        open_reference(&ref, &model, MS_BLOCK_LAYER, key.cp, mesh[0]);
        check_case(&ref, &model, &key, mesh[0]);
        ms_arena_close(ref.arena);
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

/* Checks a method of context parallelism with tokens in head-tail (zig-zag) order and
 * as stored; Ulysses where the heads divide by tp x cp. */
static void check_cp_method(const ms_model *model, ms_cp_method method, short cp,
                            short tp)
{
    for (int balanced = 0; balanced < 2; balanced++) {
        reference ref = {0};
        open_reference(&ref, model, MS_BLOCK_LAYER, balanced ? cp : 1, 2);
        ms_program_key key = ms_case_whole_key(MS_BLOCK_LAYER);
        key.cp = cp;
        key.tp = tp;
        key.cp_method = (unsigned char)method;
        check_few_modes(&ref, model, key);
        ms_arena_close(ref.arena);
    }
}

static void ring_attention_gives_what_one_rank_gives(void **state)
{
    (void)state;
    for (int i = 0; i < MS_NUM_SMALL_DENSE; i++) {
        ms_model model = ms_small_dense[i]();
        check_cp_method(&model, MS_CP_RING, 2, 2);
    }
    ms_model model = ms_small_llama();
    check_cp_method(&model, MS_CP_RING, 4, 1);
    check_cp_method(&model, MS_CP_RING, 8, 1);
    model = ms_small_deepseek();
    check_cp_method(&model, MS_CP_RING, 2, 2);
    ASSERT_INT(ms_case_num_wrong(), 0);
}

static void attention_by_heads_gives_what_one_rank_gives(void **state)
{
    (void)state;
    int num_checked = 0;
    for (int i = 0; i < MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE; i++) {
        ms_model model = ms_case_model(i);
        for (short tp = 1; tp <= 2; tp++) {
            long ranks = 2 * tp;
            bool latent = model.attention == MS_ATTENTION_MLA;
            if (model.num_heads % ranks != 0 ||
                (!latent && model.num_kv_heads % ranks != 0))
                continue;
            check_cp_method(&model, MS_CP_ULYSSES, 2, tp);
            num_checked++;
        }
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
    assert_true(num_checked >= 8);
}

static void sharded_embeddings_give_what_unsharded_ones_give(void **state)
{
    (void)state;
    ms_model model = ms_small_llama();
    check_ends(&model, MS_BLOCK_EMBED);
    model = ms_small_gpt();
    check_ends(&model, MS_BLOCK_EMBED);
    model.embedding_norm = true;
    check_ends(&model, MS_BLOCK_EMBED);
    ASSERT_INT(ms_case_num_wrong(), 0);
}

static void sharded_heads_give_what_unsharded_ones_give(void **state)
{
    (void)state;
    ms_model model = ms_small_llama();
    check_ends(&model, MS_BLOCK_HEAD);
    model = ms_small_gpt();
    model.head_bias = true;
    check_ends(&model, MS_BLOCK_HEAD);
    model.final_norm = false;
    check_ends(&model, MS_BLOCK_HEAD);
    ASSERT_INT(ms_case_num_wrong(), 0);
}

static void layer_gradients_agree_with_finite_differences(void **state)
{
    (void)state;
    for (int i = 0; i < MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE; i++) {
        ms_model model = ms_case_model(i);
        check_slopes(&model, MS_BLOCK_LAYER, i % 2 == 0, (ms_lora){0});
        check_slopes(&model, MS_BLOCK_LAYER, i % 2 == 0, adapters_of(&model));
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

static void end_gradients_agree_with_finite_differences(void **state)
{
    (void)state;
    ms_model model = ms_small_llama();
    check_slopes(&model, MS_BLOCK_EMBED, true, (ms_lora){0});
    check_slopes(&model, MS_BLOCK_HEAD, true, (ms_lora){0});
    model = ms_small_gpt();
    model.head_bias = model.embedding_norm = true;
    check_slopes(&model, MS_BLOCK_EMBED, true, (ms_lora){0});
    check_slopes(&model, MS_BLOCK_HEAD, true, (ms_lora){0});
    ASSERT_INT(ms_case_num_wrong(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(layer_gradients_agree_with_finite_differences,
                               ms_case_start),
        cmocka_unit_test_setup(end_gradients_agree_with_finite_differences,
                               ms_case_start),
        cmocka_unit_test_setup(sharded_dense_layers_give_what_unsharded_ones_give,
                               ms_case_start),
        cmocka_unit_test_setup(sharded_expert_layers_give_what_unsharded_ones_give,
                               ms_case_start),
        cmocka_unit_test_setup(sharded_adapters_give_what_unsharded_ones_give,
                               ms_case_start),
        cmocka_unit_test_setup(balanced_exchanges_send_the_bytes_they_claim,
                               ms_case_start),
        cmocka_unit_test_setup(other_meshes_give_what_one_rank_gives, ms_case_start),
        cmocka_unit_test_setup(ring_attention_gives_what_one_rank_gives, ms_case_start),
        cmocka_unit_test_setup(attention_by_heads_gives_what_one_rank_gives,
                               ms_case_start),
        cmocka_unit_test_setup(sharded_embeddings_give_what_unsharded_ones_give,
                               ms_case_start),
        cmocka_unit_test_setup(sharded_heads_give_what_unsharded_ones_give,
                               ms_case_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
