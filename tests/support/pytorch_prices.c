#include "tests/support/pytorch_prices.h"

#include <math.h>

const ms_pytorch_constants ms_pytorch_defaults = {.gibibytes_per_s = 87.7,
                                                  .inter_host_frac = 0.22,
                                                  .base_us = 6.6,
                                                  .intra_hop_us = 0.6,
                                                  .inter_hop_us = 2.7,
                                                  .all_to_all_penalty_us = 1.0};

typedef struct pytorch_prices {
    const ms_mesh *mesh;
    const ms_pytorch_constants *constants;
    ms_axis_set between_hosts;
} pytorch_prices;

static double pytorch_seconds(void *data, ms_collective collective, ms_axis_set axes,
                              double size_bytes)
{
    const pytorch_prices *prices = data;
    const ms_pytorch_constants *c = prices->constants;
    double ranks = (double)ms_axis_set_ranks(prices->mesh, axes);
    if (collective == MS_SEND)
        return INFINITY;
    if (ranks <= 1.0)
        return 0.0;
    bool inter = (axes & prices->between_hosts) != 0;
    double rate = c->gibibytes_per_s * (inter ? c->inter_host_frac : 1.0);
    double hops = (collective == MS_ALL_REDUCE ? 2.0 : 1.0) * (ranks - 1.0);
    double gibibytes = size_bytes / (1024.0 * 1024.0 * 1024.0);
    double latency_us = c->base_us + hops * (inter ? c->inter_hop_us : c->intra_hop_us);
    if (collective == MS_ALL_TO_ALL)
        latency_us += c->all_to_all_penalty_us;
    return latency_us * 1e-6 + gibibytes * hops / ranks / rate;
}

ms_collective_prices ms_collective_prices_pytorch(ms_arena *arena, const ms_mesh *mesh,
                                                  const ms_pytorch_constants *constants,
                                                  long gpus_per_host)
{
    pytorch_prices *prices = MS_NEW(arena, pytorch_prices);
    prices->mesh = mesh;
    prices->constants = constants;
    long devices = 1;
    for (int i = mesh->num_axes - 1; i >= 0; i--) {
        devices *= mesh->axes[i].size;
        if (devices > gpus_per_host)
            prices->between_hosts |= 1U << i;
    }
    return (ms_collective_prices){pytorch_seconds, prices};
}
