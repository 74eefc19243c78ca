#include "cli/cmd/run_replay.h"

#include "cli/options/interrupt.h"
#include "cli/options/output.h"
#include "cli/options/run_memory.h"
#include "exec/runner/outcome_collect.h"
#include "sim/simulate/interference.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- flags ---- */

/* Reads "rank=R"; *rank -1: "stages". */
static ms_status read_ranks(ms_ctx *cx, const char *text, long *rank)
{
    static const char prefix[] = "rank=";
    size_t length = sizeof prefix - 1;
    char *end = NULL;
    *rank = -1;
    if (strcmp(text, "stages") == 0)
        return MS_OK;
    if (strncmp(text, prefix, length) == 0 && text[length] >= '0' && text[length] <= '9')
        *rank = strtol(text + length, &end, 10);
    if (end != NULL && *end == '\0' && *rank < LONG_MAX)
        return MS_OK;
    return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                   "--replay is \"%s\", must be stages or rank=R", text);
}

ms_status ms_run_replay_check(ms_ctx *cx, const ms_run_flags *f)
{
    long rank;
    const char *refused[] = {f->check ? "--check" : NULL,
                             f->save_weights != NULL ? "--save-weights" : NULL,
                             f->save_final_weights != NULL ? "--save-final-weights"
                                                           : NULL,
                             f->save_grads != NULL ? "--save-grads" : NULL,
                             f->save_batch != NULL ? "--save-batch" : NULL,
                             f->trace != NULL ? "--trace" : NULL};
    MS_TRY(read_ranks(cx, f->replay, &rank));
    if (f->transport.given && f->transport.value != MS_CUDA_MODELLED) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "--transport is %s, and --replay has no others",
                ms_cuda_transport_names[f->transport.value]);
        return ms_hint(cx, "--transport modelled is the default with --replay");
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (refused[i] == NULL)
            continue;
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "%s needs all ranks, and --replay executes one alone", refused[i]);
        return ms_hint(cx, "leave out one of both");
    }
    return MS_OK;
}

/* ---- one rank ---- */

static ms_status check_memory(ms_ctx *cx, const ms_run_prepared *run, long rank)
{
    ms_run_place place = {.world = run->world, .first_rank = rank, .num_ranks = 1};
    if (run->flags->force)
        return MS_OK;
    if (run->choice->backend->on_gpu)
        ms_run_place_on_gpus(cx, &place);
    ms_run_memory shortfall =
        ms_run_memory_of(cx, run->planned->workload, run->prediction, &place);
    return shortfall.reason != NULL ? ms_run_memory_fail(cx, &shortfall) : MS_OK;
}

static ms_status replay_rank(ms_ctx *cx, const ms_run_prepared *run, long rank,
                             ms_replayed *out)
{
    ms_runner_options how = *run->how;
    how.replays = how.balanced_routing = true;
    ms_backend_job job = {
        .backend = run->choice->backend,
        .world = run->world,
        .type = how.type,
        .timeout_s = run->flags->timeout_s.value,
        .interrupted = how.interrupted,
        .replayed_rank = rank,
        .gemm_choices = run->gemms,
        .attention = (ms_run_attention)run->flags->attention.value,
        .held_sms = run->flags->no_hold ? 0 : ms_comm_sms(run->planned->workload)};
    *out = (ms_replayed){.rank = rank, .pipeline_rank = (int)run->world->places[rank].pp};
    MS_TRY(check_memory(cx, run, rank));
    MS_TRY(job.backend->open(cx, &job));
    ms_status status = ms_runner_run(cx, &job, run->planned, &how, &out->outcome);
    out->on_gpu = status == MS_OK && job.backend->on_gpu &&
                  ms_cuda_job_used(&job, rank, &out->device);
    job.backend->close(&job);
    MS_TRY(status);
    if (out->on_gpu)
        ms_note_attention(cx, &out->device.attention);
    double tokens = (double)run->plan->global_batch * (double)run->plan->sequence_length;
    ms_measured_make(cx->arena, &out->outcome, how.first_recorded_step, tokens, NULL,
                     &out->measured);
    out->slowdowns =
        ms_kernel_slowdowns_make(cx->arena, &out->outcome.ranks[0].recorder,
                                 run->planned->workload->stack->interference_frac.value);
    return MS_OK;
}

/* ---- all ranks ---- */

/* The first rank with this pipeline rank; all of them execute alike. */
static long rank_of(const ms_world *world, int pipeline_rank)
{
    long rank = 0;
    while (world->places[rank].pp != pipeline_rank)
        rank++;
    return rank;
}

/* Replays one rank of each kind of pipeline rank, or `only`; -1: each. */
static ms_status replay_ranks(ms_ctx *cx, const ms_run_prepared *run, long only,
                              ms_recomposition *whole, ms_replay_report *report)
{
    ms_replayed *replayed = report->replayed;
    for (int pp = 0; pp < whole->num_ranks; pp++) {
        bool wanted =
            only < 0 ? whole->measured_by[pp] < 0 : run->world->places[only].pp == pp;
        if (!wanted)
            continue;
        ms_replayed *one = &replayed[report->num_replayed];
        long rank = only < 0 ? rank_of(run->world, pp) : only;
        ms_status status = replay_rank(cx, run, rank, one);
        if (status != MS_OK) {
            ms_outcome_close(&one->outcome);
            report->interrupted_rank = rank;
            return status;
        }
        report->num_replayed++;
        ms_recomposition_add(whole, pp, &one->outcome, report->warm_up);
    }
    return MS_OK;
}

/* Finds what the replayed ranks stand for, and the step that they make. */
static void put_together(ms_recomposition *whole, const ms_replay_report *report)
{
    for (int i = 0; i < report->num_replayed; i++) {
        ms_replayed *one = &report->replayed[i];
        for (int pp = 0; pp < whole->num_ranks; pp++)
            one->num_alike += whole->measured_by[pp] == one->pipeline_rank;
    }
    if (report->num_replayed > 0)
        ms_recompose(whole);
}

static ms_status write_result(ms_ctx *cx, const ms_run_prepared *run,
                              const ms_replay_report *report, ms_status status)
{
    ms_output out;
    MS_TRY(ms_output_open(cx, run->args->common.output, &out));
    if (run->args->common.json)
        ms_replay_write_json(&out.json, report);
    else
        ms_replay_print(out.file, cx->arena, report);
    return ms_output_close(cx, &out, status);
}

ms_status ms_run_replay(ms_ctx *cx, const ms_run_prepared *run)
{
    long only;
    MS_TRY(read_ranks(cx, run->flags->replay, &only));
    if (only >= run->plan->gpus)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "--replay is rank=%ld, but the plan has ranks 0 to %ld", only,
                       run->plan->gpus - 1);
    ms_recomposition whole = ms_recomposition_open(cx->arena, run->planned);
    ms_replay_report report = {.plan = run->plan,
                               .prediction = run->prediction,
                               .planned = run->planned,
                               .backend = run->choice->backend->name,
                               .dtype = ms_dtype_names[run->plan->compute],
                               .num_steps = run->how->num_steps,
                               .warm_up = run->how->first_recorded_step,
                               .interrupted_rank = -1,
                               .recomposition = &whole,
                               .replayed =
                                   MS_NEW_ARRAY(cx->arena, whole.num_ranks, ms_replayed)};
    ms_status status = replay_ranks(cx, run, only, &whole, &report);
    report.interrupted = status == MS_EINTERRUPTED;
    if (report.interrupted) {
        ms_fail(cx, status, MS_NOWHERE,
                "interrupted while rank %ld executed, after %d replayed rank%s",
                report.interrupted_rank, report.num_replayed,
                report.num_replayed == 1 ? "" : "s");
    }
    if (status == MS_OK || report.interrupted) {
        put_together(&whole, &report);
        status = write_result(cx, run, &report, status);
    }
    for (int i = 0; i < report.num_replayed; i++)
        ms_outcome_close(&report.replayed[i].outcome);
    return status;
}
