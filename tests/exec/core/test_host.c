/* Tests of reading the memory size of the machine that runs the tests. */
#include "exec/core/host_memory.h"

#include "tests/test.h"

static void memory_is_that_of_a_machine(void **state)
{
    (void)state;
    double bytes = ms_host_memory_bytes();
    assert_true(bytes > 1e6 && bytes < 1e15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_that_of_a_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
