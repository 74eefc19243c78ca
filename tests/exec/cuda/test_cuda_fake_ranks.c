/* Tests of the fake GPU's communicators (tests/support/cuda_fake.h), with a thread for
 * each rank. */
#include "tests/support/cuda_fake.h"
#include "tests/test.h"

#include <pthread.h>
#include <sched.h>

static const ms_cuda_driver *const driver = &ms_cuda_fake_driver;

#define NUM_RANKS 4

typedef struct rank_thread rank_thread;
typedef void rank_body(rank_thread *rank, ms_cuda_comm *world);

struct rank_thread {
    pthread_t thread;
    /* whether gather_or_abort waits until its communicator reports a failure */
    bool awaits_failure;
    ms_ctx *cx;
    ms_cuda_id id;
    int rank;
    rank_body *body;
    ms_cuda_device *device;
    ms_cuda_stream *stream;
    double got[2 * NUM_RANKS];
    ms_status status;
};

static void *run_rank(void *argument)
{
    rank_thread *r = argument;
    ms_cuda_comm *world;
    if (driver->open(r->cx, r->rank % 2, &r->device) != MS_OK ||
        driver->open_stream(r->cx, r->device, false, &r->stream) != MS_OK ||
        driver->open_comm(r->cx, r->device, &r->id, r->rank, NUM_RANKS, &world) != MS_OK)
        abort();
    r->body(r, world);
    driver->close_comm(world);
    driver->close_stream(r->stream);
    driver->close(r->device);
    return NULL;
}

/* Runs `body` on a new fake device in one thread per rank. */
static void run_ranks(rank_thread ranks[NUM_RANKS], rank_body *body,
                      const ms_cuda_fake_options *options)
{
    ms_cuda_fake_options all = *options;
    all.num_devices = 2;
    ms_cuda_fake_begin(&all);
    ms_cuda_id id;
    ms_ctx *cx = test_cx();
    ASSERT_OK(driver->make_id(cx, &id), cx);
    for (int i = 0; i < NUM_RANKS; i++) {
        ranks[i] = (rank_thread){.cx = test_cx(), .id = id, .rank = i, .body = body};
    }
    for (int i = 0; i < NUM_RANKS; i++)
        ASSERT_INT(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]), 0);
    for (int i = 0; i < NUM_RANKS; i++)
        pthread_join(ranks[i].thread, NULL);
    ms_cuda_fake_end();
}

/* Runs collective `c` of this rank: sends 2 NUM_RANKS numbers, 100 rank + i, and copies
 * what it receives to r->got. */
static ms_status collective(rank_thread *r, ms_cuda_comm *comm, ms_cuda_collective c,
                            int size)
{
    double *x = driver->allocate(r->device, 4 * NUM_RANKS * sizeof *x);
    double sent[2 * NUM_RANKS];
    for (int i = 0; i < 2 * NUM_RANKS; i++)
        sent[i] = 100 * r->rank + i;
    driver->copy(r->cx, r->stream, x, sent, sizeof sent, MS_CUDA_TO_DEVICE);
    c.scalar = MS_SCALAR_FP64;
    c.send = x;
    c.receive = x + 2 * NUM_RANKS;
    ms_status status = driver->communicate(r->cx, comm, r->stream, &c, 1);
    if (status == MS_OK)
        status = driver->finish(r->cx, r->stream);
    if (status == MS_OK)
        status = driver->copy(r->cx, r->stream, r->got, c.receive,
                              (size_t)(c.count * size) * sizeof *x, MS_CUDA_TO_HOST);
    driver->release(r->device, x);
    return status;
}

static void gather(rank_thread *r, ms_cuda_comm *world)
{
    r->status =
        collective(r, world, (ms_cuda_collective){.kind = MS_CUDA_ALL_GATHER, .count = 2},
                   NUM_RANKS);
}

static void scatter(rank_thread *r, ms_cuda_comm *world)
{
    r->status = collective(
        r, world, (ms_cuda_collective){.kind = MS_CUDA_REDUCE_SCATTER, .count = 2}, 1);
}

static void reduce_maximum(rank_thread *r, ms_cuda_comm *world)
{
    r->status = collective(
        r, world,
        (ms_cuda_collective){.kind = MS_CUDA_ALL_REDUCE, .maximum = true, .count = 3}, 1);
}

/* Splits ranks by parity, in descending order of rank, and gathers within each half. */
static void gather_of_part(rank_thread *r, ms_cuda_comm *world)
{
    ms_cuda_comm *part = NULL, *none = NULL;
    if (driver->split(r->cx, world, &(ms_cuda_split){.color = r->rank == 0 ? -1 : 5},
                      &none) != MS_OK ||
        (r->rank == 0) != (none == NULL) ||
        driver->split(r->cx, world, &(ms_cuda_split){r->rank % 2, -r->rank, 0, false},
                      &part) != MS_OK)
        abort();
    r->status = collective(
        r, part, (ms_cuda_collective){.kind = MS_CUDA_ALL_GATHER, .count = 1}, 2);
    driver->close_comm(part);
    driver->close_comm(none);
}

static void collectives_are_those_of_all_ranks(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 5; seed++) {
        rank_thread ranks[NUM_RANKS];
        const ms_cuda_fake_options options = {.seed = seed};
        run_ranks(ranks, gather, &options);
        for (int r = 0; r < NUM_RANKS; r++)
            for (int i = 0; i < 2 * NUM_RANKS; i++)
                ASSERT_NEAR(ranks[r].got[i], 100 * (i / 2) + i % 2, 0);
        run_ranks(ranks, scatter, &options);
        for (int r = 0; r < NUM_RANKS; r++)
            for (int i = 0; i < 2; i++)
                ASSERT_NEAR(ranks[r].got[i], 600 + 4 * (2 * r + i), 0);
        run_ranks(ranks, reduce_maximum, &options);
        for (int r = 0; r < NUM_RANKS; r++)
            for (int i = 0; i < 3; i++)
                ASSERT_NEAR(ranks[r].got[i], 300 + i, 0);
        run_ranks(ranks, gather_of_part, &options);
        for (int r = 0; r < NUM_RANKS; r++)
            for (int i = 0; i < 2; i++)
                ASSERT_NEAR(ranks[r].got[i], 100 * (i == 0 ? 2 + r % 2 : r % 2), 0);
    }
}

/* Sends around the ring of ranks: send and receive in one call, then in the other
 * direction in two calls. */
static void pass_on(rank_thread *r, ms_cuda_comm *world)
{
    int next = (r->rank + 1) % NUM_RANKS, before = (r->rank + NUM_RANKS - 1) % NUM_RANKS;
    double *x = driver->allocate(r->device, 3 * sizeof *x), mine = r->rank;
    driver->copy(r->cx, r->stream, x, &mine, sizeof mine, MS_CUDA_TO_DEVICE);
    ms_cuda_collective both[2] = {
        {.kind = MS_CUDA_SEND, .peer = next, .send = x, .count = 1},
        {.kind = MS_CUDA_RECEIVE, .peer = before, .receive = x + 1, .count = 1}};
    both[0].scalar = both[1].scalar = MS_SCALAR_FP64;
    r->status = driver->communicate(r->cx, world, r->stream, both, 2);
    both[0].peer = before;
    both[1].peer = next;
    both[1].receive = x + 2;
    int first = r->rank % 2;
    driver->communicate(r->cx, world, r->stream, &both[first], 1);
    driver->communicate(r->cx, world, r->stream, &both[1 - first], 1);
    driver->copy(r->cx, r->stream, r->got, x, 3 * sizeof *x, MS_CUDA_TO_HOST);
    driver->release(r->device, x);
}

static void sends_meet_their_receives(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        rank_thread ranks[NUM_RANKS];
        run_ranks(ranks, pass_on, &(ms_cuda_fake_options){.seed = seed});
        for (int r = 0; r < NUM_RANKS; r++) {
            ASSERT_NEAR(ranks[r].got[1], (r + NUM_RANKS - 1) % NUM_RANKS, 0);
            ASSERT_NEAR(ranks[r].got[2], (r + 1) % NUM_RANKS, 0);
        }
    }
}

static void gather_other_counts(rank_thread *r, ms_cuda_comm *world)
{
    ms_cuda_collective c = {
        .kind = MS_CUDA_ALL_GATHER, .scalar = MS_SCALAR_BYTE, .count = 1 + r->rank / 3};
    unsigned char *x = driver->allocate(r->device, 64);
    c.send = x;
    c.receive = x + 32;
    driver->communicate(r->cx, world, r->stream, &c, 1);
    while (driver->check_comm(r->cx, world) == MS_OK) {
        bool happened;
        ms_cuda_event *event;
        driver->open_event(r->cx, r->device, true, &event);
        driver->record(r->cx, event, r->stream);
        driver->query(r->cx, event, &happened);
        driver->close_event(event);
    }
    driver->abort_comm(world);
    r->status = driver->finish(r->cx, r->stream);
    driver->release(r->device, x);
}

static void collectives_that_differ_are_found(void **state)
{
    (void)state;
    rank_thread ranks[NUM_RANKS];
    run_ranks(ranks, gather_other_counts,
              &(ms_cuda_fake_options){.record_defects = true});
    ASSERT_INT(ms_cuda_fake_num_defects(), 1);
    assert_non_null(strstr(ms_cuda_fake_defect(), "counts 1 and 2"));
}

/* Starts a gather that never ends and queries it 2000 times, or until the communicator
 * reports an expected failure; then aborts, so that the other ranks can end. */
static void gather_or_abort(rank_thread *r, ms_cuda_comm *world)
{
    ms_cuda_collective c = {
        .kind = MS_CUDA_ALL_GATHER, .scalar = MS_SCALAR_BYTE, .count = 1};
    unsigned char *x = driver->allocate(r->device, 64);
    ms_cuda_event *event;
    bool happened = false;
    c.send = x;
    c.receive = x + 32;
    driver->open_event(r->cx, r->device, true, &event);
    driver->communicate(r->cx, world, r->stream, &c, 1);
    driver->record(r->cx, event, r->stream);
    ms_status found = MS_OK;
    for (long i = 0; i < 2000 || (r->awaits_failure && found == MS_OK && i < 10000000);
         i++) {
        driver->query(r->cx, event, &happened);
        if (found == MS_OK)
            found = driver->check_comm(r->cx, world);
        sched_yield();
    }
    r->got[0] = happened;
    r->got[1] = found == MS_EIO;
    driver->abort_comm(world);
    r->status = driver->finish(r->cx, r->stream);
    driver->close_event(event);
    driver->release(r->device, x);
}

static void a_lost_rank_is_waited_for_until_the_abort(void **state)
{
    (void)state;
    rank_thread ranks[NUM_RANKS];
    for (int failure = 0; failure < 2; failure++) {
        ms_cuda_fake_begin(&(ms_cuda_fake_options){.num_devices = 2});
        ms_cuda_id id;
        ms_ctx *cx = test_cx();
        ASSERT_OK(driver->make_id(cx, &id), cx);
        if (failure == 0)
            ms_cuda_fake_lose_rank(2);
        else
            ms_cuda_fake_fail_collective(1);
        for (int i = 0; i < NUM_RANKS; i++) {
            ranks[i] = (rank_thread){.cx = test_cx(),
                                     .id = id,
                                     .rank = i,
                                     .body = gather_or_abort,
                                     .awaits_failure = failure == 1};
            pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]);
        }
        for (int i = 0; i < NUM_RANKS; i++) {
            pthread_join(ranks[i].thread, NULL);
            ASSERT_NEAR(ranks[i].got[0], 0, 0);
            ASSERT_NEAR(ranks[i].got[1], failure, 0);
            ASSERT_INT(ranks[i].status, MS_OK);
        }
        ms_cuda_fake_end();
    }
}

static void a_rank_that_never_comes_is_told(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_cuda_fake_begin(&(ms_cuda_fake_options){.stuck_seconds = 0.05});
    ms_cuda_device *device;
    ms_cuda_id id;
    ms_cuda_comm *comm = NULL;
    ASSERT_OK(driver->open(cx, 0, &device), cx);
    ASSERT_OK(driver->make_id(cx, &id), cx);
    ASSERT_INT(driver->open_comm(cx, device, &id, 0, 2, &comm), MS_EIO);
    assert_null(comm);
    driver->close(device);
    ms_cuda_fake_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_are_those_of_all_ranks),
        cmocka_unit_test(sends_meet_their_receives),
        cmocka_unit_test(collectives_that_differ_are_found),
        cmocka_unit_test(a_lost_rank_is_waited_for_until_the_abort),
        cmocka_unit_test(a_rank_that_never_comes_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
