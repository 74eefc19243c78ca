/* A what-if study as a whole: the job as it is, then all changed jobs side by side. */
#include "sim/planning/what_if_priv.h"

#include "sim/step/prediction_text.h"

#include <math.h>

const char *const ms_what_if_good_names[] = {"GPU", "NIC", "GiB", NULL};
const char *const ms_what_if_measure_names[] = {"step_s", "elapsed_s", "cost", NULL};

double ms_what_if_value_of(ms_what_if_measure measure, const ms_best_plan *plan)
{
    const ms_campaign *c = &plan->campaign.campaign;
    if (!plan->found || (measure != MS_WHAT_IF_STEP && !plan->has_campaign))
        return (double)NAN;
    return measure == MS_WHAT_IF_STEP   ? plan->prediction.step_s
           : measure == MS_WHAT_IF_TIME ? c->elapsed_s
                                        : c->cost;
}

double ms_what_if_gain_frac(const ms_best_plan *before, const ms_best_plan *plan)
{
    ms_what_if_measure time = before->has_campaign ? MS_WHAT_IF_TIME : MS_WHAT_IF_STEP;
    return ms_what_if_value_of(time, before) / ms_what_if_value_of(time, plan) - 1.0;
}

bool ms_what_if_is_faster(const ms_best_plan *a, const ms_best_plan *b)
{
    if (!a->found || !b->found)
        return a->found;
    return a->prediction.step_s < b->prediction.step_s * (1.0 - MS_WHAT_IF_ROUNDING);
}

/* ---- changed jobs ---- */

/* A kind of the group's devices at their listed speed. */
static int kind_of_group(const ms_cluster *cluster, int group)
{
    int kind = 0;
    while (cluster->kinds[kind].group != group)
        kind++;
    return kind;
}

ms_what_if_files *ms_what_if_files_of(const ms_what_if_study *study)
{
    const ms_cluster *cluster = study->cluster;
    ms_what_if_files *out = MS_NEW(study->cx->arena, ms_what_if_files);
    if (cluster->between == NULL) {
        out->num = 1;
        out->clusters[0] = *cluster;
        out->profiles[0] = *study->workload->profile;
        return out;
    }
    out->num = cluster->kinds[cluster->num_kinds - 1].group + 1;
    for (int group = 0; group < out->num; group++) {
        int kind = kind_of_group(cluster, group);
        out->clusters[group] = *cluster->kinds[kind].like;
        out->profiles[group] = *study->workload->of_kinds[1U << kind]->profile;
    }
    out->between = (ms_cluster){.name = cluster->name, .num_levels = 2};
    out->between.levels[0].name = "";
    out->between.levels[1] = *cluster->between;
    return out;
}

/* A mixed cluster with the files of its groups. */
static const ms_cluster *mixed_cluster(const ms_what_if_study *study,
                                       const ms_what_if_files *files)
{
    ms_arena *arena = study->cx->arena;
    ms_cluster *mixed = MS_NEW(arena, ms_cluster);
    ms_device_kind *kinds =
        MS_NEW_ARRAY(arena, study->cluster->num_kinds, ms_device_kind);
    *mixed = *study->cluster;
    for (int k = 0; k < mixed->num_kinds; k++) {
        kinds[k] = mixed->kinds[k];
        kinds[k].like = &files->clusters[kinds[k].group];
    }
    mixed->kinds = kinds;
    mixed->between = &files->between.levels[1];
    ms_cluster_join_kinds(arena, mixed);
    return mixed;
}

ms_best_question ms_what_if_changed(const ms_what_if_study *study,
                                    const ms_what_if_files *files)
{
    ms_best_question changed = study->question->job;
    ms_best_files *to = MS_NEW(study->cx->arena, ms_best_files);
    *to =
        (ms_best_files){study->workload, study->cluster, study->workload->profile, NULL};
    changed.files = to;
    if (files == NULL)
        return changed;
    bool is_mixed = study->cluster->between != NULL;
    to->cluster = is_mixed ? mixed_cluster(study, files) : &files->clusters[0];
    to->profile = &files->profiles[0];
    if (!is_mixed)
        return changed;
    const ms_profile **profiles =
        MS_NEW_ARRAY(study->cx->arena, files->num, const ms_profile *);
    for (int group = 0; group < files->num; group++)
        profiles[group] = &files->profiles[group];
    to->group_profiles = profiles;
    return changed;
}

/* A plan that does not fit counts as none. */
static void refuse_unfit(ms_arena *arena, ms_best_plan *plan)
{
    const ms_prediction *p = &plan->prediction;
    if (!plan->found || p->fits)
        return;
    plan->found = false;
    plan->reason = ms_arena_printf(arena, "needs %.1f of %.1f GiB",
                                   ms_gib(p->needed_bytes), ms_gib(p->limit.limit_bytes));
}

static void predict(const ms_what_if_study *study, const ms_best_question *question,
                    const ms_best_plan *plan, ms_best_plan *out)
{
    ms_ctx scratch = {.arena = study->cx->arena, .verbosity = -1};
    if (!plan->found || question->base.gpus != plan->plan.gpus) {
        *out = (ms_best_plan){.reason = plan->found ? "for another number of GPUs"
                                                    : plan->reason};
        return;
    }
    if (ms_best_plan_again(&scratch, question, &plan->plan, out) != MS_OK)
        *out = (ms_best_plan){.reason = scratch.first->message};
    refuse_unfit(study->cx->arena, out);
}

void ms_what_if_keep(const ms_what_if_study *study, const ms_best_question *question,
                     ms_what_if_outcome *outcome)
{
    predict(study, question, &study->out->kept, &outcome->kept);
    if (study->question->given == NULL)
        outcome->former = outcome->kept;
    else
        predict(study, question, &study->out->best, &outcome->former);
}

void ms_what_if_ask(ms_what_if_study *study, const ms_best_question *question,
                    ms_what_if_outcome *outcome)
{
    MS_MAKE_ROOM(study->cx->arena, study->searches, study->num_searches, study->capacity,
                 64);
    study->searches[study->num_searches++] = (ms_what_if_search){*question, outcome};
}

ms_status ms_what_if_search_now(const ms_what_if_study *study,
                                const ms_best_question *question, ms_best_plan *out)
{
    ms_search_options options = {.num_threads = study->question->num_threads,
                                 .interrupted = study->question->interrupted};
    return ms_best_plan_find(study->cx, question, &options, out);
}

/* ---- all searches ---- */

typedef struct answering {
    const ms_what_if_study *study;
    int num_done;
} answering;

/* Takes a plan in place of a searched one, of which the proof stays true. */
static void take(const ms_best_plan *plan, const ms_best_plan *searched,
                 ms_best_plan *out)
{
    *out = *plan;
    out->optimal = searched->optimal;
    out->open_bound_s = searched->open_bound_s;
}

static ms_status note_answer(void *payload, int index, const ms_best_plan *answer)
{
    answering *a = payload;
    const ms_what_if_question *question = a->study->question;
    ms_what_if_outcome *outcome = a->study->searches[index].outcome;
    outcome->searched = true;
    outcome->best = *answer;
    if (ms_what_if_is_faster(&outcome->former, &outcome->best))
        take(&outcome->former, answer, &outcome->best);
    if (ms_what_if_is_faster(&outcome->kept, &outcome->best))
        take(&outcome->kept, answer, &outcome->best);
    outcome->plan_changes = ms_what_if_is_faster(&outcome->best, &outcome->former);
    a->num_done++;
    if (question->progress != NULL)
        question->progress(question->payload, a->num_done, a->study->num_searches);
    return MS_OK;
}

static ms_status answer_searches(const ms_what_if_study *study)
{
    int num = study->num_searches, num_answered;
    ms_arena *arena = study->cx->arena;
    ms_best_question *questions = MS_NEW_ARRAY(arena, num, ms_best_question);
    for (int i = 0; i < num; i++)
        questions[i] = study->searches[i].question;
    answering a = {.study = study};
    ms_best_batch batch = {.num = num,
                           .questions = questions,
                           .num_threads = study->question->num_threads,
                           .interrupted = study->question->interrupted,
                           .answered = note_answer,
                           .payload = &a};
    return ms_best_batch_answer(study->cx, &batch, MS_NEW_ARRAY(arena, num, ms_best_plan),
                                &num_answered);
}

/* ---- the job as it is ---- */

static ms_status find_best(ms_what_if_study *study)
{
    ms_what_if *out = study->out;
    ms_ctx *cx = study->cx;
    ms_best_question question = ms_what_if_changed(study, NULL);
    MS_TRY(ms_what_if_search_now(study, &question, &out->best));
    if (study->question->given == NULL) {
        out->kept = out->best;
    } else {
        MS_TRY(ms_best_plan_again(cx, &question, study->question->given, &out->kept));
        refuse_unfit(cx->arena, &out->kept);
        if (ms_what_if_is_faster(&out->kept, &out->best))
            out->best = out->kept; /* beyond the space of the search */
    }
    if (ms_best_plans_stuck(&out->kept, 1) != NULL)
        return ms_campaign_fail_progress(cx, &out->kept.campaign);
    if (out->kept.found)
        return MS_OK;
    ms_fail(cx, MS_ENOFIT, MS_NOWHERE, "%s: %s",
            out->is_given ? "the plan does not fit" : "no plan fits", out->kept.reason);
    return ms_hint(cx, "\"meshsim %s\" says what would fit",
                   out->is_given ? "predict" : "search");
}

static void set_measure(ms_what_if_study *study)
{
    ms_what_if *out = study->out;
    out->measure = !out->kept.has_campaign                   ? MS_WHAT_IF_STEP
                   : isnan(out->kept.campaign.campaign.cost) ? MS_WHAT_IF_TIME
                                                             : MS_WHAT_IF_COST;
}

static ms_status study_job(ms_what_if_study *study)
{
    MS_TRY(find_best(study));
    set_measure(study);
    ms_what_if_list_numbers(study);
    ms_what_if_list_hardware(study);
    ms_what_if_tries *tries = ms_what_if_list_steps(study);
    ms_status status = answer_searches(study);
    if (status != MS_OK && status != MS_EINTERRUPTED)
        return status;
    ms_what_if_order_numbers(study);
    ms_what_if_judge_hardware(study);
    ms_status judged = ms_what_if_judge_steps(study, tries);
    return status != MS_OK ? status : judged;
}

static const char *profile_names(ms_arena *arena, const ms_cluster *cluster,
                                 const ms_workload *workload)
{
    const char *names = workload->profile->name;
    int last =
        cluster->between != NULL ? cluster->kinds[cluster->num_kinds - 1].group : 0;
    for (int group = 1; group <= last; group++) {
        int kind = kind_of_group(cluster, group);
        names = ms_arena_printf(arena, "%s + %s", names,
                                workload->of_kinds[1U << kind]->profile->name);
    }
    return names;
}

ms_status ms_what_if_find(ms_ctx *cx, const ms_what_if_question *question,
                          ms_what_if *out)
{
    ms_workload *workload;
    const ms_cluster *cluster;
    const ms_plan *base = &question->job.base;
    *out = (ms_what_if){.change_frac = question->change_frac,
                        .job = *base,
                        .is_given = question->given != NULL};
    MS_TRY(ms_cluster_load(cx, base->cluster, &cluster));
    MS_TRY(ms_workload_open(cx, base, &workload));
    out->profile = profile_names(cx->arena, cluster, workload);
    out->gpu_hour_price = isnan(question->gpu_hour_price) ? cluster->usd_per_gpu_hour
                                                          : question->gpu_hour_price;
    ms_what_if_study study = {.cx = cx,
                              .question = question,
                              .workload = workload,
                              .cluster = cluster,
                              .out = out};
    ms_status status = study_job(&study);
    ms_workload_close(workload);
    return status;
}
