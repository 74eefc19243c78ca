#include "tests/support/transfer_checks.h"

#include <string.h>

#define MOST  128 /* greatest number of ranks */
#define COUNT 3

#define NUM_BUFFERS (MS_NUM_TRAFFIC_GROUPS + 1)

/* Memory for COUNT numbers of every rank: the rank's device memory, or (type long) host
 * memory. */
typedef struct numbers {
    void *at;
} numbers;

/* State of one rank that checks transfers. */
typedef struct checker {
    ms_ctx *cx;
    const ms_backend_job *job;
    ms_device_rank *device;
    long rank;
    int group;
    const ms_members *members;
    ms_scalar scalar;
    numbers buffers[NUM_BUFFERS];
    long longs[NUM_BUFFERS][MOST * COUNT];
} checker;

ms_plan ms_check_plan(const long size[MS_NUM_PLAN_AXES], long ep)
{
    ms_plan plan = ms_plan_default(1);
    plan.gpus = 1;
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++) {
        plan.size[i] = size[i];
        plan.gpus *= size[i];
    }
    plan.ep = ep;
    return plan;
}

/* ---- numbers of the element's type ---- */

static bool is_on_host(const checker *c)
{
    return c->scalar == MS_SCALAR_LONG;
}

static numbers *buffer(checker *c, int which)
{
    c->buffers[which].at = is_on_host(c) ? c->longs[which] : c->buffers[which].at;
    return &c->buffers[which];
}

static ms_status set(const checker *c, const numbers *to, const double *values)
{
    for (long i = 0; i < MOST * COUNT && is_on_host(c); i++)
        ((long *)to->at)[i] = (long)values[i];
    return is_on_host(c) ? MS_OK
                         : c->job->backend->arrays->write(c->cx, c->device, c->scalar,
                                                          to->at, values, MOST * COUNT);
}

static ms_status get(const checker *c, const numbers *from, double *values)
{
    for (long i = 0; i < MOST * COUNT && is_on_host(c); i++)
        values[i] = (double)((long *)from->at)[i];
    return is_on_host(c) ? MS_OK
                         : c->job->backend->arrays->read(c->cx, c->device, c->scalar,
                                                         values, from->at, MOST * COUNT);
}

/* Number i that a rank contributes: sums of them are exact in every type (bf16 is exact
 * up to 256). */
static double given(const checker *c, long rank, long i)
{
    if (c->scalar == MS_SCALAR_BF16)
        return (double)((rank * 5 + i) % 7) - 2;
    return (double)(rank * 37 % 50 * 10 + i) - 100;
}

/* A value that no rank sends. */
static double nothing(const checker *c)
{
    return c->scalar == MS_SCALAR_BF16 ? -77 : -7777;
}

static void make_values(const checker *c, double *values, long count)
{
    for (long i = 0; i < MOST * COUNT; i++)
        values[i] = i < count ? given(c, c->rank, i) : nothing(c);
}

static ms_status fill(const checker *c, const numbers *to, long count)
{
    double values[MOST * COUNT];
    make_values(c, values, count);
    return set(c, to, values);
}

static ms_status expect(const checker *c, const char *what, double got, long i,
                        double want)
{
    if (got == want)
        return MS_OK;
    return ms_fail(c->cx, MS_ECHECK, MS_NOWHERE,
                   "%s of %s over group %d of %d: element %ld is %g, not %g", what,
                   ms_scalar_names[c->scalar], c->group, c->members->size, i, got, want);
}

/* ---- transfers ---- */

static ms_transfer transfer_of(const checker *c, ms_transfer_kind kind, const char *name)
{
    return (ms_transfer){.kind = (unsigned char)kind,
                         .scalar = (unsigned char)c->scalar,
                         .on_host = is_on_host(c),
                         .group = (unsigned char)c->group,
                         .name = name,
                         .count = COUNT};
}

static ms_status start(const checker *c, const ms_transfer *t, ms_event *done)
{
    return c->job->backend->start(c->cx, c->device, t, NULL, 0, done);
}

static ms_status wait(const checker *c, ms_event event)
{
    return c->job->backend->wait(c->cx, c->device, event);
}

static ms_status carry_out(const checker *c, const ms_transfer *t)
{
    ms_event done;
    MS_TRY(start(c, t, &done));
    return wait(c, done);
}

static ms_status check_all_gather(checker *c)
{
    const numbers *mine = buffer(c, 0), *all = buffer(c, 1);
    double got[MOST * COUNT];
    MS_TRY(fill(c, mine, COUNT));
    MS_TRY(fill(c, all, 0));
    ms_transfer t = transfer_of(c, MS_TRANSFER_ALL_GATHER, "gathered");
    t.send = mine->at;
    t.receive = all->at;
    MS_TRY(carry_out(c, &t));
    MS_TRY(get(c, all, got));
    long at = 0;
    for (int m = 0; m < c->members->size; m++)
        for (long i = 0; i < COUNT; i++, at++)
            MS_TRY(
                expect(c, "all-gather", got[at], at, given(c, c->members->ranks[m], i)));
    return expect(c, "all-gather", got[at], at, nothing(c));
}

static double combined(const checker *c, long i, bool maximum)
{
    double all = maximum ? -1e9 : 0;
    for (int m = 0; m < c->members->size; m++) {
        double one = given(c, c->members->ranks[m], i);
        all = maximum ? (one > all ? one : all) : all + one;
    }
    return all;
}

static ms_status check_reduce_scatter(checker *c)
{
    const numbers *mine = buffer(c, 0), *part = buffer(c, 1);
    double got[MOST * COUNT];
    MS_TRY(fill(c, mine, COUNT * c->members->size));
    MS_TRY(fill(c, part, 0));
    ms_transfer t = transfer_of(c, MS_TRANSFER_REDUCE_SCATTER, "scattered");
    t.send = mine->at;
    t.receive = part->at;
    MS_TRY(carry_out(c, &t));
    MS_TRY(get(c, part, got));
    for (long i = 0; i < COUNT; i++)
        MS_TRY(expect(c, "reduce-scatter", got[i], i,
                      combined(c, c->members->own * COUNT + i, false)));
    return expect(c, "reduce-scatter", got[COUNT], COUNT, nothing(c));
}

static ms_status check_all_reduce(checker *c, bool maximum, bool in_place)
{
    const numbers *mine = buffer(c, 0), *all = buffer(c, in_place ? 0 : 1);
    double got[MOST * COUNT];
    MS_TRY(fill(c, all, 0));
    MS_TRY(fill(c, mine, COUNT));
    ms_transfer t = transfer_of(c, MS_TRANSFER_ALL_REDUCE, "reduced");
    t.send = mine->at;
    t.receive = all->at;
    t.maximum = maximum;
    MS_TRY(carry_out(c, &t));
    MS_TRY(get(c, all, got));
    for (long i = 0; i < COUNT; i++)
        MS_TRY(expect(c, "all-reduce", got[i], i, combined(c, i, maximum)));
    return expect(c, "all-reduce", got[COUNT], COUNT, nothing(c));
}

/* Elements that one member sends another in an all-to-all; zero for some. */
static long num_sent(int from, int to)
{
    return (from * 3 + to * 2) % (COUNT + 1);
}

static ms_status check_all_to_all(checker *c)
{
    const numbers *mine = buffer(c, 0), *all = buffer(c, 1);
    double values[MOST * COUNT];
    long sent[MOST], received[MOST], at = 0;
    MS_TRY(fill(c, all, 0));
    make_values(c, values, 0);
    for (int m = 0; m < c->members->size; m++) {
        sent[m] = num_sent(c->members->own, m);
        received[m] = num_sent(m, c->members->own);
        for (long i = 0; i < sent[m]; i++)
            values[at++] = given(c, c->rank, m) + (double)i;
    }
    MS_TRY(set(c, mine, values));
    ms_transfer t = transfer_of(c, MS_TRANSFER_ALL_TO_ALL, "exchanged");
    t.send = mine->at;
    t.receive = all->at;
    t.send_counts = sent;
    t.receive_counts = received;
    ms_event done;
    MS_TRY(start(c, &t, &done));
    memset(sent, 0xff, sizeof sent); /* counts were copied at the start */
    memset(received, 0xff, sizeof received);
    MS_TRY(wait(c, done));
    MS_TRY(get(c, all, values));
    at = 0;
    for (int m = 0; m < c->members->size; m++)
        for (long i = 0; i < num_sent(m, c->members->own); i++, at++)
            MS_TRY(expect(c, "all-to-all", values[at], at,
                          given(c, c->members->ranks[m], c->members->own) + (double)i));
    return expect(c, "all-to-all", values[at], at, nothing(c));
}

static ms_transfer message(const checker *c, ms_transfer_kind kind, int step, int tag)
{
    int size = c->members->size;
    ms_transfer t = transfer_of(c, kind, "message");
    t.peer = c->members->ranks[(c->members->own + step + size) % size];
    t.tag = tag;
    return t;
}

/* Each member sends three messages (tags 5, 5, 9) to the next one at once; the receives
 * are started in another order and awaited in reverse. */
static ms_status check_ring(checker *c)
{
    static const int tags[3] = {5, 5, 9};
    double values[MOST * COUNT];
    ms_event sent[3], received[3];
    for (int i = 2; i >= 0; i--) {
        int which = i == 2 ? 2 : 1 - i; /* order of the receives: 2, 0, 1 */
        ms_transfer t = message(c, MS_TRANSFER_RECEIVE, -1, tags[which]);
        t.receive = buffer(c, which)->at;
        MS_TRY(start(c, &t, &received[which]));
    }
    for (int i = 0; i < 3; i++) {
        const numbers *mine = buffer(c, 3 + i);
        make_values(c, values, COUNT);
        values[0] = i;
        MS_TRY(set(c, mine, values));
        ms_transfer t = message(c, MS_TRANSFER_SEND, 1, tags[i]);
        t.send = mine->at;
        MS_TRY(start(c, &t, &sent[i]));
        MS_TRY(wait(c, sent[i])); /* a send never waits for its receiver */
        MS_TRY(fill(c, mine, 0));
    }
    int size = c->members->size;
    long from = c->members->ranks[(c->members->own - 1 + size) % size];
    for (int i = 2; i >= 0; i--) {
        MS_TRY(wait(c, received[i]));
        MS_TRY(get(c, buffer(c, i), values));
        MS_TRY(expect(c, "which message", values[0], 0, i));
        MS_TRY(expect(c, "message", values[1], 1, given(c, from, 1)));
    }
    return MS_OK;
}

#define MANY 200000 /* elements: more than MPI sends before its receiver is ready */

static ms_status check_large(const checker *c, void *mine, void *got)
{
    const ms_array_ops *arrays = c->job->backend->arrays;
    double *values = MS_NEW_ARRAY(c->cx->arena, MANY, double);
    ms_transfer send = message(c, MS_TRANSFER_SEND, 1, MS_MAX_TAG - 1),
                receive = message(c, MS_TRANSFER_RECEIVE, -1, MS_MAX_TAG - 1);
    send.count = receive.count = MANY;
    send.send = mine;
    receive.receive = got;
    arrays->fill(c->device, c->scalar, mine, given(c, c->rank, 0), MANY);
    MS_TRY(carry_out(c, &send));
    arrays->fill(c->device, c->scalar, mine, nothing(c), MANY);
    MS_TRY(carry_out(c, &receive));
    MS_TRY(arrays->read(c->cx, c->device, c->scalar, values, got, MANY));
    for (long i = 0; i < MANY; i++)
        MS_TRY(expect(c, "large message", values[i], i, given(c, receive.peer, 0)));
    return MS_OK;
}

/* Sends large messages around the ring of a group, all sends first. */
static ms_status check_large_messages(const checker *c)
{
    size_t bytes = MANY * ms_scalar_bytes(c->scalar);
    const ms_backend *b = c->job->backend;
    void *mine = b->allocate(c->device, bytes), *got = b->allocate(c->device, bytes);
    ms_status status = mine != NULL && got != NULL
                           ? check_large(c, mine, got)
                           : ms_fail(c->cx, MS_EIO, MS_NOWHERE, "no memory");
    b->release(c->device, mine, bytes);
    b->release(c->device, got, bytes);
    return status;
}

static ms_status check_group(checker *c)
{
    MS_TRY(check_all_gather(c));
    MS_TRY(check_reduce_scatter(c));
    for (int i = 0; i < 4; i++)
        MS_TRY(check_all_reduce(c, i % 2 == 1, i / 2 == 1));
    MS_TRY(check_all_to_all(c));
    return check_ring(c);
}

/* Runs all-reduces of all groups at once and awaits them from last to first; then no
 * transfer is left to wait for. */
static ms_status check_beside_each_other(checker *c)
{
    const numbers *mine = buffer(c, MS_NUM_TRAFFIC_GROUPS);
    ms_event done[MS_NUM_TRAFFIC_GROUPS];
    double values[MOST * COUNT];
    MS_TRY(fill(c, mine, COUNT));
    for (int g = 0; g < MS_NUM_TRAFFIC_GROUPS; g++) {
        c->group = g;
        ms_transfer t = transfer_of(c, MS_TRANSFER_ALL_REDUCE, "beside");
        t.send = mine->at;
        t.receive = buffer(c, g)->at;
        MS_TRY(start(c, &t, &done[g]));
    }
    for (int g = MS_NUM_TRAFFIC_GROUPS - 1; g >= 0; g--) {
        c->group = g;
        c->members = &c->job->world->members[g][c->rank];
        MS_TRY(wait(c, done[g]));
        MS_TRY(wait(c, done[g]));
        MS_TRY(get(c, buffer(c, g), values));
        MS_TRY(expect(c, "beside", values[1], 1, combined(c, 1, false)));
    }
    return MS_OK;
}

static ms_status check_scalar(checker *c)
{
    for (c->group = 0; c->group < MS_NUM_TRAFFIC_GROUPS; c->group++) {
        c->members = &c->job->world->members[c->group][c->rank];
        MS_TRY(check_group(c));
    }
    return MS_OK;
}

static ms_status check_all(checker *c)
{
    static const ms_scalar scalars[] = {MS_SCALAR_FP32, MS_SCALAR_FP64};
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        c->scalar = scalars[i];
        MS_TRY(check_scalar(c));
    }
    c->scalar = ms_precision_of(c->job->type).real;
    if (c->scalar == MS_SCALAR_BF16)
        MS_TRY(check_scalar(c));
    c->group = MS_TRAFFIC_WORLD;
    c->members = &c->job->world->members[c->group][c->rank];
    MS_TRY(check_large_messages(c));
    return check_beside_each_other(c);
}

/* Runs the checks with buffers in device memory. */
static ms_status with_buffers(checker *c)
{
    const ms_backend *b = c->job->backend;
    size_t bytes = MOST * COUNT * sizeof(double);
    ms_status status = MS_OK;
    for (int i = 0; i < NUM_BUFFERS; i++) {
        c->buffers[i].at = b->allocate(c->device, bytes);
        if (c->buffers[i].at == NULL)
            status = ms_fail(c->cx, MS_EIO, MS_NOWHERE, "no memory");
    }
    if (status == MS_OK)
        status = check_all(c);
    for (int i = 0; i < NUM_BUFFERS; i++)
        b->release(c->device, c->buffers[i].at, bytes);
    return status;
}

ms_status ms_check_transfers(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    checker *c = MS_NEW(cx->arena, checker);
    *c = (checker){.cx = cx, .job = state, .device = device, .rank = rank};
    MS_TRY(with_buffers(c));
    c->scalar = MS_SCALAR_LONG;
    return check_scalar(c);
}
