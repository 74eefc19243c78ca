/* How a tensor lies on one mesh axis. A tensor on a mesh has one placement per axis; they are read outer to inner as successive
 * splits (DTensor, pytorch torch/distributed/tensor/placement_types.py). */
#ifndef MS_COSTMODEL_PLACEMENT_H
#define MS_COSTMODEL_PLACEMENT_H

#include <stdbool.h>

typedef enum ms_placement_kind {
    MS_REPLICATE,
    MS_SHARD, /* one dim is split over the axis */
    MS_PARTIAL_SUM,
    MS_PARTIAL_MAX
} ms_placement_kind;

typedef struct ms_placement {
    unsigned char kind;
    char dim; /* letter, MS_SHARD only */
    /* MS_SHARD: 0 or 1: contiguous chunks. f > 1: the dim is cut into f pieces and every piece is split, so that a rank holds a
     * part of each (_StridedShard of DTensor). */
    short split_factor;
} ms_placement;

extern const ms_placement ms_replicate;
ms_placement ms_shard(char letter);
bool ms_placement_equal(ms_placement a, ms_placement b);
/* MS_PARTIAL_SUM or MS_PARTIAL_MAX. */
bool ms_placement_is_partial(ms_placement placement);

#endif
