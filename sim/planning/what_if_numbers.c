/* The numbers of a cluster's file, a profile and a campaign, each changed alone. */
#include "sim/planning/what_if_priv.h"

#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* So many numbers, those whose change moves the kept plan's step most, are searched again
 * unless all are. */
#define NUM_SEARCHED 12

typedef enum file_kind {
    CLUSTER,
    PROFILE,
    BETWEEN /* the network between the groups of a mixed cluster */
} file_kind;

/* A file with numbers of a job's hardware. */
typedef struct hardware_file {
    file_kind kind;
    int group; /* group of a mixed cluster; 0 */
} hardware_file;

/* A number before it is known to have an effect. */
typedef struct candidate {
    ms_what_if_number number;
    double
        step_swing_frac; /* swing of the kept plan; infinite: it does not fit on a side */
    bool always_searched; /* the kept plan does not show its effect */
    ms_best_question questions[MS_WHAT_IF_SIDES];
} candidate;

typedef struct listing {
    ms_what_if_study *study;
    ms_what_if_files *files; /* unchanged */
    candidate *list;
    int num, capacity;
} listing;

/* ---- one number ---- */

/* Counts and shapes that no change of some per cent makes sense of, and a price that the
 * campaign has. */
static bool is_left_out(const ms_figure *figure)
{
    static const char *const keys[] = {"tile_m", "tile_n", "nvls.min_ranks",
                                       "usd_per_gpu_hour"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(figure->key, keys[i]) == 0)
            return true;
    return figure->is_integer || strstr(figure->key, "nics_per_gpu") != NULL;
}

static bool is_stated(const ms_figure *figure, const void *file)
{
    ms_coefficient coefficient;
    if (!figure->is_coefficient)
        return true;
    memcpy(&coefficient, (const char *)file + figure->offset, sizeof coefficient);
    return coefficient.source != NULL;
}

/* Sets the values on both sides; limits: what the number may be. */
static void set_values(ms_what_if_number *number, double change_frac, double least,
                       double most)
{
    for (int side = 0; side < MS_WHAT_IF_SIDES; side++) {
        double asked = number->value *
                       (side == MS_WHAT_IF_LOW ? 1.0 - change_frac : 1.0 + change_frac);
        double legal = ms_min(ms_max(asked, ms_min(least, number->value)),
                              ms_max(most, number->value));
        number->changed[side] = legal;
        number->limited[side] = legal != asked;
    }
}

static void *file_in(ms_what_if_files *files, hardware_file file)
{
    return file.kind == PROFILE   ? (void *)&files->profiles[file.group]
           : file.kind == CLUSTER ? (void *)&files->clusters[file.group]
                                  : (void *)&files->between;
}

/* The job with a number of a file set to a value. */
static ms_best_question question_with(const ms_what_if_study *study, hardware_file file,
                                      const ms_figure *figure, double value)
{
    ms_what_if_files *files = ms_what_if_files_of(study);
    ms_figure_set(figure, file_in(files, file), value);
    return ms_what_if_changed(study, files);
}

static double swing_of(double base, double low, double high)
{
    if (isnan(low) || isnan(high))
        return (double)INFINITY;
    return (ms_max(ms_max(low, high), base) - ms_min(ms_min(low, high), base)) / base;
}

static bool moves(double a, double b)
{
    return !(fabs(a - b) <= MS_WHAT_IF_ROUNDING * fabs(b));
}

/* Predicts the kept plans on both sides of a candidate. */
static void keep_sides(const ms_what_if_study *study, candidate *c)
{
    const ms_best_plan *kept = &study->out->kept;
    double steps[MS_WHAT_IF_SIDES];
    for (int side = 0; side < MS_WHAT_IF_SIDES; side++) {
        ms_what_if_outcome *outcome = &c->number.sides[side];
        ms_what_if_keep(study, &c->questions[side], outcome);
        steps[side] = ms_what_if_value_of(MS_WHAT_IF_STEP, &outcome->kept);
    }
    c->step_swing_frac = swing_of(kept->prediction.step_s, steps[0], steps[1]);
}

/* ---- cluster and profile ---- */

static candidate *new_candidate(listing *l)
{
    MS_MAKE_ROOM(l->study->cx->arena, l->list, l->num, l->capacity, 128);
    candidate *c = &l->list[l->num++];
    *c = (candidate){0};
    return c;
}

static void add_figure(listing *l, hardware_file file, const ms_figure *figure)
{
    const ms_what_if_study *study = l->study;
    const void *in = file_in(l->files, file);
    double value = ms_figure_value(figure, in);
    if (is_left_out(figure) || !(value > 0.0) || !is_stated(figure, in))
        return;
    bool has_range = figure->low < figure->high;
    double most = file.kind == PROFILE
                      ? ms_profile_most(in, &l->files->clusters[file.group], figure)
                  : has_range ? figure->high
                              : (double)INFINITY;
    candidate *c = new_candidate(l);
    c->number = (ms_what_if_number){
        .file = file.kind == PROFILE
                    ? ms_arena_printf(study->cx->arena, "profile %s",
                                      l->files->profiles[file.group].name)
                    : ms_arena_printf(study->cx->arena, "cluster %s",
                                      ((const ms_cluster *)in)->name),
        .key = figure->key,
        .help = figure->help,
        .unit = figure->unit,
        .value = value};
    set_values(&c->number, study->question->change_frac, has_range ? figure->low : 0.0,
               most);
    for (int side = 0; side < MS_WHAT_IF_SIDES; side++)
        c->questions[side] = question_with(study, file, figure, c->number.changed[side]);
    /* more memory changes no kept plan, and makes room for others */
    c->always_searched = strcmp(figure->key, "device.memory") == 0;
    keep_sides(study, c);
}

/* ---- campaign ---- */

typedef struct term {
    const char *key, *help;
    ms_unit unit;
    size_t offset; /* place of a double in ms_campaign_terms */
} term;

#define TERM(key, help, unit, member)                                                    \
    {                                                                                    \
        key, help, unit, offsetof(ms_campaign_terms, member)                             \
    }
static const term terms[] = {
    TERM("price", "price of a GPU for an hour", MS_UNIT_COUNT, gpu_hour_price),
    TERM("mtbf", "mean time between interruptions by one GPU", MS_UNIT_SECONDS,
         gpu_mean_s),
    TERM("restart", "from an interruption to the next step", MS_UNIT_SECONDS, restart_s),
    TERM("write_bandwidth", "to storage, of the whole job", MS_UNIT_BYTES_PER_S,
         write_bytes_per_s),
    TERM("checkpoint_stall", "for which a checkpoint stops the job", MS_UNIT_SECONDS,
         checkpoint_s),
};
#define NUM_TERMS ((int)(sizeof terms / sizeof *terms))

static double *term_in(ms_campaign_terms *in, const term *t)
{
    return (double *)(void *)((char *)in + t->offset);
}

/* The fastest plan stays the fastest: its step is the job's (docs/formulas 14.3). */
static void answer_term(const ms_what_if_study *study, candidate *c)
{
    for (int side = 0; side < MS_WHAT_IF_SIDES; side++) {
        ms_what_if_outcome *outcome = &c->number.sides[side];
        outcome->searched = outcome->former.found;
        outcome->best = outcome->former;
        outcome->best.optimal = study->out->best.optimal;
    }
}

static void add_term(listing *l, const term *t)
{
    const ms_what_if_study *study = l->study;
    ms_campaign_terms as_is = study->out->kept.campaign.terms;
    double value = *term_in(&as_is, t);
    if (!(value > 0.0))
        return;
    candidate *c = new_candidate(l);
    c->number = (ms_what_if_number){.file = "campaign",
                                    .key = t->key,
                                    .help = t->help,
                                    .unit = t->unit,
                                    .value = value};
    set_values(&c->number, study->question->change_frac, 0.0, (double)INFINITY);
    for (int side = 0; side < MS_WHAT_IF_SIDES; side++) {
        ms_campaign_question *campaign = MS_NEW(study->cx->arena, ms_campaign_question);
        *campaign = *study->question->job.campaign;
        *term_in(&campaign->given, t) = c->number.changed[side];
        c->questions[side] = ms_what_if_changed(study, NULL);
        c->questions[side].campaign = campaign;
    }
    keep_sides(study, c);
    answer_term(study, c);
}

/* ---- the list ---- */

/* Adds a file's numbers; those that it does not state are 0 or NaN, and left out. */
static void add_file(listing *l, hardware_file file)
{
    ms_figures figures = {.arena = l->study->cx->arena};
    const void *in = file_in(l->files, file);
    if (file.kind == PROFILE)
        ms_profile_figures(in, &figures);
    else
        ms_cluster_figures(in, &figures);
    for (int i = 0; i < figures.num; i++)
        add_figure(l, file, &figures.items[i]);
}

static void list_candidates(listing *l)
{
    ms_what_if_study *study = l->study;
    l->files = ms_what_if_files_of(study);
    for (int group = 0; group < l->files->num; group++)
        add_file(l, (hardware_file){CLUSTER, group});
    for (int group = 0; group < l->files->num; group++)
        add_file(l, (hardware_file){PROFILE, group});
    if (study->cluster->between != NULL)
        add_file(l, (hardware_file){.kind = BETWEEN});
    for (int i = 0; i < NUM_TERMS && study->question->job.campaign != NULL; i++)
        add_term(l, &terms[i]);
}

static int by_step_swing(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->always_searched != y->always_searched)
        return x->always_searched ? -1 : 1;
    return x->step_swing_frac > y->step_swing_frac   ? -1
           : x->step_swing_frac < y->step_swing_frac ? 1
                                                     : 0;
}

void ms_what_if_list_numbers(ms_what_if_study *study)
{
    listing l = {.study = study};
    ms_what_if *out = study->out;
    list_candidates(&l);
    if (l.num > 1)
        qsort(l.list, (size_t)l.num, sizeof *l.list, by_step_swing);
    out->num_numbers = l.num;
    out->numbers = MS_NEW_ARRAY(study->cx->arena, l.num, ms_what_if_number);
    for (int i = 0; i < l.num; i++) {
        candidate *c = &l.list[i];
        ms_what_if_number *number = &out->numbers[i];
        *number = c->number;
        bool is_large = i < NUM_SEARCHED && c->step_swing_frac > MS_WHAT_IF_ROUNDING;
        for (int side = 0; side < MS_WHAT_IF_SIDES; side++)
            if (!number->sides[side].searched &&
                (is_large || c->always_searched || study->question->search_all))
                ms_what_if_ask(study, &c->questions[side], &number->sides[side]);
    }
}

/* ---- order ---- */

/* The measure on a side: of the kept plan, or if that is none of the best one. */
static double side_value(const ms_what_if *w, const ms_what_if_outcome *outcome)
{
    double kept = ms_what_if_value_of(w->measure, &outcome->kept);
    if (isnan(kept) && outcome->searched)
        return ms_what_if_value_of(w->measure, &outcome->best);
    return kept;
}

static bool has_effect(const ms_what_if *w, const ms_what_if_number *number)
{
    for (int side = 0; side < MS_WHAT_IF_SIDES; side++) {
        const ms_what_if_outcome *o = &number->sides[side];
        for (ms_what_if_measure m = MS_WHAT_IF_STEP; m <= w->measure; m++) {
            double kept = ms_what_if_value_of(m, &o->kept),
                   best = ms_what_if_value_of(m, &o->best);
            if (moves(kept, ms_what_if_value_of(m, &w->kept)) ||
                (o->searched && moves(best, ms_what_if_value_of(m, &w->best))))
                return true;
        }
    }
    return false;
}

static int by_swing(const void *a, const void *b)
{
    const ms_what_if_number *x = a, *y = b;
    if (x->swing_frac != y->swing_frac)
        return x->swing_frac > y->swing_frac ? -1 : 1;
    int files = strcmp(x->file, y->file);
    return files != 0 ? files : strcmp(x->key, y->key);
}

void ms_what_if_order_numbers(ms_what_if_study *study)
{
    ms_what_if *w = study->out;
    int num = 0;
    for (int i = 0; i < w->num_numbers; i++) {
        ms_what_if_number *number = &w->numbers[i];
        if (!has_effect(w, number))
            continue;
        number->swing_frac = swing_of(ms_what_if_value_of(w->measure, &w->kept),
                                      side_value(w, &number->sides[MS_WHAT_IF_LOW]),
                                      side_value(w, &number->sides[MS_WHAT_IF_HIGH]));
        w->numbers[num++] = *number;
    }
    w->num_without_effect = w->num_numbers - num;
    w->num_numbers = num;
    qsort(w->numbers, (size_t)num, sizeof *w->numbers, by_swing);
}
