/* Tests of the memory pool (exec/cpu/pool.h), which reuses released blocks. */
#include "exec/cpu/pool.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

static const size_t large = (size_t)1 << 20;

static void blocks_are_aligned_and_apart(void **state)
{
    (void)state;
    ms_pool *pool = ms_pool_open();
    enum {
        NUM = 40
    };
    char *blocks[NUM];
    size_t bytes[NUM];
    for (int i = 0; i < NUM; i++) {
        bytes[i] = (size_t)1 + (size_t)i * 9973;
        blocks[i] = ms_pool_take(pool, bytes[i]);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 64, 0);
        memset(blocks[i], i, bytes[i]);
    }
    for (int i = 0; i < NUM; i++) {
        for (size_t at = 0; at < bytes[i]; at++)
            assert_int_equal(blocks[i][at], i);
        ms_pool_give(pool, blocks[i], bytes[i]);
    }
    ms_pool_close(pool);
}

static void sizes_that_cannot_be(void **state)
{
    (void)state;
    ms_pool *pool = ms_pool_open();
    assert_null(ms_pool_take(pool, 0));
/* the address sanitizer ends the program at such sizes */
#if !defined(__SANITIZE_ADDRESS__)
    assert_null(ms_pool_take(pool, SIZE_MAX));
    assert_null(ms_pool_take(pool, SIZE_MAX / 4));
#endif
    ms_pool_give(pool, NULL, 1);
    void *after = ms_pool_take(pool, large);
    assert_non_null(after);
    ms_pool_give(pool, after, large);
    ms_pool_close(pool);
    ms_pool_close(NULL);
}

/* A released block is reused. Under the address sanitizer the pool only forwards to the
 * heap. */
static void a_block_serves_again(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    skip();
#endif
    ms_pool *pool = ms_pool_open();
    void *first = ms_pool_take(pool, large);
    ms_pool_give(pool, first, large);
    void *about = ms_pool_take(pool, large - large / 20);
    assert_ptr_equal(about, first);
    ms_pool_give(pool, about, large - large / 20);
    void *larger = ms_pool_take(pool, large + large / 4);
    assert_ptr_not_equal(larger, first);
    ms_pool_give(pool, larger, large + large / 4);
    ms_pool_close(pool);
}

/* Idle blocks of old sizes are freed when blocks of new sizes are taken; a failed
 * allocation changes nothing. */
static void what_is_held_is_bounded(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    skip();
#endif
    ms_pool *pool = ms_pool_open();
    assert_null(ms_pool_take(pool, SIZE_MAX / 4));
    for (size_t bytes = large; bytes <= 40 * large; bytes += large) {
        void *block = ms_pool_take(pool, bytes);
        assert_non_null(block);
        size_t rounded = bytes + bytes / 8;
        assert_true(ms_pool_held_bytes(pool) >= bytes);
        assert_true(ms_pool_held_bytes(pool) <= rounded + rounded / 4);
        ms_pool_give(pool, block, bytes);
    }
    ms_pool_close(pool);
}

static void *use_often(void *shared)
{
    for (size_t i = 0; i < 2000; i++) {
        size_t bytes = large / 8 + i % 7 * 5000;
        char *block = ms_pool_take(shared, bytes);
        block[0] = block[bytes - 1] = (char)i;
        ms_pool_give(shared, block, bytes);
    }
    return NULL;
}

static void threads_share_a_pool(void **state)
{
    (void)state;
    ms_pool *pool = ms_pool_open();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_often, pool), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ms_pool_close(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_aligned_and_apart),
        cmocka_unit_test(sizes_that_cannot_be),
        cmocka_unit_test(a_block_serves_again),
        cmocka_unit_test(what_is_held_is_bounded),
        cmocka_unit_test(threads_share_a_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
