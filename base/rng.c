/* SplitMix64: Steele, Lea and Flood, OOPSLA 2014, figure 16 (finaliser: variant 13). */
#include "base/rng.h"

#include <assert.h>
#include <math.h>

#define GOLDEN_GAMMA 0x9E3779B97F4A7C15u

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

ms_rng ms_rng_seed(uint64_t seed)
{
    return (ms_rng){.state = seed, .seed = seed};
}

ms_rng ms_rng_split(ms_rng rng, uint64_t key)
{
    /* mixed before and after XOR: related seeds and keys give no shifted streams */
    return ms_rng_seed(mix(mix(rng.seed + GOLDEN_GAMMA) ^ mix(key * GOLDEN_GAMMA + 1)));
}

uint64_t ms_rng_next(ms_rng *rng)
{
    rng->state += GOLDEN_GAMMA;
    return mix(rng->state);
}

uint64_t ms_rng_below(ms_rng *rng, uint64_t bound)
{
    assert(bound > 0);
    /* 2^64 mod bound: draws below it are repeated, so all results are equally likely */
    uint64_t num_surplus = (UINT64_MAX - bound + 1) % bound;
    uint64_t drawn;
    do {
        drawn = ms_rng_next(rng);
    } while (drawn < num_surplus);
    return drawn % bound;
}

double ms_rng_uniform(ms_rng *rng)
{
    return (double)(ms_rng_next(rng) >> 11) * 0x1p-53;
}

double ms_rng_normal(ms_rng *rng)
{
    double u = 1.0 - ms_rng_uniform(rng), v = ms_rng_uniform(rng);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}
