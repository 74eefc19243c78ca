/* The options that choose among kernels of backend cuda, in the tables of commands that run
 * them: in a `run`, and where `calibrate` measures them for its profile. */
#ifndef MS_CLI_OPTIONS_KERNEL_OPTIONS_H
#define MS_CLI_OPTIONS_KERNEL_OPTIONS_H

#include "base/options.h"
#include "exec/cuda/cuda_backend.h"

/* Rows of a table that fills `type`, which has the members `attention` (an ms_opt_choice of
 * an ms_run_attention) and `gemm_algorithms` (path of a file; NULL: not given). */
#define MS_KERNEL_OPTION_ROWS(type)                                                      \
    MS_OPT_CHOICE(type, attention, "--attention", ms_run_attention_names,                \
                  "kernels of attention in bf16 with backend cuda: own; cudnn, where "   \
                  "cuDNN is installed and can; cudnn-deterministic, with equal "         \
                  "gradients in every run and memory for all scores (default own)"),     \
        MS_OPT_TEXT(type, gemm_algorithms, "--gemm-algorithms", "FILE",                  \
                    "with cuda: take the algorithms of GEMMs from FILE; time those "     \
                    "that it lacks before anything is measured, and add them")

/* Notes which of both is given without a GPU, where it has no effect. */
void ms_kernel_options_note_idle(ms_ctx *cx, ms_opt_choice attention,
                                 const char *gemm_algorithms, bool on_gpu);

#endif
