#include "sim/step/bill_key.h"

#include "base/number.h"
#include "sim/step/host_time.h"

#include <math.h>

/* Whether a layer computes for longer than the host takes to launch it. Then the host
 * frees activations gathered over tp long before the device is done with them. */
static bool host_is_ahead(ms_workload *workload, const ms_plan *plan,
                          const ms_bill_key *without)
{
    ms_bill_set *bills = ms_workload_bills(workload, without);
    const ms_bill *layer = bills->layer[0][MS_RECOMPUTE_NONE];
    bool over_nodes = plan->gpus > workload->cluster->levels[0].gpus_per_domain;
    double host_s =
        ms_host_floor_s(workload->stack, layer, over_nodes, plan->size[MS_TP]);
    return layer->compute_s[MS_BILL_FORWARD] + layer->compute_s[MS_BILL_BACKWARD] >
           host_s; /* false for NaN: the stack states no host time */
}

static bool holds_gathers(ms_workload *workload, const ms_plan *plan,
                          const ms_bill_key *key)
{
    const ms_stack *stack = workload->stack;
    long stages = plan->size[MS_PP], tp = plan->size[MS_TP];
    if (!stack->regather || !stack->holds_gathers_alone || stages == 1)
        return stack->regather && stack->holds_gathers_alone;
    bool in_domain = tp <= workload->cluster->levels[0].gpus_per_domain;
    return tp > 1 && in_domain && ms_plan_microbatches(plan) > stages &&
           host_is_ahead(workload, plan, key);
}

/* Attention on the slowest rank beyond the mean. Data-parallel ranks meet at the end of a
 * step; chunks of context-parallel ranks that are not balanced at every layer. */
static double attention_excess_frac(const ms_workload *workload, const ms_plan *plan)
{
    const ms_lengths *lengths = &workload->lengths;
    double tokens = (double)workload->sequence_length * (double)plan->microbatch;
    double cp = (double)plan->size[MS_CP], factor = 1.0;
    if (ms_plan_has_unequal_ranks(plan))
        factor = (1.0 + ms_lengths_excess_frac(lengths, tokens / cp, cp)) *
                 ms_lengths_chunk_factor(lengths, (double)workload->sequence_length / cp);
    tokens *= (double)ms_plan_microbatches(plan);
    factor *= 1.0 + ms_lengths_excess_frac(lengths, tokens,
                                           (double)ms_plan_data_parallel(plan));
    /* the key of prices holds millionths */
    return nearbyint((factor - 1.0) * 1e6) / 1e6;
}

int ms_padded_positions(const ms_workload *workload, long tp, long cp, double tokens)
{
    double whole =
        (double)(tp * cp * (cp > 1 ? 2 : 1)); /* pieces of cp and tp are whole */
    tokens = whole * ceil(tokens / whole - 1e-9);
    return (int)ms_min(tokens, (double)workload->sequence_length);
}

/* Positions of each sequence of a micro-batch on the slowest data-parallel rank. Ranks that
 * have one micro-batch wait for the longest sequence of all; with more, for the largest of
 * the ranks' sums, which are normal by the central limit theorem. */
static void pad_to_longest(const ms_workload *workload, const ms_plan *plan,
                           ms_bill_key *key)
{
    double ranks = (double)ms_plan_data_parallel(plan);
    double microbatches = (double)ms_plan_microbatches(plan);
    ms_arena *scratch = ms_arena_open();
    key->longest_of = (int)plan->microbatch;
    if (microbatches <= 1.0)
        key->longest_of = (int)ms_min((double)plan->microbatch * ranks, 1e9);
    ms_lengths longest =
        ms_lengths_longest(scratch, &workload->lengths, (double)key->longest_of);
    double tokens = longest.mean_tokens;
    if (microbatches > 1.0)
        tokens += ms_normal_maximum(ranks) * ms_lengths_deviation(&longest) /
                  sqrt(microbatches);
    ms_arena_close(scratch);
    key->computed_tokens =
        ms_padded_positions(workload, plan->size[MS_TP], plan->size[MS_CP], tokens);
}

ms_bill_key ms_plan_bill_key(ms_workload *workload, const ms_plan *plan)
{
    ms_bill_key key = {.tp = (short)plan->size[MS_TP],
                       .cp = (short)plan->size[MS_CP],
                       .ep = (short)plan->ep,
                       .etp = (short)plan->etp,
                       .microbatch = (int)plan->microbatch,
                       .sequence_parallel = plan->sequence_parallel,
                       .loss_parallel = plan->loss_parallel,
                       .cp_method = (unsigned char)ms_plan_cp_method(plan),
                       .cp_unbalanced = ms_plan_has_unequal_ranks(plan)};
    if (workload->packing == MS_PACKED)
        key.attention_excess_frac = attention_excess_frac(workload, plan);
    else if (workload->packing == MS_PADDED)
        pad_to_longest(workload, plan, &key);
    key.holds_gathers = holds_gathers(workload, plan, &key);
    return key;
}
