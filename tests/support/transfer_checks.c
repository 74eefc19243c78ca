#include "tests/support/transfer_checks.h"

#include <string.h>

#define MOST  128 /* ranks */
#define COUNT 3

/* One rank at work. */
typedef struct checker {
    ms_ctx *cx;
    const ms_backend_job *job;
    ms_device_rank *device;
    long rank;
    int group;
    const ms_members *members;
    ms_scalar scalar;
} checker;

typedef union numbers {
    float f[MOST * COUNT];
    double d[MOST * COUNT];
    long l[MOST * COUNT];
} numbers;

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

static bool is_float(const checker *c)
{
    return c->scalar == MS_SCALAR_FP32;
}

static void set(const checker *c, numbers *to, long i, double value)
{
    if (c->scalar == MS_SCALAR_LONG)
        to->l[i] = (long)value;
    else if (is_float(c))
        to->f[i] = (float)value;
    else
        to->d[i] = value;
}

static double get(const checker *c, const numbers *from, long i)
{
    if (c->scalar == MS_SCALAR_LONG)
        return (double)from->l[i];
    return is_float(c) ? (double)from->f[i] : from->d[i];
}

/* What a rank gives: sums of it are exact in every type. */
static double given(long rank, long i)
{
    return (double)(rank * 37 % 50 * 10 + i) - 100;
}

static void fill(const checker *c, numbers *to, long count)
{
    for (long i = 0; i < MOST * COUNT; i++)
        set(c, to, i, i < count ? given(c->rank, i) : -7777);
}

static ms_status expect(const checker *c, const char *what, const numbers *got, long i,
                        double want)
{
    if (get(c, got, i) == want)
        return MS_OK;
    return ms_fail(c->cx, MS_ECHECK, MS_NOWHERE,
                   "%s over group %d of %d: element %ld is %g, not %g", what, c->group,
                   c->members->size, i, get(c, got, i), want);
}

/* ---- transfers ---- */

static ms_transfer transfer_of(const checker *c, ms_transfer_kind kind, const char *name)
{
    return (ms_transfer){.kind = (unsigned char)kind,
                         .scalar = (unsigned char)c->scalar,
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

static ms_status check_all_gather(const checker *c)
{
    numbers mine, all;
    fill(c, &mine, COUNT);
    fill(c, &all, 0);
    ms_transfer t = transfer_of(c, MS_TRANSFER_ALL_GATHER, "gathered");
    t.send = &mine;
    t.receive = &all;
    MS_TRY(carry_out(c, &t));
    for (int m = 0; m < c->members->size; m++)
        for (long i = 0; i < COUNT; i++)
            MS_TRY(expect(c, "all-gather", &all, m * COUNT + i,
                          given(c->members->ranks[m], i)));
    return expect(c, "all-gather", &all, c->members->size * COUNT, -7777);
}

static double combined(const checker *c, long i, bool maximum)
{
    double all = maximum ? -1e9 : 0;
    for (int m = 0; m < c->members->size; m++) {
        double one = given(c->members->ranks[m], i);
        all = maximum ? (one > all ? one : all) : all + one;
    }
    return all;
}

static ms_status check_reduce_scatter(const checker *c)
{
    numbers mine, part;
    fill(c, &mine, COUNT * c->members->size);
    fill(c, &part, 0);
    ms_transfer t = transfer_of(c, MS_TRANSFER_REDUCE_SCATTER, "scattered");
    t.send = &mine;
    t.receive = &part;
    MS_TRY(carry_out(c, &t));
    for (long i = 0; i < COUNT; i++)
        MS_TRY(expect(c, "reduce-scatter", &part, i,
                      combined(c, c->members->own * COUNT + i, false)));
    return expect(c, "reduce-scatter", &part, COUNT, -7777);
}

static ms_status check_all_reduce(const checker *c, bool maximum, bool in_place)
{
    numbers mine, all;
    fill(c, &mine, COUNT);
    fill(c, &all, 0);
    ms_transfer t = transfer_of(c, MS_TRANSFER_ALL_REDUCE, "reduced");
    t.send = &mine;
    t.receive = in_place ? &mine : &all;
    t.maximum = maximum;
    MS_TRY(carry_out(c, &t));
    for (long i = 0; i < COUNT; i++)
        MS_TRY(
            expect(c, "all-reduce", in_place ? &mine : &all, i, combined(c, i, maximum)));
    return MS_OK;
}

/* Some of them zero. */
static long num_sent(int from, int to)
{
    return (from * 3 + to * 2) % (COUNT + 1);
}

static ms_status check_all_to_all(const checker *c)
{
    numbers mine, all;
    long sent[MOST], received[MOST], at = 0;
    fill(c, &all, 0);
    for (int m = 0; m < c->members->size; m++) {
        sent[m] = num_sent(c->members->own, m);
        received[m] = num_sent(m, c->members->own);
        for (long i = 0; i < sent[m]; i++)
            set(c, &mine, at++, given(c->rank, m) + (double)i);
    }
    ms_transfer t = transfer_of(c, MS_TRANSFER_ALL_TO_ALL, "exchanged");
    t.send = &mine;
    t.receive = &all;
    t.send_counts = sent;
    t.receive_counts = received;
    ms_event done;
    MS_TRY(start(c, &t, &done));
    memset(sent, 0xff, sizeof sent); /* counts were copied */
    MS_TRY(wait(c, done));
    at = 0;
    for (int m = 0; m < c->members->size; m++)
        for (long i = 0; i < num_sent(m, c->members->own); i++)
            MS_TRY(expect(c, "all-to-all", &all, at++,
                          given(c->members->ranks[m], c->members->own) + (double)i));
    return expect(c, "all-to-all", &all, at, -7777);
}

static ms_transfer message(const checker *c, ms_transfer_kind kind, int step, int tag)
{
    int size = c->members->size;
    ms_transfer t = transfer_of(c, kind, "message");
    t.peer = c->members->ranks[(c->members->own + step + size) % size];
    t.tag = tag;
    return t;
}

/* All send to the next member at once, twice with one tag and once with another; the receives, of
 * which the last is started first, are waited for in reverse. */
static ms_status check_ring(const checker *c)
{
    numbers mine[3], got[3];
    static const int tags[3] = {5, 5, 9};
    ms_event sent[3], received[3];
    for (int i = 2; i >= 0; i--) {
        int which = i == 2 ? 2 : 1 - i; /* 2, then 0, then 1 */
        ms_transfer t = message(c, MS_TRANSFER_RECEIVE, -1, tags[which]);
        t.receive = &got[which];
        MS_TRY(start(c, &t, &received[which]));
    }
    for (int i = 0; i < 3; i++) {
        fill(c, &mine[i], COUNT);
        set(c, &mine[i], 0, i);
        ms_transfer t = message(c, MS_TRANSFER_SEND, 1, tags[i]);
        t.send = &mine[i];
        MS_TRY(start(c, &t, &sent[i]));
        MS_TRY(wait(c, sent[i])); /* never waits for the receiver */
        fill(c, &mine[i], 0);
    }
    int size = c->members->size;
    long from = c->members->ranks[(c->members->own - 1 + size) % size];
    for (int i = 2; i >= 0; i--) {
        MS_TRY(wait(c, received[i]));
        MS_TRY(expect(c, "which message", &got[i], 0, i));
        MS_TRY(expect(c, "message", &got[i], 1, given(from, 1)));
    }
    return MS_OK;
}

#define MANY 200000 /* elements: more than MPI sends before its receiver is ready */

/* All send first. */
static ms_status check_large_messages(const checker *c)
{
    size_t bytes = MANY * ms_scalar_bytes(c->scalar);
    const ms_backend *b = c->job->backend;
    char *mine = b->allocate(c->device, bytes), *got = b->allocate(c->device, bytes);
    memset(mine, (int)(c->rank % 100), bytes);
    ms_transfer send = message(c, MS_TRANSFER_SEND, 1, MS_MAX_TAG - 1),
                receive = message(c, MS_TRANSFER_RECEIVE, -1, MS_MAX_TAG - 1);
    send.count = receive.count = MANY;
    send.send = mine;
    receive.receive = got;
    ms_status status = carry_out(c, &send);
    memset(mine, 111, bytes);
    if (status == MS_OK)
        status = carry_out(c, &receive);
    bool same = status == MS_OK && got[0] == (char)(receive.peer % 100) &&
                memcmp(got, got + 1, bytes - 1) == 0;
    b->release(c->device, mine, bytes);
    b->release(c->device, got, bytes);
    return same || status != MS_OK
               ? status
               : ms_fail(c->cx, MS_ECHECK, MS_NOWHERE, "a large message has changed");
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

/* All groups at once, waited for from the last to the first, after which nothing is left to wait for. */
static ms_status check_beside_each_other(checker *c)
{
    numbers mine, all[MS_NUM_TRAFFIC_GROUPS];
    ms_event done[MS_NUM_TRAFFIC_GROUPS];
    fill(c, &mine, COUNT);
    for (int g = 0; g < MS_NUM_TRAFFIC_GROUPS; g++) {
        c->group = g;
        ms_transfer t = transfer_of(c, MS_TRANSFER_ALL_REDUCE, "beside");
        t.send = &mine;
        t.receive = &all[g];
        MS_TRY(start(c, &t, &done[g]));
    }
    for (int g = MS_NUM_TRAFFIC_GROUPS - 1; g >= 0; g--) {
        c->group = g;
        c->members = &c->job->world->members[g][c->rank];
        MS_TRY(wait(c, done[g]));
        MS_TRY(wait(c, done[g]));
        MS_TRY(expect(c, "beside", &all[g], 1, combined(c, 1, false)));
    }
    return MS_OK;
}

ms_status ms_check_transfers(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    checker c = {.cx = cx, .job = state, .device = device, .rank = rank};
    static const ms_scalar scalars[] = {MS_SCALAR_FP32, MS_SCALAR_FP64, MS_SCALAR_LONG};
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        c.scalar = scalars[i];
        for (c.group = 0; c.group < MS_NUM_TRAFFIC_GROUPS; c.group++) {
            c.members = &c.job->world->members[c.group][rank];
            MS_TRY(check_group(&c));
        }
    }
    c.scalar = ms_precision_of(c.job->type).real;
    c.group = MS_TRAFFIC_WORLD;
    c.members = &c.job->world->members[c.group][rank];
    MS_TRY(check_large_messages(&c));
    return check_beside_each_other(&c);
}
