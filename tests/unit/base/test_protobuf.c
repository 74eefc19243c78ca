/* Messages of Protocol Buffers as bytes: examples of its documentation
 * (protobuf.dev/programming-guides/encoding), and limits. */
#include "base/protobuf.h"

#include "tests/test.h"

static void expect(const ms_proto *message, const char *want)
{
    char got[256] = "";
    for (int i = 0; i < message->num && i < 80; i++)
        snprintf(got + 3 * i, 4, "%02x ", message->bytes[i]);
    ASSERT_TEXT(got, want);
}

static void documented_examples_have_their_bytes(void **state)
{
    (void)state;
    ms_arena *arena = ms_arena_open();
    ms_proto number = ms_proto_open(arena), text = number, outer = number, list = number;
    ms_proto_number_field(&number, 1, 150);
    expect(&number, "08 96 01 ");
    ms_proto_text_field(&text, 2, "testing");
    expect(&text, "12 07 74 65 73 74 69 6e 67 ");
    ms_proto_message_field(&outer, 3, &number);
    expect(&outer, "1a 03 08 96 01 ");
    ms_proto_varint(&list, 3);
    ms_proto_varint(&list, 270);
    ms_proto_varint(&list, 86942);
    expect(&list, "03 8e 02 9e a7 05 ");
    ms_arena_close(arena);
}

static void numbers_reach_their_limits(void **state)
{
    (void)state;
    static const struct {
        uint64_t value;
        const char *bytes;
    } cases[] = {{0, "00 "},
                 {127, "7f "},
                 {128, "80 01 "},
                 {(uint64_t)-2, "fe ff ff ff ff ff ff ff ff 01 "},
                 {UINT64_MAX, "ff ff ff ff ff ff ff ff ff 01 "}};
    ms_arena *arena = ms_arena_open();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ms_proto list = ms_proto_open(arena);
        ms_proto_varint(&list, cases[i].value);
        expect(&list, cases[i].bytes);
    }
    ms_proto field = ms_proto_open(arena);
    ms_proto_number_field(&field, 29, 1);
    expect(&field, "e8 01 01 ");
    ms_arena_close(arena);
}

static void a_stream_has_lengths_before_messages(void **state)
{
    (void)state;
    ms_arena *arena = ms_arena_open();
    char *letters = ms_arena_alloc(arena, 301);
    memset(letters, 'x', 300);
    ms_proto empty = ms_proto_open(arena), long_one = empty;
    ms_proto_text_field(&long_one, 1, letters);
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_proto_write(file, &empty);
    ms_proto_write(file, &long_one);
    ASSERT_INT(ftell(file), 1 + 2 + 3 + 300);
    const unsigned char *bytes = (const unsigned char *)test_read_back(arena, file);
    static const unsigned char want[] = {0, 0xaf, 0x02, 0x0a, 0xac, 0x02, 'x'};
    assert_memory_equal(bytes, want, sizeof want);
    ms_arena_close(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documented_examples_have_their_bytes),
        cmocka_unit_test(numbers_reach_their_limits),
        cmocka_unit_test(a_stream_has_lengths_before_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
