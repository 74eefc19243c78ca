/* meshsim calibrate: kernels and collectives of this machine measured for a profile. */
#include "base/clock.h"
#include "base/number.h"
#include "cli/cmd/calibrate_own.h"
#include "cli/cmd/calibrate_runs.h"
#include "cli/cmd/run_gemms.h"
#include "cli/options/commands.h"
#include "cli/options/interrupt.h"
#include "cli/options/kernel_options.h"
#include "cli/options/output.h"
#include "cli/options/progress.h"
#include "cli/options/tables.h"
#include "cli/report/report.h"
#include "cli/report/run_report.h"
#include "exec/backends/backends.h"
#include "exec/launch/environment.h"
#include "exec/launch/launch.h"
#include "exec/measure/measure.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_RANKS          256
#define MIN_QUICK_LAUNCHES 2
#define DEFAULT_CLUSTER    "cpu"
#define STACK              "meshsim"

/* Time limits of measuring on GPUs, in seconds: of all launches together, and of each. */
#define GPU_BUDGET_S     285.0 /* five minutes less the time to fit cost coefficients */
#define GPU_LAUNCH_S     70.0
#define GPU_QUICK_S      12.0
#define GPU_OPENING_S    5.0 /* libraries load, first calls are slow */
#define GPU_NUM_LAUNCHES 3

static const char *const dtype_names[] = {"fp32", "fp64", "bf16", "fp8", NULL};

typedef struct calibrate_options {
    ms_opt_choice backend; /* ms_backend_choice, counted from MS_BACKEND_LOOP */
    ms_opt_choice dtype;
    ms_opt_integer ranks, launches;
    bool quick, force;
    const char *cluster;
    ms_opt_choice attention;
    const char *gemm_algorithms;
    /* options that this command passes to the ranks it starts: `launch`, index of the
     * repetition; `collectives`, measure collectives only */
    ms_opt_integer launch;
    bool collectives;
} calibrate_options;

#define ROW(kind, member, ...) kind(calibrate_options, member, __VA_ARGS__)
static const ms_option calibrate_table[] = {
    ROW(MS_OPT_CHOICE, backend, "--backend", ms_backend_names + MS_BACKEND_LOOP,
        MS_BACKENDS_HELP " (default loop)"),
    ROW(MS_OPT_INTEGER, ranks, "--ranks", "N", 1, MAX_RANKS,
        "ranks that run at once, at most one per core (default: the cores; cuda: 1)"),
    ROW(MS_OPT_CHOICE, dtype, "--dtype", dtype_names,
        "type of the kernels; only cuda has bf16 and fp8 (default fp32; bf16 with cuda)"),
    ROW(MS_OPT_INTEGER, launches, "--launches", "N", 1, 100,
        "number of launches, which differ more than rounds within one (default 5; with "
        "--quick or cuda 3)"),
    ROW(MS_OPT_FLAG, quick, "--quick",
        "fewer shapes and rounds: at most 30 s, with cuda a minute"),
    ROW(MS_OPT_FLAG, force, "--force",
        "allow more ranks than cores, although times then mean little"),
    ROW(MS_OPT_TEXT, cluster, "--cluster", "NAME|FILE",
        "cluster whose peak rates are the unit of the profile (default " DEFAULT_CLUSTER
        "; cuda: by the name of the GPU)"),
    MS_KERNEL_OPTION_ROWS(calibrate_options),
    ROW(MS_OPT_INTEGER, launch, "--launch", "N", 0, 99, NULL),
    ROW(MS_OPT_FLAG, collectives, "--collectives", NULL),
    {0},
};

#define FROM_ROW(kind, member, ...) kind(ms_calibrate_runs, member, __VA_ARGS__)
static const ms_option from_table[] = {
    FROM_ROW(MS_OPT_TEXT, runs, "--from", "FILE.csv",
             "fit constants to published runs, kernels or collectives; measure nothing"),
    FROM_ROW(MS_OPT_TEXT, constants, "--constants", "NAME|FILE",
             "list of constants to fit (default step-time, then memory)"),
    FROM_ROW(MS_OPT_FLAG, holdout, "--holdout",
             "also errors of each source, or system of collectives, by a fit without it"),
    FROM_ROW(
        MS_OPT_TEXT, spread, "--spread", "FILE",
        "write the held-out errors of the first list, from which intervals are made"),
    FROM_ROW(MS_OPT_TEXT, ranking, "--ranking", "FILE",
             "write the part of the first list's held-out errors that does not cancel "
             "between layouts, from which tie bands are made"),
    {0},
};

typedef struct request {
    ms_ctx *cx;
    const ms_args *args;
    const calibrate_options *options;
    ms_calibration_input input;
    ms_measure measure;
    const char *mpiexec;      /* path of mpiexec; NULL: ranks are threads */
    const char *samples_path; /* file through which ranks return measurements */
    ms_samples samples;
    ms_cuda_facts gpu; /* facts of the GPU model that every rank uses */
    ms_cuda_attention_use attention_use;
    double start_s;
} request;

static bool is_on_gpus(const request *r)
{
    return r->options->backend.value == MS_BACKEND_CUDA - MS_BACKEND_LOOP;
}

/* ---- options ---- */

/* Checks that the profile can be written, before minutes of measuring. */
static ms_status check_output(request *r)
{
    const char *output = r->args->common.output;
    if (output != NULL && strcmp(output, "-") != 0)
        return ms_output_check_writable(r->cx, output);
    ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
            output == NULL ? "no file for the profile is given"
                           : "-o is \"-\", must be a file: standard output is for the "
                             "report");
    return ms_hint(r->cx, "-o PROFILE.json");
}

static ms_status check_options(request *r)
{
    const calibrate_options *o = r->options;
    long cores = ms_machine_cores();
    MS_TRY(check_output(r));
    if (o->quick && o->launches.given && o->launches.value < MIN_QUICK_LAUNCHES) {
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                "one launch with --quick measures too few points for the laws");
        return ms_hint(r->cx, "--launches %d", MIN_QUICK_LAUNCHES);
    }
    if (!is_on_gpus(r) && o->ranks.given && o->ranks.value > cores && !o->force) {
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                "%ld ranks would share %ld core%s, so that their times mean nothing",
                o->ranks.value, cores, cores == 1 ? "" : "s");
        return ms_hint(r->cx, "--ranks %ld, or --force", cores);
    }
    return MS_OK;
}

static const char *today(ms_arena *arena)
{
    char text[32] = "";
    time_t now = time(NULL);
    struct tm parts;
    if (gmtime_r(&now, &parts) != NULL)
        strftime(text, sizeof text, "%Y-%m-%d", &parts);
    return ms_arena_strdup(arena, text);
}

static ms_status refuse_backend(const request *r, const char *reason, const char *hint)
{
    ms_fail(r->cx, MS_EIO, MS_NOWHERE, "%s", reason);
    return ms_hint(r->cx, "%s", hint);
}

#define CUDA_HINT "\"meshsim info\" lists what was found here and by the build"

/* Reads the facts of the first GPU; all GPUs of the ranks are assumed alike. */
static ms_status describe_gpu(request *r)
{
    const ms_cuda_driver *driver = ms_cuda_driver_of_libraries();
    int num_devices;
    if (driver == NULL)
        return refuse_backend(r, "this program was built without CUDA", CUDA_HINT);
    ms_status status = driver->find(r->cx, &num_devices);
    if (status != MS_OK)
        ms_hint(r->cx, "--backend loop measures the cores of this machine");
    return status != MS_OK ? status : driver->describe(r->cx, 0, &r->gpu);
}

/* Finds the configured cluster whose device name is that of the measured GPU. */
static ms_status cluster_of_gpu(const request *r, const char **name)
{
    *name = ms_machine_cluster_of_gpu(r->cx, r->gpu.name);
    if (*name != NULL) {
        ms_note_default(r->cx, "--cluster %s", *name);
        return MS_OK;
    }
    ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "no cluster has devices named \"%s\"",
            r->gpu.name);
    return ms_hint(r->cx,
                   "--cluster NAME|FILE, with the rates that its data sheet lists");
}

static ms_status check_dtype(const request *r)
{
    assert(r->measure.backend != NULL);
    bool rounds = r->measure.type > MS_REAL_BF16 && !r->measure.backend->on_gpu;
    if (r->measure.backend->computes[r->measure.type] && !rounds)
        return MS_OK; /* CPUs compute fp8 by kernels of fp32 on rounded operands */
    ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "--backend %s has no kernels of --dtype %s",
            r->measure.backend->name, dtype_names[r->measure.type]);
    return ms_hint(r->cx, "--dtype fp32");
}

static ms_status choose_backend(request *r)
{
    bool is_rank = ms_launch_is_own();
    if (!is_rank && ms_launch_environment().size > 1) {
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                "calibrate starts its own ranks, but a launcher started %ld processes",
                ms_launch_environment().size);
        return ms_hint(r->cx,
                       "meshsim calibrate --backend mpi --ranks %ld, without mpirun",
                       ms_launch_environment().size);
    }
    r->measure.backend =
        ms_backend_find(ms_backend_names[MS_BACKEND_LOOP + r->options->backend.value]);
    if (is_on_gpus(r))
        return r->measure.backend != NULL
                   ? describe_gpu(r)
                   : refuse_backend(r, "this build has no backend cuda", CUDA_HINT);
    if (r->measure.backend == NULL)
        return refuse_backend(r, "this program was built without MPI", "--backend loop");
    if (r->measure.backend->in_process || is_rank)
        return MS_OK;
    r->mpiexec = ms_launch_find(r->cx->arena);
    return r->mpiexec != NULL
               ? MS_OK
               : refuse_backend(r, "there is no mpiexec in $PATH to start the ranks",
                                "--backend loop");
}

static void choose_counts(request *r)
{
    const calibrate_options *o = r->options;
    ms_calibration_input *in = &r->input;
    in->ranks = is_on_gpus(r) ? 1 : ms_machine_cores();
    if (o->ranks.given)
        in->ranks = o->ranks.value;
    in->num_launches = is_on_gpus(r) ? GPU_NUM_LAUNCHES : o->quick ? 3 : 5;
    if (o->launches.given)
        in->num_launches = (int)o->launches.value;
    if (r->cx->verbosity > 0 && !o->ranks.given)
        ms_note_default(r->cx, "--ranks %ld", in->ranks);
    if (r->cx->verbosity > 0 && !o->launches.given)
        ms_note_default(r->cx, "--launches %d", in->num_launches);
}

static void choose_times(request *r)
{
    ms_measure *how = &r->measure;
    how->quick = r->options->quick;
    how->attention = (ms_run_attention)r->options->attention.value;
    how->large = is_on_gpus(r);
    how->kernel_s = how->quick ? 4.0 : 22.0;
    how->collective_s = how->quick ? 1.5 : 6.0;
    if (is_on_gpus(r))
        how->kernel_s = how->quick ? GPU_QUICK_S : GPU_LAUNCH_S;
}

static void choose_type(request *r)
{
    r->measure.type = is_on_gpus(r) ? MS_REAL_BF16 : MS_REAL_FP32;
    if (r->options->dtype.given)
        r->measure.type = (ms_real_type)r->options->dtype.value;
    r->input.compute = ms_measure_dtype(r->measure.type);
}

static ms_status set_up(request *r)
{
    ms_ctx *cx = r->cx;
    ms_calibration_input *in = &r->input;
    const char *cluster = r->options->cluster;
    choose_type(r);
    MS_TRY(choose_backend(r));
    MS_TRY(check_dtype(r));
    if (cluster == NULL && is_on_gpus(r))
        MS_TRY(cluster_of_gpu(r, &cluster));
    else if (cluster == NULL)
        cluster = DEFAULT_CLUSTER;
    MS_TRY(ms_cluster_load(cx, cluster, &in->cluster));
    MS_TRY(
        ms_profile_load_for(cx, in->cluster->device.profile, in->cluster, &in->assumed));
    MS_TRY(ms_stack_load(cx, STACK, &in->stack));
    choose_counts(r);
    choose_times(r);
    in->machine = ms_machine_here(cx->arena);
    if (is_on_gpus(r))
        ms_machine_add_gpu(cx->arena, &r->gpu, &in->machine);
    in->date = today(cx->arena);
    in->backend = r->measure.backend->name;
    in->samples = &r->samples;
    return MS_OK;
}

/* ---- measuring ---- */

static void show_progress(const request *r, int launch)
{
    const ms_progress now = {"launches", launch, r->input.num_launches, NAN, NAN};
    if (ms_progress_is_shown(r->args) && !ms_progress_write(r->args, &now))
        fprintf(stderr, "launch %d of %d, %.0f s\n", launch + 1, r->input.num_launches,
                ms_clock_s() - r->start_s);
}

static ms_status read_samples(request *r)
{
    ms_jdoc *doc;
    ms_jval root;
    MS_TRY(ms_json_load(r->cx, r->samples_path, &doc, &root));
    ms_status status = ms_samples_read(r->cx, root, &r->samples);
    ms_json_close(doc);
    return status;
}

/* Starts this command by mpiexec as ranks that measure once; reads their samples. */
static ms_status start_ranks(request *r, const ms_measure *how)
{
    ms_arena *arena = r->cx->arena;
    char *argv[16];
    int num = 0;
    const char *words[] = {"calibrate",
                           "--backend",
                           "mpi",
                           "--dtype",
                           dtype_names[how->type],
                           "--ranks",
                           ms_arena_printf(arena, "%ld", how->num_ranks),
                           "--launch",
                           ms_arena_printf(arena, "%d", how->launch),
                           "--force",
                           "-o",
                           r->samples_path};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        argv[num++] = ms_arena_strdup(arena, words[i]);
    if (how->quick)
        argv[num++] = ms_arena_strdup(arena, "--quick");
    if (!how->kernels)
        argv[num++] = ms_arena_strdup(arena, "--collectives");
    if (r->options->cluster != NULL) {
        argv[num++] = ms_arena_strdup(arena, "--cluster");
        argv[num++] = ms_arena_strdup(arena, r->options->cluster);
    }
    MS_TRY(ms_launch_run(r->cx, &(ms_launch_job){.mpiexec = r->mpiexec,
                                                 .num_ranks = how->num_ranks,
                                                 .num_cores = ms_machine_cores(),
                                                 .argc = num,
                                                 .argv = argv}));
    return read_samples(r);
}

static ms_status measure_once(request *r, const ms_measure *how)
{
    return r->mpiexec != NULL ? start_ranks(r, how)
                              : ms_measure_launch(r->cx, how, &r->samples);
}

/* Limits how->kernel_s: this launch and all later ones share the time left equally. */
static void share_budget(const request *r, int launch, ms_measure *how)
{
    double left_s = GPU_BUDGET_S - (ms_clock_s() - r->start_s);
    double share_s = left_s / (double)(r->input.num_launches - launch) - GPU_OPENING_S;
    how->kernel_s = ms_max(0.0, ms_min(how->kernel_s, share_s - how->collective_s));
}

/* Measures kernels, and collectives over all ranks and over each smaller power of two,
 * because groups of a mesh are smaller than the world. */
static ms_status measure_launch(request *r, int launch)
{
    ms_measure how = r->measure;
    how.launch = launch;
    how.num_ranks = r->input.ranks;
    how.kernels = true;
    how.attention_use = &r->attention_use;
    if (is_on_gpus(r))
        share_budget(r, launch, &how);
    MS_TRY(measure_once(r, &how));
    how.kernels = false;
    how.attention_use = NULL;
    for (how.num_ranks = 2; how.num_ranks < r->input.ranks; how.num_ranks *= 2)
        MS_TRY(measure_once(r, &how));
    return MS_OK;
}

static ms_status measure_launches(request *r)
{
    for (int launch = 0; launch < r->input.num_launches; launch++) {
        show_progress(r, launch);
        MS_TRY(measure_launch(r, launch));
        if (ms_interrupted)
            return ms_fail(r->cx, MS_EINTERRUPTED, MS_NOWHERE,
                           "interrupted after %d of %d launches; no profile is written",
                           launch + 1, r->input.num_launches);
    }
    return MS_OK;
}

static ms_status measure(request *r)
{
    if (r->mpiexec == NULL)
        return measure_launches(r);
    char *path = ms_arena_strdup(r->cx->arena, "/tmp/meshsim-samples-XXXXXX");
    int file = mkstemp(path);
    if (file < 0)
        return ms_fail(r->cx, MS_EIO, MS_NOWHERE, "cannot make a temporary file %s",
                       path);
    (void)close(file);
    r->samples_path = path;
    ms_status status = measure_launches(r);
    (void)unlink(path);
    return status;
}

static ms_status measure_as_rank(request *r)
{
    ms_measure how = r->measure;
    how.launch = (int)r->options->launch.value;
    how.num_ranks = r->input.ranks;
    how.kernels = !r->options->collectives;
    MS_TRY(ms_measure_launch(r->cx, &how, &r->samples));
    if (r->samples.num == 0)
        return MS_OK; /* only rank 0 has samples to write */
    ms_output out;
    MS_TRY(ms_output_open(r->cx, r->args->common.output, &out));
    ms_samples_write(&out.json, &r->samples);
    return ms_output_close(r->cx, &out, MS_OK);
}

/* Measures with the algorithms of --gemm-algorithms, and writes those that it timed. */
static ms_status measure_with_algorithms(request *r)
{
    const char *path = r->options->gemm_algorithms;
    MS_TRY(ms_run_gemms_open(r->cx, path, r->measure.backend, true,
                             &r->measure.gemm_choices));
    ms_status status =
        ms_run_gemms_close(r->cx, path, r->measure.gemm_choices, measure(r));
    if (status == MS_OK && is_on_gpus(r)) {
        ms_note_attention(r->cx, &r->attention_use);
        r->input.kernels = ms_arena_printf(
            r->cx->arena, "attention by %s kernels, GEMMs by cuBLASLt's %s algorithms",
            ms_attention_used(&r->attention_use), path == NULL ? "first" : "timed");
    }
    return status;
}

/* ---- results ---- */

static void warn(const request *r, const ms_calibration *calibration)
{
    const double most_ratio = 1.3;
    if (calibration->launch_ratio > most_ratio) {
        ms_note(
            r->cx,
            "launches differ by a factor of %.2f: other programs run on this machine, "
            "and predictions will be off by as much",
            calibration->launch_ratio);
    }
    if (calibration->typical_ratio > most_ratio) {
        ms_note(
            r->cx,
            "kernels typically took %.2f times their CPU time: other programs share the "
            "cores, and a run will take longer than predicted",
            calibration->typical_ratio);
    }
    for (int i = 0; i < calibration->num_fits; i++)
        if (calibration->fits[i].fit.stopped)
            ms_note(r->cx, "the fit of %s stopped before it converged",
                    calibration->fits[i].name);
    if (!is_on_gpus(r) && r->input.ranks > ms_machine_cores())
        ms_note(r->cx, "%ld ranks shared %ld cores", r->input.ranks, ms_machine_cores());
}

static ms_status write_profile(const request *r, const ms_calibration *calibration)
{
    ms_output out;
    MS_TRY(ms_output_open(r->cx, r->args->common.output, &out));
    ms_profile_write_json(&out.json, &calibration->profile, r->input.date);
    return ms_output_close(r->cx, &out, MS_OK);
}

static ms_status write_report(const request *r, const ms_calibration *calibration)
{
    double elapsed_s = ms_clock_s() - r->start_s;
    ms_output out;
    MS_TRY(ms_output_open(r->cx, NULL, &out));
    if (r->args->common.json)
        ms_calibration_write_json(&out.json, calibration, elapsed_s);
    else
        ms_calibration_print(out.file, r->cx->arena, calibration, elapsed_s);
    return ms_output_close(r->cx, &out, MS_OK);
}

/* Things that the command does; the sets of its options stand in this order. */
typedef enum way {
    MEASURE,
    FROM_TABLE,
    FROM_OWN,
    NUM_WAYS
} way;

/* --constants and --holdout belong to corrections by own runs, too. */
static const char *given_of(const ms_option_set *set, way chosen,
                            const ms_calibrate_runs *runs)
{
    const char *chooser = chosen == FROM_OWN ? "--from-run" : "--from";
    if (chosen != FROM_OWN || set->out != runs)
        return ms_options_given(set, chooser);
    return runs->spread != NULL ? "--spread" : runs->ranking != NULL ? "--ranking" : NULL;
}

/* Refuses options of the ways that were not chosen. */
static ms_status check_which(ms_ctx *cx, const ms_option_set sets[NUM_WAYS], way chosen,
                             const ms_calibrate_runs *runs)
{
    static const char *const about[NUM_WAYS] = {"measuring",
                                                "constants from published measurements",
                                                "corrections by runs of your own"};
    static const char *const chooser[NUM_WAYS] = {"", "--from FILE.csv",
                                                  "--from-run RUNS.csv"};
    if (chosen == FROM_OWN && runs->runs != NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "--from fits constants to published runs, --from-run corrects them by "
                "your own: one at a time");
        return ms_hint(cx, "--from-run alone");
    }
    for (int i = 0; i < NUM_WAYS; i++) {
        const char *idle = i == (int)chosen ? NULL : given_of(&sets[i], chosen, runs);
        if (idle == NULL)
            continue;
        if (i == MEASURE)
            return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                           "%s is for measuring, and with %s nothing is measured", idle,
                           chosen == FROM_OWN ? "--from-run" : "--from");
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s is for %s, and none are given", idle,
                about[i]);
        return ms_hint(cx, "%s", chooser[i]);
    }
    return MS_OK;
}

static ms_status calibrate_here(ms_ctx *cx, const ms_args *args,
                                const calibrate_options *options)
{
    request r = {.cx = cx, .args = args, .options = options, .start_s = ms_clock_s()};
    MS_TRY(check_options(&r));
    ms_kernel_options_note_idle(cx, options->attention, options->gemm_algorithms,
                                is_on_gpus(&r));
    MS_TRY(set_up(&r));
    if (options->launch.given)
        return measure_as_rank(&r);
    MS_TRY(measure_with_algorithms(&r));
    ms_calibration *calibration = MS_NEW(cx->arena, ms_calibration);
    MS_TRY(ms_calibration_make(cx, &r.input, calibration));
    warn(&r, calibration);
    MS_TRY(write_profile(&r, calibration));
    return write_report(&r, calibration);
}

ms_status ms_cmd_calibrate(ms_ctx *cx, ms_args *args)
{
    calibrate_options options = {0};
    ms_calibrate_runs runs = {0};
    ms_calibrate_own own = {0};
    const ms_option_set sets[] = {
        {"measuring this machine", calibrate_table, &options},
        {"constants from published measurements", from_table, &runs},
        {"corrections by runs of your own", ms_calibrate_own_table, &own},
    };
    MS_TRY(ms_args_read(cx, args, sets, NUM_WAYS));
    if (args->done)
        return MS_OK;
    way chosen = own.runs != NULL ? FROM_OWN : runs.runs != NULL ? FROM_TABLE : MEASURE;
    MS_TRY(check_which(cx, sets, chosen, &runs));
    if (chosen == FROM_OWN)
        return ms_calibrate_from_own(cx, args, &own, runs.constants, runs.holdout);
    return chosen == FROM_TABLE ? ms_calibrate_from_table(cx, args, &runs)
                                : calibrate_here(cx, args, &options);
}
