/* What stays the same over a whole search: model, cluster, coefficients, sequence and
 * batch; and the bills of layer programs, each propagated and priced once and shared by
 * all threads. */
#ifndef MS_SIM_STEP_WORKLOAD_H
#define MS_SIM_STEP_WORKLOAD_H

#include "base/map.h"
#include "costmodel/calibrate/error_spread.h"
#include "costmodel/cost/bill.h"
#include "costmodel/cost/saved_activations.h"
#include "costmodel/schedule/schedule.h"

#include <pthread.h>

/* Layers of a pipeline's virtual stages. Stages that hold the same kinds of layers in the
 * same order (and are alike in having the embedding or the head) are one class;
 * neighbouring ranks whose chunks are of the same classes are one run. Costs are computed
 * per class and run. */
typedef struct ms_rank_class {
    int first_rank, num_ranks;
    const int *classes;      /* (num_chunks): of each chunk of its ranks */
    int num_distinct;        /* classes among them */
    const int *distinct;     /* (num_distinct), in the order of the chunks */
    const int *multiplicity; /* (num_distinct): chunks of each */
} ms_rank_class;

typedef struct ms_split {
    int num_ranks, num_stages; /* stages of the model */
    int num_chunks;            /* per rank: with DualPipe each stage is there twice */
    /* which places the stages; its numbers of micro-batches do not count */
    ms_schedule_shape shape;
    const long *layers;      /* (num_stages) */
    const long *first_layer; /* (num_stages) */
    int num_classes;
    const int *class_of_stage; /* (num_stages) */
    const int *stage_of_class; /* (num_classes): its first stage */
    int num_runs;
    const ms_rank_class *runs;
    struct ms_split *next;
} ms_split;

/* The stage of the model that a rank's chunk is. */
int ms_split_stage(const ms_split *split, int rank, int chunk);
/* Whether a rank has a stage of the model. */
bool ms_split_holds(const ms_split *split, int rank, int stage);
/* Whether the ranks that have the first stage of the model have the last one too: one
 * rank, a V, both ways. */
bool ms_split_ends_meet(const ms_split *split);

/* Of a program's key what a plan decides, and holds_gathers (ms_plan_holds_gathers): all
 * parts of the model have their bills by it. The rest is 0. */
typedef ms_program_key ms_bill_key;

#define MS_SPLIT_BUCKETS 16

typedef struct ms_bill_set {
    ms_bill_key key;
    ms_bill embed, head;
    /* NULL until a mode is asked for */
    const ms_bill *layer[MS_MAX_LAYER_KINDS][MS_NUM_RECOMPUTE];
    /* default splits made so far, by number of stages */
    ms_split *splits[MS_SPLIT_BUCKETS];
} ms_bill_set;

typedef struct ms_workload {
    const ms_model *model;
    const ms_cluster *cluster;
    const ms_profile *profile;
    /* of errors of step times; NULL: what is known is not about its devices or profile */
    const ms_error_spread *spread;
    const ms_error_spread *peak_spread; /* of errors of peak memory, likewise */
    const ms_stack *stack;              /* adapted to the compute type (ms_stack_adapt) */
    ms_pricer pricer;
    long sequence_length, global_batch;
    ms_dtype compute;
    /* of the plan: what layers under MS_RECOMPUTE_AUTO keep; below 0 as 0 */
    double recompute_budget_frac;
    /* layers of each kind before layer i: layers_before[kind][i], i = 0 .. num_layers */
    int *layers_before[MS_MAX_LAYER_KINDS];
    /* (num_layers): the first layer of the unbroken run of its kind that a layer is in */
    int *first_alike;
    /* shared cache */
    /* looked up a million times, added to some ten thousand times */
    pthread_mutex_t lock;
    ms_arena *arena;
    ms_map bill_keys;
    ms_bill_set **bill_sets; /* by the index of their key */
    int bill_capacity;
} ms_workload;

/* Loads everything a plan names. The workload lives in cx->arena; close it to release the
 * cache. */
ms_status ms_workload_open(ms_ctx *cx, const ms_plan *plan, ms_workload **out);
/* The same from what was loaded or made before; the plan's names are not looked at. */
typedef struct ms_workload_blocks {
    const ms_model *model;
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_stack *stack;
} ms_workload_blocks;
ms_status ms_workload_make(ms_ctx *cx, const ms_workload_blocks *parts,
                           const ms_plan *plan, ms_workload **out);
void ms_workload_close(ms_workload *workload);

/* Of a family that is built for durations, the shape of a plan with those of its compute,
 * forward, I and W of all parts without recomputation, and with the share of activations
 * that W needs; of other families the plan's shape. Rounded to 16ths, so that plans with
 * nearly the same share their schedules. */
ms_schedule_shape ms_workload_shape(const ms_workload *workload, const ms_bill_set *bills,
                                    const ms_plan *plan);

/* The default split over the stages of a schedule's shape, as the stack does it;
 * balanced: the largest stage time is as small as possible, embedding and head counted,
 * and the others lie as near to equal as that allows; where two stages share a rank (in a
 * V, both ways) the sums of ranks are made equal instead. Times are forward + backward
 * compute without recomputation. Not more stages than layers. Thread-safe; made once
 * per bill set. */
const ms_split *ms_workload_split(ms_workload *workload, ms_bill_set *bills,
                                  const ms_schedule_shape *shape);

/* The split with given layers (an entry per stage of the model; they add up to the
 * model's). */
ms_split *ms_split_make(ms_arena *arena, const ms_model *model, const long *layers,
                        const ms_schedule_shape *shape);

/* The key of a plan's bills, but for holds_gathers (sim/step/gathers.h). */
ms_bill_key ms_bill_key_of(const ms_plan *plan);
/* The bills of a key, with layers without recomputation. Thread-safe; the set stays where
 * it is. */
ms_bill_set *ms_workload_bills(ms_workload *workload, const ms_bill_key *key);
/* The program that a bill of the key is made from (of `part` counts what it names: part,
 * kind and recompute), for `data_parallel` ranks: local shapes do not depend on it. Lives
 * in the arena. */
const ms_program *ms_workload_program(const ms_workload *workload, ms_arena *arena,
                                      const ms_bill_key *key, ms_program_key part,
                                      long data_parallel);
/* Whether a head beside the embedding takes weights of it: its matrix where both are
 * tied, the embedding itself for multi-token prediction. */
bool ms_head_shares_weights(const ms_workload *workload);
/* What layers of a kind can keep and how long they then compute again. Collectives that
 * run again are priced at the bandwidth of the innermost level: their links are not known
 * yet. Lives in the arena. */
ms_saved_front ms_workload_saved_front(const ms_workload *workload, ms_arena *arena,
                                       const ms_bill_key *key, int kind);
/* Makes sure that the set has layers in the recompute modes of `modes` (bit i: mode i).
 * Thread-safe. */
void ms_workload_add_modes(ms_workload *workload, ms_bill_set *bills, unsigned modes);

#endif
