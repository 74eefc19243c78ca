/* Seeded random numbers: SplitMix64 (Steele, Lea and Flood 2014), splittable. */
#ifndef MS_BASE_RNG_H
#define MS_BASE_RNG_H

#include <stdint.h>

typedef struct ms_rng {
    uint64_t state;
    uint64_t seed; /* start of the stream, from which others are split */
} ms_rng;

/* A stream that starts at `seed`. */
ms_rng ms_rng_seed(uint64_t seed);
/* A stream that depends only on rng's seed and `key`, not on numbers drawn. */
ms_rng ms_rng_split(ms_rng rng, uint64_t key);
/* The next 64 uniform random bits. */
uint64_t ms_rng_next(ms_rng *rng);
/* Uniform whole number in [0, bound); bound > 0. */
uint64_t ms_rng_below(ms_rng *rng, uint64_t bound);
/* Uniform double in [0, 1) with 53 random bits. */
double ms_rng_uniform(ms_rng *rng);
/* Standard normal number (Box and Muller 1958). */
double ms_rng_normal(ms_rng *rng);

#endif
