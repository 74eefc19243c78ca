/* The actions of a rank's list, one after the other. */
#include "exec/rank_run.h"

static ms_rank_stage *stage_of(ms_rank_run *r, int stage)
{
    for (int i = 0; i < r->num_stages; i++)
        if (r->stages[i].stage == stage)
            return &r->stages[i];
    return NULL;
}

static ms_walk_run open_walk(ms_rank_run *r, int stage, int microbatch, ms_part_pass pass)
{
    bool forward = pass == MS_PART_FORWARD;
    ms_rank_stage *held = stage_of(r, stage);
    return (ms_walk_run){.r = r,
                         .stage = held,
                         .flight = forward ? ms_flight_begin(r, held, microbatch)
                                           : ms_flight_of(r, stage, microbatch),
                         .pass = pass,
                         .bill_pass = forward ? MS_BILL_FORWARD : MS_BILL_BACKWARD,
                         .inputs = !forward && pass != MS_PART_BACKWARD_WEIGHT,
                         .weights = !forward && pass != MS_PART_BACKWARD_INPUT,
                         .entry = -1,
                         .ready = r->ready};
}

static void end_walk(ms_walk_run *w)
{
    if (w->weights)
        ms_flight_end(w->r, w->flight);
}

static ms_status run_alone(ms_rank_run *r, int index, ms_part_pass pass)
{
    const ms_action *a = &r->rank.planned->schedule->actions[index];
    const ms_step_cost *cost = r->job->cost_of_action[index];
    ms_walk_run w = open_walk(r, a->stage, a->microbatch, pass);
    w.first_forward = cost->first_forward;
    w.last_backward = w.weights && r->job->is_last_backward[index];
    MS_TRY(ms_walk_run_alone(&w));
    MS_TRY(ms_walk_run_settle(&w));
    r->ready = w.ready;
    MS_TRY(ms_send_from(&w, w.ready));
    end_walk(&w);
    return MS_OK;
}

/* What both made leaves when both are done. */
static ms_status run_pair(ms_rank_run *r, int index)
{
    const ms_action *a = &r->rank.planned->schedule->actions[index];
    ms_walk_run forward = open_walk(r, a->stage, a->microbatch, MS_PART_FORWARD);
    ms_walk_run backward =
        open_walk(r, a->backward_stage, a->backward_microbatch, MS_PART_BACKWARD);
    forward.first_forward = r->job->cost_of_action[index]->first_forward;
    backward.last_backward = r->job->is_last_backward[index];
    MS_TRY(ms_walk_run_pair(&forward, &backward));
    MS_TRY(ms_walk_run_settle(&forward));
    MS_TRY(ms_walk_run_settle(&backward));
    r->ready = r->rank.backend->mark(r->rank.device);
    MS_TRY(ms_send_from(&forward, r->ready));
    MS_TRY(ms_send_from(&backward, r->ready));
    end_walk(&backward);
    return MS_OK;
}

static void sample(ms_rank_run *r, int action, bool is_peak)
{
    const ms_ledger *ledger = &r->rank.ledger;
    if (r->num_samples == r->room_samples)
        return;
    ms_ledger_sample *s = &r->samples[r->num_samples++];
    *s = (ms_ledger_sample){.time_s = r->rank.backend->now_s(r->rank.device),
                            .action = action,
                            .is_peak = is_peak};
    const double *bytes = is_peak ? ledger->action_peak_parts : ledger->now_bytes;
    for (int i = 0; i < MS_NUM_MEMORY_PARTS; i++)
        s->bytes[i] = bytes[i];
}

ms_status ms_rank_run_action(ms_rank_run *r, int index)
{
    static const ms_part_pass pass_of[MS_NUM_ACTIONS] = {
        [MS_FORWARD] = MS_PART_FORWARD,
        [MS_BACKWARD] = MS_PART_BACKWARD,
        [MS_BACKWARD_INPUT] = MS_PART_BACKWARD_INPUT,
        [MS_BACKWARD_WEIGHT] = MS_PART_BACKWARD_WEIGHT};
    const ms_action *a = &r->rank.planned->schedule->actions[index];
    int first = r->rank.planned->schedule->first_action[r->pipeline_rank];
    r->recorder.action = index - first;
    r->recorder.microbatch = a->microbatch;
    r->recorder.stage = a->stage;
    ms_ledger_begin_action(&r->rank.ledger);
    ms_status status = a->kind == MS_OVERLAP ? run_pair(r, index)
                                             : run_alone(r, index, pass_of[a->kind]);
    if (status == MS_OK) {
        sample(r, index - first, true);
        sample(r, index - first, false);
        return MS_OK;
    }
    ms_hint(r->rank.cx, "in action %s of step %ld", ms_action_text(r->rank.cx->arena, a),
            r->step + 1);
    return status;
}
