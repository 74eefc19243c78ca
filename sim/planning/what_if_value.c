/* The value of the next GPU, NIC and GiB, by difference of searched plans. */
#include "sim/planning/what_if_priv.h"

#include <math.h>

#define GIB       1073741824.0
#define DAY_HOURS 24.0
#define MAX_TRIES 64

/* One step of a good that is tried. */
typedef struct step_try {
    double step;  /* GPUs, NICs a node, GiB a GPU */
    double units; /* number of the good in the whole job */
    ms_what_if_outcome outcome;
} step_try;

struct ms_what_if_tries {
    int num[MS_WHAT_IF_GOODS];
    step_try of[MS_WHAT_IF_GOODS][MAX_TRIES]; /* smallest step first */
};

/* ---- changed jobs ---- */

static ms_best_question with_gpus(const ms_what_if_study *study, double added)
{
    ms_best_question question = ms_what_if_changed(study, NULL);
    question.base.gpus += (long)added;
    return question;
}

static void add_nic(ms_cluster *cluster, long gpus_per_node)
{
    for (int i = 1; i < cluster->num_levels; i++) {
        ms_level *level = &cluster->levels[i];
        double nics = level->nics_per_gpu * (double)gpus_per_node;
        if (nics > 0.0)
            level->bandwidth_bytes_per_s *= (nics + 1.0) / nics;
    }
}

/* One more NIC for each node, as bandwidth of all levels that have NICs. */
static ms_best_question with_nic(const ms_what_if_study *study)
{
    ms_what_if_files *files = ms_what_if_files_of(study);
    for (int group = 0; group < files->num; group++)
        add_nic(&files->clusters[group], study->cluster->gpus_per_node);
    add_nic(&files->between, study->cluster->gpus_per_node);
    return ms_what_if_changed(study, files);
}

static ms_best_question with_memory(const ms_what_if_study *study, double added_gib)
{
    ms_what_if_files *files = ms_what_if_files_of(study);
    for (int group = 0; group < files->num; group++)
        files->clusters[group].device.memory_bytes += added_gib * GIB;
    return ms_what_if_changed(study, files);
}

/* ---- steps to try ---- */

static void try_step(ms_what_if_study *study, ms_what_if_tries *tries,
                     ms_what_if_good good, const ms_best_question *question,
                     step_try step)
{
    step_try *at = &tries->of[good][tries->num[good]++];
    *at = step;
    ms_what_if_keep(study, question, &at->outcome);
    ms_what_if_ask(study, question, &at->outcome);
}

/* Whole nodes where the job has whole nodes, otherwise GPUs: 1, 2, 3, 4, 6, 8, 12, 16 ...
 * of them, up to twice the job. */
static void try_gpus(ms_what_if_study *study, ms_what_if_tries *tries)
{
    long gpus = study->question->job.base.gpus, node = study->cluster->gpus_per_node;
    long unit = gpus % node == 0 ? node : 1;
    for (long k = 1; k * unit <= gpus;
         k = k < 3 ? k + 1 : k + (k % 3 == 0 ? k / 3 : k / 2)) {
        double added = (double)(k * unit);
        ms_best_question question = with_gpus(study, added);
        try_step(study, tries, MS_WHAT_IF_GPU, &question,
                 (step_try){.step = added, .units = added});
    }
}

static double num_nodes(const ms_what_if_study *study)
{
    return ceil((double)study->question->job.base.gpus /
                (double)study->cluster->gpus_per_node);
}

static void try_nic(ms_what_if_study *study, ms_what_if_tries *tries)
{
    const ms_cluster *cluster = study->cluster;
    if (cluster->num_levels < 2 || !(cluster->levels[1].nics_per_gpu > 0.0))
        return;
    ms_best_question question = with_nic(study);
    try_step(study, tries, MS_WHAT_IF_NIC, &question,
             (step_try){.step = 1.0, .units = num_nodes(study)});
}

/* 1, 2, 4 ... GiB, up to twice the memory. */
static void try_memory(ms_what_if_study *study, ms_what_if_tries *tries)
{
    long most = (long)ceil(study->cluster->device.memory_bytes / GIB);
    for (long added = 1;; added *= 2) {
        double gib = (double)(added < most ? added : most);
        ms_best_question question = with_memory(study, gib);
        try_step(study, tries, MS_WHAT_IF_GIB, &question,
                 (step_try){.step = gib,
                            .units = gib * (double)study->question->job.base.gpus});
        if (added >= most)
            return;
    }
}

ms_what_if_tries *ms_what_if_list_steps(ms_what_if_study *study)
{
    ms_what_if_tries *tries = MS_NEW(study->cx->arena, ms_what_if_tries);
    try_gpus(study, tries);
    try_nic(study, tries);
    try_memory(study, tries);
    return tries;
}

/* ---- values ---- */

static void set_value(const ms_what_if_study *study, ms_what_if_good good,
                      const step_try *step, ms_what_if_value *out)
{
    const ms_what_if *w = study->out;
    double fleet_hours = DAY_HOURS * (double)w->job.gpus,
           own_hours = good == MS_WHAT_IF_GPU ? DAY_HOURS * step->units : 0.0;
    out->found = true;
    out->step = step->step;
    out->units = step->units;
    out->best = step->outcome.best;
    out->gain_frac = ms_what_if_gain_frac(&w->best, &out->best);
    out->gpu_hours_per_day = fleet_hours * out->gain_frac;
    out->net_gpu_hours_per_day = out->gpu_hours_per_day - own_hours;
    out->money_per_day = out->gpu_hours_per_day * w->gpu_hour_price;
    out->net_money_per_day = out->net_gpu_hours_per_day * w->gpu_hour_price;
}

/* The smallest capacity with which the best plan is faster, to 1 GiB: more memory never
 * makes it slower. `low` GiB are too few, `high` are enough. */
static ms_status narrow_memory(const ms_what_if_study *study, double low, step_try *high)
{
    double gpus = (double)study->question->job.base.gpus;
    while (high->step - low > 1.0) {
        double middle = floor(0.5 * (low + high->step));
        ms_best_question question = with_memory(study, middle);
        ms_best_plan best;
        MS_TRY(ms_what_if_search_now(study, &question, &best));
        if (ms_what_if_is_faster(&best, &study->out->best)) {
            *high = (step_try){.step = middle, .units = middle * gpus};
            high->outcome.best = best;
        } else {
            low = middle;
        }
    }
    return MS_OK;
}

/* The first step of a good with which the best plan is faster; -1: none. `*missing`: a
 * search before it was not done. */
static int first_faster(const ms_what_if_study *study, const ms_what_if_tries *tries,
                        ms_what_if_good good, bool *missing)
{
    *missing = false;
    for (int i = 0; i < tries->num[good]; i++) {
        const ms_what_if_outcome *outcome = &tries->of[good][i].outcome;
        *missing = *missing || !outcome->searched;
        if (outcome->searched && ms_what_if_is_faster(&outcome->best, &study->out->best))
            return i;
    }
    return -1;
}

ms_status ms_what_if_judge_steps(ms_what_if_study *study, ms_what_if_tries *tries)
{
    const double none = (double)NAN;
    for (ms_what_if_good good = 0; good < MS_WHAT_IF_GOODS; good++) {
        int num = tries->num[good];
        bool missing;
        int at = first_faster(study, tries, good, &missing);
        ms_what_if_value *out = &study->out->values[good];
        *out = (ms_what_if_value){.tried = num > 0 ? tries->of[good][num - 1].step : none,
                                  .step = none,
                                  .units = none,
                                  .gain_frac = none,
                                  .gpu_hours_per_day = none,
                                  .money_per_day = none,
                                  .net_gpu_hours_per_day = none,
                                  .net_money_per_day = none};
        out->reason = num == 0  ? "the cluster states no NICs"
                      : missing ? "not searched"
                      : at < 0  ? "no step that was tried makes the best plan faster"
                                : NULL;
        if (out->reason != NULL)
            continue;
        out->reason = "not searched";
        if (good == MS_WHAT_IF_GIB)
            MS_TRY(narrow_memory(study, at > 0 ? tries->of[good][at - 1].step : 0.0,
                                 &tries->of[good][at]));
        out->reason = NULL;
        set_value(study, good, &tries->of[good][at], out);
    }
    return MS_OK;
}
