/* Writes the result of `meshsim run` as JSON of schema meshsim.run/1. */
#include "cli/report/run_report.h"
#include "sim/step/prediction_text.h"

#include <math.h>

/* Writes the GPU of rank 0, its memory in use by all processes and by that rank. */
static void write_device(ms_jout *out, const ms_cuda_used *used)
{
    const ms_cuda_facts *facts = &used->facts;
    ms_jout_begin_object_field(out, "device");
    ms_jout_text_field(out, "name", facts->name);
    ms_jout_number_field(out, "ordinal", used->ordinal);
    ms_jout_number_field(out, "compute_capability_major", facts->major);
    ms_jout_number_field(out, "compute_capability_minor", facts->minor);
    ms_jout_number_field(out, "num_sms", facts->num_sms);
    ms_jout_number_field(out, "driver_version", facts->driver_version);
    ms_jout_number_field(out, "runtime_version", facts->runtime_version);
    ms_jout_number_field(out, "blas_version", facts->blas_version);
    ms_jout_number_field(out, "nccl_version", facts->nccl_version);
    ms_jout_number_field(out, "cudnn_version", facts->cudnn_version);
    ms_jout_number_field(out, "total_bytes", used->device_total_bytes);
    ms_jout_number_field(out, "used_bytes", used->device_used_bytes);
    ms_jout_number_field(out, "arena_bytes", used->memory.most_held_bytes);
    ms_jout_number_field(out, "arena_used_bytes", used->memory.most_used_bytes);
    ms_jout_number_field(out, "arena_fragmentation", used->memory.fragmentation);
    ms_jout_number_field(out, "outside_arena_bytes", used->outside_arena_bytes);
    ms_jout_number_field(out, "communicators", used->num_communicators);
    ms_jout_number_field(out, "predicted_communicators_bytes", used->communicator_bytes);
    ms_jout_end_object(out);
}

/* Writes whose kernels of attention were asked for, and which ran. */
static void write_attention(ms_jout *out, const ms_run_report *r)
{
    const ms_cuda_attention_use *use = &r->device->attention;
    ms_jout_begin_object_field(out, "attention");
    ms_jout_text_field(out, "asked", ms_run_attention_names[r->attention]);
    ms_jout_text_field(out, "used", ms_attention_used(use));
    ms_jout_number_field(out, "cudnn_calls", (double)use->num_by_library);
    ms_jout_number_field(out, "refused_calls", (double)use->num_by_own);
    ms_jout_text_field(out, "refused_because", use->why[0] != '\0' ? use->why : NULL);
    ms_jout_end_object(out);
}

static void write_module_losses(ms_jout *out, const ms_outcome *outcome)
{
    ms_jout_begin_array_field(out, "module_losses");
    for (int i = 0; i < outcome->num_modules; i++) {
        ms_jout_begin_array(out);
        for (long step = 0; step < outcome->steps_done; step++)
            ms_jout_number(out, outcome->module_losses[step * outcome->num_modules + i]);
        ms_jout_end_array(out);
    }
    ms_jout_end_array(out);
}

static void write_head(ms_jout *out, const ms_run_report *r)
{
    const ms_outcome *outcome = r->outcome;
    ms_jout_text_field(out, "schema", "meshsim.run/1");
    ms_jout_text_field(out, "backend", r->backend);
    if (r->on_gpu)
        ms_jout_text_field(out, "transport", ms_cuda_transport_names[r->transport]);
    const char *restriction = ms_run_restriction(r);
    if (restriction != NULL)
        ms_jout_text_field(out, "restriction", restriction);
    if (r->device != NULL) {
        write_device(out, r->device);
        write_attention(out, r);
    }
    ms_jout_number_field(out, "ranks", (double)r->world->num_ranks);
    ms_jout_text_field(out, "dtype", r->dtype);
    ms_jout_number_field(out, "steps", (double)outcome->steps_done);
    ms_jout_number_field(out, "warm_up_steps",
                         (double)(outcome->steps_done - r->measured.num_steps));
    ms_jout_bool_field(out, "interrupted", r->interrupted);
    long num_losses = r->has_values ? outcome->steps_done : 0;
    ms_jout_numbers_field(out, "losses", outcome->losses, num_losses);
    if (r->has_values && outcome->num_modules > 0)
        write_module_losses(out, outcome);
    ms_jout_numbers_field(out, "gradient_norms", outcome->gradient_norms, num_losses);
    ms_jout_numbers_field(out, "steps_s", outcome->step_s, outcome->steps_done);
}

/* ---- memory ---- */

/* Number of ranks to list: predicted ones exist also if the run did not start. */
static long num_ranks(const ms_run_report *r, bool predicted)
{
    return predicted ? r->world->num_ranks : r->outcome->num_ranks;
}

static void write_peaks(ms_jout *out, const ms_run_report *r, bool predicted)
{
    ms_jout_begin_array_field(out, "peak_bytes");
    for (long rank = 0; rank < num_ranks(r, predicted); rank++)
        ms_jout_number(out, predicted ? ms_run_predicted_stage(r, rank)->peak_bytes
                                      : r->outcome->ranks[rank].ledger.peak_bytes);
    ms_jout_end_array(out);
}

static void write_memory(ms_jout *out, const ms_run_report *r, bool predicted)
{
    ms_jout_begin_array_field(out, "memory");
    for (long rank = 0; rank < num_ranks(r, predicted); rank++) {
        const ms_ledger *ledger = predicted ? NULL : &r->outcome->ranks[rank].ledger;
        const double *parts =
            predicted ? ms_run_predicted_stage(r, rank)->memory : ledger->peak_parts;
        ms_jout_begin_object(out);
        ms_jout_number_field(out, "rank", (double)rank);
        for (int part = 0; part < MS_NUM_MEMORY_CATEGORIES; part++) {
            char key[48];
            snprintf(key, sizeof key, "%s_bytes", ms_memory_category_names[part]);
            ms_jout_number_field(out, key, parts[part]);
        }
        double host_bytes = predicted ? ms_run_predicted_stage(r, rank)->host_bytes
                                      : ledger->host_peak_bytes;
        if (host_bytes > 0.0)
            ms_jout_number_field(out, "host_bytes", host_bytes);
        if (!predicted)
            ms_jout_number_field(out, "workspace_bytes", ledger->workspace_peak_bytes);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

/* ---- measured, predicted ---- */

static void write_times(ms_jout *out, const ms_measured_times *t)
{
    ms_step_time_write_fields(out, t->compute_s, t->exposed_comm_s, t->bubble_s,
                              t->optimizer_s, t->host_s);
}

static void write_rank_times(ms_jout *out, const ms_run_report *r)
{
    ms_jout_begin_array_field(out, "ranks");
    for (long i = 0; i < r->outcome->num_ranks && r->has_values; i++) {
        ms_jout_begin_object(out);
        ms_jout_number_field(out, "rank", (double)r->outcome->ranks[i].rank);
        write_times(out, &r->measured.times[i]);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

static void write_measured(ms_jout *out, const ms_run_report *r)
{
    const ms_measured *m = &r->measured;
    ms_jout_begin_object_field(out, "measured");
    ms_jout_number_field(out, "step_s", m->step_s);
    ms_jout_number_field(out, "least_step_s", m->least_step_s);
    ms_jout_number_field(out, "most_step_s", m->most_step_s);
    ms_jout_number_field(out, "wall_step_s", m->wall_step_s);
    ms_jout_number_field(out, "tokens_per_s", m->tokens_per_s);
    write_times(out, &r->times);
    write_peaks(out, r, false);
    write_memory(out, r, false);
    write_rank_times(out, r);
    ms_jout_end_object(out);
}

static void write_predicted(ms_jout *out, const ms_run_report *r)
{
    const ms_prediction *p = r->prediction;
    const ms_measured_times times = {p->compute_s, p->exposed_comm_s, p->bubble_s,
                                     p->optimizer_s, p->host_s};
    ms_jout_begin_object_field(out, "predicted");
    ms_jout_number_field(out, "step_s", p->step_s);
    ms_jout_number_field(out, "tokens_per_s", p->tokens_per_s);
    write_times(out, &times);
    write_peaks(out, r, true);
    write_memory(out, r, true);
    ms_jout_end_object(out);
}

/* ---- check ---- */

/* JSON has only finite numbers: tolerance null is no limit, difference null is NaN. */
static void write_difference(ms_jout *out, const char *key, const char *name,
                             double relative, double tolerance)
{
    ms_jout_begin_object_field(out, key);
    if (name != NULL)
        ms_jout_text_field(out, "name", name);
    ms_jout_number_field(out, "relative", relative);
    ms_jout_number_field(out, "tolerance", tolerance);
    ms_jout_end_object(out);
}

static void write_worst(ms_jout *out, const char *key, const ms_run_check_worst *worst,
                        double tolerance)
{
    if (worst->name != NULL)
        write_difference(out, key, worst->name, worst->relative, tolerance);
}

static void write_check(ms_jout *out, const ms_run_check *c)
{
    ms_jout_begin_object_field(out, "check");
    ms_jout_bool_field(out, "passed", c->passes);
    ms_jout_text_field(out, "failure", c->failure);
    ms_jout_number_field(out, "steps", (double)c->num_steps);
    write_difference(out, "loss", NULL, c->first_loss, c->tolerance.first_loss);
    if (c->num_steps > 1)
        write_difference(out, "later_losses", NULL, c->later_loss,
                         c->tolerance.later_loss);
    write_worst(out, "gradients", &c->gradients, c->tolerance.gradient);
    write_worst(out, "weights", &c->weights, c->tolerance.weight);
    ms_jout_end_object(out);
}

void ms_run_write_json(ms_jout *out, const ms_run_report *r)
{
    ms_plan used = ms_prediction_plan(r->plan, r->prediction);
    ms_jout_begin_object(out);
    write_head(out, r);
    write_measured(out, r);
    write_predicted(out, r);
    ms_node_kinds_write_json(out, &r->measured.kinds, true);
    if (r->check != NULL)
        write_check(out, r->check);
    ms_jout_key(out, "plan");
    ms_plan_write_json(out, &used);
    if (r->shortfall != NULL) {
        ms_jout_key(out, "shortfall");
        ms_run_memory_write_json(out, r->shortfall, r->plan);
    }
    ms_jout_end_object(out);
}
