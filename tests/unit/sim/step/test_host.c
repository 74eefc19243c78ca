/* How long a step waits for the CPU that launches kernels, with round coefficients. */
#include "sim/step/host_time.h"

#include "tests/test.h"

#include <math.h>

/* How many layers a block counts as in host time: its launches in forward divided by
 * those of a layer. The layer here has 8 launches: 4 kernels and two collectives that
 * each run twice. Launches in backward and of experts are not counted. */
static void a_part_is_as_many_layers_as_it_launches(void **state)
{
    (void)state;
    ms_bill_comm forward[] = {{.count = 2}, {.count = 2}}, backward = {.count = 1};
    ms_bill layer = {.kernels = {9, 9},
                     .expert_kernels = {5, 0},
                     .num_comms = {2, 1},
                     .comms = {forward, &backward}};
    ms_bill embed = {.kernels = {2, 50}}, none = {0};
    ASSERT_NEAR(ms_host_layers(&embed, &layer), 0.25, 0);
    ASSERT_NEAR(ms_host_layers(&layer, &embed), 4, 0);
    ASSERT_NEAR(ms_host_layers(&embed, &none), 1, 0);
}

static void the_host_is_with_a_part_for_its_layers(void **state)
{
    (void)state;
    ms_profile profile = {.launch_s.value = 0.5};
    ms_stack stack = {.host_s_per_layer.value = 12, .launch_frac.value = 1};
    ms_workload workload = {.stack = &stack, .profile = &profile};
    ms_bill bill = {.kernels = {90, 90}};
    ms_links links = {0};
    ASSERT_NEAR(ms_host_s(&workload, &bill, &links, 0.25, MS_BILL_FORWARD), 1, 1e-12);
    ASSERT_NEAR(ms_host_s(&workload, &bill, &links, 0.25, MS_BILL_BACKWARD), 2, 1e-12);
    /* launches of experts come on top of the host time of a layer without experts */
    bill.expert_kernels[MS_BILL_FORWARD] = 6;
    ASSERT_NEAR(ms_host_s(&workload, &bill, &links, 1, MS_BILL_FORWARD), 4 + 3, 1e-12);
}

/* Host time of the collectives in forward, which grows with their ranks: two collectives
 * of 4 ranks and one of 8 count; the 3 sends of a ring cost none. This time is added to
 * the host time per layer, or to that of launches. */
static void collectives_keep_the_host_for_their_ranks(void **state)
{
    (void)state;
    ms_profile profile = {.launch_s.value = 1};
    ms_stack stack = {.host_s_per_layer.value = 12,
                      .host_s_per_collective_rank.value = 0.5,
                      .launch_frac.value = 1};
    ms_workload workload = {.stack = &stack, .profile = &profile};
    ms_bill_comm forward[] = {{.axis = MS_BILL_TP, .count = 2},
                              {.axis = MS_BILL_EP, .count = 1},
                              {.axis = MS_BILL_CP, .count = 3, .ring = true}};
    ms_bill bill = {.kernels = {7, 0}, .num_comms = {3, 0}, .comms = {forward}};
    ms_links links = {.pipeline_span = {.size = 2, .tier = 1}};
    links.span[MS_BILL_TP].size = 4;
    links.span[MS_BILL_EP].size = links.span[MS_BILL_CP].size = 8;
    ASSERT_NEAR(ms_host_s(&workload, &bill, &links, 1, MS_BILL_FORWARD), 4 + 8, 1e-12);
    ASSERT_NEAR(ms_host_s(&workload, &bill, &links, 1, MS_BILL_BACKWARD), 8, 1e-12);
    stack.host_s_per_layer.value = (double)NAN;
    ASSERT_NEAR(ms_host_s(&workload, &bill, &links, 1, MS_BILL_FORWARD), 7 + 8, 1e-12);
    /* pipeline inside a node: no host time for collectives */
    links.pipeline_span.tier = 0;
    ASSERT_NEAR(ms_host_s(&workload, &bill, &links, 1, MS_BILL_FORWARD), 7, 1e-12);
}

/* A layer of 10 kernels is 30 operations, 12 of them on DTensors. Compiled it costs a
 * quarter of a launch per kernel, otherwise a launch per operation, and DTensor's part.
 * Blocks beside compiled layers are not compiled. */
static void what_is_not_compiled_is_launched_by_operation(void **state)
{
    (void)state;
    ms_profile profile = {.launch_s.value = 8};
    ms_stack stack = {.host_s_per_layer.value = (double)NAN,
                      .launch_frac.value = 0.25,
                      .dtensor_s.value = 25,
                      .compile = MS_COMPILE_REGIONAL};
    ms_workload workload = {.stack = &stack, .profile = &profile};
    ms_links links = {0};
    ms_bill layer = {.block = MS_BLOCK_LAYER, .kernels = {10}, .operations = {{30, 12}}};
    ms_bill head = layer;
    head.block = MS_BLOCK_HEAD;
    double eager_s = 30 * 8 + 12 * 25;
    ASSERT_NEAR(ms_host_s(&workload, &layer, &links, 1, MS_BILL_FORWARD), 20, 1e-12);
    ASSERT_NEAR(ms_host_s(&workload, &head, &links, 1, MS_BILL_FORWARD), eager_s, 1e-12);
    ASSERT_NEAR(ms_host_launches(&workload, &head, MS_BILL_FORWARD), 30, 0);
    stack.compile = MS_COMPILE_FULL;
    ASSERT_NEAR(ms_host_s(&workload, &head, &links, 1, MS_BILL_FORWARD), 20, 1e-12);
    ASSERT_NEAR(ms_host_launches(&workload, &head, MS_BILL_FORWARD), 10, 0);
    /* stacks that fuse chains without a compiler launch kernels, others operations */
    stack.compile = MS_COMPILE_NONE;
    ASSERT_NEAR(ms_host_s(&workload, &layer, &links, 1, MS_BILL_FORWARD), 20, 1e-12);
    stack.launches_operations = true;
    ASSERT_NEAR(ms_host_s(&workload, &layer, &links, 1, MS_BILL_FORWARD), eager_s, 1e-12);
}

/* A replay replaces the host time of a layer, measured or counted, but for experts whose
 * shapes the host must know; embedding and head are launched as without graphs. */
static void a_graph_is_one_launch(void **state)
{
    (void)state;
    ms_profile profile = {.launch_s.value = 1};
    ms_stack stack = {.host_s_per_layer.value = 300,
                      .launch_frac.value = 1,
                      .graph_launch_s.value = 4,
                      .cuda_graphs = MS_GRAPHS_LAYERS};
    ms_workload workload = {.stack = &stack, .profile = &profile};
    ms_links links = {0};
    ms_bill layer = {
        .block = MS_BLOCK_LAYER, .kernels = {0, 90}, .expert_kernels = {0, 7}};
    ms_bill head = layer;
    head.block = MS_BLOCK_HEAD;
    ASSERT_NEAR(ms_host_s(&workload, &layer, &links, 1, MS_BILL_FORWARD), 4, 0);
    ASSERT_NEAR(ms_host_s(&workload, &layer, &links, 1, MS_BILL_BACKWARD), 4 + 7, 0);
    ASSERT_NEAR(ms_host_launches(&workload, &layer, MS_BILL_BACKWARD), 8, 0);
    ASSERT_NEAR(ms_host_s(&workload, &head, &links, 1, MS_BILL_FORWARD), 100, 1e-12);
    stack.graphs_experts = true; /* padded to fixed shapes */
    ASSERT_NEAR(ms_host_s(&workload, &layer, &links, 1, MS_BILL_BACKWARD), 4, 0);
    ASSERT_NEAR(ms_host_launches(&workload, &layer, MS_BILL_BACKWARD), 1, 0);
    stack.cuda_graphs = MS_GRAPHS_FULL;
    ASSERT_NEAR(ms_host_s(&workload, &head, &links, 1, MS_BILL_FORWARD), 0, 0);
    ASSERT_NEAR(ms_host_launches(&workload, &head, MS_BILL_FORWARD), 0, 0);
}

static void messages_stall_on_many_nodes(void **state)
{
    (void)state;
    ms_stack stack = {.message_stall_s.value = 5, .stalling_nodes.value = 18};
    ms_links links = {.pipeline_span.size = 2,
                      .world_span = {.size = 136, .per_domain = {8}}};
    ASSERT_NEAR(ms_stall_s(&stack, &links), 0, 0);
    links.world_span.size = 137; /* one GPU more needs an 18th node */
    ASSERT_NEAR(ms_stall_s(&stack, &links), 5, 0);
    links.pipeline_span.size = 1;
    ASSERT_NEAR(ms_stall_s(&stack, &links), 0, 0);
}

static void messages_stall_where_tensor_groups_are_wide(void **state)
{
    (void)state;
    ms_stack stack = {.message_stall_s.value = 5, .stalling_tensor_nodes.value = 4};
    ms_links links = {.pipeline_span.size = 2,
                      .world_span = {.size = 64, .per_domain = {8}},
                      .span[MS_BILL_TP] = {.size = 24, .per_domain = {8}}};
    ASSERT_NEAR(ms_stall_s(&stack, &links), 0, 0);
    links.span[MS_BILL_TP].size = 32;
    ASSERT_NEAR(ms_stall_s(&stack, &links), 5, 0);
    stack.stalling_tensor_nodes.value = 0;
    ASSERT_NEAR(ms_stall_s(&stack, &links), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_is_as_many_layers_as_it_launches),
        cmocka_unit_test(the_host_is_with_a_part_for_its_layers),
        cmocka_unit_test(collectives_keep_the_host_for_their_ranks),
        cmocka_unit_test(what_is_not_compiled_is_launched_by_operation),
        cmocka_unit_test(a_graph_is_one_launch),
        cmocka_unit_test(messages_stall_on_many_nodes),
        cmocka_unit_test(messages_stall_where_tensor_groups_are_wide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
