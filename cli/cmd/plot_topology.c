/* meshsim plot topology: the cluster of a job, and which axis goes over which tier. */
#include "cli/cmd/plot_request.h"

#include "plots/topology_data.h"

MS_PLOTTED_FUNCTIONS(ms_topology_plot, (out, plot))

ms_status ms_plot_topology(ms_plot_request *r)
{
    ms_plan plan;
    const ms_cluster *cluster;
    MS_TRY(ms_plot_mesh(r, &plan, &cluster));
    ms_topology_plot plot = ms_topology_plot_make(r->cx->arena, &plan, cluster);
    return ms_plot_show(r, &(ms_plotted)MS_PLOTTED(ms_topology_plot, &plot));
}
