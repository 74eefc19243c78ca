/* Folder exec/measure: times kernels and collectives on this machine, for calibration;
 * the fits to these times are in costmodel/calibrate.
 *
 * Calibration benchmark: measures times of a backend's kernels and transfers on this
 * machine. All ranks work at once, as in a run. */
#ifndef MS_EXEC_MEASURE_MEASURE_H
#define MS_EXEC_MEASURE_MEASURE_H

#include "costmodel/calibrate/calibration.h"
#include "exec/core/backend.h"
#include "exec/cuda/cuda_backend.h"

/* One launch of the benchmark: all ranks measure once. */
typedef struct ms_measure {
    const ms_backend *backend;
    ms_real_type type;
    long num_ranks;
    bool kernels; /* whether to measure kernels, not only collectives */
    bool quick;   /* fewer and smaller shapes; fewer message sizes */
    /* shapes that fill a GPU (GEMMs of 256 to 16384); false: small models' shapes */
    bool large;
    /* kernel_s, collective_s: seconds to spend on each, but at least 3 rounds */
    double kernel_s;
    double collective_s;
    /* kernels of GPUs: owner of attention's; choices of GEMM algorithms, of which missing
     * ones are found before anything is measured (NULL: the library's own) */
    ms_run_attention attention;
    struct ms_cuda_gemm_choices *gemm_choices;
    ms_cuda_attention_use *attention_use; /* set after a launch on a GPU; NULL: no use */
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
 * sample is a median over rounds (steps take typical times, not minima), of the slowest
 * rank.
 *
 * CPU kernels count their thread's CPU time, without other programs. If the host runs
 * ahead of the device (the backend has read_clock), a kernel's time is taken between two
 * time stamps around as many calls as take a millisecond; work before them keeps the
 * device busy until all calls are enqueued. A warm-up comes first, until the time of the
 * largest GEMM is steady, at most 8 s (2 s if quick). Operands are standard normal numbers;
 * MS_SAMPLE_ZERO_GEMM has zeros, which need less power.
 * MS_SAMPLE_LAUNCH is the host's time to launch one small kernel. Shapes are those of
 * layer programs of small models. Weights and messages are at random places of memory,
 * activations at fixed ones. Collectives are over all ranks and of 8 B to 64 MiB,
 * doubling (times 8 if quick).
 *
 * Appends samples in the process of rank 0. Fails if the backend does. */
ms_status ms_measure_launch(ms_ctx *cx, const ms_measure *how, ms_samples *samples);

/* Processor, caches, memory, kernel, compiler, BLAS; no names of hosts or users. */
ms_machine ms_machine_here(ms_arena *arena);
/* Adds the GPU that ranks run on to a machine's description. */
void ms_machine_add_gpu(ms_arena *arena, const ms_cuda_facts *facts, ms_machine *machine);
/* Name of the cluster description, shipped with the program, for the GPU that its driver
 * calls `name`, by the list "drivers" in configs/names/devices.json. NULL if there is
 * none, or if the list cannot be read, which is an error in `cx`. */
const char *ms_machine_cluster_of_gpu(ms_ctx *cx, const char *name);
/* Number of cores that this process may run on (its affinity); those online if unknown. */
long ms_machine_cores(void);

#endif
