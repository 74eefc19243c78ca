/* Elements of an XML text, read by expat where the program was built with it. */
#ifndef MS_TOPO_SITE_XML_H
#define MS_TOPO_SITE_XML_H

#include "base/diag.h"

#include <stdbool.h>

#define MS_XML_MAX_ELEMENTS 65536
#define MS_XML_MAX_DEPTH    64

typedef struct ms_xml_element {
    const char *name;
    const char *const *attributes; /* name and value in turn, NULL-ended */
    int parent;                    /* index, below that of the element; -1: outermost */
    int num_children;
    int line, column;
} ms_xml_element;

typedef struct ms_xml {
    ms_xml_element *elements; /* in the order of the text; the first is the outermost */
    int num, capacity;
} ms_xml;

/* Whether the program was built with expat. */
extern const bool ms_xml_is_built;

/* Reads all elements of a text; what stands between them is passed over. Everything lives
 * in cx->arena. MS_EINPUT at line and column: text that is not well-formed, a DOCTYPE, more
 * than MS_XML_MAX_ELEMENTS elements or MS_XML_MAX_DEPTH levels; a build without expat. */
ms_status ms_xml_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                      ms_xml *out);

/* The value of an attribute; NULL: the element lacks it. */
const char *ms_xml_attribute(const ms_xml_element *element, const char *name);

#endif
