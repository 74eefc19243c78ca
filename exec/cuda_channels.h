/* Which communicators a plan's ranks need, and in which order all of them are made: the
 * same on every rank, from the plan alone. */
#ifndef MS_EXEC_CUDA_CHANNELS_H
#define MS_EXEC_CUDA_CHANNELS_H

#include "exec/world.h"
#include "sim/graph.h"

/* One communicator of every group of a kind, for collectives of one stream: those of
 * others would run one after the other with them. */
typedef struct ms_cuda_kind {
    unsigned char group;  /* ms_traffic_group */
    unsigned char stream; /* ms_stream */
    /* all ranks in the order of their numbers: the communicator that is there already */
    bool is_world;
} ms_cuda_kind;

/* Messages of one rank to another have a communicator of their own, in each direction: on
 * one that others use too, NCCL would let them wait for messages to others. */
typedef struct ms_cuda_channel {
    long from, to;
    int round; /* the world is split once a round, in which every rank has one channel at most */
} ms_cuda_channel;

#define MS_CUDA_MAX_KINDS 16

typedef struct ms_cuda_channels {
    int num_kinds;
    ms_cuda_kind kinds[MS_CUDA_MAX_KINDS];
    int kind_of[MS_NUM_TRAFFIC_GROUPS][MS_NUM_STREAMS]; /* -1: groups of one rank */
    int num_rounds;
    long num_channels;
    ms_cuda_channel *channels; /* by round, then by sender */
} ms_cuda_channels;

/* Kinds: groups of several ranks; those whose groups are the same sets share, for a
 * stream. Channels: between neighbours, ends and mirrored ranks of a pipeline, and to the
 * next rank of a ring (context parallelism). In the arena. */
ms_cuda_channels ms_cuda_channels_make(ms_arena *arena, const ms_world *world);

/* The channel in which a rank takes part in a round; -1: none. */
long ms_cuda_channel_of(const ms_cuda_channels *channels, int round, long rank);

#endif
