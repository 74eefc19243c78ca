/* A rank of a crew (exec/meeting.h) on CPUs, as loop and tcp have them. A transfer leaves
 * a copy of its data at `start`, so that it never waits there, and takes what it gets in
 * `wait`. For their tables of functions. */
#ifndef MS_EXEC_BACKEND_CREW_H
#define MS_EXEC_BACKEND_CREW_H

#include "exec/backend_host.h"
#include "exec/backend_parcel.h"
#include "exec/meeting.h"

typedef struct ms_crew_pending ms_crew_pending;

/* Leaves a parcel for the members of its group, or the peer, in other processes. It stays
 * the caller's. */
typedef ms_status ms_crew_forward(ms_ctx *cx, ms_device_rank *device, ms_parcel *parcel);

struct ms_device_rank {
    ms_host_rank host;
    ms_crew *crew;
    const ms_world *world;
    const ms_kernels *kernels;
    ms_pool *pool; /* threads share it */
    long rank;
    /* NULL: all ranks are here, and the last to come to an all-reduce adds for all, in
     * the first one's copy */
    ms_crew_forward *forward;
    void *state; /* the backend's */
    ms_event last_event;
    ms_crew_pending *first, **end; /* started, not yet waited for */
};

/* Before its first use; the other members have been set. */
void ms_crew_rank_open(ms_device_rank *device);
/* Forgets what nobody has waited for. */
void ms_crew_rank_close(ms_device_rank *device);

const ms_members *ms_crew_rank_members(const ms_device_rank *device,
                                       const ms_transfer *transfer);

/* ---- of the table of functions ---- */
void *ms_crew_rank_allocate(ms_device_rank *device, size_t bytes);
void ms_crew_rank_release(ms_device_rank *device, void *memory, size_t bytes);
ms_status ms_crew_rank_kernel(ms_ctx *cx, ms_device_rank *device, const ms_op_call *call);
double ms_crew_rank_now_s(ms_device_rank *device);
ms_status ms_crew_rank_start(ms_ctx *cx, ms_device_rank *device,
                             const ms_transfer *transfer, const ms_event *after,
                             int num_after, ms_event *done);
ms_status ms_crew_rank_wait(ms_ctx *cx, ms_device_rank *device, ms_event event);

#endif
