#include "sim/validate/validation_by.h"

#include "sim/validate/validation_priv.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Compares names in natural order: consecutive digits compare as a number. */
static int natural_order(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            char *after_a, *after_b;
            double x = strtod(a, &after_a), y = strtod(b, &after_b);
            if (x != y)
                return x < y ? -1 : 1;
            a = after_a;
            b = after_b;
        } else if (*a != *b) {
            break;
        } else {
            a++;
            b++;
        }
    }
    return (unsigned char)*a - (unsigned char)*b;
}

typedef struct grouped_run {
    const char *value;
    double error_frac;
} grouped_run;

static int compare_values(const void *a, const void *b)
{
    const grouped_run *x = a, *y = b;
    int order = natural_order(x->value, y->value);
    return order != 0 ? order : strcmp(x->value, y->value);
}

static const ms_source_score *score_groups(ms_arena *arena, grouped_run *runs,
                                           int num_runs, int *num_scores)
{
    ms_source_score *scores = MS_NEW_ARRAY(arena, num_runs, ms_source_score);
    double *errors = MS_NEW_ARRAY(arena, num_runs, double);
    if (num_runs > 1)
        qsort(runs, (size_t)num_runs, sizeof *runs, compare_values);
    for (int i = 0; i < num_runs; i++)
        errors[i] = runs[i].error_frac;
    *num_scores = 0;
    for (int first = 0, end; first < num_runs; first = end) {
        end = first + 1;
        while (end < num_runs && strcmp(runs[first].value, runs[end].value) == 0)
            end++;
        scores[(*num_scores)++] =
            ms_score_errors(arena, runs[first].value, &errors[first], end - first);
    }
    return scores;
}

static const ms_source_score *group_runs(ms_arena *arena, const ms_pubrun_keys *keys,
                                         const ms_validation *v, bool of_memory,
                                         int *num_scores)
{
    grouped_run *runs = MS_NEW_ARRAY(arena, v->runs->num_runs, grouped_run);
    int num_runs = 0;
    for (int i = 0; i < v->runs->num_runs; i++) {
        const ms_pubrun_score *score = &v->scores[i];
        double error = of_memory ? score->peak_error_frac : score->step_error_frac;
        if (!isnan(error))
            runs[num_runs++] = (grouped_run){
                ms_pubrun_keys_value(arena, keys, &v->runs->runs[i]), error};
    }
    return score_groups(arena, runs, num_runs, num_scores);
}

void ms_validation_group(ms_arena *arena, const ms_pubrun_keys *keys, int num_keys,
                         ms_validation *v)
{
    ms_pubrun_grouping *groupings = MS_NEW_ARRAY(arena, num_keys, ms_pubrun_grouping);
    for (int i = 0; i < num_keys; i++) {
        groupings[i].key = keys[i].text;
        groupings[i].time = group_runs(arena, &keys[i], v, false, &groupings[i].num_time);
        groupings[i].memory =
            group_runs(arena, &keys[i], v, true, &groupings[i].num_memory);
    }
    v->groupings = groupings;
    v->num_groupings = num_keys;
}

/* ---- output ---- */

void ms_pubrun_groupings_write_json(ms_jout *out, const ms_validation *v)
{
    ms_jout_begin_array_field(out, "by");
    for (int i = 0; i < v->num_groupings; i++) {
        const ms_pubrun_grouping *grouping = &v->groupings[i];
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "key", grouping->key);
        ms_validation_write_scores(out, "time", "value", grouping->time,
                                   grouping->num_time);
        ms_validation_write_scores(out, "memory", "value", grouping->memory,
                                   grouping->num_memory);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}
