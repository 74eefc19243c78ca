/* Configurations of Accelerate: kinds of jobs, versions of FSDP, errors. */
#include "tests/test.h"

#include "costmodel/port/port.h"

static ms_status import(ms_ctx *cx, const char *text, ms_port_imported *got)
{
    const ms_port_format *format;
    ms_port_import_options options = {.name = "a.yaml", .model = "8b"};
    ASSERT_OK(ms_port_format_find(cx, "accelerate", &format), cx);
    return ms_port_import(cx, format, text, strlen(text), &options, got);
}

static ms_plan plan_of(const char *text)
{
    ms_ctx *cx = test_cx();
    ms_port_imported got;
    ASSERT_OK(import(cx, text, &got), cx);
    return got.plan;
}

static void versions_of_fsdp_say_sharding_in_their_own_words(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        long zero;
        bool reshards;
    } rows[] = {{"  fsdp_version: 2\n", 3, true},
                {"  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n", 3, false},
                {"  fsdp_reshard_after_forward: SHARD_GRAD_OP\n", 3, false},
                {"  fsdp_reshard_after_forward: NO_SHARD\n", 0, true},
                {"  fsdp_reshard_after_forward: 1\n", 3, true},
                {"  fsdp_sharding_strategy: FULL_SHARD\n", 3, true},
                {"  fsdp_sharding_strategy: 2\n", 3, false},
                {"  fsdp_offload_params: false\n", 3, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan = plan_of(ms_arena_printf(
            cx->arena, "num_processes: 8\ndistributed_type: FSDP\nfsdp_config:\n%s",
            rows[i].keys));
        ASSERT_INT(plan.zero, rows[i].zero);
        ASSERT_INT(plan.size[MS_DP_SHARD], 8);
        if (plan.zero == 3)
            ASSERT_INT(plan.reshard_after_forward, rows[i].reshards);
    }
}

static void machines_are_replicas_of_a_hybrid_strategy(void **state)
{
    (void)state;
    ms_plan plan = plan_of("num_processes: 32\nnum_machines: 4\ndistributed_type: FSDP\n"
                           "fsdp_config:\n  fsdp_reshard_after_forward: HYBRID_SHARD\n");
    ASSERT_INT(plan.size[MS_DP_REPLICATE], 4);
    ASSERT_INT(plan.size[MS_DP_SHARD], 8);
}

static void the_stack_is_of_the_kind_of_job(void **state)
{
    (void)state;
    ms_plan plain = plan_of("num_processes: 4\ndistributed_type: MULTI_GPU\n");
    ASSERT_TEXT(plain.stack, "accelerate");
    ASSERT_INT(plain.size[MS_DP_REPLICATE], 4);
    ms_plan deepspeed = plan_of("num_processes: 4\ndistributed_type: DEEPSPEED\n"
                                "deepspeed_config:\n  zero_stage: 2\n"
                                "  gradient_accumulation_steps: 3\n");
    ASSERT_TEXT(deepspeed.stack, "deepspeed");
    ASSERT_INT(deepspeed.zero, 2);
    ASSERT_INT(deepspeed.global_batch, 12);
}

static void refuse(const char *text, const char *message)
{
    ms_ctx *cx = test_cx();
    ms_port_imported got;
    ASSERT_INT(import(cx, text, &got), MS_EINPUT);
    if (strstr(test_messages(cx), message) == NULL)
        fail_msg("\"%s\" is not in %s", message, test_messages(cx));
}

static void wrong_files_are_refused(void **state)
{
    (void)state;
    refuse("distributed_type: FSDP\n", "num_processes is missing");
    refuse("num_processes: 8\ndistributed_type: MEGATRON_LM\n",
           "a.yaml:2:19: error: distributed_type: \"MEGATRON_LM\" is no value");
    refuse("num_processes: 8\ndistributed_type: FSDP\nparallelism_config:\n"
           "  parallelism_config_dp_shard_size: 4\n",
           "num_processes: the sizes make 4 ranks, not 8");
    refuse("num_processes: 8\ndistributed_type: FSDP\nparallelism_config:\n"
           "  parallelism_config_dp_shard_size: 4\n"
           "  parallelism_config_tp_size: 2\n",
           "parallelism_config needs version 2 of FSDP");
    refuse("num_processes: 8\ndistributed_type: MULTI_GPU\nparallelism_config:\n"
           "  parallelism_config_sp_size: 2\n",
           "sp_size: it needs distributed_type: DEEPSPEED");
    refuse("num_processes: 8\ndistributed_type: DEEPSPEED\nfsdp_config:\n"
           "  fsdp_version: 2\n",
           "does not go with distributed_type: DEEPSPEED");
    refuse("num_processes: 8\ndistributed_type: FSDP\nparallelism_config:\n"
           "  parallelism_config_dp_shard_size: -1\n",
           "-1 is not from 1");
    refuse("num_processes: 8\ndistributed_type: FSDP\nfsdp_config:\n"
           "  fsdp_offload_params: true\n",
           "no plan has parameters in host memory");
    refuse("num_processes: 8\ndistributed_type: FSDP\nfsdp_config:\n"
           "  fsdp_versions: 2\n",
           "did you mean fsdp_config.fsdp_version");
    refuse("num_processes: 8\ndistributed_type: DEEPSPEED\ndeepspeed_config:\n"
           "  deepspeed_config_file: ds.json\n",
           "meshsim import ds.json --from deepspeed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_of_fsdp_say_sharding_in_their_own_words),
        cmocka_unit_test(machines_are_replicas_of_a_hybrid_strategy),
        cmocka_unit_test(the_stack_is_of_the_kind_of_job),
        cmocka_unit_test(wrong_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
