/* Peak memory of one rank, by category, from its stages and the micro-batches whose
 * activations the schedule keeps alive. */
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
extern const char *const ms_memory_category_names[]; /* names of categories, then NULL */

/* Kinds of published memory figures. PyTorch: max_memory_allocated; active bytes,
 * freed blocks that wait for another stream included; max_memory_reserved; what the
 * driver sees, context and communicators included. */
typedef enum ms_memory_kind {
    MS_MEMORY_AS_REPORTED, /* the peak as the stack reports it */
    MS_MEMORY_ALLOCATED,
    MS_MEMORY_ACTIVE,
    MS_MEMORY_RESERVED,
    MS_MEMORY_DEVICE,
    MS_NUM_MEMORY_KINDS
} ms_memory_kind;
/* "reported" "allocated" "active" "reserved" "device", NULL */
extern const char *const ms_memory_kind_names[];

/* The pipeline rank whose memory a published figure is. */
typedef enum ms_memory_rank {
    MS_MEMORY_OF_WORST, /* the rank with the largest figure */
    MS_MEMORY_OF_FIRST,
    MS_MEMORY_OF_LAST
} ms_memory_rank;

/* Unsharded sizes of a rank, over all its chunks, from which ms_rank_memory computes its
 * memory with any sharding. */
typedef struct ms_rank_load {
    double dense_params, expert_params;
    double unit_dense_params, unit_expert_params; /* parameters of the largest block */
    /* (dense, expert) bytes of the largest block, frozen parameters included */
    double unit_gathered_bytes[2];
    ms_frozen_bytes frozen;
    ms_update_cost update;   /* optimizer costs beyond those per parameter */
    double activation_bytes; /* activations at the peak, temporary tensors included */
    double logits_bytes;     /* logits at the peak */
    double head_grad_bytes;  /* gradient of the head's matrix at the peak */
    double buffer_bytes;     /* buffers of messages, and ms_block_costs.held_bytes */
    double host_bytes;       /* most bytes of activations in host memory */
    bool is_only_backward;   /* the step has one micro-batch: no gradients before it */
} ms_rank_load;

/* Micro-batches with saved activations on ranks of a class. */
typedef struct ms_rank_live {
    const ms_rank_class *run;
    ms_live_rows rows; /* classes: stage classes in run->distinct */
} ms_rank_live;

/* The stage class of a rank's model chunk, as an index into run->distinct. */
int ms_rank_class_distinct(const ms_rank_class *run, int chunk);

/* Collects micro-batches alive on `num_ranks` ranks of a class. Lives in the arena. */
ms_rank_live ms_rank_live_make(ms_arena *arena, const ms_rank_class *run,
                               const ms_schedule *lists, int first_rank, int num_ranks);

/* Fills `out` with a rank's load at the row of `live` that needs most bytes. `stages`: by
 * stage class; buffer_bytes: from ms_message_buffer_bytes. */
void ms_rank_load_make(const ms_stage *stages, const ms_rank_live *live,
                       double buffer_bytes, ms_rank_load *out);
/* ms_rank_load_make in two halves: ms_rank_load_states fills in parameters and buffers
 * (quick), ms_rank_load_peak the activations at their peak (slow). */
void ms_rank_load_states(const ms_stage *stages, const ms_rank_class *run,
                         double buffer_bytes, ms_rank_load *out);
void ms_rank_load_peak(const ms_stage *stages, const ms_rank_live *live,
                       ms_rank_load *out);
/* Bytes of a rank's receive buffers: per neighbour an activation and a gradient, or, if
 * the stack receives_apart, one per micro-batch of the step and message of a chunk.
 * send_bytes: of one message. */
double ms_message_buffer_bytes(const ms_stack *stack, const ms_rank_sides *sides,
                               double send_bytes, int num_microbatches);

/* Bytes of the logits of all micro-batches that the last stage keeps until the step ends.
 * Source: PyTorch torch/distributed/pipelining/stage.py, output_chunks. */
double ms_held_output_bytes(const ms_stack *stack, const ms_stage *stages,
                            const ms_rank_class *run, int num_microbatches);

/* Bytes of a rank's saved activations. `counts`: micro-batches, a row of ms_rank_live;
 * `stages`: by stage class. */
ms_live_bytes ms_saved_bytes_of(const ms_stage *stages, const ms_rank_class *run,
                                const int *counts);
/* Most bytes of activations alive while a backward of `kind` (MS_BACKWARD, _INPUT or
 * _WEIGHT) runs on stage class at_work. `counts`: a row of ms_rank_live, in which the
 * backward's own micro-batch is counted. */
ms_live_bytes ms_live_bytes_of(const ms_stage *stages, const ms_rank_class *run,
                               const int *counts, int at_work, int kind);

/* Over how many ranks dense and expert parameters are sharded, and how many communicators
 * the plan opens: one for all ranks and one per group; none on one GPU. */
typedef struct ms_shard_sizes {
    double dense, expert;
    /* (dense, expert) ranks that shard a copy of the parameters from forward to backward
     * if ZeRO-3 reshards; 0: none */
    double secondary[2];
    int num_communicators;
    /* true: more than one data-parallel rank; more than one pipeline rank */
    bool data_parallel, pipeline;
    /* losses of different micro-batches whose blocks a rank may need at a time */
    int num_losses;
} ms_shard_sizes;
ms_shard_sizes ms_shard_sizes_of(const ms_links *links, long num_microbatches);

/* Number of parameters that one rank holds: sharded if over_shards, else whole. */
double ms_rank_params(const ms_rank_load *load, const ms_shard_sizes *shards,
                      bool over_shards);

/* Bytes of optimizer states on a rank, `bytes_per_param` and those of ms_update_cost. */
double ms_rank_state_bytes(const ms_rank_load *load, ms_sharding sharding,
                           const ms_shard_sizes *shards, double bytes_per_param);

/* Fills the bytes of each category at a rank's memory peak, which is during a backward.
 * Source for optimizer states: ZeRO (Rajbhandari et al. 2020). */
void ms_rank_memory(const ms_workload *workload, const ms_rank_load *load,
                    ms_sharding sharding, const ms_shard_sizes *shards,
                    double parts[MS_NUM_MEMORY_CATEGORIES]);

/* Most bytes of a rank in host memory that the plan offloads: activations, optimizer
 * states, and gradients that stay there. Buffers of copies are left out. */
double ms_rank_host_bytes(const ms_workload *workload, const ms_rank_load *load,
                          ms_sharding sharding, const ms_shard_sizes *shards);

/* Bytes of CUDA context and communicators, which the framework's allocator does not see. */
double ms_rank_driver_bytes(const ms_workload *workload, const ms_shard_sizes *shards);
/* Bytes of one kind in a rank's memory `parts` (ms_rank_memory):
 *     allocated = active = all parts without fragmentation, context and communicators
 *     reserved = (allocated + fragmentation) (1 + reserve), at most what the device has
 *     device = reserved + context + communicators */
double ms_rank_memory_of_kind(const ms_workload *workload, const ms_shard_sizes *shards,
                              const double parts[MS_NUM_MEMORY_CATEGORIES],
                              ms_memory_kind kind);

/* Bytes of CUDA context and communicators on a device, if the peak memory that the stack
 * reports omits them (counts_context false); otherwise 0. */
double ms_rank_outside_bytes(const ms_workload *workload, const ms_shard_sizes *shards);

#endif
