/* Test of every collective in a training step on 64 ranks with all six kinds of
 * parallelism, against sizes and counts derived by hand. */
#include "sim/explain/explain.h"

#include "tests/oracle/explained_plans.h"

/* ---- the plan ---- */

/* Plan: pp 2 x dp_replicate 2 x dp_shard 4 x cp 2 x tp 2, experts over ep 8. */
enum {
    PP = 2,
    REPLICAS = 2,
    SHARD = 4,
    CP = 2,
    TP = 2,
    EP = 8,
    GPUS = 64,
    MICROBATCHES = 8
};
#define SEQUENCE 4096.0

/* Sizes of Mixtral 8x7B: mistralai/Mixtral-8x7B-v0.1 config.json. */
#define H       4096.0
#define HEADS   32.0
#define KV      8.0
#define D       128.0
#define F       14336.0
#define EXPERTS 8.0
#define CHOSEN  2.0
#define VOCAB   32000.0
#define LAYERS  16.0 /* layers on each of two stages */

#define BF16 2.0
#define FP32 4.0

static ms_plan six_parallelisms(long zero)
{
    ms_plan plan = ms_plan_default(GPUS);
    plan.model = "mixtral-8x7b";
    const long sizes[MS_NUM_PLAN_AXES] = {PP, REPLICAS, SHARD, CP, TP};
    static const long layers[] = {16, 16};
    memcpy(plan.size, sizes, sizeof sizes);
    plan.ep = EP;
    plan.sequence_length = (long)SEQUENCE;
    plan.global_batch = REPLICAS * SHARD * MICROBATCHES;
    plan.zero = zero;
    plan.reshard_after_forward = true;
    plan.sequence_parallel = true;
    plan.num_stage_layers = 2;
    plan.layers_per_stage = layers;
    return plan;
}

/* ---- expected collectives of a step ---- */

typedef struct expected {
    int rank;         /* pipeline rank; -1: both */
    const char *part; /* kind of block; NULL: not of a block but of the rank */
    ms_traffic_phase phase;
    const char *axis;
    ms_collective collective;
    double size_bytes;
    double per_microbatch; /* number of collectives a micro-batch on a rank */
    double per_step; /* number of collectives a step; 0: MICROBATCHES * per_microbatch */
    double ranks;    /* size of the group */
} expected;

/* Residual stream of a rank's micro-batch, s / cp tokens of hidden h: 2 (s / cp) h bytes.
 * It is split over tp, and gathered for products split by columns or rows. */
#define STREAM (BF16 * (SEQUENCE / CP) * H)
/* Gathered keys (or values) of all s tokens for the key/value heads of one tp rank: 2 s g
 * d / tp bytes, g heads of width d. */
#define KEYS (BF16 * SEQUENCE * KV * D / TP)
/* Exchanged expert rows: each of a rank's s / (cp tp) tokens goes to k experts: 2 s k h /
 * (cp tp) bytes. */
#define ROWS (BF16 * (SEQUENCE / (CP * TP)) * CHOSEN * H)
/* One fp32 number for each token of a rank. */
#define STATISTIC (FP32 * (SEQUENCE / CP))

/* Parameters of a layer on one rank: projections of queries, output, keys and values,
 * split by tp; two norms and the router, not split. */
#define LAYER_PARAMS                                                                     \
    ((2.0 * H * HEADS * D + 2.0 * H * KV * D) / TP + 2.0 * H + H * EXPERTS)
#define EXPERT_PARAMS (3.0 * H * F * EXPERTS / EP)
#define TABLE_PARAMS  (VOCAB * H / TP)
#define HEAD_PARAMS   (TABLE_PARAMS + H)

/* Shards of parameters: dp_shard x cp ranks; of expert parameters: dp_shard x cp x tp /
 * ep ranks. */
#define FSDP        (SHARD * CP)
#define EXPERT_FSDP (SHARD * CP * TP / EP)

#define FORWARD(rank, part, axis, collective, size, count, ranks)                        \
    {                                                                                    \
        rank, part, MS_TRAFFIC_FORWARD, axis, collective, size, count, 0.0, ranks        \
    }
#define BACKWARD(rank, part, axis, collective, size, count, ranks)                       \
    {                                                                                    \
        rank, part, MS_TRAFFIC_BACKWARD, axis, collective, size, count, 0.0, ranks       \
    }
#define PARAMS(rank, part, axis, size, count, ranks)                                     \
    {                                                                                    \
        rank, part, MS_TRAFFIC_PARAMS, axis, MS_ALL_GATHER, size, 0.0, count, ranks      \
    }
#define GRADS(rank, part, axis, collective, size, count, ranks)                          \
    {                                                                                    \
        rank, part, MS_TRAFFIC_GRADS, axis, collective, size, 0.0, count, ranks          \
    }

static const expected programs[] = {
    /* layer forward: tp all-gather before queries, keys and values, reduce-scatter after
     * the output projection; experts work on the split stream without tp traffic */
    FORWARD(-1, "layer", "tp", MS_ALL_GATHER, STREAM, LAYERS, TP),
    FORWARD(-1, "layer", "tp", MS_REDUCE_SCATTER, STREAM, LAYERS, TP),
    FORWARD(-1, "layer", "cp", MS_ALL_GATHER, KEYS, 2.0 * LAYERS, CP),
    FORWARD(-1, "layer", "ep", MS_ALL_TO_ALL, ROWS, 2.0 * LAYERS,
            EP), /* dispatch and combine of expert rows */
    /* layer backward: the transposed collectives, and gathered tensors, which are not
     * saved, are gathered again */
    BACKWARD(-1, "layer", "tp", MS_ALL_GATHER, STREAM, 2.0 * LAYERS, TP),
    BACKWARD(-1, "layer", "tp", MS_REDUCE_SCATTER, STREAM, LAYERS, TP),
    BACKWARD(-1, "layer", "cp", MS_ALL_GATHER, KEYS, 2.0 * LAYERS, CP),
    BACKWARD(-1, "layer", "cp", MS_REDUCE_SCATTER, KEYS, 2.0 * LAYERS, CP),
    BACKWARD(-1, "layer", "ep", MS_ALL_TO_ALL, ROWS, 2.0 * LAYERS, EP),
    /* embedding: rows of the table on a rank give partial sums; the table's gradient
     * needs all tokens */
    FORWARD(0, "embedding", "tp", MS_REDUCE_SCATTER, STREAM, 1.0, TP),
    BACKWARD(0, "embedding", "tp", MS_ALL_GATHER, STREAM, 1.0, TP),
    /* loss over a split vocabulary: all-reduces of maximum, sum of exponentials and
     * target logit */
    FORWARD(1, "head", "tp", MS_ALL_GATHER, STREAM, 1.0, TP),
    FORWARD(1, "head", "tp", MS_ALL_REDUCE, STATISTIC, 3.0, TP),
    BACKWARD(1, "head", "tp", MS_ALL_GATHER, STREAM, 1.0, TP),
    BACKWARD(1, "head", "tp", MS_REDUCE_SCATTER, STREAM, 1.0, TP),
    /* sends between stages: the split stream forward, its gradient backward */
    {0, NULL, MS_TRAFFIC_STAGE, "pp", MS_SEND, STREAM / TP, 1.0, 0.0, PP},
    {1, NULL, MS_TRAFFIC_STAGE, "pp", MS_SEND, STREAM / TP, 1.0, 0.0, PP},
};

/* ZeRO 1: parameters are gathered once a step in bf16, gradients are reduced once in
 * fp32. */
static const expected states_of_zero_1[] = {
    PARAMS(-1, "layer", "fsdp", BF16 *LAYER_PARAMS, LAYERS, FSDP),
    PARAMS(-1, "layer", "efsdp", BF16 *EXPERT_PARAMS, LAYERS, EXPERT_FSDP),
    PARAMS(0, "embedding", "fsdp", BF16 *TABLE_PARAMS, 1.0, FSDP),
    PARAMS(1, "head", "fsdp", BF16 *HEAD_PARAMS, 1.0, FSDP),
    GRADS(-1, "layer", "fsdp", MS_REDUCE_SCATTER, FP32 *LAYER_PARAMS, LAYERS, FSDP),
    GRADS(-1, "layer", "efsdp", MS_REDUCE_SCATTER, FP32 *EXPERT_PARAMS, LAYERS,
          EXPERT_FSDP),
    GRADS(0, "embedding", "fsdp", MS_REDUCE_SCATTER, FP32 *TABLE_PARAMS, 1.0, FSDP),
    GRADS(1, "head", "fsdp", MS_REDUCE_SCATTER, FP32 *HEAD_PARAMS, 1.0, FSDP),
};

/* Collectives once a step with any sharding: gradient shards over replicas, gradients of
 * norms and router over tp (whose ranks saw other tokens), gradient norm. */
static const expected once_a_step[] = {
    GRADS(-1, "layer", "dp_replicate", MS_ALL_REDUCE,
          FP32 *(LAYER_PARAMS / FSDP + EXPERT_PARAMS / EXPERT_FSDP), LAYERS, REPLICAS),
    GRADS(0, "embedding", "dp_replicate", MS_ALL_REDUCE, FP32 *TABLE_PARAMS / FSDP, 1.0,
          REPLICAS),
    GRADS(1, "head", "dp_replicate", MS_ALL_REDUCE, FP32 *HEAD_PARAMS / FSDP, 1.0,
          REPLICAS),
    GRADS(-1, "layer", "tp", MS_ALL_REDUCE, FP32 *(2.0 * H + H * EXPERTS), LAYERS, TP),
    GRADS(1, "head", "tp", MS_ALL_REDUCE, FP32 *H, 1.0, TP),
    {-1, NULL, MS_TRAFFIC_OPTIMIZER, "world", MS_ALL_REDUCE, FP32, 0.0, 1.0, GPUS},
};

static double count_of(const expected *want)
{
    return want->per_step > 0.0 ? want->per_step : MICROBATCHES * want->per_microbatch;
}

/* Bytes that a rank sends: of size S in a group of n, (n - 1)/n S for gathers, scatters
 * and all-to-alls, twice that for all-reduces, S for sends. */
static double sent_bytes(const expected *want)
{
    double share = (want->ranks - 1.0) / want->ranks;
    if (want->collective == MS_SEND)
        share = 1.0;
    if (want->collective == MS_ALL_REDUCE)
        share *= 2.0;
    return share * want->size_bytes * count_of(want);
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Number of the explained rank's entries that equal an expected collective. */
static int count_matches(const ms_explanation *e, const expected *want)
{
    int matches = 0;
    for (int i = 0; i < e->num_collectives; i++) {
        const ms_explain_collective *c = &e->collectives[i];
        const ms_traffic_entry *entry = c->entry;
        if (c->rank != e->rank || entry->phase != want->phase ||
            !same_text(c->block, want->part) || !same_text(c->axis, want->axis) ||
            entry->collective != want->collective ||
            fabs(entry->size_bytes - want->size_bytes) > 1e-12 * want->size_bytes)
            continue;
        matches++;
        ASSERT_NEAR(entry->count, count_of(want), 1e-12);
        ASSERT_INT(c->span->size, (long)want->ranks);
        ASSERT_NEAR(entry->count * entry->wire_bytes, sent_bytes(want), 1e-12);
    }
    return matches;
}

typedef struct totals {
    int num;
    double bytes[MS_MAX_AXIS_PREDICTIONS];
} totals;

static void add_total(const ms_explanation *e, const expected *want, totals *sum)
{
    for (int i = 0; i < e->num_axes; i++)
        if (strcmp(e->axes[i].axis, want->axis) == 0)
            sum->bytes[i] += sent_bytes(want);
}

static void expect_rows(const ms_explanation *e, const expected *rows, int num_rows,
                        totals *sum)
{
    for (int i = 0; i < num_rows; i++) {
        const expected *want = &rows[i];
        if (want->rank >= 0 && want->rank != e->rank)
            continue;
        if (count_matches(e, want) != 1)
            fail_msg("rank %d: %d entries for %s over %s of %s, %s, %.0f bytes", e->rank,
                     count_matches(e, want), ms_collective_names[want->collective],
                     want->axis, want->part == NULL ? "the rank" : want->part,
                     ms_traffic_phase_names[want->phase], want->size_bytes);
        sum->num++;
        add_total(e, want, sum);
    }
}

#define EXPECT_ROWS(e, rows, sum)                                                        \
    expect_rows(e, rows, (int)(sizeof(rows) / sizeof *(rows)), sum)

static int entries_of_rank(const ms_explanation *e)
{
    int num = 0;
    for (int i = 0; i < e->num_collectives; i++)
        num += e->collectives[i].rank == e->rank;
    return num;
}

/* Every collective of the explained rank is expected, every expected one occurs once, and
 * bytes per axis are their sums. */
static void every_collective_of_a_step_on_64_ranks(void **state)
{
    (void)state;
    for (int rank = 0; rank < PP; rank++) {
        ms_ctx *cx = test_cx();
        ms_plan plan = six_parallelisms(1);
        const ms_explanation *e = explain(cx, &plan, rank);
        totals sum = {0};
        EXPECT_ROWS(e, programs, &sum);
        EXPECT_ROWS(e, states_of_zero_1, &sum);
        EXPECT_ROWS(e, once_a_step, &sum);
        ASSERT_INT(entries_of_rank(e), sum.num);
        ASSERT_INT(e->num_axes, 7); /* axes: tp, cp, ep, fsdp, efsdp, dp_replicate, pp */
        for (int i = 0; i < e->num_axes; i++)
            ASSERT_NEAR(e->axes[i].bytes, sum.bytes[i], 1e-12);
        close_explained(e);
    }
}

/* A prediction's bytes per axis are those of the rank that ends the step. */
static void axes_of_the_prediction_are_the_same_sums(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = six_parallelisms(1);
    ms_prediction p;
    ms_workload *workload = workload_of(cx, &plan);
    ASSERT_OK(ms_predict(cx, workload, &plan, &p), cx);
    ms_workload_close(workload);
    const ms_explanation *e = explain(cx, &plan, -1);
    totals sum = {0};
    EXPECT_ROWS(e, programs, &sum);
    EXPECT_ROWS(e, states_of_zero_1, &sum);
    EXPECT_ROWS(e, once_a_step, &sum);
    ASSERT_INT(e->rank, p.ending_rank);
    ASSERT_INT(p.num_axes, e->num_axes);
    for (int i = 0; i < p.num_axes; i++) {
        ASSERT_TEXT(p.axes[i].axis, e->axes[i].axis);
        ASSERT_NEAR(p.axes[i].bytes, sum.bytes[i], 1e-12);
    }
    close_explained(e);
}

/* Number of gathers of a layer's parameters and of reductions of its gradients for each
 * ZeRO stage (Rajbhandari et al. 2020, section 5; PyTorch FSDP2). */
static void sharding_decides_how_often_states_travel(void **state)
{
    (void)state;
    static const struct {
        long zero;
        bool reshard;
        double gathers, reductions;
    } rows[] = {{1, true, 1, 1},
                {2, true, 1, MICROBATCHES},
                {3, false, 1, 1},
                {3, true, 2 * MICROBATCHES, MICROBATCHES}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan = six_parallelisms(rows[i].zero);
        plan.reshard_after_forward = rows[i].reshard;
        const ms_explanation *e = explain(cx, &plan, 0);
        double gathers = 0.0, reductions = 0.0, all_reduces = 0.0;
        for (int k = 0; k < e->num_collectives; k++) {
            const ms_explain_collective *c = &e->collectives[k];
            bool experts = same_text(c->axis, "efsdp");
            gathers +=
                experts && c->entry->phase == MS_TRAFFIC_PARAMS ? c->entry->count : 0;
            reductions +=
                experts && c->entry->phase == MS_TRAFFIC_GRADS ? c->entry->count : 0;
            all_reduces +=
                same_text(c->axis, "dp_replicate") && same_text(c->block, "layer")
                    ? c->entry->count
                    : 0;
        }
        ASSERT_NEAR(gathers, LAYERS * rows[i].gathers, 0);
        ASSERT_NEAR(reductions, LAYERS * rows[i].reductions, 0);
        ASSERT_NEAR(all_reduces, LAYERS, 0);
        close_explained(e);
    }
}

/* ZeRO 0: one gradient all-reduce over all data-parallel ranks. */
static void without_shards_gradients_are_reduced_over_all_ranks(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = six_parallelisms(0);
    const ms_explanation *e = explain(cx, &plan, 0);
    static const expected rows[] = {
        GRADS(-1, "layer", "dp_cp", MS_ALL_REDUCE, FP32 * LAYER_PARAMS, LAYERS,
              REPLICAS * FSDP),
        GRADS(-1, "layer", "edp", MS_ALL_REDUCE, FP32 * EXPERT_PARAMS, LAYERS,
              REPLICAS * EXPERT_FSDP),
        GRADS(0, "embedding", "dp_cp", MS_ALL_REDUCE, FP32 * TABLE_PARAMS, 1.0,
              REPLICAS * FSDP),
    };
    totals sum = {0};
    EXPECT_ROWS(e, rows, &sum);
    for (int i = 0; i < e->num_collectives; i++) {
        assert_true(e->collectives[i].entry->phase != MS_TRAFFIC_PARAMS);
        assert_false(same_text(e->collectives[i].axis, "fsdp"));
    }
    close_explained(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collective_of_a_step_on_64_ranks),
        cmocka_unit_test(axes_of_the_prediction_are_the_same_sums),
        cmocka_unit_test(sharding_decides_how_often_states_travel),
        cmocka_unit_test(without_shards_gradients_are_reduced_over_all_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
