#include "base/print.h"
#include "cli/report/report.h"
#include "sim/step/prediction_text.h"

#include <math.h>

#define MAX_ROWS 24 /* most orders listed in text; JSON has all */

/* Costs of the orders of a plan's axes on a cluster. */
typedef struct comparison {
    ms_arena *arena;
    const ms_mesh_orders *orders;
    const ms_plan *plan;
    const ms_cluster *cluster;
} comparison;

static const char *first_order(const comparison *c, const ms_order_cost *cost)
{
    return ms_order_text(c->arena, c->plan, cost->orders[0]);
}

static double share_slower(const comparison *c, const ms_order_cost *cost)
{
    return cost->step_s / c->orders->costs[0].step_s - 1.0;
}

/* ---- text ---- */

static void print_costs(FILE *out, const comparison *c)
{
    const ms_order_cost *best = &c->orders->costs[0];
    ms_table *table =
        MS_TABLE(c->arena, "rLrr", "#", "axes, outer to inner", "step (s)", "slower (%)");
    for (int i = 0; i < best->num_axes; i++)
        if (best->axes[i].group != MS_TRAFFIC_PP)
            MS_COLUMNS(table, "r",
                       ms_arena_printf(c->arena, "%s (ms)", best->axes[i].axis));
    MS_COLUMNS(table, "r", "bubble (ms)");
    for (int k = 0; k < c->orders->num && k < MAX_ROWS; k++) {
        const ms_order_cost *cost = &c->orders->costs[k];
        ms_table_cells(table, "%d\t%s%s\t%.*f\t%.2f", k + 1, first_order(c, cost),
                       cost->is_plans ? " *" : "", ms_decimals(best->step_s),
                       cost->step_s, 100.0 * share_slower(c, cost));
        for (int i = 0; i < best->num_axes; i++) {
            const ms_axis_prediction *axis = ms_order_axis(cost, best->axes[i].group);
            if (best->axes[i].group != MS_TRAFFIC_PP)
                ms_table_cell(table, "%.1f", axis == NULL ? 0.0 : 1e3 * axis->exposed_s);
        }
        ms_table_cell(table, "%.1f", 1e3 * cost->bubble_s);
    }
    fputc('\n', out);
    ms_table_print(table, out);
    fputs(
        "*: the plan's order. Times of axes are exposed communication, for which compute "
        "waits; waiting for stages is bubble.\n",
        out);
    if (c->orders->num > MAX_ROWS)
        ms_print(out, "... and %d more; --json has all\n", c->orders->num - MAX_ROWS);
}

/* Prints which orders of axes cost the same, so that the table has one row for them. */
static void print_alike(FILE *out, const comparison *c)
{
    bool any = false;
    for (int k = 0; k < c->orders->num && k < MAX_ROWS; k++) {
        const ms_order_cost *cost = &c->orders->costs[k];
        if (cost->num_orders == 1)
            continue;
        if (!any)
            fputs("\nThese lie on the cluster in the same way, so they cost the same:\n",
                  out);
        any = true;
        ms_print(out, "  %2d  ", k + 1);
        for (int i = 0; i < cost->num_orders && i < 3; i++)
            ms_print(out, "%s%s", i == 0 ? "" : " = ",
                     ms_order_text(c->arena, c->plan, cost->orders[i]));
        if (cost->num_orders > 3)
            ms_print(out, " = ... %d more", cost->num_orders - 3);
        fputc('\n', out);
    }
}

static void print_refused(FILE *out, const comparison *c)
{
    if (c->orders->num_refused == 0)
        return;
    ms_print(
        out,
        "\nRefused: %d order%s, for ep %ld takes the innermost ranks of dp_shard, cp and "
        "tp, which must\nlie innermost and in this order; for example %s\n",
        c->orders->num_refused, c->orders->num_refused == 1 ? "" : "s", c->plan->ep,
        ms_order_text(c->arena, c->plan, c->orders->refused[0].order));
}

static void print_best(FILE *out, const comparison *c)
{
    const ms_order_cost *best = &c->orders->costs[0];
    if (best->num_axes == 0)
        return;
    ms_table *table =
        MS_TABLE(c->arena, "lrrrrlrr", "axis", "size", "sent (GB/step)", "busy (ms)",
                 "waits (ms)", "tier", "ranks/node", "NICs/group");
    for (int i = 0; i < best->num_axes; i++) {
        const ms_axis_prediction *axis = &best->axes[i];
        double nics = ms_axis_nics(axis, c->cluster);
        ms_table_cells(table, "%s\t%ld\t%.*f\t%.1f\t%.1f\t%s\t%ld\t%.4g", axis->axis,
                       axis->size, ms_decimals(axis->bytes / 1e9), axis->bytes / 1e9,
                       1e3 * axis->seconds, 1e3 * axis->exposed_s, axis->tier,
                       axis->ranks_per_node, nics > 0.0 ? nics : (double)NAN);
    }
    fputs("\nThe best order, by axis (bytes sent by one rank)\n\n", out);
    ms_table_print(table, out);
}

/* Where an axis lies: "nvlink, 8 ranks a node" or "leaf, 1 rank a node, 1 NIC". */
static const char *place_text(const comparison *c, const ms_axis_prediction *axis)
{
    double nics = ms_axis_nics(axis, c->cluster);
    const char *text =
        ms_arena_printf(c->arena, "%s, %ld rank%s a node", axis->tier,
                        axis->ranks_per_node, axis->ranks_per_node == 1 ? "" : "s");
    return nics > 0.0 ? ms_arena_printf(c->arena, "%s, %.4g NIC%s", text, nics,
                                        nics == 1.0 ? "" : "s")
                      : text;
}

#define SHOWN_S                                                                          \
    5e-5 /* seconds; smaller changes are not shown: a tenth of a millisecond, rounded */

/* Prints by how much, at most, any other order makes an axis slower (`gains`: faster);
 * returns false if that is below SHOWN_S. */
static bool print_change(FILE *out, const comparison *c, const ms_axis_prediction *here,
                         bool gains)
{
    double change_s;
    const ms_order_cost *other =
        ms_mesh_orders_extreme(c->orders, here->group, gains, &change_s);
    if (other == NULL || change_s < SHOWN_S)
        return false;
    const ms_axis_prediction *there = ms_order_axis(other, here->group);
    bool same =
        there->level == here->level && there->ranks_per_node == here->ranks_per_node;
    bool sends = here->group == MS_TRAFFIC_PP;
    ms_print(out, "  %-12s %s %.1f ms %s in %s: %s\n", here->axis,
             sends ? "sends" : "waits", 1e3 * change_s, gains ? "less" : "more",
             first_order(c, other),
             same ? "the same links, shared with other traffic" : place_text(c, there));
    return true;
}

static void print_why(FILE *out, const comparison *c)
{
    const ms_order_cost *best = &c->orders->costs[0];
    const ms_order_cost *last = &c->orders->costs[c->orders->num - 1];
    if (c->orders->num == 1) {
        fputs(best->num_orders == 1
                  ? "\nThere is one legal order: nothing to compare.\n"
                  : "\nEvery legal order lies on the cluster in the same way: they cost "
                    "the same.\n",
              out);
        return;
    }
    ms_print(out,
             "\nWhy %s is best: the slowest order, %s, takes %.2f times as long.\n"
             "What the axes lose, and gain, most in other orders:\n",
             first_order(c, best), first_order(c, last), last->step_s / best->step_s);
    for (int i = 0; i < best->num_axes; i++) {
        const ms_axis_prediction *axis = &best->axes[i];
        bool loses = print_change(out, c, axis, false);
        bool gains = print_change(out, c, axis, true);
        if (!loses && !gains)
            ms_print(out, "  %-12s the same in every order\n", axis->axis);
    }
}

void ms_mesh_orders_print(FILE *out, ms_arena *arena, const ms_mesh_orders *orders,
                          const ms_plan *plan, const ms_cluster *cluster)
{
    const comparison c = {arena, orders, plan, cluster};
    ms_print(out, "\n%s\nplan  %s\n",
             ms_plan_inputs_text(arena, plan, cluster->device.unit),
             ms_plan_text(arena, plan));
    if (!orders->costs[0].fits)
        fputs("It does not fit into memory; the times are those it would have.\n", out);
    print_costs(out, &c);
    print_alike(out, &c);
    print_refused(out, &c);
    print_best(out, &c);
    print_why(out, &c);
}

/* ---- JSON ---- */

static void write_order(ms_jout *json, const comparison *c, const unsigned char *order)
{
    ms_jout_begin_array(json);
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++)
        if (c->plan->size[order[i]] > 1)
            ms_jout_text(json, ms_plan_axis_names[order[i]]);
    ms_jout_end_array(json);
}

static void write_axis(ms_jout *json, const comparison *c, const ms_axis_prediction *axis)
{
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "axis", axis->axis);
    ms_jout_number_field(json, "size", (double)axis->size);
    ms_jout_number_field(json, "sent_bytes", axis->bytes);
    ms_jout_number_field(json, "comm_s", axis->seconds);
    ms_jout_number_field(json, "exposed_s", axis->exposed_s);
    ms_jout_text_field(json, "tier", axis->tier);
    ms_jout_number_field(json, "ranks_per_node", (double)axis->ranks_per_node);
    ms_jout_number_field(json, "nics_per_group", ms_axis_nics(axis, c->cluster));
    ms_jout_end_object(json);
}

static void write_cost(ms_jout *json, const comparison *c, const ms_order_cost *cost)
{
    ms_jout_begin_object(json);
    ms_jout_key(json, "order");
    write_order(json, c, cost->orders[0]);
    ms_jout_begin_array_field(json, "alike");
    for (int i = 1; i < cost->num_orders; i++)
        write_order(json, c, cost->orders[i]);
    ms_jout_end_array(json);
    ms_jout_bool_field(json, "is_plans", cost->is_plans);
    ms_jout_number_field(json, "step_s", cost->step_s);
    ms_jout_number_field(json, "slower_frac", share_slower(c, cost));
    ms_jout_number_field(json, "exposed_comm_s", cost->exposed_comm_s);
    ms_jout_number_field(json, "bubble_s", cost->bubble_s);
    ms_jout_bool_field(json, "fits", cost->fits);
    ms_jout_begin_array_field(json, "axes");
    for (int i = 0; i < cost->num_axes; i++)
        write_axis(json, c, &cost->axes[i]);
    ms_jout_end_array(json);
    ms_jout_end_object(json);
}

static void write_refused(ms_jout *json, const comparison *c)
{
    ms_jout_begin_array_field(json, "refused_orders");
    for (int i = 0; i < c->orders->num_refused; i++) {
        ms_jout_begin_object(json);
        ms_jout_key(json, "order");
        write_order(json, c, c->orders->refused[i].order);
        ms_jout_text_field(json, "reason",
                           ms_refusal_names[c->orders->refused[i].refusal]);
        ms_jout_end_object(json);
    }
    ms_jout_end_array(json);
}

static void write_change(ms_jout *json, const comparison *c, ms_traffic_group axis,
                         bool gains)
{
    double change_s;
    const ms_order_cost *other =
        ms_mesh_orders_extreme(c->orders, axis, gains, &change_s);
    ms_jout_number_field(json, gains ? "most_gained_s" : "most_lost_s", change_s);
    ms_jout_key(json, gains ? "gained_in" : "lost_in");
    if (other == NULL)
        ms_jout_null(json);
    else
        write_order(json, c, other->orders[0]);
}

static void write_why(ms_jout *json, const comparison *c)
{
    const ms_order_cost *best = &c->orders->costs[0];
    ms_jout_begin_array_field(json, "why");
    for (int i = 0; i < best->num_axes; i++) {
        ms_jout_begin_object(json);
        ms_jout_text_field(json, "axis", best->axes[i].axis);
        ms_jout_text_field(json, "place", place_text(c, &best->axes[i]));
        write_change(json, c, best->axes[i].group, false);
        write_change(json, c, best->axes[i].group, true);
        ms_jout_end_object(json);
    }
    ms_jout_end_array(json);
}

void ms_mesh_orders_write_fields(ms_jout *json, ms_arena *arena,
                                 const ms_mesh_orders *orders, const ms_plan *plan,
                                 const ms_cluster *cluster)
{
    const comparison c = {arena, orders, plan, cluster};
    ms_jout_begin_array_field(json, "orders");
    for (int i = 0; i < orders->num; i++)
        write_cost(json, &c, &orders->costs[i]);
    ms_jout_end_array(json);
    write_refused(json, &c);
    write_why(json, &c);
}
