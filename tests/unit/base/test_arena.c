/* The arena (memory that is freed as a whole): allocations are zeroed and aligned, and
 * the arena can be rewound to an earlier point. */
#include "tests/test.h"

static void memory_is_zeroed_even_after_a_rewind(void **state)
{
    (void)state;
    ms_arena *arena = ms_arena_open();
    ms_arena_mark mark = ms_arena_save(arena);
    for (int round = 0; round < 3; round++) {
        unsigned char *bytes = ms_arena_alloc(arena, 1000);
        for (int i = 0; i < 1000; i++)
            ASSERT_INT(bytes[i], 0);
        memset(bytes, 0xFF, 1000);
        ms_arena_rewind(arena, mark);
    }
    ms_arena_close(arena);
}

static void every_pointer_is_aligned_and_apart(void **state)
{
    (void)state;
    ms_arena *arena = ms_arena_open();
    const char *last = NULL;
    for (size_t size = 0; size < 100; size++) {
        const char *at = ms_arena_alloc(arena, size);
        ASSERT_INT((uintptr_t)at % _Alignof(max_align_t), 0);
        assert_ptr_not_equal(at, last);
        last = at;
    }
    ms_arena_close(arena);
}

static void lists_keep_their_items_when_they_grow(void **state)
{
    (void)state;
    ms_arena *arena = ms_arena_open();
    int *items = NULL, num = 0, capacity = 0;
    for (; num < 100; num++) {
        int *before = items;
        MS_MAKE_ROOM(arena, items, num, capacity, 3);
        assert_true(capacity > num);
        assert_true(items == before || num == 0 || num == capacity / 2);
        items[num] = num;
    }
    for (int i = 0; i < num; i++)
        ASSERT_INT(items[i], i);
    ASSERT_INT(capacity, 192);
    ms_arena_close(arena);
}

static void blocks_larger_than_the_usual_one_work(void **state)
{
    (void)state;
    ms_arena *arena = ms_arena_open();
    double *small = MS_NEW(arena, double);
    double *many = MS_NEW_ARRAY(arena, 1000000, double);
    *small = 1.0;
    many[0] = 2.0;
    many[999999] = 3.0;
    ASSERT_NEAR(*small, 1.0, 0.0);
    ASSERT_NEAR(many[999999], 3.0, 0.0);
    ms_arena_close(arena);
}

static void a_rewind_keeps_what_was_there_before_the_mark(void **state)
{
    (void)state;
    ms_arena *arena = ms_arena_open();
    char *kept = ms_arena_strdup(arena, "kept");
    ms_arena_mark mark = ms_arena_save(arena);
    for (int i = 0; i < 1000; i++) {
        ms_arena_printf(arena, "%d %s", i, "gone");
        ms_arena_alloc(arena, 5000);
    }
    ms_arena_rewind(arena, mark);
    ASSERT_TEXT(kept, "kept");
    ASSERT_TEXT(ms_arena_printf(arena, "%03d", 7), "007");
    ASSERT_TEXT(kept, "kept");
    ms_arena_close(arena);
}

static void a_mark_of_an_empty_arena_frees_everything(void **state)
{
    (void)state;
    ms_arena *arena = ms_arena_open();
    ms_arena_mark mark = ms_arena_save(arena);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 100; i++)
            ms_arena_alloc(arena, 10000);
        ms_arena_rewind(arena, mark);
    }
    assert_null(ms_arena_save(arena).block);
    ms_arena_close(arena);
}

static void a_copy_of_a_part_ends_with_a_zero(void **state)
{
    (void)state;
    ms_arena *arena = ms_arena_open();
    ASSERT_TEXT(ms_arena_strndup(arena, "abcdef", 3), "abc");
    ASSERT_TEXT(ms_arena_strndup(arena, "", 0), "");
    ms_arena_close(arena);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_even_after_a_rewind),
        cmocka_unit_test(every_pointer_is_aligned_and_apart),
        cmocka_unit_test(lists_keep_their_items_when_they_grow),
        cmocka_unit_test(blocks_larger_than_the_usual_one_work),
        cmocka_unit_test(a_rewind_keeps_what_was_there_before_the_mark),
        cmocka_unit_test(a_mark_of_an_empty_arena_frees_everything),
        cmocka_unit_test(a_copy_of_a_part_ends_with_a_zero),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
