#include "exec/cuda/vendor_gemm_timing.h"

#include "base/clock.h"

#include <math.h>
#include <time.h>

/* Candidates take turns, so that slower clocks and other work meet all of them. Numbers of
 * rounds and runs, and the gain, are choices: no GPU has shown the noise yet. */
#define NUM_ROUNDS  3
#define RUNS_A_TURN 3
/* Least gain for which the library's own first choice is left. */
#define LEAST_GAIN_FRAC 0.02
#define S_PER_MS        1e-3
#define PAUSE_NS        20000
#define MOST_WAIT_S     60.0

typedef struct events {
    cudaEvent_t begin, end;
} events;

/* Waits with a deadline: earlier work of the stream may wait for a rank that has failed. */
static ms_status wait_for(ms_ctx *cx, cudaEvent_t event)
{
    const struct timespec pause = {0, PAUSE_NS};
    double start_s = ms_clock_s();
    cudaError_t error;
    while ((error = cudaEventQuery(event)) == cudaErrorNotReady) {
        if (ms_clock_s() - start_s > MOST_WAIT_S)
            return ms_fail(cx, MS_EIO, MS_NOWHERE,
                           "a GEMM that is timed has not ended after %g s", MOST_WAIT_S);
        nanosleep(&pause, NULL);
    }
    return error == cudaSuccess ? MS_OK : ms_cuda_failed(cx, error, "cudaEventQuery(");
}

static ms_status time_turn(ms_ctx *cx, cudaStream_t stream, const ms_cuda_candidates *c,
                           int candidate, events at, double *seconds)
{
    bool runs = c->run(c->state, candidate, stream); /* not timed: loads its kernel */
    float elapsed_ms = 0;
    MS_TRY_CUDA(cx, cudaEventRecord(at.begin, stream));
    for (int i = 0; i < RUNS_A_TURN && runs; i++)
        runs = c->run(c->state, candidate, stream);
    MS_TRY_CUDA(cx, cudaEventRecord(at.end, stream));
    MS_TRY(wait_for(cx, at.end));
    MS_TRY_CUDA(cx, cudaEventElapsedTime(&elapsed_ms, at.begin, at.end));
    double turn_s = S_PER_MS * (double)elapsed_ms / RUNS_A_TURN;
    *seconds = runs ? fmin(*seconds, turn_s) : HUGE_VAL;
    return MS_OK;
}

static ms_status time_all(ms_ctx *cx, cudaStream_t stream, const ms_cuda_candidates *c,
                          events at, double *seconds)
{
    for (int i = 0; i < c->num; i++)
        seconds[i] = HUGE_VAL;
    for (int round = 0; round < NUM_ROUNDS; round++)
        for (int i = 0; i < c->num; i++)
            if (round == 0 || isfinite(seconds[i]))
                MS_TRY(time_turn(cx, stream, c, i, at, &seconds[i]));
    return MS_OK;
}

ms_status ms_cuda_time_candidates(ms_ctx *cx, cudaStream_t stream,
                                  const ms_cuda_candidates *candidates,
                                  double seconds[MS_CUDA_GEMM_CANDIDATES])
{
    events at = {0};
    MS_TRY_CUDA(cx, cudaEventCreate(&at.begin));
    cudaError_t error = cudaEventCreate(&at.end);
    ms_status status = error != cudaSuccess
                           ? ms_cuda_failed(cx, error, "cudaEventCreate(")
                           : time_all(cx, stream, candidates, at, seconds);
    if (at.end != NULL)
        (void)cudaEventDestroy(at.end);
    (void)cudaEventDestroy(at.begin);
    return status;
}

int ms_cuda_fastest_candidate(int num, const double seconds[MS_CUDA_GEMM_CANDIDATES])
{
    int best = 0;
    for (int i = 1; i < num; i++)
        if (seconds[i] < seconds[best])
            best = i;
    bool gains = seconds[best] < (1.0 - LEAST_GAIN_FRAC) * seconds[0];
    return gains ? best : 0;
}
