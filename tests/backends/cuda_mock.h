/* cuda_mock.h: what a test sees of the stand-in for NVIDIA's driver (cuda_mock.c). */
#ifndef SOTTO_TESTS_BACKENDS_CUDA_MOCK_H
#define SOTTO_TESTS_BACKENDS_CUDA_MOCK_H

/* Device 0 is of sm_86, device 1 of sm_75 (no matrix units), device 2 of sm_90 with a driver too old for its machine code. */
enum { CUDA_MOCK_DEVICES = 3 };

/* "cuda_mock_state" in the shared library. */
typedef struct cuda_mock {
    /* to be set: */
    int fail_at;    /* the fail_at-th call that may fail does; 0 = none */
    int fail_code;  /* with this CUresult */
    int order;      /* in which work items run: st_sim_order */
    int no_pinning; /* cuMemAllocHost fails */
    int new_driver; /* device 2 takes machine code */
    int integrated; /* devices share the host's memory, and map what is registered */
    long memory;    /* bytes that each device has; 0: so many GiB as its number and one more */
    /* to be read: */
    int n_calls;  /* that may fail, so far */
    int n_alive;  /* contexts, memory, streams, events, modules, graphs that were not given back */
    int n_copies; /* between host and device */
    int n_launches, n_graph_launches, n_peer_copies;
    int n_early;       /* edges of graphs that let a kernel start before the one in front of it is done */
    char problem[400]; /* the first wrong use, or empty */
} cuda_mock;

#endif
