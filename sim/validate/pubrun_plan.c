/* Rows of runs that state their whole plan, as logs are imported: nothing is filled in. */
#include "sim/validate/pubrun_priv.h"

#include <string.h>

/* Reads the JSON of the cell; errors go to a context of its own. */
static ms_status read_plan(ms_ctx *quiet, const char *text, ms_plan *plan)
{
    ms_jdoc *doc;
    ms_jval root;
    MS_TRY(ms_json_parse(quiet, "plan", text, strlen(text), &doc, &root));
    ms_status status = ms_plan_read(quiet, root, plan);
    ms_json_close(doc);
    return status;
}

static ms_status load(ms_ctx *quiet, ms_pubrun_store *store, ms_pubrun *run)
{
    const ms_plan *plan = &run->plan;
    const char *missing = plan->model == NULL     ? "model"
                          : plan->cluster == NULL ? "cluster"
                          : plan->stack == NULL   ? "stack"
                                                  : NULL;
    if (missing != NULL)
        return ms_fail(quiet, MS_EINPUT, MS_NOWHERE, "it has no %s", missing);
    MS_TRY(ms_model_load(quiet, plan->model, &run->model));
    MS_TRY(ms_plan_check(quiet, plan, run->model, MS_NOWHERE));
    run->cluster = ms_pubrun_store_cluster(quiet, store, plan->cluster);
    run->stack = ms_pubrun_store_stack(quiet, store, plan->stack);
    if (run->cluster != NULL)
        run->profile =
            ms_pubrun_store_profile(quiet, store, run->cluster->device.profile);
    if (run->cluster == NULL || run->stack == NULL || run->profile == NULL)
        return ms_fail(quiet, MS_EINPUT, MS_NOWHERE,
                       "its cluster, profile or stack cannot be read");
    return MS_OK;
}

const char *ms_pubrun_read_plan(ms_ctx *cx, ms_pubrun_store *store,
                                const ms_pubrun_cells *cells, ms_pubrun *run)
{
    ms_ctx quiet = ms_ctx_quiet(cx, cx->arena);
    ms_status status = read_plan(&quiet, cells->plan, &run->plan);
    if (status == MS_OK)
        status = load(&quiet, store, run);
    if (status != MS_OK)
        return ms_arena_printf(cx->arena, "plan: its cell is not a plan" MS_REMARK "%s)",
                               quiet.first->message);
    return ms_pubrun_set_memory_kind(cells, run);
}
