/* How a tensor lies on one mesh axis. A tensor on a mesh has one placement per axis; they
 * are read outer to inner as successive splits (DTensor, pytorch
 * torch/distributed/tensor/placement_types.py). */
#ifndef MS_COSTMODEL_TENSOR_PLACEMENT_H
#define MS_COSTMODEL_TENSOR_PLACEMENT_H

#include <stdbool.h>

typedef enum ms_placement_kind {
    MS_REPLICATE,
    MS_SHARD, /* one dim is split over the axis */
    /* the value is the sum over the axis; of the others their reduction */
    MS_PARTIAL_SUM,
    MS_PARTIAL_MAX,
    MS_PARTIAL_MIN,
    MS_PARTIAL_AVG,
    MS_NUM_PLACEMENTS
} ms_placement_kind;
/* How a partial value is reduced: "sum", "max", "min", "avg"; NULL for the others. */
extern const char *const ms_reduction_names[MS_NUM_PLACEMENTS];

typedef struct ms_placement {
    unsigned char kind;
    char dim; /* letter, MS_SHARD only */
    /* MS_SHARD: 0 or 1: contiguous chunks. f > 1: the dim is cut into f pieces and every
     * piece is split, so that a rank holds a part of each (_StridedShard of DTensor). */
    int split_factor;
} ms_placement;

extern const ms_placement ms_replicate;
ms_placement ms_shard(char letter);
bool ms_placement_equal(ms_placement a, ms_placement b);
/* Any of MS_PARTIAL_*. */
bool ms_placement_is_partial(ms_placement placement);
/* Pieces that a Shard cuts its dim into before it splits them: 1 when contiguous. */
int ms_placement_pieces(ms_placement placement);
/* "R", "S(b)", "SS(b,2)", "P", "P(max)" into buf, which holds MS_PLACEMENT_TEXT bytes;
 * returns buf. */
#define MS_PLACEMENT_TEXT 24
char *ms_placement_text(ms_placement placement, char *buf);

#endif
