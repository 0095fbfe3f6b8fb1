/* trace.h: --trace: what ran, on stderr. */
#ifndef SOTTO_PROGRAMS_TRACE_H
#define SOTTO_PROGRAMS_TRACE_H

#include "sotto/backend.h"

/* Callbacks of sotto_run_options and their like; user is the cli_progress to clear, or NULL. */
void cli_trace_node(void *user, const sotto_trace_node *node);
void cli_trace_split(void *user, const sotto_trace_split *split);

#endif
