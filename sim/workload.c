#include "sim/workload.h"

#include "sim/split.h"

#include <assert.h>
#include <string.h>

/* ---- opening ---- */

static void count_layers(ms_workload *workload)
{
    const ms_model *model = workload->model;
    for (int kind = 0; kind < model->num_kinds; kind++) {
        workload->layers_before[kind] =
            MS_NEW_ARRAY(workload->arena, model->num_layers + 1, int);
        for (long i = 0; i < model->num_layers; i++)
            workload->layers_before[kind][i + 1] =
                workload->layers_before[kind][i] + (model->kind_of_layer[i] == kind);
    }
}

ms_status ms_workload_make(ms_ctx *cx, const ms_workload_parts *parts,
                           const ms_plan *plan, ms_workload **out)
{
    ms_workload *workload = MS_NEW(cx->arena, ms_workload);
    workload->model = parts->model;
    workload->cluster = parts->cluster;
    workload->profile = parts->profile;
    workload->stack = parts->stack;
    MS_TRY(ms_pricer_make(cx, workload->cluster, workload->profile, workload->stack,
                          plan->compute, &workload->pricer));
    workload->sequence_length = plan->sequence_length;
    workload->global_batch = plan->global_batch;
    workload->compute = plan->compute;
    workload->arena = ms_arena_open();
    pthread_mutex_init(&workload->lock, NULL);
    count_layers(workload);
    *out = workload;
    return MS_OK;
}

ms_status ms_workload_open(ms_ctx *cx, const ms_plan *plan, ms_workload **out)
{
    ms_workload_parts parts;
    MS_TRY(ms_model_load(cx, plan->model, &parts.model));
    MS_TRY(ms_cluster_load(cx, plan->cluster, &parts.cluster));
    MS_TRY(ms_profile_load(cx, parts.cluster->device.profile, &parts.profile));
    MS_TRY(ms_stack_load(cx, plan->stack, &parts.stack));
    return ms_workload_make(cx, &parts, plan, out);
}

void ms_workload_close(ms_workload *workload)
{
    pthread_mutex_destroy(&workload->lock);
    ms_arena_close(workload->arena);
}

/* ---- bills ---- */

/* The smallest number of data-parallel ranks for which the expert mesh exists; local shapes do not depend on it. */
static long data_parallel_for(const ms_bill_key *key)
{
    long experts = (long)key->ep * key->etp, inner = (long)key->cp * key->tp;
    long dp = 1;
    while (dp * inner % experts != 0)
        dp++;
    return dp;
}

const ms_program *ms_workload_program(const ms_workload *workload, ms_arena *arena,
                                      const ms_bill_key *key, ms_program_key part,
                                      long data_parallel)
{
    ms_program_key program_key = {
        .part = part.part,
        .kind = part.kind,
        .sequence_parallel = key->sequence_parallel && key->tp > 1,
        .loss_parallel = key->loss_parallel,
        .cp_unbalanced = key->cp_unbalanced,
        .cp_method = key->cp_method,
        .attention_fused = workload->pricer.attention_fused,
        .regather = workload->stack->regather,
        .recompute = part.recompute,
        .tp = key->tp,
        .cp = key->cp,
        .ep = key->ep,
        .etp = key->etp,
        .microbatch = key->microbatch,
    };
    return ms_program_make(arena, workload->model, &program_key,
                           workload->sequence_length, data_parallel, workload->compute);
}

static ms_bill bill_of(const ms_workload *workload, const ms_bill_key *key,
                       ms_program_part part, int kind, ms_recompute recompute)
{
    ms_program_key which = {.part = (unsigned char)part,
                            .kind = (unsigned char)kind,
                            .recompute = (unsigned char)recompute};
    ms_arena *scratch = ms_arena_open();
    const ms_program *program =
        ms_workload_program(workload, scratch, key, which, data_parallel_for(key));
    ms_bill bill = ms_bill_make(program, &workload->pricer);
    ms_arena_close(scratch);
    return bill;
}

static unsigned bucket_of(const ms_bill_key *key)
{
    unsigned hash = 17;
    const int fields[] = {key->tp,
                          key->cp,
                          key->ep,
                          key->etp,
                          key->microbatch,
                          key->sequence_parallel,
                          key->loss_parallel,
                          key->cp_method};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        hash = hash * 31U + (unsigned)fields[i] * 2654435761U;
    return (hash ^ (hash >> 15)) % MS_BILL_BUCKETS;
}

static bool same_key(const ms_bill_key *a, const ms_bill_key *b)
{
    return a->tp == b->tp && a->cp == b->cp && a->ep == b->ep && a->etp == b->etp &&
           a->microbatch == b->microbatch &&
           a->sequence_parallel == b->sequence_parallel &&
           a->loss_parallel == b->loss_parallel && a->cp_unbalanced == b->cp_unbalanced &&
           a->cp_method == b->cp_method;
}

static ms_bill_set *find_set(const ms_workload *workload, const ms_bill_key *key,
                             unsigned bucket)
{
    for (ms_bill_set *set = workload->buckets[bucket]; set != NULL; set = set->next)
        if (same_key(&set->key, key))
            return set;
    return NULL;
}

static void fill_mode(ms_workload *workload, ms_bill_set *set, ms_recompute mode)
{
    for (int kind = 0; kind < workload->model->num_kinds; kind++) {
        ms_bill *bill = MS_NEW(workload->arena, ms_bill);
        *bill = bill_of(workload, &set->key, MS_PART_LAYER, kind, mode);
        set->layer[kind][mode] = bill;
    }
}

static ms_bill_set *new_set(ms_workload *workload, const ms_bill_key *key,
                            unsigned bucket)
{
    ms_bill_set *set = MS_NEW(workload->arena, ms_bill_set);
    set->key = *key;
    set->embed = bill_of(workload, key, MS_PART_EMBED, 0, MS_RECOMPUTE_NONE);
    set->head = bill_of(workload, key, MS_PART_HEAD, 0, MS_RECOMPUTE_NONE);
    fill_mode(workload, set, MS_RECOMPUTE_NONE);
    set->next = workload->buckets[bucket];
    workload->buckets[bucket] = set;
    workload->num_bill_sets++;
    return set;
}

ms_bill_set *ms_workload_bills(ms_workload *workload, const ms_bill_key *key)
{
    unsigned bucket = bucket_of(key);
    pthread_mutex_lock(&workload->lock);
    ms_bill_set *set = find_set(workload, key, bucket);
    if (set == NULL)
        set = new_set(workload, key, bucket);
    pthread_mutex_unlock(&workload->lock);
    return set;
}

void ms_workload_add_modes(ms_workload *workload, ms_bill_set *bills, unsigned modes)
{
    pthread_mutex_lock(&workload->lock);
    for (int mode = 0; mode < MS_NUM_RECOMPUTE; mode++)
        if ((modes >> mode & 1U) != 0 && bills->layer[0][mode] == NULL)
            fill_mode(workload, bills, (ms_recompute)mode);
    pthread_mutex_unlock(&workload->lock);
}

const ms_split *ms_workload_split(ms_workload *workload, ms_bill_set *bills,
                                  int num_ranks, int virtual_stages)
{
    int num_stages = num_ranks * virtual_stages;
    pthread_mutex_lock(&workload->lock);
    ms_split *split = bills->splits;
    while (split != NULL &&
           (split->num_stages != num_stages || split->num_ranks != num_ranks))
        split = split->next;
    if (split == NULL) {
        long *layers = MS_NEW_ARRAY(workload->arena, num_stages, long);
        ms_default_split(workload, bills, num_stages, layers);
        split = ms_split_make(workload->arena, workload->model, layers, num_ranks,
                              virtual_stages);
        split->next = bills->splits;
        bills->splits = split;
    }
    pthread_mutex_unlock(&workload->lock);
    return split;
}
