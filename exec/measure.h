/* Times of a backend's kernels and transfers on this machine: what a calibration is made
 * from. Every rank works at once, as in a run. */
#ifndef MS_EXEC_MEASURE_H
#define MS_EXEC_MEASURE_H

#include "costmodel/calibration.h"
#include "exec/backend.h"
#include "exec/cuda_driver.h"

/* One launch: a world of ranks that measures once. */
typedef struct ms_measure {
    const ms_backend *backend;
    ms_real_type type;
    long num_ranks;
    bool kernels; /* products, attention, pointwise operations, the optimizer's pass */
    bool quick;   /* fewer and smaller shapes, fewer sizes of messages */
    /* shapes that fill a GPU: of products 256 to 16384; otherwise those of small models */
    bool large;
    /* how long to measure kernels, and collectives, at least 3 rounds each */
    double kernel_s;
    double collective_s;
    int launch; /* number of the launch; seeds the order of cases */
    /* For tests on devices that are slow and have odd clocks; 0: as the text below says. */
    long most_calls;           /* between two stamps */
    int most_shapes;           /* of a kind of sample and operation */
    size_t least_region_bytes; /* of memory in which weights lie anywhere */
} ms_measure;

/* Every case is measured in rounds; a round has all cases once, in another random order
 * each time. A sample is the median over the rounds (steps take typical times, not the
 * least), of the slowest rank; kernels by the time that their thread was at work, so that
 * other programs on the machine do not count. Where the program runs ahead of the rank's
 * compute (read_clock), a case is as many calls as take a millisecond, between two
 * stamps, behind work that keeps the device busy until the host has given it all of them;
 * everything is warmed up for half a second; and one small kernel more is timed by the
 * host (MS_SAMPLE_LAUNCH). Shapes are those of the nodes of small models' layer programs,
 * so all three forms of a product (forward, for inputs, for weights) are among them;
 * weights and messages lie at random places of memory, activations always at the same.
 * Collectives over all ranks of 8 B to 64 MiB, sizes doubling (times 8 when quick), start
 * together. Appends samples in the process of rank 0. Errors: those of the backend,
 * and no memory. */
ms_dtype ms_measure_dtype(ms_real_type type); /* as layer programs call it */
ms_status ms_measure_launch(ms_ctx *cx, const ms_measure *how, ms_samples *samples);

/* Processor, caches, memory, kernel, compiler, BLAS of this process. No names of hosts or users. */
ms_machine ms_machine_here(ms_arena *arena);
/* ... and the GPU that ranks are on. */
void ms_machine_add_gpu(ms_arena *arena, const ms_cuda_facts *facts, ms_machine *machine);
/* The shipped cluster whose devices have the name that a driver tells, by the list of
 * "drivers" in configs/names/devices.json. NULL: none is known, or the list cannot be
 * read, which is an error in `cx`. */
const char *ms_machine_cluster_of_gpu(ms_ctx *cx, const char *name);
long ms_machine_cores(void); /* that this process may use */

#endif
