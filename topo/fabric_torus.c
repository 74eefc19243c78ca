/* Routes over the wires of a torus. */
#include "topo/fabric_priv.h"

void ms_torus_coordinates(const ms_torus *torus, long position,
                          long coordinate[MS_MAX_TORUS_DIMS])
{
    for (int i = torus->num_dims - 1; i >= 0; i--) {
        coordinate[i] = position % torus->side[i];
        position /= torus->side[i];
    }
}

static long stride_of(const ms_torus *torus, int dim)
{
    long stride = 1;
    for (int i = torus->num_dims - 1; i > dim; i--)
        stride *= torus->side[i];
    return stride;
}

int ms_torus_walk(const ms_fabric_details *d, long domain, long position, int dim,
                  long to, bool upwards, int *route)
{
    const ms_torus *torus = &d->torus;
    long side = torus->side[dim], stride = stride_of(torus, dim);
    long at = position / stride % side, base = position - at * stride;
    int num = 0;
    while (at != to) {
        long place = domain * d->positions + base + at * stride;
        route[num++] = d->torus_link[place * 2 * MS_MAX_TORUS_DIMS + 2 * dim + upwards];
        at = upwards ? (at + 1) % side : (at + side - 1) % side;
    }
    return num;
}

int ms_torus_route(const ms_fabric_details *d, long from, long to, bool upwards,
                   int *route)
{
    const ms_torus *torus = &d->torus;
    long domain = from / d->domain[0], position = from % d->domain[0];
    long a[MS_MAX_TORUS_DIMS], b[MS_MAX_TORUS_DIMS];
    ms_torus_coordinates(torus, position, a);
    ms_torus_coordinates(torus, to % d->domain[0], b);
    int num = 0;
    for (int i = 0; i < torus->num_dims; i++) {
        if (a[i] == b[i])
            continue;
        long side = torus->side[i], up = (b[i] - a[i] + side) % side;
        bool goes_up = b[i] > a[i];
        if (torus->closed[i])
            goes_up = 2 * up == side ? upwards : 2 * up < side;
        num += ms_torus_walk(d, domain, position, i, b[i], goes_up, route + num);
        position += (b[i] - a[i]) * stride_of(torus, i);
    }
    return num;
}
