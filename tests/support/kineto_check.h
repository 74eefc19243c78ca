/* Checks a trace in the format of PyTorch's profiler by the rules of its readers. */
#ifndef MS_TESTS_SUPPORT_KINETO_CHECK_H
#define MS_TESTS_SUPPORT_KINETO_CHECK_H

#include "base/json.h"
#include "costmodel/tensor/collective.h"

typedef struct ms_kineto_facts {
    long rank, world_size;
    int num_kernels;
    /* sums of kernels: the optimizer's, communication by HolisticTraceAnalysis's pattern on
     * other streams and on the compute stream, and all others */
    long long update_ns, comm_ns, held_ns, compute_ns;
    long long step_ns; /* length of ProfilerStep#0 */
    /* bytes by collective as in ms_collective_s, and by how much rounding to whole elements
     * may have changed them */
    double bytes[MS_NUM_COLLECTIVES], slack_bytes[MS_NUM_COLLECTIVES];
} ms_kineto_facts;

/* Returns the first error as a sentence; NULL: none. Rules: the rank within the first 1000
 * bytes; one ProfilerStep#0, which all kernels end within; every kernel with device, stream
 * and a correlation that one launch on the host shares, which begins no later; no overlap
 * on a stream or thread of the host; communication with its collective, elements in and
 * out, dtype and group. */
const char *ms_kineto_check(ms_ctx *cx, const char *text, ms_kineto_facts *facts);

#endif
