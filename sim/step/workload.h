/* A workload: model, cluster, coefficients, sequence length and batch, constant in a
 * search, and a cache of priced programs (ms_bill) that all threads share. */
#ifndef MS_SIM_STEP_WORKLOAD_H
#define MS_SIM_STEP_WORKLOAD_H

#include "base/map.h"
#include "costmodel/calibrate/error_spread.h"
#include "costmodel/cost/bill.h"
#include "costmodel/cost/saved_choice.h"
#include "costmodel/plan/expert_loads.h"
#include "costmodel/plan/stack_rules.h"
#include "costmodel/schedule/schedule.h"
#include "sim/step/memory_rule.h"
#include "topo/device_kinds.h"

#include <pthread.h>

/* Stages of a pipeline that lie beside those of a rank, on other ranks. */
typedef struct ms_rank_sides {
    int neighbours; /* ranks that hold them; in a loop the first and last rank are such */
    int messages;   /* pairs of a chunk of the rank and a stage before or after it */
} ms_rank_sides;

/* Neighbouring pipeline ranks whose model chunks are equal, and so are their costs. */
typedef struct ms_rank_class {
    int first_rank, num_ranks;
    int like;                /* the first of the split's runs with equal classes */
    ms_rank_sides sides;     /* the first rank's */
    const int *classes;      /* (num_chunks): stage class of each chunk */
    int num_distinct;        /* number of different stage classes */
    const int *distinct;     /* (num_distinct): different classes, in chunk order */
    const int *multiplicity; /* (num_distinct): number of chunks of each stage class */
} ms_rank_class;

/* Distribution of the model's layers over virtual pipeline stages. Two stages are of one
 * class if their layers have equal kinds in the same order, and both or neither have the
 * embedding, as well as the head. Costs are computed per stage class and rank class. */

typedef struct ms_split {
    int num_ranks, num_stages; /* numbers of pipeline ranks and of stages */
    int num_chunks;          /* chunks per rank: with DualPipe each stage exists twice */
    ms_schedule_shape shape; /* tells each stage's rank; micro-batches unused */
    /* (num_ranks): ms_kind_set of each rank's devices; NULL: all devices are alike */
    const unsigned char *kinds;
    const long *layers;      /* (num_stages): number of layers */
    const long *first_layer; /* (num_stages): the first layer */
    int num_classes;
    const int *class_of_stage; /* (num_stages): class of each stage */
    const int *stage_of_class; /* (num_classes): the first stage of each class */
    int num_runs;
    const ms_rank_class *runs;
} ms_split;

/* The stage of the model that a rank's chunk is. */
int ms_split_stage(const ms_split *split, int rank, int chunk);
bool ms_split_holds(const ms_split *split, int rank, int stage);
/* Whether a rank has the first and the last stage: with one rank, in a V placement, or
 * with placement in both directions (DualPipe). */
bool ms_split_ends_meet(const ms_split *split);
/* Counts what lies beside a rank. A schedule from a file may place its chunks beside any
 * number of others. */
ms_rank_sides ms_split_sides(const ms_split *split, int rank);
/* Kinds of the devices that have a stage; 0 if all devices are alike. */
ms_kind_set ms_split_kinds(const ms_split *split, int stage);
/* Number of layers of the largest stage. */
long ms_split_most_layers(const ms_split *split);

/* Key of priced programs: of ms_program_key the fields that a plan determines, equal for
 * all blocks of the model (ms_plan_bill_key); other fields are 0. */
typedef ms_program_key ms_bill_key;

#define MS_SPLIT_BUCKETS 16

typedef struct ms_split_entry {
    const ms_split *split;
    struct ms_split_entry *next;
} ms_split_entry;

typedef struct ms_bill_set {
    ms_bill_key key;
    ms_bill embed, head;
    const ms_bill *layer[MS_MAX_LAYER_KINDS][MS_NUM_LAYER_MODES]; /* NULL: not priced */
    const ms_saved *keep[MS_MAX_LAYER_KINDS]; /* (MS_NUM_BUDGETS); NULL: not chosen */
    ms_split_entry *splits[MS_SPLIT_BUCKETS]; /* a hash table */
} ms_bill_set;

/* Longest period, in layers, of patterns that stages add up at once. */
#define MS_MAX_PERIOD 64

typedef struct ms_workload {
    /* [ms_kind_set]: a mixed cluster's workload for ranks that have these kinds of devices;
     * NULL: no such set. The workload itself then has the rates of kind 0. */
    struct ms_workload *of_kinds[MS_NUM_KIND_SETS];
    const ms_model *model;
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_profile *const *group_profiles; /* ms_workload_inputs.group_profiles */
    /* prediction errors of published runs; NULL: none has the devices or profile */
    const ms_error_spread *spread, *peak_spread;
    ms_memory_limit memory; /* when plans fit; by default if their predicted peak does */
    const ms_stack *stack;  /* conventions for this plan (ms_stack_of_plan) */
    bool updates_matrices;  /* ms_stack_updates_matrices(stack) */
    ms_rule_set rules;      /* rules of the stack's framework */
    ms_pricer pricer;
    long sequence_length, global_batch;
    ms_dtype compute;
    ms_expert_fill expert_fill;
    ms_packing packing;
    ms_lengths lengths; /* lengths of sequences that are packed or padded */
    ms_flop_per_token flop_of_lengths; /* the model's, mean over their tokens */
    ms_lora lora;                      /* the plan's adapters; rank 0: none */
    /* share of activations that layers with MS_RECOMPUTE_AUTO save; below 0: as 0 */
    double recompute_budget_frac;
    int *layers_before
        [MS_MAX_LAYER_KINDS]; /* [kind][i]: number of layers of `kind` before layer i */
    int *first_alike;         /* (num_layers): first of adjacent layers of equal kind */
    /* layers from first_periodic to the model's last repeat those `period` before, the
     * first period excepted; 0: no period of at most MS_MAX_PERIOD layers */
    int period, first_periodic;
    pthread_mutex_t lock; /* guards the cache */
    ms_arena *arena;
    ms_map bill_keys;
    ms_bill_set **bill_sets; /* (bill_capacity): one per key in bill_keys */
    int bill_capacity;
    ms_map split_keys; /* placements of layers, which many sets of bills share */
    ms_split **splits; /* (split_capacity): one per key in split_keys */
    int split_capacity;
} ms_workload;

/* Loads the files that a plan names. The workload lives in cx->arena; ms_workload_close
 * frees its cache. */
ms_status ms_workload_open(ms_ctx *cx, const ms_plan *plan, ms_workload **out);
/* Loaded files to make a workload from, instead of those that the plan names. */
typedef struct ms_workload_inputs {
    const ms_model *model;
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_stack *stack;
    /* [group] profiles of a mixed cluster's groups; NULL: those that its devices name */
    const ms_profile *const *group_profiles;
} ms_workload_inputs;
ms_status ms_workload_make(ms_ctx *cx, const ms_workload_inputs *inputs,
                           const ms_plan *plan, ms_workload **out);
/* ms_workload_make with the rules and the prediction errors of another workload. */
ms_status ms_workload_make_like(ms_ctx *cx, const ms_workload *like,
                                const ms_workload_inputs *inputs, const ms_plan *plan,
                                ms_workload **out);
void ms_workload_close(ms_workload *workload);
/* Frees the cache of priced programs and splits, which fills again when it is needed:
 * nothing may refer to it. */
void ms_workload_forget(ms_workload *workload);
/* Sets the rule by which plans of the workload fit device memory from now on. */
void ms_workload_set_memory_rule(ms_workload *workload, const ms_memory_rule *rule);

/* The schedule shape of a plan: ranks, stages, micro-batches. A schedule that depends on
 * durations also gets all blocks' seconds of forward, input half and weight half (W), and
 * W's share of activations, rounded to 16ths so that similar plans share schedules. */
ms_schedule_shape ms_workload_shape(const ms_workload *workload, const ms_bill_set *bills,
                                    const ms_plan *plan);

/* The stack's default distribution of layers over a shape's stages, at most as many as
 * layers. A balanced one makes the largest stage time as small as possible, then the
 * others as equal as that allows. Stage time: compute of forward and backward, with
 * embedding and head; two stages on one rank (V, DualPipe) count as one. Where ranks have
 * different kinds of devices (`kinds`: as in ms_split) each stage's time is that on its
 * own, and equal stages are balanced, too. Thread-safe. */
const ms_split *ms_workload_split(ms_workload *workload, ms_bill_set *bills,
                                  const ms_schedule_shape *shape,
                                  const unsigned char *kinds);

/* The split with the given number of layers of each stage, which sum to the model's, over
 * ranks with these kinds of devices (ms_split). */
ms_split *ms_split_make(ms_arena *arena, const ms_model *model, const long *layers,
                        const ms_schedule_shape *shape, const unsigned char *kinds);

/* The priced programs of a key, without recomputation. Thread-safe; the set keeps its
 * address. */
ms_bill_set *ms_workload_bills(ms_workload *workload, const ms_bill_key *key);
/* The layer program of a block, as priced for `key`. Of `which` only block, kind and
 * recompute (here an ms_layer_mode) are read. Local shapes do not depend on data_parallel. Lives in the arena. */
const ms_program *ms_workload_program(const ms_workload *workload, ms_arena *arena,
                                      const ms_bill_key *key, ms_program_key which,
                                      long data_parallel);
/* Tokens of a step's sequences, without padding. */
double ms_workload_useful_tokens(const ms_workload *workload, long global_batch);
/* Positions that a step computes with the micro-batches of a plan, mean over ranks. */
double ms_workload_computed_tokens(const ms_workload *workload, const ms_plan *plan);
/* The model's FLOP per token, of padding none. Beside adapters frozen weights have no gradients: 4 FLOP a
 * parameter in place of 6, and 6 for each parameter of an adapter. */
ms_flop_per_token ms_workload_flop_per_token(const ms_workload *workload);
/* Number of modules of multi-token prediction that are trained: those of the model if the
 * stack trains them and there are no adapters. */
int ms_workload_num_modules(const ms_workload *workload);
/* Whether a head shares weights with an embedding on its rank: a tied matrix, or the
 * embedding itself for multi-token prediction. */
bool ms_head_shares_weights(const ms_workload *workload);
/* The choices of activations to save in a layer of kind `kind`, with the seconds to
 * recompute the others. Collectives that then run again are priced at the bandwidth of
 * the innermost network level. Lives in the arena. */
ms_saved_front ms_workload_saved_front(const ms_workload *workload, ms_arena *arena,
                                       const ms_bill_key *key, int kind);
/* Adds missing layers in the ms_layer_mode of `modes` (bit i: mode i). Thread-safe. */
void ms_workload_add_modes(ms_workload *workload, ms_bill_set *bills, unsigned modes);

#endif
