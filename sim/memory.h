/* Peak memory of one rank, by category, from the stages it holds and the micro-batches its schedule keeps alive. */
#ifndef MS_SIM_MEMORY_H
#define MS_SIM_MEMORY_H

#include "sim/stage.h"

typedef enum ms_memory_part {
    MS_MEMORY_PARAMS,
    MS_MEMORY_GRADS,           /* fp32 accumulation included */
    MS_MEMORY_OPTIMIZER,       /* master weights included */
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
    double activation_bytes; /* at the peak over the rank's list of actions, with the transients of one backward */
    double logits_bytes;     /* alive then */
    double head_grad_bytes;  /* gradient of the head's matrix while it is made */
    double buffer_bytes;     /* pipeline sends and receives */
} ms_rank_load;

/* The load of one rank of a pipeline. `stages` are by class of the split; `live` is the schedule's (or a shorter one's with the same live
 * vectors): of its vectors for the rank the worst is taken. */
void ms_rank_load_make(const ms_workload *workload, const ms_split *split, const ms_stage *stages, int rank,
                       const ms_schedule *live, double send_bytes, ms_rank_load *out);

/* Sizes of the groups that states are sharded over, and how many communicators the plan opens. */
typedef struct ms_shard_sizes {
    double dense, expert;
    int num_communicators;
} ms_shard_sizes;
ms_shard_sizes ms_shard_sizes_of(const ms_links *links);

/* Bytes by category at the peak, during a backward; the sum is the peak. Sources: ZeRO (Rajbhandari et al. 2020) for states;
 * activations and transients from the lifetimes of the graph's tensors. */
void ms_rank_memory(const ms_workload *workload, const ms_rank_load *load, ms_sharding sharding,
                    const ms_shard_sizes *shards, double parts[MS_NUM_MEMORY_PARTS]);

#endif
