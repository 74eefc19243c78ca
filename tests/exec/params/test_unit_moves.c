/* Tests of parameter units: buffers for gathered parameters, tensors that a file lacks,
 * and gathers and reductions on the virtual clock of the null backend. */
#include "tests/support/unit_case.h"

#include "tests/test.h"

/* ---- buffers for gathered parameters ---- */

/* Gathers all units at once, and the first one twice, as where a forward and a backward
 * run as a pair. */
static ms_status hold_all(ms_held *h)
{
    double before_bytes = h->rank.ledger.now_total_bytes;
    for (int i = 0; i < h->num; i++)
        MS_TRY(ms_unit_initialise(&h->rank, h->units[i], &h->of->whole->initial));
    for (int i = 0; i <= h->num; i++) {
        ms_event done;
        MS_TRY(ms_unit_gather(&h->rank, h->units[i % h->num], NULL, 0, &done));
        MS_TRY(ms_held_wait(h, done));
    }
    bool rises = h->rank.ledger.now_total_bytes > before_bytes;
    ms_unit_release(&h->rank, h->units[0]);
    for (int i = 0; i < h->num; i++) {
        MS_TRY(ms_held_check_weights(h, i));
        ms_unit_release(&h->rank, h->units[i]);
    }
    if (!rises || h->rank.ledger.now_total_bytes != before_bytes)
        return ms_fail(h->rank.cx, MS_ECHECK, MS_NOWHERE, "buffers are not counted");
    return MS_OK;
}

static ms_status hold_main(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    ms_held h;
    MS_TRY(ms_held_open(&h, state, cx, device, rank, &ms_backend_loop));
    MS_TRY(hold_all(&h));
    return ms_held_close(&h);
}

static void more_units_than_rooms_are_counted(void **state)
{
    (void)state;
    static const ms_unit_layout l = {1, 1, 2, 1, 1, 1, 1, .twins = false};
    ms_ctx *cx = test_cx();
    ms_model llama = ms_unit_case_model(cx->arena, ms_small_llama, false, 32);
    ms_unit_case *s = ms_unit_case_open(cx, &llama, &l, MS_ZERO_3);
    ASSERT_OK(ms_unit_case_run(cx, s, hold_main), cx);
    ms_workload_close(s->workload);
}

/* ---- loading ---- */

static const double *find_no_norm(void *state, const char *name, int num_dims,
                                  const long *shape)
{
    return strstr(name, "layers.1.input_layernorm") != NULL
               ? NULL
               : ms_whole_find_initial(state, name, num_dims, shape);
}

static ms_status load_main(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    ms_held h;
    ms_status status = ms_held_open(&h, state, cx, device, rank, &ms_backend_loop);
    for (int i = 0; i < h.num && status == MS_OK; i++)
        status = ms_unit_load(&h.rank, h.units[i], find_no_norm, h.of->whole);
    ms_status closed = ms_held_close(&h);
    return status != MS_OK ? status : closed;
}

static void a_missing_tensor_is_named(void **state)
{
    (void)state;
    static const ms_unit_layout l = {1, 1, 1, 1, 1, 1, 1, .twins = false};
    ms_ctx *cx = test_cx();
    ms_model llama = ms_unit_case_model(cx->arena, ms_small_llama, false, 32);
    ms_unit_case *s = ms_unit_case_open(cx, &llama, &l, MS_ZERO_0);
    ASSERT_INT(ms_unit_case_run(cx, s, load_main), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx),
                           "no tensor \"model.layers.1.input_layernorm.weight\" of "
                           "shape 16"));
    ms_workload_close(s->workload);
}

/* ---- virtual clock ---- */

struct ms_device_rank {
    int num_started;
    double predicted_s;
};

static ms_event clock_mark(ms_device_rank *device)
{
    return device->num_started;
}

static ms_status clock_start(ms_ctx *cx, ms_device_rank *device,
                             const ms_transfer *transfer, const ms_event *after,
                             int num_after, ms_event *done)
{
    (void)cx, (void)after, (void)num_after;
    assert_true(transfer->predicted_s > 0.0);
    device->predicted_s += transfer->predicted_s;
    *done = ++device->num_started;
    return MS_OK;
}

static const ms_backend clock_only = {
    .name = "clock", .mark = clock_mark, .start = clock_start};

/* Checks that the seconds predicted for transfers since the last call are those of
 * `moves`. */
static void check_seconds(ms_held *h, const ms_state_move *moves, int num)
{
    double want_s = 0.0;
    for (int i = 0; i < num; i++)
        want_s += moves[i].seconds;
    ASSERT_NEAR(h->rank.device->predicted_s, want_s, 0);
    h->rank.device->predicted_s = 0.0;
}

static void check_moves(ms_held *h, int at)
{
    ms_event done;
    ms_param_unit *unit = h->units[at];
    const ms_block_ops *ops = h->parts[at];
    ms_sharding sharding = h->rank.planned->sharding;
    bool whole = sharding == MS_ZERO_0, by_unit = ms_shards_grads(sharding);
    ASSERT_OK(ms_unit_gather(&h->rank, unit, NULL, 0, &done), h->rank.cx);
    check_seconds(h, ops->gather, whole ? 0 : 2);
    ms_unit_release(&h->rank, unit);
    ASSERT_OK(ms_unit_begin_gradients(&h->rank, unit), h->rank.cx);
    ASSERT_OK(ms_unit_reduce(&h->rank, unit, NULL, 0, &done), h->rank.cx);
    check_seconds(h, ops->reduce, by_unit ? 2 : 0);
    ASSERT_OK(ms_unit_end_reduction(&h->rank, unit), h->rank.cx);
    ASSERT_OK(ms_unit_reduce_last(&h->rank, unit, NULL, 0, &done), h->rank.cx);
    check_seconds(h, whole ? ops->all_reduce : ops->reduce, by_unit ? 0 : 2);
    ASSERT_OK(ms_unit_replicate(&h->rank, unit, NULL, 0, &done), h->rank.cx);
    check_seconds(h, &ops->replicate, whole ? 0 : 1);
    ASSERT_OK(ms_unit_reduce_over_tp(&h->rank, unit, NULL, 0, &done), h->rank.cx);
    check_seconds(h, &ops->tp_sync, 1);
}

static void predictions_are_spent_once(void **state)
{
    (void)state;
    static const ms_unit_layout l = {1, 2, 2, 1, 2, 2, 1, .twins = false};
    ms_ctx *cx = test_cx();
    ms_model mixtral = ms_unit_case_model(cx->arena, ms_small_mixtral, true, 32);
    for (int sharding = 0; sharding < MS_NUM_SHARDINGS; sharding++) {
        ms_unit_case *s = ms_unit_case_open(cx, &mixtral, &l, (ms_sharding)sharding);
        ms_device_rank device = {0};
        ms_held h;
        ASSERT_OK(ms_held_open(&h, s, cx, &device, 0, &clock_only), cx);
        for (int at = 0; at < h.num; at++)
            check_moves(&h, at);
        assert_true(device.num_started > 0);
        ASSERT_OK(ms_held_close(&h), cx);
        ms_workload_close(s->workload);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_units_than_rooms_are_counted),
        cmocka_unit_test(a_missing_tensor_is_named),
        cmocka_unit_test(predictions_are_spent_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
