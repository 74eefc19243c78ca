#include "cli/options/kernel_options.h"

#include "cli/options/output.h"

void ms_kernel_options_note_idle(ms_ctx *cx, ms_opt_choice attention,
                                 const char *gemm_algorithms, bool on_gpu)
{
    if (on_gpu)
        return;
    if (attention.value != MS_RUN_ATTENTION_OWN)
        ms_note(cx, "--attention has no effect: only backend cuda has a choice");
    if (gemm_algorithms != NULL)
        ms_note(cx, "--gemm-algorithms has no effect: only backend cuda takes them");
}
