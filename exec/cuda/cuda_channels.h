/* The NCCL communicators that a plan's ranks need, the multiprocessors that their kernels
 * may hold, and the order in which they are made: the same on every rank, derived from
 * the plan alone.
 *
 * A kernel of NCCL holds its multiprocessors until the kernels of its peers run, too. Its
 * user guide ("Using multiple NCCL communicators concurrently") allows several at a time
 * provided that all fit on the GPU. A stream runs one kernel at a time, and so does a
 * channel: ms_cuda_channels_ctas bounds them such that one of each, and compute, fit. */
#ifndef MS_EXEC_CUDA_CUDA_CHANNELS_H
#define MS_EXEC_CUDA_CUDA_CHANNELS_H

#include "exec/core/world.h"
#include "sim/engine/graph.h"

/* A kind of communicator, per group and stream: its collectives run one after another. */
typedef struct ms_cuda_kind {
    unsigned char group;  /* value of ms_traffic_group */
    unsigned char stream; /* value of ms_stream */
    /* whether members also exchange messages: layers' tensors may change by all-to-all */
    bool has_messages;
    /* whether it shares NCCL's buffers and queue with the other kinds of its stream, which
     * are never in use at the same time */
    bool shares;
} ms_cuda_kind;

/* Messages from rank `from` to rank `to` have a communicator of their own: on a shared
 * one, NCCL would make them wait for messages of other pairs or directions. */
typedef struct ms_cuda_channel {
    long from, to;
    /* which split of the world communicator makes it; a rank has one channel per split */
    int round;
} ms_cuda_channel;

#define MS_CUDA_MAX_KINDS 16

typedef struct ms_cuda_channels {
    int num_kinds;
    ms_cuda_kind kinds[MS_CUDA_MAX_KINDS];
    /* [group][stream]: index into `kinds`; -1 for groups of one rank, and for those over
     * which no rank of the plan moves data between GPUs */
    int kind_of[MS_NUM_TRAFFIC_GROUPS][MS_NUM_STREAMS];
    bool shares[MS_NUM_STREAMS]; /* whether a stream has kinds that share */
    int num_streams;             /* streams that have kinds */
    int num_rounds;
    int most_channels; /* greatest number of channels of a rank */
    long num_channels;
    ms_cuda_channel *channels; /* sorted by round, then by sender */
} ms_cuda_channels;

/* Lists a plan's communicators, in the arena. Kinds: one per group of several ranks and
 * stream that the plan uses; equal groups use the same. Channels join ranks of stages that
 * pass activations and gradients to each other, of stages with the same weights, and
 * neighbours in rings of context parallelism and asynchronous tensor parallelism; at most
 * four of a rank in each direction. Other messages go through host memory. */
ms_cuda_channels ms_cuda_channels_make(ms_arena *arena, const ms_world *world);

/* Most blocks (CTAs), one a multiprocessor, of a kernel of NCCL. */
typedef struct ms_cuda_ctas {
    int collective, message;
} ms_cuda_ctas;

/* Bounds such that a quarter of a GPU's multiprocessors stay free for compute while each
 * communicator of a rank that may be in use holds as many as it may; `most`: no more of a
 * collective, 0: NCCL's own limit. False: there are too few for one block of each. */
bool ms_cuda_channels_ctas(const ms_cuda_channels *channels, int num_sms, int most,
                           ms_cuda_ctas *out);

/* NCCL's share of a rank's device memory, outside the arena (docs/formulas 7.6.2). */
typedef struct ms_cuda_comm_memory {
    int num; /* communicators, those that only serve splits included */
    /* buffers of their connections in rings and of messages, if NCCL takes as many
     * channels as it may and its buffers have their default sizes; trees, NVLS and
     * all-to-alls have further ones */
    double buffer_bytes;
} ms_cuda_comm_memory;

/* A rank's communicators under the bounds `ctas`. NCCL connects ranks at a communicator's
 * first use (since 2.22), so those for splits have no buffers. */
ms_cuda_comm_memory ms_cuda_channels_memory(const ms_cuda_channels *channels,
                                            const ms_world *world, long rank,
                                            const ms_cuda_ctas *ctas);

/* Number of streams, and so of hardware queues, that a rank uses besides `fixed` ones. */
static inline int ms_cuda_channels_streams(const ms_cuda_channels *channels, int fixed)
{
    return fixed + channels->most_channels;
}

/* Index of the rank's channel in a split of the world communicator; -1 if none. */
long ms_cuda_channel_of(const ms_cuda_channels *channels, int round, long rank);

#endif
