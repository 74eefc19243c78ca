#include "costmodel/placement.h"

const ms_placement ms_replicate = {.kind = MS_REPLICATE};

ms_placement ms_shard(char letter)
{
    return (ms_placement){.kind = MS_SHARD, .dim = letter};
}

static int pieces(ms_placement placement)
{
    return placement.split_factor > 1 ? placement.split_factor : 1;
}

bool ms_placement_equal(ms_placement a, ms_placement b)
{
    if (a.kind != b.kind)
        return false;
    return a.kind != MS_SHARD || (a.dim == b.dim && pieces(a) == pieces(b));
}

bool ms_placement_is_partial(ms_placement placement)
{
    return placement.kind == MS_PARTIAL_SUM || placement.kind == MS_PARTIAL_MAX;
}
