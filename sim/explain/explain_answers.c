/* Answers to common questions about a plan ("Does tensor parallelism pay?"), by
 * predictions of other plans, or by their layer programs. */
#include "sim/explain/explain_priv.h"

#include "costmodel/cost/cast.h"
#include "sim/search/mesh_orders.h"
#include "sim/step/prediction_text.h"
#include "sim/step/schedule_timeline.h"

#include <math.h>
#include <string.h>

/* Relative difference below which step times count as equal. */
#define LEAST_DIFFERENCE 5e-4

/* ---- other plans ---- */

typedef struct asker {
    ms_ctx *cx;
    const ms_explanation *e;
    const ms_plan *plan;
} asker;

static const char *seconds(const asker *a, double value)
{
    if (value < 1e-9)
        return "0 s"; /* a time this short is a rounding error */
    return ms_arena_printf(a->cx->arena, "%.*f s", ms_decimals(value), value);
}

static double percent(double value, double of)
{
    return of > 0.0 ? 100.0 * value / of : 0.0;
}

/* Percent by which another plan's step is longer; +0 if the text would be "-0.0 %". */
static double percent_longer(const asker *a, double step_s)
{
    double change = percent(step_s - a->e->prediction.step_s, a->e->prediction.step_s);
    return fabs(change) < 0.05 ? 0.0 : change;
}

/* Predicts `plan`, a variant of the explained plan. If the two differ in pp, layers are
 * split over the stages by default. Returns false if `plan` is illegal. */
static bool predict_other(const asker *a, const ms_plan *plan, ms_prediction *out)
{
    ms_plan other = *plan;
    if (other.size[MS_PP] != a->plan->size[MS_PP])
        other.num_stage_layers = 0;
    if (other.size[MS_PP] == 1) {
        ms_plan_set_schedule(&other, MS_1F1B);
        other.virtual_stages = 1;
        other.microbatch_group = 0;
    }
    const ms_workload *w = a->e->planned->workload;
    if (ms_plan_refusal(&other, w->model) != MS_LEGAL)
        return false;
    return ms_predict(a->cx, a->e->planned->workload, &other, out) == MS_OK;
}

/* Copy of `plan` with `size` ranks in `axis`; dp_shard shrinks or grows to match. */
static ms_plan moved(const ms_plan *plan, ms_plan_axis axis, long size)
{
    ms_plan other = *plan;
    other.size[MS_DP_SHARD] = plan->size[MS_DP_SHARD] * plan->size[axis] / size;
    other.size[axis] = size;
    if (axis != MS_TP)
        return other;
    if (size > 1 && plan->size[MS_TP] == 1)
        other.sequence_parallel = true;
    if (size == 1)
        other.sequence_parallel = other.async_tp = false;
    if (plan->etp > 1)
        other.etp = size;
    return other;
}

/* Text of another plan's step and peak: "step 10.3 s (-6.6 %), peak 52.1 GiB" */
static const char *outcome_text(const asker *a, const ms_prediction *other)
{
    return ms_arena_printf(a->cx->arena, "step %s (%+.1f %%), peak %.1f GiB%s",
                           seconds(a, other->step_s), percent_longer(a, other->step_s),
                           ms_gib(other->peak_bytes),
                           other->fits ? "" : ", which does not fit");
}

static const ms_axis_prediction *axis_of(const ms_explanation *e, ms_traffic_group group)
{
    for (int i = 0; i < e->prediction.num_axes; i++)
        if (e->prediction.axes[i].group == group)
            return &e->prediction.axes[i];
    return NULL;
}

/* ---- 1: does tensor parallelism pay? ---- */

/* Compute seconds per step of the pipeline rank that ends the step, on its devices, by
 * priced programs (ms_bill) of its blocks. */
static double compute_s(const asker *a, const ms_bill_set *bills)
{
    const ms_planned *p = a->e->planned;
    ms_held_block held[MS_MAX_HELD_BLOCKS];
    int num_held = ms_planned_held(p, a->e->prediction.ending_rank, held);
    double total_s = 0.0;
    for (int i = 0; i < num_held; i++) {
        const ms_bill *bill = &bills->embed;
        if (held[i].block == MS_BLOCK_HEAD)
            bill = &bills->head;
        else if (held[i].block == MS_BLOCK_LAYER)
            bill = bills->layer[held[i].kind][held[i].mode];
        total_s += held[i].count *
                   (bill->compute_s[MS_BILL_FORWARD] + bill->compute_s[MS_BILL_BACKWARD]);
    }
    return total_s * (double)ms_schedule_stage_microbatches(&p->pipeline.shape);
}

static int ending_stage(const asker *a)
{
    return ms_split_stage(a->e->planned->pipeline.split, a->e->prediction.ending_rank, 0);
}

/* Compute seconds per step of the rank that ends the step, if tp were 1. */
static double compute_without_tp_s(const asker *a)
{
    const ms_planned *p = a->e->planned;
    ms_workload *workload = p->workload;
    if (p->pipeline.of_kinds != NULL)
        workload = ms_workload_of_kinds(
            workload, ms_split_kinds(p->pipeline.split, ending_stage(a)));
    ms_bill_key key = p->bills->key;
    key.tp = key.etp = 1;
    key.sequence_parallel = false;
    ms_bill_set *bills = ms_workload_bills(workload, &key);
    ms_workload_add_modes(workload, bills,
                          1U << MS_RECOMPUTE_NONE | 1U << ms_plan_layer_mode(p->plan));
    return compute_s(a, bills);
}

/* Whether the node is a GEMM of the MLP: one of its dimensions is the MLP's width. */
static bool has_mlp_width(const ms_node *node)
{
    return (node->op == MS_OP_EINSUM || node->op == MS_OP_GROUPED) &&
           strpbrk(node->einsum, "fFi") != NULL;
}

/* Whether `tensor` is the result of a GEMM of the MLP, or a sum with such a term. */
static bool is_from_mlp(const ms_program *program, int tensor)
{
    int producer = program->tensors[tensor].producer;
    if (producer < 0)
        return false;
    const ms_node *node = &program->nodes[producer];
    if (node->op == MS_OP_ADD)
        return is_from_mlp(program, node->in[0]) || is_from_mlp(program, node->in[1]);
    return has_mlp_width(node);
}

static bool is_for_mlp(const ms_program *program, int tensor)
{
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        for (int i = 0; i < node->num_in; i++)
            if (node->in[i] == tensor && has_mlp_width(node))
                return true;
    }
    return false;
}

/* Whether a placement change is next to the MLP: a GEMM of the MLP makes the tensor that
 * changes, or uses the result. */
static bool is_at_mlp(const ms_program *program, const ms_node *change)
{
    return is_from_mlp(program, change->in[0]) || is_for_mlp(program, change->out[0]);
}

/* Seconds of the MLP's GEMMs and of the tensor-parallel collectives next to them, in
 * forward and backward of one layer. */
static void mlp_times(const ms_planned *p, const ms_program *program, double *products_s,
                      double *traffic_s)
{
    *products_s = *traffic_s = 0.0;
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        ms_node_comm comm;
        if (has_mlp_width(node))
            *products_s += ms_node_compute_s(program, node, &p->workload->pricer);
        if (node->op != MS_OP_REDISTRIBUTE || !is_at_mlp(program, node) ||
            !ms_node_sends(program, node, &p->workload->pricer, &comm) ||
            ms_node_bill_axis(&comm) != MS_BILL_TP)
            continue;
        *traffic_s +=
            ms_collective_s(&p->links.law[MS_BILL_TP][comm.collective], comm.size_bytes);
    }
}

/* Text that states at which MLP width the MLP's GEMMs would take as long as the
 * tensor-parallel collectives next to them, whose bytes do not depend on the width. */
static const char *width_text(const asker *a, const ms_planned *p,
                              const ms_program *program)
{
    double products_s, traffic_s;
    mlp_times(p, program, &products_s, &traffic_s);
    const ms_model *model = a->e->planned->workload->model;
    bool experts = model->kinds[ms_explain_main_block(a->e)->held.kind].moe;
    double width = (double)(experts ? model->moe.ffn_hidden : model->ffn_hidden);
    if (products_s <= 0.0 || traffic_s <= 0.0)
        return "";
    return ms_arena_printf(a->cx->arena,
                           "; its MLP's products take as long as its MLP's traffic at a "
                           "width of %.0f, the model has %.0f",
                           width * traffic_s / products_s, width);
}

/* Text that compares the plan's step with that of the plan with another tp. */
static const char *other_tp_text(const asker *a, long tp)
{
    ms_plan other = moved(a->plan, MS_TP, tp);
    ms_prediction p;
    const char *which = ms_arena_printf(a->cx->arena, "tp %ld x dp_shard %ld", tp,
                                        other.size[MS_DP_SHARD]);
    if (!predict_other(a, &other, &p))
        return ms_arena_printf(a->cx->arena, "%s is no legal plan", which);
    bool better = p.fits && p.step_s < a->e->prediction.step_s * (1.0 - LEAST_DIFFERENCE);
    return ms_arena_printf(a->cx->arena, "%s %s: %s", which,
                           better ? "would be faster" : "is no better",
                           outcome_text(a, &p));
}

/* Text of width_text for the explained plan with `tp` changed; "" if that is illegal. */
static const char *width_with_tp_text(const asker *a, long tp)
{
    ms_plan other = moved(a->plan, MS_TP, tp);
    ms_workload *w = a->e->planned->workload;
    if (ms_plan_refusal(&other, w->model) != MS_LEGAL)
        return "";
    ms_planned *p = MS_NEW(a->cx->arena, ms_planned);
    ms_planned_open(a->cx, w, &other, p);
    const ms_held_block *held = &ms_explain_main_block(a->e)->held;
    return width_text(a, p, ms_planned_program(a->cx->arena, p, held));
}

static const char *answer_tp(const asker *a)
{
    long tp = a->plan->size[MS_TP];
    const ms_axis_prediction *axis = axis_of(a->e, MS_TRAFFIC_TP);
    if (axis == NULL && a->plan->size[MS_DP_SHARD] % 2 != 0)
        return "there is none, and no two data-parallel ranks to make it from";
    if (axis == NULL)
        return ms_arena_printf(a->cx->arena, "there is none; %s%s", other_tp_text(a, 2),
                               width_with_tp_text(a, 2));
    double whole_s = compute_without_tp_s(a);
    double saved_s =
        whole_s - compute_s(a, ms_planned_prices(a->e->planned, ending_stage(a)).bills);
    return ms_arena_printf(
        a->cx->arena,
        "it exposes %s of traffic a step and saves %s of the %s of compute that the same "
        "micro-batches take at tp 1%s; %s",
        seconds(a, axis->exposed_s), seconds(a, saved_s), seconds(a, whole_s),
        width_text(a, a->e->planned, ms_explain_main_block(a->e)->program),
        other_tp_text(a, tp % 2 == 0 ? tp / 2 : 1));
}

/* ---- 2: who crosses nodes? ---- */

static const char *answer_nodes(const asker *a)
{
    const ms_explanation *e = a->e;
    const ms_cluster *cluster = e->planned->workload->cluster;
    const char *text = "";
    for (int i = 0; i < e->num_axes; i++) {
        const ms_axis_prediction *axis = &e->axes[i];
        double inside = axis->bytes - axis->nic_bytes;
        text = ms_arena_printf(
            a->cx->arena, "%s%s%s %s (%s %s GB, NIC %s GB)", text,
            text[0] == '\0' ? "" : ", ", axis->axis,
            axis->ranks_per_node >= axis->size ? "stays inside" : "crosses nodes",
            cluster->levels[0].name, ms_amount_text(a->cx->arena, inside / 1e9),
            ms_amount_text(a->cx->arena, axis->nic_bytes / 1e9));
    }
    return text[0] == '\0' ? "nothing is sent" : text;
}

/* ---- 3: bubble or communication? ---- */

static const char *pipeline_text(const asker *a, const ms_prediction *other)
{
    const ms_prediction *p = &a->e->prediction;
    return ms_arena_printf(
        a->cx->arena,
        "bubble %s, exposed communication %s instead of %s, step %s (%+.1f %%), peak %.1f "
        "instead of %.1f GiB%s (activations %.1f instead of %.1f GiB)",
        seconds(a, other->bubble_s), seconds(a, other->exposed_comm_s),
        seconds(a, p->exposed_comm_s), seconds(a, other->step_s),
        percent_longer(a, other->step_s), ms_gib(other->peak_bytes),
        ms_gib(p->peak_bytes), other->fits ? "" : ", which does not fit",
        ms_gib(other->memory[MS_MEMORY_ACTIVATIONS]),
        ms_gib(p->memory[MS_MEMORY_ACTIVATIONS]));
}

/* Share of the step that the busiest rank waits, by the plan's schedule alone: forward,
 * input and weight gradients take equal times on all stages, and sends take none. */
static double equal_bubble_frac(const asker *a)
{
    const ms_schedule *schedule = a->e->planned->schedule;
    const ms_schedule_times equal = {1.0, 1.0, 1.0, 0.0};
    ms_schedule_timeline run = ms_schedule_run(a->cx->arena, schedule, &equal);
    if (schedule->shorter != NULL) {
        ms_schedule_timeline shorter =
            ms_schedule_run(a->cx->arena, schedule->shorter, &equal);
        run.makespan = ms_schedule_extend(schedule, run.makespan, shorter.makespan);
        run.global_bubble =
            ms_schedule_extend(schedule, run.global_bubble, shorter.global_bubble);
    }
    return run.makespan > 0.0 ? run.global_bubble / run.makespan : 0.0;
}

/* Answer for a plan with a pipeline. `other`: prediction of the plan with a shorter one,
 * NULL if none is legal. "yes" if that plan is slower or does not fit. */
static const char *with_pipeline_text(const asker *a, const ms_prediction *other,
                                      const char *which)
{
    const ms_prediction *p = &a->e->prediction;
    const char *verdict = "";
    const char *compared = " is no legal plan";
    if (other != NULL) {
        bool better = other->fits && other->step_s < p->step_s * (1.0 - LEAST_DIFFERENCE);
        verdict = better ? "no: " : "yes: ";
        compared = ms_arena_printf(a->cx->arena, ": %s", pipeline_text(a, other));
    }
    return ms_arena_printf(
        a->cx->arena,
        "%sthe bubble takes %s, %.1f %% of the step (equal stages: %.1f %%), with %d "
        "%s in flight on rank 0; %s%s",
        verdict, seconds(a, p->bubble_s), percent(p->bubble_s, p->step_s),
        100.0 * equal_bubble_frac(a), p->stages[0].live_microbatches,
        a->e->planned->schedule->num_chunks > 1 ? "chunks" : "micro-batches", which,
        compared);
}

/* Sets *other to the explained plan with the smallest legal pp below its own, or with pp
 * 2 if it has no pipeline, and predicts *other. Returns false if none is legal. */
static bool predict_shorter(const asker *a, ms_plan *other, ms_prediction *out)
{
    long pp = a->plan->size[MS_PP];
    *other = moved(a->plan, MS_PP, 2);
    if (pp == 1)
        return predict_other(a, other, out);
    for (long to = 1; to < pp; to++) {
        *other = moved(a->plan, MS_PP, to);
        if (pp % to == 0 && predict_other(a, other, out))
            return true;
    }
    *other = moved(a->plan, MS_PP, 1);
    return false;
}

static const char *answer_pipeline(const asker *a)
{
    long pp = a->plan->size[MS_PP];
    if (pp == 1 && a->plan->size[MS_DP_SHARD] % 2 != 0)
        return "there is no pipeline, and no two data-parallel ranks to make one from";
    ms_plan other;
    ms_prediction predicted;
    bool legal = predict_shorter(a, &other, &predicted);
    const char *which = ms_arena_printf(a->cx->arena, "pp %ld x dp_shard %ld",
                                        other.size[MS_PP], other.size[MS_DP_SHARD]);
    if (pp > 1)
        return with_pipeline_text(a, legal ? &predicted : NULL, which);
    return ms_arena_printf(a->cx->arena, "there is no pipeline; %s%s%s", which,
                           legal ? ": " : " is no legal plan",
                           legal ? pipeline_text(a, &predicted) : "");
}

/* ---- 4: which activations are divided? ---- */

/* Bytes per layer, micro-batch and rank of saved activations: split by tp, not split. */
typedef struct kept {
    double split_bytes, whole_bytes;
} kept;

static kept kept_by(const asker *a, short tp, bool sequence_parallel)
{
    const ms_planned *p = a->e->planned;
    const ms_explain_block *block = ms_explain_main_block(a->e);
    ms_bill_key key = p->bills->key;
    key.etp = key.etp > 1 ? tp : 1;
    key.tp = tp;
    key.sequence_parallel = sequence_parallel;
    ms_program_key which = {.block = MS_BLOCK_LAYER,
                            .kind = (unsigned char)block->held.kind,
                            .recompute = (unsigned char)block->held.mode};
    long ranks = (long)key.ep * key.etp;
    const ms_program *program =
        ms_workload_program(p->workload, a->cx->arena, &key, which, ranks);
    kept sum = {0.0, 0.0};
    for (int t = 0; t < program->num_tensors; t++) {
        const ms_tensor *tensor = &program->tensors[t];
        bool own_rows = tensor->mesh == MS_SPARSE_MESH && key.etp == 1;
        bool split = own_rows || tensor->at[2].kind == MS_SHARD;
        if (tensor->saved && tensor->role == MS_ROLE_ACTIVATION)
            *(split ? &sum.split_bytes : &sum.whole_bytes) +=
                ms_tensor_local_bytes(program, t);
    }
    return sum;
}

/* Text of saved bytes / `unit`: whole tensors + tensors split by tp, "10 + 24/8" */
static const char *kept_text(const asker *a, kept k, long tp, double unit)
{
    return ms_arena_printf(a->cx->arena, "%.4g + %.4g/%ld", k.whole_bytes / unit,
                           (double)tp * k.split_bytes / unit, tp);
}

static const char *answer_activations(const asker *a)
{
    const ms_model *model = a->e->planned->workload->model;
    long tp = a->plan->size[MS_TP], shown = tp > 1 ? tp : 2;
    ms_plan two = moved(a->plan, MS_TP, shown);
    if (tp == 1 &&
        (a->plan->size[MS_DP_SHARD] % 2 != 0 || ms_plan_refusal(&two, model) != MS_LEGAL))
        return "there is no tensor parallelism, and tp 2 is no legal plan";
    double unit = (double)a->plan->sequence_length * (double)a->plan->microbatch *
                  (double)model->hidden / (double)a->plan->size[MS_CP];
    kept one = kept_by(a, 1, false), plain = kept_by(a, (short)shown, false),
         sequence = kept_by(a, (short)shown, true);
    double all = one.split_bytes + one.whole_bytes;
    kept used = tp == 1 ? one : a->plan->sequence_parallel ? sequence : plain;
    double now = used.split_bytes + used.whole_bytes;
    return ms_arena_printf(
        a->cx->arena,
        "a layer keeps %s MB of a micro-batch on a rank (%s MB at tp 1), recomputation "
        "%s; in s b h bytes: %.4g at tp 1, %s with tp %ld, %s with sequence parallelism%s",
        ms_amount_text(a->cx->arena, now / 1e6), ms_amount_text(a->cx->arena, all / 1e6),
        ms_recompute_names[a->plan->recompute], all / unit,
        kept_text(a, plain, shown, unit), shown, kept_text(a, sequence, shown, unit),
        tp == 1                      ? ""
        : a->plan->sequence_parallel ? " (this plan)"
                                     : "; this plan is without");
}

/* ---- 5: why this order? ---- */

/* Text of the traffic by axis: "tp sends 759.1 GB a step, 2.490 s exposed, 8 of 8 ranks
 * in a node" */
static const char *lie_text(const asker *a)
{
    const ms_cluster *cluster = a->e->planned->workload->cluster;
    const char *text = "";
    for (int i = 0; i < a->e->prediction.num_axes; i++) {
        const ms_axis_prediction *axis = &a->e->prediction.axes[i];
        double nics = ms_axis_nics(axis, cluster);
        const char *over = axis->nic_bytes <= 0.0
                               ? ""
                               : ms_arena_printf(a->cx->arena, " over %g NIC%s", nics,
                                                 nics == 1.0 ? "" : "s");
        text = ms_arena_printf(
            a->cx->arena, "%s%s%s sends %s GB, %s exposed, %ld of %ld ranks in a node%s",
            text, text[0] == '\0' ? "" : "; ", axis->axis,
            ms_amount_text(a->cx->arena, axis->bytes / 1e9), seconds(a, axis->exposed_s),
            axis->ranks_per_node, axis->size, over);
    }
    return text;
}

/* Text of an order of axes and its step time, with the difference to the plan's:
 * "pp,dp_shard,tp, 10.3 s (+1.2 %)" */
static const char *order_cost_text(const asker *a, const ms_order_cost *cost)
{
    return ms_arena_printf(a->cx->arena, "%s, %s (%+.1f %%)",
                           ms_order_text(a->cx->arena, a->plan, cost->orders[0]),
                           seconds(a, cost->step_s), percent_longer(a, cost->step_s));
}

static const char *answer_order(const asker *a)
{
    ms_mesh_orders orders;
    const ms_order_cost *best = NULL, *last = NULL;
    int num_others = 0;
    if (ms_mesh_orders_compare(a->cx, a->e->planned->workload, a->plan, &orders) != MS_OK)
        orders.num = 0;
    for (int i = 0; i < orders.num; i++) { /* `costs` are sorted, fastest first */
        if (orders.costs[i].is_plans)
            continue;
        num_others++;
        best = best == NULL ? &orders.costs[i] : best;
        last = last == NULL || orders.costs[i].step_s > last->step_s ? &orders.costs[i]
                                                                     : last;
    }
    double step_s = a->e->prediction.step_s;
    const char *lies = lie_text(a);
    if (best == NULL)
        return ms_arena_printf(a->cx->arena,
                               "no other legal order lies differently on the cluster%s%s",
                               lies[0] == '\0' ? "" : "; ", lies);
    const char *verdict = best->step_s < step_s * (1.0 - LEAST_DIFFERENCE)
                              ? "a faster order exists"
                              : "no order is faster";
    const char *worst = "";
    if (num_others > 1)
        worst = ms_arena_printf(a->cx->arena, ", the worst of %d, %s", num_others,
                                order_cost_text(a, last));
    return ms_arena_printf(a->cx->arena, "%s: %s takes %s, the best other, %s%s; %s",
                           verdict, ms_order_text(a->cx->arena, a->plan, a->plan->order),
                           seconds(a, step_s), order_cost_text(a, best), worst, lies);
}

/* ---- all ---- */

void ms_explain_answer_all(ms_ctx *cx, ms_explanation *e)
{
    static const struct {
        const char *key, *question;
        const char *(*answer)(const asker *a);
    } rows[MS_NUM_ANSWERS] = {
        {"tensor_parallel", "Does tensor parallelism pay?", answer_tp},
        {"nodes", "Which axes cross nodes? (per rank and step)", answer_nodes},
        {"pipeline", "Is the pipeline's bubble worth the memory it saves?",
         answer_pipeline},
        {"activations", "Which saved activations does tensor parallelism divide?",
         answer_activations},
        {"order", "Why are the axes in this order?", answer_order},
    };
    asker a = {cx, e, e->plan};
    for (int i = 0; i < MS_NUM_ANSWERS; i++)
        e->answers[i] =
            (ms_explain_answer){rows[i].key, rows[i].question, rows[i].answer(&a)};
}
