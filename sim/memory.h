/* Peak memory of one rank, by category, from the stages it holds and the micro-batches
 * its schedule keeps alive. */
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
    /* at the peak over the rank's list of actions, with the transients of one backward */
    double activation_bytes;
    double logits_bytes;    /* alive then */
    double head_grad_bytes; /* gradient of the head's matrix while it is made */
    double buffer_bytes;    /* pipeline sends and receives */
} ms_rank_load;

/* What ranks of a run keep when a backward begins, by class of their chunks: chunks of
 * one class weigh the same, so only their sum counts. Rows that another of the same
 * backward exceeds in every class are left out. */
typedef struct ms_rank_live {
    const ms_run *run;
    int num_rows;
    /* (num_rows, 2 run->num_distinct): of each class first the micro-batches between
     * forward and backward, then those between I and W */
    const int *counts;
    /* (num_rows): the class whose backward begins, an index into run->distinct */
    const short *at_work;
    /* (num_rows): MS_BACKWARD, MS_BACKWARD_INPUT or MS_BACKWARD_WEIGHT */
    const unsigned char *kinds;
} ms_rank_live;

/* The class of a rank's chunk, as an index into run->distinct. */
int ms_run_distinct(const ms_run *run, int chunk);

/* From the schedule's rows for `num_ranks` ranks of the run, together. Lives in the
 * arena. */
ms_rank_live ms_rank_live_make(ms_arena *arena, const ms_run *run,
                               const ms_schedule *live, int first_rank, int num_ranks);

/* The load of a rank at the worst of its rows. `stages` are by class of the split.
 * Pipeline ends send and receive on one side only. */
void ms_rank_load_make(const ms_stage *stages, const ms_rank_live *live,
                       double send_bytes, int num_neighbours, ms_rank_load *out);
/* Its two halves: what the stages own, which is quick, and then the worst of the rows,
 * which is not. */
void ms_rank_load_states(const ms_stage *stages, const ms_run *run, double send_bytes,
                         int num_neighbours, ms_rank_load *out);
void ms_rank_load_peak(const ms_stage *stages, const ms_rank_live *live,
                       ms_rank_load *out);
/* Ranks with which a rank of a pipeline exchanges: 0, 1 or 2. */
int ms_num_neighbours(const ms_split *split, int rank);

/* What a rank keeps of its micro-batches: counts as in ms_rank_live, stages by class
 * of the split. */
ms_live_bytes ms_kept_bytes_of(const ms_stage *stages, const ms_run *run,
                               const int *counts);
/* The most while the backward of `kind` (MS_BACKWARD, ..._INPUT, ..._WEIGHT) runs on a
 * chunk of class at_work of the run, which is among the counts. */
ms_live_bytes ms_live_bytes_of(const ms_stage *stages, const ms_run *run,
                               const int *counts, int at_work, int kind);

/* Sizes of the groups that states are sharded over, and how many communicators the plan
 * opens: the world's and one a group, none on a GPU alone. */
typedef struct ms_shard_sizes {
    double dense, expert;
    int num_communicators;
    bool data_parallel, pipeline; /* more than one rank of either */
} ms_shard_sizes;
ms_shard_sizes ms_shard_sizes_of(const ms_links *links);

/* Parameters of the load that one rank holds, over the shards or whole. */
double ms_rank_params(const ms_rank_load *load, const ms_shard_sizes *shards,
                      bool over_shards);

/* Bytes by category at the peak, during a backward; the sum is the peak. Sources: ZeRO
 * (Rajbhandari et al. 2020) for states; activations and transients from the lifetimes of
 * the graph's tensors. */
void ms_rank_memory(const ms_workload *workload, const ms_rank_load *load,
                    ms_sharding sharding, const ms_shard_sizes *shards,
                    double parts[MS_NUM_MEMORY_PARTS]);

/* What a rank has on its device beside the sum of those parts: CUDA context and
 * communicators, which a framework's own figure leaves out (counts_context); 0 where it
 * has them. With it the peak has to fit. */
double ms_rank_outside_bytes(const ms_workload *workload, const ms_shard_sizes *shards);

#endif
