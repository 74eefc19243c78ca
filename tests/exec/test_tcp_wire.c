/* One end of a wire; the test is the other. */
#include "exec/backend_tcp_wire_priv.h"

#include "base/clock.h"
#include "exec/sockets.h"
#include "tests/test.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LARGE (1L << 20) /* numbers: more than systems keep for a connection */

typedef struct heard {
    atomic_long failed; /* the rank; -1: none */
    const char *_Atomic why;
} heard;

static bool arrived(void *state, long from, ms_parcel *parcel)
{
    (void)state;
    (void)from;
    ms_parcel_drop(parcel);
    return true;
}

static void failed(void *state, long rank, const char *why)
{
    heard *h = state;
    atomic_store(&h->why, why);
    atomic_store(&h->failed, rank);
}

typedef struct ends {
    ms_rendezvous meeting;
    int sockets[2], other;
    ms_pool *pool;
    heard heard;
    ms_wire *wire;
} ends;

static void open_ends(ends *e)
{
    int pair[2];
    ASSERT_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    e->other = ms_socket_prepare(pair[1]);
    e->sockets[0] = -1;
    e->sockets[1] = ms_socket_prepare(pair[0]);
    assert_true(e->other >= 0 && e->sockets[1] >= 0);
    e->meeting = (ms_rendezvous){.rank = 0, .size = 2, .sockets = e->sockets};
    e->pool = ms_pool_open();
    atomic_init(&e->heard.failed, -1);
    atomic_init(&e->heard.why, NULL);
    const ms_wire_listener listener = {&e->heard, arrived, failed};
    ASSERT_INT(ms_wire_open(test_cx(), &e->meeting, e->pool, &listener, &e->wire), MS_OK);
}

static void close_ends(ends *e)
{
    ms_wire_close(e->wire, 0.1);
    (void)close(e->sockets[1]);
    (void)close(e->other);
    ms_pool_close(e->pool);
}

static void wait_for_failure(ends *e)
{
    double until_s = ms_clock_s() + 10.0;
    while (atomic_load(&e->heard.failed) < 0 && ms_clock_s() < until_s)
        ms_wire_rest();
    ASSERT_INT(atomic_load(&e->heard.failed), 1);
}

static void send_much(ends *e)
{
    double *x = calloc(LARGE, sizeof *x);
    assert_non_null(x);
    ms_transfer t = {
        .kind = MS_TRANSFER_SEND, .scalar = MS_SCALAR_FP64, .send = x, .count = LARGE};
    ms_parcel *parcel = ms_parcel_pack(e->pool, &t, 1);
    assert_non_null(parcel);
    assert_true(ms_wire_send(e->wire, 1, parcel, (ms_portion){parcel->data, LARGE}));
    ms_parcel_drop(parcel);
    free(x);
}

/* Who has ended what it says, and reads on, gets the rest; who is gone holds up nobody. */
static void what_waits_is_sent_after_the_other_ended(void **state)
{
    (void)state;
    ends e;
    open_ends(&e);
    send_much(&e);
    ASSERT_INT(shutdown(e.other, SHUT_WR), 0);
    wait_for_failure(&e);
    ASSERT_TEXT(atomic_load(&e.heard.why), "has ended");
    size_t num = sizeof(ms_wire_head) + LARGE * sizeof(double);
    char *all = malloc(num);
    assert_non_null(all);
    ms_patience patience = ms_patience_for(10.0, NULL);
    ASSERT_INT(ms_socket_get(&patience, e.other, all, num), MS_OK);
    assert_true(ms_wire_flush(e.wire, 10.0));
    free(all);
    send_much(&e);
    ASSERT_INT(shutdown(e.other, SHUT_RDWR), 0);
    assert_true(ms_wire_flush(e.wire, 10.0));
    close_ends(&e);
}

/* What is no message ends the connection before memory is taken for it. */
static void nonsense_is_told(void **state)
{
    (void)state;
    const ms_wire_head heads[] = {
        {.first_word = 1},
        {.first_word = MS_WIRE_FIRST_WORD, .kind = 99},
        {.first_word = MS_WIRE_FIRST_WORD, .kind = MS_TRANSFER_SEND, .count = -1},
        {.first_word = MS_WIRE_FIRST_WORD, .kind = MS_TRANSFER_SEND, .num = 5},
        {.first_word = MS_WIRE_FIRST_WORD,
         .kind = MS_TRANSFER_SEND,
         .scalar = MS_SCALAR_FP64,
         .count = 1L << 61, /* in bytes: 0 */
         .num = 1L << 61},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        ends e;
        open_ends(&e);
        ms_patience patience = ms_patience_for(10.0, NULL);
        ASSERT_INT(ms_socket_put(&patience, e.other, &heads[i], sizeof heads[i]), MS_OK);
        wait_for_failure(&e);
        ASSERT_TEXT(atomic_load(&e.heard.why), "sends what is no message");
        close_ends(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waits_is_sent_after_the_other_ended),
        cmocka_unit_test(nonsense_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
