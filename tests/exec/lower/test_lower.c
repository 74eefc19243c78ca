/* Tests of lowering (turning program nodes into a rank's kernels and transfers):
 * placement changes of tensors in hand-made programs, and runs without tensor values. */
#include "costmodel/program/ring.h"
#include "tests/support/hand_program.h"
#include "tests/support/program_cases.h"
#include "tests/support/run_ranks.h"
#include "tests/test.h"

/* ---- changes of placement ---- */

static void run_hand(const ms_hand *h)
{
    ms_ctx *cx = test_cx();
    ms_interp *like = ms_interp_run(h->arena, &h->program, &h->options);
    ASSERT_TEXT(like->why, "");
    ms_plan plan = ms_ranks_plan(&h->program);
    ms_ranks_job job = {&h->program, &plan, like, &ms_backend_loop, MS_REAL_FP64};
    ms_cell *cells;
    const char *why;
    ASSERT_OK(ms_ranks_run(cx, &job, &cells), cx);
    ms_ranks_difference(cx->arena, like, cells, 1e-15, &why);
    ASSERT_TEXT(why, "");
}

static ms_hand *open_hand(const char *at, long dp, long cp, long tp)
{
    ms_hand *h = ms_hand_open(test_cx()->arena);
    ms_hand_set_mesh(h, MS_DENSE_MESH, dp, cp, tp);
    ms_hand_set_mesh(h, MS_SPARSE_MESH, dp * cp * tp, 1, 1);
    ms_hand_set_size(h, MS_DIM_BATCH, 8);
    ms_hand_set_size(h, MS_DIM_SEQUENCE, 16);
    ms_hand_set_size(h, MS_DIM_HEADS, 8);
    ms_hand_set_size(h, MS_DIM_HEAD, 3);
    ms_hand_tensor(h, "bsnd", MS_ROLE_ACTIVATION, at);
    return h;
}

/* Executes every placement change over tp along outer, middle and inner dims, with other
 * dims split by dp and cp. */
static void changes_along_every_dim(void **state)
{
    (void)state;
    static const char *const others[] = {"RR", "bR", "Rs", "bs", "ss"};
    static const char changes[][2] = {{'R', 'b'}, {'b', 's'}, {'s', 'n'}, {'n', 'b'},
                                      {'b', 'R'}, {'R', 'P'}, {'P', 'n'}, {'n', 's'},
                                      {'s', 'b'}, {'b', 'n'}, {'n', 'R'}, {'R', 'P'},
                                      {'P', 's'}, {'s', 'R'}, {'R', 'P'}, {'P', 'b'},
                                      {'b', 'R'}, {'R', 'P'}, {'P', 'R'}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char at[MS_MESH_AXES + 1] = {others[i][0], others[i][1], 'R', '\0'};
        ms_hand *h = open_hand(at, 2, 2, 2);
        int x = 0;
        for (size_t j = 0; j < sizeof changes / sizeof *changes; j++) {
            at[2] = changes[j][1];
            x = ms_hand_redistribute(h, x, 2, at);
        }
        run_hand(h);
    }
}

/* Executes placement changes over cp of heads that tp splits already: sequence to heads
 * (Ulysses) and back, all-gather and reduce-scatter of strided shards. */
static void changes_of_strided_shards(void **state)
{
    (void)state;
    ms_hand *h = open_hand("bsn", 1, 4, 2);
    static const char steps[] = "nsnRnRPn";
    char at[MS_MESH_AXES + 1] = "bsn";
    for (int i = 0, x = 0; steps[i] != '\0'; i++) {
        at[1] = steps[i];
        x = ms_hand_redistribute(h, x, 1, at);
        if (at[1] == 'n')
            h->tensors[x].at[1].split_factor = h->nodes[i].to.split_factor = 2;
        if (i > 0)
            h->nodes[i].from = h->nodes[i - 1].to;
    }
    run_hand(h);
}

static void axes_of_one_rank_change_nothing(void **state)
{
    (void)state;
    ms_hand *h = open_hand("bRR", 2, 1, 1);
    int x = ms_hand_redistribute(h, 0, 2, "bRs");
    x = ms_hand_redistribute(h, x, 2, "bRn");
    x = ms_hand_redistribute(h, x, 2, "bRR");
    x = ms_hand_redistribute(h, x, 2, "bRP");
    ms_hand_redistribute(h, x, 2, "bRR");
    run_hand(h);
}

/* ---- runs without tensor values ---- */

/* A mock backend that counts its calls. */
struct ms_device_rank {
    int num_kernels, num_marks, num_waits, num_transfers;
    ms_transfer last;
    const ms_rank *rank;
    double activation_bytes; /* ledger's activation bytes while a kernel ran */
};

static ms_status note_kernel(ms_ctx *cx, ms_device_rank *device, const ms_op_call *call)
{
    (void)cx;
    (void)call;
    device->num_kernels++;
    device->activation_bytes = device->rank->ledger.now_bytes[MS_MEMORY_ACTIVATIONS];
    return MS_OK;
}

static ms_event note_mark(ms_device_rank *device)
{
    return ++device->num_marks;
}

static ms_status note_start(ms_ctx *cx, ms_device_rank *device,
                            const ms_transfer *transfer, const ms_event *after,
                            int num_after, ms_event *done)
{
    (void)cx;
    assert_int_equal(num_after, 1);
    assert_int_equal(after[0], device->num_marks);
    device->num_transfers++;
    device->last = *transfer;
    *done = 1000 + device->num_transfers;
    return MS_OK;
}

static ms_status note_wait(ms_ctx *cx, ms_device_rank *device, ms_event event)
{
    (void)cx;
    assert_int_equal(event, 1000 + device->num_transfers);
    device->num_waits++;
    return MS_OK;
}

static const ms_backend noting = {.name = "noting",
                                  .kernel = note_kernel,
                                  .mark = note_mark,
                                  .start = note_start,
                                  .wait = note_wait};

typedef struct empty_run {
    ms_plan plan;
    ms_world world;
    ms_device_rank device;
    ms_rank rank;
} empty_run;

static empty_run *open_empty(ms_ctx *cx, const ms_program *program)
{
    empty_run *run = MS_NEW(cx->arena, empty_run);
    run->plan = ms_ranks_plan(program);
    run->world = ms_world_make(cx->arena, &run->plan);
    run->rank = (ms_rank){.cx = cx,
                          .world = &run->world,
                          .place = &run->world.places[0],
                          .backend = &noting,
                          .device = &run->device,
                          .scratch = cx->arena};
    run->device.rank = &run->rank;
    return run;
}

static ms_op_call call_of(ms_arena *arena, const empty_run *run,
                          const ms_program *program, const ms_node *node)
{
    ms_op_call call = {.program = program, .node = node};
    ms_local *locals = MS_NEW_ARRAY(arena, program->num_tensors, ms_local);
    for (int t = 0; t < program->num_tensors; t++)
        locals[t] = ms_world_local(&run->world, program, t, run->rank.place);
    for (int i = 0; i < node->num_in; i++)
        call.in[i] = &locals[node->in[i]];
    for (int i = 0; i < node->num_out; i++)
        call.out[i] = &locals[node->out[i]];
    return call;
}

static const ms_program *small_program(ms_arena *arena, const ms_model *model)
{
    ms_program_key key = ms_case_split_key(MS_BLOCK_LAYER);
    key.cp_method = MS_CP_RING;
    key.sequence_parallel = true;
    key.ep = model->moe.num_experts > 0 ? 4 : 1;
    return ms_program_make(arena, model, &key, MS_SMALL_SEQUENCE, 1, MS_FP32);
}

static void check_last(const ms_transfer *last, const ms_node *node,
                       const ms_block_op *predicted)
{
    assert_ptr_equal(last->predicted, predicted);
    ASSERT_NEAR(last->predicted_s, predicted->all_s, 0);
    ASSERT_TEXT(last->name, node->name);
}

/* Checks that a communicating node becomes one awaited transfer with the predicted
 * seconds, and a local placement change nothing. Returns whether the node
 * communicates. */
static bool check_transfer(ms_ctx *cx, empty_run *run, const ms_program *program,
                           const ms_node *node)
{
    const ms_block_op predicted = {.all_s = 0.25};
    ms_op_call call = call_of(cx->arena, run, program, node);
    ms_node_comm comm;
    bool moves = ms_node_communicates(program, node, &comm);
    call.predicted = moves ? &predicted : NULL;
    run->device = (ms_device_rank){.rank = &run->rank};
    ASSERT_OK(ms_lower(&run->rank, &call), cx);
    ASSERT_INT(run->device.num_transfers, moves);
    ASSERT_INT(run->device.num_waits, moves);
    ASSERT_INT(run->device.num_kernels, 0);
    if (moves)
        check_last(&run->device.last, node, &predicted);
    return moves;
}

static void nodes_without_values_are_single_transfers(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model = ms_small_qwen_moe();
    const ms_program *program = small_program(cx->arena, &model);
    empty_run *run = open_empty(cx, program);
    int num_checked = 0;
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        if (node->op == MS_OP_REDISTRIBUTE || node->op == MS_OP_EXCHANGE)
            num_checked += check_transfer(cx, run, program, node);
    }
    assert_true(num_checked >= 8);
}

/* Checks that a ring attention node allocates the buffer bytes that the memory model
 * has. */
static void check_ring(ms_ctx *cx, empty_run *run, const ms_program *program,
                       const ms_node *node)
{
    ms_op_call call = call_of(cx->arena, run, program, node);
    ASSERT_OK(ms_lower(&run->rank, &call), cx);
    ASSERT_NEAR(run->device.activation_bytes, ms_ring_buffer_bytes(program, node), 0);
    ASSERT_NEAR(run->rank.ledger.now_total_bytes, 0, 0);
}

static void rings_without_values_count_their_buffers(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model = ms_small_llama();
    const ms_program *program = small_program(cx->arena, &model);
    empty_run *run = open_empty(cx, program);
    int num_checked = 0;
    for (int n = 0; n < program->num_nodes; n++) {
        if (!ms_node_is_ring(program, &program->nodes[n]))
            continue;
        check_ring(cx, run, program, &program->nodes[n]);
        num_checked++;
    }
    ASSERT_INT(num_checked, 2);
}

static void check_route(ms_ctx *cx, empty_run *run, const ms_program *program,
                        const ms_node *dispatch)
{
    ms_op_call call = call_of(cx->arena, run, program, dispatch);
    ms_routing *routing = NULL;
    ASSERT_OK(ms_lower_route(&run->rank, cx->arena, &call, &routing), cx);
    assert_non_null(routing);
    ASSERT_INT(routing->num_rows, ms_tensor_local_size(program, dispatch->out[0], 'r'));
    long num_choices = (long)ms_tensor_local_elements(program, dispatch->in[1]);
    for (int i = 0; i < routing->num_sources * routing->num_experts; i++)
        assert_int_equal(routing->counts[i], num_choices / 8);
    assert_int_equal(routing->num_sources, 4);
    assert_int_equal(run->device.num_transfers, 0);
}

static void routes_without_values_are_balanced(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model = ms_small_mixtral();
    const ms_program *program = small_program(cx->arena, &model);
    empty_run *run = open_empty(cx, program);
    int num_checked = 0;
    for (int n = 0; n < program->num_forward_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        if (node->op != MS_OP_EXCHANGE || node->inverse)
            continue;
        check_route(cx, run, program, node);
        num_checked++;
    }
    ASSERT_INT(num_checked, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_along_every_dim),
        cmocka_unit_test(changes_of_strided_shards),
        cmocka_unit_test(axes_of_one_rank_change_nothing),
        cmocka_unit_test(nodes_without_values_are_single_transfers),
        cmocka_unit_test(rings_without_values_count_their_buffers),
        cmocka_unit_test(routes_without_values_are_balanced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
