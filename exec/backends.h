/* The backends that this program was built with. */
#ifndef MS_EXEC_BACKENDS_H
#define MS_EXEC_BACKENDS_H

#include "exec/backend.h"

/* By name; NULL: it was built without it, or there is none. */
const ms_backend *ms_backend_find(const char *name);

#endif
