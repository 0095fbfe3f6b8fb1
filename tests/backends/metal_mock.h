/* metal_mock.h: what a test sees of the stand-in for Apple's Objective-C runtime and Metal (metal_mock.c). */
#ifndef SOTTO_TESTS_BACKENDS_METAL_MOCK_H
#define SOTTO_TESTS_BACKENDS_METAL_MOCK_H

/* "metal_mock_state" in the shared library. */
typedef struct metal_mock {
    /* to be set: */
    int fail_at;    /* the fail_at-th call that may fail does; 0 = none */
    int fail_code;  /* of a command buffer that fails: 8 = no memory, 4 = device lost */
    int order;      /* in which work items run: st_sim_order */
    int old_system; /* no setMathMode: */
    /* to be read: */
    int n_calls;    /* that may fail, so far */
    int n_alive;    /* objects and references that their owners have not released */
    int n_commands; /* command buffers committed */
    int n_run;      /* of them, those that have run */
    int n_dispatches;
    int n_captures;
    long private_bytes, shared_bytes, wrapped_bytes; /* of buffers so far */
    char problem[400];                               /* the first wrong use, or empty */
} metal_mock;

#endif
