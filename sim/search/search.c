#include "sim/search/search.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/workers.h"
#include "sim/search/found_layers.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct task {
    ms_mesh_choice mesh;
    double bound_s;
    double estimate_s; /* estimated best step time: lower ones are explored first */
    int index; /* place in the list of meshes; of plans of equal time the lowest wins */
    const ms_schedule_bounds *bounds; /* bounds of the mesh's schedules; NULL: none */
    bool is_explored;
} task;

/* A range of tasks (one per mesh) whose meshes have equal time bounds. */
typedef struct task_class {
    int first, num;
    bool is_bounded;
} task_class;

/* The K best plans so far: one per mesh, or with options->variants several. */
typedef struct leaders {
    ms_found *found; /* (capacity): best plans, fastest first */
    int *index;      /* (capacity): index of each plan's mesh */
    int num, capacity;
} leaders;

struct ms_search_state {
    ms_workload *workload;
    const ms_space *space;
    const ms_search_options *options;
    ms_arena *arena; /* memory shared by all threads, used under the lock */
    task *tasks;
    int num_tasks, next, num_items;
    task_class *classes;
    int num_classes;
    bool bounded; /* true once the time bounds of all meshes are computed */
    double start_s, reported_s;
    double begun_s; /* seconds that ms_search_begin took */
    pthread_mutex_t lock;
    leaders leaders;
    ms_counts counts;
    double least_needed_bytes;
    ms_plan least_plan;
    int least_index;
    double open_bound_s;
};
typedef ms_search_state shared;

/* ---- collecting ---- */

double ms_search_threshold_s(const ms_found *found, int num_found, int num_best)
{
    return num_found < num_best ? (double)INFINITY : found[num_best - 1].step_s;
}

/* Inserts a plan by step time; of equal times the lowest mesh index comes first. */
static void insert(leaders *l, const ms_found *found, int index)
{
    int at = l->num;
    while (at > 0 &&
           (l->found[at - 1].step_s > found->step_s ||
            (l->found[at - 1].step_s >= found->step_s && l->index[at - 1] > index)))
        at--;
    if (at == l->capacity)
        return;
    if (l->num < l->capacity)
        l->num++;
    for (int i = l->num - 1; i > at; i--) {
        l->found[i] = l->found[i - 1];
        l->index[i] = l->index[i - 1];
    }
    l->found[at] = *found;
    l->index[at] = index;
}

static void add_counts(ms_counts *sum, const ms_counts *one)
{
    sum->configurations += one->configurations;
    sum->evaluated += one->evaluated;
    sum->replayed += one->replayed;
    sum->over_memory += one->over_memory;
    sum->over_bound += one->over_bound;
    sum->dominated += one->dominated;
    sum->meshes_over_bound += one->meshes_over_bound;
    sum->schedules_over_bound += one->schedules_over_bound;
    for (int i = 0; i < MS_NUM_REFUSALS; i++)
        sum->refused[i] += one->refused[i];
    for (int i = 0; i < MS_MAX_RULES; i++)
        sum->broken[i] += one->broken[i];
}

/* ---- threads ---- */

/* The share of the search that is done, if bounding all classes of meshes takes as long as
 * exploring the meshes. */
static double done_frac(const shared *s)
{
    double frac = (double)s->next / fmax(s->num_items, 1.0);
    return s->num_classes == 0 ? frac : (s->bounded ? 0.5 : 0.0) + 0.5 * frac;
}

static void tell_progress(const shared *s, double done)
{
    const ms_search_progress progress = {done, ms_clock_s() - s->start_s,
                                         s->leaders.num > 0 ? s->leaders.found[0].step_s
                                                            : (double)NAN};
    s->options->progress(s->options->payload, &progress);
}

/* Calls the progress callback if it is time to. The caller holds the lock. */
static void report_progress(shared *s)
{
    const double first_s = 2.0, every_s = 0.25;
    double now_s = ms_clock_s();
    if (s->options->progress == NULL || now_s - s->start_s < first_s ||
        now_s - s->reported_s < every_s)
        return;
    s->reported_s = now_s;
    tell_progress(s, done_frac(s));
}

static int take_index(shared *s)
{
    pthread_mutex_lock(&s->lock);
    if (!s->bounded)
        report_progress(s);
    int index = s->next < s->num_items ? s->next++ : -1;
    pthread_mutex_unlock(&s->lock);
    return index;
}

static ms_explorer open_explorer(shared *s)
{
    ms_explorer x = ms_explorer_open(s->workload, s->space,
                                     s->options->variants ? s->options->num_best : 1);
    x.exhaustive = s->options->exhaustive;
    x.interrupted = s->options->interrupted;
    x.bounds_only = s->options->bounds_only;
    return x;
}

static void close_explorer(shared *s, ms_explorer *x)
{
    pthread_mutex_lock(&s->lock);
    add_counts(&s->counts, &x->counts);
    pthread_mutex_unlock(&s->lock);
    ms_explorer_close(x);
}

static const ms_schedule_bounds *keep_bounds(shared *s, const ms_schedule_bounds *noted)
{
    pthread_mutex_lock(&s->lock);
    ms_schedule_bounds *kept = MS_NEW(s->arena, ms_schedule_bounds);
    kept->of = MS_NEW_ARRAY(s->arena, noted->num, ms_schedule_bound);
    pthread_mutex_unlock(&s->lock);
    kept->num = kept->capacity = noted->num;
    if (noted->num > 0)
        memcpy(kept->of, noted->of, (size_t)noted->num * sizeof *kept->of);
    return kept;
}

static void bound_class(shared *s, ms_explorer *x, task_class *c)
{
    ms_plan least;
    task *tasks = &s->tasks[c->first];
    double bound_s = ms_explore_bound_s(x, &tasks[0].mesh, &least);
    if (ms_is_interrupted(s->options->interrupted))
        return; /* the bound may be that of some schedules only */
    const ms_schedule_bounds *bounds = keep_bounds(s, x->noted);
    for (int i = 0; i < c->num; i++) {
        tasks[i].bounds = bounds;
        tasks[i].bound_s = tasks[i].estimate_s = bound_s;
        if (isfinite(bound_s))
            tasks[i].estimate_s =
                fmax(bound_s, ms_explore_estimate_s(x, &tasks[i].mesh, &least));
    }
    c->is_bounded = true;
}

static void bound_meshes(void *payload)
{
    shared *s = payload;
    ms_explorer x = open_explorer(s);
    ms_schedule_bounds noted = {0};
    x.noted = &noted;
    for (int i = take_index(s); i >= 0 && !ms_is_interrupted(s->options->interrupted);
         i = take_index(s))
        if (!s->classes[i].is_bounded)
            bound_class(s, &x, &s->classes[i]);
    ms_explorer_close(&x);
}

static void note_open(shared *s, const task *t)
{
    pthread_mutex_lock(&s->lock);
    s->open_bound_s = fmin(s->open_bound_s, t->bound_s);
    pthread_mutex_unlock(&s->lock);
}

static void collect(shared *s, const ms_explorer *x, const task *t)
{
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < x->num_found; i++)
        insert(&s->leaders, &x->found[i], t->index);
    bool less = x->least_needed_bytes < s->least_needed_bytes;
    bool earlier =
        x->least_needed_bytes <= s->least_needed_bytes && t->index < s->least_index;
    if (less || earlier) {
        s->least_needed_bytes = x->least_needed_bytes;
        s->least_plan = x->least_plan;
        s->least_index = t->index;
    }
    pthread_mutex_unlock(&s->lock);
}

/* Raises the task's bound to what the exploration of its mesh proved: no plan is faster
 * than the fastest found, or where that is more, than the threshold. */
static void raise_bound(const ms_explorer *x, double threshold_s, task *t)
{
    double proven_s =
        x->num_found > 0 ? fmin(x->found[0].step_s, threshold_s) : threshold_s;
    if (!x->bounds_only && !ms_is_interrupted(x->interrupted))
        t->bound_s = fmax(t->bound_s, proven_s);
}

static void explore_task(shared *s, ms_explorer *x, task *t)
{
    pthread_mutex_lock(&s->lock);
    report_progress(s);
    const leaders *l = &s->leaders;
    double threshold_s = ms_search_threshold_s(l->found, l->num, l->capacity);
    x->known_needed_bytes = s->least_needed_bytes;
    pthread_mutex_unlock(&s->lock);
    if (!s->options->exhaustive && !s->options->bounds_only && t->bound_s > threshold_s) {
        x->counts.meshes_over_bound++;
        return;
    }
    x->least_needed_bytes = INFINITY;
    x->known = t->bounds;
    ms_explore_mesh(x, &t->mesh, threshold_s);
    if (x->num_found > 0)
        ms_log("search", "mesh %d: bound %.6g s, best %.6g s", t->index, t->bound_s,
               x->found[0].step_s);
    collect(s, x, t);
    if (ms_is_interrupted(s->options->interrupted))
        note_open(s, t);
    raise_bound(x, threshold_s, t);
    t->is_explored = true;
}

#define CLASSES_A_ROUND 16

/* Finds a first plan, for who interrupts the search before all meshes have a bound: bounds
 * a few classes of meshes spread over all, and explores the most promising mesh of theirs,
 * until some plan fits. */
static void find_first(shared *s)
{
    int num_rounds = s->num_classes / CLASSES_A_ROUND + 1;
    ms_explorer x = open_explorer(s);
    ms_schedule_bounds noted = {0};
    x.noted = &noted;
    for (int round = 0; round < num_rounds && s->leaders.num == 0 &&
                        !ms_is_interrupted(s->options->interrupted);
         round++) {
        task *best = NULL;
        for (int i = round; i < s->num_classes; i += num_rounds) {
            task_class *c = &s->classes[i];
            bound_class(s, &x, c);
            for (task *t = &s->tasks[c->first]; t < &s->tasks[c->first + c->num]; t++)
                if (c->is_bounded && isfinite(t->estimate_s) &&
                    (best == NULL || t->estimate_s < best->estimate_s))
                    best = t;
        }
        if (best != NULL)
            explore_task(s, &x, best);
    }
    ms_log("search", "first plan after %.3f s", ms_clock_s() - s->start_s);
    close_explorer(s, &x);
}

static void explore_meshes(void *payload)
{
    shared *s = payload;
    ms_explorer x = open_explorer(s);
    for (int i = take_index(s); i >= 0; i = take_index(s)) {
        if (s->tasks[i].is_explored)
            continue;
        if (ms_is_interrupted(s->options->interrupted))
            note_open(s, &s->tasks[i]);
        else
            explore_task(s, &x, &s->tasks[i]);
    }
    close_explorer(s, &x);
}

static void run_threads(shared *s, void (*work)(void *), int num_items)
{
    s->next = 0;
    s->num_items = num_items;
    ms_workers_run(s->options->num_threads, work, s);
}

/* ---- the search ---- */

static int by_estimate(const void *a, const void *b)
{
    const task *x = a, *y = b;
    if (x->estimate_s != y->estimate_s)
        return x->estimate_s < y->estimate_s ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static int by_class(const void *a, const void *b)
{
    const task *x = a, *y = b;
    int order = ms_explore_compare_bounds(&x->mesh, &y->mesh);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

static void make_classes(shared *s, ms_arena *arena)
{
    qsort(s->tasks, (size_t)s->num_tasks, sizeof *s->tasks, by_class);
    s->classes = MS_NEW_ARRAY(arena, s->num_tasks, task_class);
    for (int i = 0; i < s->num_tasks; i++) {
        if (i == 0 || s->workload->cluster->num_kinds > 0 || /* dp decides devices, too */
            ms_explore_compare_bounds(&s->tasks[i - 1].mesh, &s->tasks[i].mesh) != 0)
            s->classes[s->num_classes++] = (task_class){.first = i};
        s->classes[s->num_classes - 1].num++;
    }
}

static void make_tasks(shared *s, ms_arena *arena)
{
    double least_s = ms_step_floor_s(s->workload, s->space->base.gpus);
    ms_mesh_choice *meshes;
    s->num_tasks =
        ms_space_meshes(s->space, s->workload->model, arena, &meshes, s->counts.refused);
    s->tasks = MS_NEW_ARRAY(arena, s->num_tasks, task);
    for (int i = 0; i < s->num_tasks; i++)
        s->tasks[i] = (task){.mesh = meshes[i], .index = i, .bound_s = least_s};
}

static const ms_bounded_mesh *bounded_meshes(const shared *s, ms_arena *arena)
{
    ms_bounded_mesh *meshes = MS_NEW_ARRAY(arena, s->num_tasks, ms_bounded_mesh);
    for (int i = 0; i < s->num_tasks; i++)
        meshes[i] =
            (ms_bounded_mesh){s->tasks[i].mesh, s->tasks[i].bound_s, s->tasks[i].bounds};
    return meshes;
}

/* Plans of a mixed cluster whose layers are divided, for each that is listed: one that is
 * slower with balanced layers may be faster with divided ones. */
#define DIVIDED_PER_LISTED 8

ms_search_state *ms_search_begin(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                                 const ms_search_options *options)
{
    assert(options->num_best > 0 && options->num_threads > 0);
    shared *s = MS_NEW(cx->arena, shared);
    int capacity = ms_space_divides_layers(workload, space)
                       ? DIVIDED_PER_LISTED * options->num_best
                       : options->num_best;
    *s = (shared){.workload = workload,
                  .space = space,
                  .options = options,
                  .arena = cx->arena,
                  .start_s = ms_clock_s(),
                  .leaders = {MS_NEW_ARRAY(cx->arena, capacity, ms_found),
                              MS_NEW_ARRAY(cx->arena, capacity, int), 0, capacity},
                  .least_needed_bytes = INFINITY,
                  .open_bound_s = INFINITY,
                  .least_index = -1};
    pthread_mutex_init(&s->lock, NULL);
    make_tasks(s, cx->arena);
    if (!options->exhaustive && !options->bounds_only) {
        make_classes(s, cx->arena);
        find_first(s);
    }
    s->begun_s = ms_clock_s() - s->start_s;
    return s;
}

/* Bounds all meshes and puts the most promising first. */
static void order_meshes(shared *s)
{
    run_threads(s, bound_meshes, s->num_classes);
    qsort(s->tasks, (size_t)s->num_tasks, sizeof *s->tasks, by_estimate);
    if (!ms_is_interrupted(s->options->interrupted))
        ms_log("search", "%d meshes of %d classes bounded after %.3f s, %d sets of bills",
               s->num_tasks, s->num_classes, ms_clock_s() - s->start_s,
               s->workload->bill_keys.num);
}

static ms_search_result result_of(const shared *s)
{
    bool optimal = !isfinite(s->open_bound_s);
    return (ms_search_result){
        .num_found = s->leaders.num,
        .found = s->leaders.found,
        .balanced_step_s = NAN,
        .threshold_s =
            ms_search_threshold_s(s->leaders.found, s->leaders.num, s->options->num_best),
        .num_meshes = s->num_tasks,
        .meshes = bounded_meshes(s, s->arena),
        .counts = s->counts,
        .optimal = optimal,
        .smallest_open_bound_s = optimal ? (double)NAN : s->open_bound_s,
        .least_needed_bytes = s->least_needed_bytes,
        .least_plan = s->least_plan,
        .elapsed_s = ms_clock_s() - s->start_s};
}

static int by_step(const void *a, const void *b)
{
    const ms_found *x = a, *y = b;
    return (x->step_s > y->step_s) - (x->step_s < y->step_s);
}

/* Divides the layers of the plans found, and keeps the best; where none fits, of the plan
 * that lacks least memory. */
static void divide_layers(const shared *s, ms_search_result *out)
{
    out->balanced_step_s = out->num_found > 0 ? out->found[0].step_s : (double)INFINITY;
    ms_found_divide(s->workload, s->arena, out->found, out->num_found);
    if (out->num_found == 0 && isfinite(out->least_needed_bytes))
        out->num_found =
            ms_found_make_fit(s->workload, s->arena, &out->least_plan, &out->found[0]);
    qsort(out->found, (size_t)out->num_found, sizeof *out->found, by_step);
    if (out->num_found > s->options->num_best)
        out->num_found = s->options->num_best;
}

ms_status ms_search_complete(ms_search_state *s, ms_search_result *out)
{
    const ms_search_options *options = s->options;
    s->start_s = ms_clock_s() - s->begun_s;
    if (s->num_classes > 0)
        order_meshes(s);
    s->bounded = true;
    run_threads(s, explore_meshes, s->num_tasks);
    if (options->progress != NULL)
        tell_progress(s, 1.0);
    pthread_mutex_destroy(&s->lock);
    *out = result_of(s);
    if (ms_space_divides_layers(s->workload, s->space) && !options->bounds_only)
        divide_layers(s, out);
    return out->num_found > 0 ? MS_OK : MS_ENOFIT;
}

ms_status ms_search(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                    const ms_search_options *options, ms_search_result *out)
{
    return ms_search_complete(ms_search_begin(cx, workload, space, options), out);
}
