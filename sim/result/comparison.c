#include "sim/result/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double ms_compared_difference_s(const ms_compared_node *node)
{
    return (isnan(node->b_s) ? 0.0 : node->b_s) - (isnan(node->a_s) ? 0.0 : node->a_s);
}

static int by_difference(const void *left, const void *right)
{
    const ms_compared_node *a = left, *b = right;
    double size_a = fabs(ms_compared_difference_s(a));
    double size_b = fabs(ms_compared_difference_s(b));
    if (size_a != size_b)
        return size_a > size_b ? -1 : 1;
    return strcmp(a->kind, b->kind);
}

static int find_node(const ms_compared_node *nodes, int num, const char *kind)
{
    for (int i = 0; i < num; i++)
        if (strcmp(nodes[i].kind, kind) == 0)
            return i;
    return -1;
}

/* Joins the seconds of two results by kind of node; returns the number of kinds. */
static int join(const ms_result *a, const ms_result *b, ms_compared_node *out)
{
    int num = 0;
    for (int i = 0; i < a->num_nodes; i++)
        out[num++] = (ms_compared_node){a->nodes[i].kind, a->nodes[i].seconds, NAN};
    for (int i = 0; i < b->num_nodes; i++) {
        int at = find_node(out, a->num_nodes, b->nodes[i].kind);
        if (at < 0) {
            at = num++;
            out[at] = (ms_compared_node){b->nodes[i].kind, NAN, NAN};
        }
        out[at].b_s = b->nodes[i].seconds;
    }
    return num;
}

/* Whether `other`, a result without nodes, is the prediction made for run `run`. */
static bool is_prediction_of(const ms_result *run, const ms_result *other)
{
    const double same = 1e-6;
    return run->kind == MS_RESULT_RUN && other->num_nodes == 0 &&
           fabs(run->predicted_step_s - other->step_s) <= same * other->step_s;
}

static int join_predicted(const ms_result *run, bool run_is_b, ms_compared_node *out)
{
    for (int i = 0; i < run->num_nodes; i++) {
        const ms_result_node *node = &run->nodes[i];
        out[i] =
            (ms_compared_node){node->kind, run_is_b ? node->predicted_s : node->seconds,
                               run_is_b ? node->seconds : node->predicted_s};
    }
    return run->num_nodes;
}

/* Seconds of a step that no kind of node explains; 0 if only rounding error. */
static double remainder_s(double rest_s, double step_s)
{
    const double rounding = 1e-12;
    return fabs(rest_s) < rounding * step_s ? 0.0 : rest_s;
}

static ms_compared_node rest_of(const ms_comparison *c)
{
    ms_compared_node rest = {"in no kind", c->a->step_s, c->b->step_s};
    for (int i = 0; i < c->num_nodes; i++) {
        rest.a_s -= isnan(c->nodes[i].a_s) ? 0.0 : c->nodes[i].a_s;
        rest.b_s -= isnan(c->nodes[i].b_s) ? 0.0 : c->nodes[i].b_s;
    }
    rest.a_s = remainder_s(rest.a_s, c->a->step_s);
    rest.b_s = remainder_s(rest.b_s, c->b->step_s);
    return rest;
}

ms_comparison ms_comparison_make(ms_arena *arena, const ms_result *a, const ms_result *b)
{
    ms_comparison c = {.a = a, .b = b};
    ms_compared_node *nodes =
        MS_NEW_ARRAY(arena, a->num_nodes + b->num_nodes, ms_compared_node);
    c.a_is_predicted_by_b = is_prediction_of(b, a);
    c.b_is_predicted_by_a = !c.a_is_predicted_by_b && is_prediction_of(a, b);
    if (c.a_is_predicted_by_b)
        c.num_nodes = join_predicted(b, true, nodes);
    else if (c.b_is_predicted_by_a)
        c.num_nodes = join_predicted(a, false, nodes);
    else if (a->num_nodes > 0 && b->num_nodes > 0)
        c.num_nodes = join(a, b, nodes);
    if (c.num_nodes > 0)
        qsort(nodes, (size_t)c.num_nodes, sizeof *nodes, by_difference);
    c.nodes = nodes;
    c.rest = rest_of(&c);
    return c;
}
