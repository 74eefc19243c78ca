/* Round trips of random plans that a framework accepts: export, import, and equality in
 * what the format carries. */
#ifndef MS_TESTS_SUPPORT_PORT_TRIPS_H
#define MS_TESTS_SUPPORT_PORT_TRIPS_H

#include "base/rng.h"
#include "costmodel/port/port.h"

enum {
    PORT_TRIP_MODELS = 6
};

typedef struct port_trip {
    const ms_port_format *format;
    const ms_stack *stack;
    ms_rule_set rules;
    const char *stack_name;
    void (*make_canonical)(ms_plan *plan);
    const char *const *models; /* (PORT_TRIP_MODELS) */
    /* further choices; `old`: for a version before the present one */
    void (*draw_more)(ms_rng *rng, const ms_model *model, bool old, ms_plan *plan);
    /* GPUs of nodes on which the ranks of a plan stand in its order; NULL: 1 */
    long (*per_node)(ms_rng *rng, const ms_plan *plan);
} port_trip;

/* A format with the stack of its plans; `canonical` gives equal plans one form. Fails the
 * test if either is unknown. `models` and `draw_more` are the caller's to set. */
port_trip port_trip_open(const char *format, const char *stack,
                         void (*canonical)(ms_plan *plan));
/* Fails the test unless as many random plans return as they were. */
void port_trips_make(const port_trip *t, int num_plans);

#endif
