/* Peak memory of one rank, by category, from the stages it holds and the micro-batches its schedule keeps alive. */
#ifndef MS_SIM_MEMORY_H
#define MS_SIM_MEMORY_H

#include "sim/stage.h"

typedef enum ms_memory_part {
    MS_MEMORY_PARAMS,
    MS_MEMORY_GRADS,     /* fp32 accumulation included */
    MS_MEMORY_OPTIMIZER, /* master weights included */
    MS_MEMORY_ACTIVATIONS,
    MS_MEMORY_LOGITS,
    MS_MEMORY_GATHERED_PARAMS,
    MS_MEMORY_COMM_BUFFERS,
    MS_MEMORY_CONTEXT,
    MS_MEMORY_FRAGMENTATION,
    MS_NUM_MEMORY_PARTS
} ms_memory_part;
extern const char *const ms_memory_part_names[]; /* "params" ... */

/* What does not depend on the sharding, summed over the chunks of one rank. */
typedef struct ms_rank_load {
    double dense_params, expert_params;
    double unit_dense_params, unit_expert_params; /* largest unit gathered at once */
    double
        activation_bytes; /* at the peak over the rank's list of actions, with the transients of one backward */
    double logits_bytes;    /* alive then */
    double head_grad_bytes; /* gradient of the head's matrix while it is made */
    double buffer_bytes;    /* pipeline sends and receives */
} ms_rank_load;

/* Micro-batches alive on a rank by class of its chunks: chunks of one class weigh the same, so only their sum counts. Vectors that another
 * exceeds in every class are left out. */
typedef struct ms_rank_live {
    const ms_run *run;
    int num_vectors;
    const int *counts; /* (num_vectors, run->num_distinct) */
} ms_rank_live;

/* From the schedule's vectors for the rank, which belongs to the run. Lives in the arena. */
ms_rank_live ms_rank_live_make(ms_arena *arena, const ms_run *run,
                               const ms_schedule *live, int rank);

/* The load of the rank whose live vectors are given; of these the worst is taken. `stages` are by class of the split. Pipeline ends send and receive on
 * one side only. */
void ms_rank_load_make(const ms_workload *workload, const ms_stage *stages,
                       const ms_rank_live *live, double send_bytes, int num_neighbours,
                       ms_rank_load *out);
/* Ranks before and after a rank of a pipeline: 0, 1 or 2. */
int ms_num_neighbours(const ms_split *split, int rank);

/* Sizes of the groups that states are sharded over, and how many communicators the plan opens. */
typedef struct ms_shard_sizes {
    double dense, expert;
    int num_communicators;
} ms_shard_sizes;
ms_shard_sizes ms_shard_sizes_of(const ms_links *links);

/* Parameters of the load that one rank holds, over the shards or whole. */
double ms_rank_params(const ms_rank_load *load, const ms_shard_sizes *shards,
                      bool over_shards);

/* Bytes by category at the peak, during a backward; the sum is the peak. Sources: ZeRO (Rajbhandari et al. 2020) for states;
 * activations and transients from the lifetimes of the graph's tensors. */
void ms_rank_memory(const ms_workload *workload, const ms_rank_load *load,
                    ms_sharding sharding, const ms_shard_sizes *shards,
                    double parts[MS_NUM_MEMORY_PARTS]);

#endif
