#include "sim/simulate/node_kinds.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- kinds by name ---- */

ms_node_kinds ms_node_kinds_make(ms_arena *arena)
{
    return (ms_node_kinds){.arena = arena};
}

/* FNV-1a hash, 32 bits (Fowler, Noll and Vo). */
static uint32_t hash_of(const char *name, int task_kind)
{
    uint32_t hash = 2166136261u ^ (uint32_t)task_kind;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

/* The hash slot of a kind of node, or the free slot where a new kind goes. */
static int *slot_of(const ms_node_kinds *all, const char *name, int task_kind)
{
    uint32_t mask = (uint32_t)all->num_slots - 1;
    for (uint32_t at = hash_of(name, task_kind) & mask;; at = (at + 1) & mask) {
        int *slot = &all->slots[at];
        if (*slot == 0)
            return slot;
        const ms_node_kind *kind = &all->kinds[*slot - 1];
        if (kind->task_kind == task_kind &&
            (kind->name == name || strcmp(kind->name, name) == 0))
            return slot;
    }
}

/* Doubles the capacity of the hash table; half of its slots stay free. */
static void grow(ms_node_kinds *all)
{
    MS_MAKE_ROOM(all->arena, all->kinds, all->num, all->room, 256);
    all->num_slots = 2 * all->room;
    all->slots = MS_NEW_ARRAY(all->arena, all->num_slots, int);
    for (int i = 0; i < all->num; i++)
        *slot_of(all, all->kinds[i].name, all->kinds[i].task_kind) = 1 + i;
}

ms_node_kind *ms_node_kinds_at(ms_node_kinds *all, const char *name, int task_kind)
{
    if (all->num == all->room)
        grow(all);
    int *slot = slot_of(all, name, task_kind);
    if (*slot == 0) {
        all->kinds[all->num++] = (ms_node_kind){
            .name = name, .task_kind = task_kind, .measured_s = NAN, .predicted_s = NAN};
        *slot = all->num;
    }
    return &all->kinds[*slot - 1];
}

static double sorted_by_s(const ms_node_kind *kind)
{
    double seconds = isnan(kind->measured_s) ? kind->predicted_s : kind->measured_s;
    return isnan(seconds) ? 0.0 : seconds;
}

static int by_seconds(const void *left, const void *right)
{
    const ms_node_kind *a = left, *b = right;
    if (sorted_by_s(a) != sorted_by_s(b))
        return sorted_by_s(a) > sorted_by_s(b) ? -1 : 1;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : a->task_kind - b->task_kind;
}

void ms_node_kinds_sort(ms_node_kinds *all)
{
    if (all->num > 0)
        qsort(all->kinds, (size_t)all->num, sizeof *all->kinds, by_seconds);
}

/* ---- kinds of a simulation ---- */

typedef struct tally {
    const ms_simulation *sim;
    ms_node_kinds kinds;
} tally;

static const ms_task_tag *tag_of(const tally *t, int task)
{
    return ms_graph_tag(t->sim->graph, task);
}

static const char *name_of(const tally *t, const ms_task_tag *tag)
{
    const char *label = t->sim->graph->labels[tag->label];
    return label[0] == '\0' ? ms_task_kind_names[tag->kind] : label;
}

static double ranks_of(const tally *t, int actor)
{
    return (double)t->sim->actors[actor].multiplicity;
}

static ms_node_kind *kind_at(tally *t, const ms_task_tag *tag, int task_kind)
{
    ms_node_kind *kind = ms_node_kinds_at(&t->kinds, name_of(t, tag), task_kind);
    if (isnan(kind->predicted_s))
        kind->predicted_s = 0.0;
    return kind;
}

static bool is_join(const ms_task_tag *tag)
{
    return tag->kind == MS_TASK_JOIN;
}

static bool is_transfer(const ms_task_tag *tag)
{
    return !is_join(tag) && tag->stream != MS_STREAM_COMPUTE;
}

static bool is_stage_message(const ms_task_tag *tag)
{
    return tag->kind == MS_TASK_SEND || tag->kind == MS_TASK_RECEIVE;
}

/* ---- causes of gaps in compute ---- */

/* A gap on a rank's compute stream, attributed to transfers from its end backwards. */
typedef struct gap {
    tally *t;
    int actor;
    double from_s, until_s; /* part of the gap that is not attributed to a transfer yet */
    const ms_task_tag *last; /* transfer last found as a cause of the gap; NULL: none */
} gap;

static void charge_gap(gap *g, const ms_task_tag *tag, int task_kind, double from_s)
{
    double begin_s = from_s > g->from_s ? from_s : g->from_s;
    if (begin_s >= g->until_s)
        return;
    kind_at(g->t, tag, task_kind)->predicted_s +=
        ranks_of(g->t, g->actor) * (g->until_s - begin_s);
    g->until_s = begin_s;
}

/* Whichever of `best` and `task` ends later, 0 meaning none; a `task` of another rank
 * than the one with the gap is ignored. */
static int later_own_task(const gap *g, int best, int task)
{
    if (task == 0 || tag_of(g->t, task)->actor != g->actor)
        return best;
    const double *end_s = g->t->sim->end_s;
    return best == 0 || end_s[task] > end_s[best] ? task : best;
}

/* The last task of the rank with the gap that a join waits for, directly or through up to
 * `depth` more joins; 0: none. */
static int own_cause(const gap *g, int join, int depth)
{
    ms_task task = ms_graph_task(g->t->sim->graph, join);
    int best = 0;
    for (int i = -1; i < task.num_more; i++) {
        int other = i < 0 ? task.cross : ms_task_more(&task, i);
        bool deeper = other != 0 && depth > 0 && is_join(tag_of(g->t, other));
        best = later_own_task(g, best, deeper ? own_cause(g, other, depth - 1) : other);
    }
    return best;
}

/* Attributes a wait for other members of a group at task `join`: the time after the end
 * of this rank's own last task before the join counts for the transfer after the join.
 * Returns the task that explains the earlier part of the gap; 0: none. */
static int pass_join(gap *g, int join)
{
    int last = ms_simulation_cause(g->t->sim, join);
    if (last == 0 || is_stage_message(tag_of(g->t, last)))
        return last;
    int own = own_cause(g, join, 1);
    const ms_task_tag *blamed = g->last;
    if (blamed == NULL && is_transfer(tag_of(g->t, last)))
        blamed = tag_of(g->t, last);
    if (own != 0 && blamed != NULL)
        charge_gap(g, blamed, blamed->kind, g->t->sim->end_s[own]);
    return own != 0 ? own : last;
}

static void explain_gap(gap *g, int task)
{
    const ms_simulation *sim = g->t->sim;
    int cause = ms_simulation_cause(sim, task);
    while (cause != 0 && g->until_s > g->from_s) {
        const ms_task_tag *tag = tag_of(g->t, cause);
        if (is_join(tag)) {
            cause = pass_join(g, cause);
            continue;
        }
        if (is_stage_message(tag)) {
            charge_gap(g, tag, MS_TASK_RECEIVE, g->from_s);
            return;
        }
        if (!is_transfer(tag))
            break;
        charge_gap(g, tag, tag->kind, sim->start_s[cause]);
        g->last = tag;
        cause = ms_simulation_cause(sim, cause);
    }
    if (g->last == NULL && cause != 0 && tag_of(g->t, cause)->actor < 0)
        g->last = tag_of(g->t, task); /* the part of its collective that is the group's */
    if (g->last != NULL)
        charge_gap(g, g->last, g->last->kind, g->from_s);
}

static void add_task(tally *t, int task)
{
    const ms_simulation *sim = t->sim;
    const ms_task_tag *tag = tag_of(t, task);
    int before = ms_graph_task(sim->graph, task).before;
    if (tag->actor < 0 || is_join(tag))
        return;
    if (tag->kind == MS_TASK_SEND)
        kind_at(t, tag, MS_TASK_RECEIVE)->count += ranks_of(t, tag->actor);
    ms_node_kind *kind = kind_at(t, tag, tag->kind);
    kind->count += ranks_of(t, tag->actor);
    if (tag->stream != MS_STREAM_COMPUTE)
        return;
    kind->predicted_s +=
        ranks_of(t, tag->actor) * (sim->end_s[task] - sim->start_s[task]);
    if (before == 0 && sim->optimizer_sync != MS_SYNC_GLOBAL)
        return; /* no gap before the first task: a rank's step begins there */
    gap g = {t, tag->actor, sim->end_s[before], sim->start_s[task], NULL};
    explain_gap(&g, task);
}

ms_node_kinds ms_simulated_kinds(ms_arena *arena, const ms_simulation *simulation)
{
    tally t = {simulation, ms_node_kinds_make(arena)};
    if (simulation->options.detail != MS_DETAIL_NODE)
        return t.kinds;
    for (int task = 1; task <= simulation->graph->num_tasks; task++)
        add_task(&t, task);
    ms_node_kinds_sort(&t.kinds);
    return t.kinds;
}

/* ---- output ---- */

const char *ms_node_kind_text(ms_arena *arena, const ms_node_kind *kind)
{
    return ms_arena_printf(arena, "%s %s", kind->name,
                           ms_task_kind_names[kind->task_kind]);
}

void ms_node_kinds_write_json(ms_jout *out, const ms_node_kinds *all, bool is_measured)
{
    ms_jout_begin_array_field(out, "nodes");
    for (int i = 0; i < all->num; i++) {
        ms_arena_mark mark = ms_arena_save(all->arena);
        const ms_node_kind *kind = &all->kinds[i];
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "kind", ms_node_kind_text(all->arena, kind));
        ms_jout_number_field(out, "count", kind->count);
        if (is_measured)
            ms_jout_number_field(out, "measured_s", kind->measured_s);
        ms_jout_number_field(out, "predicted_s", kind->predicted_s);
        ms_jout_end_object(out);
        ms_arena_rewind(all->arena, mark);
    }
    ms_jout_end_array(out);
}
