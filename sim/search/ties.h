/* The order of plans that predictions cannot tell apart. Plans whose step time is within
 * a tie band of the fastest are a group, in which the simplest comes first; a mesh is
 * represented by its simplest plan in the band. The certificate stays that of the fastest
 * plan. [13.8] of docs/formulas. */
#ifndef MS_SIM_SEARCH_TIES_H
#define MS_SIM_SEARCH_TIES_H

#include "sim/search/search.h"

/* Compares plans by simplicity: below 0 if `a` is simpler. In this order count the number
 * of axes larger than 1, the order of axes, virtual stages, the schedule, recomputation,
 * peak memory in steps of 1/20 of device_bytes, the step time; after that the choices
 * themselves, so that only equal plans compare as 0. */
int ms_ties_compare(const ms_found *a, const ms_found *b, double device_bytes);

/* Orders `num` plans by groups and simplicity and fills their places in `ties`. The
 * fastest plan leads group 0, the fastest outside it group 1, and so on; a group has the
 * plans less than band_frac slower than its leader. With band_frac 0 the order is that of
 * step times, equal ones as they are. The order depends on the set of plans only. */
void ms_ties_order(ms_found *found, int num, double band_frac, double device_bytes,
                   ms_tie *ties);

/* Replaces the plans of a finished search by those that a list in groups shows: at most
 * options->num_best, among them the fastest. Every mesh with a plan in the band, listed
 * before or not, is represented by its simplest one, of equally simple ones but for
 * memory the fastest; with options->variants the fastest plans are listed beside it. Sets
 * result->ties. An interrupted search is ordered as it is. */
void ms_search_tie(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                   const ms_search_options *options, double band_frac,
                   ms_search_result *result);

/* Index of the fastest plan of a result: 0 before ms_search_tie; -1 without plans. */
int ms_search_fastest(const ms_search_result *result);

#endif
