/* Attention by the fused kernels of cuDNN. Plans are made once per shape, which compiles
 * a kernel (about a second), and are kept until the device is closed. */
#include "exec/cuda/vendor_priv.h"

#ifdef MS_WITH_CUDNN

#include "exec/cuda/vendor_cudnn_priv.h"

#include <float.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most kept plans; then all are dropped. A run has two per kind of layer. */
#define MAX_PLANS 64
#define ALIGNMENT 256

/* ---- the library ---- */

#define SYMBOL(function, field) {#function, offsetof(ms_cudnn_table, field)},
static const ms_cuda_symbol symbols[] = {MS_CUDNN_FUNCTIONS(SYMBOL){NULL, 0}};
static const char *const files[] = {"libcudnn.so.9", "libcudnn.so", NULL};
static const ms_cuda_library library = {"cuDNN", files, symbols};

ms_cudnn_table ms_cudnn;
static bool is_loaded;
static char load_reason[MS_CUDA_REASON];
static pthread_once_t load_once = PTHREAD_ONCE_INIT;

static void load(void)
{
    is_loaded = ms_cuda_library_open(&library, &ms_cudnn, load_reason);
}

int ms_cuda_fused_version(char reason[MS_CUDA_REASON])
{
    pthread_once(&load_once, load);
    snprintf(reason, MS_CUDA_REASON, "%s", load_reason);
    return is_loaded ? (int)ms_cudnn.get_version() : 0;
}

/* ---- state of a device ---- */

typedef struct ready_plan {
    ms_cuda_fused_shape shape;
    ms_cudnn_plan plan;
} ready_plan;

struct ms_cuda_fused_state {
    pthread_mutex_t lock;
    cudnnHandle_t handle; /* NULL: `why` tells why there is none */
    char why[MS_CUDA_REASON];
    int num_ready;
    ready_plan *ready[MAX_PLANS];
    ms_cuda_stream_workspaces workspaces;
};

static ms_cuda_fused_state *open_state(ms_cuda_device *device)
{
    if (device->fused != NULL)
        return device->fused;
    ms_cuda_fused_state *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    pthread_mutex_init(&made->lock, NULL);
    if (ms_cuda_fused_version(made->why) != 0) {
        cudnnStatus_t status = ms_cudnn.create(&made->handle);
        if (status != CUDNN_STATUS_SUCCESS) {
            made->handle = NULL;
            snprintf(made->why, sizeof made->why, "cudnnCreate: %s",
                     ms_cudnn.error_string(status));
        }
    }
    device->fused = made;
    return made;
}

static void forget_plans(ms_cuda_fused_state *f)
{
    while (f->num_ready > 0) {
        ready_plan *ready = f->ready[--f->num_ready];
        ms_cudnn_graph_drop(&ready->plan.graph);
        free(ready);
    }
}

void ms_cuda_close_fused(ms_cuda_fused_state *f)
{
    if (f == NULL)
        return;
    forget_plans(f);
    ms_cuda_stream_workspaces_close(&f->workspaces);
    if (f->handle != NULL)
        (void)ms_cudnn.destroy(f->handle);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

/* The plan of a shape, made if missing; NULL: no memory is left. */
static ms_cudnn_plan *find_plan(ms_cuda_fused_state *f, const ms_cuda_fused_shape *shape)
{
    for (int i = 0; i < f->num_ready; i++)
        if (memcmp(&f->ready[i]->shape, shape, sizeof *shape) == 0)
            return &f->ready[i]->plan;
    if (f->num_ready == MAX_PLANS)
        forget_plans(f);
    ready_plan *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->shape = *shape;
    ms_cudnn_plan_make(&made->plan, &(ms_cudnn_place){.handle = f->handle}, shape);
    f->ready[f->num_ready++] = made;
    return &made->plan;
}

/* ---- workspace ---- */

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Bytes of the sums of gq, which are in front of the plan's own workspace. */
static size_t sum_bytes(const ms_cuda_fused_shape *s)
{
    bool has_sums = s->is_grad && !s->is_deterministic;
    return has_sums ? round_up((size_t)(s->num_batch * s->num_heads * s->num_queries *
                                        s->width) *
                               sizeof(float))
                    : 0;
}

/* The workspace of a stream, of at least `bytes`; NULL: there is none, and why. */
static unsigned char *workspace_of(ms_cuda_fused_state *f, cudaStream_t stream,
                                   size_t bytes, const char **why)
{
    ms_cuda_stream_workspace *w = ms_cuda_stream_workspace_of(&f->workspaces, stream);
    *why = w == NULL ? "it runs on too many streams for their workspaces"
                     : "no GPU memory is left for its workspace";
    if (w == NULL)
        return NULL;
    if (w->memory != NULL && w->bytes >= bytes)
        return w->memory;
    /* memory of the stream's pool: cudaFree would wait for transfers, which may wait for
     * this rank */
    if (w->memory != NULL)
        (void)cudaFreeAsync(w->memory, stream);
    *w = (ms_cuda_stream_workspace){.stream = stream, .bytes = bytes};
    if (cudaMallocAsync(&w->memory, bytes > 0 ? bytes : 1, stream) != cudaSuccess) {
        (void)cudaGetLastError(); /* no memory is no failure of the device */
        w->memory = NULL;
    }
    return w->memory;
}

/* ---- running a plan ---- */

typedef struct pack {
    float scale, masked, one;
    int64_t num, uids[MS_CUDNN_NUM_UIDS];
    void *pointers[MS_CUDNN_NUM_UIDS];
} pack;

static void add(pack *p, int64_t uid, const void *pointer)
{
    union {
        const void *from;
        void *to;
    } is = {pointer};
    p->uids[p->num] = uid;
    p->pointers[p->num++] = is.to;
}

static void fill(pack *p, const ms_cuda_fused *a, void *gq_sum)
{
    const ms_cuda_fused_shape *s = &a->shape;
    const void *const operands[] = {
        [MS_CUDNN_Q] = a->q,   [MS_CUDNN_K] = a->k,     [MS_CUDNN_V] = a->v,
        [MS_CUDNN_O] = a->o,   [MS_CUDNN_LSE] = a->lse, [MS_CUDNN_GO] = a->go,
        [MS_CUDNN_GQ] = a->gq, [MS_CUDNN_GK] = a->gk,   [MS_CUDNN_GV] = a->gv};
    p->scale = (float)a->scale;
    p->masked = -FLT_MAX; /* finite, as differences of infinities are not numbers */
    p->one = 1;
    for (int64_t uid = MS_CUDNN_Q; uid <= (s->is_grad ? MS_CUDNN_GV : MS_CUDNN_LSE);
         uid++)
        add(p, uid, operands[uid]);
    add(p, MS_CUDNN_SCALE, &p->scale);
    if (s->is_causal)
        add(p, MS_CUDNN_MASKED, &p->masked);
    if (s->is_grad)
        add(p, MS_CUDNN_ONE, &p->one);
    if (sum_bytes(s) > 0)
        add(p, MS_CUDNN_GQ_SUM, gq_sum);
}

static cudnnStatus_t execute(cudnnHandle_t handle, const ms_cudnn_plan *plan,
                             const pack *p, void *memory)
{
    ms_cudnn_graph g = {0}; /* owns the variant pack */
    cudnnBackendDescriptor_t made =
        ms_cudnn_make(&g, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    ms_cudnn_set(&g, made, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, p->num,
                 p->uids);
    ms_cudnn_set(&g, made, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                 p->num, p->pointers);
    ms_cudnn_set(&g, made, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
                 &memory);
    ms_cudnn_finalize(&g, made);
    if (g.status == CUDNN_STATUS_SUCCESS)
        g.status = ms_cudnn.execute(handle, plan->desc, made);
    ms_cudnn_graph_drop(&g);
    return g.status;
}

static ms_status run_plan(ms_ctx *cx, ms_cuda_fused_state *f, cudaStream_t stream,
                          const ms_cuda_fused *a, const char **why)
{
    ms_cudnn_plan *plan = find_plan(f, &a->shape);
    *why = plan == NULL ? "no host memory" : plan->why;
    if (plan == NULL || plan->desc == NULL)
        return MS_OK;
    size_t sums = sum_bytes(&a->shape);
    unsigned char *memory =
        workspace_of(f, stream, sums + (size_t)plan->workspace_bytes, why);
    if (memory == NULL)
        return MS_OK;
    pack p = {0};
    fill(&p, a, memory);
    if (sums > 0)
        MS_TRY_CUDA(cx, cudaMemsetAsync(memory, 0, sums, stream));
    cudnnStatus_t status = ms_cudnn.set_stream(f->handle, stream);
    if (status == CUDNN_STATUS_SUCCESS)
        status = execute(f->handle, plan, &p, memory + sums);
    *why = NULL;
    if (status != CUDNN_STATUS_SUCCESS) {
        /* the own kernel is next, after which failures of the device are found */
        snprintf(plan->why, sizeof plan->why, "cudnnBackendExecute: %s",
                 ms_cudnn.error_string(status));
        plan->desc = NULL;
        *why = plan->why;
    }
    return MS_OK;
}

ms_status ms_cuda_library_attention(ms_ctx *cx, ms_cuda_stream *stream,
                                    const ms_cuda_fused *attention, const char **why)
{
    ms_cuda_device *device = ms_cuda_entered();
    if (device == NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "the thread has entered no GPU");
    ms_cuda_fused_state *f = open_state(device);
    if (f == NULL || f->handle == NULL) {
        *why = f == NULL ? "no host memory" : f->why;
        return MS_OK;
    }
    pthread_mutex_lock(&f->lock);
    ms_status status = run_plan(cx, f, ms_cuda_stream_of(stream), attention, why);
    pthread_mutex_unlock(&f->lock);
    return status;
}

#else

#include <stdio.h>

int ms_cuda_fused_version(char reason[MS_CUDA_REASON])
{
    snprintf(reason, MS_CUDA_REASON, "this build has no cuDNN");
    return 0;
}

ms_status ms_cuda_library_attention(ms_ctx *cx, ms_cuda_stream *stream,
                                    const ms_cuda_fused *attention, const char **why)
{
    (void)cx;
    (void)stream;
    (void)attention;
    *why = "this build has no cuDNN";
    return MS_OK;
}

void ms_cuda_close_fused(ms_cuda_fused_state *fused)
{
    (void)fused;
}

#endif
