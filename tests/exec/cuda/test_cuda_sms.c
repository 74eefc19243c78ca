/* Tests of the fake GPU's multiprocessors and hardware queues (tests/support/cuda_fake.h),
 * and of the bounds that keep the kernels of communicators from waiting for each other for
 * ever (exec/cuda/cuda_channels.h). */
#include "tests/support/cuda_fake.h"

#include "base/rng.h"
#include "tests/test.h"

#include <pthread.h>

static const ms_cuda_driver *const driver = &ms_cuda_fake_driver;

#define NUM_RANKS    4
#define NUM_COMMS    4 /* two of all ranks, one of each half, one more of each half */
#define NUM_SEEDS    TEST_CASES(200, 40)
#define COUNT        2
#define NUM_OF_WORLD 2

typedef struct one_rank {
    pthread_t thread;
    ms_ctx *cx;
    ms_cuda_id id;
    int rank, max_ctas;
    bool shares;
    ms_cuda_device *device;
    ms_cuda_stream *compute, *stream[NUM_COMMS];
    ms_cuda_comm *world, *parent, *comm[NUM_COMMS];
    double *memory; /* (2 NUM_RANKS COUNT NUM_COMMS) */
} one_rank;

static void *open_rank(void *argument)
{
    one_rank *r = argument;
    const ms_cuda_split all = {.key = r->rank, .is_parent = r->shares};
    bool is_open = driver->open(r->cx, r->rank, &r->device) == MS_OK &&
                   driver->open_stream(r->cx, r->device, false, &r->compute) == MS_OK &&
                   driver->open_comm(r->cx, r->device, &r->id, r->rank, NUM_RANKS,
                                     &r->world) == MS_OK &&
                   driver->split(r->cx, r->world, &all, &r->parent) == MS_OK;
    for (int i = 0; i < NUM_COMMS && is_open; i++) {
        const ms_cuda_split how = {i < NUM_OF_WORLD ? 0 : r->rank / 2, r->rank,
                                   r->max_ctas, false};
        is_open = driver->open_stream(r->cx, r->device, true, &r->stream[i]) == MS_OK &&
                  driver->split(r->cx, r->parent, &how, &r->comm[i]) == MS_OK;
    }
    r->memory =
        driver->allocate(r->device, 2UL * NUM_RANKS * COUNT * NUM_COMMS * sizeof(double));
    if (!is_open || r->memory == NULL)
        abort();
    return NULL;
}

static void open_ranks(one_rank ranks[NUM_RANKS], const ms_cuda_fake_options *options,
                       int max_ctas, bool shares)
{
    ms_cuda_fake_options all = *options;
    ms_cuda_id id;
    ms_ctx *cx = test_cx();
    all.num_devices = NUM_RANKS;
    all.record_defects = true;
    ms_cuda_fake_begin(&all);
    ASSERT_OK(driver->make_id(cx, &id), cx);
    for (int i = 0; i < NUM_RANKS; i++) {
        ranks[i] = (one_rank){
            .cx = test_cx(), .id = id, .rank = i, .max_ctas = max_ctas, .shares = shares};
        ASSERT_INT(pthread_create(&ranks[i].thread, NULL, open_rank, &ranks[i]), 0);
    }
    for (int i = 0; i < NUM_RANKS; i++)
        pthread_join(ranks[i].thread, NULL);
    ASSERT_INT(ms_cuda_fake_num_defects(), 0);
    ms_cuda_fake_alone();
}

/* Whether all work of all ranks ends. */
static bool work_ends(one_rank ranks[NUM_RANKS])
{
    bool ends = true;
    for (int i = 0; i < NUM_RANKS && ends; i++) {
        driver->enter(ranks[i].device);
        ends = driver->finish(ranks[i].cx, ranks[i].compute) == MS_OK;
        for (int s = 0; s < NUM_COMMS && ends; s++)
            ends = driver->finish(ranks[i].cx, ranks[i].stream[s]) == MS_OK;
    }
    return ends && ms_cuda_fake_num_defects() == 0;
}

static void collective(one_rank *r, int which)
{
    double *at = r->memory + 2 * NUM_RANKS * COUNT * which;
    const ms_cuda_collective gather = {.kind = MS_CUDA_ALL_GATHER,
                                       .scalar = MS_SCALAR_FP64,
                                       .send = at,
                                       .receive = at + NUM_RANKS * COUNT,
                                       .count = COUNT};
    driver->enter(r->device);
    ASSERT_OK(driver->communicate(r->cx, r->comm[which], r->stream[which], &gather, 1),
              r->cx);
}

static void nothing(void *state)
{
    free(state);
}

static void compute(one_rank *r)
{
    driver->enter(r->device);
    ms_cuda_fake_enqueue(r->compute, nothing, malloc(1));
}

/* ---- two communicators ---- */

typedef void give_work(one_rank ranks[NUM_RANKS]);

static void orders_differ(one_rank ranks[NUM_RANKS])
{
    for (int i = 0; i < NUM_RANKS; i++) {
        compute(&ranks[i]);
        collective(&ranks[i], i % 2);
        compute(&ranks[i]);
        collective(&ranks[i], 1 - i % 2);
    }
}

static void orders_are_equal(one_rank ranks[NUM_RANKS])
{
    for (int i = 0; i < NUM_RANKS; i++) {
        compute(&ranks[i]);
        collective(&ranks[i], 0);
        compute(&ranks[i]);
        collective(&ranks[i], 1);
    }
}

/* Number of seeds, of NUM_SEEDS, with which the work never ends. */
static int num_deadlocks(give_work *give, ms_cuda_fake_options options, int max_ctas,
                         bool shares)
{
    int num = 0;
    for (int seed = 0; seed < NUM_SEEDS; seed++) {
        one_rank ranks[NUM_RANKS];
        options.seed = (uint64_t)seed;
        open_ranks(ranks, &options, max_ctas, shares);
        give(ranks);
        num += !work_ends(ranks);
        ms_cuda_fake_end(); /* objects still open are defects, only recorded */
    }
    return num;
}

static void kernels_that_do_not_fit_wait_for_each_other(void **state)
{
    (void)state;
    /* two kernels of 3 blocks: 4 multiprocessors are too few, 6 are enough */
    assert_true(
        num_deadlocks(orders_differ, (ms_cuda_fake_options){.num_sms = 4}, 3, false) > 0);
    ASSERT_INT(
        num_deadlocks(orders_differ, (ms_cuda_fake_options){.num_sms = 6}, 3, false), 0);
    /* one queue keeps the order: equal orders end however few multiprocessors there are */
    const ms_cuda_fake_options one_queue = {.num_sms = 3, .num_connections = 1};
    ASSERT_INT(num_deadlocks(orders_are_equal, one_queue, 3, false), 0);
    ASSERT_INT(num_deadlocks(orders_differ, one_queue, 3, false), NUM_SEEDS);
    /* a kernel that never fits */
    ASSERT_INT(
        num_deadlocks(orders_are_equal, (ms_cuda_fake_options){.num_sms = 2}, 3, false),
        NUM_SEEDS);
}

/* Communicators that share buffers run in the order of the calls, on each rank. */
static void shared_buffers_need_one_order(void **state)
{
    (void)state;
    const ms_cuda_fake_options enough = {.num_sms = 132};
    ASSERT_INT(num_deadlocks(orders_are_equal, enough, 3, true), 0);
    ASSERT_INT(num_deadlocks(orders_differ, enough, 3, true), NUM_SEEDS);
}

/* ---- messages ---- */

static void message(one_rank *r, int which, bool sends)
{
    double *at = r->memory + 2 * NUM_RANKS * COUNT * which;
    ms_cuda_collective m = {.kind = sends ? MS_CUDA_SEND : MS_CUDA_RECEIVE,
                            .scalar = MS_SCALAR_FP64,
                            .peer = r->rank % 2 == 0,
                            .count = COUNT};
    if (sends)
        m.send = at;
    else
        m.receive = at + NUM_RANKS * COUNT;
    driver->enter(r->device);
    ASSERT_OK(driver->communicate(r->cx, r->comm[which], r->stream[which], &m, 1), r->cx);
}

/* Both ranks of a half send twice before they receive: each direction has a communicator
 * and a stream. */
static void cross(one_rank ranks[NUM_RANKS])
{
    for (int i = 0; i < NUM_RANKS; i++) {
        int out = NUM_OF_WORLD + i % 2, in = NUM_OF_WORLD + 1 - i % 2;
        for (int k = 0; k < 4; k++)
            message(&ranks[i], k < 2 ? out : in, k < 2);
    }
}

static void sends_in_one_queue_wait_for_receives_behind_them(void **state)
{
    (void)state;
    ms_cuda_fake_options options = {.num_sms = 8, .num_connections = 1};
    ASSERT_INT(num_deadlocks(cross, options, 2, false), NUM_SEEDS);
    options.num_connections = 1 + NUM_COMMS;
    ASSERT_INT(num_deadlocks(cross, options, 2, false), 0);
}

/* ---- random programs ---- */

/* Gives every rank the same 30 collectives of its communicators, in any order that keeps
 * each stream's, with kernels of compute between them. */
static void random_orders(one_rank ranks[NUM_RANKS])
{
    const long num_each = 30 / NUM_COMMS;
    static uint64_t seed;
    ms_rng rng = ms_rng_seed(++seed);
    for (int i = 0; i < NUM_RANKS; i++) {
        long left[NUM_COMMS] = {num_each, num_each, num_each, num_each};
        for (long n = num_each * NUM_COMMS; n > 0; n--) {
            int which = (int)ms_rng_below(&rng, NUM_COMMS);
            while (left[which] == 0)
                which = (which + 1) % NUM_COMMS;
            left[which]--;
            if (ms_rng_below(&rng, 2) == 0)
                compute(&ranks[i]);
            collective(&ranks[i], which);
        }
    }
}

/* Whatever the orders of launches on each rank: they end if the kernels of all streams fit
 * on the GPU beside one block of compute, and each stream has a queue. */
static void random_orders_end_where_all_kernels_fit(void **state)
{
    (void)state;
    ms_cuda_fake_options options = {.num_sms = NUM_COMMS * 3 + 1,
                                    .num_connections = 1 + NUM_COMMS};
    ASSERT_INT(num_deadlocks(random_orders, options, 3, false), 0);
    options.num_sms = NUM_COMMS * 3 / 2;
    assert_true(num_deadlocks(random_orders, options, 3, false) > 0);
    options.num_sms = NUM_COMMS * 3 + 1;
    options.num_connections = NUM_COMMS / 2;
    assert_true(num_deadlocks(random_orders, options, 3, false) > 0);
}

/* ---- compute ---- */

typedef struct noted {
    char *log;
    char letter;
} noted;

static void note(void *state)
{
    const noted *n = state;
    n->log[strlen(n->log)] = n->letter;
    free(state);
}

static void launch(ms_cuda_stream *stream, char *log, char letter)
{
    noted *n = malloc(sizeof *n);
    *n = (noted){log, letter};
    ms_cuda_fake_enqueue(stream, note, n);
}

/* While a kernel holds the GPU, others are given to both streams: the urgent one's is
 * placed first. Without limits the seeds draw both orders. */
static void urgent_streams_are_placed_first(void **state)
{
    (void)state;
    for (int num_sms = 0; num_sms <= 1; num_sms++) {
        int num_urgent_first = 0;
        for (int seed = 0; seed < NUM_SEEDS; seed++) {
            ms_ctx *cx = test_cx();
            char log[8] = "";
            ms_cuda_device *device;
            ms_cuda_stream *streams[2];
            ms_cuda_fake_begin(
                &(ms_cuda_fake_options){.seed = (uint64_t)seed, .num_sms = num_sms});
            ASSERT_OK(driver->open(cx, 0, &device), cx);
            for (int s = 0; s < 2; s++)
                ASSERT_OK(driver->open_stream(cx, device, s == 1, &streams[s]), cx);
            ASSERT_INT(ms_cuda_fake_num_urgent(), 1);
            launch(streams[0], log, 'a');
            launch(streams[0], log, 'b');
            launch(streams[1], log, 'u');
            for (int s = 0; s < 2; s++)
                ASSERT_OK(driver->finish(cx, streams[s]), cx);
            ASSERT_INT(strlen(log), 3);
            num_urgent_first += log[2] != 'u';
            for (int s = 0; s < 2; s++)
                driver->close_stream(streams[s]);
            driver->close(device);
            ms_cuda_fake_end();
        }
        assert_true(num_sms > 0 ? num_urgent_first == NUM_SEEDS
                                : num_urgent_first < NUM_SEEDS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_that_do_not_fit_wait_for_each_other),
        cmocka_unit_test(shared_buffers_need_one_order),
        cmocka_unit_test(sends_in_one_queue_wait_for_receives_behind_them),
        cmocka_unit_test(random_orders_end_where_all_kernels_fit),
        cmocka_unit_test(urgent_streams_are_placed_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
