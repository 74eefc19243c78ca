/* Model, mesh, pipeline and batch of the format of MaxText. Sources: AI-Hypercomputer/maxtext
 * e591f30c (2026-08-22), src/maxtext/configs/base.yml and types.py, layers/pipeline.py;
 * names of models, of base.yml's model dimensions and of the training module from
 * memory. */
#ifndef MS_COSTMODEL_PORT_MAXTEXT_PRIV_H
#define MS_COSTMODEL_PORT_MAXTEXT_PRIV_H

#include "costmodel/port/port_priv.h"

extern const ms_port_row ms_maxtext_model_rows[];
/* Whether shapes stand in the file, because no name does; models are compared by them (a
 * port without a stack). */
bool ms_maxtext_states_shapes(const ms_port *port);

/* Whether layers without experts come before those with them (DeepSeek), which MaxText
 * keeps out of its pipelines. */
bool ms_maxtext_has_dense_begin(const ms_model *model);

/* Sizes of mesh axes, within slices (ici) and between them (dcn), and what is sharded over
 * them. A slice is a node. */
void ms_maxtext_put_mesh(ms_port *port);
ms_status ms_maxtext_take_mesh(ms_port *port);
extern const char *const ms_maxtext_mesh_keys[];
extern const int ms_maxtext_mesh_choices[];

void ms_maxtext_put_pipeline(ms_port *port);
ms_status ms_maxtext_take_pipeline(ms_port *port);
extern const char *const ms_maxtext_pipeline_keys[];
extern const int ms_maxtext_pipeline_choices[];

void ms_maxtext_put_batch(ms_port *port);
ms_status ms_maxtext_take_batch(ms_port *port);
extern const char *const ms_maxtext_batch_keys[];
extern const int ms_maxtext_batch_choices[];

#endif
