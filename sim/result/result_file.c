#include "sim/result/result_file.h"

#include "sim/result/kineto.h"

#include <math.h>
#include <string.h>

const char *const ms_result_kind_names[] = {
    [MS_RESULT_PREDICTION] = "prediction",
    [MS_RESULT_SIMULATION] = "simulation",
    [MS_RESULT_RUN] = "run",
    [MS_RESULT_TRACE] = "trace",
    [MS_RESULT_PLAN] = "plan",
    NULL,
};
const char *const ms_result_time_names[] = {
    [MS_RESULT_COMPUTE] = "compute", [MS_RESULT_EXPOSED_COMM] = "exposed_comm",
    [MS_RESULT_BUBBLE] = "bubble",   [MS_RESULT_OPTIMIZER] = "optimizer",
    [MS_RESULT_HOST] = "host",       NULL,
};

#define MAX_BYTES 1e18

/* ---- fields ---- */

static ms_status require_member(ms_ctx *cx, ms_jval object, const char *key, ms_jval *out)
{
    *out = (ms_jval){0};
    if (!ms_json_is_object(object))
        return ms_json_fail(cx, object, "must be an object");
    if (!ms_json_member(cx, object, key, out))
        return ms_json_fail(cx, object, "\"%s\" is missing", key);
    return MS_OK;
}

static ms_status require_array(ms_ctx *cx, ms_jval object, const char *key, ms_jval *out)
{
    MS_TRY(require_member(cx, object, key, out));
    return ms_json_is_array(*out) ? MS_OK : ms_json_fail(cx, *out, "must be an array");
}

/* Reads the number under `key` of a JSON object; JSON null becomes NaN. */
static ms_status read_number(ms_ctx *cx, ms_jval object, const char *key, double *out)
{
    ms_jval value;
    *out = NAN;
    MS_TRY(require_member(cx, object, key, &value));
    if (ms_json_is_null(value))
        return MS_OK;
    return ms_json_number(cx, value, -MAX_BYTES, MAX_BYTES, out);
}

/* read_number for keys that files may lack: NaN. */
static ms_status read_optional(ms_ctx *cx, ms_jval object, const char *key, double *out)
{
    ms_jval value;
    *out = NAN;
    return ms_json_member(cx, object, key, &value) ? read_number(cx, object, key, out)
                                                   : MS_OK;
}

static ms_status read_step_time(ms_ctx *cx, ms_jval object, double *out)
{
    MS_TRY(read_number(cx, object, "step_s", out));
    if (*out > 0.0)
        return MS_OK;
    return ms_json_fail(cx, object, "\"step_s\" must be more than 0 to be compared");
}

static ms_status read_times(ms_ctx *cx, ms_jval object, double out[MS_NUM_RESULT_TIMES])
{
    for (int i = 0; i < MS_NUM_RESULT_TIMES; i++) {
        const char *key = ms_arena_printf(cx->arena, "%s_s", ms_result_time_names[i]);
        MS_TRY(read_number(cx, object, key, &out[i]));
    }
    return MS_OK;
}

/* Reads the peak of a prediction or simulation, and what else it says of memory. */
static ms_status read_peak(ms_ctx *cx, ms_jval memory, ms_result *out)
{
    MS_TRY(read_number(cx, memory, "peak_bytes", &out->peak_bytes));
    MS_TRY(read_optional(cx, memory, "device_bytes", &out->device_bytes));
    MS_TRY(read_optional(cx, memory, "capacity_bytes", &out->capacity_bytes));
    return read_optional(cx, memory, "fits_probability", &out->fits_probability);
}

static ms_status read_categories(ms_ctx *cx, ms_jval object, const char *suffix,
                                 double out[MS_NUM_MEMORY_CATEGORIES])
{
    for (int i = 0; i < MS_NUM_MEMORY_CATEGORIES; i++) {
        const char *key =
            ms_arena_printf(cx->arena, "%s%s", ms_memory_category_names[i], suffix);
        MS_TRY(read_number(cx, object, key, &out[i]));
    }
    return MS_OK;
}

/* ---- kinds of nodes ---- */

static ms_status read_node(ms_ctx *cx, ms_jval value, double ranks, ms_result_node *out)
{
    ms_jval kind, measured;
    MS_TRY(require_member(cx, value, "kind", &kind));
    MS_TRY(ms_json_text(cx, kind, &out->kind));
    out->kind = ms_arena_strdup(cx->arena, out->kind);
    MS_TRY(read_number(cx, value, "predicted_s", &out->predicted_s));
    out->predicted_s /= ranks;
    out->seconds = out->predicted_s;
    if (!ms_json_member(cx, value, "measured_s", &measured))
        return MS_OK; /* simulations have no measured seconds */
    MS_TRY(read_number(cx, value, "measured_s", &out->seconds));
    out->seconds /= ranks;
    return MS_OK;
}

static ms_status read_num_ranks(ms_ctx *cx, ms_jval object, double *out)
{
    ms_jval value;
    *out = 1.0;
    MS_TRY(require_member(cx, object, "ranks", &value));
    return ms_json_number(cx, value, 1.0, MAX_BYTES, out);
}

static ms_status read_nodes(ms_ctx *cx, ms_jval object, double ranks, ms_result *out)
{
    ms_jval nodes;
    MS_TRY(require_array(cx, object, "nodes", &nodes));
    out->nodes = MS_NEW_ARRAY(cx->arena, ms_json_length(nodes), ms_result_node);
    for (int i = 0; i < ms_json_length(nodes); i++)
        MS_TRY(read_node(cx, ms_json_element(cx, nodes, i), ranks,
                         &out->nodes[out->num_nodes++]));
    return MS_OK;
}

/* ---- predictions and simulations ---- */

static ms_status read_prediction(ms_ctx *cx, ms_jval root, ms_result *out)
{
    ms_jval memory, parts, low;
    MS_TRY(read_step_time(cx, root, &out->step_s));
    out->has_interval =
        ms_json_member(cx, root, "step_s_low", &low) && !ms_json_is_null(low);
    MS_TRY(read_times(cx, root, out->times_s));
    MS_TRY(require_member(cx, root, "memory", &memory));
    MS_TRY(read_peak(cx, memory, out));
    MS_TRY(read_optional(cx, root, "mfu_frac", &out->mfu_frac));
    MS_TRY(require_member(cx, memory, "parts", &parts));
    return read_categories(cx, parts, "", out->memory);
}

/* Reads the memory categories of one rank; simulations of --level action have none. */
static ms_status read_rank_categories(ms_ctx *cx, ms_jval rank, ms_result *out)
{
    ms_jval memory, parts;
    MS_TRY(require_member(cx, rank, "memory", &memory));
    if (!ms_json_is_object(memory) || !ms_json_member(cx, memory, "parts", &parts))
        return MS_OK;
    return read_categories(cx, parts, "", out->memory);
}

static ms_status read_worst_rank(ms_ctx *cx, ms_jval root, double worst, ms_result *out)
{
    ms_jval ranks;
    MS_TRY(require_array(cx, root, "ranks", &ranks));
    for (int i = 0; i < ms_json_length(ranks); i++) {
        ms_jval rank = ms_json_element(cx, ranks, i);
        double index = 0.0;
        MS_TRY(read_number(cx, rank, "rank", &index));
        if (index == worst)
            return read_rank_categories(cx, rank, out);
    }
    return MS_OK;
}

/* Reads the mean seconds per rank by kind of node; the file has sums over all ranks. */
static ms_status read_simulated_nodes(ms_ctx *cx, ms_jval root, ms_result *out)
{
    ms_jval ranks;
    double sum = 0.0;
    MS_TRY(require_array(cx, root, "ranks", &ranks));
    for (int i = 0; i < ms_json_length(ranks); i++) {
        ms_jval stands_for;
        double num = 0.0;
        MS_TRY(
            require_member(cx, ms_json_element(cx, ranks, i), "stands_for", &stands_for));
        MS_TRY(ms_json_number(cx, stands_for, 1.0, MAX_BYTES, &num));
        sum += num;
    }
    if (sum == 0.0)
        return ms_json_fail(cx, ranks, "must have at least one rank");
    return read_nodes(cx, root, sum, out);
}

static ms_status read_simulation(ms_ctx *cx, ms_jval root, ms_result *out)
{
    ms_jval memory;
    double worst = 0.0;
    MS_TRY(read_step_time(cx, root, &out->step_s));
    MS_TRY(read_times(cx, root, out->times_s));
    MS_TRY(require_member(cx, root, "memory", &memory));
    MS_TRY(read_peak(cx, memory, out));
    MS_TRY(read_number(cx, memory, "worst_rank", &worst));
    MS_TRY(read_worst_rank(cx, root, worst, out));
    return read_simulated_nodes(cx, root, out);
}

/* ---- runs ---- */

static ms_status read_memory(ms_ctx *cx, ms_jval measured, ms_result *out)
{
    ms_jval peaks, memory;
    MS_TRY(require_member(cx, measured, "peak_bytes", &peaks));
    MS_TRY(require_member(cx, measured, "memory", &memory));
    if (!ms_json_is_array(peaks) || !ms_json_is_array(memory) ||
        ms_json_length(peaks) != ms_json_length(memory))
        return ms_json_fail(cx, memory, "must have an element for each peak");
    int worst = -1;
    for (int i = 0; i < ms_json_length(peaks); i++) {
        double bytes = 0.0;
        MS_TRY(ms_json_number(cx, ms_json_element(cx, peaks, i), 0.0, MAX_BYTES, &bytes));
        if (worst >= 0 && bytes <= out->peak_bytes)
            continue;
        out->peak_bytes = bytes;
        worst = i;
    }
    if (worst < 0)
        return MS_OK;
    return read_categories(cx, ms_json_element(cx, memory, worst), "_bytes", out->memory);
}

static ms_status read_run(ms_ctx *cx, ms_jval root, ms_result *out)
{
    ms_jval measured, predicted;
    MS_TRY(require_member(cx, root, "measured", &measured));
    MS_TRY(read_step_time(cx, measured, &out->step_s));
    MS_TRY(read_times(cx, measured, out->times_s));
    MS_TRY(read_memory(cx, measured, out));
    MS_TRY(require_member(cx, root, "predicted", &predicted));
    MS_TRY(read_number(cx, predicted, "step_s", &out->predicted_step_s));
    double ranks;
    MS_TRY(read_num_ranks(cx, root, &ranks));
    return read_nodes(cx, root, ranks, out);
}

/* ---- traces ---- */

static ms_status check_events(ms_ctx *cx, ms_jval events)
{
    ms_jval phase;
    if (!ms_json_is_array(events))
        return ms_json_fail(cx, events, "must be an array");
    for (int i = 0; i < ms_json_length(events); i++)
        MS_TRY(require_member(cx, ms_json_element(cx, events, i), "ph", &phase));
    return MS_OK;
}

/* Reads the totals of a trace from its "otherData" object, events being only checked, or a
 * trace of PyTorch's profiler. */
static ms_status read_trace(ms_ctx *cx, ms_jval root, ms_jval events, ms_result *out)
{
    ms_jval data;
    double ranks;
    MS_TRY(check_events(cx, events));
    if (ms_kineto_is(cx, root))
        return ms_kineto_read(cx, root, events, out);
    MS_TRY(require_member(cx, root, "otherData", &data));
    MS_TRY(read_step_time(cx, data, &out->step_s));
    MS_TRY(read_num_ranks(cx, data, &ranks));
    return read_nodes(cx, data, ranks, out);
}

/* ---- plans ---- */

static void set_plan(ms_ctx *cx, const ms_plan *plan, ms_result *out)
{
    ms_plan *choices = MS_NEW(cx->arena, ms_plan);
    *choices = *plan;
    out->made_for = choices;
    out->plan = ms_arena_printf(cx->arena, "%s on %ld of %s, stack %s: %s",
                                plan->model == NULL ? "a model" : plan->model, plan->gpus,
                                plan->cluster == NULL ? "a cluster" : plan->cluster,
                                plan->stack == NULL ? "not stated" : plan->stack,
                                ms_plan_text(cx->arena, plan));
}

/* Reads the member "plan" of a result; some results have none. */
static ms_status read_plan(ms_ctx *cx, ms_jval root, ms_result *out)
{
    ms_jval value;
    ms_plan plan;
    if (!ms_json_member(cx, root, "plan", &value) || !ms_json_is_object(value))
        return MS_OK;
    MS_TRY(ms_plan_read(cx, value, &plan));
    set_plan(cx, &plan, out);
    return MS_OK;
}

void ms_result_predicted(ms_result *result, const ms_prediction *p)
{
    const double times_s[] = {p->compute_s, p->exposed_comm_s, p->bubble_s,
                              p->optimizer_s, p->host_s};
    result->step_s = p->step_s;
    result->has_interval = !isnan(p->step_low_s);
    result->mfu_frac = p->mfu_frac;
    result->peak_bytes = p->peak_bytes;
    result->device_bytes = p->peak_bytes + p->outside_bytes;
    result->capacity_bytes = p->capacity_bytes;
    result->fits_probability = p->fits_probability;
    memcpy(result->times_s, times_s, sizeof result->times_s);
    memcpy(result->memory, p->memory, sizeof result->memory);
}

/* ---- all kinds ---- */

static ms_result empty_result(void)
{
    ms_result result = {.step_s = NAN,
                        .predicted_step_s = NAN,
                        .first_faster_probability = NAN,
                        .mfu_frac = NAN,
                        .peak_bytes = NAN,
                        .device_bytes = NAN,
                        .capacity_bytes = NAN,
                        .fits_probability = NAN};
    for (int i = 0; i < MS_NUM_RESULT_TIMES; i++)
        result.times_s[i] = NAN;
    for (int i = 0; i < MS_NUM_MEMORY_CATEGORIES; i++)
        result.memory[i] = NAN;
    return result;
}

static ms_status refuse(ms_ctx *cx, ms_jval root)
{
    ms_json_fail(cx, root,
                 "this is no plan, prediction, simulation, run, trace or search");
    ms_hint(cx, "predict, search, simulate and run write them with --json, and --trace");
    return MS_EINPUT;
}

static ms_status read_by_schema(ms_ctx *cx, ms_jval root, ms_result *out)
{
    typedef ms_status reader(ms_ctx *, ms_jval, ms_result *);
    static reader *const readers[] = {
        [MS_RESULT_PREDICTION] = read_prediction,
        [MS_RESULT_SIMULATION] = read_simulation,
        [MS_RESULT_RUN] = read_run,
    };
    ms_jval schema;
    const char *name = "";
    if (!ms_json_member(cx, root, "schema", &schema))
        return refuse(cx, root);
    MS_TRY(ms_json_text(cx, schema, &name));
    for (int kind = 0; kind < MS_RESULT_TRACE; kind++) {
        if (strcmp(name, ms_arena_printf(cx->arena, "meshsim.%s/1",
                                         ms_result_kind_names[kind])) != 0)
            continue;
        out->kind = (ms_result_kind)kind;
        MS_TRY(read_plan(cx, root, out));
        return readers[kind](cx, root, out);
    }
    return refuse(cx, root);
}

ms_status ms_result_read(ms_ctx *cx, ms_jval root, ms_result *out)
{
    *out = empty_result();
    if (!ms_json_is_object(root))
        return refuse(cx, root);
    ms_jval events;
    if (!ms_json_member(cx, root, "traceEvents", &events))
        return read_by_schema(cx, root, out);
    out->kind = MS_RESULT_TRACE;
    return read_trace(cx, root, events, out);
}

/* ---- several files ---- */

static ms_result *append(ms_ctx *cx, ms_results *results)
{
    MS_MAKE_ROOM(cx->arena, results->items, results->num, results->capacity, 8);
    ms_result *result = &results->items[results->num++];
    *result = empty_result();
    return result;
}

/* Appends a plan with its prediction, the search's number `rank`. */
static ms_status add_found(ms_ctx *cx, ms_jval entry, const char *path, int rank,
                           ms_results *results)
{
    ms_jval prediction;
    ms_result *result = append(cx, results);
    MS_TRY(require_member(cx, entry, "prediction", &prediction));
    MS_TRY(read_prediction(cx, prediction, result));
    MS_TRY(read_plan(cx, entry, result));
    result->path = path;
    result->kind = MS_RESULT_PLAN;
    result->search_rank = rank;
    return MS_OK;
}

/* Appends the plans that a search listed, or of a search of several stacks each one's. */
static ms_status add_search(ms_ctx *cx, ms_jval root, const char *path,
                            ms_results *results)
{
    ms_jval list, unused, best;
    bool of_stacks = ms_json_member(cx, root, "stacks", &unused);
    int rank = 0;
    MS_TRY(require_array(cx, root, of_stacks ? "stacks" : "plans", &list));
    for (int i = 0; i < ms_json_length(list); i++) {
        ms_jval entry = ms_json_element(cx, list, i);
        if (of_stacks && ms_json_is_object(entry)) {
            MS_TRY(require_member(cx, entry, "best", &best));
            if (ms_json_is_null(best))
                continue;
            entry = best;
        }
        MS_TRY(add_found(cx, entry, path, ++rank, results));
    }
    return rank > 0 ? MS_OK : ms_json_fail(cx, list, "the search found no plan");
}

ms_status ms_results_add(ms_ctx *cx, ms_jval root, const char *path, ms_results *results)
{
    ms_jval schema;
    const char *name = "";
    if (ms_json_is_object(root) && ms_json_member(cx, root, "schema", &schema))
        MS_TRY(ms_json_text(cx, schema, &name));
    if (strcmp(name, "meshsim.search/1") == 0)
        return add_search(cx, root, path, results);
    ms_result *result = append(cx, results);
    if (strcmp(name, "meshsim.plan/1") == 0) {
        ms_plan plan;
        MS_TRY(ms_plan_read(cx, root, &plan));
        set_plan(cx, &plan, result);
        result->kind = MS_RESULT_PLAN;
    } else {
        MS_TRY(ms_result_read(cx, root, result));
    }
    result->path = path;
    return MS_OK;
}

ms_status ms_results_add_file(ms_ctx *cx, const char *path, ms_results *results)
{
    ms_jdoc *doc;
    ms_jval root;
    MS_TRY(ms_json_load(cx, path, &doc, &root));
    ms_status status = ms_results_add(cx, root, path, results);
    ms_json_close(doc);
    return status;
}
