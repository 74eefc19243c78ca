/* Ranks of a simulation as Chakra execution traces, which ASTRA-sim and other simulators
 * run: what each rank computes and communicates, and what each of its nodes waits for. A
 * file is a stream of messages, each after its length: GlobalMetadata, then Nodes after all
 * those that they wait for. Format: mlcommons/chakra, schema/protobuf/et_def.proto, with
 * the attributes that its et_feeder reads. */
#ifndef MS_SIM_SIMULATE_TRACE_CHAKRA_H
#define MS_SIM_SIMULATE_TRACE_CHAKRA_H

#include "sim/simulate/rank_groups.h"

/* Most tasks of all files together, which take about 130 bytes each. */
#define MS_MAX_CHAKRA_TASKS 16000000L

/* The nodes of one simulated rank, and what they wait for. */
typedef struct ms_chakra ms_chakra;

/* Finds the nodes of an actor of a simulation (MS_DETAIL_NODE); lives in the arena. A
 * node's number is that of its task. A receive has the number of the send, on another rank,
 * that it receives from; beside a send of a ring or exchange, that of the send plus the
 * number of all tasks. Tasks that take no time and move nothing are no nodes: those that
 * wait for them wait for what they waited for. */
const ms_chakra *ms_chakra_open(ms_arena *arena, const ms_simulation *simulation,
                                const ms_rank_groups *groups, int actor);

/* Writes the trace of `rank`, one of those for which the actor stands. Kernels are
 * COMP_NODE, transfers COMM_COLL_NODE, COMM_SEND_NODE and COMM_RECV_NODE with comm_size in
 * bytes that a rank puts in. Starts and ends are whole microseconds. */
void ms_chakra_write(FILE *out, const ms_chakra *chakra, long rank);

/* Writes the groups of collectives as JSON, {"number": [ranks]}: those of at least one of
 * the ranks r with is_written[r]. ASTRA-sim reads it as comm-group-configuration. */
void ms_chakra_write_groups(FILE *out, const ms_rank_groups *groups,
                            const bool *is_written);

#endif
