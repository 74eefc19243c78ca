/* Max-min fair rates by progressive filling: the rates of all flows rise together; a flow
 * stops rising at its largest rate, or when one of its links is full. A link gets full at
 * the rate (capacity left by stopped flows) / (weight of the flows still rising on it).
 * As flows stop, that rate never falls: an outdated key in the heap of links is a lower
 * bound, and is updated only at the top. */
#include "sim/engine/maxmin.h"

#include "base/number.h"

#include <assert.h>
#include <stdbool.h>

/* Relative rounding error: only beyond it is a link full, or a rate above its bound. */
#define ROUNDING 1e-12

typedef struct entry {
    double key;
    int index;
} entry;

typedef struct heap {
    int num;
    entry *entries; /* entry with the smallest key first */
} heap;

typedef struct link_state {
    /* capacity left by flows whose rate is final; sum of the weights of other flows */
    double left, weight;
    int num_rising; /* number of uses by flows whose rate still rises */
    int first, num; /* range of the link's flows in filling.users */
} link_state;

typedef struct filling {
    const ms_maxmin_problem *problem;
    double *rate;
    bool *is_fixed; /* (num_flows): the flow's rate is final */
    link_state *links;
    int *users; /* flows sorted by link, for links that can become full */
    heap by_level, by_most;
} filling;

static bool comes_first(entry a, entry b)
{
    return a.key < b.key || (a.key <= b.key && a.index < b.index);
}

static void sift_down(heap *h, int at)
{
    entry moved = h->entries[at];
    for (int child; (child = 2 * at + 1) < h->num; at = child) {
        if (child + 1 < h->num && comes_first(h->entries[child + 1], h->entries[child]))
            child++;
        if (!comes_first(h->entries[child], moved))
            break;
        h->entries[at] = h->entries[child];
    }
    h->entries[at] = moved;
}

static void make_heap(heap *h)
{
    for (int i = h->num / 2 - 1; i >= 0; i--)
        sift_down(h, i);
}

static void drop_top(heap *h)
{
    h->entries[0] = h->entries[--h->num];
    if (h->num > 0)
        sift_down(h, 0);
}

/* Finds the links that can become full: those over capacity if all flows have their
 * largest rate. Returns the number of uses of these links. */
static int find_contested(filling *f)
{
    const ms_maxmin_problem *p = f->problem;
    for (int v = 0; v < p->num_flows; v++) {
        for (int i = p->first_use[v]; i < p->first_use[v + 1]; i++) {
            assert(p->uses[i].weight > 0.0);
            link_state *l = &f->links[p->uses[i].link];
            l->left += p->uses[i].weight * p->most[v];
            l->weight += p->uses[i].weight;
            l->num++;
        }
    }
    int num_uses = 0;
    for (int i = 0; i < p->num_links; i++) {
        link_state *l = &f->links[i];
        bool is_contested = l->left > p->capacity[i] * (1.0 + ROUNDING);
        l->num_rising = is_contested ? l->num : 0;
        l->left = p->capacity[i];
        l->first = num_uses;
        l->num = 0;
        num_uses += l->num_rising;
        if (is_contested)
            f->by_level.entries[f->by_level.num++] = (entry){l->left / l->weight, i};
    }
    return num_uses;
}

static void list_users(filling *f)
{
    const ms_maxmin_problem *p = f->problem;
    for (int v = 0; v < p->num_flows; v++) {
        bool is_limited = false;
        for (int i = p->first_use[v]; i < p->first_use[v + 1]; i++) {
            link_state *l = &f->links[p->uses[i].link];
            if (l->num_rising == 0)
                continue;
            f->users[l->first + l->num++] = v;
            is_limited = true;
        }
        f->rate[v] = p->most[v];
        f->is_fixed[v] = !is_limited;
        if (is_limited)
            f->by_most.entries[f->by_most.num++] = (entry){p->most[v], v};
    }
}

static void fix(filling *f, int flow, double rate)
{
    const ms_maxmin_problem *p = f->problem;
    f->rate[flow] = rate;
    f->is_fixed[flow] = true;
    for (int i = p->first_use[flow]; i < p->first_use[flow + 1]; i++) {
        link_state *l = &f->links[p->uses[i].link];
        l->left = ms_max(0.0, l->left - p->uses[i].weight * rate);
        l->weight -= p->uses[i].weight;
        l->num_rising--;
    }
}

/* Whether the top entry of the heap `by_level` is up to date: its link gets full next, at
 * the rate `key`. Otherwise updates or drops that entry and returns false. */
static bool top_is_current(filling *f)
{
    entry *top = &f->by_level.entries[0];
    const link_state *l = &f->links[top->index];
    if (l->num_rising == 0) {
        drop_top(&f->by_level);
        return false;
    }
    /* rate that fills the link; the old key if subtractions have left no weight */
    double level = l->weight > 0.0 ? l->left / l->weight : top->key;
    if (level <= top->key)
        return true;
    top->key = level;
    sift_down(&f->by_level, 0);
    return false;
}

static void fill(filling *f)
{
    while (f->by_level.num > 0) {
        if (!top_is_current(f))
            continue;
        entry full = f->by_level.entries[0];
        heap *bounds = &f->by_most;
        bool any = false;
        for (; bounds->num > 0; drop_top(bounds)) {
            entry bound = bounds->entries[0];
            if (f->is_fixed[bound.index])
                continue;
            if (bound.key > full.key * (1.0 + ROUNDING))
                break;
            fix(f, bound.index, bound.key);
            any = true;
        }
        if (any)
            continue; /* the flows just stopped may let this link get full later */
        const link_state *l = &f->links[full.index];
        for (int i = l->first; i < l->first + l->num; i++)
            if (!f->is_fixed[f->users[i]])
                fix(f, f->users[i], full.key);
        drop_top(&f->by_level);
    }
}

void ms_maxmin_solve(const ms_maxmin_problem *problem, ms_arena *scratch, double *rate)
{
    ms_arena_mark mark = ms_arena_save(scratch);
    filling f = {.problem = problem};
    f.rate = rate;
    f.is_fixed = MS_NEW_ARRAY(scratch, problem->num_flows, bool);
    f.links = MS_NEW_ARRAY(scratch, problem->num_links, link_state);
    f.by_level.entries = MS_NEW_ARRAY(scratch, problem->num_links, entry);
    f.by_most.entries = MS_NEW_ARRAY(scratch, problem->num_flows, entry);
    f.users = MS_NEW_ARRAY(scratch, find_contested(&f), int);
    list_users(&f);
    make_heap(&f.by_level);
    make_heap(&f.by_most);
    fill(&f);
    ms_arena_rewind(scratch, mark);
}
