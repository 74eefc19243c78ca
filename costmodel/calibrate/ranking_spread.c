#include "costmodel/calibrate/ranking_spread.h"

#include "base/paths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ERROR 20.0 /* largest plausible error of a pair */

/* ---- the law ---- */

static double frac_below(const ms_ranking_source *source, double error)
{
    int num = 0;
    while (num < source->num_points && source->errors[num] <= error)
        num++;
    return (double)num / source->num_points;
}

double ms_faster_probability(const ms_ranking_spread *spread, double a_s, double b_s,
                             const char *left_out)
{
    double gap = log(b_s / a_s), sum = 0.0;
    int num_sources = 0;
    for (int i = 0; spread != NULL && i < spread->num_sources; i++) {
        if (left_out != NULL && strcmp(spread->sources[i].name, left_out) == 0)
            continue;
        sum += frac_below(&spread->sources[i], fabs(gap));
        num_sources++;
    }
    if (num_sources == 0 || isnan(gap))
        return (double)NAN;
    double lead = gap == 0.0 ? 0.0 : sum / (num_sources + 1.0) / 2.0;
    return gap < 0.0 ? 0.5 - lead : 0.5 + lead;
}

double ms_tie_band_frac(const ms_ranking_spread *spread, double probability)
{
    double least = INFINITY;
    if (spread == NULL)
        return 0.0;
    for (int s = 0; s < spread->num_sources; s++) {
        for (int i = 0; i < spread->sources[s].num_points; i++) {
            double gap_frac = expm1(spread->sources[s].errors[i]);
            if (gap_frac < least &&
                ms_faster_probability(spread, 1.0, 1.0 + gap_frac * (1.0 + 1e-12),
                                      NULL) >= probability)
                least = gap_frac;
        }
    }
    return least;
}

/* ---- construction ---- */

bool ms_ranking_pair_counts(const ms_ranking_pair *pair)
{
    return fabs(pair->predicted) <= MS_RANKING_MOST_GAP;
}

static double error_of(const ms_ranking_pair *pair)
{
    return fabs(pair->predicted - pair->measured);
}

static int compare_pairs(const void *a, const void *b)
{
    const ms_ranking_pair *x = *(const ms_ranking_pair *const *)a,
                          *y = *(const ms_ranking_pair *const *)b;
    int by_source = strcmp(x->source, y->source);
    double error_x = error_of(x), error_y = error_of(y);
    if (by_source != 0 || error_x != error_y)
        return by_source != 0 ? by_source : error_x < error_y ? -1 : 1;
    return (x->weight > y->weight) - (x->weight < y->weight);
}

/* Makes the errors of one source, from its pairs sorted by error: the middles of at most
 * MS_RANKING_POINTS parts of equal weight. */
static ms_ranking_source make_source(ms_arena *arena, const ms_ranking_pair *const *pairs,
                                     long num_pairs)
{
    int num_points = num_pairs < MS_RANKING_POINTS ? (int)num_pairs : MS_RANKING_POINTS;
    double *errors = MS_NEW_ARRAY(arena, num_points, double), all = 0.0, below = 0.0;
    int at = 0;
    for (long i = 0; i < num_pairs; i++)
        all += pairs[i]->weight;
    for (long i = 0; i < num_pairs; i++) {
        below += pairs[i]->weight;
        while (at < num_points &&
               (below >= all * (at + 0.5) / num_points || i + 1 == num_pairs))
            errors[at++] = round(1e4 * error_of(pairs[i])) / 1e4;
    }
    return (ms_ranking_source){pairs[0]->source, num_pairs, num_points, errors};
}

ms_ranking_spread ms_ranking_spread_make(ms_arena *arena, const ms_ranking_pair *pairs,
                                         long num_pairs)
{
    const ms_ranking_pair **sorted =
        MS_NEW_ARRAY(arena, num_pairs, const ms_ranking_pair *);
    long num = 0;
    for (long i = 0; i < num_pairs; i++)
        if (ms_ranking_pair_counts(&pairs[i]))
            sorted[num++] = &pairs[i];
    if (num > 1)
        qsort(sorted, (size_t)num, sizeof *sorted, compare_pairs);
    ms_ranking_source *sources = MS_NEW_ARRAY(arena, num, ms_ranking_source);
    ms_ranking_spread out = {.sources = sources};
    for (long first = 0, end; first < num; first = end) {
        for (end = first + 1;
             end < num && strcmp(sorted[first]->source, sorted[end]->source) == 0; end++)
            ;
        sources[out.num_sources++] = make_source(arena, &sorted[first], end - first);
    }
    return out;
}

/* ---- the file ---- */

static ms_status read_errors(ms_ctx *cx, ms_jval at, ms_ranking_source *out)
{
    ms_jval list;
    (void)ms_json_member(cx, at, "errors", &list);
    int num = ms_json_is_array(list) ? ms_json_length(list) : 0;
    if (num == 0)
        return ms_json_fail(cx, list, "\"errors\" is no list of errors");
    double *errors = MS_NEW_ARRAY(cx->arena, num, double), low = 0.0;
    for (int i = 0; i < num; i++) {
        MS_TRY(ms_json_number(cx, ms_json_element(cx, list, i), low, MOST_ERROR,
                              &errors[i]));
        low = errors[i]; /* they ascend */
    }
    out->errors = errors;
    out->num_points = num;
    return MS_OK;
}

static ms_status read_source(ms_ctx *cx, ms_jval at, ms_ranking_source *out)
{
    static const ms_field fields[] = {
        {.kind = MS_FIELD_TEXT,
         .key = "name",
         .offset = offsetof(ms_ranking_source, name),
         .required = true,
         .help = "name of the source, as in the runs"},
        {.kind = MS_FIELD_INTEGER,
         .key = "pairs",
         .offset = offsetof(ms_ranking_source, num_pairs),
         .required = true,
         .low = 1,
         .high = INFINITY,
         .help = "number of pairs of layouts"},
        {.kind = MS_FIELD_ANY,
         .key = "errors",
         .required = true,
         .help = "|ln| of predicted against measured ratio of step times, ascending"},
        {0}};
    *out = (ms_ranking_source){0};
    MS_TRY(ms_json_read(cx, at, fields, out));
    return read_errors(cx, at, out);
}

ms_status ms_ranking_spread_read(ms_ctx *cx, ms_jval root, ms_ranking_spread *out)
{
    static const char *const schemas[] = {"meshsim.ranking_spread/1", NULL};
    typedef struct file {
        ms_ranking_spread spread;
        int schema;
    } file;
    static const ms_field fields[] = {
        {.kind = MS_FIELD_CHOICE,
         .key = "schema",
         .offset = offsetof(file, schema),
         .required = true,
         .choices = schemas,
         .help = ""},
        {.kind = MS_FIELD_TEXT,
         .key = "source",
         .offset = offsetof(file, spread) + offsetof(ms_ranking_spread, source),
         .required = true,
         .help = "data that the spread was made from"},
        {.kind = MS_FIELD_ANY,
         .key = "sources",
         .required = true,
         .help = "errors of each source"},
        {0}};
    file read = {0};
    ms_jval list;
    MS_TRY(ms_json_read(cx, root, fields, &read));
    *out = read.spread;
    (void)ms_json_member(cx, root, "sources", &list);
    int num = ms_json_is_array(list) ? ms_json_length(list) : 0;
    if (num == 0)
        return ms_json_fail(cx, list, "\"sources\" is no list of sources");
    ms_ranking_source *sources = MS_NEW_ARRAY(cx->arena, num, ms_ranking_source);
    for (; out->num_sources < num; out->num_sources++)
        MS_TRY(read_source(cx, ms_json_element(cx, list, out->num_sources),
                           &sources[out->num_sources]));
    out->sources = sources;
    return MS_OK;
}

ms_status ms_ranking_spread_load(ms_ctx *cx, const char *name,
                                 const ms_ranking_spread **out)
{
    ms_jdoc *doc = NULL;
    ms_jval root;
    const char *path = ms_config_file(cx, "spreads", name);
    *out = NULL;
    if (path == NULL)
        return MS_OK;
    MS_TRY(ms_json_load(cx, path, &doc, &root));
    ms_ranking_spread *spread = MS_NEW(cx->arena, ms_ranking_spread);
    ms_status status = ms_ranking_spread_read(cx, root, spread);
    ms_json_close(doc);
    *out = spread;
    return status;
}

static void write_source(ms_jout *out, const ms_ranking_source *source)
{
    int line_depth = out->line_depth;
    ms_jout_begin_object(out);
    out->line_depth = out->depth;
    ms_jout_text_field(out, "name", source->name);
    ms_jout_number_field(out, "pairs", (double)source->num_pairs);
    ms_jout_begin_array_field(out, "errors");
    for (int i = 0; i < source->num_points; i++)
        ms_jout_number(out, source->errors[i]);
    ms_jout_end_array(out);
    out->line_depth = line_depth;
    ms_jout_end_object(out);
}

void ms_ranking_spread_write_json(ms_jout *out, const ms_ranking_spread *spread)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.ranking_spread/1");
    ms_jout_text_field(out, "source", spread->source);
    ms_jout_begin_array_field(out, "sources");
    for (int i = 0; i < spread->num_sources; i++)
        write_source(out, &spread->sources[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}
