#include "cli/cmd/run_gemms.h"

#include "cli/options/output.h"

ms_status ms_run_gemms_open(ms_ctx *cx, const char *path, const ms_backend *backend,
                            bool is_alone, ms_cuda_gemm_choices **out)
{
    *out = NULL;
    if (path == NULL || backend == NULL || !backend->on_gpu)
        return MS_OK;
    if (is_alone)
        MS_TRY(ms_output_check_writable(cx, path));
    else
        ms_note(cx, "several processes: GEMMs that %s lacks are not timed", path);
    return ms_cuda_gemm_choices_open(cx, path, is_alone, out);
}

static ms_status write_choices(ms_ctx *cx, const char *path,
                               const ms_cuda_gemm_choices *choices)
{
    ms_output out;
    MS_TRY(ms_output_open(cx, path, &out));
    ms_cuda_gemm_choices_write(choices, &out.json);
    return ms_output_close(cx, &out, MS_OK);
}

ms_status ms_run_gemms_close(ms_ctx *cx, const char *path, ms_cuda_gemm_choices *choices,
                             ms_status status)
{
    if (choices == NULL)
        return status;
    long num_new = ms_cuda_gemm_choices_num_new(choices);
    ms_status written = MS_OK;
    if (num_new > 0)
        written = write_choices(cx, path, choices);
    if (num_new > 0 && written == MS_OK)
        ms_note(cx, "%s: %ld GEMM%s timed", path, num_new, num_new == 1 ? "" : "s");
    ms_cuda_gemm_choices_close(choices);
    return status == MS_OK ? written : status;
}
