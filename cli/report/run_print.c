#include "cli/report/run_report.h"

#include "base/print.h"
#include "base/table.h"
#include "cli/options/output.h"
#include "sim/step/prediction_text.h"

#include <math.h>

#define MAX_STEPS 12 /* most steps listed */
#define MAX_RANKS 16
#define MAX_KINDS 20

const ms_stage_prediction *ms_run_predicted_stage(const ms_run_report *r, long rank)
{
    return &r->prediction->stages[r->world->places[rank].pp];
}

/* Adds a cell with predicted/measured, empty if either is unknown. */
static void ratio_cell(ms_table *table, double measured, double predicted)
{
    if (predicted > 0.0 && measured > 0.0)
        ms_table_cell(table, "%.3g", predicted / measured);
    else
        ms_table_cell(table, "%s", "");
}

/* ---- inputs ---- */

const char *ms_run_restriction(const ms_run_report *r)
{
    if (!r->on_gpu || r->world->num_ranks == 1)
        return NULL;
    if (r->transport == MS_CUDA_BY_HOST)
        return "correctness only";
    return r->shares_gpus ? "functional only" : NULL;
}

const char *ms_attention_used(const ms_cuda_attention_use *use)
{
    if (use->num_by_library == 0)
        return "own";
    return use->num_by_own == 0 ? "cudnn" : "cudnn and own";
}

void ms_note_attention(const ms_ctx *cx, const ms_cuda_attention_use *use)
{
    if (use->num_by_own > 0)
        ms_note(cx, "cuDNN did not run %s attention, the program's own kernels did: %s",
                use->num_by_library > 0 ? "some" : "the", use->why);
}

static void print_communicators(FILE *out, const ms_cuda_used *used)
{
    const double gib = 1 << 30;
    ms_print(out, "         %d communicators", used->num_communicators);
    if (!isnan(used->communicator_bytes))
        ms_print(out, ", predicted %.2f GiB for rings and messages",
                 used->communicator_bytes / gib);
    if (!isnan(used->outside_arena_bytes))
        ms_print(out, "; outside the arena %.2f GiB", used->outside_arena_bytes / gib);
    fputc('\n', out);
}

static void print_device(FILE *out, const ms_run_report *r)
{
    const ms_cuda_used *used = r->device;
    const double gib = 1 << 30;
    const char *restriction = ms_run_restriction(r);
    if (used == NULL)
        return;
    ms_print(out, "device   %s, %.1f of %.1f GiB in use, %.1f in the arena\n",
             used->facts.name, used->device_used_bytes / gib,
             used->device_total_bytes / gib, used->memory.most_held_bytes / gib);
    if (used->num_communicators > 0)
        print_communicators(out, used);
    if (r->attention != MS_RUN_ATTENTION_OWN)
        ms_print(out, "         attention: %s\n", ms_attention_used(&used->attention));
    if (restriction != NULL)
        ms_print(out, "         between ranks %s: %s, times are not meaningful\n",
                 r->shares_gpus ? "on one GPU by NCCL" : "through host memory",
                 restriction);
}

static void print_inputs(FILE *out, ms_arena *arena, const ms_run_report *r)
{
    const ms_outcome *outcome = r->outcome;
    ms_print(out, "%s\n", ms_plan_inputs_text(arena, r->plan, r->prediction->unit));
    ms_print(out, "plan     %s\n", ms_plan_text(arena, r->plan));
    ms_print(out, "backend  %s: %ld rank%s, %s\n", r->backend, r->world->num_ranks,
             r->world->num_ranks == 1 ? "" : "s", r->dtype);
    print_device(out, r);
    ms_print(out, "steps    %ld", outcome->steps_done);
    if (r->interrupted)
        ms_print(out, " of %ld, then interrupted", r->num_steps);
    if (outcome->steps_done > r->warm_up && r->warm_up > 0)
        ms_print(out, ", the first %s not measured",
                 r->warm_up == 1 ? "one" : ms_arena_printf(arena, "%ld", r->warm_up));
    fputc('\n', out);
}

static void print_step(ms_table *table, const ms_outcome *outcome, long step)
{
    ms_table_cells(table, "%ld\t%.6f", step + 1, outcome->losses[step]);
    for (int i = 0; i < outcome->num_modules; i++)
        ms_table_cell(table, "%.6f",
                      outcome->module_losses[step * outcome->num_modules + i]);
    ms_table_cells(table, "%.4f\t%.2f", outcome->gradient_norms[step],
                   1e3 * outcome->step_s[step]);
}

static void print_steps(FILE *out, ms_arena *arena, const ms_run_report *r)
{
    long num = r->outcome->steps_done;
    if (!r->has_values || num == 0)
        return;
    int num_modules = r->outcome->num_modules;
    ms_table *table = MS_TABLE(arena, "rr", "step", "loss");
    for (int i = 1; i <= num_modules; i++)
        MS_COLUMNS(table, "r", ms_arena_printf(arena, "loss of module %d", i));
    MS_COLUMNS(table, "rr", "gradient norm", "time (ms)");
    for (long step = 0; step < num; step++) {
        if (num <= MAX_STEPS || step < MAX_STEPS / 2 || step >= num - MAX_STEPS / 2) {
            print_step(table, r->outcome, step);
        } else if (step == MAX_STEPS / 2) {
            for (int i = 0; i < 4 + num_modules; i++)
                ms_table_cell(table, "...");
        }
    }
    fputc('\n', out);
    ms_table_print(table, out);
}

/* ---- time ---- */

/* Predicted relative to measured: ", 41.6 % less", ", 3.1 times as much"; "": equal. */
static const char *error_text(ms_arena *arena, double measured, double predicted)
{
    double error_frac = predicted / measured - 1.0;
    if (!isfinite(error_frac) || fabs(error_frac) < 0.0005)
        return "";
    if (error_frac > 1.0)
        return ms_arena_printf(arena, ", %.3g times as much", predicted / measured);
    return ms_arena_printf(arena, ", %.1f %% %s", 100.0 * fabs(error_frac),
                           error_frac < 0.0 ? "less" : "more");
}

static void print_summary(FILE *out, ms_arena *arena, const ms_run_report *r)
{
    const ms_measured *m = &r->measured;
    const ms_prediction *p = r->prediction;
    int decimals = ms_decimals(1e3 * m->step_s);
    ms_print(out, "\nstep time     %.*f ms", decimals, 1e3 * m->step_s);
    if (m->num_steps > 1)
        ms_print(out, ", median of %ld (%.*f to %.*f)", m->num_steps, decimals,
                 1e3 * m->least_step_s, decimals, 1e3 * m->most_step_s);
    ms_print(out, "; predicted %.*f ms%s\n", ms_decimals(1e3 * p->step_s),
             1e3 * p->step_s, error_text(arena, m->step_s, p->step_s));
    ms_print(out, "tokens/s      %.*f; predicted %.*f\n", ms_decimals(m->tokens_per_s),
             m->tokens_per_s, ms_decimals(p->tokens_per_s), p->tokens_per_s);
}

static void print_times(FILE *out, ms_arena *arena, const ms_run_report *r)
{
    const ms_measured_times *t = &r->times;
    const ms_prediction *p = r->prediction;
    if (isnan(t->compute_s))
        return; /* an interrupted run may have recorded no step */
    const char *const names[] = {"compute", "exposed comm", "bubble", "optimizer",
                                 "host and rest"};
    const double measured[] = {t->compute_s, t->exposed_comm_s, t->bubble_s,
                               t->optimizer_s, t->host_s};
    const double predicted[] = {p->compute_s, p->exposed_comm_s, p->bubble_s,
                                p->optimizer_s, p->host_s};
    ms_table *table = MS_TABLE(arena, "lrrr", "where a step goes", "measured (ms)",
                               "predicted (ms)", "predicted/measured");
    for (int i = 0; i < 5; i++) {
        ms_table_cells(table, "%s\t%.3f\t%.3f", names[i], 1e3 * measured[i],
                       1e3 * predicted[i]);
        ratio_cell(table, measured[i], predicted[i]);
    }
    fputc('\n', out);
    ms_table_print(table, out);
}

void ms_run_print_kinds(FILE *out, ms_arena *arena, const ms_node_kinds *kinds,
                        const char *whose)
{
    ms_table *table = MS_TABLE(arena, "Lrrrr", "kind of node", "count", "measured (ms)",
                               "predicted (ms)", "predicted/measured");
    for (int i = 0; i < kinds->num && i < MAX_KINDS; i++) {
        const ms_node_kind *kind = &kinds->kinds[i];
        ms_table_cells(table, "%s\t%.6g\t%.3f", ms_node_kind_text(arena, kind),
                       kind->count, 1e3 * kind->measured_s);
        if (isnan(kind->predicted_s))
            ms_table_cell(table, "%s", "");
        else
            ms_table_cell(table, "%.3f", 1e3 * kind->predicted_s);
        ratio_cell(table, kind->measured_s, kind->predicted_s);
    }
    if (kinds->num == 0)
        return;
    ms_print(out, "\nnodes of one step, %s", whose);
    if (kinds->num > MAX_KINDS)
        ms_print(out, "; %d of %d kinds, --json has all", MAX_KINDS, kinds->num);
    fputc('\n', out);
    ms_table_print(table, out);
}

/* ---- memory ---- */

static double mib(double bytes)
{
    return bytes / 1048576.0;
}

static void memory_row(ms_table *table, const ms_run_report *r,
                       const ms_rank_outcome *rank)
{
    const ms_ledger *ledger = &rank->ledger;
    const double *parts = ledger->peak_parts;
    ms_table_cells(table, "%ld\t%ld\t%.3f\t%.3f", rank->rank,
                   r->world->places[rank->rank].pp, mib(ledger->peak_bytes),
                   mib(ms_run_predicted_stage(r, rank->rank)->peak_bytes));
    for (int part = MS_MEMORY_PARAMS; part <= MS_MEMORY_COMM_BUFFERS; part++)
        ms_table_cell(table, "%.2f", mib(parts[part]));
    ms_table_cell(table, "%.2f", mib(ledger->workspace_peak_bytes));
}

/* The rank with most in host memory, if the plan offloads anything. */
static void print_host_memory(FILE *out, const ms_run_report *r)
{
    const ms_rank_outcome *most = &r->outcome->ranks[0];
    for (long i = 1; i < r->outcome->num_ranks; i++)
        if (r->outcome->ranks[i].ledger.host_peak_bytes > most->ledger.host_peak_bytes)
            most = &r->outcome->ranks[i];
    if (most->ledger.host_peak_bytes > 0.0)
        ms_print(out, "in host memory at most %.3f MiB (rank %ld), predicted %.3f\n",
                 mib(most->ledger.host_peak_bytes), most->rank,
                 mib(ms_run_predicted_stage(r, most->rank)->host_bytes));
}

static void print_memory(FILE *out, ms_arena *arena, const ms_run_report *r)
{
    const ms_outcome *outcome = r->outcome;
    ms_table *table = MS_TABLE(arena, "rrrrrrrrrr1r1r1", "rank", "pp", "peak",
                               "predicted", "params", "grads", "optimizer", "activations",
                               "logits", "gathered", "buffers", "scratch");
    for (long i = 0; i < outcome->num_ranks && i < MAX_RANKS; i++)
        memory_row(table, r, &outcome->ranks[i]);
    fputs("\nmemory of ranks at their peak (MiB); scratch memory is extra", out);
    if (outcome->num_ranks > MAX_RANKS)
        ms_print(out, "; %d of %ld ranks, --json has all", MAX_RANKS, outcome->num_ranks);
    fputc('\n', out);
    ms_table_print(table, out);
    print_host_memory(out, r);
}

/* ---- check ---- */

static void check_row(ms_table *table, const char *what, double relative,
                      double tolerance, const char *where)
{
    ms_table_cells(table, "%s\t%.2g", what, relative);
    if (isinf(tolerance))
        ms_table_cell(table, "%s", "none");
    else
        ms_table_cell(table, "%.0e", tolerance);
    ms_table_cell(table, "%s", where);
}

static const char *worst_text(ms_arena *arena, const ms_run_check_worst *worst)
{
    return ms_arena_printf(arena, "worst of %d: %s", worst->num_tensors, worst->name);
}

static void print_check(FILE *out, ms_arena *arena, const ms_run_report *r)
{
    const ms_run_check *c = r->check;
    const char *passed = r->device != NULL
                             ? "passed: the run on GPUs does what one rank on CPUs does"
                             : "passed: the sharded run does what one rank does";
    ms_table *table = MS_TABLE(arena, "LrrL", "against one rank",
                               "largest relative difference", "tolerance", "where");
    check_row(table, "loss of step 1", c->first_loss, c->tolerance.first_loss, "");
    if (c->num_steps > 1)
        check_row(table, "losses after it", c->later_loss, c->tolerance.later_loss,
                  ms_arena_printf(arena, "step %ld", c->worst_step));
    if (c->gradients.name != NULL)
        check_row(table, "gradients of step 1", c->gradients.relative,
                  c->tolerance.gradient, worst_text(arena, &c->gradients));
    if (c->weights.name != NULL)
        check_row(table, "updated weights", c->weights.relative, c->tolerance.weight,
                  worst_text(arena, &c->weights));
    fputc('\n', out);
    ms_table_print(table, out);
    ms_print(out, "check         %s\n", c->passes ? passed : "FAILED");
}

void ms_run_print(FILE *out, ms_arena *arena, const ms_run_report *r)
{
    print_inputs(out, arena, r);
    if (r->outcome->steps_done == 0) {
        fputs("\nno step was done\n", out);
        return;
    }
    print_steps(out, arena, r);
    print_summary(out, arena, r);
    if (r->has_values)
        print_times(out, arena, r);
    print_memory(out, arena, r);
    if (r->has_values)
        ms_run_print_kinds(out, arena, &r->measured.kinds, "all ranks together");
    if (r->check != NULL)
        print_check(out, arena, r);
}
