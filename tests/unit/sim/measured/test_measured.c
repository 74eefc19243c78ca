#include "sim/measured/measured.h"

#include "costmodel/plan/plan_field.h"
#include "sim/validate/collective_rows.h"
#include "sim/validate/pubrun.h"
#include "tests/test.h"

#define HEAD                                                                             \
    "./all_gather_perf -b 8\n"                                                           \
    "#  Rank  0 Group  0 Pid 1 on a device 0 [0x07] NVIDIA H100 80GB HBM3\n"             \
    "#  Rank  1 Group  0 Pid 2 on b device 0 [0x07] NVIDIA H100 80GB HBM3\n"             \
    "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"

static ms_status read_text(ms_ctx *cx, const char *format, const char *text,
                           ms_measured_table *out)
{
    static ms_plan plan;
    ms_measured_options options = {.name = "text", .system = "hgx-h100", .plan = &plan};
    plan = ms_plan_default(64);
    plan.model = "8b";
    plan.cluster = "hgx-h100";
    plan.stack = "megatron";
    plan.size[MS_DP_SHARD] = 16;
    plan.size[MS_TP] = 4;
    plan.zero = 1;
    plan.sequence_parallel = true;
    plan.global_batch = 64;
    ASSERT_OK(ms_cluster_load(cx, options.system, &options.cluster), cx);
    return ms_measured_read(cx, ms_choice_find(format, ms_measured_format_names), text,
                            strlen(text), &options, out);
}

static const char *csv_of(ms_ctx *cx, const ms_measured_table *table)
{
    char *text;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    assert_non_null(file);
    ms_measured_write_csv(file, table);
    fclose(file);
    const char *copy = ms_arena_strdup(cx->arena, text);
    free(text);
    return copy;
}

static void rows_of_collectives_are_predicted(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_measured_table table;
    ms_collective_rows rows;
    ASSERT_OK(
        read_text(cx, "nccl-tests",
                  "export NCCL_ALGO=Ring\n" HEAD
                  "[1,0]<stdout>: 1048576 262144 float none -1 41.5 1 1 0 40 1 1 0\n"
                  "2025-11-03 10:12:44 step of a launcher\n"
                  " 2097152 524288 float none -1 1.2e+04 1 1 N/A 40 1 1 N/A\n"
                  "# Avg bus bandwidth : 1\n" HEAD HEAD
                  " 4096 1024 float -1 77.5 1 1 0e+00 70 1 1 0e+00\n",
                  &table),
        cx);
    const char *csv = csv_of(cx, &table);
    ASSERT_OK(ms_collective_rows_read(cx, "csv", csv, strlen(csv), &rows), cx);
    static const struct {
        double bytes, seconds;
    } want[] = {{1048576, 41.5e-6}, {2097152, 1.2e-2}, {4096, 77.5e-6}};
    ASSERT_INT(rows.num_rows, 3);
    ASSERT_INT(rows.skipped.num_rows, 0);
    for (int i = 0; i < 3; i++) {
        const ms_collective_row *row = &rows.rows[i];
        ASSERT_INT(row->collective, MS_ALL_GATHER);
        ASSERT_INT(row->gpus, 2);
        ASSERT_INT(row->nodes, 2);
        ASSERT_INT(row->algorithm, MS_ALGORITHM_RING);
        ASSERT_TEXT(row->cluster->name, "hgx-h100");
        ASSERT_NEAR(row->size_bytes, want[i].bytes, 0);
        ASSERT_NEAR(row->measured_s, want[i].seconds, 1e-15);
    }
}

static void rows_of_logs_state_their_whole_plan(void **state)
{
    (void)state;
    static const struct {
        const char *format, *text;
        double step_s, peak_gib;
    } cases[] = {
        {"megatron-log",
         " iteration 1/ 9 | elapsed time per iteration (ms): 9000.0 | global batch size: 64 |\n"
         " iteration 2/ 9 | elapsed time per iteration (ms): 2000.0 | global batch size: 64 |\n"
         "[Rank 0] memory (MB) | allocated: 1.0 | max allocated: 51200.0 | reserved: 60000.0\n"
         " iteration 3/ 9 | elapsed time per iteration (ms): 2200.0 | global batch size: 64 |\n"
         " iteration 4/ 9 | elapsed time per iteration (ms): 5000.0 | global batch size: 32 |\n"
         " iteration 5/ 9 | elapsed time per iteration (ms): 2400.0 | global batch size: 64 |\n"
         " iteration 6/ 9 | elapsed time per iteration (ms):",
         2.2, 50.0},
        {"torchtitan-log",
         "step:  1  \x1b[35mmemory: 40.00GiB(50.0%)  \x1b[34mtps: 12\n"
         "step: 10  \x1b[35mmemory: 47.50GiB(59.4%)  \x1b[34mtps: 4,096\n"
         "validate step: 10  loss: 1.2  memory: 60.00GiB(75.0%)  tps: 9,000\n"
         "validate step: 20  loss: 1.2  memory: 60.00GiB(75.0%)  tps: 9,000\n"
         "step: 20  \x1b[35mmemory: 47.50GiB(59.4%)  \x1b[34mtps: 4,0",
         2.0, 47.5},
        {"nanotron-log",
         "iteration: 1 / 9 | time_per_iteration_ms: 1.23K | global_batch_size: 64\n",
         1.23, NAN},
        {"deepspeed-log",
         "RunningAvgSamplesPerSec=1.5, CurrSamplesPerSec=16.0, MaxMemAllocated=51.6GB\n",
         4.0, 51.6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_measured_table table;
        ms_pubruns runs;
        ASSERT_OK(read_text(cx, cases[i].format, cases[i].text, &table), cx);
        const char *csv = csv_of(cx, &table);
        ASSERT_OK(ms_pubruns_read(cx, "csv", csv, strlen(csv), &runs), cx);
        ASSERT_INT(runs.num_runs, 1);
        const ms_pubrun *run = &runs.runs[0];
        if (run->reason != NULL)
            fail_msg("%s: %s", cases[i].format, run->reason);
        ASSERT_NEAR(run->measured_step_s, cases[i].step_s, 1e-12);
        if (!isnan(cases[i].peak_gib))
            ASSERT_NEAR(run->measured_peak_bytes, cases[i].peak_gib * 1073741824.0, 1e-9);
        ASSERT_INT(run->plan.size[MS_TP], 4);
        ASSERT_INT(run->plan.zero, 1);
        ASSERT_INT(run->plan.global_batch, 64);
        ASSERT_TEXT(run->stack->name, "megatron");
        assert_null(run->defaults);
    }
}

static void cells_that_are_no_plan_skip_their_row(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_measured_table table;
    ms_pubruns runs;
    ASSERT_OK(read_text(cx, "deepspeed-log", "CurrSamplesPerSec=16.0\n", &table), cx);
    table.cells[table.num_columns - 1] = "{\"schema\": \"meshsim.plan/1\", \"tp\": 4}";
    const char *csv = csv_of(cx, &table);
    ASSERT_OK(ms_pubruns_read(cx, "csv", csv, strlen(csv), &runs), cx);
    assert_non_null(runs.runs[0].reason);
    ASSERT_TEXT(runs.runs[0].reason,
                "plan: its cell is not a plan (field \"model\" is missing)");
}

static void wrong_texts_are_refused_at_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *format, *text, *message;
        int line, column;
    } cases[] = {
        {"nccl-tests", HEAD " 8 2 float none -1 x 1 1 0 4 1 1 0\n",
         "\"x\" is not a time in us", 5, 20},
        {"nccl-tests", HEAD " 8 2 float none\n8 2 float none -1\n",
         "a row of 5 words under a header of 13 columns", 6, 1},
        {"nccl-tests", "#  size count type redop root cputime algbw busbw #wrong\n",
         "times are of the CPU (option -C), not of the collective", 1, 31},
        {"nccl-tests", "# Rank 0 Group 0 on a\n# Rank 1 Group 1 on a\n",
         "ranks are in several groups, which share the links while they are timed", 2, 3},
        {"nccl-tests", "# Rank 0 on a device 0 [0] NVIDIA A100-SXM4-80GB\n",
         "GPUs are \"NVIDIA A100-SXM4-80GB\", but those of cluster \"hgx-h100\" are H100 "
         "SXM5 80GB",
         1, 3},
        {"nccl-tests", "{\"devices\": [],\n \"results\": [{\"size\": 8}]}",
         "\"out_of_place\" is missing", 2, 14},
        {"nccl-tests", "# no rows\n",
         "no row of nccl-tests: sizes and times behind a header \"# size count type ...\"",
         0, 0},
        {"megatron-log", "x\n elapsed time per iteration (ms): no\n",
         "there is no number above 0 behind \"elapsed time per iteration (ms):\"", 2, 34},
        {"megatron-log", "elapsed time per iteration (ms): 9 | global batch size: 8\n",
         "no step has the plan's global batch of 64; the last has 8", 0, 0},
        {"torchtitan-log", "step: 1\n", "no line states a step time", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_measured_table table;
        ASSERT_INT(read_text(cx, cases[i].format, cases[i].text, &table), MS_EINPUT);
        ASSERT_TEXT(cx->first->message, cases[i].message);
        ASSERT_INT(cx->first->loc.line, cases[i].line);
        ASSERT_INT(cx->first->loc.column, cases[i].column);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_collectives_are_predicted),
        cmocka_unit_test(rows_of_logs_state_their_whole_plan),
        cmocka_unit_test(cells_that_are_no_plan_skip_their_row),
        cmocka_unit_test(wrong_texts_are_refused_at_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
