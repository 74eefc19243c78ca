/* Writes a simulation as JSON of schema meshsim.simulation/1. */
#include "sim/request/simulate_report.h"
#include "sim/simulate/node_kinds.h"
#include "sim/simulate/simulated_timeline.h"
#include "sim/step/prediction_text.h"

/* Most links listed in JSON, those with the highest use. */
#define MAX_LINKS 100

static void write_slow(ms_jout *out, const ms_simulate_options *options)
{
    ms_jout_begin_array_field(out, "slow");
    for (int i = 0; i < options->num_slow; i++) {
        const ms_slowdown *part = &options->slow[i];
        ms_jout_begin_object(out);
        if (part->is_link)
            ms_jout_text_field(out, "link", part->link);
        else
            ms_jout_number_field(out, "rank", (double)part->rank);
        ms_jout_number_field(out, "factor", part->factor);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

static void write_options(ms_jout *out, const ms_simulate_options *options)
{
    bool shared = options->engine == MS_ENGINE_EVENT && !options->unshared;
    ms_jout_text_field(out, "engine", ms_engine_names[options->engine]);
    ms_jout_text_field(out, "detail", ms_detail_names[options->detail]);
    ms_jout_bool_field(out, "folded", !options->unfolded);
    ms_jout_bool_field(out, "shared", shared);
    ms_jout_bool_field(out, "rendezvous", options->rendezvous);
    ms_jout_bool_field(out, "first_step", options->first_step);
    write_slow(out, options);
    ms_jout_number_field(out, "jitter_frac", options->jitter_frac);
    ms_jout_number_field(out, "seed", (double)options->seed);
}

static void write_actor_times(ms_jout *out, const ms_actor *actor)
{
    ms_step_time_write_fields(out, actor->compute_s, actor->exposed_comm_s,
                              actor->bubble_s, actor->optimizer_s, actor->host_s);
}

static void write_times(ms_jout *out, const ms_simulate_report *r)
{
    const ms_simulation *s = r->simulation;
    double tokens = ms_prediction_tokens(r->plan, r->prediction);
    ms_jout_number_field(out, "step_s", s->step_s);
    ms_jout_number_field(out, "tokens_per_s", tokens / s->step_s);
    if (r->prediction->has_lengths)
        ms_jout_number_field(out, "useful_tokens_per_s",
                             r->prediction->useful_tokens_per_s * r->prediction->step_s /
                                 s->step_s);
    ms_jout_number_field(out, "predicted_step_s", s->predicted_step_s);
    ms_jout_number_field(out, "difference_frac", s->step_s / s->predicted_step_s - 1.0);
    if (r->undisturbed != NULL) {
        double without_s = r->undisturbed->step_s;
        ms_jout_number_field(out, "undisturbed_step_s", without_s);
        ms_jout_number_field(out, "slowdown_frac", s->step_s / without_s - 1.0);
    }
    if (r->steady != NULL) {
        ms_jout_number_field(out, "steady_step_s", r->steady->step_s);
        ms_jout_number_field(out, "steady_peak_bytes",
                             ms_most_actor(r->steady)->peak_bytes);
    }
    write_actor_times(out, &s->actors[s->last_actor]);
    ms_jout_number_field(out, "last_rank", (double)s->actors[s->last_actor].rank);
}

static void write_peak(ms_jout *out, ms_arena *arena, const ms_simulation *s,
                       const ms_actor *actor)
{
    ms_jout_begin_object_field(out, "memory");
    ms_jout_number_field(out, "peak_bytes", actor->peak_bytes);
    if (actor->num_samples > 0) {
        const ms_memory_sample *peak = &actor->samples[actor->peak_sample];
        ms_jout_number_field(out, "peak_at_s", peak->time_s);
        ms_jout_text_field(
            out, "during",
            actor->peak_task == 0 ? NULL : ms_task_phrase(arena, s, actor->peak_task));
        ms_jout_begin_object_field(out, "parts");
        for (int part = 0; part < MS_NUM_MEMORY_CATEGORIES; part++)
            ms_jout_number_field(out, ms_memory_category_names[part], peak->bytes[part]);
        ms_jout_end_object(out);
    }
    ms_jout_end_object(out);
}

static void write_ranks(ms_jout *out, ms_arena *arena, const ms_simulation *s)
{
    ms_jout_begin_array_field(out, "ranks");
    for (int i = 0; i < s->num_actors; i++) {
        const ms_actor *actor = &s->actors[i];
        ms_jout_begin_object(out);
        ms_jout_number_field(out, "rank", (double)actor->rank);
        ms_jout_number_field(out, "stands_for", (double)actor->multiplicity);
        ms_jout_number_field(out, "pipeline_rank", actor->pipeline_rank);
        ms_jout_number_field(out, "slow_factor", actor->slow_factor);
        write_actor_times(out, actor);
        ms_jout_number_field(out, "end_s", actor->end_s);
        write_peak(out, arena, s, actor);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

static void write_links(ms_jout *out, ms_arena *arena, const ms_simulation *s)
{
    ms_link_busy *busy;
    int num_used = ms_links_busy(arena, s, &busy);
    ms_jout_number_field(out, "links_used", num_used);
    ms_jout_begin_array_field(out, "busiest_links");
    for (int i = 0; i < num_used && i < MAX_LINKS; i++) {
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "link", s->graph->link_names[busy[i].link]);
        ms_jout_number_field(out, "used_frac", busy[i].used_frac);
        ms_jout_number_field(out, "most_frac", busy[i].most_frac);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

/* Writes the largest predicted memory peak of all ranks. */
static void write_memory(ms_jout *out, const ms_simulate_report *r)
{
    const ms_actor *worst = ms_most_actor(r->simulation);
    ms_jout_begin_object_field(out, "memory");
    ms_jout_bool_field(out, "fits", r->shortfall == NULL);
    ms_jout_number_field(out, "capacity_bytes", r->prediction->capacity_bytes);
    ms_jout_number_field(out, "peak_bytes", worst->peak_bytes);
    ms_jout_number_field(out, "device_bytes",
                         worst->peak_bytes + r->prediction->outside_bytes);
    ms_jout_number_field(out, "worst_rank", (double)worst->rank);
    ms_jout_end_object(out);
}

void ms_simulate_write_json(ms_jout *out, ms_arena *arena, const ms_simulate_report *r)
{
    const ms_simulation *s = r->simulation;
    ms_plan used = ms_prediction_plan(r->plan, r->prediction);
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.simulation/1");
    write_options(out, &s->options);
    ms_jout_text_field(out, "optimizer_sync", ms_optimizer_sync_names[s->optimizer_sync]);
    write_times(out, r);
    ms_jout_number_field(out, "num_ranks", (double)s->fold.num_ranks);
    ms_jout_number_field(out, "simulated_ranks", s->num_actors);
    ms_jout_number_field(out, "tasks", s->graph->num_tasks);
    ms_jout_number_field(out, "events", (double)s->num_events);
    ms_jout_number_field(out, "rate_changes", (double)s->num_rate_changes);
    write_memory(out, r);
    write_ranks(out, arena, s);
    ms_node_kinds kinds = ms_simulated_kinds(arena, s);
    ms_node_kinds_write_json(out, &kinds, false);
    write_links(out, arena, s);
    ms_jout_key(out, "plan");
    ms_plan_write_json(out, &used);
    if (r->lists_rules)
        ms_broken_rules_write_json(out, &r->broken);
    if (r->shortfall != NULL) {
        ms_jout_key(out, "shortfall");
        ms_shortfall_write_json(out, r->shortfall);
    }
    ms_jout_end_object(out);
}
