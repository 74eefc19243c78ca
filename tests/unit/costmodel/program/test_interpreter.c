/* The interpreter of layer programs, on small programs made by hand: its kernels
 * against formulas written again here, its communication against what must arrive, and
 * its refusals. */
#include "tests/support/hand_program.h"

#include "tests/test.h"

static ms_interp *run_hand(ms_hand *h)
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
    ms_hand *h = ms_hand_open(test_cx()->arena);
    ms_hand_set_size(h, MS_DIM_FFN, 3);
    int x = ms_hand_tensor(h, "bsh", MS_ROLE_ACTIVATION, "RRR"),
        w = ms_hand_tensor(h, "hf", MS_ROLE_WEIGHT, "RRR");
    int y = ms_hand_result(h, "bsf", "RRR");
    ms_hand_binary(h, MS_OP_EINSUM, x, w, y)->einsum = "bsh,hf->bsf";
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
    ms_hand *h = ms_hand_open(test_cx()->arena);
    ms_hand_set_mesh(h, MS_DENSE_MESH, 1, 1, 2);
    ms_hand_set_mesh(h, MS_SPARSE_MESH, 2, 1, 1);
    ms_hand_set_size(h, MS_DIM_FFN, 6);
    int x = ms_hand_tensor(h, "bsh", MS_ROLE_ACTIVATION, "RRh"),
        w = ms_hand_tensor(h, "hf", MS_ROLE_WEIGHT, "RRR");
    ms_hand_binary(h, MS_OP_EINSUM, x, w, ms_hand_result(h, "bsf", "RRR"))->einsum =
        "bsh,hf->bsf";
    ms_interp *run = ms_interp_run(h->arena, &h->program, &h->options);
    assert_true(mentions(run->why, "'h' is 2 and 4 long"));
}

static void norms_give_unit_mean_square(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        ms_hand *h = ms_hand_open(test_cx()->arena);
        h->model.norm = kind == 0 ? MS_NORM_RMS : MS_NORM_LAYER;
        int x = ms_hand_tensor(h, "bsh", MS_ROLE_ACTIVATION, "RRR");
        int w = ms_hand_tensor(h, "h", MS_ROLE_WEIGHT, "RRR"),
            y = ms_hand_result(h, "bsh", "RRR");
        ms_hand_binary(h, MS_OP_NORM, x, w, y);
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

/* GELU uses the normal distribution, whose values are those of Abramowitz and Stegun,
 * table 26.1. */
static void activations_have_their_known_values(void **state)
{
    (void)state;
    static const ms_activation kinds[] = {MS_ACT_SWIGLU, MS_ACT_GELU, MS_ACT_RELU,
                                          MS_ACT_RELU2};
    for (size_t k = 0; k < 4; k++) {
        ms_hand *h = ms_hand_open(test_cx()->arena);
        h->model.activation = kinds[k];
        int x = ms_hand_tensor(h, "bsh", MS_ROLE_ACTIVATION, "RRR"),
            y = ms_hand_result(h, "bsh", "RRR");
        ms_hand_unary(h, MS_OP_ACTIVATION, x, y);
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
    ms_hand *h = ms_hand_open(test_cx()->arena);
    ms_hand_set_size(h, MS_DIM_HEADS, 2);
    ms_hand_set_size(h, MS_DIM_HEAD, 6);
    long positions[8];
    ms_interp_positions(positions, 8, 2);
    h->options.positions = positions;
    int x = ms_hand_tensor(h, "bsnd", MS_ROLE_ACTIVATION, "RRR");
    int y = ms_hand_result(h, "bsnd", "RRR");
    ms_hand_unary(h, MS_OP_ROTARY, x, y)->rotary_width = 4;
    int back = ms_hand_result(h, "bsnd", "RRR");
    ms_node *inverse = ms_hand_unary(h, MS_OP_ROTARY, y, back);
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

/* Runs attention whose inputs q, k and v are weights, so that each gets values of its
 * own. */
static ms_interp *run_attention(ms_hand *h, long window, int *o)
{
    ms_hand_set_size(h, MS_DIM_HEADS, 4);
    ms_hand_set_size(h, MS_DIM_KV_HEADS, 2);
    ms_hand_set_size(h, MS_DIM_HEAD, 4);
    ms_hand_set_size(h, MS_DIM_VALUE, 3);
    ms_hand_tensor(h, "bsnd", MS_ROLE_WEIGHT, "RRR");
    ms_hand_tensor(h, "bsgd", MS_ROLE_WEIGHT, "RRR");
    ms_hand_tensor(h, "bsgw", MS_ROLE_WEIGHT, "RRR");
    *o = ms_hand_result(h, "bsnw", "RRR");
    int lse = ms_hand_result(h, "bsn", "RRR");
    ms_node *made = ms_hand_node(h, MS_OP_ATTENTION, 3, 2);
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
        ms_hand *h = ms_hand_open(test_cx()->arena);
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
        /* query-key pairs of 8 causal tokens: 8 * 9 / 2; with a window of 3: 1 + 2 + 6
         * * 3 */
        double num_pairs = window == 0 ? 36 : 21;
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
    ms_hand *h = ms_hand_open(test_cx()->arena);
    ms_hand_set_size(h, MS_DIM_VOCAB, 6);
    int logits = ms_hand_tensor(h, "bsv", MS_ROLE_ACTIVATION, "RRR"),
        max = ms_hand_result(h, "bs", "RRR");
    ms_hand_unary(h, MS_OP_LOSS_MAX, logits, max);
    int sum = ms_hand_result(h, "bs", "RRR"), target = ms_hand_result(h, "bs", "RRR");
    ms_node *summed = ms_hand_binary(h, MS_OP_LOSS_SUM, logits, max, sum);
    summed->num_out = 2;
    summed->out[1] = target;
    int loss = ms_hand_result(h, "bs", "RRR");
    ms_node *last = ms_hand_binary(h, MS_OP_LOSS, max, sum, loss);
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

/* Writes the routing of input x[bsh] by logits[bse] (a weight, so that they get values
 * of their own); returns the tensor of chosen experts. */
static int route(ms_hand *h, ms_router_kind router, const char *at, int *weight)
{
    h->model.moe.router = router;
    h->model.moe.top_k = TOP_K;
    ms_hand_set_size(h, MS_DIM_EXPERTS, NUM_EXPERTS);
    ms_hand_set_size(h, MS_DIM_CHOICES, TOP_K);
    ms_hand_set_size(h, MS_DIM_ROWS, 2 * 8 * TOP_K);
    ms_hand_tensor(h, "bsh", MS_ROLE_ACTIVATION, at);
    int logits = ms_hand_tensor(h, "bse", MS_ROLE_WEIGHT, at);
    *weight = ms_hand_result(h, "bsk", at);
    int choice = ms_hand_result(h, "bsk", at);
    ms_node *made = ms_hand_unary(h, MS_OP_ROUTE, logits, *weight);
    made->num_out = 2;
    made->out[1] = choice;
    return choice;
}

static void routers_choose_the_largest_and_weigh_by_their_rule(void **state)
{
    (void)state;
    for (int router = 0; router < 3; router++) {
        ms_hand *h = ms_hand_open(test_cx()->arena);
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
    ms_hand *h = ms_hand_open(test_cx()->arena);
    h->options.balanced_routing = true;
    int weight, choice = route(h, MS_ROUTER_SOFTMAX_TOPK, "RRR", &weight);
    const double *c = whole(run_hand(h), choice);
    for (int i = 0; i < 32; i++)
        ASSERT_INT(c[i], i % NUM_EXPERTS);
}

/* Runs the exchange of routed rows to their experts and back, on dp 2 x tp 2 with ep 4,
 * where every rank owns one expert. Outputs are tensors: `choice` of experts, `rows`
 * before the exchange, `sent` at the experts, `back` after the return. */
static ms_interp *run_dispatch(ms_hand *h, int *choice, int *rows, int *sent, int *back)
{
    int weight;
    ms_hand_set_mesh(h, MS_DENSE_MESH, 2, 1, 2);
    ms_hand_set_mesh(h, MS_SPARSE_MESH, 1, 4, 1);
    *choice = route(h, MS_ROUTER_SOFTMAX_TOPK, "bRs", &weight);
    *rows = ms_hand_result(h, "rh", "rRr");
    ms_hand_binary(h, MS_OP_PERMUTE, 0, *choice, *rows);
    *sent = ms_hand_result(h, "rh", "RrR");
    h->tensors[*sent].mesh = MS_SPARSE_MESH;
    ms_hand_binary(h, MS_OP_EXCHANGE, *rows, *choice, *sent);
    *back = ms_hand_result(h, "rh", "rRr");
    ms_hand_binary(h, MS_OP_EXCHANGE, *sent, *choice, *back)->inverse = true;
    return run_hand(h);
}

static void dispatch_orders_rows_by_expert_then_source(void **state)
{
    (void)state;
    ms_hand *h = ms_hand_open(test_cx()->arena);
    int choice, rows, sent, back;
    ms_interp *run = run_dispatch(h, &choice, &rows, &sent, &back);
    for (int owner = 0; owner < 4; owner++) {
        const ms_cell *got = &run->cells[sent * 4 + owner];
        long row = 0;
        for (int source = 0; source < 4; source++) {
            const ms_cell *c = &run->cells[choice * 4 + source], *x = &run->cells[source];
            for (long i = 0; i < c->count; i++)
                /* an owner's rows are ordered by source rank, then by token */
                if ((int)c->values[i] == owner) {
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
    ms_hand *h = ms_hand_open(test_cx()->arena);
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
    /* bytes of all rows for other ranks, of 4 elements of 2 bytes each */
    ASSERT_NEAR(there, num_rows * 4 * 2, 0);
    ASSERT_NEAR(here, there, 0);
}

static void grouped_products_use_the_matrix_of_the_rows_expert(void **state)
{
    (void)state;
    ms_hand *h = ms_hand_open(test_cx()->arena);
    int choice, rows, sent, back;
    ms_hand_set_size(h, MS_DIM_EXPERT_FFN, 3);
    run_dispatch(h, &choice, &rows, &sent, &back);
    ms_hand_set_mesh(h, MS_SPARSE_MESH, 2, 2,
                     1); /* the mesh now has two experts on each rank */
    h->tensors[sent].at[0] = ms_hand_placement('r');
    int w = ms_hand_tensor(h, "ehi", MS_ROLE_WEIGHT, "ReR"),
        y = ms_hand_result(h, "ri", "rrR");
    h->tensors[w].mesh = h->tensors[y].mesh = MS_SPARSE_MESH;
    ms_node *product = ms_hand_binary(h, MS_OP_GROUPED, sent, w, y);
    product->num_in = 3;
    product->in[2] = choice;
    product->einsum = "rh,ehi->ri";
    ms_interp *run = run_hand(h);
    for (int rank = 0; rank < 4; rank++) {
        const ms_cell *x = &run->cells[sent * 4 + rank], *got = &run->cells[y * 4 + rank];
        const ms_cell *matrix = &run->cells[w * 4 + rank];
        /* first[0]: rows for the rank's first expert, from both ranks of its ep group */
        long first[2] = {0, 0};
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
                0); /* no row of an expert is lost or computed twice */
}

/* ---- between ranks ---- */

static ms_hand *open_split_hand(void)
{
    ms_hand *h = ms_hand_open(test_cx()->arena);
    ms_hand_set_mesh(h, MS_DENSE_MESH, 1, 2, 2);
    ms_hand_set_mesh(h, MS_SPARSE_MESH, 4, 1, 1);
    return h;
}

static void changes_of_placement_keep_the_tensor_and_count_bytes(void **state)
{
    (void)state;
    ms_hand *h = open_split_hand();
    int x = ms_hand_tensor(h, "bsh", MS_ROLE_ACTIVATION, "Rss");
    int gathered = ms_hand_redistribute(h, x, 2, "RsR");
    int turned = ms_hand_redistribute(h, x, 2, "Rsh");
    int all = ms_hand_redistribute(h, gathered, 1, "RRR");
    int sliced = ms_hand_redistribute(h, all, 2, "RRh");
    int divided = ms_hand_redistribute(h, all, 2, "RRP");
    ms_interp *run = run_hand(h);
    const double *want = whole(run, x);
    const int tensors[] = {gathered, turned, all, sliced, divided};
    /* bytes that a rank sends in each redistribution; its part of x is 16 elements of 2
     * bytes */
    const double bytes[] = {16 * 2, 8 * 2, 32 * 2, 0, 0};
    for (int i = 0; i < 5; i++) {
        assert_true(ms_interp_difference(whole(run, tensors[i]), want, 64) == 0);
        for (int rank = 0; rank < 4; rank++)
            ASSERT_NEAR(run->node_wire_bytes[i * 4 + rank], bytes[i], 0);
    }
}

static void split_products_add_up_by_either_reduction(void **state)
{
    (void)state;
    ms_hand *h = open_split_hand();
    ms_hand_set_size(h, MS_DIM_FFN, 6);
    int x = ms_hand_tensor(h, "bsh", MS_ROLE_ACTIVATION, "RsR");
    int up = ms_hand_tensor(h, "hf", MS_ROLE_WEIGHT, "RRf"),
        down = ms_hand_tensor(h, "fh", MS_ROLE_WEIGHT, "RRf");
    int hidden = ms_hand_result(h, "bsf", "Rsf");
    ms_hand_binary(h, MS_OP_EINSUM, x, up, hidden)->einsum = "bsh,hf->bsf";
    int y = ms_hand_result(h, "bsh", "RsP");
    ms_hand_binary(h, MS_OP_EINSUM, hidden, down, y)->einsum = "bsf,fh->bsh";
    int reduced = ms_hand_redistribute(h, y, 2, "RsR"),
        scattered = ms_hand_redistribute(h, y, 2, "Rss");
    ms_interp *split = run_hand(h);
    ms_hand_set_mesh(h, MS_DENSE_MESH, 1, 1, 1);
    ms_hand_set_mesh(h, MS_SPARSE_MESH, 1, 1, 1);
    ms_interp *single = run_hand(h);
    const double *want = whole(single, y);
    ms_hand_set_mesh(h, MS_DENSE_MESH, 1, 2, 2);
    ms_hand_set_mesh(h, MS_SPARSE_MESH, 4, 1, 1);
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
    ms_hand *h = open_split_hand();
    ms_hand_redistribute(h, ms_hand_tensor(h, "bsh", MS_ROLE_ACTIVATION, "Rss"), 1,
                         "RRs");
    ms_interp *run = ms_interp_run(h->arena, &h->program, &h->options);
    assert_true(mentions(run->why, "needs an element"));
}

static void copies_that_differ_are_found(void **state)
{
    (void)state;
    ms_hand *h = open_split_hand();
    ms_hand_set_size(h, MS_DIM_FFN, 6);
    int x = ms_hand_tensor(h, "bsh", MS_ROLE_ACTIVATION, "RsR"),
        w = ms_hand_tensor(h, "hf", MS_ROLE_WEIGHT, "RRf");
    int hidden = ms_hand_result(h, "bsf", "Rsf");
    ms_hand_binary(h, MS_OP_EINSUM, x, w, hidden)->einsum = "bsh,hf->bsf";
    /* mistake: the result should be a partial sum */
    int wrong = ms_hand_result(h, "bsh", "RsR");
    ms_hand_binary(h, MS_OP_EINSUM, hidden, w, wrong)->einsum = "bsf,hf->bsh";
    ms_interp *run = run_hand(h);
    long count;
    assert_null(ms_interp_gather(run, wrong, &count));
    assert_true(mentions(run->why, "is replicated, but differs"));
}

static void a_redistribution_that_does_not_fit_its_tensors_is_refused(void **state)
{
    (void)state;
    ms_hand *h = open_split_hand();
    ms_hand_redistribute(h, ms_hand_tensor(h, "bsh", MS_ROLE_ACTIVATION, "RsR"), 2,
                         "RRh");
    ms_interp *run = ms_interp_run(h->arena, &h->program, &h->options);
    assert_true(mentions(run->why, "placements do not fit"));
}

static void backward_cannot_use_what_was_not_saved(void **state)
{
    (void)state;
    ms_hand *h = ms_hand_open(test_cx()->arena);
    int x = ms_hand_tensor(h, "bsh", MS_ROLE_ACTIVATION, "RRR"),
        y = ms_hand_result(h, "bsh", "RRR");
    ms_hand_unary(h, MS_OP_ACTIVATION, x, y);
    int z = ms_hand_result(h, "bsh", "RRR");
    ms_hand_binary(h, MS_OP_ADD, x, y, z);
    h->program.num_forward_nodes = 1;
    run_hand(h);
    h->tensors[y].saved = false;
    ms_interp *run = ms_interp_run(h->arena, &h->program, &h->options);
    assert_true(mentions(run->why, "neither saved nor computed again"));
}

static void a_nudge_changes_one_element(void **state)
{
    (void)state;
    ms_hand *h = open_split_hand();
    int x = ms_hand_tensor(h, "bsh", MS_ROLE_ACTIVATION, "Rss");
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
