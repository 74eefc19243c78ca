/* The JSON tree of statically linked programs (base/static/cjson.c) against cJSON's
 * own, on random sound texts. */
#include "base/json_priv.h"
#include "base/rng.h"
#include "tests/test.h"

#include <cjson/cJSON.h>

/* Both implementations are in this program: the functions of base/static get the
 * prefix own_. */
#define cJSON_Delete                     own_Delete
#define cJSON_ParseWithLength            own_ParseWithLength
#define cJSON_IsNull                     own_IsNull
#define cJSON_IsBool                     own_IsBool
#define cJSON_IsTrue                     own_IsTrue
#define cJSON_IsNumber                   own_IsNumber
#define cJSON_IsString                   own_IsString
#define cJSON_IsArray                    own_IsArray
#define cJSON_IsObject                   own_IsObject
#define cJSON_GetArraySize               own_GetArraySize
#define cJSON_GetObjectItemCaseSensitive own_GetObjectItemCaseSensitive
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include "base/static/cjson.c"
#undef cJSON_Delete
#undef cJSON_ParseWithLength
#undef cJSON_IsNull
#undef cJSON_IsBool
#undef cJSON_IsTrue
#undef cJSON_IsNumber
#undef cJSON_IsString
#undef cJSON_IsArray
#undef cJSON_IsObject
#undef cJSON_GetArraySize
#undef cJSON_GetObjectItemCaseSensitive

/* ---- random texts ---- */

#define TEXT_BYTES 60000

typedef struct writer {
    ms_rng rng;
    char text[TEXT_BYTES];
    size_t length;
} writer;

static void put(writer *w, const char *piece)
{
    size_t length = strlen(piece);
    assert_true(w->length + length < TEXT_BYTES);
    memcpy(w->text + w->length, piece, length + 1);
    w->length += length;
}

static const char *one_of(writer *w, const char *const *choices, size_t num)
{
    return choices[ms_rng_below(&w->rng, num)];
}

static void put_space(writer *w)
{
    static const char *const spaces[] = {"", "", "", " ", "\n", "\t \r\n"};
    put(w, one_of(w, spaces, sizeof spaces / sizeof *spaces));
}

static void put_string(writer *w)
{
    static const char *const pieces[] = {"a",
                                         "key",
                                         "\\n",
                                         "\\t",
                                         "\\b",
                                         "\\f",
                                         "\\r",
                                         "\\\"",
                                         "\\\\",
                                         "\\/",
                                         "\\u0041",
                                         "\\u00e9",
                                         "\\u20AC",
                                         "\\uD83D\\uDe00",
                                         "\\uffff",
                                         "\xC3\xA9",
                                         "\xF0\x9F\x98\x80",
                                         "{[:,]}"};
    put(w, "\"");
    for (uint64_t left = ms_rng_below(&w->rng, 6); left > 0; left--)
        put(w, one_of(w, pieces, sizeof pieces / sizeof *pieces));
    put(w, "\"");
}

static void put_number(writer *w)
{
    static const char *const odd[] = {"0",
                                      "-0",
                                      "-0.0",
                                      "1e400",
                                      "-1e400",
                                      "1e-400",
                                      "4.9e-324",
                                      "1E+22",
                                      "0.1",
                                      "1e22",
                                      "9007199254740993",
                                      "1.7976931348623157e308"};
    char text[64];
    if (ms_rng_below(&w->rng, 3) == 0) {
        put(w, one_of(w, odd, sizeof odd / sizeof *odd));
        return;
    }
    double exponent = 40.0 * ms_rng_uniform(&w->rng) - 20.0;
    snprintf(text, sizeof text, "%.17g", (ms_rng_uniform(&w->rng) - 0.5) * exp(exponent));
    put(w, text);
}

static void put_value(writer *w, int depth);

static void put_container(writer *w, int depth, bool is_object)
{
    put(w, is_object ? "{" : "[");
    put_space(w);
    for (uint64_t left = ms_rng_below(&w->rng, 5); left > 0; left--) {
        if (is_object) {
            put_string(w);
            put_space(w);
            put(w, ":");
            put_space(w);
        }
        put_value(w, depth + 1);
        put_space(w);
        if (left > 1) {
            put(w, ",");
            put_space(w);
        }
    }
    put(w, is_object ? "}" : "]");
}

static void put_value(writer *w, int depth)
{
    static const char *const words[] = {"true", "false", "null"};
    const uint64_t num_kinds = depth < 6 ? 6 : 3;
    switch (ms_rng_below(&w->rng, num_kinds)) {
    case 0:
        put(w, one_of(w, words, 3));
        break;
    case 1:
        put_string(w);
        break;
    case 2:
        put_number(w);
        break;
    default:
        put_container(w, depth, ms_rng_below(&w->rng, 2) == 0);
    }
}

/* ---- comparison ---- */

static void assert_questions(const cJSON *item)
{
    ASSERT_INT(own_IsNull(item), cJSON_IsNull(item));
    ASSERT_INT(own_IsBool(item), cJSON_IsBool(item));
    ASSERT_INT(own_IsTrue(item), cJSON_IsTrue(item));
    ASSERT_INT(own_IsNumber(item), cJSON_IsNumber(item));
    ASSERT_INT(own_IsString(item), cJSON_IsString(item));
    ASSERT_INT(own_IsArray(item), cJSON_IsArray(item));
    ASSERT_INT(own_IsObject(item), cJSON_IsObject(item));
    ASSERT_INT(own_GetArraySize(item), cJSON_GetArraySize(item));
}

static void assert_text(const char *got, const char *want)
{
    assert_true((got == NULL) == (want == NULL));
    if (want != NULL)
        ASSERT_TEXT(got, want);
}

static void assert_same(const cJSON *own, const cJSON *want)
{
    for (; want != NULL; want = want->next, own = own->next) {
        assert_non_null(own);
        ASSERT_INT(own->type, want->type);
        assert_text(own->string, want->string);
        assert_text(own->valuestring, want->valuestring);
        assert_memory_equal(&own->valuedouble, &want->valuedouble, sizeof(double));
        assert_questions(own);
        if (cJSON_IsObject(want) && want->child != NULL) {
            const char *key = want->child->string;
            const cJSON *found = cJSON_GetObjectItemCaseSensitive(want, key);
            assert_ptr_equal(own_GetObjectItemCaseSensitive(want, key), found);
            assert_null(own_GetObjectItemCaseSensitive(own, "no such key"));
        }
        assert_same(own->child, want->child);
    }
    assert_null(own);
}

static void trees_equal_those_of_cjson(void **state)
{
    (void)state;
    static writer w;
    long num_bytes = 0;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        w.rng = ms_rng_seed(seed);
        w.length = 0;
        put_space(&w);
        put_value(&w, 0);
        put_space(&w);
        ms_json_fault bare_word;
        ms_json_fault fault = ms_json_check(w.text, w.length, &bare_word);
        if (fault.message != NULL)
            fail_msg("seed %d: %s: %s", (int)seed, fault.message, w.text);
        cJSON *want = cJSON_ParseWithLength(w.text, w.length + 1);
        cJSON *own = own_ParseWithLength(w.text, w.length + 1);
        assert_non_null(want);
        assert_non_null(own);
        assert_same(own, want);
        cJSON_Delete(want);
        own_Delete(own);
        num_bytes += (long)w.length;
    }
    assert_true(num_bytes > 100000);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_equal_those_of_cjson),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
