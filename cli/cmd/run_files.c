#include "cli/cmd/run_files.h"

#include "cli/options/output.h"
#include "exec/runner/run_trace.h"

#include <string.h>

static ms_status check_is_file(ms_ctx *cx, const char *option, const char *path)
{
    if (path == NULL || strcmp(path, "-") != 0)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s is \"-\", must be a file", option);
    return ms_hint(cx, "standard output is for the result");
}

ms_status ms_run_files_check(ms_ctx *cx, const ms_run_flags *f, const char *output)
{
    MS_TRY(check_is_file(cx, "--trace", f->trace));
    MS_TRY(check_is_file(cx, "--save-weights", f->save_weights));
    MS_TRY(check_is_file(cx, "--save-final-weights", f->save_final_weights));
    MS_TRY(check_is_file(cx, "--save-grads", f->save_grads));
    MS_TRY(check_is_file(cx, "--save-batch", f->save_batch));
    MS_TRY(check_is_file(cx, "--gemm-algorithms", f->gemm_algorithms));
    return ms_output_check_distinct(
        cx,
        (const char *const[]){f->tokens, f->load_weights, output, f->trace,
                              f->save_weights, f->save_final_weights, f->save_grads,
                              f->save_batch, f->gemm_algorithms},
        9);
}

ms_status ms_run_files_check_writable(ms_ctx *cx, const ms_run_flags *f,
                                      const char *output)
{
    const char *const paths[] = {output,          f->trace,
                                 f->save_weights, f->save_final_weights,
                                 f->save_grads,   f->save_batch};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        MS_TRY(ms_output_check_writable(cx, paths[i]));
    return MS_OK;
}

static ms_safe_tensor batch_tensor(ms_arena *arena, const char *name,
                                   const ms_tokens *tokens, double **values)
{
    ms_safe_tensor tensor = {.name = name,
                             .type = MS_SAFE_I64,
                             .num_dims = 2,
                             .shape = {tokens->global_batch, tokens->sequence_length},
                             .count = tokens->global_batch * tokens->sequence_length};
    *values = MS_NEW_ARRAY(arena, tensor.count, double);
    tensor.values = *values;
    return tensor;
}

static ms_status write_batch(ms_ctx *cx, const char *path, const ms_tokens *tokens)
{
    double *inputs, *labels;
    ms_safe_tensor tensors[] = {batch_tensor(cx->arena, "input_ids", tokens, &inputs),
                                batch_tensor(cx->arena, "labels", tokens, &labels)};
    long length = tokens->sequence_length;
    int *input = MS_NEW_ARRAY(cx->arena, length, int);
    int *target = MS_NEW_ARRAY(cx->arena, length, int);
    for (long sequence = 0; sequence < tokens->global_batch; sequence++) {
        ms_tokens_sequence(tokens, 0, sequence, input, target);
        for (long i = 0; i < length; i++) {
            inputs[sequence * length + i] = input[i];
            labels[sequence * length + i] = target[i];
        }
    }
    return ms_safetensors_write(cx, path, &(ms_safe_file){2, tensors});
}

static ms_status write_trace(ms_ctx *cx, const char *path, const ms_run_report *r)
{
    ms_run_trace trace = {r->plan,
                          r->backend,
                          r->measured.step_s,
                          r->measured.num_steps,
                          r->outcome->num_ranks,
                          r->outcome->ranks,
                          &r->measured.kinds};
    ms_output out;
    MS_TRY(ms_output_open(cx, path, &out));
    ms_run_trace_write(out.file, cx->arena, &trace);
    MS_TRY(ms_output_close(cx, &out, MS_OK));
    ms_note(cx, "the trace is in %s; ui.perfetto.dev and chrome://tracing open it", path);
    return MS_OK;
}

/* Notes what a file of initial weights lacks, or has in vain, and flags without effect
 * beside it. */
static void note_loaded(ms_ctx *cx, const ms_run_flags *f,
                        const ms_loaded_weights *loaded)
{
    if (f->load_weights == NULL)
        return;
    if (loaded->num_drawn > 0)
        ms_note(cx, "%s has no adapters: of each, A is drawn and B is 0",
                f->load_weights);
    if (loaded->num_unread > 0)
        ms_note(cx, "%s has %d tensor%s that the run does not read, first \"%s\"",
                f->load_weights, loaded->num_unread, loaded->num_unread == 1 ? "" : "s",
                loaded->first_unread);
    if (f->seed.given && f->tokens != NULL && loaded->num_drawn == 0)
        ms_note(cx, "--seed has no effect: tokens and weights are from files");
    if (f->deviation.given && loaded->num_drawn == 0)
        ms_note(cx, "--init-std has no effect: weights are from %s", f->load_weights);
}

ms_status ms_run_files_write(ms_ctx *cx, const ms_run_flags *f,
                             const ms_runner_options *options, const ms_run_report *r)
{
    note_loaded(cx, f, &r->outcome->loaded);
    if (f->save_batch != NULL)
        MS_TRY(write_batch(cx, f->save_batch, &options->tokens));
    if (r->outcome->steps_done == 0)
        return MS_OK;
    if (f->save_weights != NULL)
        MS_TRY(ms_safetensors_write(cx, f->save_weights, &r->outcome->weights));
    if (f->save_final_weights != NULL && r->outcome->broken_off)
        ms_note(cx, "the last step was broken off: %s is not written",
                f->save_final_weights);
    else if (f->save_final_weights != NULL)
        MS_TRY(ms_safetensors_write(cx, f->save_final_weights, &r->outcome->updated));
    if (f->save_grads != NULL)
        MS_TRY(ms_safetensors_write(cx, f->save_grads, &r->outcome->gradients));
    return f->trace == NULL ? MS_OK : write_trace(cx, f->trace, r);
}
