/* Benchmark of the plan search and of its parts (replay of schedules, layer programs).
 * Rates are per core; whole searches are the median of five, inside the library and as
 * processes of the program named by $MESHSIM. Instructions are counted by valgrind
 * where it is installed. With the argument "replay N" the program only replays one
 * schedule N times: that is what valgrind runs. */
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "costmodel/cost/bill.h"
#include "sim/search/search.h"

#include "tests/bench/bench.h"

#include <stdlib.h>
#include <string.h>

#define NUM_REPEATS 5

static void require(ms_ctx *cx, ms_status status)
{
    if (status == MS_OK || status == MS_ENOFIT)
        return;
    ms_diag_print(cx, stderr);
    exit((int)status);
}

/* ---- searches ---- */

typedef struct problem {
    const char *model;
    long gpus;
} problem;

static const problem problems[] = {
    {"70b", 512}, {"405b", 16384}, {"deepseek-v3", 2048}, {"8b", 8}};
#define NUM_PROBLEMS (int)(sizeof problems / sizeof *problems)

/* A plan search for the problem, with nothing kept from an earlier search; frees its
 * memory. */
static ms_search_result search(const problem *p, int num_threads, bool bounds_only)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_plan plan = ms_plan_default(p->gpus);
    plan.model = p->model;
    ms_workload *workload;
    require(&cx, ms_workload_open(&cx, &plan, &workload));
    ms_space space = ms_space_all(&plan, workload->stack);
    ms_search_options options = {
        .num_best = 10, .num_threads = num_threads, .bounds_only = bounds_only};
    ms_search_result result;
    require(&cx, ms_search(&cx, workload, &space, &options, &result));
    ms_workload_close(workload);
    ms_arena_close(cx.arena);
    result.found = NULL;
    return result;
}

static void bench_rate(void)
{
    double rates[NUM_REPEATS];
    ms_search_result r = {0};
    for (int i = 0; i < NUM_REPEATS; i++) {
        r = search(&problems[0], 1, true);
        rates[i] = (double)r.counts.evaluated / r.elapsed_s;
    }
    printf("complete evaluations (bound and memory), 70b on 512 GPUs, 1 thread\n"
           "  %.2f million a second (%.3g plans)\n",
           median(rates, NUM_REPEATS) / 1e6, (double)r.counts.evaluated);
}

/* Wall time in seconds of a search by the program as a process; negative when the
 * program is missing or fails. */
static double process_s(const char *program, const problem *p, long num_threads)
{
    char gpus[32], threads[32];
    snprintf(gpus, sizeof gpus, "%ld", p->gpus);
    snprintf(threads, sizeof threads, "%ld", num_threads);
    double start_s = now_s();
    pid_t child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stdout) != NULL)
            execl(program, program, "search", "--model", p->model, "--gpus", gpus,
                  "--threads", threads, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 0)
        return -1.0;
    return now_s() - start_s;
}

static void bench_whole_searches(long num_threads)
{
    const char *program = getenv("MESHSIM");
    printf("whole searches, median of %d, %ld threads\n", NUM_REPEATS, num_threads);
    printf("  %-12s %6s %12s %9s %9s %9s %12s %12s\n", "model", "gpus", "plans", "meshes",
           "evaluated", "replayed", "search", "process");
    for (int i = 0; i < NUM_PROBLEMS; i++) {
        double inside_s[NUM_REPEATS], outside_s[NUM_REPEATS];
        ms_search_result r = {0};
        for (int j = 0; j < NUM_REPEATS; j++) {
            r = search(&problems[i], (int)num_threads, false);
            inside_s[j] = r.elapsed_s;
            outside_s[j] = program ? process_s(program, &problems[i], num_threads) : -1.0;
        }
        printf("  %-12s %6ld %12ld %9ld %9ld %9ld %9.1f ms", problems[i].model,
               problems[i].gpus, r.counts.configurations, r.num_meshes,
               r.counts.evaluated, r.counts.replayed,
               1e3 * median(inside_s, NUM_REPEATS));
        double outside = median(outside_s, NUM_REPEATS);
        if (outside >= 0.0)
            printf(" %9.1f ms\n", 1e3 * outside);
        else
            printf(" %12s\n", "-");
    }
}

/* ---- replay ---- */

static const ms_schedule_shape replay_shapes[] = {{.kind = MS_1F1B,
                                                   .num_ranks = 8,
                                                   .num_microbatches = 64,
                                                   .virtual_stages = 1,
                                                   .group = 0},
                                                  {.kind = MS_1F1B,
                                                   .num_ranks = 16,
                                                   .num_microbatches = 256,
                                                   .virtual_stages = 1,
                                                   .group = 0},
                                                  {.kind = MS_INTERLEAVED,
                                                   .num_ranks = 8,
                                                   .num_microbatches = 64,
                                                   .virtual_stages = 4,
                                                   .group = 0}};
#define NUM_REPLAY_SHAPES (int)(sizeof replay_shapes / sizeof *replay_shapes)

static const ms_schedule *make_schedule(ms_arena *arena, const ms_schedule_shape *shape,
                                        ms_stage_times **times)
{
    const ms_schedule *schedule = ms_schedule_make(arena, shape);
    *times = MS_NEW_ARRAY(arena, schedule->num_stages, ms_stage_times);
    for (int i = 0; i < schedule->num_stages; i++)
        (*times)[i] = (ms_stage_times){.forward_s = 1.0 + 0.01 * i,
                                       .first_forward_s = 1.1,
                                       .backward_s = 2.0 + 0.01 * i,
                                       .last_backward_s = 2.1,
                                       .send_forward_s = 0.1,
                                       .send_backward_s = 0.1};
    return schedule;
}

/* Seconds of `count` replays of the schedule. The makespans are summed so that the
 * compiler cannot leave the replays out. */
static double replay_s(const ms_schedule *schedule, const ms_stage_times *times,
                       long count)
{
    ms_arena *scratch = ms_arena_open();
    ms_replay_result result = {0};
    double sum = 0.0, start_s = now_s();
    for (long i = 0; i < count; i++) {
        ms_replay(schedule, times, scratch, &result);
        sum += result.makespan_s;
    }
    double seconds = now_s() - start_s;
    ms_arena_close(scratch);
    if (!(sum > 0.0))
        exit(1);
    return seconds;
}

static void bench_replay(const char *self)
{
    printf("replay\n");
    for (int i = 0; i < NUM_REPLAY_SHAPES; i++) {
        ms_arena *arena = ms_arena_open();
        ms_stage_times *times;
        const ms_schedule *schedule = make_schedule(arena, &replay_shapes[i], &times);
        double actions = (double)schedule->num_slots, each_s[NUM_REPEATS];
        long count = (long)(2e7 / actions) + 1;
        for (int j = 0; j < NUM_REPEATS; j++)
            each_s[j] = replay_s(schedule, times, count) / (double)count;
        printf("  %-12s p %2d m %3d v %d: %.2f ns an action\n",
               ms_schedule_names[replay_shapes[i].kind], replay_shapes[i].num_ranks,
               replay_shapes[i].num_microbatches, replay_shapes[i].virtual_stages,
               1e9 * median(each_s, NUM_REPEATS) / actions);
        if (i == 0)
            print_instructions(self, "replay", actions, "an action");
        ms_arena_close(arena);
    }
}

/* ---- programs ---- */

static void bench_program(ms_ctx *cx, const char *name, int tp)
{
    const ms_model *model;
    ms_cluster const *cluster;
    const ms_profile *profile;
    const ms_stack *stack;
    ms_pricer pricer;
    require(cx, ms_model_load(cx, name, &model));
    require(cx, ms_cluster_load(cx, "hgx-h100", &cluster));
    require(cx, ms_profile_load(cx, cluster->device.profile, &profile));
    require(cx, ms_stack_load(cx, "generic", &stack));
    require(cx, ms_pricer_make(cx, cluster, profile, stack, MS_BF16, &pricer));
    ms_program_key key = {.block = MS_BLOCK_LAYER,
                          .kind = (unsigned char)(model->num_kinds - 1),
                          .sequence_parallel = tp > 1,
                          .loss_parallel = true,
                          .attention_fused = true,
                          .regather = true,
                          .tp = (short)tp,
                          .cp = 1,
                          .ep = 1,
                          .etp = 1,
                          .microbatch = 1};
    double make_s[NUM_REPEATS], bill_s[NUM_REPEATS], sum = 0.0;
    int num_nodes = 0;
    for (int i = 0; i < NUM_REPEATS; i++) {
        const int count = 500;
        make_s[i] = bill_s[i] = 0.0;
        for (int j = 0; j < count; j++) {
            ms_arena *arena = ms_arena_open();
            double start_s = now_s();
            const ms_program *program =
                ms_program_make(arena, model, &key, 8192, 1, MS_BF16);
            double made_s = now_s();
            sum += ms_bill_make(arena, program, &pricer).memory.saved.activation_bytes;
            bill_s[i] += (now_s() - made_s) / count;
            make_s[i] += (made_s - start_s) / count;
            num_nodes = program->num_nodes;
            ms_arena_close(arena);
        }
    }
    if (!(sum > 0.0))
        exit(1);
    printf("  %-16s tp %d: %3d nodes, program %5.1f us, bill %5.1f us\n", name, tp,
           num_nodes, 1e6 * median(make_s, NUM_REPEATS),
           1e6 * median(bill_s, NUM_REPEATS));
}

static void bench_programs(void)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    printf("layer programs\n");
    bench_program(&cx, "llama-3.1-70b", 1);
    bench_program(&cx, "llama-3.1-70b", 8);
    bench_program(&cx, "deepseek-v3", 8);
    ms_arena_close(cx.arena);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "replay") == 0) {
        ms_arena *arena = ms_arena_open();
        ms_stage_times *times;
        const ms_schedule *schedule = make_schedule(arena, &replay_shapes[0], &times);
        replay_s(schedule, times, strtol(argv[2], NULL, 10));
        ms_arena_close(arena);
        return 0;
    }
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    bench_rate();
    bench_whole_searches(cores < 1 ? 1 : cores > 64 ? 64 : cores);
    bench_replay(argv[0]);
    bench_programs();
    return 0;
}
