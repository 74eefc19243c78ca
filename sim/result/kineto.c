#include "sim/result/kineto.h"

#include "base/map.h"
#include "base/note.h"
#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_US 1e15

/* Seconds since an arbitrary start. */
typedef struct span {
    double start_s, end_s;
    int name; /* a kernel's index in `names` */
} span;

typedef struct spans {
    span *items;
    int num, capacity;
} spans;

typedef struct reader {
    ms_ctx *cx;
    spans compute, comm, steps, optimizer;
    spans busy;      /* disjoint, ascending: moments in which compute kernels run */
    ms_map names;    /* names of kernels */
    double *seconds; /* (names.num) in the steps, by name of kernel */
    double from_s, until_s; /* ends of all steps together */
    long device;            /* device of the kernels; -1: none yet */
} reader;

bool ms_kineto_is(ms_ctx *cx, ms_jval root)
{
    ms_jval unused;
    return ms_json_member(cx, root, "schemaVersion", &unused) &&
           !ms_json_member(cx, root, "otherData", &unused);
}

/* ---- events ---- */

static void add(reader *r, spans *list, span item)
{
    MS_MAKE_ROOM(r->cx->arena, list->items, list->num, list->capacity, 64);
    list->items[list->num++] = item;
}

/* Reads a text member; "" where it is absent or no text. */
static ms_status text_of(ms_ctx *cx, ms_jval event, const char *key, const char **out)
{
    ms_jval value;
    *out = "";
    if (!ms_json_member(cx, event, key, &value) || !ms_json_is_string(value))
        return MS_OK;
    return ms_json_text(cx, value, out);
}

static ms_status read_us(ms_ctx *cx, ms_jval event, const char *key, double *out)
{
    ms_jval value;
    if (!ms_json_member(cx, event, key, &value))
        return ms_json_fail(cx, event, "\"%s\" is missing", key);
    return ms_json_number(cx, value, -MAX_US, MAX_US, out);
}

static ms_status check_device(reader *r, ms_jval event)
{
    ms_jval args, value;
    long device = 0;
    if (!ms_json_member(r->cx, event, "args", &args) ||
        !ms_json_member(r->cx, args, "device", &value))
        return MS_OK;
    MS_TRY(ms_json_integer(r->cx, value, 0, 1L << 20, &device));
    if (r->device >= 0 && device != r->device)
        return ms_json_fail(r->cx, value,
                            "kernels of devices %ld and %ld: a trace must be of one rank",
                            r->device, device);
    r->device = device;
    return MS_OK;
}

static bool is_comm(const char *name)
{
    return strncmp(name, "nccl", 4) == 0 || strstr(name, "ncclKernel") != NULL;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* The list of an event; NULL if its time does not count. */
static spans *list_of(reader *r, const char *cat, const char *name)
{
    if (strcmp(cat, "kernel") == 0)
        return is_comm(name) ? &r->comm : &r->compute;
    if (strcmp(cat, "user_annotation") == 0 && begins(name, "ProfilerStep#"))
        return &r->steps;
    if (strcmp(cat, "gpu_user_annotation") == 0 && begins(name, "Optimizer.step#"))
        return &r->optimizer;
    return NULL;
}

static ms_status read_event(reader *r, ms_jval event)
{
    const char *cat, *name, *phase;
    double start_us = 0.0, taken_us = 0.0;
    MS_TRY(text_of(r->cx, event, "ph", &phase));
    MS_TRY(text_of(r->cx, event, "cat", &cat));
    MS_TRY(text_of(r->cx, event, "name", &name));
    spans *list = strcmp(phase, "X") == 0 ? list_of(r, cat, name) : NULL;
    if (list == NULL)
        return MS_OK;
    MS_TRY(read_us(r->cx, event, "ts", &start_us));
    MS_TRY(read_us(r->cx, event, "dur", &taken_us));
    if (taken_us < 0.0)
        return ms_json_fail(r->cx, event, "\"dur\" must not be below 0");
    span item = {start_us * 1e-6, (start_us + taken_us) * 1e-6, -1};
    if (list == &r->compute || list == &r->comm) {
        MS_TRY(check_device(r, event));
        item.name = ms_map_add(&r->names, name, strlen(name) + 1);
    }
    add(r, list, item);
    return MS_OK;
}

/* ---- times ---- */

static int by_start(const void *a, const void *b)
{
    const span *x = a, *y = b;
    int order = (x->start_s > y->start_s) - (x->start_s < y->start_s);
    return order != 0 ? order : (x->end_s > y->end_s) - (x->end_s < y->end_s);
}

static void sort(spans *list)
{
    if (list->num > 1)
        qsort(list->items, (size_t)list->num, sizeof *list->items, by_start);
}

/* Sums the moments of compute kernels, which become `busy`; those of the optimizer are
 * returned in *optimizer_s, too. */
static double sum_compute(reader *r, double *optimizer_s)
{
    double sum_s = 0.0, covered_s = r->from_s;
    int next = 0;
    *optimizer_s = 0.0;
    for (int i = 0; i < r->compute.num; i++) {
        const span *kernel = &r->compute.items[i];
        span own = {ms_max(kernel->start_s, covered_s), ms_min(kernel->end_s, r->until_s),
                    kernel->name};
        if (!(own.end_s > own.start_s))
            continue;
        double own_s = own.end_s - own.start_s;
        while (next < r->optimizer.num && r->optimizer.items[next].end_s <= own.start_s)
            next++;
        if (next < r->optimizer.num && r->optimizer.items[next].start_s <= own.start_s)
            *optimizer_s += own_s;
        add(r, &r->busy, own);
        r->seconds[own.name] += own_s;
        sum_s += own_s;
        covered_s = own.end_s;
    }
    return sum_s;
}

/* Sums the moments in which only NCCL's kernels run. */
static double sum_exposed(reader *r)
{
    double sum_s = 0.0, covered_s = r->from_s;
    int next = 0;
    for (int i = 0; i < r->comm.num; i++) {
        const span *kernel = &r->comm.items[i];
        double at_s = ms_max(kernel->start_s, covered_s);
        double end_s = ms_min(kernel->end_s, r->until_s), own_s = 0.0;
        while (at_s < end_s) {
            while (next < r->busy.num && r->busy.items[next].end_s <= at_s)
                next++;
            const span *busy = next < r->busy.num ? &r->busy.items[next] : NULL;
            if (busy == NULL || busy->start_s >= end_s) {
                own_s += end_s - at_s;
                break;
            }
            own_s += ms_max(0.0, busy->start_s - at_s);
            at_s = busy->end_s;
        }
        r->seconds[kernel->name] += own_s;
        sum_s += own_s;
        covered_s = ms_max(covered_s, end_s);
    }
    return sum_s;
}

static void set_nodes(const reader *r, double num_steps, ms_result *out)
{
    out->nodes = MS_NEW_ARRAY(r->cx->arena, r->names.num, ms_result_node);
    for (int i = 0; i < r->names.num; i++) {
        if (!(r->seconds[i] > 0.0))
            continue;
        out->nodes[out->num_nodes++] =
            (ms_result_node){.kind = r->names.keys[i].bytes,
                             .seconds = r->seconds[i] / num_steps,
                             .predicted_s = (double)NAN};
    }
}

static ms_status set_window(reader *r, ms_jval root)
{
    if (r->steps.num == 0) {
        ms_json_fail(r->cx, root, "no annotation \"ProfilerStep#N\" marks a step");
        return ms_hint(r->cx, "call step() of torch.profiler.profile after each step");
    }
    r->from_s = INFINITY;
    r->until_s = -INFINITY;
    for (int i = 0; i < r->steps.num; i++) {
        r->from_s = ms_min(r->from_s, r->steps.items[i].start_s);
        r->until_s = ms_max(r->until_s, r->steps.items[i].end_s);
    }
    if (r->names.num == 0 || !(r->until_s > r->from_s))
        return ms_json_fail(r->cx, root, "no kernel of a GPU, or steps without time");
    return MS_OK;
}

ms_status ms_kineto_read(ms_ctx *cx, ms_jval root, ms_jval events, ms_result *out)
{
    reader r = {.cx = cx, .names = {.arena = cx->arena}, .device = -1};
    for (int i = 0; i < ms_json_length(events); i++)
        MS_TRY(read_event(&r, ms_json_element(cx, events, i)));
    MS_TRY(set_window(&r, root));
    r.seconds = MS_NEW_ARRAY(cx->arena, r.names.num, double);
    sort(&r.compute);
    sort(&r.comm);
    sort(&r.optimizer);
    double num = (double)r.steps.num, optimizer_s;
    double compute_s = sum_compute(&r, &optimizer_s);
    out->step_s = (r.until_s - r.from_s) / num;
    out->times_s[MS_RESULT_EXPOSED_COMM] = sum_exposed(&r) / num;
    out->times_s[MS_RESULT_COMPUTE] = (compute_s - optimizer_s) / num;
    if (r.optimizer.num > 0)
        out->times_s[MS_RESULT_OPTIMIZER] = optimizer_s / num;
    else
        ms_note(cx, "no annotation marks the optimizer on the GPU: its kernels count as "
                    "compute");
    set_nodes(&r, num, out);
    return MS_OK;
}
