/* The NCCL communicators that a plan's ranks need, and the order in which they are made:
 * the same on every rank, derived from the plan alone. */
#ifndef MS_EXEC_CUDA_CUDA_CHANNELS_H
#define MS_EXEC_CUDA_CUDA_CHANNELS_H

#include "exec/core/world.h"
#include "sim/engine/graph.h"

/* A kind of communicator, per group and stream: its collectives run one after another. */
typedef struct ms_cuda_kind {
    unsigned char group;  /* value of ms_traffic_group */
    unsigned char stream; /* value of ms_stream */
    /* the group has all ranks in order and uses the world communicator */
    bool is_world;
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
    /* [group][stream]: index into `kinds`; -1 for groups of one rank */
    int kind_of[MS_NUM_TRAFFIC_GROUPS][MS_NUM_STREAMS];
    int num_rounds;
    long num_channels;
    ms_cuda_channel *channels; /* sorted by round, then by sender */
} ms_cuda_channels;

/* Lists a plan's communicators, in the arena. Kinds: one per group of several ranks and
 * stream; equal groups share it. Channels join a rank to the next, the previous and the
 * mirrored one of its pipeline, and the next of its ring (context parallelism). */
ms_cuda_channels ms_cuda_channels_make(ms_arena *arena, const ms_world *world);

/* Index of the rank's channel in a split of the world communicator; -1 if none. */
long ms_cuda_channel_of(const ms_cuda_channels *channels, int round, long rank);

#endif
