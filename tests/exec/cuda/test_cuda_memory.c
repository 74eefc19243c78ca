/* Tests of a rank's GPU memory allocator: random sequences of takes and gives are
 * compared with a list of the parts in use, on a mock device of limited memory. */
#include "base/rng.h"
#include "exec/cuda/cuda_memory.h"

#include <stdbool.h>

#include "tests/test.h"

#define MIB        ((size_t)1 << 20)
#define MAX_BLOCKS 4096
#define MAX_PARTS  300
/* the mock device's addresses begin here and are never accessed */
#define DEVICE_BASE ((uintptr_t)1 << 40)

/* A mock device with `bytes` of memory, of which blocks are allocated and released. */
typedef struct device {
    size_t bytes, used_bytes;
    uintptr_t next;
    int num_blocks, num_calls;
    struct {
        uintptr_t start;
        size_t bytes; /* 0: the block was released */
    } blocks[MAX_BLOCKS];
} device;

static void *device_allocate(void *state, size_t bytes)
{
    device *d = state;
    d->num_calls++;
    if (bytes > d->bytes - d->used_bytes || d->num_blocks == MAX_BLOCKS)
        return NULL;
    d->used_bytes += bytes;
    uintptr_t start = DEVICE_BASE + d->next;
    d->next += bytes + MS_CUDA_ALIGNMENT; /* blocks of the device are never adjacent */
    d->blocks[d->num_blocks].start = start;
    d->blocks[d->num_blocks++].bytes = bytes;
    return (void *)start;
}

static void device_release(void *state, void *memory)
{
    device *d = state;
    for (int i = 0; i < d->num_blocks; i++) {
        if (d->blocks[i].start != (uintptr_t)memory || d->blocks[i].bytes == 0)
            continue;
        d->used_bytes -= d->blocks[i].bytes;
        d->blocks[i].bytes = 0;
        return;
    }
    fail_msg("%p is no block", memory);
}

static ms_cuda_memory *open_on(device *d, size_t bytes, size_t least_block_bytes)
{
    *d = (device){.bytes = bytes};
    return ms_cuda_memory_open(test_cx()->arena,
                               &(ms_cuda_memory_source){device_allocate, device_release,
                                                        d, least_block_bytes, 2 * MIB});
}

/* ---- hand-made sequences ---- */

static void neighbours_become_one_again(void **state)
{
    (void)state;
    static device d;
    ms_cuda_memory *m = open_on(&d, 64 * MIB, 4 * MIB);
    char *a = ms_cuda_memory_take(m, MIB), *b = ms_cuda_memory_take(m, MIB);
    char *c = ms_cuda_memory_take(m, 2 * MIB);
    assert_true(b == a + MIB && c == b + MIB);
    ASSERT_INT(d.num_calls, 1);
    ms_cuda_memory_give(m, a);
    ms_cuda_memory_give(m, c);
    ASSERT_NEAR(ms_cuda_memory_look(m).fragmentation, 1.0 / 3.0, 1e-15);
    ms_cuda_memory_give(m, b);
    ms_cuda_memory_figures look = ms_cuda_memory_look(m);
    ASSERT_NEAR(look.largest_free_bytes, 4.0 * (double)MIB, 0);
    ASSERT_INT(look.num_parts, 0);
    ASSERT_INT(look.num_blocks, 1);
    assert_true(look.fragmentation == 0.0 && look.used_bytes == 0.0);
    assert_true(look.most_used_bytes == 4.0 * (double)MIB);
    assert_true(ms_cuda_memory_take(m, 4 * MIB) == a);
    ms_cuda_memory_close(m);
    assert_true(d.used_bytes == 0);
}

static void the_smallest_piece_that_fits_is_taken(void **state)
{
    (void)state;
    static device d;
    ms_cuda_memory *m = open_on(&d, 64 * MIB, 32 * MIB);
    char *large = ms_cuda_memory_take(m, 3 * MIB);
    (void)ms_cuda_memory_take(m, 1);
    char *fitting = ms_cuda_memory_take(m, MIB + 512);
    (void)ms_cuda_memory_take(m, 1);
    ms_cuda_memory_give(m, large);
    ms_cuda_memory_give(m, fitting);
    assert_true(ms_cuda_memory_take(m, MIB + 300) == fitting);
    assert_true(ms_cuda_memory_take(m, MIB + 300) == large);
    ms_cuda_memory_close(m);
}

static void a_device_without_memory_says_so(void **state)
{
    (void)state;
    static device d;
    ms_cuda_memory *m = open_on(&d, 10 * MIB, 8 * MIB);
    assert_null(ms_cuda_memory_take(m, 0));
    assert_null(ms_cuda_memory_take(m, SIZE_MAX));
    assert_null(ms_cuda_memory_take(m, 11 * MIB));
    void *a = ms_cuda_memory_take(m, 5 * MIB);
    void *b = ms_cuda_memory_take(m, 3 * MIB);
    assert_non_null(a);
    assert_non_null(b);
    assert_null(ms_cuda_memory_take(m, 3 * MIB));
    /* the device has no room for another block of the usual size */
    void *c = ms_cuda_memory_take(m, 2 * MIB);
    assert_non_null(c);
    ASSERT_INT(ms_cuda_memory_look(m).num_blocks, 2);
    ms_cuda_memory_give(m, a);
    ms_cuda_memory_give(m, b);
    ms_cuda_memory_give(m, c);
    assert_non_null(
        ms_cuda_memory_take(m, 9 * MIB)); /* free blocks are released for one of 9 MiB */
    ASSERT_INT(ms_cuda_memory_look(m).num_blocks, 1);
    ms_cuda_memory_close(m);
    assert_true(d.used_bytes == 0);
}

/* ---- at random ---- */

typedef struct part {
    char *start;
    size_t bytes;
} part;

static bool lies_in_a_block(const device *d, const part *p)
{
    for (int i = 0; i < d->num_blocks; i++) {
        uintptr_t start = d->blocks[i].start;
        if (d->blocks[i].bytes > 0 && (uintptr_t)p->start >= start &&
            (uintptr_t)p->start + p->bytes <= start + d->blocks[i].bytes)
            return true;
    }
    return false;
}

static void check_part(const device *d, const part *parts, int num, const part *p)
{
    ASSERT_INT((uintptr_t)p->start % MS_CUDA_ALIGNMENT, 0);
    assert_true(lies_in_a_block(d, p));
    for (int i = 0; i < num; i++)
        assert_true(p->start + p->bytes <= parts[i].start ||
                    parts[i].start + parts[i].bytes <= p->start);
}

static double rounded(size_t bytes)
{
    return (double)((bytes + MS_CUDA_ALIGNMENT - 1) / MS_CUDA_ALIGNMENT *
                    MS_CUDA_ALIGNMENT);
}

static size_t any_size(ms_rng *rng)
{
    uint64_t most = (uint64_t)1 << (4 + ms_rng_below(rng, 18));
    return 1 + ms_rng_below(rng, most);
}

static void random_sequence(uint64_t seed)
{
    static device d;
    ms_rng rng = ms_rng_seed(seed);
    ms_cuda_memory *m =
        open_on(&d, (16 + ms_rng_below(&rng, 64)) * MIB, ms_rng_below(&rng, 2) * 4 * MIB);
    part parts[MAX_PARTS];
    int num = 0;
    double used = 0, most = 0;
    for (int i = 0; i < 3000; i++) {
        bool takes = num == 0 || (num < MAX_PARTS && ms_rng_below(&rng, 100) < 55);
        if (takes) {
            part p = {NULL, any_size(&rng)};
            p.start = ms_cuda_memory_take(m, p.bytes);
            /* no free piece is large enough, and the device has no memory left */
            if (p.start == NULL) {
                double left = (double)(d.bytes - d.used_bytes);
                assert_true(ms_cuda_memory_look(m).largest_free_bytes < rounded(p.bytes));
                assert_true(left < rounded(p.bytes) + 2.0 * (double)MIB);
                continue;
            }
            check_part(&d, parts, num, &p);
            parts[num++] = p;
            used += rounded(p.bytes);
            most = used > most ? used : most;
        } else {
            int which = (int)ms_rng_below(&rng, (uint64_t)num);
            ms_cuda_memory_give(m, parts[which].start);
            used -= rounded(parts[which].bytes);
            parts[which] = parts[--num];
        }
        ms_cuda_memory_figures look = ms_cuda_memory_look(m);
        assert_true(look.used_bytes == used && look.most_used_bytes == most);
        assert_true(look.held_bytes == (double)d.used_bytes);
        assert_true(look.fragmentation >= 0.0 && look.fragmentation <= 1.0);
        ASSERT_INT(look.num_parts, num);
    }
    while (num > 0)
        ms_cuda_memory_give(m, parts[--num].start);
    ms_cuda_memory_figures look = ms_cuda_memory_look(m);
    size_t largest = 0; /* largest block of the device: each is one free piece again */
    for (int i = 0; i < d.num_blocks; i++)
        largest = d.blocks[i].bytes > largest ? d.blocks[i].bytes : largest;
    assert_true(look.largest_free_bytes == (double)largest);
    ms_cuda_memory_close(m);
    assert_true(d.used_bytes == 0);
}

static void parts_never_overlap_and_nothing_is_lost(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++)
        random_sequence(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_become_one_again),
        cmocka_unit_test(the_smallest_piece_that_fits_is_taken),
        cmocka_unit_test(a_device_without_memory_says_so),
        cmocka_unit_test(parts_never_overlap_and_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
