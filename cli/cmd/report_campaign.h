/* meshsim report: the training that a page is about, by its file and by options. */
#ifndef MS_CLI_CMD_REPORT_CAMPAIGN_H
#define MS_CLI_CMD_REPORT_CAMPAIGN_H

#include "base/json.h"
#include "sim/request/campaign_options.h"

/* Reads the campaign of a result, if it has one, as the options that ask for it. */
ms_status ms_report_campaign_read(ms_ctx *cx, ms_jval object, ms_campaign_options *out);

/* Replaces the terms of a file's campaign by those that options give. `compared`: the
 * file's name if it compares jobs by its campaign, NULL if not. *asked: whether there is a
 * campaign. MS_EINPUT: options that differ from a compared campaign, that do not go
 * together, or that are about a training without length. */
ms_status ms_report_campaign_merge(ms_ctx *cx, const ms_campaign_options *given,
                                   const char *compared, ms_campaign_options *campaign,
                                   bool *asked);

#endif
