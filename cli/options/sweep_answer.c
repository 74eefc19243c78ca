#include "cli/options/sweep_answer.h"

#include "cli/options/interrupt.h"
#include "cli/options/progress.h"

#include <math.h>

typedef struct progress {
    ms_plan_sweep *sweep;
    ms_plan_sweep_state *state; /* NULL: none */
    int num_done;
    const ms_args *args;
    bool shows;
} progress;

static ms_status note_answer(void *payload, int index, const ms_best_plan *answer)
{
    progress *p = payload;
    p->sweep->answered[index] = true;
    p->num_done++;
    const ms_progress now = {"searches", p->num_done, ms_plan_sweep_num(p->sweep), NAN,
                             NAN};
    if (p->shows && !ms_progress_write(p->args, &now))
        fprintf(stderr, "\r%d of %d searches done\033[K", p->num_done,
                ms_plan_sweep_num(p->sweep));
    return p->state == NULL ? MS_OK : ms_plan_sweep_state_add(p->state, index, answer);
}

static ms_status answer_all(ms_ctx *cx, const ms_args *args, progress *p)
{
    ms_plan_sweep *sweep = p->sweep;
    int num = ms_plan_sweep_num(sweep);
    bool *known = MS_NEW_ARRAY(cx->arena, num, bool);
    for (int i = 0; i < num; i++)
        known[i] = sweep->answered[i];
    ms_best_batch batch = {.num = num,
                           .questions = sweep->questions,
                           .known = known,
                           .num_threads = ms_args_threads(args),
                           .interrupted = &ms_interrupted,
                           .answered = note_answer,
                           .payload = p};
    int num_answered;
    ms_status status = ms_best_batch_answer(cx, &batch, sweep->answers, &num_answered);
    if (p->shows)
        ms_progress_clear(args);
    return status;
}

ms_status ms_sweep_answer(ms_ctx *cx, const ms_args *args, const char *state,
                          ms_plan_sweep *sweep)
{
    progress p = {.sweep = sweep, .args = args, .shows = ms_progress_is_shown(args)};
    if (state != NULL) {
        MS_TRY(ms_plan_sweep_state_open(cx, state, sweep, &p.state, &p.num_done));
        if (p.num_done > 0)
            ms_note(cx, "%d of %d searches are in %s", p.num_done,
                    ms_plan_sweep_num(sweep), state);
    }
    ms_status status = answer_all(cx, args, &p);
    if (p.state != NULL)
        ms_plan_sweep_state_close(p.state);
    for (int i = 0; i < ms_plan_sweep_num(sweep); i++)
        if (!sweep->answered[i])
            sweep->answers[i].reason = "not searched";
    return status;
}
