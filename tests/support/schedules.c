#include "tests/support/schedules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

ms_schedule_shape plain_shape(ms_schedule_kind kind, int num_ranks, int num_microbatches)
{
    return (ms_schedule_shape){.kind = kind,
                               .num_ranks = num_ranks,
                               .num_microbatches = num_microbatches,
                               .virtual_stages =
                                   ms_schedule_traits_of(kind).least_virtual};
}

const ms_schedule *made_schedule(ms_arena *arena, ms_schedule_shape shape)
{
    const char *why = NULL;
    if (!ms_schedule_allows(&shape, &why)) {
        fprintf(stderr, "%s p=%d m=%d v=%d g=%d: %s\n", ms_schedule_names[shape.kind],
                shape.num_ranks, shape.num_microbatches, shape.virtual_stages,
                shape.group, why);
        abort(); /* fails the test; fuzz targets, which link this file, have no cmocka */
    }
    return ms_schedule_make(arena, &shape);
}

const char *rank_actions_text(ms_arena *arena, const ms_schedule *schedule, int rank)
{
    static const char letters[] = "FBIW";
    const char *text = "";
    for (int i = schedule->first_action[rank]; i < schedule->first_action[rank + 1];
         i++) {
        const ms_action *a = &schedule->actions[i];
        const char *gap = text[0] == '\0' ? "" : " ";
        text = a->kind == MS_OVERLAP
                   ? ms_arena_printf(arena, "%s%s<%dF%d+%dB%d>", text, gap, a->stage,
                                     a->microbatch, a->backward_stage,
                                     a->backward_microbatch)
                   : ms_arena_printf(arena, "%s%s%d%c%d", text, gap, a->stage,
                                     letters[a->kind], a->microbatch);
    }
    return text;
}

double largest_span_bubble(const ms_schedule *schedule, ms_schedule_times times)
{
    ms_arena *arena = ms_arena_open();
    ms_schedule_timeline run = ms_schedule_run(arena, schedule, &times);
    double largest = 0;
    for (int r = 0; r < schedule->shape.num_ranks; r++)
        largest = fmax(largest, run.span_bubble[r]);
    ms_arena_close(arena);
    return largest;
}

int most_before_backward(const ms_schedule *schedule, int rank)
{
    int most = 0, live = 0;
    for (int i = schedule->first_action[rank]; i < schedule->first_action[rank + 1];
         i++) {
        int kind = schedule->actions[i].kind;
        live += kind == MS_FORWARD || kind == MS_OVERLAP;
        most = live > most ? live : most;
        live -= kind == MS_BACKWARD || kind == MS_BACKWARD_INPUT || kind == MS_OVERLAP;
    }
    return most;
}
