/* Tests of safetensors files: what is written reads back, files of other programs are
 * read, and errors are reported with their place. */
#include "exec/params/safetensors.h"

#include "base/rng.h"
#include "tests/test.h"

#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes a safetensors file of the header text and `num_data` data bytes 0, 1, 2, ... */
static const unsigned char *make_file(ms_arena *arena, const char *header,
                                      size_t num_data, size_t *length)
{
    size_t header_length = strlen(header);
    unsigned char *file = ms_arena_alloc(arena, 8 + header_length + num_data);
    for (size_t i = 0, rest = header_length; i < 8; i++, rest >>= 8)
        file[i] = (unsigned char)rest;
    memcpy(file + 8, header, header_length);
    for (size_t i = 0; i < num_data; i++)
        file[8 + header_length + i] = (unsigned char)i;
    *length = 8 + header_length + num_data;
    return file;
}

static ms_status read_text(ms_ctx *cx, const char *header, size_t num_data,
                           ms_safe_file *out)
{
    size_t length;
    const unsigned char *file = make_file(cx->arena, header, num_data, &length);
    return ms_safetensors_read(cx, "x.safetensors", file, length, out);
}

/* Expects that reading the file reports exactly one error, containing `message`. */
static void expect_error(const char *header, size_t num_data, const char *message)
{
    ms_ctx *cx = test_cx();
    ms_safe_file file;
    ASSERT_INT(read_text(cx, header, num_data, &file), MS_EINPUT);
    assert_int_equal(cx->num_errors, 1);
    if (strstr(cx->first->message, message) == NULL)
        fail_msg("%s\n  got  \"%s\"\n  want \"%s\"", header, cx->first->message, message);
}

/* ---- files of other programs ---- */

static void the_published_form_is_read(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_safe_file file;
    /* tensors out of order, metadata, header padding, a scalar and an empty tensor */
    ASSERT_OK(
        read_text(cx,
                  "{\"__metadata__\":{\"format\":\"pt\"},"
                  "\"b\":{\"dtype\":\"I32\",\"shape\":[2,1],\"data_offsets\":[8,16]},"
                  "\"none\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[8,8]},"
                  "\"a\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]}}   ",
                  16, &file),
        cx);
    ASSERT_INT(file.num_tensors, 3);
    ASSERT_TEXT(file.tensors[0].name, "a");
    ASSERT_TEXT(file.tensors[1].name, "none");
    ASSERT_TEXT(file.tensors[2].name, "b");
    ASSERT_INT(file.tensors[0].num_dims, 0);
    ASSERT_INT(file.tensors[0].count, 1);
    ASSERT_INT(file.tensors[1].count, 0);
    const ms_safe_tensor *b = ms_safe_find(&file, "b");
    ASSERT_INT(b->shape[0], 2);
    ASSERT_INT(b->shape[1], 1);
    ASSERT_NEAR(b->values[0], 0x0b0a0908, 0.0);
    ASSERT_NEAR(b->values[1], 0x0f0e0d0c, 0.0);
    assert_null(ms_safe_find(&file, "c"));
    ASSERT_OK(read_text(cx, "{}", 0, &file), cx);
    ASSERT_INT(file.num_tensors, 0);
}

/* ---- invalid files ---- */

#define ENTRY(type, shape, offsets)                                                      \
    "{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void wrong_headers_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t num_data;
        const char *message;
    } wrong[] = {
        {" {}", 0, "must begin with '{'"},
        {"[]", 0, "must begin with '{'"},
        {"{\"a\":", 0, ""},
        {"{\"a\":3}", 0, "an object must stand here"},
        {"{\"\xff\":" ENTRY("F32", "[1]", "[0,4]") "}", 4, "UTF-8"},
        {"{\"a\":" ENTRY("F32", "[1]", "[0,4]") ",\"a\":" ENTRY("F32", "[1]",
                                                                "[4,8]") "}",
         8, "stands twice"},
        {"{\"a\":" ENTRY("F8_E5M2", "[1]", "[0,1]") "}", 1, "must be one of F64, F32"},
        {"{\"a\":" ENTRY("F32", "[1,1,1,1,1]", "[0,4]") "}", 4, "5 dims"},
        {"{\"a\":" ENTRY("F32", "[-1]", "[0,4]") "}", 4, ""},
        {"{\"a\":" ENTRY("F32", "[1.5]", "[0,4]") "}", 4, ""},
        {"{\"a\":" ENTRY("F32", "4", "[0,4]") "}", 4, "must be an array"},
        {"{\"a\":" ENTRY("F32", "[4294967296,4294967296]", "[0,4]") "}", 4,
         "more elements"},
        {"{\"a\":" ENTRY("F32", "[1]", "[0,8]") "}", 8, "1 elements of F32 need 4"},
        {"{\"a\":" ENTRY("F32", "[1]", "[4,0]") "}", 4, ""},
        {"{\"a\":" ENTRY("F32", "[2]", "[0,8]") "}", 4, ""},
        {"{\"a\":" ENTRY("F32", "[1]", "[0]") "}", 4, "must be [begin, end]"},
        {"{\"a\":" ENTRY("F32", "[1]", "[4,8]") "}", 8,
         "4 bytes before the data of \"a\""},
        {"{\"a\":" ENTRY("F32", "[1]", "[0,4]") "}", 8, "4 bytes at the end"},
        {"{\"a\":" ENTRY("F32", "[2]", "[0,8]") ",\"b\":" ENTRY("F32", "[1]",
                                                                "[4,8]") "}",
         8, "data of \"b\" overlap those of \"a\""},
        {"{\"a\":" ENTRY("F32", "[1]", "[0,4]") ",\"b\":" ENTRY("F32", "[1]",
                                                                "[0,4]") "}",
         4, "overlap"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "\"data_offsets\" is missing"},
        {"{\"__metadata__\":{\"a\":1}}", 0, ""},
        {"{\"__metadata__\":\"a\"}", 0, "object of texts"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_error(wrong[i].header, wrong[i].num_data, wrong[i].message);
}

static void wrong_lengths_are_refused(void **state)
{
    (void)state;
    static const unsigned char huge[] = "\xff\xff\xff\xff\xff\xff\xff\xff{}";
    ms_ctx *cx = test_cx();
    ms_safe_file file;
    ASSERT_INT(ms_safetensors_read(cx, "x", huge, 10, &file), MS_EINPUT);
    assert_non_null(strstr(cx->first->message, "18446744073709551615 bytes"));
    for (size_t length = 0; length < 8; length++)
        ASSERT_INT(ms_safetensors_read(test_cx(), "x", huge, length, &file), MS_EINPUT);
    ASSERT_INT(ms_safetensors_read(test_cx(), "x",
                                   (const unsigned char *)"\0\0\0\0\0\0\0\0", 8, &file),
               MS_EINPUT);
}

/* A valid file cut off at any length is an error. */
static void cut_files_are_refused(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    size_t length;
    const unsigned char *whole =
        make_file(cx->arena, "{\"a\":" ENTRY("F64", "[2]", "[0,16]") "}", 16, &length);
    for (size_t cut = 0; cut < length; cut++) {
        ms_ctx *here = test_cx();
        ms_safe_file file;
        unsigned char *part = ms_arena_alloc(here->arena, cut);
        memcpy(part, whole, cut);
        ASSERT_INT(ms_safetensors_read(here, "x", part, cut, &file), MS_EINPUT);
        assert_true(here->num_errors > 0);
    }
}

/* ---- writing ---- */

static const char *scratch(ms_ctx *cx, const char *name)
{
    return ms_arena_printf(cx->arena, "build/test_safetensors.%ld.%s", (long)getpid(),
                           name);
}

/* Draws a number that every tensor type represents exactly. */
static double sample(ms_rng *rng, ms_safe_type type)
{
    double whole = (double)ms_rng_below(rng, 255) - 127.0;
    return type == MS_SAFE_I32 || type == MS_SAFE_I64 ? whole : ldexp(whole, -4);
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_rng rng = ms_rng_seed(1);
    ms_safe_tensor tensors[2 * MS_NUM_SAFE_TYPES] = {0};
    int num = 2 * MS_NUM_SAFE_TYPES;
    for (int i = 0; i < num; i++) {
        ms_safe_tensor *tensor = &tensors[i];
        tensor->name = ms_arena_printf(cx->arena, "\"t\\%c/\xc3\xa9", 'z' - i);
        tensor->type = (ms_safe_type)(i % MS_NUM_SAFE_TYPES);
        tensor->num_dims = i % (MS_SAFE_DIMS + 1);
        tensor->count = 1;
        for (int d = 0; d < tensor->num_dims; d++)
            tensor->count *= tensor->shape[d] = 1 + (long)ms_rng_below(&rng, 9);
        double *values = MS_NEW_ARRAY(cx->arena, tensor->count, double);
        for (long k = 0; k < tensor->count; k++)
            values[k] = sample(&rng, tensor->type);
        tensor->values = values;
    }
    ms_safe_file file = {.num_tensors = num, .tensors = tensors}, again;
    const char *path = scratch(cx, "all");
    ASSERT_OK(ms_safetensors_write(cx, path, &file), cx);
    ASSERT_OK(ms_safetensors_load(cx, path, &again), cx);
    remove(path);
    ASSERT_INT(again.num_tensors, num);
    for (int i = 0; i < num; i++) {
        const ms_safe_tensor *want = &tensors[num - 1 - i], *got = &again.tensors[i];
        ASSERT_TEXT(got->name, want->name); /* tensors are written sorted by name */
        ASSERT_INT(got->type, want->type);
        ASSERT_INT(got->num_dims, want->num_dims);
        assert_memory_equal(got->shape, want->shape, sizeof got->shape);
        assert_memory_equal(got->values, want->values,
                            (size_t)want->count * sizeof(double));
    }
}

static void halves_are_rounded_to_nearest_even(void **state)
{
    (void)state;
    /* expected: torch.tensor(x, dtype=torch.float64).to(torch.bfloat16 or torch.float16);
     * the smallest subnormal float16 is 2^-24 */
    static const struct {
        double value, bf16, f16;
    } known[] = {
        {0.0, 0.0, 0.0},
        {1.0 / 3.0, 0.333984375, 0.333251953125},
        {1.0 + 0x1p-8, 1.0, 1.0 + 0x1p-8},
        {1.0 + 0x1.8p-7, 1.0 + 0x1p-6, 1.0 + 0x1.8p-7},
        {1.0 + 0x1p-11, 1.0, 1.0},
        {1.0 + 0x1.8p-10, 1.0, 1.0 + 0x1p-9},
        {65519.0, 65536.0, 65504.0},
        {65520.0, 65536.0, INFINITY},
        {-3e38, -3.00405527047391e+38, -INFINITY},
        {0x1p-24, 0x1p-24, 0x1p-24},
        {0x1p-25, 0x1p-25, 0.0},
        {0x1.8p-24, 0x1.8p-24, 0x1p-23},
        {INFINITY, INFINITY, INFINITY},
    };
    enum {
        NUM = sizeof known / sizeof *known
    };
    ms_ctx *cx = test_cx();
    double values[NUM];
    for (int i = 0; i < NUM; i++)
        values[i] = known[i].value;
    ms_safe_tensor tensors[2] = {
        {.name = "a", .type = MS_SAFE_BF16, .num_dims = 1, .shape = {NUM}, .count = NUM},
        {.name = "b", .type = MS_SAFE_F16, .num_dims = 1, .shape = {NUM}, .count = NUM}};
    tensors[0].values = tensors[1].values = values;
    ms_safe_file file = {.num_tensors = 2, .tensors = tensors}, again;
    const char *path = scratch(cx, "halves");
    ASSERT_OK(ms_safetensors_write(cx, path, &file), cx);
    ASSERT_OK(ms_safetensors_load(cx, path, &again), cx);
    remove(path);
    for (int i = 0; i < NUM; i++) {
        double bf16 = again.tensors[0].values[i], f16 = again.tensors[1].values[i];
        if (!(bf16 == known[i].bf16 || fabs(bf16 / known[i].bf16 - 1.0) < 1e-9))
            fail_msg("%g: bf16 %.10g, want %.10g", known[i].value, bf16, known[i].bf16);
        if (!(f16 == known[i].f16))
            fail_msg("%g: f16 %.10g, want %.10g", known[i].value, f16, known[i].f16);
    }
}

/* A written header is padded so that tensor data begin at a multiple of 8; no temporary
 * file remains. */
static void data_are_aligned(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    double one = 1.0;
    ms_safe_tensor tensor = {
        .name = "x", .type = MS_SAFE_F64, .count = 1, .values = &one};
    ms_safe_file file = {.num_tensors = 1, .tensors = &tensor};
    const char *path = scratch(cx, "aligned");
    ASSERT_OK(ms_safetensors_write(cx, path, &file), cx);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    ASSERT_INT(info.st_size % 8, 0);
    assert_int_not_equal(
        stat(ms_arena_printf(cx->arena, "%s.%ld.tmp", path, (long)getpid()), &info), 0);
    remove(path);
}

static void files_that_cannot_be_are_errors(void **state)
{
    (void)state;
    ms_safe_file file = {0};
    ASSERT_INT(ms_safetensors_load(test_cx(), "build/no/such.safetensors", &file),
               MS_EIO);
    ASSERT_INT(ms_safetensors_load(test_cx(), "build", &file), MS_EIO);
    ASSERT_INT(ms_safetensors_write(test_cx(), "build/no/such.safetensors", &file),
               MS_EIO);
    ASSERT_INT(ms_safetensors_write(test_cx(), "build", &file), MS_EIO);
    if (access("/dev/full", W_OK) == 0)
        ASSERT_INT(ms_safetensors_write(test_cx(), "/dev/full", &file), MS_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_form_is_read),
        cmocka_unit_test(wrong_headers_are_refused),
        cmocka_unit_test(wrong_lengths_are_refused),
        cmocka_unit_test(cut_files_are_refused),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(halves_are_rounded_to_nearest_even),
        cmocka_unit_test(data_are_aligned),
        cmocka_unit_test(files_that_cannot_be_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
