#include "cli/report/sweep_report.h"

#include "base/number.h"
#include "base/print.h"
#include "base/table.h"
#include "cli/report/campaign_report.h"
#include "sim/planning/campaign_text.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <string.h>

/* ---- figures of a point, for JSON and CSV ---- */

typedef struct figure {
    const char *key;
    bool of_campaign;
    size_t offset; /* place of a double in ms_best_plan */
} figure;

#define OF_PLAN(key, member)                                                             \
    {                                                                                    \
        key, false, offsetof(ms_best_plan, member)                                       \
    }
#define OF_CAMPAIGN(key, member)                                                         \
    {                                                                                    \
        key, true, offsetof(ms_best_plan, campaign.campaign.member)                      \
    }
static const figure figures[] = {
    OF_PLAN("step_s", prediction.step_s),
    OF_PLAN("step_s_low", prediction.step_low_s),
    OF_PLAN("step_s_high", prediction.step_high_s),
    OF_PLAN("tokens_per_s", prediction.tokens_per_s),
    OF_PLAN("tokens_per_s_per_gpu", prediction.tokens_per_s_per_gpu),
    OF_PLAN("mfu_frac", prediction.mfu_frac),
    OF_PLAN("peak_bytes", prediction.peak_bytes),
    OF_PLAN("needed_bytes", needed_bytes),
    OF_PLAN("fits_probability", prediction.fits_probability),
    OF_CAMPAIGN("elapsed_s", elapsed_s),
    OF_CAMPAIGN("elapsed_s_low", elapsed_low_s),
    OF_CAMPAIGN("elapsed_s_high", elapsed_high_s),
    OF_CAMPAIGN("goodput_frac", goodput_frac),
    OF_CAMPAIGN("gpu_hours", gpu_hours),
    OF_CAMPAIGN("cost", cost),
    OF_CAMPAIGN("energy_kwh", energy_kwh),
    OF_CAMPAIGN("co2_kg", co2_kg),
};
#define NUM_FIGURES (sizeof figures / sizeof *figures)

static double value_of(const figure *f, const ms_best_plan *answer)
{
    double value;
    if (!answer->found || (f->of_campaign && !answer->has_campaign))
        return (double)NAN;
    memcpy(&value, (const char *)answer + f->offset, sizeof value);
    return value;
}

static const char *reason_of(const ms_plan_sweep *sweep, int point)
{
    return sweep->answered[point] ? sweep->answers[point].reason : "not searched";
}

/* ---- text ---- */

static void print_row(ms_table *table, ms_arena *arena, const ms_plan_sweep *sweep,
                      int point, const char *mark)
{
    const ms_best_plan *a = &sweep->answers[point];
    const ms_plan *base = &sweep->questions[point].base;
    const ms_prediction *p = &a->prediction;
    const ms_campaign *c = &a->campaign.campaign;
    bool campaign = a->found && a->has_campaign && ms_campaign_advances(c);
    double none = (double)NAN;
    ms_table_cell(table, "%s", base->cluster);
    ms_table_cell(table, "%ld", base->gpus);
    ms_table_cells(table, "%.3f\t%.0f\t%.1f\t%.1f\t%.1f", a->found ? p->step_s : none,
                   a->found ? p->tokens_per_s : none,
                   a->found ? 100.0 * p->mfu_frac : none,
                   a->found ? ms_gib(p->peak_bytes) : none,
                   campaign ? c->elapsed_s / MS_DAY_S : none);
    ms_table_cell(table, "%s", campaign ? ms_large_text(arena, c->gpu_hours, "") : "-");
    ms_table_cell(table, "%s",
                  campaign && !isnan(c->cost) ? ms_large_text(arena, c->cost, "") : "-");
    const char *reason = reason_of(sweep, point);
    ms_table_cell(table, "%s", reason != NULL ? reason : mark);
}

const char *ms_sweep_mark_text(ms_arena *arena, const ms_plan_sweep_choice *choice,
                               int point)
{
    const struct {
        int point;
        const char *word;
    } marks[] = {{choice->fastest, "fastest"},
                 {choice->cheapest, "cheapest"},
                 {choice->fewest, "fewest GPUs"}};
    const char *text = "";
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (marks[i].point == point)
            text = ms_arena_printf(arena, "%s%s%s", text, text[0] == '\0' ? "" : ", ",
                                   marks[i].word);
    for (int i = 0; i < choice->num_pareto && text[0] == '\0'; i++)
        if (choice->pareto[i] == point)
            text = "Pareto";
    return text;
}

/* The limit that a point's campaign breaks; NULL: none. */
static const char *broken_limit(ms_arena *arena, const ms_best_plan *answer)
{
    return answer->found && answer->has_campaign
               ? ms_broken_limit_text(arena, &answer->campaign)
               : NULL;
}

static const char *mark_of(ms_arena *arena, const ms_plan_sweep_choice *choice, int point,
                           const ms_best_plan *answer)
{
    const char *broken = broken_limit(arena, answer);
    return broken != NULL ? broken : ms_sweep_mark_text(arena, choice, point);
}

/* Whether the jobs of a sweep have several batches. */
static bool batches_differ(const ms_plan_sweep *sweep)
{
    long first = sweep->questions[0].base.global_batch;
    for (int i = 0; i < ms_plan_sweep_num(sweep); i++)
        if (sweep->questions[i].base.global_batch != first)
            return true;
    return false;
}

/* The batch of a task; NaN: its sizes have default batches of their own. */
static double batch_of(const ms_plan_sweep *sweep, int task)
{
    int first = task * sweep->per_task;
    long batch = sweep->questions[first].base.global_batch;
    for (int i = first; i < first + sweep->per_task; i++)
        if (sweep->questions[i].base.global_batch != batch)
            return (double)NAN;
    return (double)batch;
}

/* ", 512 a step": the batch of a task, where tasks differ by it. */
static const char *batch_text(ms_arena *arena, const ms_plan_sweep *sweep, int task)
{
    double batch = batch_of(sweep, task);
    return isnan(batch) || !batches_differ(sweep)
               ? ""
               : ms_arena_printf(arena, ", %.0f a step", batch);
}

static void print_task(FILE *out, ms_arena *arena, const ms_plan_sweep *sweep, int task)
{
    int first = task * sweep->per_task;
    ms_plan_sweep_choice choice = ms_plan_sweep_choose(arena, sweep, task);
    const ms_plan *base = &sweep->questions[first].base;
    ms_print(out, "%s, sequences of %ld%s, stack %s\n\n", base->model,
             base->sequence_length, batch_text(arena, sweep, task), base->stack);
    ms_table *table =
        MS_TABLE(arena, "lrrr2r1r1rr1rL", "cluster", "GPUs", "step (s)", "tokens/s",
                 "MFU (%)", "peak (GiB)", "days", "GPU-hours", "cost", "best");
    for (int i = first; i < first + sweep->per_task; i++)
        print_row(table, arena, sweep, i, mark_of(arena, &choice, i, &sweep->answers[i]));
    ms_table_print(table, out);
    fputc('\n', out);
}

void ms_sweep_report_print(FILE *out, ms_arena *arena, const ms_plan_sweep *sweep)
{
    for (int task = 0; task < sweep->num_tasks; task++)
        print_task(out, arena, sweep, task);
    ms_print(out, "Pareto: no other point is both faster and cheaper; fastest, cheapest "
                  "and fewest GPUs\nare of the points that keep deadline and budget\n");
}

/* ---- JSON ---- */

static void write_point(ms_jout *out, ms_arena *arena, const ms_plan_sweep *sweep,
                        int point)
{
    const ms_best_plan *a = &sweep->answers[point];
    const ms_plan *base = &sweep->questions[point].base;
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "model", base->model);
    ms_jout_text_field(out, "cluster", base->cluster);
    ms_jout_number_field(out, "gpus", (double)base->gpus);
    ms_jout_number_field(out, "sequence_length", (double)base->sequence_length);
    ms_jout_number_field(out, "global_batch", (double)base->global_batch);
    ms_jout_bool_field(out, "found", a->found);
    ms_jout_text_field(out, "reason", reason_of(sweep, point));
    ms_jout_bool_field(out, "optimal", a->optimal);
    ms_jout_bool_field(out, "keeps_limits", ms_best_plan_keeps_limits(a));
    ms_jout_text_field(out, "broken_limit", broken_limit(arena, a));
    for (size_t i = 0; i < NUM_FIGURES; i++)
        ms_jout_number_field(out, figures[i].key, value_of(&figures[i], a));
    if (a->found && a->has_campaign)
        ms_campaign_write_field(out, &a->campaign);
    ms_jout_key(out, "plan");
    if (a->found)
        ms_plan_write_json(out, &a->plan);
    else
        ms_jout_null(out);
    ms_jout_end_object(out);
}

static void write_index(ms_jout *out, const char *key, int index)
{
    ms_jout_number_field(out, key, index < 0 ? (double)NAN : (double)index);
}

static void write_choice(ms_jout *out, ms_arena *arena, const ms_plan_sweep *sweep,
                         int task)
{
    ms_plan_sweep_choice choice = ms_plan_sweep_choose(arena, sweep, task);
    const ms_plan *base = &sweep->questions[task * sweep->per_task].base;
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "model", base->model);
    ms_jout_number_field(out, "sequence_length", (double)base->sequence_length);
    ms_jout_number_field(out, "global_batch", batch_of(sweep, task));
    write_index(out, "fastest", choice.fastest);
    write_index(out, "cheapest", choice.cheapest);
    write_index(out, "fewest_gpus", choice.fewest);
    ms_jout_begin_array_field(out, "pareto");
    for (int i = 0; i < choice.num_pareto; i++)
        ms_jout_number(out, choice.pareto[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

static void write_limits(ms_jout *out, ms_arena *arena, const ms_plan_limits *limits)
{
    const char *text = "";
    for (int i = 0; i < limits->num; i++)
        text =
            ms_arena_printf(arena, "%s%s%s", text, i > 0 ? ", " : "", limits->texts[i]);
    ms_jout_text_field(out, "limits", text);
    ms_jout_number_field(out, "min_fit", limits->memory.min_probability);
    ms_jout_number_field(out, "headroom_frac", limits->memory.headroom_frac);
    ms_jout_number_field(out, "headroom_bytes", limits->memory.headroom_bytes);
}

void ms_sweep_report_write_json(ms_jout *out, ms_arena *arena, const ms_plan_sweep *sweep)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.sweep/1");
    write_limits(out, arena, sweep->questions[0].limits);
    ms_jout_begin_array_field(out, "choices");
    for (int task = 0; task < sweep->num_tasks; task++)
        write_choice(out, arena, sweep, task);
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "points");
    for (int i = 0; i < ms_plan_sweep_num(sweep); i++)
        write_point(out, arena, sweep, i);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

/* ---- CSV ---- */

void ms_sweep_report_write_csv(FILE *out, const ms_plan_sweep *sweep)
{
    char text[32];
    fputs("model,cluster,gpus,sequence_length,global_batch", out);
    for (size_t i = 0; i < NUM_FIGURES; i++)
        ms_print(out, ",%s", figures[i].key);
    fputs(",plan,reason\n", out);
    for (int p = 0; p < ms_plan_sweep_num(sweep); p++) {
        const ms_plan *base = &sweep->questions[p].base;
        const ms_best_plan *a = &sweep->answers[p];
        ms_print_csv_text(out, base->model);
        fputc(',', out);
        ms_print_csv_text(out, base->cluster);
        ms_print(out, ",%ld,%ld,%ld", base->gpus, base->sequence_length,
                 base->global_batch);
        for (size_t i = 0; i < NUM_FIGURES; i++) {
            double value = value_of(&figures[i], a);
            ms_print(out, ",%s", isnan(value) ? "" : ms_json_number_text(value, text));
        }
        fputc(',', out);
        ms_arena *scratch = ms_arena_open();
        ms_print_csv_text(out, a->found ? ms_plan_text(scratch, &a->plan) : "");
        ms_arena_close(scratch);
        fputc(',', out);
        ms_print_csv_text(out, reason_of(sweep, p) != NULL ? reason_of(sweep, p) : "");
        fputc('\n', out);
    }
}
