/* Seeded random numbers: SplitMix64 (Steele, Lea and Flood 2014), 64-bit state, splittable. */
#ifndef MS_BASE_RNG_H
#define MS_BASE_RNG_H

#include <stdint.h>

typedef struct ms_rng {
    uint64_t state;
    uint64_t seed; /* what splitting starts from, whatever was drawn */
} ms_rng;

ms_rng ms_rng_seed(uint64_t seed);
/* An independent stream that depends on the seed and `key` only, not on how much was drawn. */
ms_rng ms_rng_split(ms_rng rng, uint64_t key);
uint64_t ms_rng_next(ms_rng *rng);
/* Uniform in [0, bound); bound > 0. */
uint64_t ms_rng_below(ms_rng *rng, uint64_t bound);
/* Uniform in [0, 1). */
double ms_rng_uniform(ms_rng *rng);

#endif
