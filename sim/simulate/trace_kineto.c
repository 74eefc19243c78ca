#include "sim/simulate/trace_kineto.h"

#include "sim/simulate/simulated_timeline.h"
#include "sim/simulate/trace_events.h"
#include "sim/step/prediction_text.h"

#include <math.h>

/* Kineto's processes: the GPU has the number of its device. */
#define GPU_PID      0
#define HOST_PID     1
#define FIRST_STREAM 7 /* PyTorch's compute stream */
#define LAUNCH_NS    1000

/* Most ranks of a group that a kernel lists. */
#define MAX_LISTED_RANKS 32

typedef struct writer {
    ms_jout json;
    ms_arena *arena;
    const ms_simulation *simulation;
    const ms_rank_groups *groups;
    long rank;
    int num_kernels; /* number of kernels so far: the next one's correlation */
} writer;

/* ---- kernels ---- */

static const struct {
    const char *kernel, *name; /* NCCL's kernel; name of the operation in PyTorch */
} collectives[MS_NUM_COLLECTIVES] = {
    [MS_ALL_GATHER] = {"ncclDevKernel_AllGather", "_allgather_base"},
    [MS_REDUCE_SCATTER] = {"ncclDevKernel_ReduceScatter_Sum", "_reduce_scatter_base"},
    [MS_ALL_REDUCE] = {"ncclDevKernel_AllReduce_Sum", "allreduce"},
    [MS_ALL_TO_ALL] = {"ncclDevKernel_SendRecv", "all_to_allv"},
    [MS_SEND] = {"ncclDevKernel_SendRecv", "send"},
};

static const char *dtype_name(const ms_simulation *s, double element_bytes)
{
    if (element_bytes == 4.0)
        return "Float";
    if (element_bytes == 2.0)
        return s->planned->plan->compute == MS_FP16 ? "Half" : "BFloat16";
    return "Byte";
}

static void write_group(writer *w, const ms_task_work *work)
{
    long size = w->groups->axis[work->group].size;
    const long *members = ms_rank_group_members(w->groups, work->group, w->rank);
    const char *list = "[";
    for (long i = 0; i < size && i < MAX_LISTED_RANKS; i++)
        list = ms_arena_printf(w->arena, "%s%s%ld", list, i > 0 ? ", " : "", members[i]);
    ms_jout_text_field(
        &w->json, "Process Group Name",
        ms_arena_printf(w->arena, "%ld",
                        ms_rank_group_id(w->groups, work->group, w->rank)));
    ms_jout_text_field(&w->json, "Process Group Description",
                       ms_traffic_group_name(w->simulation->planned->plan, work->group));
    ms_jout_text_field(
        &w->json, "Process Group Ranks",
        ms_arena_printf(w->arena, "%s%s]", list, size > MAX_LISTED_RANKS ? ", ..." : ""));
    ms_jout_number_field(&w->json, "Group size", (double)size);
}

/* Elements that a rank puts in and gets out; the gathered tensor, and the one to scatter,
 * are those of all ranks of the group. */
static void write_transfer(writer *w, const ms_task_work *work)
{
    double size = (double)w->groups->axis[work->group].size;
    double bytes = work->bytes,
           element = work->element_bytes > 0.0 ? work->element_bytes : 1.0;
    bool gathers = work->collective == MS_ALL_GATHER;
    bool scatters = work->collective == MS_REDUCE_SCATTER;
    ms_jout_text_field(&w->json, "Collective name", collectives[work->collective].name);
    ms_jout_number_field(&w->json, "In msg nelems",
                         round(bytes / element / (gathers ? size : 1.0)));
    ms_jout_number_field(&w->json, "Out msg nelems",
                         round(bytes / element / (scatters ? size : 1.0)));
    ms_jout_text_field(&w->json, "dtype", dtype_name(w->simulation, element));
    write_group(w, work);
    if (work->kind == MS_WORK_SEND || work->kind == MS_WORK_EXCHANGE)
        ms_jout_number_field(
            &w->json, "Dst Rank",
            (double)ms_rank_group_members(w->groups, work->group, w->rank)[work->peer]);
}

static const char *kernel_name(const writer *w, int task, const ms_task_work *work)
{
    const char *name = ms_task_name(w->arena, w->simulation, task);
    int kind = ms_graph_tag(w->simulation->graph, task)->kind;
    if (work->kind != MS_WORK_KERNEL)
        return ms_arena_printf(w->arena, "%s(%s)", collectives[work->collective].kernel,
                               name);
    if (kind == MS_TASK_OPTIMIZER)
        return name;
    return ms_arena_printf(w->arena, "%s %s", name, ms_task_kind_names[kind]);
}

static void write_kernel(writer *w, const ms_slice *slice, int stream)
{
    ms_arena_mark mark = ms_arena_save(w->arena);
    const ms_graph *graph = w->simulation->graph;
    const ms_task_tag *tag = ms_graph_tag(graph, slice->task);
    const ms_task_work *work = &w->simulation->work[tag->work];
    ms_trace_begin_slice(&w->json, (ms_trace_place){GPU_PID, stream},
                         kernel_name(w, slice->task, work), "kernel", slice);
    ms_jout_number_field(&w->json, "device", 0);
    ms_jout_number_field(&w->json, "context", 1);
    ms_jout_number_field(&w->json, "stream", stream);
    ms_jout_number_field(&w->json, "correlation", w->num_kernels);
    if (work->kind != MS_WORK_KERNEL)
        write_transfer(w, work);
    if (tag->stage >= 0)
        ms_jout_number_field(&w->json, "stage", tag->stage);
    int microbatch = ms_graph_microbatch(graph, slice->task);
    if (microbatch >= 0)
        ms_jout_number_field(&w->json, "microbatch", microbatch);
    ms_trace_end_args(&w->json);
    ms_arena_rewind(w->arena, mark);
}

/* ---- launches ---- */

/* When the host launches a kernel: while the one before on its stream runs, or, after a
 * wait for the host or before the first kernel, right before it starts. */
static ms_slice launch_of(const ms_slice *kernel, const ms_slice *before, bool waited)
{
    long long from_ns = before != NULL ? before->start_ns : 0;
    long long until_ns = before != NULL ? before->end_ns : kernel->start_ns;
    if (waited && before != NULL) {
        from_ns = before->end_ns;
        until_ns = kernel->start_ns;
    }
    long long taken_ns = (until_ns - from_ns) / 2;
    taken_ns = taken_ns < LAUNCH_NS ? taken_ns : LAUNCH_NS;
    bool late = waited || before == NULL;
    long long start_ns = late ? until_ns - taken_ns : from_ns + taken_ns;
    return (ms_slice){kernel->task, 0, start_ns, start_ns + taken_ns};
}

static void write_launch(writer *w, const ms_slice *launch, int stream)
{
    ms_trace_begin_slice(&w->json, (ms_trace_place){HOST_PID, stream}, "cudaLaunchKernel",
                         "cuda_runtime", launch);
    ms_jout_number_field(&w->json, "correlation", w->num_kernels);
    ms_trace_end_args(&w->json);
}

/* ---- a rank ---- */

/* Whether a task is no kernel of a device: a wait for the host, or the seconds by which
 * transfers slow down kernels. */
static bool is_gap(const writer *w, int task)
{
    const ms_task_tag *tag = ms_graph_tag(w->simulation->graph, task);
    bool slowed = tag->kind == MS_TASK_COLLECTIVE && tag->work == 0;
    return tag->kind == MS_TASK_HOST || slowed;
}

static void write_lane(writer *w, const ms_stream_slices *of, int lane, int stream)
{
    const ms_slice *before = NULL;
    bool waited = false;
    for (int i = 0; i < of->num_slices; i++) {
        const ms_slice *slice = &of->slices[i];
        if (slice->lane != lane)
            continue;
        if (is_gap(w, slice->task)) {
            waited =
                ms_graph_tag(w->simulation->graph, slice->task)->kind == MS_TASK_HOST;
            continue;
        }
        ms_slice launch = launch_of(slice, before, waited);
        w->num_kernels++;
        write_launch(w, &launch, stream);
        write_kernel(w, slice, stream);
        before = slice;
        waited = false;
    }
}

static void write_names(writer *w, int actor, const ms_stream_slices *streams)
{
    const char *name = ms_actor_name(w->arena, w->simulation, actor);
    ms_trace_place gpu = {GPU_PID, 0}, host = {HOST_PID, 0};
    ms_trace_write_names(&w->json, "process", host,
                         ms_arena_printf(w->arena, "host of %s", name), 0);
    ms_trace_write_names(&w->json, "process", gpu, name, 1);
    int tid = FIRST_STREAM;
    for (int i = 0; i < MS_NUM_STREAMS; i++) {
        ms_trace_write_lanes(&w->json, (ms_trace_place){GPU_PID, tid}, i,
                             streams[i].num_lanes);
        tid += streams[i].num_lanes;
    }
}

static void write_step(writer *w)
{
    ms_slice step = {.end_ns = ms_trace_ns(w->simulation->last_end_s)};
    ms_trace_begin_slice(&w->json, (ms_trace_place){HOST_PID, HOST_PID}, "ProfilerStep#0",
                         "user_annotation", &step);
    ms_trace_end_args(&w->json);
}

static void write_events(writer *w, int actor)
{
    ms_stream_slices streams[MS_NUM_STREAMS];
    ms_trace_slices(w->arena, w->simulation, actor, streams);
    write_names(w, actor, streams);
    write_step(w);
    int number = FIRST_STREAM;
    for (int stream = 0; stream < MS_NUM_STREAMS; stream++)
        for (int lane = 0; lane < streams[stream].num_lanes; lane++)
            write_lane(w, &streams[stream], lane, number++);
}

/* The rank comes first: readers look for it in the first lines of a file. */
static void write_head(writer *w)
{
    const ms_simulation *s = w->simulation;
    const ms_device *device = &s->planned->workload->cluster->device;
    ms_jout_number_field(&w->json, "schemaVersion", 1);
    ms_jout_begin_object_field(&w->json, "distributedInfo");
    ms_jout_text_field(&w->json, "backend", "nccl");
    ms_jout_number_field(&w->json, "rank", (double)w->rank);
    ms_jout_number_field(&w->json, "world_size", (double)s->fold.num_ranks);
    ms_jout_end_object(&w->json);
    ms_jout_begin_array_field(&w->json, "deviceProperties");
    ms_jout_begin_object(&w->json);
    ms_jout_number_field(&w->json, "id", 0);
    ms_jout_text_field(&w->json, "name", device->name);
    ms_jout_number_field(&w->json, "totalGlobalMem", floor(device->memory_bytes));
    ms_jout_number_field(&w->json, "numSms", (double)device->num_sms);
    ms_jout_end_object(&w->json);
    ms_jout_end_array(&w->json);
    ms_jout_text_field(&w->json, "displayTimeUnit", "ms");
    ms_jout_number_field(&w->json, "baseTimeNanoseconds", 0);
    ms_jout_text_field(
        &w->json, "traceName",
        ms_arena_printf(w->arena, "simulated: %s, %s",
                        ms_plan_inputs_text(w->arena, s->planned->plan, device->unit),
                        ms_plan_text(w->arena, s->planned->plan)));
}

void ms_kineto_write(FILE *out, ms_arena *arena, const ms_simulation *s,
                     const ms_rank_groups *groups, int actor)
{
    ms_arena_mark mark = ms_arena_save(arena);
    writer w = {.json = ms_jout_open(out),
                .arena = arena,
                .simulation = s,
                .groups = groups,
                .rank = s->actors[actor].rank};
    ms_jout_begin_object(&w.json);
    write_head(&w);
    ms_trace_begin_events(&w.json);
    write_events(&w, actor);
    ms_jout_end_array(&w.json);
    ms_jout_end_object(&w.json);
    ms_jout_close(&w.json);
    ms_arena_rewind(arena, mark);
}
