#include "sim/validation_by.h"

#include "sim/validation_priv.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys ---- */

static const char *number_text(ms_arena *arena, long number)
{
    return ms_arena_printf(arena, "%ld", number);
}

static const char *source_of(ms_arena *arena, const ms_published_run *run)
{
    (void)arena;
    return run->source;
}

static const char *framework_of(ms_arena *arena, const ms_published_run *run)
{
    (void)arena;
    return run->framework;
}

static const char *stack_of(ms_arena *arena, const ms_published_run *run)
{
    (void)arena;
    return run->plan.stack;
}

static const char *gpu_type_of(ms_arena *arena, const ms_published_run *run)
{
    (void)arena;
    return run->gpu_type;
}

static const char *cluster_of(ms_arena *arena, const ms_published_run *run)
{
    (void)arena;
    return run->plan.cluster;
}

static const char *network_of(ms_arena *arena, const ms_published_run *run)
{
    (void)arena;
    return run->network;
}

static const char *model_of(ms_arena *arena, const ms_published_run *run)
{
    (void)arena;
    return run->model_text;
}

static const char *kind_of(ms_arena *arena, const ms_published_run *run)
{
    (void)arena;
    return run->model->moe.num_experts > 0 ? "moe" : "dense";
}

/* Of the products, as it is predicted; what the file says has many spellings. */
static const char *precision_of(ms_arena *arena, const ms_published_run *run)
{
    (void)arena;
    return ms_dtype_names[run->plan.compute];
}

static const char *gpus_of(ms_arena *arena, const ms_published_run *run)
{
    return number_text(arena, run->plan.gpus);
}

static const char *nodes_of(ms_arena *arena, const ms_published_run *run)
{
    long each = run->cluster->gpus_per_node;
    return number_text(arena, (run->plan.gpus + each - 1) / each);
}

static const char *dp_of(ms_arena *arena, const ms_published_run *run)
{
    return number_text(arena, ms_plan_data_parallel(&run->plan));
}

static const char *tp_of(ms_arena *arena, const ms_published_run *run)
{
    return number_text(arena, run->plan.size[MS_TP]);
}

static const char *pp_of(ms_arena *arena, const ms_published_run *run)
{
    return number_text(arena, run->plan.size[MS_PP]);
}

static const char *cp_of(ms_arena *arena, const ms_published_run *run)
{
    return number_text(arena, run->plan.size[MS_CP]);
}

static const char *ep_of(ms_arena *arena, const ms_published_run *run)
{
    return number_text(arena, run->plan.ep);
}

static const char *zero_of(ms_arena *arena, const ms_published_run *run)
{
    return number_text(arena, run->plan.zero);
}

static const char *sequence_of(ms_arena *arena, const ms_published_run *run)
{
    return number_text(arena, run->plan.sequence_length);
}

static const char *microbatch_of(ms_arena *arena, const ms_published_run *run)
{
    return number_text(arena, run->plan.microbatch);
}

static const char *microbatches_of(ms_arena *arena, const ms_published_run *run)
{
    return number_text(arena, ms_plan_microbatches(&run->plan));
}

static const char *schedule_of(ms_arena *arena, const ms_published_run *run)
{
    (void)arena;
    return run->plan.size[MS_PP] > 1 ? ms_plan_schedule_name(&run->plan) : "none";
}

static const char *recompute_of(ms_arena *arena, const ms_published_run *run)
{
    (void)arena;
    return ms_recompute_names[run->plan.recompute];
}

static const char *pipeline_of(ms_arena *arena, const ms_published_run *run)
{
    (void)arena;
    return run->plan.size[MS_PP] > 1 ? "pp > 1" : "pp 1";
}

/* tp is innermost: a group stays in a node as long as it is no larger. */
static const char *tensor_of(ms_arena *arena, const ms_published_run *run)
{
    (void)arena;
    if (run->plan.size[MS_TP] == 1)
        return "tp 1";
    return run->plan.size[MS_TP] <= run->cluster->gpus_per_node ? "tp in a node"
                                                                : "tp over nodes";
}

static const struct {
    const char *name;
    const char *(*value)(ms_arena *arena, const ms_published_run *run);
} known_keys[] = {
    {"source", source_of},
    {"framework", framework_of},
    {"stack", stack_of},
    {"gpu_type", gpu_type_of},
    {"cluster", cluster_of},
    {"network", network_of},
    {"model", model_of},
    {"kind", kind_of},
    {"precision", precision_of},
    {"gpus", gpus_of},
    {"nodes", nodes_of},
    {"dp", dp_of},
    {"tp", tp_of},
    {"pp", pp_of},
    {"cp", cp_of},
    {"ep", ep_of},
    {"zero", zero_of},
    {"seq", sequence_of},
    {"microbatch", microbatch_of},
    {"microbatches", microbatches_of},
    {"schedule", schedule_of},
    {"recompute", recompute_of},
    {"pipeline", pipeline_of},
    {"tensor", tensor_of},
};
#define NUM_KNOWN_KEYS ((int)(sizeof known_keys / sizeof *known_keys))

const char *ms_run_keys_known(ms_arena *arena)
{
    const char *names[NUM_KNOWN_KEYS + 1] = {0};
    for (int i = 0; i < NUM_KNOWN_KEYS; i++)
        names[i] = known_keys[i].name;
    const char *text = names[0];
    for (int i = 1; i < NUM_KNOWN_KEYS; i++)
        text = ms_arena_printf(arena, "%s, %s", text, names[i]);
    return text;
}

static ms_status unknown_key(ms_ctx *cx, const char *option, const char *word)
{
    const char *names[NUM_KNOWN_KEYS];
    for (int i = 0; i < NUM_KNOWN_KEYS; i++)
        names[i] = known_keys[i].name;
    const char *nearest = ms_nearest(word, names, NUM_KNOWN_KEYS);
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s: unknown key \"%s\"", option, word);
    if (nearest != NULL)
        ms_hint(cx, "did you mean \"%s\"?", nearest);
    else
        ms_hint(cx, "known: %s", ms_run_keys_known(cx->arena));
    return MS_EINPUT;
}

static ms_status parse_joined(ms_ctx *cx, const char *option, const char *text,
                              ms_run_keys *out)
{
    *out = (ms_run_keys){.text = text};
    for (const char *rest = text; rest != NULL;) {
        size_t length = strcspn(rest, "+");
        const char *word = ms_arena_strndup(cx->arena, rest, length);
        int key = 0;
        while (key < NUM_KNOWN_KEYS && strcmp(known_keys[key].name, word) != 0)
            key++;
        if (key == NUM_KNOWN_KEYS)
            return unknown_key(cx, option, word);
        if (out->num_keys == MS_MAX_JOINED_KEYS)
            return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                           "%s: \"%s\" joins more than %d keys", option, text,
                           MS_MAX_JOINED_KEYS);
        out->keys[out->num_keys++] = key;
        rest = rest[length] == '+' ? rest + length + 1 : NULL;
    }
    return MS_OK;
}

ms_status ms_run_keys_parse(ms_ctx *cx, const char *option, const char *text,
                            ms_run_keys **out, int *num)
{
    ms_status status = MS_OK;
    int capacity = 0;
    *out = NULL;
    *num = 0;
    for (const char *rest = text; rest != NULL;) {
        size_t length = strcspn(rest, ",");
        MS_MAKE_ROOM(cx->arena, *out, *num, capacity, 4);
        ms_status parsed = parse_joined(
            cx, option, ms_arena_strndup(cx->arena, rest, length), &(*out)[(*num)++]);
        status = parsed != MS_OK ? parsed : status; /* all errors are recorded */
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    return status;
}

/* ---- groups ---- */

static const char *value_of(ms_arena *arena, const ms_run_keys *keys,
                            const ms_published_run *run)
{
    const char *text = "";
    for (int i = 0; i < keys->num_keys; i++)
        text =
            ms_arena_printf(arena, "%s%s%s", text, i == 0 ? "" : ", ",
                            ms_or_unstated(known_keys[keys->keys[i]].value(arena, run)));
    return text;
}

/* As people order names: runs of digits by their number. */
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

static int by_value(const void *a, const void *b)
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
        qsort(runs, (size_t)num_runs, sizeof *runs, by_value);
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

static const ms_source_score *group_runs(ms_arena *arena, const ms_run_keys *keys,
                                         const ms_validation *v, bool of_memory,
                                         int *num_scores)
{
    grouped_run *runs = MS_NEW_ARRAY(arena, v->runs->num_runs, grouped_run);
    int num_runs = 0;
    for (int i = 0; i < v->runs->num_runs; i++) {
        const ms_run_score *score = &v->scores[i];
        double error = of_memory ? score->peak_error_frac : score->step_error_frac;
        if (!isnan(error))
            runs[num_runs++] =
                (grouped_run){value_of(arena, keys, &v->runs->runs[i]), error};
    }
    return score_groups(arena, runs, num_runs, num_scores);
}

void ms_validation_group(ms_arena *arena, const ms_run_keys *keys, int num_keys,
                         ms_validation *v)
{
    ms_run_grouping *groupings = MS_NEW_ARRAY(arena, num_keys, ms_run_grouping);
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

void ms_run_groupings_write_json(ms_jout *out, const ms_validation *v)
{
    ms_jout_key(out, "by");
    ms_jout_begin_array(out);
    for (int i = 0; i < v->num_groupings; i++) {
        const ms_run_grouping *grouping = &v->groupings[i];
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

static void print_grouping(FILE *out, ms_arena *arena, const char *what, const char *key,
                           const ms_source_score *scores, int num_scores)
{
    if (num_scores == 0)
        return;
    fprintf(out, "\n%s by %s\n", what, key);
    ms_validation_print_scores(out, arena, key, scores, num_scores);
}

void ms_run_groupings_print(FILE *out, ms_arena *arena, const ms_validation *v)
{
    for (int i = 0; i < v->num_groupings; i++) {
        const ms_run_grouping *grouping = &v->groupings[i];
        print_grouping(out, arena, "step time", grouping->key, grouping->time,
                       grouping->num_time);
        print_grouping(out, arena, "peak memory", grouping->key, grouping->memory,
                       grouping->num_memory);
    }
}
