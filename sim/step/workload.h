/* A workload: model, cluster, coefficients, sequence and batch, which are constant in a
 * search, and a cache of priced programs (bills) that all threads share. */
#ifndef MS_SIM_STEP_WORKLOAD_H
#define MS_SIM_STEP_WORKLOAD_H

#include "base/map.h"
#include "costmodel/calibrate/error_spread.h"
#include "costmodel/cost/bill.h"
#include "costmodel/cost/saved_front.h"
#include "costmodel/schedule/schedule.h"

#include <pthread.h>

/* Neighbouring ranks whose model chunks have equal stage classes. */
typedef struct ms_rank_class {
    int first_rank, num_ranks;
    const int *classes;      /* (num_chunks): stage class of each chunk */
    int num_distinct;        /* number of different stage classes */
    const int *distinct;     /* (num_distinct): the classes in the order of the chunks */
    const int *multiplicity; /* (num_distinct): number of chunks of each class */
} ms_rank_class;

/* Layers of a pipeline's virtual stages. Stages with equal kinds of layers in the same
 * order, and equal in having the embedding or the head, are one class. Costs are computed
 * per stage class and rank class. */

typedef struct ms_split {
    int num_ranks, num_stages; /* stages of the model */
    int num_chunks;          /* chunks per rank: with DualPipe each stage exists twice */
    ms_schedule_shape shape; /* places the stages; numbers of micro-batches are unused */
    const long *layers;      /* (num_stages) */
    const long *first_layer; /* (num_stages) */
    int num_classes;
    const int *class_of_stage; /* (num_stages) */
    const int *stage_of_class; /* (num_classes): the first stage of each class */
    int num_runs;
    const ms_rank_class *runs;
    struct ms_split *next;
} ms_split;

/* The stage of the model that a rank's chunk holds. */
int ms_split_stage(const ms_split *split, int rank, int chunk);
bool ms_split_holds(const ms_split *split, int rank, int stage);
/* Whether the ranks of the first stage of the model also have the last one: with one rank,
 * in a V, or with placement in both directions. */
bool ms_split_ends_meet(const ms_split *split);

/* The fields of a program's key that a plan determines (ms_plan_bill_key), common to all
 * blocks of the model; the other fields are 0. */
typedef ms_program_key ms_bill_key;

#define MS_SPLIT_BUCKETS 16

typedef struct ms_bill_set {
    ms_bill_key key;
    ms_bill embed, head;
    const ms_bill *layer[MS_MAX_LAYER_KINDS][MS_NUM_RECOMPUTE]; /* NULL: not priced yet */
    ms_split *splits[MS_SPLIT_BUCKETS]; /* default splits, hashed by number of stages */
} ms_bill_set;

typedef struct ms_workload {
    const ms_model *model;
    const ms_cluster *cluster;
    const ms_profile *profile;
    /* errors of step times and of peaks; NULL: unknown for the devices or profile */
    const ms_error_spread *spread, *peak_spread;
    const ms_stack *stack; /* adapted to the compute type (ms_stack_adapt) */
    ms_pricer pricer;
    long sequence_length, global_batch;
    ms_dtype compute;
    /* share of activations that layers save under MS_RECOMPUTE_AUTO; negative: 0 */
    double recompute_budget_frac;
    int *layers_before
        [MS_MAX_LAYER_KINDS]; /* [kind][i]: number of layers of `kind` before i */
    int *first_alike;         /* (num_layers): first of adjacent layers of equal kind */
    pthread_mutex_t
        lock; /* guards the cache, which is read far more often than written */
    ms_arena *arena;
    ms_map bill_keys;
    ms_bill_set **bill_sets; /* (bill_capacity): in the order of bill_keys */
    int bill_capacity;
} ms_workload;

/* Loads the files that a plan names. The workload lives in cx->arena; ms_workload_close
 * frees its cache. */
ms_status ms_workload_open(ms_ctx *cx, const ms_plan *plan, ms_workload **out);
/* Loaded files to make a workload from; the names in the plan are ignored. */
typedef struct ms_workload_blocks {
    const ms_model *model;
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_stack *stack;
} ms_workload_blocks;
ms_status ms_workload_make(ms_ctx *cx, const ms_workload_blocks *parts,
                           const ms_plan *plan, ms_workload **out);
void ms_workload_close(ms_workload *workload);

/* The schedule shape of a plan. For families that are built for durations it states those of
 * forward, I and W of all blocks without recomputation, and the share of activations that
 * W needs, rounded to 16ths so that similar plans share schedules. */
ms_schedule_shape ms_workload_shape(const ms_workload *workload, const ms_bill_set *bills,
                                    const ms_plan *plan);

/* The default split of the stack over the stages of a shape. Balanced: the largest stage
 * time, with embedding and head, is as small as possible, and the others are as equal as
 * that allows; where two stages share a rank (in a V, both ways), sums of ranks are
 * balanced instead. Times are forward + backward compute without recomputation. At most
 * as many stages as layers. Thread-safe; made once per ms_bill_set. */
const ms_split *ms_workload_split(ms_workload *workload, ms_bill_set *bills,
                                  const ms_schedule_shape *shape);

/* The split with the given number of layers of each stage, which sum to the model's. */
ms_split *ms_split_make(ms_arena *arena, const ms_model *model, const long *layers,
                        const ms_schedule_shape *shape);

/* The priced programs of a key, without recomputation. Thread-safe; the set keeps its
 * address. */
ms_bill_set *ms_workload_bills(ms_workload *workload, const ms_bill_key *key);
/* The layer program that ms_bill prices for the key. Of `part` only part, kind and
 * recompute are read. Local shapes do not depend on data_parallel. Lives in the arena. */
const ms_program *ms_workload_program(const ms_workload *workload, ms_arena *arena,
                                      const ms_bill_key *key, ms_program_key part,
                                      long data_parallel);
/* Whether a head on the rank of the embedding shares its weights: the tied matrix, or the
 * embedding itself for multi-token prediction. */
bool ms_head_shares_weights(const ms_workload *workload);
/* The choices of saved activations of a kind of layer, and the recomputation that each needs.
 * Collectives that run again are priced at the bandwidth of the innermost level. Lives in
 * the arena. */
ms_saved_front ms_workload_saved_front(const ms_workload *workload, ms_arena *arena,
                                       const ms_bill_key *key, int kind);
/* Adds missing layers in the recompute modes of `modes` (bit i: mode i). Thread-safe. */
void ms_workload_add_modes(ms_workload *workload, ms_bill_set *bills, unsigned modes);

#endif
