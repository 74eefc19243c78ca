/* How a tensor lies on one mesh axis. On a mesh it has one placement per axis, read as
 * successive splits from the outermost axis on (DTensor, pytorch
 * torch/distributed/tensor/placement_types.py). */
#ifndef MS_COSTMODEL_TENSOR_PLACEMENT_H
#define MS_COSTMODEL_TENSOR_PLACEMENT_H

#include <stdbool.h>

typedef enum ms_placement_kind {
    MS_REPLICATE,
    MS_SHARD, /* one dim is split over the ranks of the axis */
    /* the value is the sum over the ranks of the axis */
    MS_PARTIAL_SUM,
    MS_PARTIAL_MAX,
    MS_PARTIAL_MIN,
    MS_PARTIAL_AVG,
    MS_NUM_PLACEMENTS
} ms_placement_kind;
/* [placement kind] its reduction: "sum", "max", "min", "avg"; NULL: not partial. */
extern const char *const ms_reduction_names[MS_NUM_PLACEMENTS];

typedef struct ms_placement {
    unsigned char kind;
    char dim; /* letter of the dim that MS_SHARD splits */
    /* MS_SHARD: f > 1: the dim is cut into f pieces, and each piece is split over the
     * axis (_StridedShard of DTensor); 0 or 1: contiguous parts */
    int split_factor;
} ms_placement;

extern const ms_placement ms_replicate;
ms_placement ms_shard(char letter);
bool ms_placement_equal(ms_placement a, ms_placement b);
/* Whether a placement's kind is any of MS_PARTIAL_*. */
bool ms_placement_is_partial(ms_placement placement);
/* Number of pieces that MS_SHARD cuts a dim into before the split; 1: contiguous. */
int ms_placement_pieces(ms_placement placement);
/* Writes a placement into `buf`: "R", "S(b)", "SS(b,2)", "P" or "P(max)"; returns buf. */
#define MS_PLACEMENT_TEXT 24
char *ms_placement_text(ms_placement placement, char *buf);

#endif
