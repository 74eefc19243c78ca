/* meshsim plot breakdown: where the step of one or several plans goes. */
#include "cli/cmd/plot_request.h"

#include "plots/breakdown_data.h"

MS_PLOTTED_FUNCTIONS(ms_breakdown, (out, plot))

ms_status ms_plot_breakdown(ms_plot_request *r)
{
    ms_breakdown plot = {.arena = r->cx->arena};
    MS_TRY(ms_plot_price_plans(r, &plot.plans, &plot.num_plans));
    return ms_plot_show(r, &(ms_plotted)MS_PLOTTED(ms_breakdown, &plot));
}
