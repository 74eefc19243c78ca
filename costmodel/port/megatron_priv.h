/* Tables and functions of the format of Megatron-LM's arguments. Sources: NVIDIA/Megatron-LM
 * d98e8a64 (2026-08-22, Core 0.20 development), megatron/training/arguments.py and
 * core/transformer/transformer_config.py; versions from the tags core_v0.8 to core_v0.19. */
#ifndef MS_COSTMODEL_PORT_MEGATRON_PRIV_H
#define MS_COSTMODEL_PORT_MEGATRON_PRIV_H

#include "costmodel/port/port_priv.h"

extern const ms_port_row ms_megatron_plan_rows[], ms_megatron_model_rows[],
    ms_megatron_type_rows[];

/* Layers of virtual stages, in all its notations. */
void ms_megatron_put_layers(ms_port *port);
ms_status ms_megatron_take_layers(ms_port *port);

/* Text of the layers that have a property, as Megatron states them: a whole number n (every n-th), or a
 * list as Python writes it, "([0]*3+[1]*58)". */
const char *ms_megatron_pattern_text(ms_arena *arena, const bool *on, long num);
/* Reads it for `num` layers; with a number n, layer i has the property if i % n is 0
 * (`first`) or is not 0 for i from 1. False: it is none, or is for another number. */
bool ms_megatron_pattern_read(const char *text, long num, bool first, bool *on);

#endif
