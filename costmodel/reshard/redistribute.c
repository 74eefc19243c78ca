/* Finds the cheapest redistribution by uniform-cost search over specs (placements). */
#include "costmodel/reshard/redistribute_priv.h"

#include "base/map.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const char *const ms_change_names[MS_NUM_CHANGES] = {
    "slice",      "divide",     "all-gather", "reduce-scatter",
    "all-reduce", "all-to-all", "permute"};

bool ms_change_is_local(ms_change change)
{
    return change == MS_CHANGE_SLICE || change == MS_CHANGE_DIVIDE;
}

ms_collective ms_change_collective(ms_change change)
{
    static const ms_collective of[MS_NUM_CHANGES] = {
        [MS_CHANGE_ALL_GATHER] = MS_ALL_GATHER,
        [MS_CHANGE_REDUCE_SCATTER] = MS_REDUCE_SCATTER,
        [MS_CHANGE_ALL_REDUCE] = MS_ALL_REDUCE,
        [MS_CHANGE_ALL_TO_ALL] = MS_ALL_TO_ALL,
        [MS_CHANGE_PERMUTE] = MS_SEND};
    assert(!ms_change_is_local(change));
    return of[change];
}

/* ---- price of one change ---- */

/* Bytes of an all-to-all on one rank: a block per peer, each padded to the largest. */
static double exchanged_bytes(const ms_redistribute_task *task, double ranks,
                              const ms_spec *from, const ms_spec *to)
{
    long before[MS_MAX_TENSOR_DIMS], after[MS_MAX_TENSOR_DIMS];
    ms_spec_largest_size(task->mesh, from, task->tensor, before);
    ms_spec_largest_size(task->mesh, to, task->tensor, after);
    double bytes = task->tensor->element_bytes * ranks;
    for (int i = 0; i < task->tensor->num_dims; i++)
        bytes *= (double)(before[i] < after[i] ? before[i] : after[i]);
    return bytes;
}

double ms_redistribute_step_bytes(const ms_redistribute_task *task, ms_change change,
                                  ms_axis_set axes, const ms_spec *from,
                                  const ms_spec *to)
{
    double ranks = (double)ms_axis_set_ranks(task->mesh, axes);
    if (ms_change_is_local(change))
        return 0.0;
    if (change == MS_CHANGE_ALL_GATHER)
        return ranks * ms_spec_local_bytes(task->mesh, from, task->tensor);
    if (change == MS_CHANGE_REDUCE_SCATTER)
        return ranks * ms_spec_local_bytes(task->mesh, to, task->tensor);
    if (change == MS_CHANGE_ALL_TO_ALL)
        return exchanged_bytes(task, ranks, from, to);
    return ms_spec_local_bytes(task->mesh, from, task->tensor);
}

/* ---- reached specs ---- */

#define MAX_SPECS  4096 /* most specs of a search: enough for four dims on four axes */
#define MAX_EFFORT 1e6  /* most changes tried plus ranges compared: some tenths of 1 s */
/* Direct redistributions over more axes are searched with is_plain. */
#define MAX_DIRECT_AXES 4

typedef struct reached {
    ms_spec spec;
    double seconds;
    double step_bytes, step_seconds; /* bytes and seconds of the change that led here */
    ms_axis_set axes;
    ms_change change;
    int num_steps;
    int before; /* index of the previous spec; -1: this is the source */
    bool is_settled;
} reached;

typedef struct entry {
    double seconds;
    int num_steps, reached;
} entry;

typedef struct search {
    ms_move_space space;
    const ms_redistribute_task *task;
    reached *list;
    int num_reached, capacity;
    ms_map specs; /* index in `list` of each spec */
    entry *heap;
    int heap_length, heap_capacity;
    int current; /* index of the spec whose changes are tried */
    double effort_left;
    bool overflows; /* search gave up: too many specs or too much effort */
} search;

/* Writes numbers that identify a spec, one per axis; returns how many. */
static int key_of(const ms_mesh *mesh, const ms_spec *spec, long key[MS_MAX_AXES])
{
    for (int i = 0; i < mesh->num_axes; i++) {
        ms_placement at = spec->at[i];
        key[i] = at.kind;
        if (at.kind == MS_SHARD)
            key[i] |= (long)(unsigned char)at.dim << 8 | (long)ms_placement_pieces(at)
                                                             << 16;
    }
    return mesh->num_axes;
}

/* The item of a spec in s->list, added if new; NULL if MAX_SPECS are there already. */
static reached *reach(search *s, const ms_spec *spec)
{
    long key[MS_MAX_AXES];
    size_t size = (size_t)key_of(s->task->mesh, spec, key) * sizeof *key;
    int i = ms_map_find(&s->specs, key, size);
    if (i >= 0)
        return &s->list[i];
    if (s->num_reached == MAX_SPECS) {
        s->overflows = true;
        return NULL;
    }
    MS_MAKE_ROOM(s->space.scratch, s->list, s->num_reached, s->capacity, 64);
    ms_map_add(&s->specs, key, size);
    reached *made = &s->list[s->num_reached++];
    *made = (reached){.spec = *spec, .seconds = INFINITY, .before = -1};
    return made;
}

/* ---- heap ---- */

static bool precedes(entry a, entry b)
{
    if (a.seconds != b.seconds)
        return a.seconds < b.seconds;
    if (a.num_steps != b.num_steps)
        return a.num_steps < b.num_steps;
    return a.reached < b.reached;
}

static void push(search *s, entry made)
{
    MS_MAKE_ROOM(s->space.scratch, s->heap, s->heap_length, s->heap_capacity, 128);
    int at = s->heap_length++;
    for (; at > 0 && precedes(made, s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = made;
}

static entry pop(search *s)
{
    entry top = s->heap[0], last = s->heap[--s->heap_length];
    int at = 0;
    for (int child = 1; child < s->heap_length; child = 2 * at + 1) {
        if (child + 1 < s->heap_length && precedes(s->heap[child + 1], s->heap[child]))
            child++;
        if (!precedes(s->heap[child], last))
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = last;
    return top;
}

/* ---- search ---- */

static void visit(void *data, ms_change change, ms_axis_set axes, const ms_spec *to)
{
    search *s = data;
    const ms_redistribute_task *task = s->task;
    reached from = s->list[s->current];
    double bytes = ms_redistribute_step_bytes(task, change, axes, &from.spec, to);
    double step_s =
        ms_change_is_local(change)
            ? 0.0
            : task->prices->seconds(task->prices->data, ms_change_collective(change),
                                    axes, bytes);
    double seconds = from.seconds + step_s;
    if (!isfinite(seconds))
        return;
    reached *next = reach(s, to);
    entry made = {seconds, from.num_steps + 1, 0};
    if (next == NULL || next->is_settled ||
        !precedes(made, (entry){next->seconds, next->num_steps, 0}))
        return;
    next->seconds = seconds;
    next->step_bytes = bytes;
    next->step_seconds = step_s;
    next->axes = axes;
    next->change = change;
    next->num_steps = made.num_steps;
    next->before = s->current;
    made.reached = (int)(next - s->list);
    push(s, made);
}

/* Runs the search; returns the index of spec `to` in the list, -1 if not reached. */
static int run(search *s, const ms_spec *from, const ms_spec *to)
{
    reached *source = reach(s, from);
    source->seconds = 0.0;
    push(s, (entry){0.0, 0, 0});
    while (s->heap_length > 0 && !s->overflows) {
        s->current = pop(s).reached;
        if (s->list[s->current].is_settled)
            continue;
        s->list[s->current].is_settled = true;
        if (ms_spec_equal(s->task->mesh, &s->list[s->current].spec, to))
            return s->current;
        ms_spec spec = s->list[s->current].spec;
        ms_moves_visit(&s->space, &spec, visit, s);
        s->overflows = s->overflows || s->effort_left < 0.0;
    }
    return -1;
}

/* ---- the task ---- */

/* Why no sequence of changes leads to the target on one axis; NULL if one may. */
static const char *impossible(ms_arena *arena, const ms_redistribute_task *task, int axis)
{
    ms_placement from = task->from.at[axis], to = task->to.at[axis];
    char from_text[MS_PLACEMENT_TEXT], to_text[MS_PLACEMENT_TEXT];
    if (task->mesh->axes[axis].size == 1 || !ms_placement_is_partial(to) ||
        from.kind == MS_REPLICATE || from.kind == to.kind)
        return NULL;
    return ms_arena_printf(
        arena, "%s@%s cannot become %s: %s", ms_placement_text(from, from_text),
        task->mesh->axes[axis].name, ms_placement_text(to, to_text),
        from.kind == MS_SHARD
            ? "ranks hold different parts, which are no terms of one reduction"
            : "a value that waits for one reduction is none that waits for another");
}

static const char *find_reason(ms_arena *arena, const ms_redistribute_task *task)
{
    const char *why;
    if (!ms_spec_check(arena, task->mesh, task->tensor, &task->from, &why) ||
        !ms_spec_check(arena, task->mesh, task->tensor, &task->to, &why))
        return why;
    for (int i = 0; i < task->mesh->num_axes; i++)
        if ((why = impossible(arena, task, i)) != NULL)
            return why;
    return NULL;
}

/* A spec with axes of one rank replicated, since their placements mean nothing. */
static ms_spec without_trivial(const ms_mesh *mesh, const ms_spec *spec)
{
    ms_spec out = {0};
    for (int i = 0; i < mesh->num_axes; i++)
        if (mesh->axes[i].size > 1)
            out.at[i] = spec->at[i];
    return out;
}

/* Whether an axis shards a dim that an axis of `moving` shards in source or target. */
static bool is_dragged(const ms_redistribute_task *task, ms_axis_set moving, int axis)
{
    ms_placement at = task->from.at[axis];
    for (int i = 0; i < task->mesh->num_axes && at.kind == MS_SHARD; i++) {
        bool meets = ms_placement_splits(task->from.at[i], at.dim) ||
                     ms_placement_splits(task->to.at[i], at.dim);
        if ((moving >> i & 1) && meets)
            return true;
    }
    return false;
}

/* Axes whose placement changes, or that split a dim together with such an axis. */
static ms_axis_set changing(const ms_redistribute_task *task)
{
    ms_axis_set axes = 0, before;
    do {
        before = axes;
        for (int i = 0; i < task->mesh->num_axes; i++)
            if (!ms_placement_equal(task->from.at[i], task->to.at[i]) ||
                is_dragged(task, axes, i))
                axes |= 1U << i;
    } while (axes != before);
    return axes;
}

static ms_redistribute_step step_of(const search *s, const reached *to)
{
    const ms_redistribute_task *task = s->task;
    const ms_spec *from = &s->list[to->before].spec;
    return (ms_redistribute_step){
        .change = to->change,
        .axes = to->axes,
        .from = *from,
        .to = to->spec,
        .from_bytes = ms_spec_local_bytes(task->mesh, from, task->tensor),
        .to_bytes = ms_spec_local_bytes(task->mesh, &to->spec, task->tensor),
        .size_bytes = to->step_bytes,
        .seconds = to->step_seconds};
}

/* Gives axes of one rank the placements of the target, from the first step on. */
static void restore_trivial(const ms_redistribute_task *task, ms_redistribution *plan)
{
    for (int n = 0; n < plan->num_steps; n++) {
        for (int i = 0; i < task->mesh->num_axes; i++) {
            if (task->mesh->axes[i].size > 1)
                continue;
            plan->steps[n].from.at[i] = n == 0 ? task->from.at[i] : task->to.at[i];
            plan->steps[n].to.at[i] = task->to.at[i];
        }
    }
}

static void write_plan(ms_arena *arena, const search *s, int target,
                       ms_redistribution *out)
{
    const reached *at = &s->list[target];
    out->seconds = at->seconds;
    out->num_steps = at->num_steps;
    out->steps = MS_NEW_ARRAY(arena, out->num_steps, ms_redistribute_step);
    for (int n = out->num_steps - 1; n >= 0; n--) {
        out->steps[n] = step_of(s, at);
        at = &s->list[at->before];
    }
    restore_trivial(s->task, out);
}

static int count_axes(ms_axis_set axes)
{
    int n = 0;
    for (; axes != 0; axes &= axes - 1)
        n++;
    return n;
}

/* Searches a sequence that changes only `movable` axes; false if none was found. */
static bool plan_with(ms_arena *arena, const ms_redistribute_task *task,
                      ms_axis_set movable, bool is_plain, ms_redistribution *out)
{
    search s = {.task = task, .effort_left = is_plain ? HUGE_VAL : MAX_EFFORT};
    s.space = (ms_move_space){.task = task,
                              .movable = movable,
                              .leaves_orders = count_axes(movable) <= 3,
                              .is_plain = is_plain,
                              .effort_left = &s.effort_left,
                              .scratch = ms_arena_open()};
    s.specs.arena = s.space.scratch;
    ms_spec from = without_trivial(task->mesh, &task->from);
    ms_spec to = without_trivial(task->mesh, &task->to);
    int target = run(&s, &from, &to);
    out->num_specs += s.num_reached;
    out->is_optimal = target >= 0 || !s.overflows;
    if (target >= 0)
        write_plan(arena, &s, target, out);
    ms_arena_close(s.space.scratch);
    return target >= 0;
}

bool ms_redistribute(ms_arena *arena, const ms_redistribute_task *task,
                     ms_redistribution *out, const char **why)
{
    *out = (ms_redistribution){.is_optimal = true};
    *why = find_reason(arena, task);
    if (*why != NULL)
        return false;
    ms_axis_set all = 0;
    for (int i = 0; i < task->mesh->num_axes; i++)
        if (task->mesh->axes[i].size > 1)
            all |= 1U << i;
    ms_axis_set direct = changing(task) & all;
    bool overflows = task->is_direct && count_axes(direct) > MAX_DIRECT_AXES;
    if (!overflows) {
        if (plan_with(arena, task, task->is_direct ? direct : all, false, out))
            return true;
        overflows = !out->is_optimal;
    }
    bool is_planned = overflows && ((!task->is_direct && direct != all &&
                                     plan_with(arena, task, direct, false, out)) ||
                                    plan_with(arena, task, direct, true, out));
    out->is_optimal = false;
    if (!is_planned)
        *why = overflows ? ms_arena_printf(arena, "more than %d placements lie between",
                                           MAX_SPECS)
                         : "the prices offer no collective that leads there";
    return is_planned;
}
