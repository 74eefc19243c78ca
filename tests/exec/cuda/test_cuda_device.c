/* Tests of what a CUDA driver (exec/cuda/cuda_driver.h) must do, on the fake GPU and,
 * where there is one, on a real GPU with the CUDA libraries. */
#include "base/rng.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/cuda_fake_numbers.h"
#include "tests/test.h"

typedef struct place {
    const ms_cuda_driver *driver; /* NULL: no driver, the test is skipped */
    ms_ctx *cx;
    ms_cuda_device *device;
    ms_cuda_stream *stream, *other;
} place;

static bool is_on_gpu;

/* Opens a device with two streams, or skips the test where there is no GPU. */
static place begin(void **state)
{
    place p = {.driver = *state, .cx = test_cx()};
    if (p.driver == NULL)
        skip();
    is_on_gpu = p.driver != &ms_cuda_fake_driver;
    if (!is_on_gpu)
        ms_cuda_fake_begin(NULL);
    ASSERT_OK(p.driver->open(p.cx, 0, &p.device), p.cx);
    ASSERT_OK(p.driver->open_stream(p.cx, p.device, false, &p.stream), p.cx);
    ASSERT_OK(p.driver->open_stream(p.cx, p.device, false, &p.other), p.cx);
    return p;
}

static void end(place *p)
{
    ASSERT_OK(p->driver->finish(p->cx, p->stream), p->cx);
    ASSERT_OK(p->driver->finish(p->cx, p->other), p->cx);
    ASSERT_OK(p->driver->check(p->cx, p->device), p->cx);
    p->driver->close_stream(p->stream);
    p->driver->close_stream(p->other);
    p->driver->close(p->device);
    if (!is_on_gpu)
        ms_cuda_fake_end();
}

static void *allocate(place *p, size_t bytes)
{
    void *memory = p->driver->allocate(p->device, bytes);
    assert_non_null(memory);
    assert_true((uintptr_t)memory % 256 == 0);
    return memory;
}

static void copy(place *p, void *to, const void *from, size_t bytes,
                 ms_cuda_direction direction)
{
    ASSERT_OK(p->driver->copy(p->cx, p->stream, to, from, bytes, direction), p->cx);
}

/* ---- devices and memory ---- */

static void a_device_is_described(void **state)
{
    place p = begin(state);
    ms_cuda_facts facts;
    double is_free = 0, total = 0;
    int num = 0;
    ASSERT_OK(p.driver->find(p.cx, &num), p.cx);
    assert_true(num > 0);
    ASSERT_OK(p.driver->describe(p.cx, 0, &facts), p.cx);
    assert_true(facts.name[0] != '\0' && facts.major >= 8 && facts.num_sms > 0);
    ASSERT_OK(p.driver->memory(p.cx, p.device, &is_free, &total), p.cx);
    assert_true(is_free > 0 && is_free <= total && total <= facts.memory_bytes);
    assert_null(p.driver->allocate(p.device, (size_t)(2 * total)));
    /* a refused allocation leaves no error behind */
    ASSERT_OK(p.driver->check(p.cx, p.device), p.cx);
    end(&p);
}

static void bytes_go_there_and_back(void **state)
{
    enum {
        NUM = 100003
    };
    place p = begin(state);
    unsigned char *x = allocate(&p, NUM), *y = allocate(&p, NUM);
    unsigned char *here = MS_NEW_ARRAY(p.cx->arena, 2 * NUM, unsigned char);
    unsigned char *pinned = p.driver->allocate_host(p.device, NUM);
    assert_non_null(pinned);
    for (int i = 0; i < NUM; i++)
        here[i] = pinned[i] = (unsigned char)(i * 7 + i / 256);
    copy(&p, x, here, NUM, MS_CUDA_TO_DEVICE);
    copy(&p, y, x, NUM, MS_CUDA_ON_DEVICE);
    /* pageable memory: copied when the call returns */
    copy(&p, here + NUM, y, NUM, MS_CUDA_TO_HOST);
    assert_memory_equal(here, here + NUM, NUM);
    copy(&p, y + 1, pinned, NUM - 1, MS_CUDA_TO_DEVICE);
    ASSERT_OK(p.driver->clear(p.cx, p.stream, y + 5, 3), p.cx);
    copy(&p, pinned, y + 1, NUM - 1, MS_CUDA_TO_HOST);
    ASSERT_OK(p.driver->finish(p.cx, p.stream), p.cx);
    here[4] = here[5] = here[6] = 0;
    assert_memory_equal(here, pinned, NUM - 1);
    copy(&p, x, NULL, 0, MS_CUDA_TO_DEVICE);
    p.driver->release(p.device, x);
    p.driver->release(p.device, y);
    p.driver->release_host(p.device, pinned);
    end(&p);
}

/* A stream that waits for an event sees what the other stream wrote before, and events
 * happen in order. */
static void streams_wait_for_events(void **state)
{
    enum {
        NUM = 1 << 20,
        REPEATS = 20
    };
    place p = begin(state);
    ms_cuda_event *events[2];
    unsigned char *x = allocate(&p, NUM), *y = allocate(&p, NUM);
    unsigned char *got = MS_NEW_ARRAY(p.cx->arena, NUM, unsigned char);
    bool happened = false;
    double seconds = -1;
    for (int i = 0; i < 2; i++)
        ASSERT_OK(p.driver->open_event(p.cx, p.device, true, &events[i]), p.cx);
    memset(got, 0x5a, NUM);
    copy(&p, x, got, NUM, MS_CUDA_TO_DEVICE);
    copy(&p, y, got, NUM, MS_CUDA_TO_DEVICE);
    ASSERT_OK(p.driver->record(p.cx, events[0], p.stream), p.cx);
    for (int i = 0; i < REPEATS; i++)
        copy(&p, y, x, NUM, MS_CUDA_ON_DEVICE);
    ASSERT_OK(p.driver->clear(p.cx, p.stream, y, NUM), p.cx);
    ASSERT_OK(p.driver->record(p.cx, events[1], p.stream), p.cx);
    ASSERT_OK(p.driver->wait(p.cx, p.other, events[1]), p.cx);
    ASSERT_OK(p.driver->copy(p.cx, p.other, x, y, NUM, MS_CUDA_ON_DEVICE), p.cx);
    ASSERT_OK(p.driver->copy(p.cx, p.other, got, x, NUM, MS_CUDA_TO_HOST), p.cx);
    for (int i = 0; i < NUM; i++)
        assert_int_equal(got[i], 0);
    ASSERT_OK(p.driver->query(p.cx, events[1], &happened), p.cx);
    assert_true(happened);
    ASSERT_OK(p.driver->elapsed(p.cx, events[0], events[1], &seconds), p.cx);
    assert_true(seconds > 0 && seconds < 10);
    for (int i = 0; i < 2; i++)
        p.driver->close_event(events[i]);
    p.driver->release(p.device, x);
    p.driver->release(p.device, y);
    p.driver->push_range("a range");
    p.driver->pop_range();
    end(&p);
}

/* ---- products ---- */

typedef struct product_case {
    long m, n, k, pad; /* pad: unused elements after each row */
    long num_batch;
    long shift; /* offset of operands from an aligned address, in elements */
} product_case;

static const product_case product_cases[] = {
    {64, 64, 64, 0, 0, 0},   {128, 96, 160, 0, 0, 0}, {1, 1, 1, 0, 0, 0},
    {7, 5, 3, 0, 0, 0},      {33, 65, 129, 0, 0, 1},  {17, 1, 255, 1, 0, 0},
    {1, 130, 70, 0, 2, 0},   {40, 24, 16, 8, 3, 0},   {9, 11, 13, 3, 2, 1},
    {256, 8, 2048, 0, 0, 0}, {12, 20, 0, 0, 0, 0},    {0, 20, 5, 0, 0, 0},
};

typedef struct product_run {
    ms_cuda_gemm product;
    size_t elements[3], bytes[3];
    void *host[3], *want, *again, *device[3];
} product_run;

static product_run make_run(place *p, const product_case *c, int variant,
                            const ms_scalar types[2])
{
    product_run r = {.product = {.type = types[0],
                                 .result = types[1],
                                 .transpose_a = variant & 1,
                                 .transpose_b = variant >> 1 & 1,
                                 .add = variant >> 2 & 1,
                                 .m = c->m,
                                 .n = c->n,
                                 .k = c->k,
                                 .num_batch = c->num_batch}};
    ms_cuda_gemm *q = &r.product;
    long rows_a = q->transpose_a ? c->k : c->m, rows_b = q->transpose_b ? c->n : c->k;
    q->ld_a = (q->transpose_a ? c->m : c->k) + c->pad;
    q->ld_b = (q->transpose_b ? c->k : c->n) + c->pad;
    q->ld_c = c->n + c->pad;
    q->stride_a = rows_a * q->ld_a;
    q->stride_b = rows_b * q->ld_b;
    q->stride_c = c->m * q->ld_c;
    long num = c->num_batch > 0 ? c->num_batch : 1;
    const long strides[3] = {q->stride_a, q->stride_b, q->stride_c};
    for (int i = 0; i < 3; i++) {
        r.elements[i] = (size_t)(num * strides[i] + c->shift) + 1;
        r.bytes[i] = r.elements[i] * ms_scalar_bytes(i == 2 ? types[1] : types[0]);
        r.host[i] = ms_arena_alloc(p->cx->arena, r.bytes[i]);
        r.device[i] = allocate(p, r.bytes[i]);
    }
    r.want = ms_arena_alloc(p->cx->arena, r.bytes[2]);
    r.again = ms_arena_alloc(p->cx->arena, r.bytes[2]);
    return r;
}

static void fill_operands(place *p, product_run *r, ms_rng *rng)
{
    for (int i = 0; i < 3; i++) {
        ms_scalar scalar = i == 2 ? r->product.result : r->product.type;
        for (size_t j = 0; j < r->elements[i]; j++)
            fake_set_number(scalar, r->host[i], (long)j, 2 * ms_rng_uniform(rng) - 1);
        copy(p, r->device[i], r->host[i], r->bytes[i], MS_CUDA_TO_DEVICE);
    }
    memcpy(r->want, r->host[2], r->bytes[2]);
}

static void *shifted(void *x, ms_scalar scalar, long shift)
{
    return (char *)x + (size_t)shift * ms_scalar_bytes(scalar);
}

static void point_to(ms_cuda_gemm *q, void *const operands[3], long shift)
{
    q->a = shifted(operands[0], q->type, shift);
    q->b = shifted(operands[1], q->type, shift);
    q->c = shifted(operands[2], q->result, shift);
}

/* Greatest error of a result: a sum of k terms below 1 in fp32 or fp64, added in any
 * order; one unit in the last place where it is rounded to bf16. */
static double tolerance(const ms_cuda_gemm *q, double want)
{
    const double epsilon = q->type == MS_SCALAR_FP64 ? 0x1p-52 : 0x1p-23;
    double of_sum = epsilon * (double)(q->k + 1);
    return of_sum + (q->result == MS_SCALAR_BF16 ? 0x1p-7 * fabs(want) : 0);
}

static void run_product(place *p, const product_case *c, int variant,
                        const ms_scalar types[2])
{
    ms_rng rng = ms_rng_seed((uint64_t)variant * 100 + types[1] * 10 + types[0]);
    product_run r = make_run(p, c, variant, types);
    void *const wanted[3] = {r.host[0], r.host[1], r.want};
    fill_operands(p, &r, &rng);
    point_to(&r.product, wanted, c->shift);
    fake_run_product(&r.product);
    point_to(&r.product, r.device, c->shift);
    ASSERT_OK(p->driver->product(p->cx, p->stream, &r.product), p->cx);
    copy(p, r.again, r.device[2], r.bytes[2], MS_CUDA_TO_HOST);
    for (size_t j = 0; j < r.elements[2]; j++) {
        double got = fake_number(types[1], r.again, (long)j),
               want = fake_number(types[1], r.want, (long)j);
        if (!(fabs(got - want) <= tolerance(&r.product, want)))
            fail_msg("%s to %s, %ld x %ld x %ld, variant %d, element %zu: %.9g, not %.9g",
                     ms_scalar_names[types[0]], ms_scalar_names[types[1]], c->m, c->n,
                     c->k, variant, j, got, want);
    }
    /* a repeated product gives the same bits */
    copy(p, r.device[2], r.host[2], r.bytes[2], MS_CUDA_TO_DEVICE);
    ASSERT_OK(p->driver->product(p->cx, p->stream, &r.product), p->cx);
    copy(p, r.want, r.device[2], r.bytes[2], MS_CUDA_TO_HOST);
    assert_memory_equal(r.again, r.want, r.bytes[2]);
    for (int i = 0; i < 3; i++)
        p->driver->release(p->device, r.device[i]);
}

static void products_equal_the_cpus(void **state)
{
    static const ms_scalar types[4][2] = {{MS_SCALAR_FP32, MS_SCALAR_FP32},
                                          {MS_SCALAR_FP64, MS_SCALAR_FP64},
                                          {MS_SCALAR_BF16, MS_SCALAR_BF16},
                                          {MS_SCALAR_BF16, MS_SCALAR_FP32}};
    place p = begin(state);
    for (size_t i = 0; i < sizeof product_cases / sizeof product_cases[0]; i++)
        for (int type = 0; type < 4; type++)
            for (int variant = 0; variant < 8; variant++)
                run_product(&p, &product_cases[i], variant, types[type]);
    end(&p);
}

/* ---- a communicator of one rank ---- */

static void one_rank_communicates_with_itself(void **state)
{
    place p = begin(state);
    ms_cuda_id id;
    ms_cuda_comm *world = NULL, *part = NULL;
    float values[4] = {1, 2, 3, 4}, got[16] = {0};
    ASSERT_OK(p.driver->make_id(p.cx, &id), p.cx);
    ASSERT_OK(p.driver->open_comm(p.cx, p.device, &id, 0, 1, &world), p.cx);
    ASSERT_OK(p.driver->split(p.cx, world, &(ms_cuda_split){3, 0, 4, false}, &part),
              p.cx);
    assert_non_null(part);
    float *x = allocate(&p, sizeof values), *y = allocate(&p, sizeof got);
    copy(&p, x, values, sizeof values, MS_CUDA_TO_DEVICE);
    ASSERT_OK(p.driver->clear(p.cx, p.stream, y, sizeof got), p.cx);
    const ms_cuda_collective all[] = {
        {MS_CUDA_ALL_GATHER, MS_SCALAR_FP32, false, 0, x, y, 4},
        {MS_CUDA_REDUCE_SCATTER, MS_SCALAR_FP32, false, 0, x, y + 4, 4},
        {MS_CUDA_ALL_REDUCE, MS_SCALAR_FP32, true, 0, x, y + 8, 4}};
    const ms_cuda_collective to_itself[] = {
        {MS_CUDA_SEND, MS_SCALAR_FP32, false, 0, x, NULL, 4},
        {MS_CUDA_RECEIVE, MS_SCALAR_FP32, false, 0, NULL, y + 12, 4}};
    ASSERT_OK(p.driver->communicate(p.cx, world, p.stream, all, 3), p.cx);
    ASSERT_OK(p.driver->communicate(p.cx, part, p.stream, to_itself, 2), p.cx);
    copy(&p, got, y, sizeof got, MS_CUDA_TO_HOST);
    for (int i = 0; i < 16; i++)
        ASSERT_NEAR((double)got[i], (double)values[i % 4], 0);
    ASSERT_OK(p.driver->check_comm(p.cx, world), p.cx);
    p.driver->abort_comm(part);
    p.driver->close_comm(part);
    p.driver->close_comm(world);
    p.driver->release(p.device, x);
    p.driver->release(p.device, y);
    end(&p);
}

static const ms_cuda_driver *driver_with_gpu(void)
{
    const ms_cuda_driver *driver = ms_cuda_driver_of_libraries();
    ms_ctx *cx = test_cx();
    int num = 0;
    if (driver == NULL || driver->find(cx, &num) != MS_OK) {
        printf("no GPU: %s", driver == NULL ? "built without CUDA\n" : test_messages(cx));
        return NULL;
    }
    return driver;
}

#define ON_BOTH(test)                                                                    \
    {#test, test, NULL, NULL, (void *)(uintptr_t)&ms_cuda_fake_driver},                  \
    {                                                                                    \
#test "_on_a_gpu", test, NULL, NULL, (void *)(uintptr_t)gpu                      \
    }

int main(void)
{
    const ms_cuda_driver *gpu = driver_with_gpu();
    const struct CMUnitTest tests[] = {
        ON_BOTH(a_device_is_described),
        ON_BOTH(bytes_go_there_and_back),
        ON_BOTH(streams_wait_for_events),
        ON_BOTH(products_equal_the_cpus),
        ON_BOTH(one_rank_communicates_with_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
