/* Tests of CPU kernels for what the reference interpreter lacks: shards of embedding
 * tables, vocabulary padding, model constants, the optimizer, array operations. */
#include "exec/cpu/kernels.h"
#include "tests/support/interpreter_priv.h"
#include "tests/support/program_cases.h"
#include "tests/support/run_program.h"
#include "tests/test.h"

static const double tolerance[] = {[MS_REAL_FP32] = 1e-6, [MS_REAL_FP64] = 1e-13};

/* ---- single calls ---- */

typedef struct one_call {
    const ms_kernels *kernels;
    ms_arena *arena;
    ms_model model;
    ms_program program;
    ms_tensor tensors[MS_MAX_OPERANDS + MS_MAX_OPERANDS];
    ms_node node;
    ms_batch batch;
    ms_op_call call;
} one_call;

static one_call *begin(ms_real_type type, ms_op op)
{
    ms_arena *arena = test_cx()->arena;
    one_call *c = MS_NEW(arena, one_call);
    c->kernels = ms_cpu_kernels(type);
    c->arena = arena;
    c->program.model = &c->model;
    c->program.tensors = c->tensors;
    c->node.op = (unsigned char)op;
    c->call = (ms_op_call){.program = &c->program,
                           .node = &c->node,
                           .batch = &c->batch,
                           .workspace = ms_arena_alloc(arena, 4096)};
    return c;
}

/* Makes an operand whose shape is text, as "2 3 4". */
static ms_local *make_local(one_call *c, const char *shape, const double *values)
{
    ms_local *x = MS_NEW(c->arena, ms_local);
    x->count = 1;
    for (const char *s = shape; *s != '\0'; x->num_dims++) {
        char *end;
        x->shape[x->num_dims] = strtol(s, &end, 10);
        x->count *= x->shape[x->num_dims];
        s = end;
    }
    x->data = MS_NEW_ARRAY(c->arena, x->count, double);
    if (values != NULL)
        c->kernels->from_double(x->data, values, x->count);
    else
        c->kernels->fill(x->data, (double)NAN, x->count);
    return x;
}

static ms_local *give(one_call *c, const char *dims, const char *shape,
                      const double *values)
{
    int i = c->node.num_in++;
    memcpy(c->tensors[i].dims, dims, strlen(dims) + 1);
    c->node.in[i] = i;
    ms_local *x = make_local(c, shape, values);
    c->call.in[i] = x;
    return x;
}

static ms_local *want(one_call *c, const char *dims, const char *shape)
{
    int i = c->node.num_out++, tensor = MS_MAX_OPERANDS + i;
    memcpy(c->tensors[tensor].dims, dims, strlen(dims) + 1);
    c->node.out[i] = tensor;
    c->call.out[i] = make_local(c, shape, NULL);
    return c->call.out[i];
}

static void run(one_call *c)
{
    c->kernels->op[c->node.op](&c->call);
}

static const double *values_of(const one_call *c, const ms_local *x)
{
    double *values = MS_NEW_ARRAY(c->arena, x->count, double);
    c->kernels->to_double(values, x->data, x->count);
    return values;
}

static void expect(const one_call *c, const ms_local *x, const double *values)
{
    const double *got = values_of(c, x);
    for (long i = 0; i < x->count; i++)
        if (!(fabs(got[i] - values[i]) <=
              tolerance[c->kernels->type] * fmax(1, fabs(values[i]))) &&
            got[i] != values[i])
            fail_msg("element %ld: %.17g, not %.17g", i, got[i], values[i]);
}

#define FOR_BOTH(type)                                                                   \
    for (ms_real_type type = MS_REAL_FP32; type <= MS_REAL_FP64;                         \
         type = (ms_real_type)(type + 1))

/* ---- exp ---- */

static void exp_is_accurate_everywhere(void **state)
{
    (void)state;
    const double worst[] = {[MS_REAL_FP32] = 1e-7, [MS_REAL_FP64] = 4e-16};
    FOR_BOTH(type)
    {
        /* vocabulary of one: the sum of exp(logit - 0) is exp(logit) */
        one_call *c = begin(type, MS_OP_LOSS_SUM);
        enum {
            NUM = 40000
        };
        double *x = MS_NEW_ARRAY(c->arena, NUM, double);
        int *targets = MS_NEW_ARRAY(c->arena, NUM, int);
        for (int i = 0; i < NUM; i++)
            x[i] = (double)(float)(-86.9 + 174.7 * i / (NUM - 1));
        x[0] = 0;
        c->model.vocab = 1;
        c->batch = (ms_batch){.num_sequences = 1,
                              .sequence_length = NUM,
                              .targets = targets,
                              .num_tokens = 1};
        give(c, "bsv", "1 40000 1", x);
        give(c, "bs", "1 40000", MS_NEW_ARRAY(c->arena, NUM, double));
        ms_local *sum = want(c, "bs", "1 40000");
        want(c, "bs", "1 40000");
        run(c);
        const double *got = values_of(c, sum);
        assert_true(got[0] == 1);
        for (int i = 0; i < NUM; i++)
            ASSERT_NEAR(got[i], exp(x[i]), worst[type]);
    }
}

/* ---- the vocabulary ---- */

static void a_rank_with_padding_alone_adds_nothing_to_the_loss(void **state)
{
    (void)state;
    const double logits[] = {1, 2, 3, 4, 5, 6};
    const int targets[] = {3, 1};
    FOR_BOTH(type)
    {
        /* columns 2, 3 and 4 of logits: all padding for vocabulary 2, and from column 3
         * on for vocabulary 3 */
        for (long vocab = 2; vocab <= 3; vocab++) {
            one_call *c = begin(type, MS_OP_LOSS_MAX);
            c->model.vocab = vocab;
            c->batch = (ms_batch){.num_sequences = 1,
                                  .sequence_length = 2,
                                  .targets = targets,
                                  .num_tokens = 8};
            ms_local *x = give(c, "bsv", "1 2 3", logits), *max = want(c, "bs", "1 2");
            x->start[2] = 2;
            run(c);
            const double none[] = {-HUGE_VAL, -HUGE_VAL}, first[] = {1, 4};
            expect(c, max, vocab == 2 ? none : first);
            c->node = (ms_node){.op = MS_OP_LOSS_SUM, .num_in = 1};
            const double all[] = {6, 6}, zero[] = {0, 0, 0, 0, 0, 0};
            give(c, "bs", "1 2", all);
            ms_local *sum = want(c, "bs", "1 2"), *target = want(c, "bs", "1 2");
            run(c);
            const double terms[] = {exp(-5), exp(-2)};
            expect(c, sum, vocab == 2 ? zero : terms);
            /* target 3 is padding, target 1 is on another rank */
            expect(c, target, zero);
            c->node = (ms_node){.op = MS_OP_LOSS_GRAD, .num_in = 2};
            const double sums[] = {2, 4};
            give(c, "bs", "1 2", sums);
            ms_local *gradient = want(c, "bsv", "1 2 3");
            const double p[] = {exp(-5) / 16, 0, 0, exp(-2) / 32, 0, 0};
            run(c);
            expect(c, gradient, vocab == 2 ? zero : p);
            c->call.out[0] = x; /* gradient overwrites the logits */
            run(c);
            expect(c, x, vocab == 2 ? zero : p);
        }
    }
}

static void a_part_of_a_table_gives_its_own_rows(void **state)
{
    (void)state;
    const double table[] = {1, 2, 3, 4}; /* rows 2 and 3 of a table of width 2 */
    const int tokens[] = {9, 9, 0, 3, 2, 5};
    const double by_token[] = {0, 0, 3, 4, 1, 2, 0, 0};
    const double by_position[] = {0, 0, 0, 0, 1, 2, 3, 4};
    const long order[] = {0, 1, 2, 3};
    FOR_BOTH(type)
    {
        one_call *c = begin(type, MS_OP_EMBED);
        /* sequences of one token; the rank's part begins at the third one */
        c->batch = (ms_batch){.first_sequence = 5,
                              .num_sequences = 6,
                              .sequence_length = 1,
                              .tokens = tokens};
        ms_local *part = give(c, "vh", "2 2", table), *x = want(c, "bsh", "4 1 2");
        part->start[0] = 2;
        x->start[0] = 7;
        run(c);
        expect(c, x, by_token);
        c->batch = (ms_batch){.positions = order};
        c->node.by_position = true;
        *x = *make_local(c, "1 4 2", NULL);
        run(c);
        expect(c, x, by_position);
        /* gradients of rows 2 and 3 are added to the earlier values */
        c->node = (ms_node){.op = MS_OP_EMBED_GRAD, .by_position = true};
        give(c, "bsh", "1 4 2", (const double[]){1, 2, 3, 4, 5, 6, 7, 8});
        ms_local *gtable = want(c, "vh", "2 2");
        c->tensors[MS_MAX_OPERANDS].role = MS_ROLE_WEIGHT_GRADIENT;
        gtable->start[0] = 2;
        c->kernels->fill(gtable->data, 10, 4);
        run(c);
        expect(c, gtable, (const double[]){15, 16, 17, 18});
    }
}

/* A head with vocabulary 30, and one padded to 32 columns whose padding has the largest
 * logits, give equal results. */
static void padded_columns_of_the_vocabulary_change_nothing(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    ms_model model = ms_small_llama();
    model.vocab = 30;
    ms_program_key key = ms_case_whole_key(MS_BLOCK_HEAD);
    const ms_program *exact = ms_case_program(arena, &model, &key, 1);
    ms_program *padded = ms_case_copy(arena, exact);
    padded->size[MS_DIM_VOCAB - '0'] = 32;
    FOR_BOTH(type)
    {
        ms_interp_options options = {.seed = 4};
        ms_interp *of_exact = ms_interp_run(arena, exact, &options),
                  *of_padded = ms_interp_run(arena, padded, &options);
        ms_program_run *a = ms_program_run_prepare(of_exact, ms_cpu_kernels(type)),
                       *b = ms_program_run_prepare(of_padded, ms_cpu_kernels(type));
        b->batch = a->batch;
        int head = -1;
        for (int i = 0; i < exact->num_tensors; i++) {
            if (exact->tensors[i].producer >= 0)
                continue;
            const double *from = ms_program_run_values(a, i);
            bool is_head = strcmp(exact->tensors[i].dims, "vh") == 0;
            double *to = MS_NEW_ARRAY(arena, b->locals[i].count, double);
            long count = b->locals[i].count, real = a->locals[i].count;
            for (long j = 0; j < count; j++)
                to[j] = is_head && j >= real ? 50 : from[j];
            ms_program_run_set(b, i, to);
            head = is_head ? i : head;
        }
        ms_program_run_execute(a);
        ms_program_run_execute(b);
        const int same[] = {exact->output, exact->input_gradient};
        for (int i = 0; i < 2; i++)
            assert_true(ms_interp_difference(ms_program_run_values(b, same[i]),
                                             ms_program_run_values(a, same[i]),
                                             a->locals[same[i]].count) <=
                        tolerance[type]);
        int gradient = exact->tensors[head].gradient;
        const double *got = ms_program_run_values(b, gradient),
                     *wanted = ms_program_run_values(a, gradient);
        for (long j = 0; j < b->locals[gradient].count; j++)
            assert_true(fabs(got[j] - (j < a->locals[gradient].count ? wanted[j] : 0)) <=
                        tolerance[type]);
    }
}

/* ---- constants of a model ---- */

static void models_have_their_base_epsilon_and_gelu(void **state)
{
    (void)state;
    const double x[] = {3, 4, -1, 0.5};
    FOR_BOTH(type)
    {
        one_call *c = begin(type, MS_OP_NORM);
        c->model.norm_epsilon = 0.5;
        give(c, "bsh", "1 1 2", x);
        give(c, "h", "2", (const double[]){1, 2});
        ms_local *out = want(c, "bsh", "1 1 2");
        run(c);
        expect(c, out, (const double[]){3 / sqrt(13), 8 / sqrt(13)});

        c = begin(type, MS_OP_ROTARY);
        c->model.rotary_base = 16;
        c->node.rotary_width = 4;
        ms_local *in = give(c, "bsnd", "1 1 1 4", x);
        in->start[1] = 3;
        out = want(c, "bsnd", "1 1 1 4");
        run(c);
        double fast = 3, slow = 3 / 4.0; /* rotary frequency 16^(-2/4) = 1/4 */
        expect(c, out,
               (const double[]){
                   3 * cos(fast) + sin(fast), 4 * cos(slow) - 0.5 * sin(slow),
                   -cos(fast) + 3 * sin(fast), 0.5 * cos(slow) + 4 * sin(slow)});

        c = begin(type, MS_OP_ACTIVATION);
        c->model.activation = MS_ACT_GELU;
        c->model.gelu_tanh = true;
        give(c, "bsf", "1 2 2", x);
        out = want(c, "bsf", "1 2 2");
        run(c);
        double values[4], slopes[4];
        for (int i = 0; i < 4; i++) {
            double u = sqrt(2 / 3.14159265358979323846), cubic = 0.044715, step = 1e-5;
            double near[3];
            for (int j = 0; j < 3; j++) {
                double y = x[i] + (j - 1) * step;
                near[j] = 0.5 * y * (1 + tanh(u * (y + cubic * y * y * y)));
            }
            values[i] = near[1];
            slopes[i] = (near[2] - near[0]) / (2 * step);
        }
        expect(c, out, values);
        c->node = (ms_node){.op = MS_OP_ACTIVATION_GRAD, .num_in = 1};
        give(c, "bsf", "1 2 2", (const double[]){1, 1, 1, 1});
        out = want(c, "bsf", "1 2 2");
        run(c);
        for (int i = 0; i < 4; i++)
            assert_true(fabs(values_of(c, out)[i] - slopes[i]) < 1e-6);
    }
}

/* ---- experts ---- */

static void rows_of_an_expert_come_from_all_sources(void **state)
{
    (void)state;
    /* expert 0: one row from each of two sources; expert 1: one row from the second
     * source */
    const long counts[] = {1, 0, 1, 1};
    ms_routing routing = {
        .num_sources = 2, .num_experts = 2, .counts = counts, .num_rows = 3};
    FOR_BOTH(type)
    {
        one_call *c = begin(type, MS_OP_GROUPED);
        c->call.routing = &routing;
        c->node.einsum = "rh,ehi->ri";
        give(c, "rh", "3 1", (const double[]){1, 2, 3});
        give(c, "ehi", "2 1 2", (const double[]){1, 10, 100, 1000});
        ms_local *out = want(c, "ri", "3 2");
        run(c);
        expect(c, out, (const double[]){1, 10, 2, 20, 300, 3000});
        c = begin(type, MS_OP_GROUPED);
        c->call.routing = &routing;
        c->node.einsum = "rh,ri->ehi";
        give(c, "rh", "3 1", (const double[]){1, 2, 3});
        give(c, "ri", "3 1", (const double[]){1, 1, 5});
        out = want(c, "ehi", "2 1 1");
        c->tensors[MS_MAX_OPERANDS].role = MS_ROLE_WEIGHT_GRADIENT;
        c->kernels->fill(out->data, 1, 2);
        run(c);
        expect(c, out, (const double[]){4, 16});
    }
}

static void equal_experts_are_taken_in_their_order(void **state)
{
    (void)state;
    FOR_BOTH(type)
    {
        one_call *c = begin(type, MS_OP_ROUTE);
        c->model.moe.router = MS_ROUTER_TOPK_SOFTMAX;
        c->program.size[MS_DIM_EXPERTS - '0'] = 4;
        c->program.size[MS_DIM_CHOICES - '0'] = 2;
        give(c, "bse", "1 3 4", (const double[]){1, 1, 1, 1, 0, 2, 0, 2, 5, 1, 3, 3});
        ms_local *weight = want(c, "bsk", "1 3 2"), *choice = want(c, "bsk", "1 3 2");
        run(c);
        expect(c, choice, (const double[]){0, 1, 1, 3, 0, 2});
        double first = 1 / (1 + exp(-2));
        expect(c, weight, (const double[]){0.5, 0.5, 0.5, 0.5, first, 1 - first});
    }
}

/* Two groups of two tokens, with room for one copy in each of two experts. Tokens without copies get nothing, and weights
 * of dropped copies no gradient. */
static void experts_keep_the_first_copies(void **state)
{
    (void)state;
    static const int group[] = {0, 1, 0, 1};
    const ms_capacity capacity = {.factor = 1.0, .group = group, .num_groups = 2};
    static const double dropped[] = {0, 1, -1, -2};
    FOR_BOTH(type)
    {
        one_call *c = begin(type, MS_OP_ROUTE);
        c->model.moe.router = MS_ROUTER_SOFTMAX_TOPK;
        c->program.size[MS_DIM_EXPERTS - '0'] = 2;
        c->program.size[MS_DIM_CHOICES - '0'] = 1;
        c->program.size[MS_DIM_SEQUENCE - '0'] = 4;
        c->call.capacity = &capacity;
        give(c, "bse", "1 4 2", (const double[]){1, 0, 0, 1, 2, 0, 0, 2});
        (void)want(c, "bsk", "1 4 1");
        ms_local *choice = want(c, "bsk", "1 4 1");
        run(c);
        expect(c, choice, dropped);
        c = begin(type, MS_OP_PERMUTE);
        c->program.size[MS_DIM_EXPERTS - '0'] = 2;
        give(c, "bsh", "1 4 1", (const double[]){10, 20, 30, 40});
        give(c, "bsk", "1 4 1", dropped);
        ms_local *rows = want(c, "rh", "2 1");
        run(c);
        expect(c, rows, (const double[]){10, 20});
        c = begin(type, MS_OP_UNPERMUTE);
        c->program.size[MS_DIM_EXPERTS - '0'] = 2;
        give(c, "rh", "2 1", (const double[]){3, 5});
        give(c, "bsk", "1 4 1", (const double[]){0.5, 0.5, 0.5, 0.5});
        give(c, "bsk", "1 4 1", dropped);
        ms_local *y = want(c, "bsh", "1 4 1");
        run(c);
        expect(c, y, (const double[]){1.5, 2.5, 0, 0});
        c = begin(type, MS_OP_UNPERMUTE_GRAD);
        c->program.size[MS_DIM_EXPERTS - '0'] = 2;
        give(c, "bsh", "1 4 1", (const double[]){1, 2, 3, 4});
        give(c, "rh", "2 1", (const double[]){3, 5});
        give(c, "bsk", "1 4 1", (const double[]){0.5, 0.5, 0.5, 0.5});
        give(c, "bsk", "1 4 1", dropped);
        ms_local *grows = want(c, "rh", "2 1"), *gweight = want(c, "bsk", "1 4 1");
        run(c);
        expect(c, grows, (const double[]){0.5, 1});
        expect(c, gweight, (const double[]){3, 10, 0, 0});
    }
}

/* Programs of small models whose weight gradients are not wanted (data NULL) give the
 * right input gradient. */
static void gradients_of_weights_that_nobody_wants_are_left_out(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    for (int m = 0; m < MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE; m++)
        for (int part = 0; part < MS_NUM_BLOCK_KINDS; part++) {
            ms_model model = ms_case_model(m);
            ms_program_key key = ms_case_whole_key((ms_block_kind)part);
            const ms_program *program = ms_case_program(arena, &model, &key, 1);
            ms_interp *interp =
                ms_interp_run(arena, program, &(ms_interp_options){.seed = 6});
            ms_program_run *r =
                ms_program_run_prepare(interp, ms_cpu_kernels(MS_REAL_FP64));
            for (int i = 0; i < program->num_tensors; i++)
                if (program->tensors[i].role == MS_ROLE_WEIGHT_GRADIENT)
                    r->locals[i].data = NULL;
            ms_program_run_execute(r);
            int gradient = program->input_gradient;
            if (gradient < 0)
                continue;
            const ms_cell *cell = ms_interp_cell(interp, gradient, 0);
            assert_true(ms_interp_difference(ms_program_run_values(r, gradient),
                                             cell->values, cell->count) <= 1e-12);
        }
}

/* ---- arrays ---- */

static void arrays_are_added_compared_and_measured(void **state)
{
    (void)state;
    enum {
        NUM = 77
    };
    FOR_BOTH(type)
    {
        const ms_kernels *k = ms_cpu_kernels(type);
        double x[NUM], y[NUM], got[NUM], sum = 0;
        double a[NUM], b[NUM]; /* memory for fp32 or fp64 numbers */
        for (int i = 0; i < NUM; i++) {
            x[i] = i - 30;
            y[i] = i % 7 * 4 - 10;
            sum += x[i] * x[i];
        }
        k->from_double(a, x, NUM);
        k->from_double(b, y, NUM);
        ASSERT_NEAR(k->sum_of_squares(a, NUM), sum, 0);
        k->maximum(b, a, NUM);
        k->to_double(got, b, NUM);
        for (int i = 0; i < NUM; i++)
            ASSERT_NEAR(got[i], fmax(x[i], y[i]), 0);
        k->add(a, a, NUM);
        k->scale(a, -0.5, NUM);
        k->to_double(got, a, NUM);
        for (int i = 0; i < NUM; i++)
            ASSERT_NEAR(got[i], -x[i], 0);
        k->fill(a, 2.5, NUM);
        k->to_double(got, a, NUM);
        for (int i = 0; i < NUM; i++)
            ASSERT_NEAR(got[i], 2.5, 0);
    }
}

static void infinities_and_nans_are_found_wherever_they_are(void **state)
{
    (void)state;
    const double bad[] = {HUGE_VAL, -HUGE_VAL, (double)NAN};
    FOR_BOTH(type)
    {
        const ms_kernels *k = ms_cpu_kernels(type);
        double x[67] = {0}, reals[67];
        x[5] = type == MS_REAL_FP32 ? 3e38 : 1e308;
        for (int length = 0; length <= 67; length++)
            for (int at = 0; at <= length; at++) {
                k->from_double(reals, x, 67);
                assert_true(k->is_finite(reals, length));
                if (at == length)
                    continue;
                double was = x[at];
                x[at] = bad[at % 3];
                k->from_double(reals, x, 67);
                assert_false(k->is_finite(reals, length));
                x[at] = was;
            }
    }
}

/* ---- the optimizer ---- */

/* One AdamW step of one weight, with PyTorch's operations in their order
 * (torch/optim/adamw.py). */
static void step_by_hand(const ms_adamw *how, double g, double *w, double *m, double *v)
{
    g *= how->gradient_scale;
    *w *= 1 - how->learning_rate * how->weight_decay;
    *m = how->beta1 * *m + (1 - how->beta1) * g;
    *v = how->beta2 * *v + (1 - how->beta2) * g * g;
    double m_hat = *m / (1 - pow(how->beta1, (double)how->step));
    double v_hat = *v / (1 - pow(how->beta2, (double)how->step));
    *w -= how->learning_rate * m_hat / (sqrt(v_hat) + how->epsilon);
}

static void adamw_is_pytorchs_rule(void **state)
{
    (void)state;
    enum {
        NUM = 19
    };
    FOR_BOTH(type)
    {
        const ms_kernels *k = ms_cpu_kernels(type);
        double w[NUM], m[NUM] = {0}, v[NUM] = {0}, got[NUM];
        double weight[NUM], gradient[NUM], first[NUM], second[NUM];
        for (int i = 0; i < NUM; i++)
            w[i] = 0.125 * (i - 9);
        k->from_double(weight, w, NUM);
        k->fill(first, 0, NUM);
        k->fill(second, 0, NUM);
        for (long step = 1; step <= 5; step++) {
            ms_adamw how = {0.01, 0.9, 0.95, 1e-8, 0.1, step, step == 3 ? 0.25 : 1};
            double g[NUM];
            for (int i = 0; i < NUM; i++) {
                g[i] = i == 0 ? 0 : (double)((i * 7 + step * 3) % 11 - 5) / 8;
                step_by_hand(&how, g[i], &w[i], &m[i], &v[i]);
            }
            k->from_double(gradient, g, NUM);
            k->adamw(&how, weight, gradient, first, second, NUM);
            k->to_double(got, weight, NUM);
            for (int i = 0; i < NUM; i++)
                assert_true(fabs(got[i] - w[i]) <= tolerance[type]);
            /* the first AdamW step moves a weight by the learning rate against its
             * gradient's sign */
            if (step == 1)
                for (int i = 0; i < NUM; i++)
                    assert_true(fabs(got[i] - (0.125 * (i - 9) * 0.999 -
                                               (g[i] > 0) * 0.01 + (g[i] < 0) * 0.01)) <
                                1e-6);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_accurate_everywhere),
        cmocka_unit_test(a_rank_with_padding_alone_adds_nothing_to_the_loss),
        cmocka_unit_test(a_part_of_a_table_gives_its_own_rows),
        cmocka_unit_test(padded_columns_of_the_vocabulary_change_nothing),
        cmocka_unit_test(models_have_their_base_epsilon_and_gelu),
        cmocka_unit_test(rows_of_an_expert_come_from_all_sources),
        cmocka_unit_test(experts_keep_the_first_copies),
        cmocka_unit_test(equal_experts_are_taken_in_their_order),
        cmocka_unit_test(gradients_of_weights_that_nobody_wants_are_left_out),
        cmocka_unit_test(arrays_are_added_compared_and_measured),
        cmocka_unit_test(infinities_and_nans_are_found_wherever_they_are),
        cmocka_unit_test(adamw_is_pytorchs_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
