/* Execution plans of cuDNN: engines for a graph, the first that accepts it. */
#include "exec/cuda/vendor_cudnn_priv.h"

#include <stdio.h>

#define MOST_CONFIGS 8

static cudnnBackendDescriptor_t add_graph(ms_cudnn_graph *g, const ms_cudnn_place *place)
{
    cudnnBackendDescriptor_t made =
        ms_cudnn_make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    ms_cudnn_set(g, made, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                 g->num_ops, g->ops);
    if (place->handle != NULL)
        ms_cudnn_set(g, made, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
                     &place->handle);
    ms_cudnn_finalize(g, made);
    return made;
}

/* Finds configurations of engines, best first; returns their number. */
static int64_t find_configs(ms_cudnn_graph *g, const ms_cudnn_place *place,
                            cudnnBackendDescriptor_t configs[MOST_CONFIGS])
{
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    cudnnBackendDescriptor_t graph = add_graph(g, place);
    cudnnBackendDescriptor_t found =
        ms_cudnn_make(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    ms_cudnn_set_descriptor(g, found, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    ms_cudnn_set(g, found, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (place->handle == NULL)
        ms_cudnn_set_descriptor(g, found, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                                place->properties);
    ms_cudnn_finalize(g, found);
    int64_t num = 0;
    for (int i = 0; i < MOST_CONFIGS; i++)
        configs[i] = ms_cudnn_make(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (g->status == CUDNN_STATUS_SUCCESS)
        g->status =
            ms_cudnn.get(found, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                         CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST_CONFIGS, &num, configs);
    return num < MOST_CONFIGS ? num : MOST_CONFIGS;
}

static void make_plan(ms_cudnn_plan *plan, const ms_cudnn_place *place,
                      cudnnBackendDescriptor_t config)
{
    ms_cudnn_graph *g = &plan->graph;
    int64_t num = 0;
    cudnnBackendDescriptor_t made =
        ms_cudnn_make(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (place->handle != NULL)
        ms_cudnn_set(g, made, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                     &place->handle);
    else
        ms_cudnn_set_descriptor(g, made, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                place->properties);
    ms_cudnn_set_descriptor(g, made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    ms_cudnn_finalize(g, made);
    if (g->status == CUDNN_STATUS_SUCCESS)
        g->status = ms_cudnn.get(made, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                 CUDNN_TYPE_INT64, 1, &num, &plan->workspace_bytes);
    if (g->status == CUDNN_STATUS_SUCCESS)
        plan->desc = made;
}

/* Keeps the reason of an error; the first lasts. */
static void keep_reason(ms_cudnn_plan *plan)
{
    char detail[MS_CUDNN_WHY / 2] = "";
    ms_cudnn.last_error(detail, sizeof detail);
    if (plan->why[0] == '\0')
        snprintf(plan->why, sizeof plan->why, "%s%s%s",
                 ms_cudnn.error_string(plan->graph.status), detail[0] != '\0' ? ": " : "",
                 detail);
}

void ms_cudnn_plan_make(ms_cudnn_plan *plan, const ms_cudnn_place *place,
                        const ms_cuda_fused_shape *shape)
{
    *plan = (ms_cudnn_plan){0};
    cudnnBackendDescriptor_t configs[MOST_CONFIGS];
    ms_cudnn_add_attention(&plan->graph, shape);
    int64_t num = find_configs(&plan->graph, place, configs);
    if (plan->graph.status != CUDNN_STATUS_SUCCESS)
        keep_reason(plan);
    else if (num == 0)
        snprintf(plan->why, sizeof plan->why, "no engine for this shape");
    for (int64_t i = 0; i < num && plan->desc == NULL; i++) {
        plan->graph.status = CUDNN_STATUS_SUCCESS;
        make_plan(plan, place, configs[i]);
        if (plan->desc == NULL)
            keep_reason(plan);
    }
}
