/* meshsim calibrate: this machine's kernels and transfers as a cost profile. */
#include "cli/calibrate_report.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "exec/measure.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_RANKS       256
#define DEFAULT_CLUSTER "cpu"
#define STACK           "meshsim"

typedef enum backend_choice {
    BACKEND_LOOP,
    BACKEND_MPI
} backend_choice;
static const char *const backend_names[] = {"loop", "mpi", NULL};
static const char *const dtype_names[] = {"fp32", "fp64", NULL};

typedef struct calibrate_options {
    ms_opt_choice backend, dtype;
    ms_opt_integer ranks, launches;
    bool quick, force;
    const char *cluster;
} calibrate_options;

#define ROW(kind, member, ...) kind(calibrate_options, member, __VA_ARGS__)
static const ms_option calibrate_table[] = {
    ROW(MS_OPT_CHOICE, backend, "--backend", backend_names,
        "what carries out kernels and transfers: threads, or processes (default loop)"),
    ROW(MS_OPT_INTEGER, ranks, "--ranks", "N", 1, MAX_RANKS,
        "ranks at work at once, at most one a core (default: the cores)"),
    ROW(MS_OPT_CHOICE, dtype, "--dtype", dtype_names, "of the kernels (default fp32)"),
    ROW(MS_OPT_INTEGER, launches, "--launches", "N", 1, 100,
        "times to start afresh: launches differ more than rounds within one (default 5, "
        "with --quick 3)"),
    ROW(MS_OPT_FLAG, quick, "--quick", "fewer shapes and rounds: at most 30 s"),
    ROW(MS_OPT_FLAG, force, "--force", "more ranks than cores: times mean little"),
    ROW(MS_OPT_TEXT, cluster, "--cluster", "NAME|FILE",
        "that the profile is for: rates are fractions of its listed ones (default " DEFAULT_CLUSTER
        ")"),
    {0},
};

typedef struct request {
    ms_ctx *cx;
    const ms_args *args;
    const calibrate_options *options;
    ms_calibration_input input;
    ms_measure measure;
    ms_samples samples;
    double start_s;
} request;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- what to measure ---- */

static ms_status check_options(request *r)
{
    const calibrate_options *o = r->options;
    long cores = ms_machine_cores();
    if (r->args->common.output == NULL) {
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "no file for the profile is given");
        ms_hint(r->cx, "-o PROFILE.json");
        return MS_EINPUT;
    }
    if (o->ranks.given && o->ranks.value > cores && !o->force) {
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                "%ld ranks would share %ld core%s, and their times would say nothing",
                o->ranks.value, cores, cores == 1 ? "" : "s");
        ms_hint(r->cx, "--ranks %ld, or --force", cores);
        return MS_EINPUT;
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

static ms_status choose_backend(request *r)
{
    r->measure.backend = &ms_backend_loop;
    if (r->options->backend.value == BACKEND_LOOP)
        return MS_OK;
    ms_fail(r->cx, MS_EIO, MS_NOWHERE, "this program was built without MPI");
    ms_hint(r->cx, "--backend loop");
    return MS_EIO;
}

static ms_status set_up(request *r)
{
    const calibrate_options *o = r->options;
    ms_ctx *cx = r->cx;
    ms_calibration_input *in = &r->input;
    const char *cluster = o->cluster != NULL ? o->cluster : DEFAULT_CLUSTER;
    MS_TRY(choose_backend(r));
    MS_TRY(ms_cluster_load(cx, cluster, &in->cluster));
    MS_TRY(ms_profile_load(cx, in->cluster->device.profile, &in->assumed));
    MS_TRY(ms_stack_load(cx, STACK, &in->stack));
    in->ranks = o->ranks.given ? o->ranks.value : ms_machine_cores();
    in->num_launches = o->launches.given ? (int)o->launches.value : o->quick ? 3 : 5;
    in->compute = o->dtype.value == MS_REAL_FP64 ? MS_FP64 : MS_FP32;
    in->machine = ms_machine_here(cx->arena);
    in->date = today(cx->arena);
    in->backend = r->measure.backend->name;
    in->samples = &r->samples;
    r->measure.type = (ms_real_type)o->dtype.value;
    r->measure.quick = o->quick;
    r->measure.kernel_s = o->quick ? 4.0 : 22.0;
    r->measure.collective_s = o->quick ? 1.5 : 6.0;
    if (cx->verbosity > 0) {
        if (!o->ranks.given)
            ms_note_default(cx, "--ranks %ld", in->ranks);
        if (!o->launches.given)
            ms_note_default(cx, "--launches %d", in->num_launches);
    }
    return MS_OK;
}

/* ---- measuring ---- */

static void show_progress(const request *r, int launch)
{
    if (!r->args->common.quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "launch %d of %d, %.0f s\n", launch + 1, r->input.num_launches,
                now_s() - r->start_s);
}

/* Collectives also over fewer ranks, by powers of two: groups of a mesh are smaller than the world. */
static ms_status measure_launch(request *r, int launch)
{
    ms_measure how = r->measure;
    how.launch = launch;
    how.num_ranks = r->input.ranks;
    how.kernels = true;
    MS_TRY(ms_measure_launch(r->cx, &how, &r->samples));
    how.kernels = false;
    for (how.num_ranks = 2; how.num_ranks < r->input.ranks; how.num_ranks *= 2)
        MS_TRY(ms_measure_launch(r->cx, &how, &r->samples));
    return MS_OK;
}

static ms_status measure(request *r)
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

/* ---- results ---- */

static void warn(const request *r, const ms_calibration *calibration)
{
    const double most_ratio = 1.3;
    if (calibration->launch_ratio > most_ratio)
        ms_note(r->cx,
                "launches differ by a factor of %.2f: something else is at work on this "
                "machine, and predictions will be off by as much",
                calibration->launch_ratio);
    if (calibration->typical_ratio > most_ratio)
        ms_note(r->cx,
                "kernels typically took %.2f times their own time: the cores are shared "
                "with other programs, and a run will take longer than predicted",
                calibration->typical_ratio);
    if (r->input.ranks > ms_machine_cores())
        ms_note(r->cx, "%ld ranks shared %ld cores", r->input.ranks, ms_machine_cores());
}

static ms_status write_profile(const request *r, const ms_calibration *calibration)
{
    ms_output out;
    MS_TRY(ms_output_open(r->cx, r->args->common.output, &out));
    ms_jout json = ms_jout_open(out.file);
    ms_profile_write_json(&json, &calibration->profile, r->input.date);
    ms_jout_close(&json);
    return ms_output_close(r->cx, &out, MS_OK);
}

static ms_status write_report(const request *r, const ms_calibration *calibration)
{
    double elapsed_s = now_s() - r->start_s;
    ms_output out;
    MS_TRY(ms_output_open(r->cx, NULL, &out));
    if (r->args->common.json) {
        ms_jout json = ms_jout_open(out.file);
        ms_calibration_write_json(&json, calibration, elapsed_s);
        ms_jout_close(&json);
    } else {
        ms_calibration_print(out.file, r->cx->arena, calibration, elapsed_s);
    }
    return ms_output_close(r->cx, &out, MS_OK);
}

ms_status ms_cmd_calibrate(ms_ctx *cx, ms_args *args)
{
    calibrate_options options = {0};
    const ms_option_set set = {"calibrate", calibrate_table, &options};
    MS_TRY(ms_args_read(cx, args, &set, 1));
    if (args->done)
        return MS_OK;
    request r = {.cx = cx, .args = args, .options = &options, .start_s = now_s()};
    MS_TRY(check_options(&r));
    MS_TRY(set_up(&r));
    MS_TRY(measure(&r));
    ms_calibration *calibration = MS_NEW(cx->arena, ms_calibration);
    MS_TRY(ms_calibration_make(cx, &r.input, calibration));
    warn(&r, calibration);
    MS_TRY(write_profile(&r, calibration));
    return write_report(&r, calibration);
}
