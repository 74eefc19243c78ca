/* Measures collectives over all ranks, and sends from each even rank to the next rank. */
#include "exec/measure/measure_priv.h"

#include "base/clock.h"

static const long least_bytes = 8;
static const long most_bytes = 64L << 20;
/* Size of the memory in which messages are at random places: more than caches hold, as in
 * a model of many layers. */
static const long region_bytes = 128L << 20;
static const size_t line_bytes = 64;

static size_t real_bytes_of(const ms_measure *how)
{
    return ms_scalar_bytes(ms_precision_of(how->type).real);
}

/* The next message size; the largest size is always included. */
static long next_size(long bytes, long growth)
{
    bool last = bytes < most_bytes && bytes * growth > most_bytes;
    return last ? most_bytes : bytes * growth;
}

/* Lists the cases of all collectives in *cases; returns their number. Sizes as in
 * costmodel/cost/collective_cost.h: the full tensor of gathers and reductions, a rank's
 * share of an all-to-all. */
int ms_collective_cases(ms_arena *arena, const ms_measure *how, ms_sample **cases)
{
    const long growth = how->quick ? 8 : 2;
    *cases = MS_NEW_ARRAY(arena, MS_NUM_COLLECTIVES * 32, ms_sample);
    int num = 0;
    if (how->num_ranks < 2)
        return 0;
    long least = (long)real_bytes_of(how) * how->num_ranks;
    least = least > least_bytes ? least : least_bytes;
    for (int kind = 0; kind < MS_NUM_COLLECTIVES; kind++) {
        for (long bytes = least; bytes <= most_bytes; bytes = next_size(bytes, growth)) {
            (*cases)[num++] = (ms_sample){.kind = MS_SAMPLE_COLLECTIVE,
                                          .what = kind,
                                          .ranks = how->num_ranks,
                                          .size = {(double)bytes}};
        }
    }
    return num;
}

typedef struct buffers {
    char *send, *receive; /* region_bytes each */
    long *counts;         /* (ranks): elements per peer of an all-to-all */
    ms_rng rng;
} buffers;

static char *random_place(char *region, buffers *b)
{
    uint64_t places = (uint64_t)(region_bytes - most_bytes) / line_bytes;
    return region + line_bytes * ms_rng_below(&b->rng, places + 1);
}

static ms_transfer transfer_of(const ms_measurer *m, const ms_sample *sample, buffers *b)
{
    static const unsigned char kinds[] = {[MS_ALL_GATHER] = MS_TRANSFER_ALL_GATHER,
                                          [MS_REDUCE_SCATTER] =
                                              MS_TRANSFER_REDUCE_SCATTER,
                                          [MS_ALL_REDUCE] = MS_TRANSFER_ALL_REDUCE,
                                          [MS_ALL_TO_ALL] = MS_TRANSFER_ALL_TO_ALL,
                                          [MS_SEND] = MS_TRANSFER_SEND};
    long count = (long)(sample->size[0] / (double)real_bytes_of(m->how));
    bool whole = sample->what == MS_ALL_REDUCE || sample->what == MS_SEND;
    ms_transfer t = {.kind = kinds[sample->what],
                     .scalar = (unsigned char)ms_precision_of(m->how->type).real,
                     .group = MS_TRAFFIC_FSDP,
                     .stream = MS_STREAM_TP,
                     .send = random_place(b->send, b),
                     .receive = random_place(b->receive, b),
                     .count = whole ? count : count / m->how->num_ranks,
                     .name = "calibration"};
    for (long i = 0; i < m->how->num_ranks; i++)
        b->counts[i] = count / m->how->num_ranks;
    t.send_counts = t.receive_counts = b->counts;
    if (sample->what == MS_SEND && m->rank % 2 == 1)
        t.kind = MS_TRANSFER_RECEIVE;
    t.peer = m->rank % 2 == 0 ? m->rank + 1 : m->rank - 1;
    return t;
}

static ms_status synchronize_ranks(const ms_measurer *m)
{
    double ignored = 0.0;
    return ms_measurer_most(m, &ignored, 1);
}

static ms_status measure_one(const ms_measurer *m, const ms_sample *sample, buffers *b,
                             double *seconds)
{
    const ms_backend *backend = m->how->backend;
    ms_transfer t = transfer_of(m, sample, b);
    MS_TRY(synchronize_ranks(m));
    MS_TRY(synchronize_ranks(m));
    double before = backend->now_s(m->device);
    bool has_no_peer = sample->what == MS_SEND && t.peer >= m->how->num_ranks;
    if (!has_no_peer)
        MS_TRY(ms_measurer_move(m, &t));
    return ms_measurer_elapsed(m, before, backend->now_s(m->device), seconds);
}

static ms_status measure_rounds(const ms_measurer *m, const ms_sample *cases, buffers *b,
                                ms_rounds *rounds)
{
    const int least_rounds = 3;
    double start_s = ms_clock_s();
    for (const int *order; (order = ms_rounds_next(rounds)) != NULL;) {
        for (int i = 0; i < rounds->num_cases; i++) {
            double seconds;
            MS_TRY(measure_one(m, &cases[order[i]], b, &seconds));
            ms_rounds_set(rounds, order[i], &(ms_timed){seconds, seconds});
        }
        double spent_s = ms_clock_s() - start_s;
        /* largest of all ranks, so that all stop after the same round */
        MS_TRY(ms_measurer_most(m, &spent_s, 1));
        if (rounds->num_rounds >= least_rounds && spent_s > m->how->collective_s)
            break;
    }
    return MS_OK;
}

ms_status ms_measure_collectives(const ms_measurer *m, const ms_sample *cases, int num,
                                 double *results)
{
    buffers b = {.counts = MS_NEW_ARRAY(m->cx->arena, m->how->num_ranks, long),
                 .rng = ms_rng_seed(31 + (uint64_t)m->rank)};
    ms_scalar real = ms_precision_of(m->how->type).real;
    MS_TRY(ms_measurer_filled(m, real, (size_t)region_bytes, &b.send));
    MS_TRY(ms_measurer_filled(m, real, (size_t)region_bytes, &b.receive));
    ms_rounds rounds = ms_rounds_make(m->cx->arena, num, 1000 + (uint64_t)m->how->launch);
    MS_TRY(measure_rounds(m, cases, &b, &rounds));
    ms_rounds_results(m->cx->arena, &rounds, results);
    return MS_OK;
}
