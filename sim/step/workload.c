#include "sim/step/workload.h"

#include "base/number.h"
#include "sim/step/bill_key.h"
#include "sim/step/split.h"

#include <math.h>
#include <string.h>

/* ---- the lock ---- */

/* Spins before it sleeps: other threads hold the lock for less than a microsecond. */
static void lock(ms_workload *workload)
{
    const int num_tries = 200;
    for (int i = 0; i < num_tries; i++)
        if (pthread_mutex_trylock(&workload->lock) == 0)
            return;
    pthread_mutex_lock(&workload->lock);
}

/* ---- bills ---- */

/* The smallest data-parallel size dp for which ep x etp divides dp x cp x tp. */
static long data_parallel_for(const ms_bill_key *key)
{
    long experts = (long)key->ep * key->etp, inner = (long)key->cp * key->tp;
    long dp = 1;
    while (dp * inner % experts != 0)
        dp++;
    return dp;
}

int ms_workload_num_modules(const ms_workload *workload)
{
    return workload->stack->trains_mtp && workload->lora.rank == 0
               ? (int)workload->model->num_nextn_predict_layers
               : 0;
}

ms_flop_per_token ms_workload_flop_per_token(const ms_workload *workload)
{
    ms_flop_per_token flop =
        workload->packing != MS_NOT_PACKED
            ? workload->flop_of_lengths
            : ms_model_flop_per_token(workload->model, (double)workload->sequence_length);
    if (workload->lora.rank == 0)
        return flop;
    double more = 6.0 * ms_lora_params(workload->model, &workload->lora,
                                       workload->stack->fuses_projections) -
                  flop.matrix_flop / 3.0;
    flop.causal_flop += more;
    flop.full_flop += more;
    return flop;
}

double ms_workload_useful_tokens(const ms_workload *workload, long global_batch)
{
    bool is_padded =
        workload->packing == MS_PADDED || workload->packing == MS_PADDED_TO_SEQUENCE;
    return (double)global_batch * (is_padded ? workload->lengths.mean_tokens
                                             : (double)workload->sequence_length);
}

double ms_workload_computed_tokens(const ms_workload *workload, const ms_plan *plan)
{
    double sequences = (double)plan->global_batch;
    if (workload->packing != MS_PADDED)
        return sequences * (double)workload->sequence_length;
    ms_arena *scratch = ms_arena_open();
    ms_lengths longest =
        ms_lengths_longest(scratch, &workload->lengths, (double)plan->microbatch);
    ms_arena_close(scratch);
    return sequences * longest.mean_tokens;
}

bool ms_head_shares_weights(const ms_workload *workload)
{
    return workload->model->tied_embeddings || ms_workload_num_modules(workload) > 0;
}

static ms_program_key program_key_of(const ms_workload *workload, const ms_bill_key *key,
                                     ms_program_key which)
{
    const ms_model *model = workload->model;
    bool is_head = which.block == MS_BLOCK_HEAD;
    ms_program_key out = *key;
    out.block = which.block;
    /* modules of multi-token prediction are like the last layer */
    out.kind = is_head ? model->kind_of_layer[model->num_layers - 1] : which.kind;
    out.mtp = which.block == MS_BLOCK_LAYER
                  ? 0
                  : (unsigned char)ms_workload_num_modules(workload);
    out.sequence_parallel = key->sequence_parallel && key->tp > 1;
    out.ring_repeats_heads = workload->stack->ring_repeats_heads;
    out.ring_gradient_bytes = (unsigned char)workload->stack->ring_gradient_bytes.value;
    out.attention_fused = workload->pricer.attention_fused;
    out.regather = workload->stack->regather;
    out.expert_excess_frac = ms_expert_excess_frac(&workload->expert_fill, key->ep);
    out.recompute = (unsigned char)ms_layer_mode_recompute(which.recompute);
    out.reruns_layer = workload->stack->reruns_layers;
    out.partitions_inputs = workload->stack->partitions_inputs;
    out.lora = workload->lora;
    out.lora_joined = workload->stack->fuses_projections;
    out.modules = (unsigned short)workload->stack->selective_modules;
    out.shared_overlap = workload->stack->overlaps_shared_experts && key->ep > 1;
    return out;
}

ms_saved_front ms_workload_saved_front(const ms_workload *workload, ms_arena *arena,
                                       const ms_bill_key *key, int kind)
{
    ms_program_key which = {.block = MS_BLOCK_LAYER, .kind = (unsigned char)kind};
    ms_saved_prices prices = {&workload->pricer,
                              workload->cluster->levels[0].bandwidth_bytes_per_s};
    const ms_program *program =
        ms_workload_program(workload, arena, key, which, data_parallel_for(key));
    return ms_saved_front_make(arena, program, &prices);
}

static ms_saved chosen_keep(const ms_workload *workload, const ms_bill_key *key,
                            ms_program_key which)
{
    double budget_frac = ms_layer_mode_has_budget(which.recompute)
                             ? ms_layer_mode_budget_frac(which.recompute)
                             : workload->recompute_budget_frac;
    ms_arena *scratch = ms_arena_open();
    ms_saved_front front = ms_workload_saved_front(workload, scratch, key, which.kind);
    ms_saved keep = ms_saved_choose(&front, budget_frac)->keep;
    ms_arena_close(scratch);
    return keep;
}

/* The layer program of a block; `keep`: what it saves if that is chosen; NULL: choose. */
static const ms_program *program_of(const ms_workload *workload, ms_arena *arena,
                                    const ms_bill_key *key, ms_program_key which,
                                    const ms_saved *keep, long data_parallel)
{
    ms_program_key program_key = program_key_of(workload, key, which);
    bool is_chosen = program_key.recompute == MS_RECOMPUTE_AUTO;
    if (is_chosen)
        program_key.keep = keep != NULL ? *keep : chosen_keep(workload, key, which);
    if (key->longest_of > 0) {
        ms_lengths *longest = MS_NEW(arena, ms_lengths);
        *longest = ms_lengths_longest(arena, &workload->lengths, key->longest_of);
        program_key.lengths = longest;
    } else if (workload->packing == MS_PACKED) {
        program_key.lengths = &workload->lengths;
    }
    long tokens =
        key->computed_tokens > 0 ? key->computed_tokens : workload->sequence_length;
    return ms_program_make(arena, workload->model, &program_key, tokens, data_parallel,
                           workload->compute);
}

const ms_program *ms_workload_program(const ms_workload *workload, ms_arena *arena,
                                      const ms_bill_key *key, ms_program_key which,
                                      long data_parallel)
{
    return program_of(workload, arena, key, which, NULL, data_parallel);
}

static ms_bill bill_of(const ms_workload *workload, ms_arena *arena,
                       const ms_bill_key *key, ms_program_key which, const ms_saved *keep)
{
    ms_arena *scratch = ms_arena_open();
    const ms_program *program =
        program_of(workload, scratch, key, which, keep, data_parallel_for(key));
    ms_bill bill = ms_bill_make(arena, program, &workload->pricer);
    if (key->longest_of > 0) {
        /* memory must hold the longest sequence of all, which some micro-batch has */
        const ms_lengths *lengths = &workload->lengths;
        ms_bill_key full = *key;
        full.longest_of = 0;
        full.computed_tokens = ms_padded_positions(workload, key->tp, key->cp,
                                                   lengths->tokens[lengths->num - 1]);
        program =
            program_of(workload, scratch, &full, which, keep, data_parallel_for(key));
        bill.memory = ms_bill_make(scratch, program, &workload->pricer).memory;
    }
    ms_arena_close(scratch);
    return bill;
}

/* A key of priced programs (ms_bill) without padding bytes, so that it can be hashed. */
typedef struct bill_words {
    int of[13];
} bill_words;

static bill_words words_of(const ms_bill_key *key)
{
    return (bill_words){{key->tp, key->cp, key->ep, key->etp, key->microbatch,
                         key->sequence_parallel, key->loss_parallel, key->cp_unbalanced,
                         key->holds_gathers, key->cp_method, key->computed_tokens,
                         key->longest_of,
                         (int)nearbyint(key->attention_excess_frac * 1e6)}};
}

static ms_bill_set *find_set(const ms_workload *workload, const ms_bill_key *key)
{
    bill_words words = words_of(key);
    int i = ms_map_find(&workload->bill_keys, &words, sizeof words);
    return i < 0 ? NULL : workload->bill_sets[i];
}

/* Choices of what layers of a kind save with each budget, all from one front, which is
 * long work and made without the lock. */
static const ms_saved *kept_choices(ms_workload *workload, ms_bill_set *set, int kind)
{
    lock(workload);
    const ms_saved *known = set->keep[kind];
    pthread_mutex_unlock(&workload->lock);
    if (known != NULL)
        return known;
    ms_saved chosen[MS_NUM_BUDGETS];
    ms_arena *scratch = ms_arena_open();
    ms_saved_front front = ms_workload_saved_front(workload, scratch, &set->key, kind);
    for (int i = 0; i < MS_NUM_BUDGETS; i++) {
        double budget_frac = ms_layer_mode_budget_frac(ms_layer_mode_of_budget(i));
        chosen[i] = ms_saved_choose(&front, budget_frac)->keep;
    }
    ms_arena_close(scratch);
    lock(workload);
    if (set->keep[kind] == NULL) {
        ms_saved *kept = MS_NEW_ARRAY(workload->arena, MS_NUM_BUDGETS, ms_saved);
        memcpy(kept, chosen, sizeof chosen);
        set->keep[kind] = kept;
    }
    known = set->keep[kind];
    pthread_mutex_unlock(&workload->lock);
    return known;
}

/* The bill of another budget with which layers of a kind save the same as budget `i`;
 * NULL: none is priced. */
static const ms_bill *equal_bill(ms_workload *workload, const ms_bill_set *set, int kind,
                                 const ms_saved *keep, int i)
{
    const ms_bill *equal = NULL;
    lock(workload);
    for (int k = 0; k < MS_NUM_BUDGETS && equal == NULL; k++)
        if (memcmp(&keep[k], &keep[i], sizeof *keep) == 0)
            equal = set->layer[kind][ms_layer_mode_of_budget(k)];
    pthread_mutex_unlock(&workload->lock);
    return equal;
}

static void keep_layer(ms_workload *workload, const ms_bill **place, const ms_bill *bill)
{
    if (*place != NULL)
        return; /* another thread was faster */
    ms_bill *kept = MS_NEW(workload->arena, ms_bill);
    *kept = ms_bill_copy(workload->arena, bill);
    *place = kept;
}

/* Prices a kind of layers without the lock: if two threads do, one result is kept. */
static void add_layer(ms_workload *workload, ms_bill_set *set, int kind,
                      ms_layer_mode mode)
{
    const ms_saved *keep = NULL;
    const ms_bill *equal = NULL;
    if (ms_layer_mode_has_budget(mode)) {
        const ms_saved *choices = kept_choices(workload, set, kind);
        int i = mode - ms_layer_mode_of_budget(0);
        keep = &choices[i];
        equal = equal_bill(workload, set, kind, choices, i);
    }
    ms_program_key which = {.block = MS_BLOCK_LAYER,
                            .kind = (unsigned char)kind,
                            .recompute = (unsigned char)mode};
    ms_arena *scratch = ms_arena_open();
    ms_bill made = {0};
    if (equal == NULL)
        made = bill_of(workload, scratch, &set->key, which, keep);
    lock(workload);
    if (equal != NULL && set->layer[kind][mode] == NULL)
        set->layer[kind][mode] = equal;
    keep_layer(workload, &set->layer[kind][mode], &made);
    pthread_mutex_unlock(&workload->lock);
    ms_arena_close(scratch);
}

static ms_bill_set *keep_set(ms_workload *workload, const ms_bill_set *made,
                             const ms_bill layers[MS_MAX_LAYER_KINDS])
{
    ms_bill_set *set = MS_NEW(workload->arena, ms_bill_set);
    *set = *made;
    set->embed = ms_bill_copy(workload->arena, &made->embed);
    set->head = ms_bill_copy(workload->arena, &made->head);
    for (int kind = 0; kind < workload->model->num_kinds; kind++)
        keep_layer(workload, &set->layer[kind][MS_RECOMPUTE_NONE], &layers[kind]);
    bill_words words = words_of(&made->key);
    MS_MAKE_ROOM(workload->arena, workload->bill_sets, workload->bill_keys.num,
                 workload->bill_capacity, 64);
    workload->bill_sets[ms_map_add(&workload->bill_keys, &words, sizeof words)] = set;
    return set;
}

/* Priced programs whose key differs at most in cp_method, for their embedding and head:
 * these depend on it only in multi-token prediction (attention). NULL: none. */
static const ms_bill_set *find_ends(const ms_workload *workload, ms_bill_key key)
{
    const ms_bill_set *known = NULL;
    int num_methods = ms_workload_num_modules(workload) > 0 ? 0 : MS_NUM_CP_METHODS;
    for (int method = 0; method < num_methods && known == NULL; method++) {
        key.cp_method = (unsigned char)method;
        known = find_set(workload, &key);
    }
    return known;
}

ms_bill_set *ms_workload_bills(ms_workload *workload, const ms_bill_key *key)
{
    lock(workload);
    ms_bill_set *set = find_set(workload, key);
    const ms_bill_set *ends = set == NULL ? find_ends(workload, *key) : NULL;
    pthread_mutex_unlock(&workload->lock);
    if (set != NULL)
        return set;
    ms_bill_set made = {.key = *key};
    ms_bill layers[MS_MAX_LAYER_KINDS];
    ms_program_key which = {.recompute = MS_RECOMPUTE_NONE};
    ms_arena *scratch = ms_arena_open();
    if (ends != NULL) {
        made.embed = ends->embed;
        made.head = ends->head;
    } else {
        which.block = MS_BLOCK_EMBED;
        made.embed = bill_of(workload, scratch, key, which, NULL);
        which.block = MS_BLOCK_HEAD;
        made.head = bill_of(workload, scratch, key, which, NULL);
    }
    which.block = MS_BLOCK_LAYER;
    for (; which.kind < workload->model->num_kinds; which.kind++)
        layers[which.kind] = bill_of(workload, scratch, key, which, NULL);
    lock(workload);
    set = find_set(workload, key);
    if (set == NULL)
        set = keep_set(workload, &made, layers);
    pthread_mutex_unlock(&workload->lock);
    ms_arena_close(scratch);
    return set;
}

void ms_workload_add_modes(ms_workload *workload, ms_bill_set *bills, unsigned modes)
{
    lock(workload);
    for (int mode = 0; mode < MS_NUM_LAYER_MODES; mode++)
        if (bills->layer[0][mode] != NULL)
            modes &= ~(1U << mode);
    pthread_mutex_unlock(&workload->lock);
    /* kind 0 last: where it is priced, all are */
    for (int mode = 0; mode < MS_NUM_LAYER_MODES; mode++)
        for (int kind = workload->model->num_kinds - 1; kind >= 0; kind--)
            if ((modes >> mode & 1U) != 0)
                add_layer(workload, bills, kind, mode);
}

/* ---- shapes ---- */

static void add_times(const ms_bill *bill, double count, ms_schedule_times *times)
{
    double backward_s = bill->compute_s[MS_BILL_BACKWARD];
    times->forward += count * bill->compute_s[MS_BILL_FORWARD];
    times->backward_input += count * (backward_s - bill->weight_s);
    times->backward_weight += count * bill->weight_s;
}

static double rounded(double value, double whole)
{
    return ms_max(nearbyint(16.0 * value / whole), 1.0) / 16.0;
}

ms_schedule_shape ms_workload_shape(const ms_workload *workload, const ms_bill_set *bills,
                                    const ms_plan *plan)
{
    ms_schedule_shape shape = ms_plan_shape(plan);
    if (!ms_schedule_traits_of(shape.kind).uses_times)
        return shape;
    const ms_model *model = workload->model;
    ms_schedule_times sum = {0};
    double saved_bytes = 0.0, delayed_bytes = 0.0;
    add_times(&bills->embed, 1.0, &sum);
    add_times(&bills->head, 1.0, &sum);
    for (int kind = 0; kind < model->num_kinds; kind++) {
        const ms_bill *bill = bills->layer[kind][MS_RECOMPUTE_NONE];
        double count = workload->layers_before[kind][model->num_layers];
        add_times(bill, count, &sum);
        /* wherever they are: what is in host memory changes no order of actions */
        saved_bytes +=
            count * (bill->memory.saved.activation_bytes + bill->memory.host_bytes);
        delayed_bytes += count * bill->memory.delayed.activation_bytes;
    }
    double whole = sum.forward + sum.backward_input + sum.backward_weight;
    shape.times =
        (ms_schedule_times){.forward = rounded(sum.forward, whole),
                            .backward_input = rounded(sum.backward_input, whole),
                            .backward_weight = rounded(sum.backward_weight, whole)};
    shape.weight_share = ms_min(rounded(delayed_bytes, saved_bytes), 1.0);
    const ms_tensor_bytes *head = &bills->head.memory.delayed;
    shape.head_share =
        nearbyint(16.0 * shape.num_ranks * (head->activation_bytes + head->logits_bytes) /
                  saved_bytes) /
        16.0;
    return shape;
}

/* ---- splits ---- */

static bool same_kinds(const unsigned char *a, const unsigned char *b, int num_ranks)
{
    return a == b || (a != NULL && b != NULL && memcmp(a, b, (size_t)num_ranks) == 0);
}

static bool is_split_of(const ms_split *split, const ms_schedule_shape *shape,
                        const unsigned char *kinds)
{
    return split->num_ranks == shape->num_ranks &&
           same_kinds(split->kinds, kinds, shape->num_ranks) &&
           split->num_stages == ms_schedule_model_stages(shape) &&
           ms_schedule_placement(split->shape.kind) ==
               ms_schedule_placement(shape->kind) &&
           split->shape.table == shape->table;
}

static const ms_split *find_split(const ms_bill_set *bills,
                                  const ms_schedule_shape *shape,
                                  const unsigned char *kinds)
{
    const ms_split_entry *known =
        bills->splits[ms_schedule_model_stages(shape) % MS_SPLIT_BUCKETS];
    while (known != NULL && !is_split_of(known->split, shape, kinds))
        known = known->next;
    return known == NULL ? NULL : known->split;
}

/* A split as the key of a map: pipeline ranks, placement, table of actions, the number of
 * layers of each stage, then the kinds of each rank's devices, if there are several. */
#define NUM_SHAPE_WORDS 3

static long *open_split_key(ms_arena *arena, const ms_schedule_shape *shape,
                            const unsigned char *kinds)
{
    int num_stages = ms_schedule_model_stages(shape);
    int num_kinds = kinds != NULL ? shape->num_ranks : 0;
    long *key = MS_NEW_ARRAY(arena, NUM_SHAPE_WORDS + num_stages + num_kinds, long);
    for (int i = 0; i < num_kinds; i++)
        key[NUM_SHAPE_WORDS + num_stages + i] = kinds[i];
    key[0] = shape->num_ranks;
    key[1] = ms_schedule_placement(shape->kind);
    key[2] = (long)(intptr_t)shape->table;
    return key;
}

/* The split of a key, which all sets of bills share. */
static const ms_split *shared_split(ms_workload *workload, const long *key,
                                    const ms_schedule_shape *shape,
                                    const unsigned char *kinds)
{
    size_t num_stages = (size_t)ms_schedule_model_stages(shape);
    int num_known = workload->split_keys.num;
    size_t num_kinds = kinds != NULL ? (size_t)shape->num_ranks : 0;
    int i = ms_map_add(&workload->split_keys, key,
                       (NUM_SHAPE_WORDS + num_stages + num_kinds) * sizeof *key);
    if (i < num_known)
        return workload->splits[i];
    MS_MAKE_ROOM(workload->arena, workload->splits, i, workload->split_capacity, 64);
    long *layers = MS_NEW_ARRAY(workload->arena, num_stages, long);
    memcpy(layers, key + NUM_SHAPE_WORDS, num_stages * sizeof *layers);
    unsigned char *own = NULL;
    if (kinds != NULL)
        own = memcpy(MS_NEW_ARRAY(workload->arena, num_kinds, unsigned char), kinds,
                     num_kinds);
    workload->splits[i] =
        ms_split_make(workload->arena, workload->model, layers, shape, own);
    return workload->splits[i];
}

static const ms_split *keep_split(ms_workload *workload, ms_bill_set *bills,
                                  const long *key, const ms_schedule_shape *shape,
                                  const unsigned char *kinds)
{
    ms_split_entry **bucket =
        &bills->splits[ms_schedule_model_stages(shape) % MS_SPLIT_BUCKETS];
    ms_split_entry *kept = MS_NEW(workload->arena, ms_split_entry);
    *kept = (ms_split_entry){shared_split(workload, key, shape, kinds), *bucket};
    *bucket = kept;
    return kept->split;
}

static bool is_in_pairs(const ms_schedule_shape *shape)
{
    return ms_schedule_placement(shape->kind) != MS_PLACE_LOOP &&
           ms_schedule_model_stages(shape) % 2 == 0;
}

const ms_split *ms_workload_split(ms_workload *workload, ms_bill_set *bills,
                                  const ms_schedule_shape *shape,
                                  const unsigned char *kinds)
{
    lock(workload);
    const ms_split *split = find_split(bills, shape, kinds);
    pthread_mutex_unlock(&workload->lock);
    if (split != NULL)
        return split;
    ms_arena *scratch = ms_arena_open();
    long *key = open_split_key(scratch, shape, kinds);
    if (kinds != NULL)
        ms_mixed_split(workload, bills, shape, kinds, key + NUM_SHAPE_WORDS);
    else
        ms_default_split(workload, bills, ms_schedule_model_stages(shape),
                         is_in_pairs(shape), key + NUM_SHAPE_WORDS);
    lock(workload);
    split = find_split(bills, shape, kinds);
    if (split == NULL)
        split = keep_split(workload, bills, key, shape, kinds);
    pthread_mutex_unlock(&workload->lock);
    ms_arena_close(scratch);
    return split;
}
