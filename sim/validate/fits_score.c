#include "sim/validate/fits_score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- layouts of models that have unfinished ones ---- */

typedef struct layout {
    double probability;
    bool finished;
    const ms_fits_model *model;
} layout;

static bool is_of(const ms_fits_model *model, const ms_pubrun *run)
{
    return run->source != NULL && run->model_text != NULL &&
           strcmp(run->source, model->source) == 0 &&
           strcmp(run->model_text, model->model) == 0;
}

static ms_fits_model *find_model(ms_fits_model *models, int num_models,
                                 const ms_pubrun *run)
{
    for (int i = 0; i < num_models; i++)
        if (is_of(&models[i], run))
            return &models[i];
    return NULL;
}

/* Whether the worst rank is predicted to need less than half of its device. */
static bool fills_less_than_half(const ms_pubrun_score *score)
{
    return score->worst_peak_bytes + score->outside_bytes < score->capacity_bytes / 2.0;
}

static void count_layout(const ms_pubrun *run, const ms_pubrun_score *score,
                         ms_fits_model *model)
{
    bool low = fills_less_than_half(score);
    model->num_finished += !run->unfinished;
    model->num_unfinished += run->unfinished;
    model->num_low += low;
    model->floor_frac += low && run->unfinished; /* a count, until all are counted */
}

static ms_fits_model *find_models(ms_arena *arena, const ms_pubruns *runs,
                                  const ms_pubrun_score *scores, int *num_models)
{
    ms_fits_model *models = MS_NEW_ARRAY(arena, runs->num_runs, ms_fits_model);
    int num = 0;
    for (int i = 0; i < runs->num_runs; i++) {
        const ms_pubrun *run = &runs->runs[i];
        if (run->unfinished && run->source != NULL && run->model_text != NULL &&
            !isnan(scores[i].fits_probability) && find_model(models, num, run) == NULL)
            models[num++] =
                (ms_fits_model){.source = run->source, .model = run->model_text};
    }
    for (int i = 0; i < runs->num_runs; i++) {
        ms_fits_model *model = find_model(models, num, &runs->runs[i]);
        if (model != NULL && !isnan(scores[i].fits_probability))
            count_layout(&runs->runs[i], &scores[i], model);
    }
    for (int i = 0; i < num; i++)
        models[i].floor_frac /= models[i].num_low; /* NaN (0 / 0) if there are none */
    *num_models = num;
    return models;
}

/* Layouts by falling P(fit). */
static int compare_layouts(const void *a, const void *b)
{
    const layout *x = a, *y = b;
    return (x->probability < y->probability) - (x->probability > y->probability);
}

static layout *list_layouts(ms_arena *arena, const ms_pubruns *runs,
                            const ms_pubrun_score *scores, ms_fits_model *models,
                            int num_models, int *num_layouts)
{
    layout *layouts = MS_NEW_ARRAY(arena, runs->num_runs, layout);
    int num = 0;
    for (int i = 0; i < runs->num_runs; i++) {
        const ms_fits_model *model = find_model(models, num_models, &runs->runs[i]);
        if (model != NULL && !isnan(scores[i].fits_probability))
            layouts[num++] =
                (layout){scores[i].fits_probability, !runs->runs[i].unfinished, model};
    }
    if (num > 1)
        qsort(layouts, (size_t)num, sizeof *layouts, compare_layouts);
    *num_layouts = num;
    return layouts;
}

/* ---- scores ---- */

static double brier_of(const layout *layouts, int num)
{
    double sum = 0.0;
    for (int i = 0; i < num; i++) {
        double error = layouts[i].probability - layouts[i].finished;
        sum += error * error;
    }
    return sum / num; /* NaN (0 / 0) without layouts */
}

/* Area under the receiver operating characteristic, by ranks (Mann and Whitney 1947). */
static double auc_of(const layout *layouts, int num)
{
    double above = 0.0, pairs = 0.0; /* finished layouts so far; pairs in order */
    int num_finished = 0;
    for (int first = 0, end; first < num; first = end) {
        int finished = 0;
        for (end = first;
             end < num && layouts[end].probability == layouts[first].probability; end++)
            finished += layouts[end].finished;
        pairs += (end - first - finished) * (above + finished / 2.0);
        above += finished;
        num_finished += finished;
    }
    return pairs / ((double)num_finished * (num - num_finished)); /* NaN: one kind only */
}

static void fill_bin(const layout *layouts, int num, ms_fits_bin *bin)
{
    int num_finished = 0;
    double rest = 0.0;
    for (int i = 0; i < num; i++) {
        double p = layouts[i].probability, floor_frac = layouts[i].model->floor_frac;
        if (p < bin->from || (p >= bin->to && bin->to < 1.0))
            continue;
        bin->num++;
        num_finished += layouts[i].finished;
        rest += isnan(floor_frac) ? 1.0 : 1.0 - floor_frac;
    }
    bin->finished_frac = (double)num_finished / bin->num;
    bin->finished_of_rest_frac =
        bin->num > 0 ? fmin(num_finished / rest, 1.0) : (double)NAN;
}

ms_fits_score ms_fits_score_make(ms_arena *arena, const ms_pubruns *runs,
                                 const ms_pubrun_score *scores)
{
    static const double ends[MS_FITS_BINS + 1] = {0.0, 0.05, 0.1, 0.2, 0.3,  0.4, 0.5,
                                                  0.6, 0.7,  0.8, 0.9, 0.95, 1.0};
    ms_fits_score out = {0};
    ms_fits_model *models = find_models(arena, runs, scores, &out.num_models);
    int num;
    layout *layouts = list_layouts(arena, runs, scores, models, out.num_models, &num);
    out.models = models;
    for (int i = 0; i < out.num_models; i++) {
        out.num_finished += models[i].num_finished;
        out.num_unfinished += models[i].num_unfinished;
    }
    out.brier = brier_of(layouts, num);
    out.auc = auc_of(layouts, num);
    for (int i = 0; i < MS_FITS_BINS; i++) {
        out.bins[i] = (ms_fits_bin){.from = ends[i], .to = ends[i + 1]};
        fill_bin(layouts, num, &out.bins[i]);
    }
    return out;
}

/* ---- capacities ---- */

static bool same_source(const ms_pubrun *a, const ms_pubrun *b)
{
    return a->source != NULL && b->source != NULL && strcmp(a->source, b->source) == 0;
}

/* Measured peaks, and how many of them a capacity holds. */
typedef struct held {
    int num, num_held;
} held;

/* Counts the peaks of run i's source; none if an earlier run stands for the source. */
static held count_held(const ms_pubruns *runs, const ms_pubrun_score *scores, int i,
                       double probability)
{
    held out = {0};
    for (int j = 0; j < runs->num_runs; j++) {
        double rank = scores[j].peak_rank_frac;
        if (isnan(rank) || !same_source(&runs->runs[i], &runs->runs[j]))
            continue;
        if (j < i)
            return (held){0};
        out.num++;
        out.num_held += rank <= probability;
    }
    return out;
}

static void add_source(held source, int *num_sources, double *sum)
{
    *num_sources += source.num > 0;
    *sum += source.num > 0 ? (double)source.num_held / source.num : 0.0;
}

static ms_fits_capacity capacity_of(const ms_pubruns *runs, const ms_pubrun_score *scores,
                                    double probability)
{
    held all = {0}, pooled = {0};
    int num_sources = 0;
    double sum = 0.0;
    for (int i = 0; i < runs->num_runs; i++) {
        if (isnan(scores[i].peak_rank_frac))
            continue;
        held source = count_held(runs, scores, i, probability);
        all.num += source.num;
        all.num_held += source.num_held;
        if (source.num >= MS_POOLED_SOURCES) {
            add_source(source, &num_sources, &sum);
            continue;
        }
        pooled.num += source.num;
        pooled.num_held += source.num_held;
    }
    add_source(pooled, &num_sources, &sum);
    return (ms_fits_capacity){.probability = probability,
                              .num_runs = all.num,
                              .held_frac = (double)all.num_held / all.num,
                              .macro_held_frac = sum / num_sources};
}

void ms_fits_capacities(const ms_pubruns *runs, const ms_pubrun_score *scores,
                        ms_fits_capacity out[MS_FITS_CAPACITIES])
{
    static const double probabilities[MS_FITS_CAPACITIES] = {0.5, 0.8, 0.9, 0.95, 0.99};
    for (int i = 0; i < MS_FITS_CAPACITIES; i++)
        out[i] = capacity_of(runs, scores, probabilities[i]);
}

/* ---- JSON ---- */

static void write_model(ms_jout *out, const ms_fits_model *model)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "source", model->source);
    ms_jout_text_field(out, "model", model->model);
    ms_jout_number_field(out, "finished", model->num_finished);
    ms_jout_number_field(out, "unfinished", model->num_unfinished);
    ms_jout_number_field(out, "below_half", model->num_low);
    ms_jout_number_field(out, "unfinished_below_half_frac", model->floor_frac);
    ms_jout_end_object(out);
}

static void write_bin(ms_jout *out, const ms_fits_bin *bin)
{
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "from", bin->from);
    ms_jout_number_field(out, "to", bin->to);
    ms_jout_number_field(out, "n", bin->num);
    ms_jout_number_field(out, "finished_frac", bin->finished_frac);
    ms_jout_number_field(out, "finished_of_rest_frac", bin->finished_of_rest_frac);
    ms_jout_end_object(out);
}

void ms_fits_score_write_json(ms_jout *out, const ms_fits_score *score)
{
    ms_jout_begin_object_field(out, "fits");
    ms_jout_number_field(out, "finished", score->num_finished);
    ms_jout_number_field(out, "unfinished", score->num_unfinished);
    ms_jout_number_field(out, "brier", score->brier);
    ms_jout_number_field(out, "auc", score->auc);
    ms_jout_begin_array_field(out, "by_probability");
    for (int i = 0; i < MS_FITS_BINS; i++)
        write_bin(out, &score->bins[i]);
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "by_model");
    for (int i = 0; i < score->num_models; i++)
        write_model(out, &score->models[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

void ms_fits_capacities_write_json(ms_jout *out,
                                   const ms_fits_capacity capacities[MS_FITS_CAPACITIES])
{
    ms_jout_begin_array_field(out, "capacities");
    for (int i = 0; i < MS_FITS_CAPACITIES; i++) {
        ms_jout_begin_object(out);
        ms_jout_number_field(out, "fits_probability", capacities[i].probability);
        ms_jout_number_field(out, "n", capacities[i].num_runs);
        ms_jout_number_field(out, "held_frac", capacities[i].macro_held_frac);
        ms_jout_number_field(out, "held_of_runs_frac", capacities[i].held_frac);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}
