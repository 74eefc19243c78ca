/* Measures one rank's kernels. CPU kernels, which run within the call, are timed one by
 * one; on a GPU, where the host runs ahead, many calls are timed between two events. */
#include "exec/measure/measure_priv.h"

#include "base/clock.h"
#include "base/number.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* Memory of measured kernels. Each operand that is an activation begins its own buffer.
 * Weights and their gradients are at random places of large regions, as in a model whose
 * layers exceed the caches. No kernel writes what another reads. */
typedef struct work_memory {
    ms_precision precision;
    char *in[MS_MAX_OPERANDS], *out[MS_MAX_OPERANDS];
    ms_region weights, gradients, states;
    char *choice; /* expert indices of tokens */
    char *zeros;  /* operand of MS_SAMPLE_ZERO_GEMM */
    char *workspace;
    double fills_per_s; /* elements of `states` that `fill` writes per second */
} work_memory;

static const size_t least_region_bytes = 64u << 20;
/* alignment: a multiple of GPU memory transactions and of cache lines */
static const size_t line_bytes = 256;

/* Index of the node's operand that holds expert indices; -1 if none. */
static int choice_operand(const ms_node *node)
{
    switch ((int)node->op) {
    case MS_OP_PERMUTE:
    case MS_OP_PERMUTE_GRAD:
        return 1;
    case MS_OP_UNPERMUTE:
    case MS_OP_ROUTE_GRAD:
        return 2;
    case MS_OP_UNPERMUTE_GRAD:
        return 3;
    default:
        return -1;
    }
}

static size_t round_to_line(size_t bytes)
{
    return (bytes + line_bytes - 1) / line_bytes * line_bytes;
}

/* ---- allocation ---- */

typedef struct needs {
    size_t in[MS_MAX_OPERANDS], out[MS_MAX_OPERANDS], weights, gradients, states, choice,
        zeros, workspace;
} needs;

static void raise_to(size_t *largest, size_t bytes)
{
    *largest = bytes > *largest ? bytes : *largest;
}

/* Bytes of a weight of `count` elements with its gradient and optimizer state. */
static size_t update_bytes(const ms_precision *p, long count)
{
    size_t state = round_to_line((size_t)count * ms_scalar_bytes(p->moment));
    return round_to_line((size_t)count * ms_scalar_bytes(p->real)) +
           round_to_line((size_t)count * ms_scalar_bytes(p->gradient)) + 3 * state;
}

static void add_node_needs(needs *n, const ms_measurer *m, const ms_kernel_case *item)
{
    const ms_backend *backend = m->how->backend;
    for (int i = 0; i < item->node->num_in; i++) {
        size_t bytes = ms_local_bytes(&item->in[i]);
        raise_to(&n->in[i], bytes);
        raise_to(&n->weights, 2 * bytes);
        raise_to(&n->choice, bytes);
        if (item->sample.kind == MS_SAMPLE_ZERO_GEMM)
            raise_to(&n->zeros, bytes);
    }
    for (int i = 0; i < item->node->num_out; i++) {
        size_t bytes = ms_local_bytes(&item->out[i]);
        raise_to(&n->out[i], bytes);
        raise_to(&n->gradients, 2 * bytes);
    }
    if (backend->workspace_bytes != NULL)
        raise_to(&n->workspace,
                 backend->workspace_bytes(item->program, item->node, m->how->type));
}

static needs needs_of(const ms_measurer *m, const ms_kernel_cases *cases,
                      const ms_precision *precision)
{
    size_t least = m->how->least_region_bytes;
    least = least > 0 ? least : least_region_bytes;
    needs n = {
        .weights = least, .gradients = least, .states = least, .workspace = line_bytes};
    for (int c = 0; c < cases->num; c++) {
        const ms_kernel_case *item = &cases->items[c];
        if (item->node != NULL) {
            add_node_needs(&n, m, item);
        } else {
            raise_to(&n.states, update_bytes(precision, item->count));
            raise_to(&n.weights, (size_t)item->count * ms_scalar_bytes(precision->real));
        }
    }
    return n;
}

static ms_status make_memory(const ms_measurer *m, const ms_kernel_cases *cases,
                             work_memory *out)
{
    ms_precision precision = ms_precision_of(m->how->type);
    needs n = needs_of(m, cases, &precision);
    *out = (work_memory){.precision = precision};
    for (int i = 0; i < MS_MAX_OPERANDS; i++) {
        MS_TRY(ms_measurer_filled(m, precision.real, n.in[i], &out->in[i]));
        MS_TRY(ms_measurer_filled(m, precision.real, n.out[i], &out->out[i]));
    }
    MS_TRY(ms_measurer_region(m, precision.real, n.weights, false, &out->weights));
    MS_TRY(
        ms_measurer_region(m, precision.gradient, n.gradients, false, &out->gradients));
    MS_TRY(ms_measurer_region(m, precision.moment, n.states, true, &out->states));
    MS_TRY(ms_measurer_choice(m, precision.statistic, n.choice, &out->choice));
    MS_TRY(ms_measurer_zeros(m, precision.real, n.zeros, &out->zeros));
    return ms_measurer_filled(m, precision.real, n.workspace, &out->workspace);
}

/* ---- calls ---- */

static char *random_place(const ms_region *region, size_t bytes, ms_rng *rng)
{
    size_t spare = region->bytes - bytes;
    return region->at + line_bytes * ms_rng_below(rng, spare / line_bytes + 1);
}

static void place_operands(ms_kernel_case *item, const work_memory *memory, ms_rng *rng,
                           ms_op_call *call)
{
    const ms_node *node = item->node;
    *call = (ms_op_call){.program = item->program,
                         .node = node,
                         .batch = item->batch,
                         .workspace = memory->workspace};
    int choice = choice_operand(node);
    bool zeros = item->sample.kind == MS_SAMPLE_ZERO_GEMM;
    for (int i = 0; i < node->num_in; i++) {
        bool weight = item->program->tensors[node->in[i]].role == MS_ROLE_WEIGHT;
        size_t bytes = ms_local_bytes(&item->in[i]);
        item->in[i].data = zeros         ? memory->zeros
                           : i == choice ? memory->choice
                           : weight      ? random_place(&memory->weights, bytes, rng)
                                         : memory->in[i];
        call->in[i] = &item->in[i];
    }
    for (int i = 0; i < node->num_out; i++) {
        bool gradient =
            item->program->tensors[node->out[i]].role == MS_ROLE_WEIGHT_GRADIENT;
        size_t bytes = ms_local_bytes(&item->out[i]);
        item->out[i].data =
            gradient ? random_place(&memory->gradients, bytes, rng) : memory->out[i];
        call->out[i] = &item->out[i];
    }
}

/* The optimizer's pass: sums squares of gradients, updates weights, resets gradients. */
static void update(const ms_measurer *m, const work_memory *memory, long count,
                   ms_rng *rng)
{
    const ms_adamw how = {1e-6, 0.9, 0.95, 1e-8, 0.0, 100, 1.0};
    const ms_precision *p = &memory->precision;
    const ms_array_ops *arrays = m->how->backend->arrays;
    size_t state = round_to_line((size_t)count * ms_scalar_bytes(p->moment));
    char *at = random_place(&memory->states, update_bytes(p, count), rng);
    char *gradient = at + round_to_line((size_t)count * ms_scalar_bytes(p->real));
    char *moments =
        gradient + round_to_line((size_t)count * ms_scalar_bytes(p->gradient));
    arrays->add_squares(m->device, p->gradient, 0, gradient, count);
    arrays->adamw(m->device, &how,
                  &(ms_update){.scalar = p->real,
                               .weight = at,
                               .master = p->has_master ? moments + 2 * state : NULL,
                               .gradient = gradient,
                               .first_moment = moments,
                               .second_moment = moments + state,
                               .count = count});
    arrays->fill(m->device, p->gradient, gradient, 0.5, count);
}

static ms_status run_once(const ms_measurer *m, ms_kernel_case *item,
                          const work_memory *memory, ms_rng *rng)
{
    const ms_backend *backend = m->how->backend;
    ms_scalar real = memory->precision.real;
    size_t bytes = (size_t)item->count * ms_scalar_bytes(real);
    if (item->node != NULL) {
        ms_op_call call;
        place_operands(item, memory, rng, &call);
        return backend->kernel(m->cx, m->device, &call);
    }
    if (item->sample.kind == MS_SAMPLE_STREAM)
        backend->arrays->add(m->device, real, random_place(&memory->states, bytes, rng),
                             random_place(&memory->weights, bytes, rng), item->count);
    else
        update(m, memory, item->count, rng);
    return MS_OK;
}

/* ---- kernels that run within the call ---- */

/* CPU seconds of this thread; wall-clock time would include other programs on the same
 * core, in every round. */
static double thread_cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static ms_status measure_call(const ms_measurer *m, ms_kernel_case *item,
                              const work_memory *memory, ms_rng *rng, ms_timed *out)
{
    const ms_backend *backend = m->how->backend;
    double cpu_before_s = thread_cpu_s();
    double start_s = backend->now_s(m->device);
    MS_TRY(run_once(m, item, memory, rng));
    out->elapsed_s = backend->now_s(m->device) - start_s;
    /* reading the CPU clock takes long; if that dominates, elapsed time is less */
    out->seconds = ms_min(out->elapsed_s, thread_cpu_s() - cpu_before_s);
    return MS_OK;
}

/* ---- kernels that the host runs ahead of ---- */

/* shortest timed interval: a thousand times the resolution of CUDA events */
static const double least_timed_s = 1e-3;
/* CUDA streams accept about a thousand calls before they block the host */
static const long max_timed_calls = 400;
/* Warm-up: in windows of this length, until the largest GEMM's mean time of so many
 * windows in a row is the same within this share; limits of the whole. They are choices,
 * not measured: clocks follow power within seconds, temperature more slowly. */
static const double window_s = 0.1, steady_frac = 0.01;
static const double least_warm_up_s = 0.5, most_warm_up_s = 8.0, most_quick_s = 2.0;
#define NUM_STEADY_WINDOWS 5

/* Enqueues `seconds` of other work before the timed calls: the host can then enqueue all
 * calls before the first starts, and time stamps around them measure the device alone. */
static void occupy_device(const ms_measurer *m, const work_memory *memory, double seconds)
{
    const ms_array_ops *arrays = m->how->backend->arrays;
    ms_scalar scalar = memory->precision.moment;
    long max_count = (long)(memory->states.bytes / ms_scalar_bytes(scalar));
    for (long left = (long)(seconds * memory->fills_per_s); left > 0; left -= max_count)
        arrays->fill(m->device, scalar, memory->states.at, 0.5,
                     left < max_count ? left : max_count);
}

/* Measures the speed of `fill` on its second call, because the first call is slow. */
static ms_status time_fill(const ms_measurer *m, work_memory *memory)
{
    const ms_backend *backend = m->how->backend;
    ms_scalar scalar = memory->precision.moment;
    long count = (long)(memory->states.bytes / ms_scalar_bytes(scalar));
    double seconds = 1.0;
    for (int i = 0; i < 2; i++) {
        double before = backend->now_s(m->device);
        backend->arrays->fill(m->device, scalar, memory->states.at, 0.5, count);
        MS_TRY(ms_measurer_elapsed(m, before, backend->now_s(m->device), &seconds));
    }
    memory->fills_per_s = (double)count / ms_max(seconds, 1e-9);
    return MS_OK;
}

/* Seconds per call: of the device to run it, and of the host to enqueue it. */
typedef struct queue_times {
    double device_s, host_s;
} queue_times;

static ms_status time_calls(const ms_measurer *m, ms_kernel_case *item,
                            const work_memory *memory, ms_rng *rng, queue_times *out)
{
    const ms_backend *backend = m->how->backend;
    const double margin = 1.5;
    occupy_device(m, memory, margin * item->host_s * (double)item->num_calls);
    double before = backend->now_s(m->device), start_s = ms_clock_s();
    for (long i = 0; i < item->num_calls; i++)
        MS_TRY(run_once(m, item, memory, rng));
    out->host_s = (ms_clock_s() - start_s) / (double)item->num_calls;
    MS_TRY(ms_measurer_elapsed(m, before, backend->now_s(m->device), &out->device_s));
    out->device_s /= (double)item->num_calls;
    return MS_OK;
}

/* Sets item->num_calls and host_s by the time of the second call: the first one is slow,
 * as it loads code and makes libraries choose algorithms. */
static ms_status find_num_calls(const ms_measurer *m, ms_kernel_case *item,
                                const work_memory *memory, ms_rng *rng)
{
    queue_times times;
    item->num_calls = 1;
    item->host_s = 0.0;
    MS_TRY(time_calls(m, item, memory, rng, &times));
    MS_TRY(time_calls(m, item, memory, rng, &times));
    double wanted = ceil(least_timed_s / ms_max(times.device_s, 1e-9));
    long max_calls = m->how->most_calls > 0 ? m->how->most_calls : max_timed_calls;
    item->num_calls = (long)ms_min(ms_max(wanted, 1.0), (double)max_calls);
    item->host_s = times.host_s;
    return MS_OK;
}

/* Index of the case of zeros' twin with normal data, the largest GEMM; else 0. */
static int largest_gemm(const ms_kernel_case *items, int num)
{
    for (int i = 0; i < num; i++) {
        if (items[i].sample.kind != MS_SAMPLE_ZERO_GEMM)
            continue;
        ms_sample normal = items[i].sample;
        normal.kind = MS_SAMPLE_GEMM;
        for (int j = 0; j < num; j++)
            if (ms_samples_alike(&items[j].sample, &normal))
                return j;
    }
    return 0;
}

/* Whether the last windows' times are alike; `window` is the number of the last one. */
static bool is_steady(const double *window_times_s, int window)
{
    double least_s = INFINITY, most_s = 0.0;
    for (int i = 0; i < NUM_STEADY_WINDOWS; i++) {
        least_s = ms_min(least_s, window_times_s[i]);
        most_s = ms_max(most_s, window_times_s[i]);
    }
    return window + 1 >= NUM_STEADY_WINDOWS && most_s - least_s <= steady_frac * least_s;
}

/* Mean time of a call of `item` over window_s. */
static ms_status time_window(const ms_measurer *m, ms_kernel_case *item,
                             const work_memory *memory, ms_rng *rng, double *mean_s)
{
    double start_s = ms_clock_s(), sum_s = 0.0;
    int num = 0;
    do {
        queue_times times;
        MS_TRY(time_calls(m, item, memory, rng, &times));
        sum_s += times.device_s;
        num++;
    } while (ms_clock_s() - start_s < window_s);
    *mean_s = sum_s / num;
    return MS_OK;
}

/* Chooses numbers of calls, then repeats the GEMM that takes the most power. */
static ms_status warm_up(const ms_measurer *m, ms_kernel_case *items, int num,
                         work_memory *memory, ms_rng *rng, ms_warm_up *out)
{
    MS_TRY(time_fill(m, memory));
    for (int i = 0; i < num; i++)
        MS_TRY(find_num_calls(m, &items[i], memory, rng));
    double start_s = ms_clock_s(), window_times_s[NUM_STEADY_WINDOWS] = {0};
    double most_s = m->how->quick ? most_quick_s : most_warm_up_s;
    ms_kernel_case *hottest = &items[largest_gemm(items, num)];
    *out = (ms_warm_up){0};
    for (int window = 0; out->seconds < most_s; window++) {
        MS_TRY(time_window(m, hottest, memory, rng,
                           &window_times_s[window % NUM_STEADY_WINDOWS]));
        out->seconds = ms_clock_s() - start_s;
        out->steady = is_steady(window_times_s, window);
        if (out->steady && out->seconds >= least_warm_up_s)
            break;
    }
    return MS_OK;
}

static ms_status measure_queued(const ms_measurer *m, ms_kernel_case *item,
                                const work_memory *memory, ms_rng *rng, ms_timed *out)
{
    queue_times times;
    MS_TRY(time_calls(m, item, memory, rng, &times));
    bool is_launch = item->sample.kind == MS_SAMPLE_LAUNCH;
    out->seconds = out->elapsed_s = is_launch ? times.host_s : times.device_s;
    return MS_OK;
}

/* ---- rounds ---- */

static ms_status measure_rounds(const ms_measurer *m, ms_kernel_case *items,
                                work_memory *memory, ms_rounds *rounds, ms_warm_up *warm)
{
    const int least_rounds = 3;
    bool queued = m->how->backend->read_clock != NULL;
    ms_rng rng = ms_rng_seed(23 + (uint64_t)m->rank);
    /* algorithms of GEMMs are timed before the first time stamp is read */
    for (int i = 0; i < rounds->num_cases && m->how->gemm_choices != NULL; i++)
        MS_TRY(run_once(m, &items[i], memory, &rng));
    if (queued)
        MS_TRY(warm_up(m, items, rounds->num_cases, memory, &rng, warm));
    double start_s = ms_clock_s();
    for (const int *order; (order = ms_rounds_next(rounds)) != NULL;) {
        for (int i = 0; i < rounds->num_cases; i++) {
            ms_timed timed;
            ms_kernel_case *item = &items[order[i]];
            MS_TRY(queued ? measure_queued(m, item, memory, &rng, &timed)
                          : measure_call(m, item, memory, &rng, &timed));
            ms_rounds_set(rounds, order[i], &timed);
        }
        double spent_s = ms_clock_s() - start_s;
        /* expected time of another round */
        double next_s = spent_s / rounds->num_rounds;
        if (rounds->num_rounds >= least_rounds && spent_s + next_s > m->how->kernel_s)
            break;
    }
    return MS_OK;
}

ms_status ms_measure_kernels(const ms_measurer *m, const ms_kernel_cases *cases,
                             double *results, ms_warm_up *warm)
{
    ms_arena *arena = m->cx->arena;
    ms_kernel_case *own = MS_NEW_ARRAY(arena, cases->num, ms_kernel_case);
    memcpy(own, cases->items, (size_t)cases->num * sizeof *own);
    work_memory memory;
    MS_TRY(make_memory(m, cases, &memory));
    ms_rounds rounds = ms_rounds_make(arena, cases->num, (uint64_t)m->how->launch);
    *warm = (ms_warm_up){0};
    MS_TRY(measure_rounds(m, own, &memory, &rounds, warm));
    ms_rounds_results(arena, &rounds, results);
    return MS_OK;
}
