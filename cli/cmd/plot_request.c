#include "cli/cmd/plot_request.h"

#include "base/print.h"
#include "cli/options/plan_command.h"
#include "plots/caption.h"
#include "topo/allocation.h"

#include <string.h>

/* ---- results ---- */

static ms_status write_json(const ms_plot_request *r, const ms_plotted *p,
                            ms_status status)
{
    ms_output out;
    MS_TRY(ms_output_open(r->cx, r->args->common.output, &out));
    ms_jout_begin_object(&out.json);
    ms_jout_text_field(&out.json, "schema", "meshsim.plot/1");
    ms_jout_text_field(&out.json, "kind", r->kind);
    p->write_json(&out.json, p->writer.plot);
    ms_jout_end_object(&out.json);
    return ms_output_close(r->cx, &out, status);
}

static ms_status draw(const ms_plot_request *r, const ms_plotted *p)
{
    const ms_plot_target *target = &r->target;
    ms_output picture;
    MS_TRY(ms_output_open(r->cx, target->path, &picture));
    bool rendered;
    MS_TRY(ms_plot_render(r->cx, target, &p->writer, &picture, &rendered));
    if (strcmp(target->path, "-") == 0)
        return MS_OK;
    ms_output out;
    MS_TRY(ms_output_open(r->cx, NULL, &out));
    p->print(out.file, r->cx->arena, p->writer.plot);
    if (rendered)
        ms_print(out.file, "picture   %s\n", target->path);
    if (rendered && target->keep)
        ms_print(out.file, "data      %s\nscript    %s\n", target->data, target->script);
    return ms_output_close(r->cx, &out, MS_OK);
}

ms_status ms_plot_show(const ms_plot_request *r, const ms_plotted *p)
{
    return r->args->common.json ? write_json(r, p, MS_OK) : draw(r, p);
}

ms_status ms_plot_show_found(const ms_plot_request *r, const ms_plotted *p,
                             ms_status searched, const char *none)
{
    ms_status status = searched;
    if (status == MS_OK && none == NULL)
        return ms_plot_show(r, p);
    if (status == MS_OK)
        status = ms_fail(r->cx, MS_ENOFIT, MS_NOWHERE, "%s", none);
    if (r->args->common.json)
        return write_json(r, p, status);
    ms_output out;
    MS_TRY(ms_output_open(r->cx, NULL, &out));
    p->print(out.file, r->cx->arena, p->writer.plot);
    return ms_output_close(r->cx, &out, status);
}

ms_status ms_plot_check_outputs(const ms_plot_request *r, const ms_plan_options *opts,
                                const ms_plan *plan)
{
    if (r->args->common.json)
        return ms_plan_options_check_output(r->cx, opts, plan, r->args->common.output);
    const char *const paths[] = {r->target.path, r->target.data, r->target.script};
    for (int i = 0; i < 3; i++)
        MS_TRY(ms_plan_options_check_output(r->cx, opts, plan, paths[i]));
    return MS_OK;
}

ms_status ms_plot_check_input(const ms_plot_request *r, const char *path)
{
    if (r->args->common.json)
        return ms_output_check_differ(r->cx, path, r->args->common.output);
    const char *const paths[] = {path, r->target.path, r->target.data, r->target.script};
    return ms_output_check_distinct(r->cx, paths, sizeof paths / sizeof *paths);
}

void ms_plot_note_fit(const ms_plot_request *r, const ms_prediction *prediction,
                      const char *what)
{
    if (!prediction->fits)
        ms_note(r->cx, "%s does not fit: %.1f GiB are needed, %.1f GiB are there", what,
                (prediction->peak_bytes + prediction->outside_bytes) / 0x1p30,
                prediction->capacity_bytes / 0x1p30);
}

/* ---- plans ---- */

ms_status ms_plot_simulate_options(const ms_plot_request *r, ms_simulate_options *out)
{
    const ms_simulate_flags *flags = &r->simulate;
    if (flags->seed.given && flags->jitter_frac.value == 0.0)
        ms_note(r->cx, "--seed has no effect without --jitter");
    MS_TRY(ms_simulate_flags_options(r->cx, flags, out));
    if (!flags->engine.given)
        out->engine = MS_ENGINE_REPLAY;
    out->detail = MS_DETAIL_ACTION; /* the timeline draws one box per pipeline action */
    return MS_OK;
}

ms_status ms_plot_draw_plan(ms_plot_request *r,
                            ms_status (*draw_it)(ms_plot_request *r, const ms_plan *plan,
                                                 ms_workload *workload))
{
    ms_plan plan;
    const char **words = r->args->words.words; /* words[0] is the kind of picture */
    MS_TRY(ms_plan_options_word(r->cx, &r->plan, words[0] != NULL ? words[1] : NULL));
    MS_TRY(ms_plan_from_options(r->cx, &r->plan, &plan));
    MS_TRY(ms_plot_check_outputs(r, &r->plan, &plan));
    ms_workload *workload;
    MS_TRY(ms_plan_open_fitted(r->cx, &plan, &workload));
    ms_status status = draw_it(r, &plan, workload);
    ms_workload_close(workload);
    return status;
}

ms_status ms_plot_mesh(ms_plot_request *r, ms_plan *plan, const ms_cluster **cluster)
{
    ms_ctx *cx = r->cx;
    const ms_words *words = &r->args->words;
    MS_TRY(ms_plan_options_word(cx, &r->plan,
                                words->num_words > 1 ? words->words[1] : NULL));
    MS_TRY(ms_plan_mesh_from_options(cx, &r->plan, plan));
    MS_TRY(ms_plot_check_outputs(r, &r->plan, plan));
    MS_TRY(ms_cluster_load_for_job(cx, plan->cluster, plan->gpus, plan->ranks_per_domain,
                                   cluster));
    return ms_plan_check_cluster(cx, plan, *cluster);
}

/* Predicts the plan of file `word` (NULL: no file), changed by the plan flags. */
static ms_status price_plan(const ms_plot_request *r, const char *word,
                            ms_priced_plan *out)
{
    ms_ctx *cx = r->cx;
    ms_plan_options opts = r->plan;
    ms_plan *plan = MS_NEW(cx->arena, ms_plan);
    MS_TRY(ms_plan_options_word(cx, &opts, word));
    MS_TRY(ms_plan_from_options(cx, &opts, plan));
    MS_TRY(ms_plot_check_outputs(r, &opts, plan));
    ms_workload *workload;
    MS_TRY(ms_plan_open_fitted(cx, plan, &workload));
    *out = (ms_priced_plan){.plan = plan, .workload = workload};
    if (opts.plan_file != NULL && strcmp(opts.plan_file, "-") != 0)
        out->name = ms_caption_name(cx->arena, opts.plan_file);
    ms_status status = ms_predict(cx, workload, plan, &out->prediction);
    if (status == MS_OK)
        ms_plot_note_fit(r, &out->prediction, out->name != NULL ? out->name : "the plan");
    ms_workload_close(workload);
    return status;
}

ms_status ms_plot_price_plans(ms_plot_request *r, const ms_priced_plan **out, int *num)
{
    const ms_words *words = &r->args->words;
    *num = words->num_words > 1 ? words->num_words - 1 : 1;
    ms_priced_plan *plans = MS_NEW_ARRAY(r->cx->arena, *num, ms_priced_plan);
    for (int i = 0; i < *num; i++)
        MS_TRY(
            price_plan(r, words->num_words > 1 ? words->words[i + 1] : NULL, &plans[i]));
    *out = plans;
    return MS_OK;
}
