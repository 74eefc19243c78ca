/* Execution of a rank's schedule actions (forward, backward) one after the other. */
#include "base/clock.h"
#include "exec/runner/rank_run.h"

#include <math.h>

ms_status ms_rank_run_go_on(ms_rank_run *r)
{
    const ms_runner_options *options = r->job->options;
    const ms_rank *rank = &r->rank;
    if (options->interrupted == NULL || *options->interrupted == 0)
        return MS_OK;
    double now_s = ms_clock_s();
    if (isnan(r->asked_at_s))
        r->asked_at_s = now_s;
    bool in_time = rank->backend->has_values && now_s - r->asked_at_s < options->grace_s;
    return in_time ? MS_OK : MS_EINTERRUPTED;
}

ms_rank_stage *ms_rank_run_stage(ms_rank_run *r, int stage)
{
    for (int i = 0; i < r->num_stages; i++)
        if (r->stages[i].stage == stage)
            return &r->stages[i];
    return NULL;
}

static ms_walk_run open_walk(ms_rank_run *r, int stage, int microbatch,
                             ms_block_pass pass)
{
    bool forward = pass == MS_BLOCK_PASS_FORWARD;
    ms_rank_stage *held = ms_rank_run_stage(r, stage);
    return (ms_walk_run){.r = r,
                         .stage = held,
                         .flight = forward ? ms_flight_begin(r, held, microbatch)
                                           : ms_flight_of(r, stage, microbatch),
                         .pass = pass,
                         .bill_pass = forward ? MS_BILL_FORWARD : MS_BILL_BACKWARD,
                         .inputs = !forward && pass != MS_BLOCK_PASS_BACKWARD_WEIGHT,
                         .weights = !forward && pass != MS_BLOCK_PASS_BACKWARD_INPUT,
                         .entry = -1,
                         .ready = r->ready};
}

/* Waits for the end of a forward or backward. Simulating backends do not wait for
 * transfers whose results the forward or backward has not used. */
static ms_status wait_for_walk(ms_walk_run *w)
{
    const ms_rank *rank = &w->r->rank;
    return rank->backend->has_values
               ? ms_walk_run_wait_arrivals(w)
               : rank->backend->wait(rank->cx, rank->device, w->ready);
}

static ms_status run_alone(ms_rank_run *r, int index, ms_block_pass pass)
{
    const ms_action *a = &r->rank.planned->schedule->actions[index];
    const ms_slot_cost *cost = r->job->cost_of_action[index];
    ms_walk_run w = open_walk(r, a->stage, a->microbatch, pass);
    w.first_forward = cost->first_forward;
    w.last_backward = w.weights && r->job->is_last_backward[index];
    if (pass == MS_BLOCK_PASS_BACKWARD_WEIGHT)
        MS_TRY(ms_receive_ahead(r));
    MS_TRY(ms_walk_run_alone(&w));
    MS_TRY(wait_for_walk(&w));
    r->ready = w.ready;
    MS_TRY(ms_send_from(&w, w.ready));
    if (w.weights)
        ms_flight_end(r, w.flight);
    return MS_OK;
}

static ms_status run_in_turn(ms_walk_run *forward, ms_walk_run *backward)
{
    MS_TRY(ms_walk_run_alone(forward));
    backward->ready = forward->ready;
    return ms_walk_run_alone(backward);
}

/* Runs a forward and a backward together; both send their results when both are done. */
static ms_status run_pair(ms_rank_run *r, int index)
{
    const ms_action *a = &r->rank.planned->schedule->actions[index];
    ms_walk_run forward = open_walk(r, a->stage, a->microbatch, MS_BLOCK_PASS_FORWARD);
    ms_walk_run backward =
        open_walk(r, a->backward_stage, a->backward_microbatch, MS_BLOCK_PASS_BACKWARD);
    forward.first_forward = r->job->cost_of_action[index]->first_forward;
    backward.last_backward = r->job->is_last_backward[index];
    const ms_planned *planned = r->rank.planned;
    MS_TRY(ms_receive_for_pair(&forward, &backward));
    MS_TRY(ms_pipeline_overlaps_pairs(&planned->pipeline, planned->sharding)
               ? ms_walk_run_pair(&forward, &backward)
               : run_in_turn(&forward, &backward));
    MS_TRY(wait_for_walk(&forward));
    MS_TRY(wait_for_walk(&backward));
    r->ready = r->rank.backend->mark(r->rank.device);
    MS_TRY(ms_send_from(&forward, r->ready));
    MS_TRY(ms_send_from(&backward, r->ready));
    ms_flight_end(r, backward.flight);
    return MS_OK;
}

/* Appends a memory sample of `action`: its peak if `is_peak`, else current use. */
static void sample(ms_rank_run *r, int action, bool is_peak)
{
    const ms_ledger *ledger = &r->rank.ledger;
    if (r->num_samples == r->max_samples)
        return;
    ms_ledger_sample *s = &r->samples[r->num_samples++];
    *s = (ms_ledger_sample){.time_s = r->rank.backend->now_s(r->rank.device),
                            .action = action};
    const double *bytes = is_peak ? ledger->action_peak_parts : ledger->now_bytes;
    for (int i = 0; i < MS_NUM_MEMORY_CATEGORIES; i++)
        s->bytes[i] = bytes[i];
}

static void show_progress(const ms_rank_run *r, int num_done)
{
    const ms_runner_options *options = r->job->options;
    const int *first = r->rank.planned->schedule->first_action + r->pipeline_rank;
    ms_run_position at = {r->step, num_done, first[1] - first[0], NAN};
    if (options->progress != NULL && r->rank.place->rank == 0)
        options->progress(options->progress_state, &at);
}

static void add_location_hint(const ms_rank_run *r, const ms_action *a)
{
    ms_ctx *cx = r->rank.cx;
    const char *advice = cx->last != NULL ? cx->last->hint : NULL;
    ms_hint(cx, "in action %s of step %ld%s%s", ms_action_text(cx->arena, a), r->step + 1,
            advice != NULL ? "; " : "", advice != NULL ? advice : "");
}

ms_status ms_rank_run_action(ms_rank_run *r, int index)
{
    static const ms_block_pass pass_of[MS_NUM_ACTIONS] = {
        [MS_FORWARD] = MS_BLOCK_PASS_FORWARD,
        [MS_BACKWARD] = MS_BLOCK_PASS_BACKWARD,
        [MS_BACKWARD_INPUT] = MS_BLOCK_PASS_BACKWARD_INPUT,
        [MS_BACKWARD_WEIGHT] = MS_BLOCK_PASS_BACKWARD_WEIGHT};
    const ms_action *a = &r->rank.planned->schedule->actions[index];
    int first = r->rank.planned->schedule->first_action[r->pipeline_rank];
    r->action = index;
    r->recorder.action = index - first;
    r->recorder.microbatch = a->microbatch;
    r->recorder.stage = a->stage;
    show_progress(r, index - first);
    ms_ledger_begin_action(&r->rank.ledger);
    ms_status status = a->kind == MS_OVERLAP ? run_pair(r, index)
                                             : run_alone(r, index, pass_of[a->kind]);
    if (status == MS_OK) {
        sample(r, index - first, true);
        sample(r, index - first, false);
        return MS_OK;
    }
    add_location_hint(r, a);
    return status;
}
