/* Choices among cuBLASLt's candidate algorithms of a GEMM by their times: a table that all
 * ranks of a process share, kept in a JSON file.
 *
 * The first answer for a GEMM stands, even if ranks find different ones, so that all
 * ranks of a process compute the same bits. */
#ifndef MS_EXEC_CUDA_CUDA_GEMM_CHOICES_H
#define MS_EXEC_CUDA_CUDA_GEMM_CHOICES_H

#include "base/json.h"
#include "exec/cuda/cuda_gemm_key.h"

typedef struct ms_cuda_gemm_choices ms_cuda_gemm_choices;

/* Most candidates of a GEMM, in the order of the library's own estimates. */
#define MS_CUDA_GEMM_CANDIDATES 5

typedef struct ms_cuda_gemm_choice {
    const char *device;   /* name of the GPU */
    long library_version; /* cuBLASLt's, in its own encoding */
    ms_cuda_gemm_key key;
    long candidate; /* index of the chosen candidate */
    /* seconds of the chosen and of the first candidate; NaN: not timed */
    double time_s, first_s;
} ms_cuda_gemm_choice;

/* Reads the table of a file; empty if there is none. `times`: GEMMs that it lacks may be
 * timed; otherwise they take the first candidate. Close it. MS_EINPUT: a broken file. */
ms_status ms_cuda_gemm_choices_open(ms_ctx *cx, const char *path, bool times,
                                    ms_cuda_gemm_choices **out);
/* Reads a table from text; `name` is the file name in messages. No GEMM is timed. */
ms_status ms_cuda_gemm_choices_parse(ms_ctx *cx, const char *name, const char *text,
                                     size_t length, ms_cuda_gemm_choices **out);
/* NULL is allowed. */
void ms_cuda_gemm_choices_close(ms_cuda_gemm_choices *choices);

bool ms_cuda_gemm_choices_times(const ms_cuda_gemm_choices *choices);
/* Finds the choice for a device, library and key; false if there is none. Thread-safe,
 * as is `add`. */
bool ms_cuda_gemm_choices_find(ms_cuda_gemm_choices *choices,
                               const ms_cuda_gemm_choice *like, ms_cuda_gemm_choice *out);
/* Adds a choice, unless the table has one, which then stands. Returns the one that
 * stands. */
ms_cuda_gemm_choice ms_cuda_gemm_choices_add(ms_cuda_gemm_choices *choices,
                                             const ms_cuda_gemm_choice *choice);

/* Number of choices that were timed since the file was read. */
long ms_cuda_gemm_choices_num_new(const ms_cuda_gemm_choices *choices);
/* Writes all timed choices, as `open` reads them. */
void ms_cuda_gemm_choices_write(const ms_cuda_gemm_choices *choices, ms_jout *out);

#endif
