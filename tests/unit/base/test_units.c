/* Quantities with units ("80 GB"): which texts are read, which are refused, and how
 * quantities are written. */
#include "base/units.h"
#include "tests/test.h"

#include <stdbool.h>

static double parsed(const char *text, ms_unit unit)
{
    double value = -1.0;
    if (!ms_parse_quantity(text, unit, &value))
        fail_msg("\"%s\" was refused", text);
    return value;
}

static void refuse(const char *text, ms_unit unit)
{
    double value = -7.0;
    if (ms_parse_quantity(text, unit, &value))
        fail_msg("\"%s\" was read as %g", text, value);
    ASSERT_NEAR(value, -7.0, 0.0);
}

static void bytes_are_decimal_binary_or_bits(void **state)
{
    (void)state;
    ASSERT_NEAR(parsed("80 GiB", MS_UNIT_BYTES), 85899345920.0, 0.0);
    ASSERT_NEAR(parsed("80 GB", MS_UNIT_BYTES), 80e9, 0.0);
    ASSERT_NEAR(parsed("141GB", MS_UNIT_BYTES), 141e9, 0.0);
    ASSERT_NEAR(parsed("8 Gb", MS_UNIT_BYTES), 1e9, 0.0);
    ASSERT_NEAR(parsed("512 B", MS_UNIT_BYTES), 512.0, 0.0);
    ASSERT_NEAR(parsed("1.5 KiB", MS_UNIT_BYTES), 1536.0, 0.0);
    ASSERT_NEAR(parsed("0 B", MS_UNIT_BYTES), 0.0, 0.0);
}

static void rates_know_bits_and_bytes(void **state)
{
    (void)state;
    ASSERT_NEAR(parsed("450 GB/s", MS_UNIT_BYTES_PER_S), 450e9, 0.0);
    ASSERT_NEAR(parsed("400 Gb/s", MS_UNIT_BYTES_PER_S), 50e9, 0.0);
    ASSERT_NEAR(parsed("100Gbps", MS_UNIT_BYTES_PER_S), 12.5e9, 0.0);
    ASSERT_NEAR(parsed("3.35 TB/s", MS_UNIT_BYTES_PER_S), 3.35e12, 1e-15);
    ASSERT_NEAR(parsed("1 GiB/s", MS_UNIT_BYTES_PER_S), 1073741824.0, 0.0);
}

static void percentages_are_shares_below_one(void **state)
{
    (void)state;
    static const char *const refused[] = {"100%", "-1%", "8", "nan%", "8%%", "%", ""};
    double frac = -7.0;
    assert_true(ms_parse_percentage("8%", &frac));
    ASSERT_NEAR(frac, 0.08, 1e-15);
    assert_true(ms_parse_percentage("0.5%", &frac));
    ASSERT_NEAR(frac, 0.005, 1e-15);
    assert_true(ms_parse_percentage("0", &frac));
    ASSERT_NEAR(frac, 0.0, 0.0);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_false(ms_parse_percentage(refused[i], &frac));
    ASSERT_NEAR(frac, 0.0, 0.0); /* refused texts change nothing */
}

static void times_and_flop_rates(void **state)
{
    (void)state;
    ASSERT_NEAR(parsed("4 us", MS_UNIT_SECONDS), 4e-6, 0.0);
    ASSERT_NEAR(parsed("4 \xC2\xB5s", MS_UNIT_SECONDS), 4e-6, 0.0);
    ASSERT_NEAR(parsed("4 \xCE\xBCs", MS_UNIT_SECONDS), 4e-6, 0.0);
    ASSERT_NEAR(parsed("1.25 ms", MS_UNIT_SECONDS), 1.25e-3, 0.0);
    ASSERT_NEAR(parsed("30 min", MS_UNIT_SECONDS), 1800.0, 0.0);
    ASSERT_NEAR(parsed("2 h", MS_UNIT_SECONDS), 7200.0, 0.0);
    ASSERT_NEAR(parsed("989 TFLOP/s", MS_UNIT_FLOP_PER_S), 989e12, 0.0);
    ASSERT_NEAR(parsed("989.4TFLOPS", MS_UNIT_FLOP_PER_S), 989.4e12, 1e-15);
    ASSERT_NEAR(parsed("1 EFLOP/s", MS_UNIT_FLOP_PER_S), 1e18, 0.0);
    ASSERT_NEAR(parsed("5EFLOP/s", MS_UNIT_FLOP_PER_S), 5e18, 0.0);
    ASSERT_NEAR(parsed("5e3 GFLOP/s", MS_UNIT_FLOP_PER_S), 5e12, 0.0);
}

static void counts_are_powers_of_two(void **state)
{
    (void)state;
    ASSERT_NEAR(parsed("8k", MS_UNIT_COUNT), 8192.0, 0.0);
    ASSERT_NEAR(parsed("8 Ki", MS_UNIT_COUNT), 8192.0, 0.0);
    ASSERT_NEAR(parsed("4Mi", MS_UNIT_COUNT), 4194304.0, 0.0);
    ASSERT_NEAR(parsed("1000", MS_UNIT_COUNT), 1000.0, 0.0);
    ASSERT_NEAR(parsed("0", MS_UNIT_COUNT), 0.0, 0.0);
    ASSERT_NEAR(parsed("1e9", MS_UNIT_COUNT), 1e9, 0.0);
    refuse("8m", MS_UNIT_COUNT);
    refuse("8 B", MS_UNIT_COUNT);
}

static void what_is_no_quantity_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",        "80",       " 80 GiB",  "80 GiB ",  "-80 GiB", "+80 GiB",
        "80 gib",  "80 G",     "GiB",      ".5 GiB",   "5. GiB",  "0x10 GiB",
        "inf GiB", "nan GiB",  "1e GB",    "1,5 GiB",  "8\t GiB", "80 GiB/s",
        "80 GBs",  "1e999 B",  "1e308 TB", "1e-400 B", "80  ",    "8 0 GB",
        "1e5e5 B", "\xFF\xFE", "1__0 B",   "80 us",    "1..2 B",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refuse(bad[i], MS_UNIT_BYTES);
    refuse("450 GB", MS_UNIT_BYTES_PER_S);
    refuse("450 /s", MS_UNIT_BYTES_PER_S);
    refuse("5 Ms", MS_UNIT_SECONDS);
    refuse("989 TFLOP", MS_UNIT_FLOP_PER_S);
    refuse("989 tflop/s", MS_UNIT_FLOP_PER_S);
}

static void very_long_numbers_end_cleanly(void **state)
{
    (void)state;
    char text[600];
    memset(text, '1', sizeof text);
    snprintf(text + sizeof text - 5, 5, " GB");
    refuse(text, MS_UNIT_BYTES);
}

static void every_example_is_valid(void **state)
{
    (void)state;
    for (int unit = MS_UNIT_BYTES; unit <= MS_UNIT_COUNT; unit++)
        assert_true(parsed(ms_unit_example((ms_unit)unit), (ms_unit)unit) > 0.0);
}

static void check_format(double value, ms_unit unit, const char *want)
{
    char buf[64];
    ASSERT_TEXT(ms_format_quantity(buf, sizeof buf, value, unit), want);
}

static void three_digits_with_a_sensible_prefix(void **state)
{
    (void)state;
    check_format(85899345920.0, MS_UNIT_BYTES, "80.0 GiB");
    check_format(1010.0 * 1024 * 1024, MS_UNIT_BYTES, "1010 MiB");
    check_format(512.0, MS_UNIT_BYTES, "512 B");
    check_format(1023.9 * 1024 * 1024, MS_UNIT_BYTES, "1.00 GiB");
    check_format(0.0, MS_UNIT_BYTES, "0 B");
    check_format(-1536.0, MS_UNIT_BYTES, "-1.50 KiB");
    check_format(450e9, MS_UNIT_BYTES_PER_S, "450 GB/s");
    check_format(999.7e9, MS_UNIT_BYTES_PER_S, "1.00 TB/s");
    check_format(3.35e12, MS_UNIT_BYTES_PER_S, "3.35 TB/s");
    check_format(1.234e-3, MS_UNIT_SECONDS, "1.23 ms");
    check_format(999.6e-6, MS_UNIT_SECONDS, "1.00 ms");
    check_format(4e-6, MS_UNIT_SECONDS, "4.00 us");
    check_format(12.34, MS_UNIT_SECONDS, "12.3 s");
    check_format(0.0, MS_UNIT_SECONDS, "0 s");
    check_format(1800.0, MS_UNIT_SECONDS, "30.0 min");
    check_format(86400.0 * 12, MS_UNIT_SECONDS, "12.0 d");
    check_format(989e12, MS_UNIT_FLOP_PER_S, "989 TFLOP/s");
    check_format(8192.0, MS_UNIT_COUNT, "8192");
    check_format((double)NAN, MS_UNIT_SECONDS, "n/a");
    check_format((double)INFINITY, MS_UNIT_BYTES, "inf");
}

static void what_is_written_reads_back_nearly(void **state)
{
    (void)state;
    for (double value = 1.37e-8; value < 1e7; value *= 3.3) {
        char buf[64];
        ms_format_quantity(buf, sizeof buf, value, MS_UNIT_SECONDS);
        ASSERT_NEAR(parsed(buf, MS_UNIT_SECONDS), value, 0.006);
    }
    for (double value = 1100.0; value < 1e17; value *= 3.3) {
        char buf[64];
        ms_format_quantity(buf, sizeof buf, value, MS_UNIT_BYTES);
        ASSERT_NEAR(parsed(buf, MS_UNIT_BYTES), value, 0.006);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_decimal_binary_or_bits),
        cmocka_unit_test(rates_know_bits_and_bytes),
        cmocka_unit_test(percentages_are_shares_below_one),
        cmocka_unit_test(times_and_flop_rates),
        cmocka_unit_test(counts_are_powers_of_two),
        cmocka_unit_test(what_is_no_quantity_is_refused),
        cmocka_unit_test(very_long_numbers_end_cleanly),
        cmocka_unit_test(every_example_is_valid),
        cmocka_unit_test(three_digits_with_a_sensible_prefix),
        cmocka_unit_test(what_is_written_reads_back_nearly),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
