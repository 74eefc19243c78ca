#include "costmodel/cost/overlapped_pair.h"

#include <math.h>

/* Appends work to a stream, to begin at `ready_s` or later; returns when it ends. */
static double run(double *stream_s, double ready_s, double seconds)
{
    *stream_s = fmax(*stream_s, ready_s) + seconds;
    return *stream_s;
}

static double longest_path_s(const ms_pair_forward *f, const ms_pair_backward *b)
{
    double compute_s = 0.0, exchange_s = 0.0; /* time at which each stream is free */
    double combined_back =
        run(&exchange_s, run(&compute_s, 0.0, b->result_s), b->combine_s);
    double routed = run(&compute_s, 0.0, f->attention_s);
    double dispatched = run(&exchange_s, routed, f->dispatch_s);
    double experts_back = run(&compute_s, combined_back, b->experts_s);
    double dispatched_back = run(&exchange_s, experts_back, b->dispatch_s);
    run(&compute_s, 0.0, b->weight_s);
    double computed = run(&compute_s, dispatched, f->experts_s);
    double combined = run(&exchange_s, computed, f->combine_s);
    run(&compute_s, dispatched_back, b->attention_s);
    return run(&compute_s, combined, f->result_s);
}

static double device_s(const ms_pair_forward *f, const ms_pair_backward *b,
                       double interference_frac)
{
    double compute_s = f->attention_s + f->experts_s + f->result_s + b->result_s +
                       b->experts_s + b->weight_s + b->attention_s;
    double exchange_s = f->dispatch_s + f->combine_s + b->combine_s + b->dispatch_s;
    double path_s = longest_path_s(f, b);
    double saved_s = fmax(compute_s + exchange_s - path_s, 0.0);
    return path_s + interference_frac * saved_s + f->exposed_s + b->exposed_s;
}

double ms_pair_host_s(const ms_pair_forward *f, const ms_pair_backward *b,
                      double interference_frac)
{
    double forward_s = f->attention_s + f->experts_s + f->result_s + f->exposed_s;
    double backward_s =
        b->result_s + b->experts_s + b->weight_s + b->attention_s + b->exposed_s;
    double launched_s = fmax(forward_s, f->host_s) + fmax(backward_s, b->host_s);
    return fmax(launched_s - device_s(f, b, interference_frac), 0.0);
}

double ms_pair_s(const ms_pair_forward *f, const ms_pair_backward *b,
                 double interference_frac)
{
    return device_s(f, b, interference_frac) + ms_pair_host_s(f, b, interference_frac);
}
