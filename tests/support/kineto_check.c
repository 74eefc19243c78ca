#include "tests/support/kineto_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct event {
    const char *ph, *name, *cat;
    long pid, tid;
    double ts, dur;
    /* arguments; absent: -1, NULL */
    long device, stream, correlation, group_size;
    double in, out;
    const char *collective, *dtype, *group;
    long long start_ns, end_ns;
} event;

#define FIELD(kind_of, word, member, ...)                                                \
    {                                                                                    \
        .kind = (kind_of), .key = (word), .offset = offsetof(event, member), __VA_ARGS__ \
    }
static const ms_field event_fields[] = {
    FIELD(MS_FIELD_TEXT, "ph", ph, .required = true),
    FIELD(MS_FIELD_TEXT, "name", name, .required = true),
    FIELD(MS_FIELD_TEXT, "cat", cat, .help = NULL),
    FIELD(MS_FIELD_INTEGER, "pid", pid, .required = true, .low = 0, .high = 1e6),
    FIELD(MS_FIELD_INTEGER, "tid", tid, .required = true, .low = 0, .high = 1e6),
    FIELD(MS_FIELD_NUMBER, "ts", ts, .low = 0, .high = 1e15),
    FIELD(MS_FIELD_NUMBER, "dur", dur, .low = 0, .high = 1e15),
    {.kind = MS_FIELD_ANY, .key = "args"},
    {0},
};
static const ms_field arg_fields[] = {
    FIELD(MS_FIELD_INTEGER, "device", device, .low = 0, .high = 0.5),
    FIELD(MS_FIELD_INTEGER, "stream", stream, .low = 7, .high = 1e6),
    FIELD(MS_FIELD_INTEGER, "correlation", correlation, .low = 1, .high = 1e9),
    FIELD(MS_FIELD_INTEGER, "Group size", group_size, .low = 2, .high = 1e9),
    FIELD(MS_FIELD_NUMBER, "In msg nelems", in, .low = 0, .high = 1e15),
    FIELD(MS_FIELD_NUMBER, "Out msg nelems", out, .low = 0, .high = 1e15),
    FIELD(MS_FIELD_TEXT, "Collective name", collective, .help = NULL),
    FIELD(MS_FIELD_TEXT, "dtype", dtype, .help = NULL),
    FIELD(MS_FIELD_TEXT, "Process Group Name", group, .help = NULL),
    {.kind = MS_FIELD_ANY, .key = "Process Group Description"},
    {.kind = MS_FIELD_ANY, .key = "Process Group Ranks"},
    {.kind = MS_FIELD_ANY, .key = "Dst Rank"},
    {.kind = MS_FIELD_ANY, .key = "context"},
    {.kind = MS_FIELD_ANY, .key = "stage"},
    {.kind = MS_FIELD_ANY, .key = "microbatch"},
    {0},
};

typedef struct checker {
    ms_ctx *cx;
    ms_kineto_facts *facts;
    int num;       /* number of slices */
    event *slices; /* slices of kernels and of the host */
    int num_steps;
    const char *wrong;
} checker;

static void need(checker *c, const event *e, bool good, const char *what)
{
    if (!good && c->wrong == NULL)
        c->wrong =
            ms_arena_printf(c->cx->arena, "\"%s\" at %.3f: %s", e->name, e->ts, what);
}

/* ---- one event ---- */

static const char *const collective_names[MS_NUM_COLLECTIVES] = {
    [MS_ALL_GATHER] = "_allgather_base",
    [MS_REDUCE_SCATTER] = "_reduce_scatter_base",
    [MS_ALL_REDUCE] = "allreduce",
    [MS_ALL_TO_ALL] = "all_to_allv",
    [MS_SEND] = "send",
};

static double element_bytes(const char *dtype)
{
    if (strcmp(dtype, "Float") == 0)
        return 4.0;
    if (strcmp(dtype, "BFloat16") == 0 || strcmp(dtype, "Half") == 0)
        return 2.0;
    return strcmp(dtype, "Byte") == 0 ? 1.0 : 0.0;
}

static void add_transfer(checker *c, const event *e)
{
    need(c, e,
         e->collective != NULL && e->dtype != NULL && e->group != NULL &&
             e->group_size >= 2 && e->in >= 0.0 && e->out >= 0.0,
         "communication without its arguments");
    if (c->wrong != NULL || e->collective == NULL || e->dtype == NULL)
        return;
    int which = 0;
    while (which < MS_NUM_COLLECTIVES &&
           strcmp(collective_names[which], e->collective) != 0)
        which++;
    need(c, e, which < MS_NUM_COLLECTIVES && element_bytes(e->dtype) > 0.0,
         "an unknown collective or dtype");
    if (c->wrong != NULL)
        return;
    double per_part = (double)e->group_size, element = element_bytes(e->dtype);
    need(c, e, which != MS_ALL_GATHER || fabs(e->in * per_part - e->out) <= per_part,
         "a gather puts in another part than 1 / group");
    need(c, e, which != MS_REDUCE_SCATTER || fabs(e->out * per_part - e->in) <= per_part,
         "a scatter gets out another part than 1 / group");
    c->facts->bytes[which] += fmax(e->in, e->out) * element;
    c->facts->slack_bytes[which] += element;
}

static void add_kernel(checker *c, const event *e)
{
    long long taken_ns = e->end_ns - e->start_ns;
    need(c, e, e->device == 0 && e->stream == e->tid && e->correlation >= 1,
         "a kernel without device, stream or correlation");
    c->facts->num_kernels++;
    /* HolisticTraceAnalysis: ^nccl.*|.*ncclKernel.* */
    if (strncmp(e->name, "nccl", 4) == 0) {
        *(e->stream == 7 ? &c->facts->held_ns : &c->facts->comm_ns) += taken_ns;
        add_transfer(c, e);
        return;
    }
    need(c, e,
         strstr(e->name, "ncclKernel") == NULL && strncmp(e->name, "Mem", 3) != 0 &&
             strncmp(e->name, "dma", 3) != 0,
         "a kernel that counts as communication or memory");
    need(c, e, e->stream == 7, "a kernel on a stream of transfers");
    *(strcmp(e->name, "optimizer") == 0 ? &c->facts->update_ns : &c->facts->compute_ns) +=
        taken_ns;
}

static void add_slice(checker *c, event e)
{
    e.start_ns = llround(e.ts * 1e3);
    e.end_ns = llround((e.ts + e.dur) * 1e3);
    need(c, &e, e.cat != NULL && e.ts >= 0.0 && e.dur >= 0.0,
         "a slice without cat or time");
    if (c->wrong != NULL || e.cat == NULL)
        return;
    if (strcmp(e.cat, "kernel") == 0)
        add_kernel(c, &e);
    else if (strcmp(e.cat, "cuda_runtime") == 0)
        need(c, &e, e.stream < 0 && e.correlation >= 1, "a launch without correlation");
    else {
        need(c, &e,
             strcmp(e.cat, "user_annotation") == 0 &&
                 strcmp(e.name, "ProfilerStep#0") == 0 && ++c->num_steps == 1,
             "an unknown category, or a second step");
        c->facts->step_ns = e.end_ns - e.start_ns;
    }
    c->slices[c->num++] = e;
}

static void check_event(checker *c, ms_jval value)
{
    event e = {.ph = "", .name = "", .ts = -1.0, .dur = -1.0, .device = -1, .stream = -1};
    e.correlation = e.group_size = -1;
    e.in = e.out = -1.0;
    ms_jval args;
    bool good = ms_json_read(c->cx, value, event_fields, &e) == MS_OK &&
                ms_json_member(c->cx, value, "args", &args);
    need(c, &e, good, "a key is missing, unknown or of the wrong type");
    if (!good || strcmp(e.ph, "M") == 0)
        return;
    need(c, &e, strcmp(e.ph, "X") == 0, "an event that is no slice");
    need(c, &e, ms_json_read(c->cx, args, arg_fields, &e) == MS_OK, "wrong arguments");
    if (c->wrong == NULL)
        add_slice(c, e);
}

/* ---- all events ---- */

static int by_place(const void *left, const void *right)
{
    const event *a = left, *b = right;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

static int by_correlation(const void *left, const void *right)
{
    const event *a = left, *b = right;
    if (a->correlation != b->correlation)
        return a->correlation < b->correlation ? -1 : 1;
    return (a->stream > b->stream) - (a->stream < b->stream); /* launches first */
}

static void check_slices(checker *c)
{
    qsort(c->slices, (size_t)c->num, sizeof c->slices[0], by_place);
    for (int i = 1; i < c->num; i++) {
        const event *e = &c->slices[i], *before = e - 1;
        need(c, e,
             e->pid != before->pid || e->tid != before->tid ||
                 e->start_ns >= before->end_ns,
             "a slice begins before the one before it ends");
        need(c, e, e->stream < 0 || e->end_ns <= c->facts->step_ns,
             "a kernel ends after the step");
    }
    qsort(c->slices, (size_t)c->num, sizeof c->slices[0], by_correlation);
    need(c, &c->slices[0], c->num == 1 + 2 * c->facts->num_kernels && c->num_steps == 1,
         "not one launch for each kernel, or no step");
    for (int i = 1; i + 1 < c->num && c->wrong == NULL; i += 2) {
        const event *launch = &c->slices[i], *kernel = launch + 1;
        need(c, kernel,
             launch->stream < 0 && kernel->stream >= 0 &&
                 launch->correlation == kernel->correlation &&
                 launch->start_ns <= kernel->start_ns,
             "a kernel without a launch before it");
    }
}

static void check_head(checker *c, const char *text)
{
    static const char rank[] = "\"rank\": ", world[] = "\"world_size\": ";
    const char *found = strstr(text, rank), *size = strstr(text, world);
    if (found == NULL || found - text > 1000 || size == NULL) {
        c->wrong = "no rank at the beginning of the file";
        return;
    }
    c->facts->rank = strtol(found + strlen(rank), NULL, 10);
    c->facts->world_size = strtol(size + strlen(world), NULL, 10);
}

const char *ms_kineto_check(ms_ctx *cx, const char *text, ms_kineto_facts *facts)
{
    *facts = (ms_kineto_facts){0};
    checker c = {.cx = cx, .facts = facts};
    ms_jdoc *doc;
    ms_jval root, events;
    if (ms_json_parse(cx, "trace", text, strlen(text), &doc, &root) != MS_OK)
        return "no JSON";
    check_head(&c, text);
    if (!ms_json_member(cx, root, "traceEvents", &events) || !ms_json_is_array(events))
        c.wrong = "no traceEvents";
    int num_events = c.wrong == NULL ? ms_json_length(events) : 0;
    c.slices = MS_NEW_ARRAY(cx->arena, num_events + 1, event);
    for (int i = 0; i < num_events && c.wrong == NULL; i++)
        check_event(&c, ms_json_element(cx, events, i));
    if (c.wrong == NULL)
        check_slices(&c);
    ms_json_close(doc);
    return c.wrong;
}
