/* ref_backend.h: what tests may ask of the reference backend. */
#ifndef SOTTO_SRC_REFERENCE_REF_BACKEND_H
#define SOTTO_SRC_REFERENCE_REF_BACKEND_H

#include "runtime/backend_impl.h"

extern const st_backend_impl st_backend_reference;

typedef enum st_ref_call { ST_REF_ALLOC, ST_REF_UPLOAD, ST_REF_PREPARE, ST_REF_RUN, ST_REF_CALLS } st_ref_call;

/* The n-th of the calls of this kind from now on fails, once: with SOTTO_E_MEMORY, a run with SOTTO_E_DEVICE. 0: none. */
void st_ref_inject(void *state, st_ref_call call, int n);

#endif
