/* Named changes of a cluster's hardware. */
#include "sim/planning/what_if_priv.h"

#include <math.h>

/* A cluster and profile while one named change is applied to them. */
typedef struct changing {
    ms_ctx *cx;       /* context of this change */
    const char *name; /* a group's cluster, and a space; "" if all GPUs are alike */
    ms_cluster *cluster;
    ms_profile *profile; /* NULL: the network between groups, of which cluster is made */
    ms_what_if_hardware *out;
} changing;

typedef struct hardware_row {
    const char *name;
    /* applies the change; sets out->reason if it cannot be applied */
    void (*apply)(changing *c, double argument);
    double argument;
    bool of_network; /* changes the network between groups, too */
} hardware_row;

static void note(changing *c, const char *key, ms_unit unit, double from, double to)
{
    ms_what_if_hardware *out = c->out;
    out->edits[out->num_edits++] = (ms_what_if_edit){
        ms_arena_printf(c->cx->arena, "cluster %s%s", c->name, key), unit, from, to};
}

static void scale(changing *c, const char *key, ms_unit unit, double factor,
                  double *value)
{
    note(c, key, unit, *value, *value * factor);
    *value *= factor;
}

static const char *level_key(const changing *c, int level, const char *key)
{
    return ms_arena_printf(c->cx->arena, "levels.%s.%s", c->cluster->levels[level].name,
                           key);
}

/* Whether there are levels outside the fast domain; sets the reason if not. */
static bool has_network(changing *c)
{
    if (c->cluster->num_levels > 1)
        return true;
    c->out->reason = "one domain holds all GPUs: there is no network";
    return false;
}

static void scale_network(changing *c, double factor)
{
    for (int i = 1; has_network(c) && i < c->cluster->num_levels; i++)
        scale(c, level_key(c, i, "bandwidth"), MS_UNIT_BYTES_PER_S, factor,
              &c->cluster->levels[i].bandwidth_bytes_per_s);
}

static void scale_latency(changing *c, double factor)
{
    if (!has_network(c))
        return;
    for (int i = 1; i < c->cluster->num_levels; i++)
        if (c->cluster->levels[i].latency_s > 0.0)
            scale(c, level_key(c, i, "latency"), MS_UNIT_SECONDS, factor,
                  &c->cluster->levels[i].latency_s);
    if (c->out->num_edits == 0)
        c->out->reason = "the cluster states no latency of its network";
}

static void set_oversubscription(changing *c, double to)
{
    if (!has_network(c))
        return;
    for (int i = 1; i < c->cluster->num_levels; i++) {
        double *value = &c->cluster->levels[i].oversubscription;
        if (*value <= to)
            continue;
        note(c, level_key(c, i, "oversubscription"), MS_UNIT_COUNT, *value, to);
        *value = to;
    }
    if (c->out->num_edits == 0)
        c->out->reason = "no level is oversubscribed";
}

static void scale_links(changing *c, double factor)
{
    ms_level *inner = &c->cluster->levels[0];
    ms_coefficient *nvls = &c->profile->nvls_bytes_per_s;
    scale(c, level_key(c, 0, "bandwidth"), MS_UNIT_BYTES_PER_S, factor,
          &inner->bandwidth_bytes_per_s);
    if (isnan(nvls->value) || c->profile->measured != NULL)
        return;
    /* an absolute rate of the same switch */
    c->out->edits[c->out->num_edits++] = (ms_what_if_edit){
        ms_arena_printf(c->cx->arena, "profile %snvls.bandwidth", c->name),
        MS_UNIT_BYTES_PER_S, nvls->value, nvls->value * factor};
    nvls->value *= factor;
}

static void scale_hbm(changing *c, double factor)
{
    if (c->profile->pointwise != NULL)
        c->out->reason = "the calibrated profile has rates of its own, measured";
    else
        scale(c, "device.hbm", MS_UNIT_BYTES_PER_S, factor,
              &c->cluster->device.hbm_bytes_per_s);
}

static void scale_memory(changing *c, double factor)
{
    scale(c, "device.memory", MS_UNIT_BYTES, factor, &c->cluster->device.memory_bytes);
}

/* Levels outside a fast domain of another size hold as many GPUs as before, or fewer,
 * since they hold whole domains, but two domains at least. */
static void resize_levels(changing *c, long size)
{
    ms_cluster *cluster = c->cluster;
    long inner = 1; /* GPUs of a domain of the level inside */
    for (int i = 0; i < cluster->num_levels; i++) {
        long *gpus = &cluster->levels[i].gpus_per_domain, before = *gpus;
        if (before == 0)
            continue;
        *gpus = i == 0 ? size : (before < 2 * inner ? 2 : before / inner) * inner;
        inner = *gpus;
        if (*gpus != before)
            note(c, level_key(c, i, "gpus_per_domain"), MS_UNIT_COUNT, (double)before,
                 (double)*gpus);
    }
}

static void set_domain(changing *c, double gpus)
{
    ms_cluster *cluster = c->cluster;
    const ms_level *inner = &cluster->levels[0];
    ms_ctx scratch = {.arena = c->cx->arena, .verbosity = -1};
    if (!has_network(c))
        return;
    if (inner->gpus_per_domain == (long)gpus)
        c->out->reason = "that is its size";
    else if (inner->topology != MS_SWITCH)
        c->out->reason = ms_arena_printf(
            c->cx->arena, "the fast domain is a %s, whose size is its shape",
            ms_topology_names[inner->topology]);
    if (c->out->reason != NULL)
        return;
    resize_levels(c, (long)gpus);
    if (ms_cluster_check_levels(&scratch, cluster) != MS_OK)
        c->out->reason = scratch.first->message;
}

static const hardware_row rows[] = {
    {"network x2", scale_network, 2.0, true},
    {"network x0.5", scale_network, 0.5, true},
    {"network latency x0.5", scale_latency, 0.5, true},
    {"no oversubscription", set_oversubscription, 1.0, true},
    {"fast domain of 8 GPUs", set_domain, 8.0, false},
    {"fast domain of 72 GPUs", set_domain, 72.0, false},
    {"fast links x2", scale_links, 2.0, false},
    {"HBM bandwidth x1.5", scale_hbm, 1.5, false},
    {"HBM capacity x1.5", scale_memory, 1.5, false},
};
#define NUM_ROWS ((int)(sizeof rows / sizeof *rows))

/* Applies a change to all files that it concerns. The reason why it cannot be applied stays
 * if it is that of each of them. */
static void apply(const ms_what_if_study *study, const hardware_row *row,
                  ms_what_if_files *files, ms_what_if_hardware *out)
{
    bool is_mixed = study->cluster->between != NULL, is_applied = false;
    int num = files->num + (is_mixed && row->of_network);
    const char *reason = NULL;
    for (int i = 0; i < num; i++) {
        bool of_group = i < files->num;
        ms_cluster *cluster = of_group ? &files->clusters[i] : &files->between;
        changing c = {
            .cx = study->cx,
            .name =
                !is_mixed ? "" : ms_arena_printf(study->cx->arena, "%s ", cluster->name),
            .cluster = cluster,
            .profile = of_group ? &files->profiles[i] : NULL,
            .out = out};
        row->apply(&c, row->argument);
        is_applied = is_applied || out->reason == NULL;
        reason = out->reason != NULL ? out->reason : reason;
        out->reason = NULL;
    }
    out->reason = is_applied ? NULL : reason;
}

static void ask(ms_what_if_study *study, const hardware_row *row,
                ms_what_if_hardware *out)
{
    ms_what_if_files *files = ms_what_if_files_of(study);
    *out = (ms_what_if_hardware){.name = row->name};
    apply(study, row, files, out);
    if (out->reason != NULL) {
        out->num_edits = 0;
        return;
    }
    ms_best_question question = ms_what_if_changed(study, files);
    ms_what_if_keep(study, &question, &out->outcome);
    ms_what_if_ask(study, &question, &out->outcome);
}

void ms_what_if_list_hardware(ms_what_if_study *study)
{
    ms_what_if *out = study->out;
    out->num_hardware = NUM_ROWS;
    out->hardware = MS_NEW_ARRAY(study->cx->arena, NUM_ROWS, ms_what_if_hardware);
    for (int i = 0; i < NUM_ROWS; i++)
        ask(study, &rows[i], &out->hardware[i]);
}

void ms_what_if_judge_hardware(ms_what_if_study *study)
{
    ms_what_if *out = study->out;
    for (int i = 0; i < out->num_hardware; i++)
        out->hardware[i].gain_frac =
            ms_what_if_gain_frac(&out->best, &out->hardware[i].outcome.best);
}
