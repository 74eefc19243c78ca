#include "exec/runner/whole_weights.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

typedef struct list {
    ms_ctx *cx;
    const ms_job *job;
    int num, capacity;
    ms_safe_tensor *tensors;
} list;

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const ms_safe_tensor *)a)->name, ((const ms_safe_tensor *)b)->name);
}

static void add_name(list *l, const ms_weight_name *name, long expert)
{
    char text[MS_NAME_TEXT];
    ms_weight_name_text(name, expert, text);
    ms_safe_tensor tensor = {.name = ms_arena_strdup(l->cx->arena, text),
                             .type = l->job->options->type == MS_REAL_FP64 ? MS_SAFE_F64
                                                                           : MS_SAFE_F32,
                             .num_dims = name->num_dims,
                             .count = 1};
    for (int i = 0; i < name->num_dims; i++) {
        tensor.shape[i] = name->shape[i];
        tensor.count *= name->shape[i];
    }
    MS_MAKE_ROOM(l->cx->arena, l->tensors, l->num, l->capacity, 64);
    l->tensors[l->num++] = tensor;
}

static void add_weights(list *l, const ms_program *program, long layer)
{
    for (int t = 0; t < program->num_tensors; t++) {
        ms_weight_name name;
        if (program->tensors[t].role != MS_ROLE_WEIGHT)
            continue;
        ms_weight_name_of(program, t, layer, &name);
        long num =
            name.expert_dim < 0 ? 1 : l->job->planned->workload->model->moe.num_experts;
        for (long expert = 0; expert < num; expert++)
            add_name(l, &name, expert);
    }
}

/* Sorts by name and drops repeated names: several tensors may be parts of one weight. */
static void drop_repeated(list *l)
{
    int num = 0;
    if (l->num == 0)
        return;
    qsort(l->tensors, (size_t)l->num, sizeof *l->tensors, compare_names);
    for (int i = 0; i < l->num; i++)
        if (num == 0 || strcmp(l->tensors[num - 1].name, l->tensors[i].name) != 0)
            l->tensors[num++] = l->tensors[i];
    l->num = num;
}

ms_safe_file ms_job_weights(ms_ctx *cx, const ms_job *job)
{
    list l = {.cx = cx, .job = job};
    int num_stages = job->planned->pipeline.split->num_stages;
    for (int s = 0; s < num_stages; s++)
        for (int i = 0; i < job->stages[s].num_blocks; i++)
            add_weights(&l, job->stages[s].blocks[i]->program,
                        ms_job_layer(&job->stages[s], i));
    drop_repeated(&l);
    return (ms_safe_file){l.num, l.tensors};
}

const ms_safe_tensor *ms_safe_find_sorted(const ms_safe_file *file, const char *name)
{
    ms_safe_tensor key = {.name = name};
    return bsearch(&key, file->tensors, (size_t)file->num_tensors, sizeof *file->tensors,
                   compare_names);
}

ms_collection ms_collection_make(ms_ctx *cx, const ms_job *job)
{
    ms_safe_file file = ms_job_weights(cx, job);
    double **values = MS_NEW_ARRAY(cx->arena, file.num_tensors, double *);
    for (int i = 0; i < file.num_tensors; i++)
        file.tensors[i].values = values[i] =
            MS_NEW_ARRAY(cx->arena, file.tensors[i].count, double);
    return (ms_collection){file, values};
}

/* ---- values ---- */

static ms_status store_values(void *state, const ms_weight_name *name, long expert,
                              const long *places, const double *values, long count)
{
    const ms_collection *collection = state;
    char text[MS_NAME_TEXT];
    ms_weight_name_text(name, expert, text);
    const ms_safe_tensor *tensor = ms_safe_find_sorted(&collection->file, text);
    if (tensor == NULL)
        return MS_EIO;
    double *whole = collection->values[tensor - collection->file.tensors];
    for (long i = 0; i < count; i++)
        whole[places[i]] = values[i];
    return MS_OK;
}

static bool runs_all_ranks(const ms_rank_run *r)
{
    for (long rank = 0; rank < r->rank.world->num_ranks; rank++)
        if (!r->rank.backend->carries(r->job->backend, rank))
            return false;
    return true;
}

/* Sums tensors over all ranks: an element has its value on one rank, elsewhere 0. */
static ms_status sum_over_ranks(ms_rank_run *r, const ms_collection *collection)
{
    ms_rank *rank = &r->rank;
    for (int i = 0; i < collection->file.num_tensors; i++) {
        double *values = collection->values[i];
        ms_transfer transfer = {.kind = MS_TRANSFER_ALL_REDUCE,
                                .scalar = MS_SCALAR_FP64,
                                .on_host = true,
                                .group = MS_TRAFFIC_WORLD,
                                .stream = MS_STREAM_REDUCE,
                                .send = values,
                                .receive = values,
                                .count = collection->file.tensors[i].count,
                                .name = "collect tensors"};
        ms_event done = 0;
        MS_TRY(rank->backend->start(rank->cx, rank->device, &transfer, NULL, 0, &done));
        MS_TRY(rank->backend->wait(rank->cx, rank->device, done));
    }
    return MS_OK;
}

ms_status ms_collection_fill(ms_rank_run *r, ms_collection *collection,
                             ms_unit_content content)
{
    for (int i = 0; i < r->num_blocks; i++)
        MS_TRY(ms_unit_visit(&r->rank, r->blocks[i]->unit, content, store_values,
                             collection));
    return runs_all_ranks(r) ? MS_OK : sum_over_ranks(r, collection);
}
