/* Initial values of weights: SplitMix64 (base/rng.c) and Box-Muller, as in
 * ms_initial_value (exec/params/names.c). */
#include "exec/cuda/cuda_initialise.h"

#include "exec/cuda/cuda_device.cuh"

#include <math.h>

#define THREADS 256

#define PI 3.14159265358979323846

namespace
{

/* The seed that ms_rng_split (base/rng.h) makes of a generator's seed and a key. */
__device__ uint64_t split(uint64_t seed, uint64_t key)
{
    return ms_mix(ms_mix(seed + MS_GOLDEN_GAMMA) ^ ms_mix(key * MS_GOLDEN_GAMMA + 1));
}

__device__ double next_uniform(uint64_t *state)
{
    *state += MS_GOLDEN_GAMMA;
    return (double)(ms_mix(*state) >> 11) *
           (1.0 / 9007199254740992.0); /* divides by 2^53 */
}

__device__ double initial_value(const ms_initial_piece &how, long place)
{
    uint64_t state = split(how.key, (uint64_t)place);
    double first = next_uniform(&state);
    if (how.is_norm || how.is_bias)
        return (how.is_norm ? 1.0 : 0.0) + times(how.spread, 2.0 * first - 1.0);
    double angle = 2.0 * PI * next_uniform(&state);
    return how.deviation * sqrt(-2.0 * log(1.0 - first)) * cos(angle);
}

/* Index in the whole tensor of element number `element` of this rank's shard. */
__device__ long place_of(const ms_initial_piece &how, long element)
{
    long place = how.offset;
    for (int d = how.num_dims - 1; d >= 0; d--) {
        long outer = element / how.shape[d];
        place += (how.start[d] + element - outer * how.shape[d]) * how.stride[d];
        element = outer;
    }
    return place;
}

template <class T> __global__ void initialise(T *to, ms_initial_piece how)
{
    long step = (long)gridDim.x * blockDim.x;
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < how.number;
         i += step) {
        long place = place_of(how, how.first + i);
        double x = place < how.count ? initial_value(how, place) : 0.0;
        if (how.in_bf16)
            x = (double)value(stored<bf16>((float)x));
        to[i] = stored<T>((typename number<T>::sum)x);
    }
}

} // namespace

/* ---- launches ---- */

void ms_cuda_initialise(ms_cuda_stream *stream, ms_scalar scalar, void *to,
                        const ms_initial_piece *piece)
{
    if (piece->number <= 0)
        return;
    unsigned num = ms_blocks(piece->number, THREADS, MS_MANY_BLOCKS);
    MS_BY_SCALAR(scalar, T,
                 MS_LAUNCH((initialise<T>), num, THREADS, 0, stream, (T *)to, *piece));
}
