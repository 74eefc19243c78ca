/* How far the engines' step times lie apart for random plans of models on clusters: the
 * distribution of the differences by class of plan, and the plans that differ most
 * (docs/formulas 6.9). Compared with the replay of actions, which predictions and searches
 * use, are the replay of nodes without sharing of links ("alone"), or ("shared") events
 * that share them. Arguments: plans of each model (30), seed (1), alone or shared, a file that
 * gets one line per plan (none). */
#include "sim/simulate/simulation.h"
#include "sim/step/prediction.h"

#include "tests/support/random_plans.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CLASSES 64
#define NUM_WORST   12
#define WITHIN_FRAC 0.01 /* the difference that the engines aim at */

typedef struct gap {
    const char *model, *cluster, *kind, *stack;
    ms_plan plan;
    char *text;
    /* step times in seconds: by the replay of actions, and by the task graph of nodes */
    double actions_s, nodes_s;
    double gap_frac, memory_frac;
} gap;

typedef struct sample {
    int num_plans; /* plans that each subject draws */
    uint64_t seed;
    bool shared; /* links are shared */
} sample;

static void require(ms_ctx *cx, ms_status status)
{
    if (status == MS_OK)
        return;
    ms_diag_print(cx, stderr);
    exit((int)status);
}

/* ---- drawing and measuring ---- */

static bool is_uneven(const ms_plan *plan)
{
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        if ((plan->size[axis] & (plan->size[axis] - 1)) != 0)
            return true;
    return (plan->ep & (plan->ep - 1)) != 0;
}

static gap measure(ms_ctx *cx, ms_arena *kept, ms_workload *workload, const ms_plan *plan,
                   bool shared)
{
    ms_planned planned;
    ms_simulation nodes;
    ms_prediction prediction;
    ms_simulate_options options = {.engine = shared ? MS_ENGINE_EVENT : MS_ENGINE_REPLAY,
                                   .detail = MS_DETAIL_NODE,
                                   .unshared = !shared};
    ms_planned_open(cx, workload, plan, &planned);
    require(cx, ms_simulate(cx, &planned, &options, &nodes));
    require(cx, ms_predict(cx, workload, plan, &prediction));
    gap g = {.plan = *plan,
             .text = ms_arena_printf(kept, "%s", ms_plan_text(cx->arena, plan)),
             .actions_s = nodes.predicted_step_s,
             .nodes_s = nodes.step_s};
    for (int a = 0; a < nodes.num_actors; a++) {
        const ms_actor *actor = &nodes.actors[a];
        double frac =
            actor->peak_bytes / prediction.stages[actor->pipeline_rank].peak_bytes - 1.0;
        g.memory_frac = fabs(frac) > fabs(g.memory_frac) ? frac : g.memory_frac;
    }
    g.gap_frac = g.nodes_s / g.actions_s - 1.0;
    return g;
}

static int draw_gaps(ms_arena *kept, const ms_plan_subject *s, const sample *how,
                     gap *out)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_plan base;
    ms_workload *workload;
    require(&cx, ms_plan_subject_open(&cx, s, &base, &workload));
    ms_rng rng = ms_rng_seed(how->seed);
    int num = 0;
    while (num < how->num_plans) {
        ms_arena_mark mark = ms_arena_save(cx.arena);
        ms_plan plan = ms_random_plan(&rng, workload, &base, s->gpus);
        if (plan.gpus >= 4) {
            out[num] = measure(&cx, kept, workload, &plan, how->shared);
            out[num].model = s->model;
            out[num].cluster = s->cluster;
            out[num].kind = s->kind;
            out[num++].stack = s->stack;
        }
        ms_arena_rewind(cx.arena, mark);
    }
    ms_workload_close(workload);
    ms_arena_close(cx.arena);
    return num;
}

/* ---- classes ---- */

static const char *sharding_class(const gap *g)
{
    static const char *const names[] = {"zero 0", "zero 1", "zero 2", "zero 3",
                                        "zero 3 kept"};
    return names[ms_plan_sharding(&g->plan)];
}

static const char *pipeline_class(const gap *g)
{
    return g->plan.size[MS_PP] > 1 ? "pipelines" : "no pipeline";
}

static const char *schedule_class(const gap *g)
{
    return g->plan.size[MS_PP] > 1 ? ms_schedule_names[g->plan.schedule] : "no pipeline";
}

static const char *kind_class(const gap *g)
{
    return g->kind;
}

static const char *model_class(const gap *g)
{
    return g->model;
}

static const char *evenness_class(const gap *g)
{
    return is_uneven(&g->plan) ? "groups of 3" : "powers of 2";
}

static const char *experts_class(const gap *g)
{
    return g->plan.ep > 1 ? "ep" : "no ep";
}

static const char *(*const classes[])(const gap *) = {
    kind_class,     model_class,    sharding_class, pipeline_class,
    schedule_class, evenness_class, experts_class};
#define NUM_KEYS ((int)(sizeof classes / sizeof *classes))

/* ---- printing ---- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_class(const gap *gaps, int num, int key, const char *name)
{
    double *fracs = malloc((size_t)num * sizeof *fracs),
           *sizes = malloc((size_t)num * sizeof *sizes);
    int n = 0;
    double memory_frac = 0.0;
    for (int i = 0; i < num; i++) {
        if (key >= 0 && strcmp(classes[key](&gaps[i]), name) != 0)
            continue;
        fracs[n] = gaps[i].gap_frac;
        sizes[n++] = fabs(gaps[i].gap_frac);
        memory_frac = fmax(memory_frac, fabs(gaps[i].memory_frac));
    }
    qsort(fracs, (size_t)n, sizeof *fracs, compare_doubles);
    qsort(sizes, (size_t)n, sizeof *sizes, compare_doubles);
    int within = 0;
    while (within < n && sizes[within] <= WITHIN_FRAC)
        within++;
    printf("%-26s %5d  %+6.2f  %+6.2f  %+6.2f  %6.2f  %6.2f  %6.2f  %6.2f  %.1e\n", name,
           n, 100.0 * fracs[0], 100.0 * fracs[n / 2], 100.0 * fracs[n - 1],
           100.0 * sizes[n / 2], 100.0 * sizes[n * 95 / 100], 100.0 * sizes[n * 99 / 100],
           100.0 * within / n, 100.0 * memory_frac);
    free(fracs);
    free(sizes);
}

static void print_classes(const gap *gaps, int num)
{
    printf("%-26s %5s  %6s  %6s  %6s  %6s  %6s  %6s  %6s  %s\n", "nodes over actions, %",
           "plans", "least", "median", "most", "|med|", "|p95|", "|p99|", "in 1 %",
           "memory");
    print_class(gaps, num, -1, "all");
    for (int key = 0; key < NUM_KEYS; key++) {
        const char *seen[MAX_CLASSES];
        int num_seen = 0;
        printf("\n");
        for (int i = 0; i < num; i++) {
            const char *name = classes[key](&gaps[i]);
            int at = 0;
            while (at < num_seen && strcmp(seen[at], name) != 0)
                at++;
            if (at == num_seen) {
                seen[num_seen++] = name;
                print_class(gaps, num, key, name);
            }
        }
    }
}

static int compare_gaps(const void *a, const void *b)
{
    double x = fabs(((const gap *)a)->gap_frac), y = fabs(((const gap *)b)->gap_frac);
    return (x < y) - (x > y);
}

static void print_gap(FILE *out, const gap *g)
{
    fprintf(out, "%+7.2f %%  %.4f s  %s on %s, %s: %s, batch %ld\n", 100.0 * g->gap_frac,
            g->actions_s, g->model, g->cluster, g->stack, g->text, g->plan.global_batch);
}

int main(int argc, char **argv)
{
    sample how = {.num_plans = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 30,
                  .seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1,
                  .shared = argc > 3 && strcmp(argv[3], "shared") == 0};
    ms_arena *kept = ms_arena_open();
    gap *gaps = calloc((size_t)(how.num_plans * MS_NUM_PLAN_SUBJECTS), sizeof *gaps);
    int num = 0;
    for (int i = 0; i < MS_NUM_PLAN_SUBJECTS; i++)
        num += draw_gaps(kept, &ms_plan_subjects[i], &how, gaps + num);
    print_classes(gaps, num);
    qsort(gaps, (size_t)num, sizeof *gaps, compare_gaps);
    printf("\nplans that differ most\n");
    for (int i = 0; i < num && i < NUM_WORST; i++)
        print_gap(stdout, &gaps[i]);
    FILE *file = argc > 4 ? fopen(argv[4], "w") : NULL;
    for (int i = 0; i < num && file != NULL; i++)
        print_gap(file, &gaps[i]);
    if (file != NULL)
        fclose(file);
    free(gaps);
    ms_arena_close(kept);
    return 0;
}
