#include "costmodel/tensor/placement.h"

#include <stdio.h>

const ms_placement ms_replicate = {.kind = MS_REPLICATE};

const char *const ms_reduction_names[MS_NUM_PLACEMENTS] = {[MS_PARTIAL_SUM] = "sum",
                                                           [MS_PARTIAL_MAX] = "max",
                                                           [MS_PARTIAL_MIN] = "min",
                                                           [MS_PARTIAL_AVG] = "avg"};

ms_placement ms_shard(char letter)
{
    return (ms_placement){.kind = MS_SHARD, .dim = letter};
}

int ms_placement_pieces(ms_placement placement)
{
    return placement.split_factor > 1 ? placement.split_factor : 1;
}

bool ms_placement_equal(ms_placement a, ms_placement b)
{
    if (a.kind != b.kind)
        return false;
    return a.kind != MS_SHARD ||
           (a.dim == b.dim && ms_placement_pieces(a) == ms_placement_pieces(b));
}

bool ms_placement_is_partial(ms_placement placement)
{
    return ms_reduction_names[placement.kind] != NULL;
}

char *ms_placement_text(ms_placement placement, char *buf)
{
    int pieces = ms_placement_pieces(placement);
    if (placement.kind == MS_SHARD && pieces > 1)
        snprintf(buf, MS_PLACEMENT_TEXT, "SS(%c,%d)", placement.dim, pieces);
    else if (placement.kind == MS_SHARD)
        snprintf(buf, MS_PLACEMENT_TEXT, "S(%c)", placement.dim);
    else if (placement.kind == MS_PARTIAL_SUM || placement.kind == MS_REPLICATE)
        snprintf(buf, MS_PLACEMENT_TEXT, "%s",
                 placement.kind == MS_REPLICATE ? "R" : "P");
    else
        snprintf(buf, MS_PLACEMENT_TEXT, "P(%s)", ms_reduction_names[placement.kind]);
    return buf;
}
