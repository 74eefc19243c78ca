/* The version of program and library. */
#ifndef MS_BASE_VERSION_H
#define MS_BASE_VERSION_H

#define MS_VERSION "0.1.0"

#endif
