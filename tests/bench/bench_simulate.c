/* Benchmark of simulating a training step node by node (a task per operation), from an
 * open plan to the times of all tasks: folded (one rank per class of equal ranks) on
 * 16,384 GPUs, and with every rank by itself on 512, sharded and in a pipeline. */
#include <sys/resource.h>

#include "sim/simulate/simulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_s(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void require(ms_ctx *cx, ms_status status)
{
    if (status == MS_OK)
        return;
    ms_diag_print(cx, stderr);
    exit((int)status);
}

static void measure(const ms_plan *plan, ms_simulate_options options, const char *label)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_workload *workload;
    ms_planned planned;
    ms_simulation sim;
    require(&cx, ms_workload_open(&cx, plan, &workload));
    require(&cx, ms_plan_check(&cx, plan, workload->model, MS_NOWHERE));
    ms_planned_open(&cx, workload, plan, &planned);
    double begin_s = now_s();
    require(&cx, ms_simulate(&cx, &planned, &options, &sim));
    double seconds = now_s() - begin_s;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf(
        "%-38s %6.3f s  %4d ranks simulated  %8d tasks  step %.4f s (by actions %.4f)  "
        "at most %.0f MiB so far\n",
        label, seconds, sim.num_actors, sim.graph->num_tasks, sim.step_s,
        sim.predicted_step_s, (double)usage.ru_maxrss / 1024.0);
    ms_workload_close(workload);
    ms_arena_close(cx.arena);
}

int main(void)
{
    ms_plan large = ms_plan_default(16384), sharded = ms_plan_default(512),
            piped = sharded;
    large.model = "405b";
    large.size[MS_PP] = 16;
    large.size[MS_TP] = 8;
    large.global_batch = 2048;
    large.zero = 1;
    large.sequence_parallel = true;
    ms_plan_fill_defaults(&large);
    sharded.model = "8b";
    sharded.global_batch = 512;
    sharded.zero = 3;
    ms_plan_fill_defaults(&sharded);
    piped.model = "70b";
    piped.size[MS_PP] = 4;
    piped.size[MS_TP] = 8;
    piped.global_batch = 512;
    piped.zero = 1;
    piped.sequence_parallel = true;
    piped.recompute = MS_RECOMPUTE_FULL;
    ms_plan_fill_defaults(&piped);
    ms_simulate_options options = {.detail = MS_DETAIL_NODE};
    measure(&large, options, "405b on 16,384, folded, replay");
    options.engine = MS_ENGINE_EVENT;
    measure(&large, options, "405b on 16,384, folded, event");
    options.unfolded = true;
    measure(&sharded, options, "8b ZeRO-3 on 512, unfolded, event");
    measure(&piped, options, "70b pp 4 tp 8 on 512, unfolded, event");
    return 0;
}
