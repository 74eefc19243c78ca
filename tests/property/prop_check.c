/* The checker of layer programs against execution: in programs with one random mistake
 * each, a mistake that changes the numbers on many ranks must be rejected, and every
 * program from the builder must be accepted. */
#include "base/rng.h"
#include "costmodel/program/program_check.h"
#include "tests/support/interpreter.h"
#include "tests/support/program_cases.h"
#include "tests/test.h"

#define NUM_PROGRAMS 24
/* number of mutants (copies with one random mistake) of each program */
#define NUM_MUTATIONS 30

/* ---- random legal programs ---- */

static int below(ms_rng *rng, int bound)
{
    return (int)ms_rng_below(rng, (uint64_t)bound);
}

static bool coin(ms_rng *rng)
{
    return below(rng, 2) == 1;
}

/* A random method of context parallelism; Ulysses (by heads) only where cp x tp
 * divides the heads. */
static ms_cp_method random_cp_method(ms_rng *rng, const ms_model *model, int cp, int tp)
{
    ms_cp_method method = (ms_cp_method)below(rng, MS_NUM_CP_METHODS);
    bool latent = model->attention == MS_ATTENTION_MLA;
    bool divides = model->num_heads % (cp * tp) == 0 &&
                   (latent || model->num_kv_heads % (cp * tp) == 0);
    return method == MS_CP_ULYSSES && !divides ? MS_CP_ALL_GATHER : method;
}

static ms_program_key random_key(ms_rng *rng, ms_block_kind part, const ms_model *model,
                                 bool experts)
{
    static const short meshes[][4] = {/* sizes of cp, tp, ep, etp */
                                      {2, 2, 1, 1}, {1, 2, 1, 1}, {2, 1, 1, 1},
                                      {2, 2, 2, 1}, {2, 2, 2, 2}, {1, 2, 4, 1}};
    const short *mesh = meshes[below(rng, experts ? 6 : 3)];
    return (ms_program_key){
        .block = (unsigned char)part,
        .cp = mesh[0],
        .tp = mesh[1],
        .ep = mesh[2],
        .etp = mesh[3],
        .microbatch = 1,
        .cp_method = (unsigned char)random_cp_method(rng, model, mesh[0], mesh[1]),
        .sequence_parallel = coin(rng),
        .loss_parallel = coin(rng),
        .attention_fused = coin(rng),
        .regather = coin(rng),
        .optimizer = coin(rng),
        .recompute = (unsigned char)below(rng, MS_NUM_RECOMPUTE)};
}

/* A random legal program, mostly of a layer, on a mesh with dp 2. */
static const ms_program *random_program(ms_arena *arena, ms_rng *rng)
{
    int kind = below(rng, 6);
    ms_block_kind part = kind == 0   ? MS_BLOCK_EMBED
                         : kind == 1 ? MS_BLOCK_HEAD
                                     : MS_BLOCK_LAYER;
    int index = below(rng, MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE);
    ms_model *model = MS_NEW(arena, ms_model);
    *model = ms_case_model(index);
    bool experts = part == MS_BLOCK_LAYER && index >= MS_NUM_SMALL_DENSE;
    ms_program_key key = random_key(rng, part, model, experts);
    return ms_case_program(arena, model, &key, 2);
}

/* Saves every tensor for backward, as if memory were free: otherwise most mistakes in
 * backward would be found because a tensor was not saved. */
static void save_all(ms_program *program)
{
    for (int t = 0; t < program->num_tensors; t++)
        program->tensors[t].saved = true;
}

/* ---- mutations: each returns its name, or NULL where it does not apply ---- */

static ms_placement random_placement(ms_rng *rng, const ms_tensor *t)
{
    int kind = below(rng, 5);
    if (kind == 0)
        return ms_replicate;
    if (kind == 1)
        return (ms_placement){.kind = MS_PARTIAL_SUM};
    if (kind == 2 && below(rng, 4) == 0)
        return (ms_placement){.kind = MS_PARTIAL_MAX};
    ms_placement split = ms_shard(t->dims[below(rng, (int)strlen(t->dims))]);
    if (below(rng, 4) == 0)
        split.split_factor = 2;
    return split;
}

static const char *move_tensor(ms_program *p, ms_rng *rng)
{
    ms_tensor *t = &p->tensors[below(rng, p->num_tensors)];
    int axis = below(rng, MS_MESH_AXES);
    ms_placement to = random_placement(rng, t);
    if (ms_placement_equal(to, t->at[axis]) || p->mesh_size[t->mesh][axis] == 1)
        return NULL;
    t->at[axis] = to;
    return "placement of a tensor";
}

static const char *swap_axes(ms_program *p, ms_rng *rng)
{
    ms_tensor *t = &p->tensors[below(rng, p->num_tensors)];
    int x = below(rng, MS_MESH_AXES), y = below(rng, MS_MESH_AXES);
    ms_placement at = t->at[x];
    if (p->mesh_size[t->mesh][x] == 1 || p->mesh_size[t->mesh][y] == 1 ||
        ms_placement_equal(at, t->at[y]))
        return NULL;
    t->at[x] = t->at[y];
    t->at[y] = at;
    return "axes of a tensor swapped";
}

static int random_node(const ms_program *p, ms_rng *rng, ms_op op)
{
    int n = below(rng, p->num_nodes);
    for (int tries = 0; tries < p->num_nodes; tries++, n = (n + 1) % p->num_nodes)
        if (p->nodes[n].op == op)
            return n;
    return -1;
}

static void retarget_all(ms_program *p, int from, int to)
{
    for (int n = 0; n < p->num_nodes; n++)
        for (int i = 0; i < p->nodes[n].num_in; i++)
            if (p->nodes[n].in[i] == from)
                p->nodes[n].in[i] = to;
    for (int t = 0; t < p->num_tensors; t++)
        if (p->tensors[t].gradient == from)
            p->tensors[t].gradient = to;
    p->output = p->output == from ? to : p->output;
    p->input_gradient = p->input_gradient == from ? to : p->input_gradient;
}

static const char *drop_redistribution(ms_program *p, ms_rng *rng)
{
    int n = random_node(p, rng, MS_OP_REDISTRIBUTE);
    if (n < 0)
        return NULL;
    retarget_all(p, p->nodes[n].out[0], p->nodes[n].in[0]);
    return "a redistribution dropped";
}

/* Drops a redistribution, and claims that its input already has the placement that its
 * result should have. */
static const char *hide_redistribution(ms_program *p, ms_rng *rng)
{
    int n = random_node(p, rng, MS_OP_REDISTRIBUTE);
    if (n < 0)
        return NULL;
    const ms_node *node = &p->nodes[n];
    ms_tensor *in = &p->tensors[node->in[0]];
    retarget_all(p, node->out[0], node->in[0]);
    in->at[node->axis] = node->to;
    return "a redistribution dropped and its result claimed";
}

static const char *bypass_once(ms_program *p, ms_rng *rng)
{
    int n = below(rng, p->num_nodes);
    ms_node *node = &p->nodes[n];
    int *operand = &node->in[below(rng, node->num_in)];
    int producer = p->tensors[*operand].producer;
    if (producer < 0 || p->nodes[producer].op != MS_OP_REDISTRIBUTE)
        return NULL;
    *operand = p->nodes[producer].in[0];
    return "an operand before its redistribution";
}

/* Changes a redistribution to another target placement, while the nodes that use its
 * result stay as they were. */
static const char *change_redistribution(ms_program *p, ms_rng *rng)
{
    int n = random_node(p, rng, MS_OP_REDISTRIBUTE);
    if (n < 0)
        return NULL;
    ms_node *node = &p->nodes[n];
    const ms_tensor *in = &p->tensors[node->in[0]];
    ms_tensor *out = &p->tensors[node->out[0]];
    int axis = coin(rng) ? node->axis : below(rng, MS_MESH_AXES);
    ms_placement to = random_placement(rng, out);
    bool same = axis == node->axis && ms_placement_equal(to, node->to);
    if (same || p->mesh_size[out->mesh][axis] == 1)
        return NULL;
    memcpy(out->at, in->at, sizeof out->at);
    out->at[axis] = to;
    node->axis = (unsigned char)axis;
    node->from = in->at[axis];
    node->to = to;
    return "another redistribution";
}

static bool may_replace(const ms_program *p, int n, int operand, int other)
{
    const ms_tensor *t = &p->tensors[p->nodes[n].in[operand]], *o = &p->tensors[other];
    return p->nodes[n].in[operand] != other && o->producer < n &&
           strcmp(t->dims, o->dims) == 0 && t->mesh == o->mesh;
}

static const char *retarget_operand(ms_program *p, ms_rng *rng)
{
    int n = below(rng, p->num_nodes);
    ms_node *node = &p->nodes[n];
    int operand = below(rng, node->num_in), other = below(rng, p->num_tensors);
    for (int tries = 0; tries < p->num_tensors; tries++) {
        other = (other + 1) % p->num_tensors;
        if (may_replace(p, n, operand, other)) {
            node->in[operand] = other;
            return "another operand of the same dims";
        }
    }
    return NULL;
}

/* Swaps two random operands of a node. Optimizer moments are left alone: they are inputs
 * of the program, so swapping them would give another initial state, but no wrong
 * program. */
static const char *swap_operands(ms_program *p, ms_rng *rng)
{
    ms_node *node = &p->nodes[below(rng, p->num_nodes)];
    int x = below(rng, node->num_in), y = below(rng, node->num_in);
    int tensor = node->in[x];
    bool moments = p->tensors[tensor].role == MS_ROLE_STATE;
    if (node->in[x] == node->in[y] || moments ||
        strcmp(p->tensors[node->in[x]].dims, p->tensors[node->in[y]].dims) != 0)
        return NULL;
    node->in[x] = node->in[y];
    node->in[y] = tensor;
    return "two operands swapped";
}

static const char *change_result(ms_program *p, ms_rng *rng)
{
    int weight = ms_interp_weight(p, below(rng, 6)), which = below(rng, 3);
    int *result = which == 0   ? &p->output
                  : which == 1 ? &p->input_gradient
                               : &p->tensors[weight >= 0 ? weight : 0].gradient;
    int other = below(rng, p->num_tensors);
    if (*result < 0 || other == *result ||
        strcmp(p->tensors[other].dims, p->tensors[*result].dims) != 0 ||
        p->tensors[other].mesh != p->tensors[*result].mesh)
        return NULL;
    *result = other;
    return "another result";
}

static const char *change_attribute(ms_program *p, ms_rng *rng)
{
    ms_node *node = &p->nodes[below(rng, p->num_nodes)];
    if (node->op == MS_OP_ROTARY && coin(rng)) {
        node->rotary_width /= 2;
        return node->rotary_width % 2 == 0 ? "another rotary width" : NULL;
    }
    if (node->op == MS_OP_ROTARY || node->op == MS_OP_EXCHANGE) {
        node->inverse = !node->inverse;
        return "the other direction";
    }
    if (node->op == MS_OP_ATTENTION || node->op == MS_OP_ATTENTION_GRAD) {
        if (coin(rng)) {
            node->ring = !node->ring;
            return p->key.cp > 1 ? "a ring or none" : NULL;
        }
        node->window_tokens = node->window_tokens == 3 ? 4 : 3;
        return "another window";
    }
    return NULL;
}

typedef const char *mutation(ms_program *p, ms_rng *rng);
static mutation *const mutations[] = {
    move_tensor,   swap_axes,        drop_redistribution,   hide_redistribution,
    bypass_once,   change_result,    change_redistribution, retarget_operand,
    swap_operands, change_attribute,
};
#define NUM_KINDS ((int)(sizeof mutations / sizeof *mutations))

/* ---- whether the numbers change ---- */

static ms_interp *run_of(ms_arena *arena, const ms_program *program)
{
    ms_interp_options options = {.seed = 5};
    return ms_interp_run(arena, program, &options);
}

static bool same_tensor(ms_interp *x, int x_tensor, ms_interp *y, int y_tensor)
{
    long x_count, y_count;
    if (x_tensor < 0 || y_tensor < 0)
        return x_tensor == y_tensor;
    const double *want = ms_interp_gather(x, x_tensor, &x_count);
    const double *got = ms_interp_gather(y, y_tensor, &y_count);
    return want != NULL && got != NULL && x_count == y_count &&
           ms_interp_difference(got, want, x_count) <= 1e-10;
}

/* Whether two executions agree on the output, the gradients of the input and of the
 * weights, and the updated weights and moments. */
static bool same_results(ms_interp *x, ms_interp *y)
{
    const ms_program *p = x->program, *q = y->program;
    if (!same_tensor(x, p->output, y, q->output) ||
        !same_tensor(x, p->input_gradient, y, q->input_gradient))
        return false;
    for (int t = 0; t < p->num_tensors; t++)
        if (p->tensors[t].role == MS_ROLE_WEIGHT &&
            !same_tensor(x, p->tensors[t].gradient, y, q->tensors[t].gradient))
            return false;
    for (int n = 0; n < p->num_nodes; n++)
        for (int i = 0; p->nodes[n].op == MS_OP_ADAM && i < 3; i++)
            if (!same_tensor(x, p->nodes[n].out[i], y, q->nodes[n].out[i]))
                return false;
    return true;
}

/* ---- the property ---- */

typedef struct tally {
    /* mutants that compute other numbers; those of them that the checker accepts */
    int changed, changed_accepted;
    /* mutants that cannot be executed; those of them that the checker accepts */
    int stuck, stuck_accepted;
    /* mutants that compute the same numbers; those of them that the checker accepts */
    int same, same_accepted;
} tally;

static void count_one(tally *all, ms_interp *want, const ms_program *mutant,
                      const char *what)
{
    ms_check_finding finding;
    bool accepted = ms_program_check(mutant, &finding);
    ms_interp *got = run_of(want->arena, mutant);
    if (got->why[0] != '\0') {
        all->stuck++;
        all->stuck_accepted += accepted;
    } else if (!same_results(want, got)) {
        all->changed++;
        all->changed_accepted += accepted;
    } else {
        all->same++;
        all->same_accepted += accepted;
        return;
    }
    if (accepted)
        fprintf(stderr, "%s: %s was accepted%s%s\n",
                ms_case_describe(want->arena, mutant->model, &mutant->key), what,
                got->why[0] != '\0' ? ": " : "", got->why);
}

static void what_changes_the_numbers_is_rejected(void **state)
{
    (void)state;
    tally all = {0};
    ms_rng rng = ms_rng_seed(20240611);
    for (int i = 0; i < NUM_PROGRAMS; i++) {
        ms_arena *arena = ms_arena_open();
        ms_program *program = ms_case_copy(arena, random_program(arena, &rng));
        if (i % 4 != 0)
            save_all(program);
        ms_interp *want = run_of(arena, program);
        ASSERT_TEXT(want->why, "");
        for (int j = 0; j < NUM_MUTATIONS;) {
            ms_arena_mark mark = ms_arena_save(arena);
            ms_program *mutant = ms_case_copy(arena, program);
            const char *what = mutations[below(&rng, NUM_KINDS)](mutant, &rng);
            if (what != NULL) {
                count_one(&all, want, mutant, what);
                want->why[0] = '\0';
                j++;
            }
            ms_arena_rewind(arena, mark);
        }
        ms_arena_close(arena);
    }
    print_message("%d mutations change the numbers, %d of them accepted; %d cannot be "
                  "executed, %d accepted; %d change nothing, %d accepted\n",
                  all.changed, all.changed_accepted, all.stuck, all.stuck_accepted,
                  all.same, all.same_accepted);
    ASSERT_INT(all.changed_accepted, 0);
    ASSERT_INT(all.stuck_accepted, 0);
    assert_true(all.changed > NUM_PROGRAMS * NUM_MUTATIONS / 6);
    ASSERT_INT(ms_case_num_wrong(), 0);
}

/* ---- programs that make no sense ---- */

static void corrupt_node(ms_program *p, ms_rng *rng)
{
    ms_node *node = &p->nodes[below(rng, p->num_nodes)];
    int any = below(rng, p->num_tensors + 4) - 2, slot = below(rng, 3);
    switch (below(rng, 8)) {
    case 0:
        node->in[slot] = any;
        break;
    case 1:
        node->out[slot] = any;
        break;
    case 2:
        node->num_in = (unsigned char)below(rng, MS_MAX_OPERANDS + 2);
        break;
    case 3:
        node->num_out = (unsigned char)below(rng, MS_MAX_OPERANDS + 2);
        break;
    case 4:
        node->op = (unsigned char)below(rng, MS_NUM_OPS + 2);
        break;
    case 5:
        node->forward = below(rng, 2 * p->num_nodes) - p->num_nodes / 2;
        break;
    case 6:
        node->axis = (unsigned char)below(rng, 5);
        break;
    default:
        node->pass = (unsigned char)below(rng, MS_NUM_PASSES + 1);
        break;
    }
}

static void corrupt_tensor(ms_program *p, ms_rng *rng)
{
    ms_tensor *t = &p->tensors[below(rng, p->num_tensors)];
    int any = below(rng, p->num_tensors + 4) - 2, axis = below(rng, MS_MESH_AXES);
    switch (below(rng, 7)) {
    case 0:
        t->dims[below(rng, MS_MAX_DIMS)] = (char)below(rng, 128);
        break;
    case 1:
        t->mesh = (unsigned char)below(rng, 3);
        break;
    case 2:
        t->role = (unsigned char)below(rng, MS_ROLE_STATE + 2);
        break;
    case 3:
        t->producer = any;
        break;
    case 4:
        t->gradient = any;
        break;
    case 5:
        t->at[axis].dim = (char)below(rng, 128);
        break;
    default:
        t->at[axis].kind = (unsigned char)below(rng, MS_PARTIAL_MAX + 2);
        t->at[axis].split_factor = (short)(below(rng, 8) - 2);
        break;
    }
}

/* For a nonsensical program the checker may find anything, but no finding may lack a
 * message, and nothing may crash. */
static void programs_without_sense_are_survived(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(77);
    int num_rejected = 0;
    for (int i = 0; i < 8; i++) {
        ms_arena *arena = ms_arena_open();
        const ms_program *program = random_program(arena, &rng);
        for (int j = 0; j < 200; j++) {
            ms_arena_mark mark = ms_arena_save(arena);
            ms_program *p = ms_case_copy(arena, program);
            for (int times = below(&rng, 3); times >= 0; times--)
                (coin(&rng) ? corrupt_node : corrupt_tensor)(p, &rng);
            ms_check_finding findings[16] = {{.node = 0}};
            int num = ms_program_findings(p, findings, 16);
            num_rejected += num > 0;
            for (int f = 0; f < num && f < 16; f++)
                assert_true(strlen(findings[f].text) > 10);
            ms_arena_rewind(arena, mark);
        }
        ms_arena_close(arena);
    }
    assert_true(num_rejected > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_changes_the_numbers_is_rejected, ms_case_start),
        cmocka_unit_test(programs_without_sense_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
