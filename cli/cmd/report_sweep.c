#include "cli/cmd/report_sweep.h"

#include "cli/cmd/report_json.h"

#include <math.h>
#include <string.h>

/* ---- points ---- */

typedef struct number_key {
    const char *key;
    size_t offset; /* double in ms_page_point */
} number_key;

#define KEY(member)                                                                      \
    {                                                                                    \
#member, offsetof(ms_page_point, member)                                         \
    }
static const number_key number_keys[] = {
    KEY(gpus),       KEY(sequence_length), KEY(global_batch),
    KEY(step_s),     KEY(tokens_per_s),    KEY(mfu_frac),
    KEY(peak_bytes), KEY(elapsed_s),       KEY(gpu_hours),
    KEY(cost),
};
#undef KEY

static ms_status read_point(ms_ctx *cx, ms_jval object, ms_page_point *out)
{
    if (!ms_json_is_object(object))
        return ms_json_fail(cx, object, "a point is an object");
    MS_TRY(ms_report_text(cx, object, "model", &out->model));
    MS_TRY(ms_report_text(cx, object, "cluster", &out->cluster));
    MS_TRY(ms_report_text(cx, object, "reason", &out->reason));
    MS_TRY(ms_report_text(cx, object, "broken_limit", &out->broken_limit));
    MS_TRY(ms_report_bool(cx, object, "found", &out->found));
    MS_TRY(ms_report_bool(cx, object, "optimal", &out->optimal));
    MS_TRY(ms_report_bool(cx, object, "keeps_limits", &out->keeps_limits));
    for (size_t i = 0; i < sizeof number_keys / sizeof *number_keys; i++)
        MS_TRY(ms_report_number(cx, object, number_keys[i].key,
                                (double *)((char *)out + number_keys[i].offset)));
    return MS_OK;
}

static ms_status read_points(ms_ctx *cx, ms_jval list, ms_page_sweep *out)
{
    out->num = ms_json_length(list);
    ms_page_point *points = MS_NEW_ARRAY(cx->arena, out->num, ms_page_point);
    for (int i = 0; i < out->num; i++) {
        ms_jval object = ms_json_element(cx, list, i);
        MS_TRY(read_point(cx, object, &points[i]));
        if (points[i].model == NULL || points[i].cluster == NULL)
            return ms_json_fail(cx, object, "a point has a model and a cluster");
    }
    out->points = points;
    return MS_OK;
}

/* ---- choices ---- */

/* Reads the index of a point; -1 for null. */
static ms_status read_index(ms_ctx *cx, ms_jval value, const ms_page_sweep *sweep,
                            int *out)
{
    long index = -1;
    if (!ms_json_is_null(value))
        MS_TRY(ms_json_integer(cx, value, 0, sweep->num - 1, &index));
    *out = (int)index;
    return MS_OK;
}

static ms_status read_choice(ms_ctx *cx, ms_jval object, const ms_page_sweep *sweep,
                             ms_plan_sweep_choice *out)
{
    const struct {
        const char *key;
        int *to;
    } keys[] = {{"fastest", &out->fastest},
                {"cheapest", &out->cheapest},
                {"fewest_gpus", &out->fewest}};
    ms_jval value;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!ms_json_is_object(object) ||
            !ms_json_member(cx, object, keys[i].key, &value))
            return ms_json_fail(cx, object, "the choice lacks \"%s\"", keys[i].key);
        MS_TRY(read_index(cx, value, sweep, keys[i].to));
    }
    ms_jval pareto = ms_report_member(cx, object, "pareto");
    if (!ms_json_is_array(pareto))
        return ms_json_fail(cx, object, "the choice lacks \"pareto\"");
    out->num_pareto = ms_json_length(pareto);
    out->pareto = MS_NEW_ARRAY(cx->arena, out->num_pareto, int);
    for (int i = 0; i < out->num_pareto; i++)
        MS_TRY(read_index(cx, ms_json_element(cx, pareto, i), sweep, &out->pareto[i]));
    return MS_OK;
}

static ms_status read_choices(ms_ctx *cx, ms_jval list, ms_page_sweep *out)
{
    out->num_tasks = ms_json_length(list);
    if (out->num_tasks == 0 || out->num % out->num_tasks != 0)
        return ms_json_fail(cx, list, "%d choices for %d points", out->num_tasks,
                            out->num);
    ms_plan_sweep_choice *choices =
        MS_NEW_ARRAY(cx->arena, out->num_tasks, ms_plan_sweep_choice);
    for (int i = 0; i < out->num_tasks; i++)
        MS_TRY(read_choice(cx, ms_json_element(cx, list, i), out, &choices[i]));
    out->choices = choices;
    return MS_OK;
}

/* ---- the reported point ---- */

static ms_status choose_point(ms_ctx *cx, ms_jval points, const ms_opt_integer *wanted,
                              ms_page_sweep *out)
{
    const ms_plan_sweep_choice *first = &out->choices[0];
    out->reported = first->cheapest >= 0 ? first->cheapest : first->fastest;
    if (wanted->given && wanted->value >= out->num)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the sweep has points 0 to %d, not %ld",
                       out->num - 1, wanted->value);
    if (wanted->given)
        out->reported = (int)wanted->value;
    if (out->reported < 0) {
        ms_json_fail(cx, points, "no point of the first model keeps the limits");
        return ms_hint(cx, "--point N reports another one");
    }
    const ms_page_point *point = &out->points[out->reported];
    if (!point->found)
        return ms_json_fail(cx, ms_json_element(cx, points, out->reported),
                            "the point has no plan: %s",
                            point->reason != NULL ? point->reason : "none was found");
    return MS_OK;
}

static int count_not_searched(const ms_page_sweep *sweep)
{
    int num = 0;
    for (int i = 0; i < sweep->num; i++)
        num += sweep->points[i].reason != NULL &&
               strcmp(sweep->points[i].reason, "not searched") == 0;
    return num;
}

ms_status ms_report_sweep_read(ms_ctx *cx, ms_jval root, const ms_opt_integer *wanted,
                               ms_page_sweep *out, ms_jval *reported)
{
    *out = (ms_page_sweep){0};
    ms_jval points = ms_report_member(cx, root, "points"),
            choices = ms_report_member(cx, root, "choices");
    if (!ms_json_is_array(points) || !ms_json_is_array(choices))
        return ms_json_fail(cx, root, "the sweep lacks \"points\" or \"choices\"");
    MS_TRY(read_points(cx, points, out));
    MS_TRY(read_choices(cx, choices, out));
    MS_TRY(choose_point(cx, points, wanted, out));
    *reported = ms_json_element(cx, points, out->reported);
    int missing = count_not_searched(out);
    out->about = ms_arena_printf(
        cx->arena,
        "This page is about one of the %d jobs of a sweep, each with its fastest plan.%s",
        out->num,
        missing == 0 ? ""
                     : ms_arena_printf(cx->arena,
                                       " The sweep was interrupted: %d of them were not "
                                       "searched, and may be better.",
                                       missing));
    return MS_OK;
}

/* ---- objectives ---- */

ms_status ms_report_sizes_text(ms_ctx *cx, ms_jval jobs, const char **out,
                               bool *one_batch)
{
    double first_batch = (double)NAN;
    *out = NULL;
    *one_batch = true;
    int num = ms_json_is_array(jobs) ? ms_json_length(jobs) : 0;
    for (int i = 0; i < num; i++) {
        double gpus, batch;
        ms_jval job = ms_json_element(cx, jobs, i);
        MS_TRY(ms_report_number(cx, job, "gpus", &gpus));
        MS_TRY(ms_report_number(cx, job, "global_batch", &batch));
        first_batch = i == 0 ? batch : first_batch;
        *one_batch = *one_batch && batch == first_batch;
        *out = *out == NULL ? ms_arena_printf(cx->arena, "%.0f", gpus)
                            : ms_arena_printf(cx->arena, "%s,%.0f", *out, gpus);
    }
    return MS_OK;
}

/* Reads the sizes with what they share: model, cluster, sequences. */
static ms_status read_sizes(ms_ctx *cx, ms_jval root, ms_jval jobs, ms_page_sweep *out)
{
    ms_page_point shared = {0};
    MS_TRY(read_point(cx, root, &shared));
    out->num = ms_json_length(jobs);
    ms_page_point *points = MS_NEW_ARRAY(cx->arena, out->num, ms_page_point);
    for (int i = 0; i < out->num; i++) {
        MS_TRY(read_point(cx, ms_json_element(cx, jobs, i), &points[i]));
        points[i].model = shared.model;
        points[i].cluster = shared.cluster;
        points[i].sequence_length = shared.sequence_length;
    }
    out->points = points;
    return shared.model != NULL && shared.cluster != NULL
               ? MS_OK
               : ms_json_fail(cx, root, "the search has no model or cluster");
}

ms_status ms_report_objective_read(ms_ctx *cx, ms_jval root, const ms_page_sweep **out)
{
    ms_jval objective = ms_report_member(cx, root, "objective"),
            jobs = ms_report_member(cx, objective, "jobs");
    *out = NULL;
    if (!ms_json_is_array(jobs) || ms_json_length(jobs) == 0)
        return MS_OK;
    ms_page_sweep *sweep = MS_NEW(cx->arena, ms_page_sweep);
    ms_plan_sweep_choice *none = MS_NEW(cx->arena, ms_plan_sweep_choice);
    const char *name;
    double gpus;
    bool optimal;
    *none = (ms_plan_sweep_choice){-1, -1, -1, 0, NULL};
    *sweep = (ms_page_sweep){.num_tasks = 1, .choices = none, .reported = -1};
    MS_TRY(read_sizes(cx, root, jobs, sweep));
    MS_TRY(ms_report_text(cx, objective, "name", &name));
    MS_TRY(ms_report_number(cx, objective, "gpus", &gpus));
    MS_TRY(ms_report_bool(cx, ms_report_member(cx, objective, "certificate"), "optimal",
                          &optimal));
    for (int i = 0; i < sweep->num; i++)
        if (sweep->points[i].gpus == gpus)
            sweep->reported = i;
    sweep->about = ms_arena_printf(
        cx->arena,
        "The search compared these numbers of GPUs by least %s%s. Each row is the fastest "
        "plan of its size; this page is about the simplest of the plans tied with it.",
        name != NULL ? name : "objective",
        optimal ? ", with proof that no plan on any of them is better" : "; not proven");
    *out = sweep;
    return MS_OK;
}
