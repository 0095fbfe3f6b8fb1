/* sim.h: what a test may set of the simulated devices. The library has its own st_sim_settings_of in settings.c; a program
 * that defines one gets that instead. */
#ifndef SOTTO_SRC_BACKENDS_GPU_API_SIM_SIM_H
#define SOTTO_SRC_BACKENDS_GPU_API_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>

#include "backends/gpu/gpu_api.h"

extern const st_gpu_api st_gpu_sim;

/* In which the items of a group, the subgroups of a group and the groups of a launch have their turn. */
typedef enum st_sim_order { ST_SIM_FORWARD, ST_SIM_REVERSE, ST_SIM_SHUFFLED } st_sim_order;

typedef struct st_sim_settings {
    int subgroup; /* 8, 16, 32 or 64 */
    st_sim_order order;
    bool has_mma; /* needs a subgroup of 32 */
    bool unified; /* map() gives the memory, wrap() takes the host's */
    size_t max_buffer, local_bytes;
    uint64_t memory_total; /* 0: not told and without limit */
    /* NULL, or asked before each call that may fail, from the thread that makes it; any other status than SOTTO_OK is what
     * the call gives. `bytes` is what alloc() is asked for, else 0. */
    sotto_status (*call)(int device, const char *name, size_t bytes);
    /* NULL, or told how much memory was given back. */
    void (*freed)(int device, size_t bytes);
    bool cuts; /* launches that take long are cut */
} st_sim_settings;

enum { ST_SIM_DEVICES = 4 };

const st_sim_settings *st_sim_settings_of(int device);

#endif
