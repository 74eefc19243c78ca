/* Field tables by which a profile is read and written. */
#ifndef MS_COSTMODEL_PROFILE_PROFILE_PRIV_H
#define MS_COSTMODEL_PROFILE_PROFILE_PRIV_H

#include "costmodel/profile/profile.h"

/* A JSON object of profile files whose coefficients are members of ms_profile itself. */
typedef struct ms_profile_section {
    const char *key;
    const ms_field *fields;
} ms_profile_section;

extern const ms_field ms_profile_fields[]; /* fields of a profile file's outer object */
/* "link" "all_to_all" "nvls" "memory", NULL */
extern const ms_profile_section ms_profile_sections[];
extern const ms_field ms_gemm_fields[], ms_attention_fields[], ms_network_fields[],
    ms_pointwise_fields[];

/* Refuses shares of a listed rate above 1 in a profile that was not calibrated. */
ms_status ms_profile_check_shares(ms_ctx *cx, ms_jval root);
/* Refuses rates above those that the cluster states: ms_profile_load_for. */
ms_status ms_profile_check_peaks(ms_ctx *cx, ms_jval root, const ms_profile *profile,
                                 const ms_cluster *cluster);

#endif
