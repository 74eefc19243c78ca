/* Tests of the commands that run on GPUs, from the words of the command line to the files
 * they write, with fake GPUs (tests/support/cuda_fake.h). */
#include "base/json.h"
#include "cli/options/commands.h"
#include "exec/backends/backends.h"
#include "exec/measure/measure.h"
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/test.h"

#include <unistd.h>

/* Gives the program fake GPUs: these definitions replace those of
 * exec/backends/cuda_real.c and exec/cuda/cuda_driver.c, which the linker takes from an
 * archive only if undefined. */
const ms_cuda_driver *ms_cuda_driver_of_libraries(void)
{
    return &ms_cuda_fake_driver;
}

const ms_backend *ms_cuda_backend_by(ms_cuda_transport transport)
{
    static ms_cuda_backend all[MS_NUM_CUDA_TRANSPORTS];
    all[transport] = ms_test_cuda_backend(transport);
    return &all[transport].table;
}

#define MODEL " --model " MS_SOURCE_DIR "/tests/data/run/tiny-llama.json"
#define BATCH " --seq 16 --global-batch 4"

static char folder[] = "/tmp/meshsim-commands-XXXXXX";

static const char *path_of(ms_ctx *cx, const char *name)
{
    return ms_arena_printf(cx->arena, "%s/%s", folder, name);
}

/* Runs a command line of words separated by blanks, with `-o` and a result file
 * appended. */
static ms_status command(ms_ctx *cx, const char *line)
{
    char *argv[64], *rest;
    int argc = 0;
    char *words =
        ms_arena_printf(cx->arena, "%s --quiet -o %s", line, path_of(cx, "out"));
    for (char *word = strtok_r(words, " ", &rest); word != NULL && argc < 64;
         word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    const ms_command *found = ms_command_find(cx, argv[0]);
    assert_non_null(found);
    ms_args args = {.command = found, .argc = argc - 1, .argv = argv + 1};
    return found->run(cx, &args);
}

static void begin(int num_devices)
{
    ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = 7, .num_devices = num_devices});
}

/* ---- output files ---- */

/* Finds a value of a JSON document by its path of keys and element indices, as
 * "measured.peak_bytes.2". */
static ms_jval at(ms_ctx *cx, ms_jval root, const char *place)
{
    char *rest, *words = ms_arena_strdup(cx->arena, place);
    ms_jval value = root;
    for (char *key = strtok_r(words, ".", &rest); key != NULL;
         key = strtok_r(NULL, ".", &rest)) {
        if (ms_json_is_array(value)) {
            int index = (int)strtol(key, NULL, 10);
            assert_true(index < ms_json_length(value));
            value = ms_json_element(cx, value, index);
        } else if (!ms_json_member(cx, value, key, &value)) {
            fail_msg("there is no %s of %s", key, place);
        }
    }
    return value;
}

static double number(ms_ctx *cx, ms_jval root, const char *place)
{
    double value = NAN;
    ASSERT_OK(ms_json_number(cx, at(cx, root, place), -HUGE_VAL, HUGE_VAL, &value), cx);
    return value;
}

static const char *text(ms_ctx *cx, ms_jval root, const char *place)
{
    const char *value = NULL;
    ASSERT_OK(ms_json_text(cx, at(cx, root, place), &value), cx);
    return value;
}

static ms_jdoc *load(ms_ctx *cx, const char *name, ms_jval *root)
{
    ms_jdoc *doc;
    ASSERT_OK(ms_json_load(cx, path_of(cx, name), &doc, root), cx);
    return doc;
}

/* ---- run ---- */

/* Checks the keys of a run's JSON result (schema meshsim.run/1) that scripts rely on. */
static void check_result(ms_ctx *cx, ms_jval root, long num_ranks)
{
    ASSERT_TEXT(text(cx, root, "schema"), "meshsim.run/1");
    ASSERT_TEXT(text(cx, root, "backend"), "cuda");
    ASSERT_INT(number(cx, root, "ranks"), num_ranks);
    ASSERT_INT(ms_json_length(at(cx, root, "losses")), 3);
    ASSERT_INT(ms_json_length(at(cx, root, "measured.peak_bytes")), num_ranks);
    assert_true(ms_json_length(at(cx, root, "nodes")) > 20);
    assert_true(number(cx, root, "predicted.step_s") > 0.0);
    assert_true(number(cx, root, "nodes.0.measured_s") > 0.0);
    assert_true(number(cx, root, "nodes.0.count") > 0.0);
    assert_true(strlen(text(cx, root, "nodes.0.kind")) > 0);
    (void)at(cx, root, "nodes.0.predicted_s");
    double step_s = number(cx, root, "measured.step_s");
    double sum_s = 0.0;
    static const char *const parts[] = {"compute_s", "exposed_comm_s", "bubble_s",
                                        "optimizer_s", "host_s"};
    for (int i = 0; i < 5; i++)
        sum_s += number(cx, root, ms_arena_printf(cx->arena, "measured.%s", parts[i]));
    /* time stamps of the fake GPU are multiples of 1 us */
    ASSERT_NEAR(sum_s, step_s, 1e-6);
}

static void check_device(ms_ctx *cx, ms_jval root)
{
    ASSERT_TEXT(text(cx, root, "device.name"), "fake device");
    ASSERT_INT(number(cx, root, "device.compute_capability_major"), 9);
    double total = number(cx, root, "device.total_bytes");
    double used = number(cx, root, "device.used_bytes");
    double arena = number(cx, root, "device.arena_bytes");
    double arena_used = number(cx, root, "device.arena_used_bytes");
    assert_true(number(cx, root, "measured.peak_bytes.0") <= arena_used);
    assert_true(arena_used <= arena && arena <= used && used <= total);
    ASSERT_NEAR(number(cx, root, "device.outside_arena_bytes"), used - arena, 0.0);
}

/* Checks that each rank's measured peak memory equals the predicted one. */
static void check_memory(ms_ctx *cx, ms_jval root, long num_ranks)
{
    for (long rank = 0; rank < num_ranks; rank++) {
        const char *place = ms_arena_printf(cx->arena, "peak_bytes.%ld", rank);
        ASSERT_NEAR(number(cx, at(cx, root, "measured"), place),
                    number(cx, at(cx, root, "predicted"), place), 0.0);
    }
}

static void check_trace(ms_ctx *cx, long num_ranks)
{
    ms_jval root;
    ms_jdoc *doc = load(cx, "trace", &root);
    ms_jval events = at(cx, root, "traceEvents");
    long num_slices[8] = {0};
    for (int i = 0; i < ms_json_length(events); i++) {
        ms_jval event = ms_json_element(cx, events, i);
        if (strcmp(text(cx, event, "ph"), "X") != 0)
            continue;
        assert_true(number(cx, event, "ts") >= 0.0 && number(cx, event, "dur") >= 0.0);
        long rank = (long)number(cx, event, "pid") - 1;
        assert_true(rank >= 0 && rank < num_ranks);
        num_slices[rank]++;
    }
    for (long rank = 0; rank < num_ranks; rank++)
        assert_true(num_slices[rank] > 50);
    ms_json_close(doc);
}

/* Where cuDNN cannot run attention, own kernels do, and the result says so. */
static void run_without_cudnn_goes_on(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    begin(1);
    ASSERT_OK(command(cx, "run --backend cuda" MODEL BATCH
                          " --dtype bf16 --steps 1 --attention cudnn --json"),
              cx);
    ms_cuda_fake_end();
    ms_jval root;
    ms_jdoc *doc = load(cx, "out", &root);
    ASSERT_TEXT(text(cx, root, "attention.asked"), "cudnn");
    ASSERT_TEXT(text(cx, root, "attention.used"), "own");
    ASSERT_TEXT(text(cx, root, "attention.refused_because"),
                "only the program's own kernels have its masks, types or blocks");
    ASSERT_INT(number(cx, root, "attention.cudnn_calls"), 0);
    assert_true(number(cx, root, "attention.refused_calls") > 1.0);
    ms_json_close(doc);
}

static void run_writes_what_it_did(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    begin(4);
    ASSERT_OK(command(cx, ms_arena_printf(cx->arena,
                                          "run --backend cuda" MODEL BATCH
                                          " --pp 2 --tp 2 --dtype fp32 --steps 3 --check "
                                          "--json --trace %s",
                                          path_of(cx, "trace"))),
              cx);
    ms_cuda_fake_end();
    ms_jval root;
    ms_jdoc *doc = load(cx, "out", &root);
    check_result(cx, root, 4);
    ASSERT_TEXT(text(cx, root, "transport"), "nccl");
    ASSERT_TEXT(text(cx, root, "dtype"), "fp32");
    check_device(cx, root);
    /* the world's, tp's, that of copies of experts, and to and from the other stage */
    ASSERT_INT(number(cx, root, "device.communicators"), 5);
    /* the plan's cluster has one multiprocessor for collectives: two rings of one channel,
     * messages with four, 9.1875 MiB each */
    ASSERT_NEAR(number(cx, root, "device.predicted_communicators_bytes"),
                (2 * 1 + 4) * 9.1875 * 1048576.0, 0.0);
    check_memory(cx, root, 4);
    bool passed = false;
    ASSERT_OK(ms_json_bool(cx, at(cx, root, "check.passed"), &passed), cx);
    assert_true(passed);
    ASSERT_NEAR(number(cx, root, "check.gradients.tolerance"), 1e-4, 1e-12);
    assert_true(number(cx, root, "check.gradients.relative") > 0.0);
    ms_json_close(doc);
    check_trace(cx, 4);
}

static void run_is_in_bf16_unless_told(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    begin(1);
    ASSERT_OK(command(cx, "run --backend cuda" MODEL BATCH
                          " --dp-shard 2 --transport host --steps 3 --json"),
              cx);
    ms_cuda_fake_end();
    ms_jval root;
    ms_jdoc *doc = load(cx, "out", &root);
    check_result(cx, root, 2);
    check_device(cx, root);
    ASSERT_TEXT(text(cx, root, "transport"), "host");
    ASSERT_TEXT(text(cx, root, "dtype"), "bf16");
    ASSERT_TEXT(text(cx, root, "plan.precision.compute"), "bf16");
    ms_json_close(doc);
}

/* One GPU stands in for four: a rank of each kind of stage executes alone. */
static void run_replays_ranks(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    begin(1);
    ASSERT_OK(command(cx, "run --backend cuda" MODEL BATCH
                          " --pp 2 --tp 2 --replay stages --steps 3 --json"),
              cx);
    ms_cuda_fake_end();
    ms_jval root;
    ms_jdoc *doc = load(cx, "out", &root);
    ASSERT_TEXT(text(cx, root, "schema"), "meshsim.rank_replay/1");
    ASSERT_TEXT(text(cx, root, "transport"), "modelled");
    ASSERT_TEXT(text(cx, root, "dtype"), "bf16");
    ASSERT_INT(ms_json_length(at(cx, root, "ranks")), 2);
    assert_true(number(cx, root, "step_s") > 0.0);
    ms_json_close(doc);
}

/* Algorithms are timed in the first run and only read in the second. */
static void run_keeps_algorithms_of_gemms(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    long num[3];
    for (int i = 0; i < 3; i++) {
        begin(2);
        ASSERT_OK(command(cx, ms_arena_printf(cx->arena,
                                              "run --backend cuda" MODEL BATCH
                                              " --tp 2 --steps 2 --gemm-algorithms %s%s",
                                              path_of(cx, "gemms"),
                                              i == 2 ? " --replay rank=1" : "")),
                  cx);
        ms_cuda_fake_end();
        ms_jval root;
        ms_jdoc *doc = load(cx, "gemms", &root);
        ASSERT_TEXT(text(cx, root, "schema"), "meshsim.gemm-algorithms/1");
        ASSERT_TEXT(text(cx, root, "gemms.0.device"), "fake device");
        num[i] = ms_json_length(at(cx, root, "gemms"));
        ms_json_close(doc);
    }
    assert_true(num[0] > 5);
    ASSERT_INT(num[1], num[0]);
    ASSERT_INT(num[2], num[0]); /* a rank alone has the same shapes */
}

/* ---- refused commands ---- */

static void broken_files_of_algorithms_are_refused(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "", "{", "[]", "{\"schema\": \"meshsim.run/1\", \"gemms\": []}",
        "{\"schema\": \"meshsim.gemm-algorithms/1\", \"gemms\": [{}]}"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        ms_ctx *cx = test_cx();
        const char *path = path_of(cx, "broken");
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(broken[i], file);
        ASSERT_INT(fclose(file), 0);
        begin(1);
        ASSERT_INT(command(cx, ms_arena_printf(cx->arena,
                                               "run --backend cuda" MODEL BATCH
                                               " --gemm-algorithms %s",
                                               path)),
                   MS_EINPUT);
        ms_cuda_fake_end();
        assert_non_null(strstr(test_messages(cx), "broken"));
    }
    ms_ctx *cx = test_cx();
    ASSERT_INT(command(cx, ms_arena_printf(cx->arena,
                                           "run --backend cuda" MODEL BATCH
                                           " --warm-up 0 --gemm-algorithms %s",
                                           path_of(cx, "new"))),
               MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "first step, which would be measured"));
}

static void ranks_alone_have_no_other_transport(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_INT(command(cx, "run --backend cuda" MODEL BATCH " --transport modelled"),
               MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "is for one rank alone"));
    cx = test_cx();
    ASSERT_INT(
        command(cx, "run --backend cuda" MODEL BATCH " --transport nccl --replay stages"),
        MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "--replay has no others"));
}

static void ranks_do_not_share_a_gpu_by_nccl(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    begin(3);
    ASSERT_INT(command(cx, "run --backend cuda" MODEL BATCH " --dp-shard 4"), MS_EINPUT);
    ms_cuda_fake_end();
    ASSERT_TEXT(test_messages(cx),
                "error: 4 ranks share 3 GPUs, and NCCL gives a GPU to one rank only\n"
                "  hint: --transport host exchanges through host memory, for tests of "
                "correctness; NCCL 2.30 and later shares them with "
                "NCCL_MULTI_RANK_GPU_ENABLE=1\n");
}

/* Two fake GPUs of 1 GiB with three ranks, two of them on GPU 0: their memory does not
 * fit. */
static void ranks_need_room_on_their_gpu(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    begin(2);
    ASSERT_INT(command(cx, "run --backend cuda --model llama-15m --seq 1k "
                           "--global-batch 12 --microbatch 4 --dp-shard 3 --zero 0 "
                           "--transport host --json"),
               MS_ENOFIT);
    ms_cuda_fake_end();
    const char *told = test_messages(cx);
    assert_non_null(strstr(told, "error: the 2 ranks of this plan on GPU 0 need 1."));
    assert_non_null(strstr(told, "it has 1.00 GiB: 0."));
    assert_non_null(strstr(told, "--microbatch 1 would fit; --force runs it as it is"));
    ms_jval root;
    ms_jdoc *doc = load(cx, "out", &root);
    double peak = number(cx, root, "predicted.peak_bytes.0");
    ASSERT_NEAR(number(cx, root, "shortfall.needed_bytes"), 2.0 * peak, 0.0);
    ASSERT_NEAR(number(cx, root, "shortfall.capacity_bytes"), 1073741824.0, 0.0);
    ASSERT_INT(number(cx, root, "steps"), 0);
    ms_json_close(doc);
}

static void calibration_needs_a_cluster_that_is_known(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    begin(1);
    ASSERT_INT(command(cx, "calibrate --backend cuda"), MS_EINPUT);
    ms_cuda_fake_end();
    ASSERT_TEXT(
        test_messages(cx),
        "error: no cluster has devices named \"fake device\"\n"
        "  hint: --cluster NAME|FILE, with the rates that its data sheet lists\n");
}

static void failures_of_a_gpu_end_the_command(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    begin(1);
    ms_cuda_fake_fail(MS_FAKE_LAUNCH, 100);
    ASSERT_INT(command(cx, "run --backend cuda" MODEL BATCH), MS_EIO);
    ms_cuda_fake_end();
    assert_true(cx->num_errors > 0);
}

/* ---- which GPU ---- */

static void info_lists_gpus(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    begin(2);
    ASSERT_OK(command(cx, "info --json"), cx);
    ms_cuda_fake_end();
    ms_jval root;
    ms_jdoc *doc = load(cx, "out", &root);
    ASSERT_INT(number(cx, root, "gpus.count"), 2);
    assert_true(ms_json_is_null(at(cx, root, "gpus.unavailable_because")));
    ASSERT_INT(ms_json_length(at(cx, root, "gpus.devices")), 2);
    ASSERT_TEXT(text(cx, root, "gpus.devices.1.name"), "fake device");
    ASSERT_NEAR(number(cx, root, "gpus.devices.1.memory_bytes"), 1073741824.0, 0.0);
    assert_true(ms_json_is_null(at(cx, root, "gpus.devices.1.cluster")));
    ms_json_close(doc);
}

/* GPU names as drivers report them, and the cluster description that each selects (NULL:
 * none). */
static void clusters_are_found_by_the_name_of_the_gpu(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"NVIDIA H200", "hgx-h200"},
        {"NVIDIA H200 NVL", NULL},
        {"NVIDIA GH200 480GB", NULL},
        {"NVIDIA H200 MIG 1g.18gb", NULL},
        {"NVIDIA H100 80GB HBM3", "hgx-h100"},
        {"NVIDIA H100 PCIe", NULL},
        {"NVIDIA H100 NVL", NULL},
        {"NVIDIA H800", "hgx-h800"},
        {"NVIDIA B200", "hgx-b200"},
        {"NVIDIA GB200", "gb200-nvl72"},
        {"NVIDIA A100-SXM4-40GB", "hgx-a100-40g"},
        {"NVIDIA A100-SXM4-80GB", "hgx-a100-80g"},
        {"NVIDIA A100-PCIE-40GB", NULL},
        {"NVIDIA A100 80GB PCIe", NULL},
        {"NVIDIA GeForce RTX 4090", "workstation-rtx4090"},
        {"NVIDIA GeForce RTX 4090 Laptop GPU", NULL},
        {"NVIDIA GeForce RTX 4090 D", NULL},
        {"Tesla V100-SXM2-16GB", NULL},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ASSERT_TEXT(ms_machine_cluster_of_gpu(test_cx(), names[i][0]), names[i][1]);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    (void)unlink(path_of(cx, "out"));
    (void)unlink(path_of(cx, "trace"));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_without_cudnn_goes_on),
        cmocka_unit_test(run_writes_what_it_did),
        cmocka_unit_test(run_is_in_bf16_unless_told),
        cmocka_unit_test(run_replays_ranks),
        cmocka_unit_test(run_keeps_algorithms_of_gemms),
        cmocka_unit_test(broken_files_of_algorithms_are_refused),
        cmocka_unit_test(ranks_alone_have_no_other_transport),
        cmocka_unit_test(ranks_do_not_share_a_gpu_by_nccl),
        cmocka_unit_test(ranks_need_room_on_their_gpu),
        cmocka_unit_test(calibration_needs_a_cluster_that_is_known),
        cmocka_unit_test(failures_of_a_gpu_end_the_command),
        cmocka_unit_test(info_lists_gpus),
        cmocka_unit_test(clusters_are_found_by_the_name_of_the_gpu),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
