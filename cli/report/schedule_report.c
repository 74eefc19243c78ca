/* Text of a schedule is cut where it would fill screens; JSON and CSV hold everything. */
#include "cli/report/schedule_report.h"

#include "base/print.h"
#include "base/table.h"
#include "costmodel/schedule/schedule_csv.h"

#include <string.h>

#define MAX_ROWS        32  /* most ranks in the drawing and the table */
#define MAX_LISTED      512 /* most actions that the text lists */
#define RANK_TEXT_WIDTH 8

static double frac(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static const char *plural(long count)
{
    return count == 1 ? "" : "s";
}

int ms_schedule_rank_step(int num_ranks)
{
    return (num_ranks + MAX_ROWS - 1) / MAX_ROWS;
}

/* ---- text ---- */

static void print_head(FILE *out, const ms_schedule_report *report)
{
    const ms_schedule_shape *shape = &report->schedule->shape;
    const ms_schedule_times *times = report->times;
    ms_print(out, "%s: %d rank%s, %d micro-batch%s, %d stage%s a rank", report->name,
             shape->num_ranks, plural(shape->num_ranks), shape->num_microbatches,
             shape->num_microbatches == 1 ? "" : "es", report->schedule->num_chunks,
             plural(report->schedule->num_chunks));
    if (ms_schedule_traits_of(shape->kind).groups && shape->virtual_stages > 1)
        ms_print(out, ", groups of %d", ms_schedule_group(shape));
    if (ms_schedule_placement(shape->kind) == MS_PLACE_V)
        ms_print(out, ", stages in a V");
    if (ms_schedule_placement(shape->kind) == MS_PLACE_BOTH_WAYS)
        ms_print(out, ", %d micro-batches each way", shape->num_microbatches / 2);
    ms_print(out, "\na stage takes %.6g forward, %.6g + %.6g backward (inputs + weights)",
             times->forward, times->backward_input, times->backward_weight);
    ms_print(out, ", a send %.6g\n", times->send);
    ms_print(out, "makespan %.6g, global bubble %.6g (%.1f %%)\n\n",
             report->timeline->makespan, report->timeline->global_bubble,
             100 * frac(report->timeline->global_bubble, report->timeline->makespan));
}

static void print_ranks(FILE *out, ms_arena *arena, const ms_schedule_report *report)
{
    const ms_schedule_timeline *timeline = report->timeline;
    int num_ranks = report->schedule->shape.num_ranks;
    ms_table *table = MS_TABLE(arena, "rrrrr", "rank", "busy", "bubble in its span",
                               "bubble (%)", "peak in flight (chunks)");
    for (int r = 0; r < num_ranks; r += ms_schedule_rank_step(num_ranks)) {
        double busy = timeline->busy[r], bubble = timeline->span_bubble[r];
        ms_table_cells(table, "%d\t%.6g\t%.6g\t%.1f\t%d", r, busy, bubble,
                       100 * frac(bubble, busy + bubble),
                       ms_schedule_in_flight(report->schedule, r));
    }
    ms_table_print(table, out);
}

/* Prints the actions of a rank as cells of the CSV, wrapped. */
static void print_list(FILE *out, ms_arena *arena, const ms_schedule_report *report,
                       int rank)
{
    const ms_schedule *schedule = report->schedule;
    int first = schedule->first_action[rank], end = schedule->first_action[rank + 1];
    int column = ms_print(out, "%-*d", RANK_TEXT_WIDTH, rank);
    for (int i = first; i < end; i++) {
        const char *text = ms_action_text(arena, &schedule->actions[i]);
        int length = (int)strlen(text) + (i + 1 < end);
        if (column + length > report->width && column > RANK_TEXT_WIDTH)
            column = ms_print(out, "\n%*s", RANK_TEXT_WIDTH, "") - 1;
        column += ms_print(out, "%s%s", text, i + 1 < end ? "," : "");
    }
    fputc('\n', out);
}

static void print_lists(FILE *out, ms_arena *arena, const ms_schedule_report *report)
{
    int num_ranks = report->schedule->shape.num_ranks;
    int num_actions = report->schedule->first_action[num_ranks];
    if (num_actions > MAX_LISTED) {
        ms_print(out, "\n%d actions: --format torch-csv lists them\n", num_actions);
        return;
    }
    ms_print(out, "\nactions of each rank, as PyTorch writes them\n");
    for (int r = 0; r < num_ranks; r++)
        print_list(out, arena, report, r);
}

void ms_schedule_report_print(FILE *out, ms_arena *arena,
                              const ms_schedule_report *report)
{
    print_head(out, report);
    ms_schedule_draw(out, arena, report);
    fputc('\n', out);
    print_ranks(out, arena, report);
    print_lists(out, arena, report);
}

/* ---- JSON ---- */

static void write_peaks(ms_jout *json, ms_arena *arena, const ms_schedule *schedule)
{
    int num_ranks = schedule->shape.num_ranks;
    long *peaks = MS_NEW_ARRAY(arena, num_ranks, long);
    for (int r = 0; r < num_ranks; r++)
        peaks[r] = ms_schedule_in_flight(schedule, r);
    ms_jout_key(json, "peak_in_flight");
    ms_jout_integers(json, peaks, num_ranks);
}

static void write_shape(ms_jout *json, const ms_schedule_report *report)
{
    const ms_schedule_shape *shape = &report->schedule->shape;
    ms_jout_text_field(json, "schedule", report->name);
    ms_jout_number_field(json, "pp", shape->num_ranks);
    ms_jout_number_field(json, "microbatches", shape->num_microbatches);
    ms_jout_number_field(json, "virtual_stages", shape->virtual_stages);
    if (ms_schedule_traits_of(shape->kind).groups)
        ms_jout_number_field(json, "group", ms_schedule_group(shape));
    ms_jout_begin_object_field(json, "durations");
    ms_jout_number_field(json, "forward", report->times->forward);
    ms_jout_number_field(json, "backward_input", report->times->backward_input);
    ms_jout_number_field(json, "backward_weight", report->times->backward_weight);
    ms_jout_number_field(json, "p2p", report->times->send);
    ms_jout_end_object(json);
}

/* Writes for each rank its row of the schedule's CSV file, as one JSON string. */
static void write_rows(ms_jout *json, const ms_schedule *schedule)
{
    ms_jout_begin_array_field(json, "actions");
    for (int r = 0; r < schedule->shape.num_ranks; r++) {
        ms_arena *scratch = ms_arena_open();
        ms_jout_text(json, ms_schedule_csv_row(scratch, schedule, r));
        ms_arena_close(scratch);
    }
    ms_jout_end_array(json);
}

void ms_schedule_report_write_json(ms_jout *json, ms_arena *arena,
                                   const ms_schedule_report *report)
{
    const ms_schedule_timeline *timeline = report->timeline;
    int num_ranks = report->schedule->shape.num_ranks;
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "schema", "meshsim.schedule/1");
    write_shape(json, report);
    ms_jout_number_field(json, "makespan", timeline->makespan);
    ms_jout_number_field(json, "global_bubble", timeline->global_bubble);
    ms_jout_numbers_field(json, "busy", timeline->busy, num_ranks);
    ms_jout_numbers_field(json, "span_bubble", timeline->span_bubble, num_ranks);
    write_peaks(json, arena, report->schedule);
    write_rows(json, report->schedule);
    ms_jout_end_object(json);
}
