/* Draws a schedule, a row per rank with a letter and style per column. An action fills
 * the columns whose middle lies in its time; in long schedules short actions get none. */
#include "cli/report/schedule_report.h"

#include "base/number.h"
#include "base/print.h"
#include "cli/report/gantt.h"

#include <math.h>
#include <string.h>

#define IDLE '.'

/* styles[column]: 0 idle, else 1 + action kind + MS_NUM_ACTIONS x (model chunk mod 2). */
typedef struct canvas {
    FILE *out;
    const ms_schedule_report *report;
    const ms_schedule *schedule;
    const ms_schedule_timeline *timeline;
    int label_width; /* width of rank labels and the gap after them */
    int num_columns; /* columns of time */
    int step;        /* every step-th rank is drawn */
    double scale;    /* columns per unit of time */
    bool numbered;   /* actions show their micro-batch */
    char *letters;   /* letter of each column, (num_columns) */
    unsigned char *styles;
} canvas;

static double shortest(const canvas *c)
{
    const ms_schedule *schedule = c->schedule;
    int num_actions = schedule->first_action[schedule->shape.num_ranks];
    double least = c->timeline->makespan;
    for (int i = 0; i < num_actions; i++) {
        double length = c->timeline->end[i] - c->timeline->start[i];
        if (length > 1e-9 * c->timeline->makespan)
            least = ms_min(least, length);
    }
    return least;
}

/* Chooses columns per unit of time. The shortest action takes a whole number of columns,
 * with room for letter, micro-batch and a gap if the width allows. */
static void choose_scale(canvas *c)
{
    double makespan = c->timeline->makespan, least = shortest(c);
    int room = c->report->width - c->label_width;
    int label = 1 + snprintf(NULL, 0, "%d", c->schedule->shape.num_microbatches - 1);
    c->scale = ms_min(room / makespan, (label + 1) / least);
    double columns = floor(c->scale * least * (1 + 1e-9));
    if (columns >= 1)
        c->scale = columns / least;
    c->numbered = columns >= label;
    c->num_columns = (int)ceil(makespan * c->scale - 1e-6);
    if (c->num_columns > room)
        c->num_columns = room;
}

static int column_of(const canvas *c, double time)
{
    int column = (int)floor(time * c->scale + 0.5 - 1e-6);
    return column > c->num_columns ? c->num_columns : column < 0 ? 0 : column;
}

static char letter_of(int kind, int chunk)
{
    static const char letters[MS_NUM_ACTIONS] = {'F', 'B', 'I', 'W', 'X'};
    static const char others[MS_NUM_ACTIONS] = {'f', 'b', 'i', 'w', 'x'};
    return chunk % 2 == 0 ? letters[kind] : others[kind];
}

static void put_action(canvas *c, int index)
{
    const ms_action *a = &c->schedule->actions[index];
    int from = column_of(c, c->timeline->start[index]);
    int to = column_of(c, c->timeline->end[index]);
    if (to <= from)
        return;
    int chunk = ms_schedule_chunk(&c->schedule->shape, a->stage);
    char label[64], letter = letter_of(a->kind, chunk);
    int length = snprintf(label, sizeof label, "%c%d", letter, a->microbatch);
    if (a->kind == MS_OVERLAP) {
        int other = ms_schedule_chunk(&c->schedule->shape, a->backward_stage);
        length = snprintf(label, sizeof label, "%c%d+%c%d", letter_of(MS_FORWARD, chunk),
                          a->microbatch, letter_of(MS_BACKWARD, other),
                          a->backward_microbatch);
    }
    if (!c->numbered || length > to - from) {
        label[0] = letter;
        length = 1;
    }
    bool gap = c->numbered && to - from > length; /* the last column stays blank */
    char fill = c->numbered ? '-' : letter;
    for (int column = from; column < to; column++) {
        int at = column - from;
        c->letters[column] = at < length               ? label[at]
                             : gap && column == to - 1 ? ' '
                                                       : fill;
        c->styles[column] = (unsigned char)(1 + a->kind + MS_NUM_ACTIONS * (chunk % 2));
    }
}

static const char *const colours[1 + 2 * MS_NUM_ACTIONS] = {
    "\033[2m",      "\033[97;44m",  "\033[30;42m",  "\033[30;46m",
    "\033[30;43m",  "\033[97;45m",  "\033[30;104m", "\033[30;102m",
    "\033[30;106m", "\033[30;103m", "\033[30;105m"};

static void print_row(canvas *c, int rank)
{
    memset(c->letters, IDLE, (size_t)c->num_columns);
    memset(c->styles, 0, (size_t)c->num_columns);
    int end = c->schedule->first_action[rank + 1];
    for (int i = c->schedule->first_action[rank]; i < end; i++)
        put_action(c, i);
    int length = c->num_columns;
    while (length > 0 && c->letters[length - 1] == ' ')
        length--;
    ms_print(c->out, "%*d  ", c->label_width - 2, rank);
    ms_gantt_print_row(c->out, c->letters, c->styles, length,
                       c->report->colours ? colours : NULL);
}

static void print_axis(canvas *c)
{
    double tick = ms_gantt_tick(10 / c->scale);
    int at = 0;
    ms_print(c->out, "%*s  ", c->label_width - 2, "rank");
    for (int i = 0;; i++) {
        int column = column_of(c, i * tick);
        char text[32];
        int length = snprintf(text, sizeof text, "%.6g", i * tick);
        if (i * tick > c->timeline->makespan || column + length > c->num_columns)
            break;
        ms_print(c->out, "%*s%s", column - at, "", text);
        at = column + length;
    }
    fputc('\n', c->out);
}

static bool has_kind(const ms_schedule *schedule, ms_action_kind kind)
{
    int num_actions = schedule->first_action[schedule->shape.num_ranks];
    for (int i = 0; i < num_actions; i++)
        if (schedule->actions[i].kind == kind)
            return true;
    return false;
}

static void print_legend(const canvas *c)
{
    static const char *const words[MS_NUM_ACTIONS] = {
        "F forward", "B backward", "I gradients of inputs", "W of weights",
        "X forward and backward overlapped"};
    ms_print(c->out, "%*s", c->label_width, "");
    for (int kind = 0; kind < MS_NUM_ACTIONS; kind++)
        if (has_kind(c->schedule, kind))
            ms_print(c->out, "%s, ",
                     kind == MS_OVERLAP && c->numbered ? "F+B overlapped" : words[kind]);
    if (c->schedule->num_chunks > 1)
        ms_print(c->out, "small letters: %s, ",
                 c->schedule->num_chunks > 2 ? "odd chunks" : "chunk 1");
    ms_print(c->out, "%c idle\n", IDLE);
    if (c->step > 1) {
        ms_print(c->out, "%*sof %d ranks every %d%s is drawn\n", c->label_width, "",
                 c->schedule->shape.num_ranks, c->step,
                 c->step == 2   ? "nd"
                 : c->step == 3 ? "rd"
                                : "th");
    }
    if (!c->numbered)
        ms_print(c->out, "%*sone column is %.3g of time; micro-batches need more room\n",
                 c->label_width, "", 1 / c->scale);
}

void ms_schedule_draw(FILE *out, ms_arena *arena, const ms_schedule_report *report)
{
    int num_ranks = report->schedule->shape.num_ranks;
    canvas c = {.out = out,
                .report = report,
                .schedule = report->schedule,
                .timeline = report->timeline,
                .label_width =
                    2 + (num_ranks > 10000 ? snprintf(NULL, 0, "%d", num_ranks - 1) : 4),
                .step = ms_schedule_rank_step(num_ranks)};
    choose_scale(&c);
    c.letters = MS_NEW_ARRAY(arena, c.num_columns + 1, char);
    c.styles = MS_NEW_ARRAY(arena, c.num_columns + 1, unsigned char);
    print_axis(&c);
    for (int rank = 0; rank < num_ranks; rank += c.step)
        print_row(&c, rank);
    print_legend(&c);
}
