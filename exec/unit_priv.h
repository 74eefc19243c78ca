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

/* Elements are counted from the segment's start. Tensors lie in the order: gradients that are complete on each tp rank, gradients that are partial over tp, no gradient;
 * so each kind is one range. */
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
    void *params, *grads, *moments[2];
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
    size_t real_bytes;
    int num_segments;
    ms_segment *segments[MS_MAX_SEGMENTS]; /* a borrowed one first */
    int num_borrowed;
    int matrix; /* segment of a tied matrix of its own; -1: none */
    int num_tensors;
    ms_unit_tensor *tensors;
    ms_unit_rooms *rooms; /* NULL: none made */
    long room_first
        [MS_MAX_SEGMENTS]; /* element of a room, dense or of experts, where the segment begins */
    int num_gathered;
    int rooms_held[2]; /* (num_gathered): oldest first */
    ms_event last;     /* of the moves of complete gradients */
};

/* Rooms of dense and of expert elements. */
struct ms_unit_rooms {
    size_t real_bytes;
    int num_units;
    ms_param_unit **units;              /* (num_units) */
    long room_count[2], shard_count[2]; /* of the largest unit */
    int num_param_rooms;
    void *params[2][2];
    const ms_param_unit *holder[2]; /* of rooms of parameters; NULL: free */
    bool has_gradients;
    void *grads[2];
    void *reduced[2]; /* workspace: shards as they come from the reduction */
    const ms_param_unit *gradient_holder;
};

/* Whether the segment's parameters (gradients) are in rooms when they are whole. */
bool ms_segment_gathers(const ms_param_unit *unit, const ms_segment *segment);
bool ms_segment_shards_gradients(const ms_param_unit *unit, const ms_segment *segment);

/* Memory of an element; NULL in runs without values. */
void *ms_unit_at(const ms_param_unit *unit, void *base, long element);
void *ms_segment_param(const ms_param_unit *unit, const ms_segment *segment,
                       long element);
/* Of the own shard, reduced or not. */
void *ms_segment_gradient(const ms_param_unit *unit, const ms_segment *segment,
                          long element);

/* Starts it, unless it takes no time in a run without values. `done` stays as it is then. The prediction is used up: the next transfer has none. */
ms_status ms_unit_start(ms_rank *rank, ms_transfer *transfer, double *predicted_s,
                        const ms_event *after, int num_after, ms_event *done);

#endif
