#include "cli/cmd/simulate_trace.h"

#include "cli/options/output.h"
#include "sim/simulate/trace.h"
#include "sim/simulate/trace_chakra.h"
#include "sim/simulate/trace_kineto.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

typedef struct request {
    ms_ctx *cx;
    const char *path; /* file, folder, or the beginning of file names (--trace) */
    const ms_simulation *simulation;
    int num_actors; /* simulated ranks to write */
    const int *actors;
    bool all_ranks; /* --ranks all */
} request;

/* ---- checks ---- */

static bool is_empty_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL)
        return false;
    int num = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        num += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(folder);
    return num == 0;
}

/* An analyser reads all files of a folder: those of other traces must not be among them. */
static ms_status check_folder(ms_ctx *cx, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return errno == ENOENT ? MS_OK
                               : ms_fail(cx, MS_EIO, MS_NOWHERE, "cannot write %s: %s",
                                         path, strerror(errno));
    if (S_ISDIR(info.st_mode) && is_empty_folder(path))
        return MS_OK;
    ms_fail(cx, MS_EIO, MS_NOWHERE, "cannot write %s: it is %s", path,
            S_ISDIR(info.st_mode) ? "a folder with files" : "no folder");
    return ms_hint(cx, "--trace-format hta needs a new or empty folder, as the analyser "
                       "reads all files in it");
}

ms_status ms_simulate_trace_check(ms_ctx *cx, const ms_simulate_flags *flags)
{
    int format = flags->trace_format.value;
    if (flags->trace == NULL && flags->trace_format.given)
        ms_note(cx, "--trace-format has no effect without --trace");
    if (flags->trace == NULL)
        return MS_OK;
    if (strcmp(flags->trace, "-") == 0) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--trace is \"-\", must be a file");
        return ms_hint(cx, "standard output is for the result");
    }
    if (format != MS_TRACE_PERFETTO && !ms_simulate_has_nodes(flags)) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "--trace-format %s needs kernels and collectives, which --detail action "
                "does not have",
                ms_trace_format_names[format]);
        return ms_hint(cx, "--detail node");
    }
    return format == MS_TRACE_HTA ? check_folder(cx, flags->trace) : MS_OK;
}

/* MS_EINPUT: the trace would have more than `most` tasks. */
static ms_status check_size(const request *r, long num_ranks, long most)
{
    bool takes_actions = most == MS_MAX_TRACED_TASKS;
    const ms_simulation *s = r->simulation;
    double tasks = (double)s->graph->num_tasks * (double)num_ranks / s->num_actors;
    if (tasks <= (double)most)
        return MS_OK;
    ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
            "a trace of %ld ranks would have about %.1f million tasks, must be at most "
            "%ld million",
            num_ranks, tasks / 1e6, most / 1000000);
    return ms_hint(r->cx, takes_actions
                              ? "fewer --ranks, fewer micro-batches, or --detail action"
                              : "fewer --ranks or fewer micro-batches");
}

/* ---- formats ---- */

static ms_status write_perfetto(const request *r)
{
    MS_TRY(check_size(r, r->num_actors, MS_MAX_TRACED_TASKS));
    ms_output out;
    MS_TRY(ms_output_open(r->cx, r->path, &out));
    ms_trace_write(out.file, r->cx->arena, r->simulation,
                   &(ms_trace_options){r->num_actors, r->actors});
    MS_TRY(ms_output_close(r->cx, &out, MS_OK));
    ms_note(r->cx, "the trace is in %s; ui.perfetto.dev and chrome://tracing open it",
            r->path);
    return MS_OK;
}

static ms_status write_kineto_file(const request *r, const ms_rank_groups *groups,
                                   int actor)
{
    ms_output out;
    MS_TRY(ms_output_open(r->cx,
                          ms_arena_printf(r->cx->arena, "%s/rank-%ld.json", r->path,
                                          r->simulation->actors[actor].rank),
                          &out));
    ms_kineto_write(out.file, r->cx->arena, r->simulation, groups, actor);
    return ms_output_close(r->cx, &out, MS_OK);
}

static ms_status write_kineto(const request *r)
{
    MS_TRY(check_size(r, r->num_actors, MS_MAX_KINETO_TASKS));
    if (mkdir(r->path, 0777) != 0 && errno != EEXIST)
        return ms_fail(r->cx, MS_EIO, MS_NOWHERE, "cannot write %s: %s", r->path,
                       strerror(errno));
    ms_rank_groups groups = ms_rank_groups_make(r->cx->arena, r->simulation);
    for (int i = 0; i < r->num_actors; i++)
        MS_TRY(write_kineto_file(r, &groups, r->actors[i]));
    ms_note(r->cx, "the trace is in %s, a file per rank; HolisticTraceAnalysis reads it",
            r->path);
    return MS_OK;
}

static ms_status write_chakra_file(const request *r, const ms_chakra *chakra, long rank)
{
    ms_output out;
    const char *path = ms_arena_printf(r->cx->arena, "%s.%ld.et", r->path, rank);
    MS_TRY(ms_output_open(r->cx, path, &out));
    ms_chakra_write(out.file, chakra, rank);
    return ms_output_close(r->cx, &out, MS_OK);
}

/* Writes the ranks for which a simulated rank stands: all of them with --ranks all, as a
 * simulator of networks needs a file of every rank; else the simulated one. */
static ms_status write_chakra_actor(const request *r, const ms_rank_groups *groups,
                                    int actor, bool *is_written)
{
    const ms_simulation *s = r->simulation;
    ms_arena_mark mark = ms_arena_save(r->cx->arena);
    const ms_chakra *chakra = ms_chakra_open(r->cx->arena, s, groups, actor);
    ms_status status = MS_OK;
    for (long rank = 0; rank < s->fold.num_ranks && status == MS_OK; rank++) {
        is_written[rank] =
            is_written[rank] || (r->all_ranks ? s->fold.class_of[rank] == actor
                                              : s->actors[actor].rank == rank);
        if (is_written[rank] && s->fold.class_of[rank] == actor)
            status = write_chakra_file(r, chakra, rank);
    }
    if (status == MS_OK)
        ms_arena_rewind(r->cx->arena, mark);
    return status;
}

static ms_status write_chakra(const request *r)
{
    const ms_simulation *s = r->simulation;
    long num_ranks = r->all_ranks ? s->fold.num_ranks : r->num_actors;
    MS_TRY(check_size(r, num_ranks, MS_MAX_CHAKRA_TASKS));
    ms_rank_groups groups = ms_rank_groups_make(r->cx->arena, s);
    bool *is_written = MS_NEW_ARRAY(r->cx->arena, s->fold.num_ranks, bool);
    for (int i = 0; i < r->num_actors; i++)
        MS_TRY(write_chakra_actor(r, &groups, r->actors[i], is_written));
    ms_output out;
    const char *path = ms_arena_printf(r->cx->arena, "%s.groups.json", r->path);
    MS_TRY(ms_output_open(r->cx, path, &out));
    ms_chakra_write_groups(out.file, &groups, is_written);
    MS_TRY(ms_output_close(r->cx, &out, MS_OK));
    ms_note(r->cx, "the trace of %ld of %ld ranks is in %s.RANK.et, its groups in %s",
            num_ranks, s->fold.num_ranks, r->path, path);
    return MS_OK;
}

ms_status ms_simulate_trace_write(ms_ctx *cx, const ms_simulate_flags *flags,
                                  const ms_simulate_report *report)
{
    static ms_status (*const writers[])(const request *) = {
        [MS_TRACE_PERFETTO] = write_perfetto,
        [MS_TRACE_HTA] = write_kineto,
        [MS_TRACE_CHAKRA] = write_chakra,
    };
    if (flags->trace == NULL)
        return MS_OK;
    request r = {.cx = cx,
                 .path = flags->trace,
                 .simulation = report->simulation,
                 .num_actors = report->num_actors,
                 .actors = report->actors,
                 .all_ranks = flags->ranks != NULL && strcmp(flags->ranks, "all") == 0};
    return writers[flags->trace_format.value](&r);
}
