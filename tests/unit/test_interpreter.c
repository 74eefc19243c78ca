/* The interpreter itself, on small programs made by hand: its kernels against formulas written out again here, its
 * communication against what must arrive, and its refusals. */
#include "tests/support/interpreter.h"

#include "tests/test.h"

#define MAX_HAND 24

typedef struct hand {
    ms_arena *arena;
    ms_model model;
    ms_program program;
    ms_tensor tensors[MAX_HAND];
    ms_node nodes[MAX_HAND];
    ms_interp_options options;
} hand;

static void set_size(hand *h, char letter, long size)
{
    h->program.size[letter - '0'] = (double)size;
}

/* b 2, s 8, h 4 on one rank; tests change what they need. */
static hand *open_hand(void)
{
    ms_arena *arena = test_cx()->arena;
    hand *h = MS_NEW(arena, hand);
    h->arena = arena;
    h->options.seed = 5;
    h->program = (ms_program){.model = &h->model,
                              .tensors = h->tensors,
                              .nodes = h->nodes,
                              .input = 0,
                              .output = 0,
                              .input_gradient = -1,
                              .output_gradient = -1};
    for (int mesh = 0; mesh < 2; mesh++)
        for (int axis = 0; axis < MS_MESH_AXES; axis++)
            h->program.mesh_size[mesh][axis] = 1;
    set_size(h, MS_DIM_BATCH, 2);
    set_size(h, MS_DIM_SEQUENCE, 8);
    set_size(h, MS_DIM_HIDDEN, 4);
    return h;
}

static void set_mesh(hand *h, ms_mesh_kind mesh, long outer, long middle, long inner)
{
    h->program.mesh_size[mesh][0] = outer;
    h->program.mesh_size[mesh][1] = middle;
    h->program.mesh_size[mesh][2] = inner;
}

static ms_placement read_placement(char c)
{
    if (c == 'P' || c == 'M')
        return (ms_placement){c == 'P' ? MS_PARTIAL_SUM : MS_PARTIAL_MAX, 0};
    if (c == 'R')
        return (ms_placement){MS_REPLICATE, 0};
    return (ms_placement){MS_SHARD, c};
}

/* `at` has one character an axis: R replicated, P partial sum, M partial maximum, otherwise split by that dim. */
static int tensor(hand *h, const char *dims, ms_role role, const char *at)
{
    int index = h->program.num_tensors++;
    assert_true(index < MAX_HAND);
    ms_tensor *t = &h->tensors[index];
    *t = (ms_tensor){.name = ms_arena_printf(h->arena, "t%d", index),
                     .role = (unsigned char)role,
                     .saved = true,
                     .element_bytes = 2,
                     .producer = -1,
                     .gradient = -1};
    memcpy(t->dims, dims, strlen(dims) + 1);
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        t->at[axis] = read_placement(at[axis]);
    return index;
}

/* An activation that the next node gives. */
static int result(hand *h, const char *dims, const char *at)
{
    int index = tensor(h, dims, MS_ROLE_ACTIVATION, at);
    h->tensors[index].producer = h->program.num_nodes;
    return index;
}

static ms_node *node(hand *h, ms_op op, int num_in, int num_out)
{
    int index = h->program.num_nodes++;
    assert_true(index < MAX_HAND);
    h->program.num_forward_nodes = h->program.num_nodes;
    h->nodes[index] = (ms_node){.op = (unsigned char)op,
                                .num_in = (unsigned char)num_in,
                                .num_out = (unsigned char)num_out,
                                .name = "hand",
                                .forward = -1};
    return &h->nodes[index];
}

static ms_node *unary(hand *h, ms_op op, int x, int out)
{
    ms_node *made = node(h, op, 1, 1);
    made->in[0] = x;
    made->out[0] = out;
    h->program.output = out;
    return made;
}

static ms_node *binary(hand *h, ms_op op, int x, int y, int out)
{
    ms_node *made = unary(h, op, x, out);
    made->num_in = 2;
    made->in[1] = y;
    return made;
}

static int redistribute(hand *h, int x, int axis, const char *at)
{
    int out = result(h, h->tensors[x].dims, at);
    h->tensors[out].mesh = h->tensors[x].mesh;
    ms_node *made = unary(h, MS_OP_REDISTRIBUTE, x, out);
    made->axis = (unsigned char)axis;
    made->from = h->tensors[x].at[axis];
    made->to = h->tensors[out].at[axis];
    return out;
}

static ms_interp *run_hand(hand *h)
{
    ms_interp *run = ms_interp_run(h->arena, &h->program, &h->options);
    ASSERT_TEXT(run->why, "");
    return run;
}

static const double *whole(ms_interp *run, int t)
{
    long count;
    const double *values = ms_interp_gather(run, t, &count);
    ASSERT_TEXT(run->why, "");
    return values;
}

static bool mentions(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* ---- kernels ---- */

static void einsum_multiplies_and_counts_two_flop_per_term(void **state)
{
    (void)state;
    hand *h = open_hand();
    set_size(h, MS_DIM_FFN, 3);
    int x = tensor(h, "bsh", MS_ROLE_ACTIVATION, "RRR"),
        w = tensor(h, "hf", MS_ROLE_WEIGHT, "RRR");
    int y = result(h, "bsf", "RRR");
    binary(h, MS_OP_EINSUM, x, w, y)->einsum = "bsh,hf->bsf";
    ms_interp *run = run_hand(h);
    const double *xs = whole(run, x), *ws = whole(run, w), *ys = whole(run, y);
    for (int row = 0; row < 16; row++) {
        for (int f = 0; f < 3; f++) {
            double want = 0;
            for (int i = 0; i < 4; i++)
                want += xs[row * 4 + i] * ws[i * 3 + f];
            ASSERT_NEAR(ys[row * 3 + f], want, 1e-14);
        }
    }
    ASSERT_NEAR(run->node_flop[0], 2.0 * 16 * 4 * 3, 0);
}

static void einsum_with_unequal_sizes_is_refused(void **state)
{
    (void)state;
    hand *h = open_hand();
    set_mesh(h, MS_DENSE_MESH, 1, 1, 2);
    set_mesh(h, MS_SPARSE_MESH, 2, 1, 1);
    set_size(h, MS_DIM_FFN, 6);
    int x = tensor(h, "bsh", MS_ROLE_ACTIVATION, "RRh"),
        w = tensor(h, "hf", MS_ROLE_WEIGHT, "RRR");
    binary(h, MS_OP_EINSUM, x, w, result(h, "bsf", "RRR"))->einsum = "bsh,hf->bsf";
    ms_interp *run = ms_interp_run(h->arena, &h->program, &h->options);
    assert_true(mentions(run->why, "'h' is 2 and 4 long"));
}

static void norms_give_unit_mean_square(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        hand *h = open_hand();
        h->model.norm = kind == 0 ? MS_NORM_RMS : MS_NORM_LAYER;
        int x = tensor(h, "bsh", MS_ROLE_ACTIVATION, "RRR");
        int w = tensor(h, "h", MS_ROLE_WEIGHT, "RRR"), y = result(h, "bsh", "RRR");
        binary(h, MS_OP_NORM, x, w, y);
        ms_interp *run = run_hand(h);
        const double *xs = whole(run, x), *ws = whole(run, w), *ys = whole(run, y);
        for (int row = 0; row < 16; row++) {
            double square = 0, sum = 0, mean = 0;
            for (int i = 0; i < 4; i++) {
                square += pow(ys[row * 4 + i] / ws[i], 2) / 4;
                sum += ys[row * 4 + i] / ws[i];
                mean += kind == 0 ? 0 : xs[row * 4 + i] / 4;
            }
            ASSERT_NEAR(square, 1, 1e-3);
            if (kind == 1)
                assert_true(fabs(sum) < 1e-12);
            double ratio = (xs[row * 4] - mean) / (xs[row * 4 + 1] - mean);
            ASSERT_NEAR(ys[row * 4] / ws[0] / (ys[row * 4 + 1] / ws[1]), ratio, 1e-12);
        }
    }
}

/* Abramowitz and Stegun, table 26.1, has the normal distribution behind GELU. */
static void activations_have_their_known_values(void **state)
{
    (void)state;
    static const ms_activation kinds[] = {MS_ACT_SWIGLU, MS_ACT_GELU, MS_ACT_RELU,
                                          MS_ACT_RELU2};
    for (size_t k = 0; k < 4; k++) {
        hand *h = open_hand();
        h->model.activation = kinds[k];
        int x = tensor(h, "bsh", MS_ROLE_ACTIVATION, "RRR"), y = result(h, "bsh", "RRR");
        unary(h, MS_OP_ACTIVATION, x, y);
        ms_interp *run = run_hand(h);
        const double *xs = whole(run, x), *ys = whole(run, y);
        for (int i = 0; i < 64; i++) {
            double v = xs[i], positive = fmax(v, 0);
            const double want[] = {v / (1 + exp(-v)), v * erfc(-v / sqrt(2)) / 2,
                                   positive, positive * positive};
            ASSERT_NEAR(ys[i], want[k], 1e-12);
        }
    }
}

static void rotary_turns_by_position_and_its_inverse_turns_back(void **state)
{
    (void)state;
    hand *h = open_hand();
    set_size(h, MS_DIM_HEADS, 2);
    set_size(h, MS_DIM_HEAD, 6);
    long positions[8];
    ms_interp_positions(positions, 8, 2);
    h->options.positions = positions;
    int x = tensor(h, "bsnd", MS_ROLE_ACTIVATION, "RRR");
    int y = result(h, "bsnd", "RRR");
    unary(h, MS_OP_ROTARY, x, y)->rotary_width = 4;
    int back = result(h, "bsnd", "RRR");
    ms_node *inverse = unary(h, MS_OP_ROTARY, y, back);
    inverse->rotary_width = 4;
    inverse->inverse = true;
    ms_interp *run = run_hand(h);
    const double *xs = whole(run, x), *ys = whole(run, y), *backs = whole(run, back);
    assert_true(ms_interp_difference(backs, xs, 192) < 1e-14);
    for (long row = 0; row < 32; row++) {
        const double *from = xs + row * 6, *to = ys + row * 6;
        double position = (double)positions[row / 2 % 8];
        ASSERT_NEAR(to[0], from[0], 0);
        ASSERT_NEAR(to[1], from[1], 0);
        for (int i = 0; i < 2; i++) {
            double angle = i == 0 ? position : position / 100;
            ASSERT_NEAR(to[2 + i], from[2 + i] * cos(angle) - from[4 + i] * sin(angle),
                        1e-12);
            ASSERT_NEAR(to[4 + i], from[4 + i] * cos(angle) + from[2 + i] * sin(angle),
                        1e-12);
        }
    }
}

/* q, k and v are weights here, so that each has values of its own. */
static ms_interp *run_attention(hand *h, long window, int *o)
{
    set_size(h, MS_DIM_HEADS, 4);
    set_size(h, MS_DIM_KV_HEADS, 2);
    set_size(h, MS_DIM_HEAD, 4);
    set_size(h, MS_DIM_VALUE, 3);
    tensor(h, "bsnd", MS_ROLE_WEIGHT, "RRR");
    tensor(h, "bsgd", MS_ROLE_WEIGHT, "RRR");
    tensor(h, "bsgw", MS_ROLE_WEIGHT, "RRR");
    *o = result(h, "bsnw", "RRR");
    int lse = result(h, "bsn", "RRR");
    ms_node *made = node(h, MS_OP_ATTENTION, 3, 2);
    for (int i = 0; i < 3; i++)
        made->in[i] = i;
    made->out[0] = *o;
    made->out[1] = lse;
    made->window_tokens = window;
    h->program.input = -1;
    return run_hand(h);
}

static double attention_value(const ms_interp *run, const long *positions, long window,
                              int row, int w)
{
    const double *q = run->cells[0].values + row * 4, *k = run->cells[1].values;
    const double *v = run->cells[2].values;
    int head = row % 4, query = row / 4 % 8, b = row / 32;
    double total = 0, sum = 0;
    for (int key = 0; key < 8; key++) {
        long behind = positions[query] - positions[key];
        if (behind < 0 || (window > 0 && behind >= window))
            continue;
        int at = (b * 8 + key) * 2 + head / 2;
        double product = 0;
        for (int i = 0; i < 4; i++)
            product += q[i] * k[at * 4 + i];
        total += exp(product / 2);
        sum += exp(product / 2) * v[at * 3 + w];
    }
    return sum / total;
}

static void attention_is_causal_by_position_within_the_window(void **state)
{
    (void)state;
    for (long window = 0; window <= 3; window += 3) {
        hand *h = open_hand();
        long positions[8];
        int o;
        ms_interp_positions(positions, 8, 2);
        h->options.positions = positions;
        ms_interp *run = run_attention(h, window, &o);
        const double *os = whole(run, o);
        for (int row = 0; row < 64; row++)
            for (int w = 0; w < 3; w++)
                ASSERT_NEAR(os[row * 3 + w],
                            attention_value(run, positions, window, row, w), 1e-12);
        double num_pairs = window == 0 ? 36 : 21; /* 8 * 9 / 2; 1 + 2 + 6 * 3 */
        ASSERT_NEAR(run->node_flop[0], 2.0 * (4 + 3) * num_pairs * 4 * 2, 0);
    }
}

static void head_tail_positions_pair_early_and_late_chunks(void **state)
{
    (void)state;
    static const long want[] = {0, 1, 6, 7, 2, 3, 4, 5};
    long positions[8];
    ms_interp_positions(positions, 8, 2);
    for (int i = 0; i < 8; i++)
        ASSERT_INT(positions[i], want[i]);
}

static void loss_is_the_cross_entropy_of_one_target(void **state)
{
    (void)state;
    hand *h = open_hand();
    set_size(h, MS_DIM_VOCAB, 6);
    int logits = tensor(h, "bsv", MS_ROLE_ACTIVATION, "RRR"),
        max = result(h, "bs", "RRR");
    unary(h, MS_OP_LOSS_MAX, logits, max);
    int sum = result(h, "bs", "RRR"), target = result(h, "bs", "RRR");
    ms_node *summed = binary(h, MS_OP_LOSS_SUM, logits, max, sum);
    summed->num_out = 2;
    summed->out[1] = target;
    int loss = result(h, "bs", "RRR");
    ms_node *last = binary(h, MS_OP_LOSS, max, sum, loss);
    last->num_in = 3;
    last->in[2] = target;
    ms_interp *run = run_hand(h);
    const double *x = whole(run, logits), *losses = whole(run, loss);
    for (int row = 0; row < 16; row++) {
        double total = 0;
        int num_matches = 0;
        for (int i = 0; i < 6; i++)
            total += exp(x[row * 6 + i]);
        for (int i = 0; i < 6; i++)
            num_matches += fabs(losses[row] + log(exp(x[row * 6 + i]) / total)) < 1e-12;
        ASSERT_INT(num_matches, 1);
    }
}

/* ---- experts ---- */

#define NUM_EXPERTS 4
#define TOP_K       2

/* input x[bsh] and logits[bse] (a weight, so that it has values of its own), routed; returns the choice. */
static int route(hand *h, ms_router_kind router, const char *at, int *weight)
{
    h->model.moe.router = router;
    h->model.moe.top_k = TOP_K;
    set_size(h, MS_DIM_EXPERTS, NUM_EXPERTS);
    set_size(h, MS_DIM_CHOICES, TOP_K);
    set_size(h, MS_DIM_ROWS, 2 * 8 * TOP_K);
    tensor(h, "bsh", MS_ROLE_ACTIVATION, at);
    int logits = tensor(h, "bse", MS_ROLE_WEIGHT, at);
    *weight = result(h, "bsk", at);
    int choice = result(h, "bsk", at);
    ms_node *made = unary(h, MS_OP_ROUTE, logits, *weight);
    made->num_out = 2;
    made->out[1] = choice;
    return choice;
}

static void routers_choose_the_largest_and_weigh_by_their_rule(void **state)
{
    (void)state;
    for (int router = 0; router < 3; router++) {
        hand *h = open_hand();
        int weight, choice = route(h, (ms_router_kind)router, "RRR", &weight);
        ms_interp *run = run_hand(h);
        const double *x = whole(run, 1), *w = whole(run, weight), *c = whole(run, choice);
        for (int row = 0; row < 16; row++) {
            const double *logit = x + row * NUM_EXPERTS;
            double total = 0, chosen = 0;
            for (int e = 0; e < NUM_EXPERTS; e++)
                total += exp(logit[e]);
            for (int j = 0; j < TOP_K; j++) {
                double v = logit[(int)c[row * TOP_K + j]];
                chosen += router == MS_ROUTER_SIGMOID ? 1 / (1 + exp(-v)) : exp(v);
                int num_larger = 0;
                for (int e = 0; e < NUM_EXPERTS; e++)
                    num_larger += logit[e] > v;
                ASSERT_INT(num_larger, j);
            }
            double v = logit[(int)c[row * TOP_K]];
            const double want[] = {exp(v) / total, exp(v) / chosen,
                                   1 / (1 + exp(-v)) / chosen};
            ASSERT_NEAR(w[row * TOP_K], want[router], 1e-13);
        }
    }
}

static void balanced_routing_gives_every_expert_as_many_rows(void **state)
{
    (void)state;
    hand *h = open_hand();
    h->options.balanced_routing = true;
    int weight, choice = route(h, MS_ROUTER_SOFTMAX_TOPK, "RRR", &weight);
    const double *c = whole(run_hand(h), choice);
    for (int i = 0; i < 32; i++)
        ASSERT_INT(c[i], i % NUM_EXPERTS);
}

/* On dp 2 x tp 2 with ep 4: every rank owns one expert. */
static ms_interp *run_dispatch(hand *h, int *choice, int *rows, int *sent, int *back)
{
    int weight;
    set_mesh(h, MS_DENSE_MESH, 2, 1, 2);
    set_mesh(h, MS_SPARSE_MESH, 1, 4, 1);
    *choice = route(h, MS_ROUTER_SOFTMAX_TOPK, "bRs", &weight);
    *rows = result(h, "rh", "rRr");
    binary(h, MS_OP_PERMUTE, 0, *choice, *rows);
    *sent = result(h, "rh", "RrR");
    h->tensors[*sent].mesh = MS_SPARSE_MESH;
    binary(h, MS_OP_EXCHANGE, *rows, *choice, *sent);
    *back = result(h, "rh", "rRr");
    binary(h, MS_OP_EXCHANGE, *sent, *choice, *back)->inverse = true;
    return run_hand(h);
}

static void dispatch_orders_rows_by_expert_then_source(void **state)
{
    (void)state;
    hand *h = open_hand();
    int choice, rows, sent, back;
    ms_interp *run = run_dispatch(h, &choice, &rows, &sent, &back);
    for (int owner = 0; owner < 4; owner++) {
        const ms_cell *got = &run->cells[sent * 4 + owner];
        long row = 0;
        for (int source = 0; source < 4; source++) {
            const ms_cell *c = &run->cells[choice * 4 + source], *x = &run->cells[source];
            for (long i = 0; i < c->count; i++)
                if ((int)c->values[i] ==
                    owner) { /* with one expert a rank: by source, then token */
                    ASSERT_NEAR(got->values[row * 4], x->values[i / TOP_K * 4], 0);
                    row++;
                }
        }
        ASSERT_INT(got->shape[0], row);
    }
}

static void combine_brings_every_row_back(void **state)
{
    (void)state;
    hand *h = open_hand();
    int choice, rows, sent, back;
    ms_interp *run = run_dispatch(h, &choice, &rows, &sent, &back);
    double there = 0, here = 0, num_rows = 0;
    for (int rank = 0; rank < 4; rank++) {
        const ms_cell *a = &run->cells[rows * 4 + rank],
                      *b = &run->cells[back * 4 + rank];
        ASSERT_INT(b->count, a->count);
        for (long i = 0; i < a->count; i++)
            ASSERT_NEAR(b->values[i], a->values[i], 0);
        there += run->node_wire_bytes[2 * 4 + rank];
        here += run->node_wire_bytes[3 * 4 + rank];
        const ms_cell *c = &run->cells[choice * 4 + rank];
        for (long i = 0; i < c->count; i++)
            num_rows += (int)c->values[i] != rank;
    }
    ASSERT_NEAR(there, num_rows * 4 * 2,
                0); /* rows that leave their rank, 4 elements of 2 bytes */
    ASSERT_NEAR(here, there, 0);
}

static void grouped_products_use_the_matrix_of_the_rows_expert(void **state)
{
    (void)state;
    hand *h = open_hand();
    int choice, rows, sent, back;
    set_size(h, MS_DIM_EXPERT_FFN, 3);
    run_dispatch(h, &choice, &rows, &sent, &back);
    set_mesh(h, MS_SPARSE_MESH, 2, 2, 1); /* the same program on two experts a rank */
    h->tensors[sent].at[0] = read_placement('r');
    int w = tensor(h, "ehi", MS_ROLE_WEIGHT, "ReR"), y = result(h, "ri", "rrR");
    h->tensors[w].mesh = h->tensors[y].mesh = MS_SPARSE_MESH;
    ms_node *product = binary(h, MS_OP_GROUPED, sent, w, y);
    product->num_in = 3;
    product->in[2] = choice;
    product->einsum = "rh,ehi->ri";
    ms_interp *run = run_hand(h);
    for (int rank = 0; rank < 4; rank++) {
        const ms_cell *x = &run->cells[sent * 4 + rank], *got = &run->cells[y * 4 + rank];
        const ms_cell *matrix = &run->cells[w * 4 + rank];
        long first[2] = {
            0,
            0}; /* rows of the first of its experts come from both ranks of the group */
        for (int source = rank / 2 * 2; source < rank / 2 * 2 + 2; source++)
            for (long i = 0; i < 8; i++)
                first[0] +=
                    (int)run->cells[choice * 4 + source].values[i] == rank % 2 * 2;
        for (long row = 0; row < x->shape[0]; row++) {
            const double *m = matrix->values + (row < first[0] ? 0 : 12);
            double want = 0;
            for (int i = 0; i < 4; i++)
                want += x->values[row * 4 + i] * m[i * 3];
            ASSERT_NEAR(got->values[row * 3], want, 1e-13);
        }
    }
    ASSERT_NEAR(run->node_flop[4], 2.0 * 32 * 4 * 3,
                0); /* no row is lost or computed twice */
}

/* ---- between ranks ---- */

static hand *open_split_hand(void)
{
    hand *h = open_hand();
    set_mesh(h, MS_DENSE_MESH, 1, 2, 2);
    set_mesh(h, MS_SPARSE_MESH, 4, 1, 1);
    return h;
}

static void changes_of_placement_keep_the_tensor_and_count_bytes(void **state)
{
    (void)state;
    hand *h = open_split_hand();
    int x = tensor(h, "bsh", MS_ROLE_ACTIVATION, "Rss");
    int gathered = redistribute(h, x, 2, "RsR");
    int turned = redistribute(h, x, 2, "Rsh");
    int all = redistribute(h, gathered, 1, "RRR");
    int sliced = redistribute(h, all, 2, "RRh");
    ms_interp *run = run_hand(h);
    const double *want = whole(run, x);
    const int tensors[] = {gathered, turned, all, sliced};
    const double bytes[] = {16 * 2, 8 * 2, 32 * 2,
                            0}; /* of 2-byte elements, 16 of x on a rank */
    for (int i = 0; i < 4; i++) {
        assert_true(ms_interp_difference(whole(run, tensors[i]), want, 64) == 0);
        for (int rank = 0; rank < 4; rank++)
            ASSERT_NEAR(run->node_wire_bytes[i * 4 + rank], bytes[i], 0);
    }
}

static void split_products_add_up_by_either_reduction(void **state)
{
    (void)state;
    hand *h = open_split_hand();
    set_size(h, MS_DIM_FFN, 6);
    int x = tensor(h, "bsh", MS_ROLE_ACTIVATION, "RsR");
    int up = tensor(h, "hf", MS_ROLE_WEIGHT, "RRf"),
        down = tensor(h, "fh", MS_ROLE_WEIGHT, "RRf");
    int hidden = result(h, "bsf", "Rsf");
    binary(h, MS_OP_EINSUM, x, up, hidden)->einsum = "bsh,hf->bsf";
    int y = result(h, "bsh", "RsP");
    binary(h, MS_OP_EINSUM, hidden, down, y)->einsum = "bsf,fh->bsh";
    int reduced = redistribute(h, y, 2, "RsR"), scattered = redistribute(h, y, 2, "Rss");
    ms_interp *split = run_hand(h);
    set_mesh(h, MS_DENSE_MESH, 1, 1, 1);
    set_mesh(h, MS_SPARSE_MESH, 1, 1, 1);
    ms_interp *single = run_hand(h);
    const double *want = whole(single, y);
    set_mesh(h, MS_DENSE_MESH, 1, 2, 2);
    set_mesh(h, MS_SPARSE_MESH, 4, 1, 1);
    assert_true(ms_interp_difference(whole(split, y), want, 64) < 1e-14);
    assert_true(ms_interp_difference(whole(split, reduced), want, 64) < 1e-14);
    assert_true(ms_interp_difference(whole(split, scattered), want, 64) < 1e-14);
    ASSERT_NEAR(split->node_wire_bytes[2 * 4], 32 * 2, 0);
    ASSERT_NEAR(split->node_wire_bytes[3 * 4], 16 * 2, 0);
    ASSERT_NEAR(split->node_flop[0], single->node_flop[0], 0);
}

static void gathering_the_outer_of_two_axes_first_is_refused(void **state)
{
    (void)state;
    hand *h = open_split_hand();
    redistribute(h, tensor(h, "bsh", MS_ROLE_ACTIVATION, "Rss"), 1, "RRs");
    ms_interp *run = ms_interp_run(h->arena, &h->program, &h->options);
    assert_true(mentions(run->why, "needs an element"));
}

static void copies_that_differ_are_found(void **state)
{
    (void)state;
    hand *h = open_split_hand();
    set_size(h, MS_DIM_FFN, 6);
    int x = tensor(h, "bsh", MS_ROLE_ACTIVATION, "RsR"),
        w = tensor(h, "hf", MS_ROLE_WEIGHT, "RRf");
    int hidden = result(h, "bsf", "Rsf");
    binary(h, MS_OP_EINSUM, x, w, hidden)->einsum = "bsh,hf->bsf";
    int wrong = result(h, "bsh", "RsR"); /* should be a partial sum */
    binary(h, MS_OP_EINSUM, hidden, w, wrong)->einsum = "bsf,hf->bsh";
    ms_interp *run = run_hand(h);
    long count;
    assert_null(ms_interp_gather(run, wrong, &count));
    assert_true(mentions(run->why, "is replicated, but differs"));
}

static void a_redistribution_that_does_not_fit_its_tensors_is_refused(void **state)
{
    (void)state;
    hand *h = open_split_hand();
    redistribute(h, tensor(h, "bsh", MS_ROLE_ACTIVATION, "RsR"), 2, "RRh");
    ms_interp *run = ms_interp_run(h->arena, &h->program, &h->options);
    assert_true(mentions(run->why, "placements do not fit"));
}

static void backward_cannot_use_what_was_not_saved(void **state)
{
    (void)state;
    hand *h = open_hand();
    int x = tensor(h, "bsh", MS_ROLE_ACTIVATION, "RRR"), y = result(h, "bsh", "RRR");
    unary(h, MS_OP_ACTIVATION, x, y);
    int z = result(h, "bsh", "RRR");
    binary(h, MS_OP_ADD, x, y, z);
    h->program.num_forward_nodes = 1;
    run_hand(h);
    h->tensors[y].saved = false;
    ms_interp *run = ms_interp_run(h->arena, &h->program, &h->options);
    assert_true(mentions(run->why, "neither saved nor computed again"));
}

static void a_nudge_changes_one_element(void **state)
{
    (void)state;
    hand *h = open_split_hand();
    int x = tensor(h, "bsh", MS_ROLE_ACTIVATION, "Rss");
    const double *before = whole(run_hand(h), x);
    h->options.num_nudged = 1;
    h->options.nudged = x;
    h->options.nudged_element = 37;
    h->options.nudge = 0.5;
    const double *after = whole(run_hand(h), x);
    for (int i = 0; i < 64; i++)
        ASSERT_NEAR(after[i], before[i] + (i == 37 ? 0.5 : 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(einsum_multiplies_and_counts_two_flop_per_term),
        cmocka_unit_test(einsum_with_unequal_sizes_is_refused),
        cmocka_unit_test(norms_give_unit_mean_square),
        cmocka_unit_test(activations_have_their_known_values),
        cmocka_unit_test(rotary_turns_by_position_and_its_inverse_turns_back),
        cmocka_unit_test(attention_is_causal_by_position_within_the_window),
        cmocka_unit_test(head_tail_positions_pair_early_and_late_chunks),
        cmocka_unit_test(loss_is_the_cross_entropy_of_one_target),
        cmocka_unit_test(routers_choose_the_largest_and_weigh_by_their_rule),
        cmocka_unit_test(balanced_routing_gives_every_expert_as_many_rows),
        cmocka_unit_test(dispatch_orders_rows_by_expert_then_source),
        cmocka_unit_test(combine_brings_every_row_back),
        cmocka_unit_test(grouped_products_use_the_matrix_of_the_rows_expert),
        cmocka_unit_test(changes_of_placement_keep_the_tensor_and_count_bytes),
        cmocka_unit_test(split_products_add_up_by_either_reduction),
        cmocka_unit_test(gathering_the_outer_of_two_axes_first_is_refused),
        cmocka_unit_test(copies_that_differ_are_found),
        cmocka_unit_test(a_redistribution_that_does_not_fit_its_tensors_is_refused),
        cmocka_unit_test(backward_cannot_use_what_was_not_saved),
        cmocka_unit_test(a_nudge_changes_one_element),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
