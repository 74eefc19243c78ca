/* Shared by the files of exec/unit*.c: segments of parameters, and the tensors in them. */
#ifndef MS_EXEC_UNIT_PRIV_H
#define MS_EXEC_UNIT_PRIV_H

#include "exec/unit.h"

#define MS_MAX_SEGMENTS 3

/* Elements first .. end - 1. */
typedef struct ms_range {
    long first, end;
} ms_range;
ms_range ms_range_overlap(ms_range a, ms_range b); /* empty: end == first */
long ms_range_length(ms_range range);

/* Elements are counted from the segment's start. Tensors lie in the order: gradients that
 * are complete on each tp rank, gradients that are partial over tp, no gradient; so each
 * kind is one range. */
typedef struct ms_segment {
    bool is_expert;
    ms_traffic_group shard_group;
    int num_shards;
    long count;       /* padded */
    ms_range own;     /* the rank's shard; everything when nothing is sharded */
    ms_range partial; /* gradients that are partial over tp */
    long num_updated; /* what has a gradient */
    /* what is kept of parameters and gradients: everything, or the own shard */
    ms_range kept_params, kept_grads;
    void *params, *grads, *moments[2], *master;
    void *whole; /* ZeRO 3 kept: everything, gathered */
    bool has_reduced;
    void *reduced; /* the own shard of gradients that were whole, as long as it has one */
} ms_segment;

typedef struct ms_unit_tensor {
    int weight, gradient; /* of the program; gradient -1: none */
    int segment;
    long first; /* element of the segment */
    ms_local local;
    ms_weight_name name;
    bool is_partial; /* its gradient, over tp */
    bool counts;     /* the rank answers for the elements in its shard */
} ms_unit_tensor;

struct ms_param_unit {
    ms_unit_options options;
    ms_sharding sharding;
    ms_precision precision;
    int num_segments;
    ms_segment *segments[MS_MAX_SEGMENTS]; /* a borrowed one first */
    int num_borrowed;
    int matrix; /* segment of a tied matrix of its own; -1: none */
    int num_tensors;
    ms_unit_tensor *tensors;
    ms_unit_rooms *rooms; /* NULL: none made */
    /* element of a room, dense or of experts, where the segment begins */
    long room_first[MS_MAX_SEGMENTS];
    int num_users; /* of gathered parameters (ZeRO 3) */
    int room;      /* that they are in */
    ms_event gathered;
    ms_event last; /* of the moves of complete gradients */
};

/* Of parameters: the unit at work and the one ahead; of a forward and a backward in turns. */
#define MS_KEPT_ROOMS 2
#define MS_MAX_ROOMS  4

/* What units take turns in; of each dense elements and those of experts. */
struct ms_unit_rooms {
    int num_units;
    ms_param_unit **units;              /* (num_units) */
    long room_count[2], shard_count[2]; /* of the largest unit */
    void *params[MS_MAX_ROOMS][2];      /* from MS_KEPT_ROOMS on: while they are used */
    const ms_param_unit *holder[MS_MAX_ROOMS]; /* NULL: free */
    void *grads[2];
    void *reduced[2]; /* workspace: shards as they come from the reduction */
    const ms_param_unit *gradient_holder;
};

/* Memory of `count` elements, zeroed and counted. */
ms_status ms_unit_allocate(ms_rank *rank, ms_memory_part part, ms_scalar scalar,
                           long count, void **out);
void ms_unit_free(ms_rank *rank, ms_memory_part part, ms_scalar scalar, long count,
                  void **memory);
/* Memory of one room of parameters. */
ms_status ms_room_open(ms_rank *rank, ms_unit_rooms *rooms, int room);
void ms_room_close(ms_rank *rank, ms_unit_rooms *rooms, int room);

/* Memory of an element; NULL in runs without values. */
void *ms_unit_at(ms_scalar scalar, void *base, long element);
void *ms_segment_param(const ms_param_unit *unit, const ms_segment *segment,
                       long element);
/* Of the own shard. */
void *ms_segment_master(const ms_param_unit *unit, const ms_segment *segment,
                        long element);
/* Of the own shard, reduced or not. */
void *ms_segment_gradient(const ms_param_unit *unit, const ms_segment *segment,
                          long element);

/* A move of state: one transfer for each segment that it concerns. */
typedef struct ms_unit_move {
    ms_rank *rank;
    ms_param_unit *unit;
    double predicted_s[2]; /* dense, expert: of the first transfer, then 0 */
    const ms_event *after;
    int num_after;
    ms_event *done;
} ms_unit_move;

/* Starts a transfer for a segment, unless it takes no time in a run without values: then
 * `done` stays as it is. */
ms_status ms_unit_start(ms_unit_move *move, const ms_segment *segment,
                        ms_transfer transfer);

#endif
