/* Chooses activations to save: a knapsack over a layer's forward nodes, last first. */
#include "costmodel/cost/saved_choice.h"

#include "base/number.h"
#include "costmodel/cost/bill.h"
#include "costmodel/cost/cast.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TENSORS 256
#define MAX_ASKED   128
#define ROUNDING    1e-12

/* ---- needed results ---- */

/* A set of results that backward does not read: a bit each, compared as a number. */
typedef struct asked {
    unsigned long long high, low;
} asked;

/* A choice of results to save among the forward nodes decided so far. */
typedef struct choice {
    ms_saved_point point;
    asked asked; /* results still to be saved or recomputed */
} choice;

typedef struct solver {
    const ms_program *program;
    ms_arena *scratch;
    bool is_needed[MAX_TENSORS]; /* [tensor] whether backward reads this result */
    asked bit[MAX_TENSORS];      /* [tensor] the result's bit; 0: needed or no result */
    bool is_free[MS_MAX_SAVED];  /* [forward node] whether it runs again in any case */
    double node_s[MS_MAX_SAVED];
    double kept_bytes[MAX_TENSORS]; /* [tensor] its bytes if it is saved */
    double most_bytes;
    choice *choices, *next;
    int num_choices, num_next, capacity;
} solver;

static bool asks(const asked *set, const asked *bit)
{
    return ((set->high & bit->high) | (set->low & bit->low)) != 0;
}

static asked bit_of(int i)
{
    assert(i < MAX_ASKED);
    return i < MAX_ASKED / 2 ? (asked){1ULL << (MAX_ASKED / 2 - 1 - i), 0}
                             : (asked){0, 1ULL << (MAX_ASKED - 1 - i)};
}

static bool is_result(const ms_program *program, int tensor)
{
    const ms_tensor *t = &program->tensors[tensor];
    return t->role == MS_ROLE_ACTIVATION && t->producer >= 0 &&
           t->producer < program->num_forward_nodes;
}

/* ---- the problem ---- */

static double movement_s(const ms_program *program, const ms_node *node,
                         const ms_saved_prices *prices)
{
    ms_node_comm comm;
    bool moves = node->op == MS_OP_REDISTRIBUTE || node->op == MS_OP_EXCHANGE;
    if (!moves || !ms_node_sends(program, node, prices->pricer, &comm))
        return 0.0;
    return comm.size_bytes / prices->bytes_per_s;
}

static void price_nodes(solver *s, const ms_saved_prices *prices)
{
    const ms_program *program = s->program;
    for (int n = 0; n < program->num_forward_nodes; n++)
        s->node_s[n] = ms_node_compute_s(program, &program->nodes[n], prices->pricer) +
                       movement_s(program, &program->nodes[n], prices);
    for (int n = program->num_forward_nodes; n < program->num_nodes; n++)
        if (program->nodes[n].pass == MS_PASS_RECOMPUTE)
            s->is_free[program->nodes[n].forward] = true;
}

/* Collects the results that backward reads if nothing is recomputed, and their bytes; the
 * others get bits. */
static void find_needed(solver *s, const ms_pricer *pricer, ms_saved_point *all)
{
    int num_bits = 0;
    assert(s->program->num_tensors <= MAX_TENSORS);
    for (int t = 0; t < s->program->num_tensors; t++) {
        s->kept_bytes[t] =
            ms_saved_frac(s->program, t, pricer) * ms_tensor_local_bytes(s->program, t);
        if (!is_result(s->program, t))
            continue;
        s->is_needed[t] = s->program->tensors[t].saved;
        if (!s->is_needed[t]) {
            s->bit[t] = bit_of(num_bits++);
            continue;
        }
        ms_saved_add(&all->keep, s->program->tensors[t].producer);
        all->bytes += s->kept_bytes[t];
    }
    s->most_bytes = all->bytes;
}

/* ---- one node ---- */

static void push(solver *s, const choice *made)
{
    if (made->point.bytes > s->most_bytes * (1.0 + ROUNDING))
        return;
    if (s->num_next == s->capacity) {
        int capacity = s->capacity * 2;
        choice *grown = MS_NEW_ARRAY(s->scratch, capacity, choice);
        choice *other = MS_NEW_ARRAY(s->scratch, capacity, choice);
        memcpy(grown, s->next, (size_t)s->num_next * sizeof *grown);
        memcpy(other, s->choices, (size_t)s->num_choices * sizeof *other);
        s->next = grown;
        s->choices = other;
        s->capacity = capacity;
    }
    s->next[s->num_next++] = *made;
}

/* Removes a node's results from `set`; returns bytes of those asked for, -1: none. */
static double take_results(const solver *s, const ms_node *node, asked *set)
{
    double bytes = -1.0;
    for (int i = 0; i < node->num_out; i++) {
        int tensor = node->out[i];
        if (!s->is_needed[tensor] && !asks(set, &s->bit[tensor]))
            continue;
        bytes = ms_max(bytes, 0.0) + s->kept_bytes[tensor];
        set->high &= ~s->bit[tensor].high;
        set->low &= ~s->bit[tensor].low;
    }
    return bytes;
}

static void decide(solver *s, int n, const choice *so_far)
{
    const ms_node *node = &s->program->nodes[n];
    choice made = *so_far;
    double bytes = take_results(s, node, &made.asked);
    if (bytes < 0.0 || s->is_free[n]) {
        push(s, &made);
        return;
    }
    choice again = made;
    if (!ms_node_is_gathered_again(s->program, node)) {
        made.point.bytes += bytes;
        ms_saved_add(&made.point.keep, n);
        push(s, &made);
    }
    again.point.seconds += s->node_s[n];
    for (int i = 0; i < node->num_in; i++) {
        again.asked.high |= s->bit[node->in[i]].high;
        again.asked.low |= s->bit[node->in[i]].low;
    }
    push(s, &again);
}

/* ---- undominated choices ---- */

static int compare(double a, double b)
{
    return (a > b) - (a < b);
}

static int compare_asked(const asked *a, const asked *b)
{
    return a->high != b->high ? (a->high > b->high) - (a->high < b->high)
                              : (a->low > b->low) - (a->low < b->low);
}

static int by_asked_bytes_seconds(const void *left, const void *right)
{
    const choice *a = left, *b = right;
    int order = compare_asked(&a->asked, &b->asked);
    if (order == 0)
        order = compare(a->point.bytes, b->point.bytes);
    return order != 0 ? order : compare(a->point.seconds, b->point.seconds);
}

static void prune(solver *s)
{
    qsort(s->next, (size_t)s->num_next, sizeof *s->next, by_asked_bytes_seconds);
    int kept = 0;
    for (int i = 0; i < s->num_next; i++) {
        const choice *last = kept > 0 ? &s->next[kept - 1] : NULL;
        bool beaten = last != NULL &&
                      compare_asked(&last->asked, &s->next[i].asked) == 0 &&
                      s->next[i].point.seconds >= last->point.seconds * (1.0 - ROUNDING);
        if (!beaten)
            s->next[kept++] = s->next[i];
    }
    s->num_next = kept;
}

static void solve(solver *s)
{
    for (int n = s->program->num_forward_nodes - 1; n >= 0; n--) {
        s->num_next = 0;
        for (int i = 0; i < s->num_choices; i++) {
            choice so_far = s->choices[i];
            decide(s, n, &so_far);
        }
        prune(s);
        choice *swap = s->choices;
        s->choices = s->next;
        s->num_choices = s->num_next;
        s->next = swap;
    }
}

ms_saved_front ms_saved_front_make(ms_arena *arena, const ms_program *program,
                                   const ms_saved_prices *prices)
{
    assert(program->num_forward_nodes <= MS_MAX_SAVED);
    ms_saved_front front = {0};
    solver s = {.program = program, .scratch = ms_arena_open(), .capacity = 256};
    s.choices = MS_NEW_ARRAY(s.scratch, s.capacity, choice);
    s.next = MS_NEW_ARRAY(s.scratch, s.capacity, choice);
    s.num_choices = 1;
    price_nodes(&s, prices);
    find_needed(&s, prices->pricer, &front.all);
    solve(&s);
    ms_saved_point *points = MS_NEW_ARRAY(arena, s.num_choices, ms_saved_point);
    for (int i = 0; i < s.num_choices; i++)
        points[i] = s.choices[i].point;
    front.num_points = s.num_choices;
    front.points = points;
    ms_arena_close(s.scratch);
    return front;
}

const ms_saved_point *ms_saved_choose(const ms_saved_front *front, double budget_frac)
{
    if (budget_frac >= 1.0)
        return &front->all;
    double most_bytes = budget_frac * front->all.bytes * (1.0 + ROUNDING);
    int i = 0;
    while (i + 1 < front->num_points && front->points[i + 1].bytes <= most_bytes)
        i++;
    return &front->points[i];
}
