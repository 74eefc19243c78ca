/* Peak memory of one rank, by category, from the stages on the rank and the
 * micro-batches whose activations its schedule keeps alive. */
#ifndef MS_SIM_STEP_RANK_MEMORY_H
#define MS_SIM_STEP_RANK_MEMORY_H

#include "sim/step/stage.h"

typedef enum ms_memory_category {
    MS_MEMORY_PARAMS,
    MS_MEMORY_GRADS,     /* gradients with FP32 accumulation buffers */
    MS_MEMORY_OPTIMIZER, /* optimizer states with master weights */
    MS_MEMORY_ACTIVATIONS,
    MS_MEMORY_LOGITS,
    MS_MEMORY_GATHERED_PARAMS,
    MS_MEMORY_COMM_BUFFERS,
    MS_MEMORY_CONTEXT,
    MS_MEMORY_FRAGMENTATION,
    MS_NUM_MEMORY_CATEGORIES
} ms_memory_category;
extern const char *const ms_memory_category_names[]; /* "params" ..., NULL */

/* Memory inputs of one rank that do not depend on the sharding, summed over its model
 * chunks. */
typedef struct ms_rank_load {
    double dense_params, expert_params;
    double unit_dense_params, unit_expert_params; /* largest unit gathered at once */
    double activation_bytes; /* bytes at the memory peak, transient tensors included */
    double logits_bytes;     /* logits alive at the memory peak */
    double head_grad_bytes;  /* gradient of the head's matrix while it is computed */
    double buffer_bytes;     /* buffers of pipeline sends and receives */
} ms_rank_load;

/* Saved activations of a rank class when a backward begins, as numbers by chunk class. Rows
 * that another row of the same backward covers in every class are left out. */
typedef struct ms_rank_live {
    const ms_rank_class *run;
    int num_rows;
    /* (num_rows, 2 run->num_distinct): for each class first the micro-batches between
     * forward and backward, then those between the input half (I) and the weight half
     * (W) of a split backward */
    const int *counts;
    const short *at_work;       /* (num_rows): the backward's class, in run->distinct */
    const unsigned char *kinds; /* (num_rows): MS_BACKWARD, _INPUT or _WEIGHT */
} ms_rank_live;

/* The class of a rank's model chunk, as an index into run->distinct. */
int ms_rank_class_distinct(const ms_rank_class *run, int chunk);

/* Collects the rows of counts of `num_ranks` ranks of the rank class together. Lives in
 * the arena. */
ms_rank_live ms_rank_live_make(ms_arena *arena, const ms_rank_class *run,
                               const ms_schedule *live, int first_rank, int num_ranks);

/* Fills a rank's load at its row of counts with most bytes. `stages` are by class of the
 * split; send_bytes is the size of a message; num_neighbours: see ms_num_neighbours. */
void ms_rank_load_make(const ms_stage *stages, const ms_rank_live *live,
                       double send_bytes, int num_neighbours, ms_rank_load *out);
/* The two halves of ms_rank_load_make: first states and buffers, which is quick, then
 * activations at the largest row, which is not. */
void ms_rank_load_states(const ms_stage *stages, const ms_rank_class *run,
                         double send_bytes, int num_neighbours, ms_rank_load *out);
void ms_rank_load_peak(const ms_stage *stages, const ms_rank_live *live,
                       ms_rank_load *out);
/* Number of ranks with which a rank of a pipeline exchanges messages: 0, 1 or 2. */
int ms_num_neighbours(const ms_split *split, int rank);

/* Saved activations of a rank in bytes: counts as in ms_rank_live, stages by class of
 * the split. */
ms_live_bytes ms_saved_bytes_of(const ms_stage *stages, const ms_rank_class *run,
                                const int *counts);
/* Most bytes alive while the backward of `kind` (MS_BACKWARD, _INPUT or _WEIGHT) runs on
 * a chunk of class at_work, which is included in the counts. */
ms_live_bytes ms_live_bytes_of(const ms_stage *stages, const ms_rank_class *run,
                               const int *counts, int at_work, int kind);

/* Sizes of the groups over which states are sharded, and the number of communicators
 * that the plan opens: one for all ranks and one per group; none on a single GPU. */
typedef struct ms_shard_sizes {
    double dense, expert;
    int num_communicators;
    bool data_parallel, pipeline; /* more than one data-parallel rank, or pipeline rank */
} ms_shard_sizes;
ms_shard_sizes ms_shard_sizes_of(const ms_links *links);

/* Number of the load's parameters that one rank holds, sharded or whole. */
double ms_rank_params(const ms_rank_load *load, const ms_shard_sizes *shards,
                      bool over_shards);

/* Bytes by category at the peak, which is during a backward, and which is their sum. Source
 * for states: ZeRO (Rajbhandari et al. 2020). */
void ms_rank_memory(const ms_workload *workload, const ms_rank_load *load,
                    ms_sharding sharding, const ms_shard_sizes *shards,
                    double parts[MS_NUM_MEMORY_CATEGORIES]);

/* Bytes of CUDA context and communicators on a rank's device, where the framework's memory
 * figure omits them (stack->counts_context false); otherwise 0. */
double ms_rank_outside_bytes(const ms_workload *workload, const ms_shard_sizes *shards);

#endif
