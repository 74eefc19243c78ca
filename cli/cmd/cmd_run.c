/* meshsim run: executes the training steps of a plan and compares times with a
 * prediction. */
#include "base/clock.h"
#include "cli/cmd/run_backend.h"
#include "cli/cmd/run_files.h"
#include "cli/cmd/run_gemms.h"
#include "cli/cmd/run_replay.h"
#include "cli/options/commands.h"
#include "cli/options/interrupt.h"
#include "cli/options/output.h"
#include "cli/options/plan_command.h"
#include "cli/options/progress.h"
#include "cli/options/run_memory.h"
#include "cli/report/run_report.h"
#include "costmodel/plan/stack_choices.h"
#include "exec/backends/backends.h"
#include "exec/core/plan_types.h"
#include "exec/launch/launch.h"
#include "exec/measure/measure.h"
#include "exec/runner/model_features.h"
#include "exec/runner/outcome_collect.h"
#include "sim/simulate/interference.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GRACE_S          1.0 /* seconds after an interrupt for a training step to end */
#define END_WITHIN_S     9   /* seconds after an interrupt at which this process ends */
#define RANK_WITHIN_S    6   /* seconds after an interrupt at which mpiexec's ranks end */
#define PROGRESS_EVERY_S 2.0 /* seconds between progress lines on a terminal */

typedef struct request {
    ms_ctx *cx;
    const ms_args *args;
    ms_run_flags flags;
    ms_plan_options options;
    ms_plan plan;
    ms_run_choice choice;
    ms_cuda_gemm_choices *gemms;
    ms_workload *workload;
    ms_planned planned;
    ms_prediction prediction;
    ms_runner_options how;
    ms_world world;
    ms_outcome outcome;
    ms_run_check check;
    ms_cuda_used device; /* GPU that rank 0 uses; set for the backend cuda */
    ms_run_report report;
    const char *what;  /* prefix of progress lines: "" or "the same on one rank, " */
    double progress_s; /* time of the last progress line */
} request;

/* ---- progress ---- */

static bool is_watched(const request *r)
{
    return ms_launch_is_own() ? ms_launch_shows_progress()
                              : ms_progress_is_shown(r->args);
}

static void show_progress(void *state, const ms_run_position *at)
{
    request *r = state;
    double now = ms_clock_s();
    bool is_done = at->num_actions_done == at->num_actions;
    bool is_wanted = is_done && r->args->common.json_lines;
    if (now - r->progress_s < PROGRESS_EVERY_S && !is_wanted)
        return;
    r->progress_s = now;
    bool has_loss = is_done && r->choice.backend->has_values;
    const char *unit = r->what[0] == '\0' ? "steps" : "reference steps";
    const ms_progress done = {unit, (double)(at->step + is_done),
                              (double)r->how.num_steps, NAN,
                              has_loss ? at->loss : (double)NAN};
    if (ms_progress_write(r->args, &done))
        return;
    fprintf(stderr, "%sstep %ld of %ld: ", r->what, at->step + 1, r->how.num_steps);
    if (has_loss)
        fprintf(stderr, "loss %.6f\n", at->loss);
    else
        fprintf(stderr, "%d of %d actions\n", at->num_actions_done, at->num_actions);
}

/* ---- options and plan ---- */

/* Puts this process's rank in front of its error messages. */
static void name_rank(const request *r)
{
    long rank = r->choice.environment.rank;
    for (ms_diag *error = r->cx->first; error != NULL && rank > 0; error = error->next)
        error->message =
            ms_arena_printf(r->cx->arena, "rank %ld: %s", rank, error->message);
}

/* Drops command-line errors on ranks other than 0 of an MPI job: rank 0 has and reports
 * the same. An I/O error may be one rank's alone: each rank reports its own. */
static ms_status report_once(const request *r, ms_status status)
{
    const ms_launch *env = &r->choice.environment;
    if (status == MS_EIO) {
        name_rank(r);
    } else if (status != MS_OK && env->rank > 0 && ms_run_launcher_has_mpi(env)) {
        ms_run_forget_errors(r->cx);
        /* launchers end all ranks when one fails: let rank 0 print first */
        (void)nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    }
    return status;
}

/* Omits notes on ranks whose launching process or rank 0 prints the same notes. */
static void silence_rank(request *r)
{
    if (ms_launch_is_own() || r->choice.environment.rank > 0)
        r->cx->verbosity = -1;
}

static ms_status read_request(request *r)
{
    ms_ctx *cx = r->cx;
    MS_TRY(ms_run_flags_fill_defaults(cx, &r->flags));
    if (r->flags.replay != NULL)
        MS_TRY(ms_run_replay_check(cx, &r->flags));
    MS_TRY(ms_plan_options_word(cx, &r->options, r->args->words.words[0]));
    MS_TRY(ms_run_flags_plan(cx, &r->flags, &r->options, &r->plan));
    const char *output = r->args->common.output;
    const char *const outputs[] = {output,
                                   r->flags.trace,
                                   r->flags.save_weights,
                                   r->flags.save_final_weights,
                                   r->flags.save_grads,
                                   r->flags.save_batch};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        MS_TRY(ms_plan_options_check_output(cx, &r->options, &r->plan, outputs[i]));
    MS_TRY(ms_run_files_check(cx, &r->flags, output));
    return ms_run_choose(cx, &r->flags, &r->plan, &r->choice);
}

/* Refuses what the backend does not execute. Backends without values have no virtual
 * clock for layers that are not transformers'. */
static ms_status check_model(ms_ctx *cx, const request *r)
{
    const ms_model *model = r->workload->model;
    bool trains_mtp =
        model->num_nextn_predict_layers > 0 && r->workload->stack->trains_mtp;
    MS_TRY(ms_model_check_features(cx, model, r->choice.backend));
    if (r->choice.backend->has_values || (!ms_model_is_hybrid(model) && !trains_mtp))
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s has %s, for which backend %s has no clock",
            model->name,
            trains_mtp ? "a module of multi-token prediction"
                       : "layers that are Mamba-2, attention or an MLP alone",
            r->choice.backend->name);
    return ms_hint(cx, "predict, simulate, explain and search support it");
}

static ms_status open_plan(request *r)
{
    ms_ctx *cx = r->cx;
    MS_TRY(ms_runner_check_plan(cx, &r->plan));
    MS_TRY(ms_plan_check_run_types(cx, (ms_real_type)r->flags.dtype.value, &r->plan));
    MS_TRY(ms_plan_open_workload(cx, &r->plan, &r->workload));
    MS_TRY(check_model(cx, r));
    MS_TRY(ms_plan_fit_recompute(cx, r->workload, &r->plan));
    r->world = ms_world_make(cx->arena, &r->plan);
    r->world.ties_embeddings = ms_head_shares_weights(r->workload);
    return MS_OK;
}

static ms_status predict(request *r)
{
    ms_ctx *cx = r->cx;
    MS_TRY(ms_run_flags_options(cx, &r->flags, &r->plan, r->workload->model, &r->how));
    r->how.grace_s = GRACE_S;
    if (is_watched(r)) {
        r->how.progress = show_progress;
        r->how.progress_state = r;
    }
    MS_TRY(ms_planned_open_listed(cx, r->workload, &r->plan, &r->planned));
    (void)ms_predict_planned(cx, &r->planned, &r->prediction);
    return MS_OK;
}

/* ---- ranks started by mpiexec ---- */

static ms_status launch(const request *r)
{
    ms_ctx *cx = r->cx;
    long num_ranks = r->plan.gpus;
    if (r->options.plan_file != NULL && strcmp(r->options.plan_file, "-") == 0) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "the plan is read from standard input, which ranks do not share");
        return ms_hint(cx, "write it to a file, or take --backend loop");
    }
    ms_note(cx, "%ld rank%s started by %s%s", num_ranks, num_ranks == 1 ? " is" : "s are",
            r->choice.mpiexec,
            geteuid() == 0 ? " as root, which Open MPI is told to allow" : "");
    char **argv = MS_NEW_ARRAY(cx->arena, r->args->argc + 1, char *);
    argv[0] = ms_arena_strdup(cx->arena, r->args->command->name);
    for (int i = 0; i < r->args->argc; i++)
        argv[1 + i] = r->args->argv[i];
    fflush(stderr);
    ms_output out; /* standard output, where rank 0 prints the result */
    MS_TRY(ms_output_open(cx, NULL, &out));
    ms_status status =
        ms_launch_run(cx, &(ms_launch_job){.mpiexec = r->choice.mpiexec,
                                           .num_ranks = num_ranks,
                                           .num_cores = ms_machine_cores(),
                                           .argc = r->args->argc + 1,
                                           .argv = argv,
                                           .shows_progress = is_watched(r)});
    return ms_output_close(cx, &out, status);
}

/* ---- the run ---- */

typedef struct training {
    const ms_backend *backend;
    const ms_planned *planned;
    const ms_world *world;
    const ms_runner_options *how;
    ms_cuda_gemm_choices *gemms;
    double timeout_s;
    ms_run_attention attention;
    bool agrees;         /* before training, processes agree whether all are prepared */
    ms_status found;     /* status of this process's preparations */
    ms_run_report *used; /* report that receives the GPU of rank 0; NULL: none */
    ms_cuda_used *device;
} training;

static void note_device(const ms_ctx *cx, const training *t, const ms_backend_job *job)
{
    if (t->used == NULL || !t->backend->on_gpu)
        return;
    t->used->on_gpu = true;
    t->used->transport = ms_cuda_job_transport(job);
    t->used->shares_gpus = ms_cuda_job_shares_gpus(job);
    if (!ms_cuda_job_used(job, 0, t->device))
        return;
    t->used->device = t->device;
    t->used->attention = t->attention;
    ms_note_attention(cx, &t->device->attention);
    if (t->device->lacks_fp8)
        ms_note(cx, "cuBLASLt has no FP8 for some products of this plan: they were made "
                    "in bf16");
}

static ms_status train(ms_ctx *cx, const training *t, ms_outcome *out)
{
    ms_backend_job job = {.backend = t->backend,
                          .world = t->world,
                          .type = t->how->type,
                          .timeout_s = t->timeout_s,
                          .interrupted = t->how->interrupted,
                          .held_sms = ms_comm_sms(t->planned->workload),
                          .gemm_choices = t->gemms,
                          .attention = t->attention};
    if (ms_interrupted)
        return t->found != MS_OK ? t->found : MS_EINTERRUPTED;
    MS_TRY(t->backend->open(cx, &job));
    ms_status status = t->agrees ? ms_run_agree(cx, &job, t->found) : MS_OK;
    if (status == MS_OK)
        status = ms_runner_run(cx, &job, t->planned, t->how, out);
    if ((status == MS_OK || status == MS_EINTERRUPTED) && !out->broken_off) {
        ms_status collected = ms_outcome_collect(cx, &job, out);
        status = collected == MS_OK ? status : collected;
        out->broken_off = collected == MS_EINTERRUPTED;
    }
    note_device(cx, t, &job);
    t->backend->close(&job);
    return status;
}

/* Whether the reference of --check is in fp32, from initial weights rounded to bf16: beside
 * runs on GPUs in bf16 and fp8, whose kernels round other intermediate values than CPUs. */
static bool checks_in_fp32(const request *r)
{
    return r->choice.backend->on_gpu &&
           (r->how.type == MS_REAL_BF16 || r->how.type == MS_REAL_FP8);
}

/* The type of runs whose values are rounded about as much as by types, gathers and
 * reductions of the plan. */
static ms_real_type rounds_as(const request *r)
{
    static const ms_real_type of_bits[] = {[MS_NOT_QUANTISED] = MS_REAL_FP32,
                                           [MS_QUANTISED_8] = MS_REAL_FP8,
                                           [MS_QUANTISED_4] = MS_REAL_FP4};
    const ms_plan *plan = &r->plan;
    bool narrows = ms_plan_narrows(r->how.type, &r->plan);
    ms_real_type by_types =
                     narrows && r->how.type < MS_REAL_BF16 ? MS_REAL_BF16 : r->how.type,
                 by_bits =
                     of_bits[plan->gather_bits > plan->reduce_bits ? plan->gather_bits
                                                                   : plan->reduce_bits];
    return by_bits > by_types ? by_bits : by_types;
}

/* Trains the same model on one rank of this process (backend loop) and compares the run
 * with it. Beside a base in NF4, whose blocks end where shards do, the reference starts
 * from the run's own, restored weights. */
static ms_status check_against(request *r, const ms_plan *plan, ms_workload *workload)
{
    ms_ctx *cx = r->cx;
    ms_planned planned;
    MS_TRY(ms_planned_open_listed(cx, workload, plan, &planned));
    ms_world world = ms_world_make(cx->arena, plan);
    ms_runner_options how = r->how;
    how.wants_weights = false;
    if (r->plan.lora_base == MS_BASE_NF4)
        how.load = &r->outcome.weights;
    how.first_recorded_step = how.num_steps; /* the reference run records no times */
    const ms_backend *backend = ms_backend_find("loop");
    bool other_kernels = r->choice.backend->on_gpu;
    ms_run_check_tolerance tolerance = ms_run_check_tolerance_of(
        rounds_as(r), other_kernels, workload->model->num_layers);
    if (ms_plan_has_moment_blocks(&r->plan)) /* they end where shards do */
        tolerance.later_loss = tolerance.weight = INFINITY;
    how.grouped_as = &r->plan;
    how.orthogonal_shares[0] = r->plan.size[MS_TP];
    how.orthogonal_shares[1] = r->plan.etp;
    how.weights_in_bf16 = checks_in_fp32(r);
    if (how.weights_in_bf16)
        how.type = MS_REAL_FP32;
    ms_outcome reference = {0};
    training alone = {.backend = backend,
                      .planned = &planned,
                      .world = &world,
                      .how = &how,
                      .timeout_s = r->flags.timeout_s.value};
    r->what = "the same on one rank, ";
    ms_status status = train(cx, &alone, &reference);
    if (status == MS_OK)
        ms_run_check_outcomes(cx->arena, &r->outcome, &reference, &tolerance, &r->check);
    ms_outcome_close(&reference);
    if (status == MS_EINTERRUPTED) {
        ms_fail(cx, status, MS_NOWHERE,
                "interrupted after step %ld of %ld of the same on one rank: nothing is "
                "compared",
                reference.steps_done, how.num_steps);
    }
    MS_TRY(status);
    r->report.check = &r->check;
    if (r->check.passes)
        return MS_OK;
    return ms_fail(cx, MS_ECHECK, MS_NOWHERE, "%s", r->check.failure);
}

static ms_status check_run(request *r)
{
    ms_plan plan = ms_run_reference_plan(&r->plan);
    if (plan.lora_base == r->plan.lora_base)
        return check_against(r, &plan, r->workload);
    /* Programs of the reference's own workload have no weights in NF4. */
    ms_workload *workload;
    MS_TRY(ms_workload_open(r->cx, &plan, &workload));
    ms_status status = check_against(r, &plan, workload);
    ms_workload_close(workload);
    return status;
}

/* Predicted seconds per kind of graph node, by simulation; NULL if too large for it. */
static const ms_node_kinds *predicted_kinds(const request *r)
{
    const ms_simulate_options options = {.engine = MS_ENGINE_REPLAY,
                                         .detail = MS_DETAIL_NODE};
    ms_ctx apart = {.arena = r->cx->arena, .verbosity = -1};
    ms_simulation simulation;
    if (ms_simulate(&apart, &r->planned, &options, &simulation) != MS_OK)
        return NULL;
    ms_node_kinds *kinds = MS_NEW(r->cx->arena, ms_node_kinds);
    *kinds = ms_simulated_kinds(r->cx->arena, &simulation);
    return kinds;
}

static void fill_report(request *r, ms_status status)
{
    double tokens = (double)r->plan.global_batch * (double)r->plan.sequence_length;
    ms_run_report *report = &r->report;
    report->plan = &r->plan;
    report->prediction = &r->prediction;
    report->world = &r->world;
    report->backend = r->choice.backend->name;
    report->dtype = ms_dtype_names[r->plan.compute];
    report->has_values = r->choice.backend->has_values;
    report->interrupted = status == MS_EINTERRUPTED;
    report->num_steps = r->how.num_steps;
    report->warm_up = r->how.first_recorded_step;
    report->outcome = &r->outcome;
    ms_measured_make(r->cx->arena, &r->outcome, report->warm_up, tokens,
                     report->has_values && r->outcome.num_ranks > 0 ? predicted_kinds(r)
                                                                    : NULL,
                     &report->measured);
    report->times = ms_measured_stage_times(&report->measured, &r->outcome, &r->world,
                                            r->prediction.ending_rank);
    if (report->has_values)
        return;
    /* a virtual clock does not record what ranks waited for */
    report->times = (ms_measured_times){NAN, NAN, NAN, NAN, NAN};
    report->measured.kinds.num = 0;
}

static ms_status write_result(const request *r, ms_status status)
{
    ms_output out;
    MS_TRY(ms_output_open(r->cx, r->args->common.output, &out));
    if (r->args->common.json)
        ms_run_write_json(&out.json, &r->report);
    else
        ms_run_print(out.file, r->cx->arena, &r->report);
    return ms_output_close(r->cx, &out, status);
}

/* Exit status of a rank other than 0 after an interruption. MS_OK if rank 0 has received
 * its records; otherwise MS_EINTERRUPTED, after a wait for rank 0 to report, because
 * launchers end all ranks when one fails. */
static ms_status leave_to_rank_0(const request *r)
{
    if (!r->outcome.broken_off && r->outcome.num_ranks > 0)
        return MS_OK;
    struct timespec rest = {.tv_sec = RANK_WITHIN_S - 2};
    (void)alarm(0);
    (void)nanosleep(&rest, NULL);
    return MS_EINTERRUPTED;
}

static ms_status report(request *r, ms_status status)
{
    ms_ctx *cx = r->cx;
    if (status == MS_EINTERRUPTED)
        ms_fail(cx, status, MS_NOWHERE, "interrupted after %ld of %ld steps",
                r->outcome.steps_done, r->how.num_steps);
    else if (r->flags.check)
        status = check_run(r);
    if (status != MS_OK && status != MS_ECHECK && status != MS_EINTERRUPTED)
        return status;
    fill_report(r, status);
    ms_status written = ms_run_files_write(cx, &r->flags, &r->how, &r->report);
    return write_result(r, written == MS_OK ? status : written);
}

/* Copies of all weights (or gradients) that processes hold at once: each process one per
 * requested kind, --check's reference run its own, and weights loaded from a file. */
static long num_whole_tensors(const request *r, long num_processes)
{
    const ms_runner_options *how = &r->how;
    long kept = how->wants_weights + how->wants_gradients + how->wants_updated;
    long of_reference = how->wants_gradients + how->wants_updated;
    long here = r->choice.mpiexec == NULL ? 1 : 0;
    return kept * num_processes + (r->flags.check ? of_reference : 0) +
           (how->load != NULL ? num_processes - here : 0);
}

static ms_status write_shortfall(request *r, const ms_run_memory *shortfall)
{
    ms_status status = ms_run_memory_fail(r->cx, shortfall);
    if (!r->args->common.json || r->choice.environment.rank > 0)
        return status;
    fill_report(r, status);
    r->report.shortfall = shortfall;
    return write_result(r, status);
}

/* Sets `place`'s GPUs, and for --check the prediction of the reference rank. */
static void place_on_gpus(const request *r, ms_run_place *place)
{
    ms_ctx apart = {.arena = r->cx->arena, .verbosity = -1};
    ms_run_place_on_gpus(r->cx, place);
    if (!r->flags.check || place->num_gpus == 0)
        return;
    ms_plan plan = ms_run_reference_plan(&r->plan);
    if (checks_in_fp32(r))
        plan.compute = MS_FP32;
    ms_prediction *reference = MS_NEW(r->cx->arena, ms_prediction);
    if (ms_predict(&apart, r->workload, &plan, reference) == MS_OK)
        place->reference = reference;
}

/* Checks that this machine's memory suffices; only on the machine's first rank. */
static ms_status check_memory(request *r)
{
    const ms_launch *env = &r->choice.environment;
    bool shared = ms_run_is_one_of_many(&r->choice);
    if (r->flags.force || !r->choice.backend->has_values || ms_launch_is_own() ||
        (shared && env->local_rank > 0))
        return MS_OK;
    if (shared && (env->local_rank < 0 || env->local_size == 0)) {
        ms_note(r->cx, "memory is not checked: the launcher does not report how many "
                       "ranks share this machine");
        return MS_OK;
    }
    ms_run_place place = {.world = &r->world, .num_ranks = r->plan.gpus};
    if (shared) {
        place.first_rank = env->rank;
        place.num_ranks = env->local_size;
        if (env->local_size > r->plan.gpus - env->rank)
            place.num_ranks = r->plan.gpus - env->rank;
    }
    bool processes = shared || r->choice.mpiexec != NULL;
    place.num_whole = num_whole_tensors(r, processes ? place.num_ranks : 1);
    if (r->choice.backend->on_gpu)
        place_on_gpus(r, &place);
    ms_run_memory shortfall =
        ms_run_memory_of(r->cx, r->workload, &r->prediction, &place);
    return shortfall.reason != NULL ? write_shortfall(r, &shortfall) : MS_OK;
}

static ms_status open_gemms(request *r)
{
    return ms_run_gemms_open(r->cx, r->flags.gemm_algorithms, r->choice.backend,
                             r->choice.environment.size == 1, &r->gemms);
}

/* Predicts the run, and finds errors that may be one rank's alone. Rank 0 checks output
 * files, unless this program started the ranks (and has checked them); then memory. */
static ms_status prepare(request *r)
{
    MS_TRY(predict(r));
    if (!ms_launch_is_own() && r->choice.environment.rank == 0)
        MS_TRY(ms_run_files_check_writable(r->cx, &r->flags, r->args->common.output));
    MS_TRY(open_gemms(r));
    return check_memory(r);
}

static ms_status replay(request *r)
{
    MS_TRY(predict(r));
    MS_TRY(ms_run_files_check_writable(r->cx, &r->flags, r->args->common.output));
    MS_TRY(open_gemms(r));
    return ms_run_replay(r->cx, &(ms_run_prepared){.args = r->args,
                                                   .flags = &r->flags,
                                                   .plan = &r->plan,
                                                   .planned = &r->planned,
                                                   .prediction = &r->prediction,
                                                   .world = &r->world,
                                                   .how = &r->how,
                                                   .gemms = r->gemms,
                                                   .choice = &r->choice});
}

static ms_status run(request *r)
{
    ms_ctx *cx = r->cx;
    MS_TRY(report_once(r, open_plan(r)));
    if (r->flags.replay != NULL)
        return replay(r);
    ms_status found = prepare(r);
    bool agrees = ms_run_is_one_of_many(&r->choice);
    name_rank(r);
    if (found != MS_OK && !agrees)
        return found;
    ms_run_note_cores(r->cx, &r->choice, r->plan.gpus);
    if (r->choice.mpiexec != NULL && !ms_interrupted)
        return launch(r);
    training asked = {.backend = r->choice.backend,
                      .planned = &r->planned,
                      .world = &r->world,
                      .how = &r->how,
                      .gemms = r->gemms,
                      .attention = (ms_run_attention)r->flags.attention.value,
                      .timeout_s = r->flags.timeout_s.value,
                      .agrees = agrees,
                      .found = found,
                      .used = &r->report,
                      .device = &r->device};
    ms_status status = train(cx, &asked, &r->outcome);
    if ((status == MS_OK || status == MS_EINTERRUPTED) && r->choice.environment.rank == 0)
        status = report(r, status);
    else if (status == MS_EINTERRUPTED)
        status = leave_to_rank_0(r);
    ms_outcome_close(&r->outcome);
    return status;
}

ms_status ms_cmd_run(ms_ctx *cx, ms_args *args)
{
    request *r = MS_NEW(cx->arena, request);
    r->cx = cx;
    r->args = args;
    r->what = "";
    r->choice.environment = ms_launch_environment();
    bool is_own = ms_launch_is_own();
    ms_interrupt_end_within(is_own ? RANK_WITHIN_S : END_WITHIN_S,
                            !is_own && r->choice.environment.size == 1);
    const ms_option_set sets[] = {{"run", ms_run_option_table, &r->flags},
                                  {"plan", ms_plan_option_table(), &r->options}};
    MS_TRY(report_once(r, ms_args_read(cx, args, sets, 2)));
    if (args->done)
        return MS_OK;
    silence_rank(r);
    MS_TRY(report_once(r, read_request(r)));
    ms_status status = run(r);
    status = ms_run_gemms_close(cx, r->flags.gemm_algorithms, r->gemms, status);
    if (r->workload != NULL)
        ms_workload_close(r->workload);
    return status;
}
