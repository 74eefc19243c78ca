/* What equals a default that no stack changes is left out, so that the line stays
 * short. */
#include "cli/plan_command.h"

#include "base/json.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "sim/recompute_fit.h"

#include <string.h>

typedef struct words {
    ms_arena *arena;
    char *text;
} words;

static void add_word(words *w, const char *name, const char *value)
{
    w->text = ms_arena_printf(w->arena, "%s%s%s %s", w->text,
                              w->text[0] == '\0' ? "" : " ", name, value);
}

static void add_number(words *w, const char *name, long value)
{
    add_word(w, name, ms_arena_printf(w->arena, "%ld", value));
}

static void add_switch(words *w, const char *name, bool value)
{
    add_word(w, name, value ? "on" : "off");
}

/* Paths may hold anything: quoted for a shell unless harmless. */
static const char *quoted(ms_arena *arena, const char *text)
{
    static const char harmless[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+=:@%,";
    if (strspn(text, harmless) == strlen(text))
        return text;
    char *out = ms_arena_strdup(arena, "'");
    for (const char *rest = text; *rest != '\0';) {
        size_t length = strcspn(rest, "'");
        bool quote = rest[length] == '\'';
        out = ms_arena_printf(arena, "%s%.*s%s", out, (int)length, rest,
                              quote ? "'\\''" : "");
        rest += length + quote;
    }
    return ms_arena_printf(arena, "%s'", out);
}

static void add_inputs(words *w, const ms_plan *plan)
{
    ms_plan usual = ms_plan_default(plan->gpus);
    add_word(w, "--model", quoted(w->arena, plan->model));
    if (strcmp(plan->cluster, usual.cluster) != 0)
        add_word(w, "--cluster", quoted(w->arena, plan->cluster));
    if (strcmp(plan->stack, usual.stack) != 0)
        add_word(w, "--stack", quoted(w->arena, plan->stack));
    if (plan->profile != NULL)
        add_word(w, "--profile", quoted(w->arena, plan->profile));
    add_number(w, "--gpus", plan->gpus);
    if (plan->sequence_length != usual.sequence_length)
        add_number(w, "--seq", plan->sequence_length);
    if (plan->global_batch != ms_plan_default_batch(plan->gpus, plan->sequence_length))
        add_number(w, "--global-batch", plan->global_batch);
    if (plan->compute != usual.compute)
        add_word(w, "--precision", ms_dtype_names[plan->compute]);
}

static void add_mesh(words *w, const ms_plan *plan)
{
    static const char *const names[] = {"--pp", "--dp-replicate", "--dp-shard", "--cp",
                                        "--tp"};
    bool usual_order = true;
    const char *order = "";
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++) {
        if (plan->size[i] > 1)
            add_number(w, names[i], plan->size[i]);
        usual_order = usual_order && plan->order[i] == i;
        order = ms_arena_printf(w->arena, "%s%s%s", order, i == 0 ? "" : ",",
                                ms_plan_axis_names[plan->order[i]]);
    }
    if (plan->ep > 1)
        add_number(w, "--ep", plan->ep);
    if (plan->etp > 1)
        add_number(w, "--etp", plan->etp);
    if (!usual_order)
        add_word(w, "--order", order);
}

static void add_pipeline(words *w, const ms_plan *plan)
{
    if (plan->microbatch > 1)
        add_number(w, "--microbatch", plan->microbatch);
    if (plan->schedule != MS_1F1B)
        add_word(w, "--schedule", quoted(w->arena, ms_plan_schedule_name(plan)));
    if (plan->virtual_stages > 1)
        add_number(w, "--virtual-stages", plan->virtual_stages);
    if (plan->microbatch_group > 0)
        add_number(w, "--group", plan->microbatch_group);
    if (plan->memory_limit > 0.0)
        add_word(w, "--memory-limit",
                 ms_json_number_text(plan->memory_limit, ms_arena_alloc(w->arena, 32)));
}

static void add_habits(words *w, const ms_plan *plan)
{
    ms_plan usual = ms_plan_default(1);
    add_number(w, "--zero", plan->zero);
    if (plan->zero == 3 && plan->reshard_after_forward != (plan->size[MS_PP] == 1))
        add_switch(w, "--reshard-after-forward", plan->reshard_after_forward);
    if (plan->sequence_parallel != (plan->size[MS_TP] > 1))
        add_switch(w, "--sequence-parallel", plan->sequence_parallel);
    if (plan->async_tp)
        add_switch(w, "--async-tp", true);
    if (!plan->loss_parallel)
        add_switch(w, "--loss-parallel", false);
    if (plan->cp_balance != usual.cp_balance)
        add_word(w, "--cp-balance", ms_cp_balance_names[plan->cp_balance]);
    if (plan->cp_method != usual.cp_method ||
        (plan->size[MS_CP] > 1 && strcmp(plan->stack, usual.stack) != 0))
        add_word(w, "--cp-method", ms_cp_method_names[plan->cp_method]);
    add_word(w, "--recompute", ms_recompute_names[plan->recompute]);
    if (plan->recompute_layers > 0)
        add_number(w, "--recompute-layers", plan->recompute_layers);
    if (plan->recompute == MS_RECOMPUTE_AUTO && plan->recompute_budget_frac >= 0.0)
        add_word(w, "--recompute-budget",
                 ms_json_number_text(plan->recompute_budget_frac,
                                     ms_arena_alloc(w->arena, 32)));
}

char *ms_plan_command_text(ms_arena *arena, const ms_plan *plan)
{
    words w = {arena, ms_arena_strdup(arena, "")};
    add_inputs(&w, plan);
    add_mesh(&w, plan);
    add_pipeline(&w, plan);
    add_habits(&w, plan);
    return w.text;
}

ms_status ms_plan_check_cluster(ms_ctx *cx, const ms_plan *plan,
                                const ms_cluster *cluster)
{
    if (cluster->max_gpus == 0 || plan->gpus <= cluster->max_gpus)
        return MS_OK;
    return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                   "%ld GPUs are asked for, but cluster \"%s\" has at most %ld",
                   plan->gpus, plan->cluster, cluster->max_gpus);
}

ms_status ms_plan_open_workload(ms_ctx *cx, const ms_plan *plan, ms_workload **out)
{
    ms_workload *workload;
    MS_TRY(ms_workload_open(cx, plan, &workload));
    if (plan->profile != NULL && cx->verbosity > 0)
        ms_note(cx, "costs are of profile \"%s\", in place of \"%s\"",
                workload->profile->name, workload->cluster->device.profile);
    ms_status status = ms_plan_check(cx, plan, workload->model, MS_NOWHERE);
    if (status == MS_OK)
        status = ms_plan_check_cluster(cx, plan, workload->cluster);
    if (status == MS_OK)
        *out = workload;
    else
        ms_workload_close(workload);
    return status;
}

ms_status ms_plan_fit_recompute(ms_ctx *cx, ms_workload *workload, ms_plan *plan)
{
    double asked = plan->recompute_budget_frac;
    MS_TRY(ms_recompute_fit(workload, plan));
    if (plan->recompute_budget_frac != asked)
        ms_note_default(cx, "--recompute-budget %g", plan->recompute_budget_frac);
    return MS_OK;
}

ms_status ms_plan_check_fits(ms_ctx *cx, const ms_args *args, ms_workload *workload,
                             const ms_prediction *prediction, const ms_plan *plan,
                             ms_shortfall *out)
{
    if (prediction->fits)
        return MS_OK;
    ms_search_options search = {.num_threads = ms_args_threads(args),
                                .interrupted = &ms_interrupted};
    ms_shortfall_of_plan(cx, workload, plan, prediction, &search, out);
    return ms_shortfall_fail(cx, out);
}
