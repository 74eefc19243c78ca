/* Declarations for every test: cmocka, comparisons that print both values readably, and contexts whose
 * memory is freed at the end. cmocka 1.1.5 compares floats only and prints integers in hex. */
#ifndef MS_TESTS_TEST_H
#define MS_TESTS_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/diag.h"

/* Number of cases of a test: fewer under sanitizers, which are ten times slower and check
 * the use of memory; the plain build checks the results of all cases. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_CASES(plain, sanitized) (sanitized)
#else
#define TEST_CASES(plain, sanitized) (plain)
#endif

/* Relative: costs are doubles over 15 decades. A zero `want` needs an exact zero. */
#define ASSERT_NEAR(got, want, rel)                                                      \
    do {                                                                                 \
        double got_ = (got), want_ = (want);                                             \
        if (!(fabs(got_ - want_) <= (rel)*fabs(want_)))                                  \
            fail_msg("%s: got %.17g, want %.17g (rel %.3g > %.3g)", #got, got_, want_,   \
                     fabs(got_ - want_) / fabs(want_), (double)(rel));                   \
    } while (0)

#define ASSERT_INT(got, want)                                                            \
    do {                                                                                 \
        long long got_ = (long long)(got), want_ = (long long)(want);                    \
        if (got_ != want_)                                                               \
            fail_msg("%s: got %lld, want %lld", #got, got_, want_);                      \
    } while (0)

#define ASSERT_TEXT(got, want)                                                           \
    do {                                                                                 \
        const char *got_ = (got), *want_ = (want);                                       \
        if (got_ == NULL || want_ == NULL ? got_ != want_ : strcmp(got_, want_) != 0)    \
            fail_msg("%s:\n  got  \"%s\"\n  want \"%s\"", #got,                          \
                     got_ == NULL ? "(null)" : got_, want_ == NULL ? "(null)" : want_);  \
    } while (0)

/* The status is MS_OK; otherwise prints the diagnostics of the context. */
#define ASSERT_OK(status_expr, cx)                                                       \
    do {                                                                                 \
        ms_status status_ = (status_expr);                                               \
        if (status_ != MS_OK) {                                                          \
            ms_diag_print((cx), stderr);                                                 \
            fail_msg("%s: status %d", #status_expr, (int)status_);                       \
        }                                                                                \
    } while (0)

typedef struct test_context {
    ms_ctx cx; /* first member: a pointer to it is a pointer to the whole struct */
    struct test_context *below;
} test_context;

static test_context *test_contexts;

static inline void test_close_contexts(void)
{
    while (test_contexts != NULL) {
        ms_arena *arena =
            test_contexts->cx.arena; /* the context lives in its own arena */
        test_contexts = test_contexts->below;
        ms_arena_close(arena);
    }
}

/* A fresh context; it is freed when the test program ends. */
static inline ms_ctx *test_cx(void)
{
    ms_arena *arena = ms_arena_open();
    test_context *made = MS_NEW(arena, test_context);
    made->cx.arena = arena;
    if (test_contexts == NULL)
        atexit(test_close_contexts);
    made->below = test_contexts;
    test_contexts = made;
    return &made->cx;
}

/* Everything that was written to a temporary file, in the arena; closes the file. */
static inline const char *test_read_back(ms_arena *arena, FILE *file)
{
    long length = ftell(file);
    assert_true(length >= 0);
    rewind(file);
    char *text = ms_arena_alloc(arena, (size_t)length + 1);
    ASSERT_INT(fread(text, 1, (size_t)length, file), length);
    fclose(file);
    return text;
}

/* The diagnostics of a context as they would be printed. */
static inline const char *test_messages(ms_ctx *cx)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_diag_print(cx, file);
    return test_read_back(cx->arena, file);
}

#endif
