/* The map that numbers keys: equal keys get one index, different keys different ones,
 * even if their hashes collide. */
#include "base/map.h"

#include "tests/test.h"

static void equal_keys_get_one_index(void **state)
{
    (void)state;
    ms_map map = {.arena = test_cx()->arena};
    ASSERT_INT(ms_map_find(&map, "a", 1), -1);
    ASSERT_INT(ms_map_add(&map, "a", 1), 0);
    ASSERT_INT(ms_map_add(&map, "", 0), 1);
    ASSERT_INT(ms_map_add(&map, "a\0", 2), 2);
    ASSERT_INT(ms_map_add(&map, "a", 1), 0);
    ASSERT_INT(ms_map_find(&map, "a\0", 2), 2);
    ASSERT_INT(ms_map_find(&map, "", 0), 1);
    ASSERT_INT(ms_map_find(&map, "b", 1), -1);
    ASSERT_INT(map.num, 3);
}

static void keys_are_copied(void **state)
{
    (void)state;
    ms_map map = {.arena = test_cx()->arena};
    char key[] = "a key of more than eight bytes";
    ASSERT_INT(ms_map_add(&map, key, sizeof key), 0);
    key[0] = 'b';
    ASSERT_INT(ms_map_add(&map, key, sizeof key), 1);
    key[0] = 'a';
    ASSERT_INT(ms_map_find(&map, key, sizeof key), 0);
}

static void thousands_of_keys_keep_their_indices(void **state)
{
    (void)state;
    ms_map map = {.arena = test_cx()->arena};
    const int num = 50000;
    for (int i = 0; i < num; i++) {
        const int key[] = {i % 250, i / 250, -i};
        ASSERT_INT(ms_map_add(&map, key, sizeof key), i);
    }
    for (int i = 0; i < num; i++) {
        const int key[] = {i % 250, i / 250, -i};
        if (ms_map_find(&map, key, sizeof key) != i)
            fail_msg("key %d", i);
    }
    ASSERT_INT(map.num, num);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_keys_get_one_index),
        cmocka_unit_test(keys_are_copied),
        cmocka_unit_test(thousands_of_keys_keep_their_indices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
