/* Routes over the links of a torus. */
#include "topo/fabric_priv.h"

static long stride_of(const ms_torus *torus, int dim)
{
    long stride = 1;
    for (int i = torus->num_dims - 1; i > dim; i--)
        stride *= torus->side[i];
    return stride;
}

/* A path along torus dimension `dim` from coordinate `from` to `to`; `place`: the
 * position with coordinate 0 in `dim` on this line, numbered over all domains. */
typedef struct dim_path {
    long place, from, to;
    int dim;
    bool upwards;
} dim_path;

static int add_dim_links(const ms_fabric_details *d, dim_path l, int *route)
{
    long side = d->torus.side[l.dim], stride = stride_of(&d->torus, l.dim);
    int num = 0;
    for (long at = l.from; at != l.to; at = (at + (l.upwards ? 1 : side - 1)) % side) {
        long wire = (l.place + at * stride) * 2 * MS_MAX_TORUS_DIMS + 2 * l.dim;
        route[num++] = d->torus_link[wire + l.upwards];
    }
    return num;
}

int ms_torus_route(const ms_fabric_details *d, long from, long to, bool upwards,
                   int *route)
{
    const ms_torus *torus = &d->torus;
    long domain = from / d->place.domain_ranks[0], position = 0;
    long a[MS_MAX_TORUS_DIMS], b[MS_MAX_TORUS_DIMS];
    ms_torus_locate(torus, from % d->place.domain_ranks[0], a);
    ms_torus_locate(torus, to % d->place.domain_ranks[0], b);
    for (int i = 0; i < torus->num_dims; i++)
        position += a[i] * stride_of(torus, i);
    int num = 0;
    for (int i = 0; i < torus->num_dims; i++) {
        if (a[i] == b[i])
            continue;
        long side = torus->side[i], up = (b[i] - a[i] + side) % side;
        bool goes_up = b[i] > a[i];
        if (torus->closed[i])
            goes_up = 2 * up == side ? upwards : 2 * up < side;
        long place = domain * d->positions + position - a[i] * stride_of(torus, i);
        num += add_dim_links(d, (dim_path){place, a[i], b[i], i, goes_up}, route + num);
        position += (b[i] - a[i]) * stride_of(torus, i);
    }
    return num;
}
