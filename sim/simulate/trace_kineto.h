/* A simulated rank as a trace in the format of PyTorch's profiler (Kineto), which
 * HolisticTraceAnalysis reads: kernels on streams, each with its launch on the host, and
 * one annotation ProfilerStep#0 around the step. Communication has the names and arguments
 * of NCCL's kernels in Kineto. Formats: pytorch/kineto, libkineto/src/output_json.cpp;
 * HolisticTraceAnalysis, hta/common/types.py and hta/configs/event_args_formats. */
#ifndef MS_SIM_SIMULATE_TRACE_KINETO_H
#define MS_SIM_SIMULATE_TRACE_KINETO_H

#include "sim/simulate/rank_groups.h"

/* Most tasks of all files of a trace together, which take about 600 bytes each: the
 * analyser holds all ranks in memory. */
#define MS_MAX_KINETO_TASKS 2000000L

/* Writes the trace of one simulated rank (MS_DETAIL_NODE); times in us with three
 * decimals. Waits for the host and interference are gaps between kernels. Leaves `arena` as
 * it was. */
void ms_kineto_write(FILE *out, ms_arena *arena, const ms_simulation *simulation,
                     const ms_rank_groups *groups, int actor);

#endif
