/* Folder exec/measure: kernels and collectives of this machine timed for calibration;
 * the fits are in costmodel/calibrate.
 *
 * Calibration benchmark: measures times of a backend's kernels and transfers on this
 * machine. All ranks work at once, as in a run. */
#ifndef MS_EXEC_MEASURE_MEASURE_H
#define MS_EXEC_MEASURE_MEASURE_H

#include "costmodel/calibrate/calibration.h"
#include "exec/core/backend.h"
#include "exec/cuda/cuda_driver.h"

/* One launch of the benchmark: all ranks measure once. */
typedef struct ms_measure {
    const ms_backend *backend;
    ms_real_type type;
    long num_ranks;
    bool kernels; /* whether to measure kernels, not only collectives */
    bool quick;   /* fewer and smaller shapes, fewer message sizes */
    /* shapes that fill a GPU (GEMMs of 256 to 16384) instead of small models' shapes */
    bool large;
    /* kernel_s, collective_s: seconds to spend; at least 3 rounds are measured */
    double kernel_s;
    double collective_s;
    int launch; /* number of the launch; seeds the random order of cases */
    /* Limits that tests on slow devices set; 0: defaults of ms_measure_launch. */
    long most_calls; /* largest number of calls between two time stamps */
    int most_shapes; /* largest number of shapes per kind of sample and operation */
    /* size of the memory region in which weights are placed at random */
    size_t least_region_bytes;
} ms_measure;

/* The data type of measured tensors, as the cost model names it. */
ms_dtype ms_measure_dtype(ms_real_type type);
/* Measures every case in rounds; each round runs all cases once in a random order. A
 * sample is the median over rounds (steps take typical times, not minima) of the slowest
 * rank; kernels count the CPU time of their thread, without other programs. If the host
 * runs ahead of the device (read_clock), a case is as many calls as take a millisecond,
 * between two time stamps, behind work that keeps the device busy until all are enqueued,
 * after a warm-up of half a second; the launch of one small kernel is timed on the host
 * (MS_SAMPLE_LAUNCH). Shapes are those of small models' layer programs; weights and
 * messages are at random places of memory, activations at fixed ones. Collectives over
 * all ranks have 8 B to 64 MiB, doubling (times 8 if quick). Appends samples in the
 * process of rank 0. Errors: those of the backend, and lack of memory. */
ms_status ms_measure_launch(ms_ctx *cx, const ms_measure *how, ms_samples *samples);

/* Processor, caches, memory, kernel, compiler, BLAS; no names of hosts or users. */
ms_machine ms_machine_here(ms_arena *arena);
/* Adds the GPU that ranks run on to a machine's description. */
void ms_machine_add_gpu(ms_arena *arena, const ms_cuda_facts *facts, ms_machine *machine);
/* Name of the shipped cluster for a GPU with the name reported by its driver, by the list
 * "drivers" in configs/names/devices.json. NULL if none is known, or if the list cannot
 * be read, which is an error in `cx`. */
const char *ms_machine_cluster_of_gpu(ms_ctx *cx, const char *name);
long ms_machine_cores(void); /* number of cores that are online */

#endif
