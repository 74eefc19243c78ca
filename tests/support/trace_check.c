#include "tests/support/trace_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* greatest process and thread id: viewers merge tracks of larger ones */
#define MOST_ID 65535

/* An event's keys, of all phases; absent: times below 0, ids -1. */
typedef struct event {
    const char *ph, *name, *cat, *scope, *bp;
    long pid, tid, id;
    double ts, dur;
} event;

#define FIELD(kind_of, word, member, ...)                                                \
    {                                                                                    \
        .kind = (kind_of), .key = (word), .offset = offsetof(event, member), __VA_ARGS__ \
    }
static const ms_field event_fields[] = {
    FIELD(MS_FIELD_TEXT, "ph", ph, .required = true),
    FIELD(MS_FIELD_TEXT, "name", name, .required = true),
    FIELD(MS_FIELD_INTEGER, "pid", pid, .required = true, .low = 1, .high = MOST_ID),
    FIELD(MS_FIELD_INTEGER, "tid", tid, .required = true, .low = 0, .high = MOST_ID),
    FIELD(MS_FIELD_TEXT, "cat", cat, .help = NULL),
    FIELD(MS_FIELD_TEXT, "s", scope, .help = NULL),
    FIELD(MS_FIELD_TEXT, "bp", bp, .help = NULL),
    FIELD(MS_FIELD_INTEGER, "id", id, .low = 0, .high = 1e9),
    FIELD(MS_FIELD_NUMBER, "ts", ts, .low = 0, .high = 1e15),
    FIELD(MS_FIELD_NUMBER, "dur", dur, .low = 0, .high = 1e15),
    {.kind = MS_FIELD_ANY, .key = "args"},
    {0},
};

/* A thread's track of slices, or a counter's of values. */
typedef struct track {
    long pid, tid;
    const char *name;
    long long last_ns; /* end of the last slice, or time of the last counter value */
} track;

typedef struct slice {
    int thread;
    long long start_ns, end_ns;
} slice;

typedef struct arrow {
    const char *name, *cat;
    int num_begins, num_ends;
    int thread[2];
    long long ns[2];
} arrow;

typedef struct checker {
    ms_ctx *cx;
    ms_trace_facts *facts;
    int num_events;
    int num_threads, num_counters, num_slices;
    track *threads, *counters; /* capacity: number of events */
    slice *slices;             /* capacity: number of events */
    arrow *arrows;             /* indexed by flow id; capacity: number of events */
    const char *wrong;
} checker;

static void fail(checker *c, const event *e, const char *what)
{
    if (c->wrong == NULL)
        c->wrong = ms_arena_printf(c->cx->arena,
                                   "event \"%s\" (%s) of pid %ld, tid %ld at %.3f: %s",
                                   e->name, e->ph, e->pid, e->tid, e->ts, what);
}

static void need(checker *c, const event *e, bool good, const char *what)
{
    if (!good)
        fail(c, e, what);
}

static long long to_ns(checker *c, const event *e, double us)
{
    double ns = round(us * 1000.0);
    need(c, e, fabs(us * 1000.0 - ns) < 1e-3, "a time is no whole nanosecond");
    return (long long)ns;
}

static ms_trace_process *find_process(checker *c, const event *e)
{
    for (int i = 0; i < c->facts->num_processes; i++)
        if (c->facts->processes[i].pid == e->pid)
            return &c->facts->processes[i];
    return NULL;
}

static int find_track(const track *tracks, int num, const event *e, const char *name)
{
    for (int i = num - 1; i >= 0; i--)
        if (tracks[i].pid == e->pid &&
            (name != NULL ? strcmp(tracks[i].name, name) == 0 : tracks[i].tid == e->tid))
            return i;
    return -1;
}

/* ---- one function a phase ---- */

static void name_process(checker *c, const event *e, const char *name)
{
    need(c, e, find_process(c, e) == NULL, "a process is named twice");
    need(c, e, c->facts->num_processes < MS_MAX_CHECKED_PROCESSES, "too many processes");
    if (c->wrong == NULL)
        c->facts->processes[c->facts->num_processes++] =
            (ms_trace_process){.pid = e->pid, .name = name};
}

static void name_thread(checker *c, const event *e, const char *name)
{
    need(c, e, find_process(c, e) != NULL, "a thread of no process");
    need(c, e, find_track(c->threads, c->num_threads, e, NULL) < 0,
         "a thread is named twice");
    c->threads[c->num_threads++] = (track){e->pid, e->tid, name, 0};
}

static void check_metadata(checker *c, const event *e, ms_jval args)
{
    static const ms_field name_fields[] = {
        {.kind = MS_FIELD_TEXT, .key = "name", .required = true}, {0}};
    static const ms_field index_fields[] = {
        {.kind = MS_FIELD_INTEGER, .key = "sort_index", .required = true, .high = 1e6},
        {0}};
    const char *name = NULL;
    long index;
    bool is_name = strstr(e->name, "_name") != NULL;
    bool is_process = strncmp(e->name, "process_", 8) == 0;
    const char *rest = e->name + (is_process ? 8 : 7);
    need(c, e,
         (is_process || strncmp(e->name, "thread_", 7) == 0) &&
             (strcmp(rest, "name") == 0 || strcmp(rest, "sort_index") == 0),
         "unknown metadata");
    need(c, e,
         ms_json_read(c->cx, args, is_name ? name_fields : index_fields,
                      is_name ? (void *)&name : (void *)&index) == MS_OK,
         "metadata without its argument");
    if (c->wrong != NULL)
        return;
    if (is_name && is_process)
        name_process(c, e, name);
    else if (is_name)
        name_thread(c, e, name);
    else {
        need(c, e,
             is_process ? find_process(c, e) != NULL
                        : find_track(c->threads, c->num_threads, e, NULL) >= 0,
             "an order for what has no name");
    }
}

static void check_slice(checker *c, const event *e)
{
    int thread = find_track(c->threads, c->num_threads, e, NULL);
    need(c, e, thread >= 0, "a slice on a thread without a name");
    need(c, e, e->cat != NULL && e->ts >= 0.0 && e->dur > 0.0,
         "a slice needs cat, ts and a dur > 0");
    if (c->wrong != NULL)
        return;
    long long start_ns = to_ns(c, e, e->ts), end_ns = start_ns + to_ns(c, e, e->dur);
    need(c, e, start_ns >= c->threads[thread].last_ns,
         "a slice begins before the one before it on its thread ends");
    c->threads[thread].last_ns = end_ns;
    c->slices[c->num_slices++] = (slice){thread, start_ns, end_ns};
    ms_trace_process *process = find_process(c, e);
    process->num_slices++;
    if (strncmp(c->threads[thread].name, "compute", 7) == 0)
        process->compute_ns += end_ns - start_ns;
    if (end_ns > process->end_ns)
        process->end_ns = end_ns;
}

static void check_counter(checker *c, const event *e, ms_jval args)
{
    need(c, e, e->ts >= 0.0, "a counter needs ts");
    need(c, e, ms_json_is_object(args) && ms_json_length(args) > 0,
         "a counter needs values");
    ms_trace_process *process = find_process(c, e);
    need(c, e, process != NULL, "a counter of no process");
    if (c->wrong != NULL || process == NULL)
        return;
    for (int i = 0; i < ms_json_length(args); i++) {
        const char *key;
        double value;
        ms_jval entry = ms_json_entry(c->cx, args, i, &key);
        need(c, e, ms_json_number(c->cx, entry, 0.0, 1e18, &value) == MS_OK,
             "a counter has a value that is no number or negative");
    }
    long long ns = to_ns(c, e, e->ts);
    int at = find_track(c->counters, c->num_counters, e, e->name);
    if (at < 0) {
        at = c->num_counters++;
        c->counters[at] = (track){e->pid, 0, e->name, -1};
    }
    need(c, e, ns > c->counters[at].last_ns, "a counter goes back in time");
    c->counters[at].last_ns = ns;
    process->num_counters++;
    c->facts->num_counters++;
}

static void check_marker(checker *c, const event *e)
{
    need(c, e, e->ts >= 0.0, "a marker needs ts");
    need(c, e, e->scope != NULL && strlen(e->scope) == 1 && strchr("tpg", *e->scope),
         "the scope of a marker is t, p or g");
    need(c, e, find_process(c, e) != NULL, "a marker of no process");
    if (c->wrong == NULL && strcmp(e->name, "end of the step") == 0)
        c->facts->step_end_ns = to_ns(c, e, e->ts);
}

static void check_arrow(checker *c, const event *e, bool is_end)
{
    need(c, e, e->cat != NULL && e->ts >= 0.0 && e->id >= 0,
         "an arrow needs cat, ts, id");
    need(c, e, e->id < c->num_events, "an arrow's id is not small");
    need(c, e, !is_end || (e->bp != NULL && strcmp(e->bp, "e") == 0),
         "the end of an arrow needs bp e");
    int thread = find_track(c->threads, c->num_threads, e, NULL);
    need(c, e, thread >= 0, "an arrow on a thread without a name");
    if (c->wrong != NULL || e->cat == NULL)
        return;
    arrow *a = &c->arrows[e->id];
    bool is_first = a->num_begins + a->num_ends == 0;
    need(c, e, is_first || (strcmp(a->name, e->name) == 0 && strcmp(a->cat, e->cat) == 0),
         "the ends of an arrow differ in name or cat");
    a->name = e->name;
    a->cat = e->cat;
    a->thread[is_end] = thread;
    a->ns[is_end] = to_ns(c, e, e->ts);
    need(c, e, ++*(is_end ? &a->num_ends : &a->num_begins) == 1,
         "an arrow begins or ends twice");
}

static void check_event(checker *c, ms_jval value)
{
    event e = {.ph = "", .name = "", .id = -1, .ts = -1.0, .dur = -1.0};
    ms_jval args = {0};
    if (ms_json_read(c->cx, value, event_fields, &e) != MS_OK) {
        fail(c, &e, "a key is missing, unknown or of the wrong type");
        return;
    }
    bool has_args = ms_json_member(c->cx, value, "args", &args);
    need(c, &e, strlen(e.ph) == 1 && strchr("MXCisf", *e.ph), "unknown phase");
    need(c, &e, e.name[0] != '\0', "no name");
    need(c, &e, has_args || strchr("isf", *e.ph), "no args");
    if (c->wrong != NULL)
        return;
    switch (e.ph[0]) {
    case 'M':
        check_metadata(c, &e, args);
        break;
    case 'X':
        check_slice(c, &e);
        break;
    case 'C':
        check_counter(c, &e, args);
        break;
    case 'i':
        check_marker(c, &e);
        break;
    default:
        check_arrow(c, &e, e.ph[0] == 'f');
    }
}

/* ---- arrows against slices ---- */

static int by_place(const void *left, const void *right)
{
    const slice *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread - b->thread;
    return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

/* Whether some slice of a thread covers a time; needs slices sorted by thread and
 * start. */
static bool is_inside_a_slice(const checker *c, int thread, long long ns)
{
    /* binary search for the last slice that begins by the given time */
    int low = 0, high = c->num_slices;
    while (low < high) {
        int middle = (low + high) / 2;
        const slice *s = &c->slices[middle];
        if (s->thread < thread || (s->thread == thread && s->start_ns <= ns))
            low = middle + 1;
        else
            high = middle;
    }
    const slice *s = &c->slices[low - 1];
    return low > 0 && s->thread == thread && s->start_ns <= ns && ns < s->end_ns;
}

static void check_arrows(checker *c)
{
    qsort(c->slices, (size_t)c->num_slices, sizeof c->slices[0], by_place);
    for (int id = 0; id < c->num_events; id++) {
        const arrow *a = &c->arrows[id];
        if (a->num_begins + a->num_ends == 0)
            continue;
        event e = {.ph = "s", .name = a->name, .id = id, .ts = (double)a->ns[0] / 1000.0};
        need(c, &e, a->num_begins == 1 && a->num_ends == 1, "an arrow has one end only");
        need(c, &e, a->ns[1] >= a->ns[0], "an arrow goes back in time");
        for (int end = 0; end < 2 && c->wrong == NULL; end++)
            need(c, &e, is_inside_a_slice(c, a->thread[end], a->ns[end]),
                 "an end of an arrow lies in no slice");
        c->facts->num_flows++;
    }
}

/* ---- the document ---- */

static void check_events(checker *c, ms_jval events)
{
    c->num_events = ms_json_length(events);
    c->threads = MS_NEW_ARRAY(c->cx->arena, c->num_events, track);
    c->counters = MS_NEW_ARRAY(c->cx->arena, c->num_events, track);
    c->slices = MS_NEW_ARRAY(c->cx->arena, c->num_events, slice);
    c->arrows = MS_NEW_ARRAY(c->cx->arena, c->num_events, arrow);
    for (int i = 0; i < c->num_events && c->wrong == NULL; i++)
        check_event(c, ms_json_element(c->cx, events, i));
    check_arrows(c);
    c->facts->num_slices = c->num_slices;
    c->facts->num_threads = c->num_threads;
}

const char *ms_trace_check(ms_ctx *cx, const char *text, size_t length,
                           ms_trace_facts *facts)
{
    static const char *const units[] = {"ms", "ns", NULL};
    static const ms_field fields[] = {{.kind = MS_FIELD_ANY, .key = "traceEvents"},
                                      {.kind = MS_FIELD_CHOICE,
                                       .key = "displayTimeUnit",
                                       .required = true,
                                       .choices = units},
                                      {.kind = MS_FIELD_ANY, .key = "otherData"},
                                      {0}};
    *facts = (ms_trace_facts){.step_end_ns = -1};
    checker c = {.cx = cx, .facts = facts};
    ms_jdoc *doc;
    ms_jval root, events;
    int unit;
    if (ms_json_parse(cx, "trace", text, length, &doc, &root) != MS_OK)
        return "no JSON";
    if (ms_json_read(cx, root, fields, &unit) != MS_OK)
        c.wrong =
            "the document has other keys than traceEvents, displayTimeUnit, otherData";
    else if (!ms_json_member(cx, root, "traceEvents", &events) ||
             !ms_json_is_array(events))
        c.wrong = "traceEvents is no array";
    else
        check_events(&c, events);
    ms_json_close(doc);
    return c.wrong;
}
