/* ref_device.h: the reference as any number of devices with memory of their own, for tests of the scheduler. They are in no
 * list of devices; tests open them by implementation and index (st_backend_open_picks). Asynchronous ones do nothing until
 * somebody waits, so that what reads too early reads old bytes, and what overwrites too early is found out as well. */
#ifndef SOTTO_SRC_REFERENCE_REF_DEVICE_H
#define SOTTO_SRC_REFERENCE_REF_DEVICE_H

#include "runtime/backend_impl.h"

extern const st_backend_impl st_backend_ref_device;

typedef struct st_ref_device_config {
    size_t max_size; /* of a buffer; 0 = no limit */
    size_t recommended;
    int64_t offload_rows;
    uint64_t memory; /* bytes of all buffers together; 0 = no limit */
    bool asynchronous, no_peer;
    uint64_t lacks;    /* 1 << op: operations that it does not have */
    uint64_t straight; /* 1 << op: only over contiguous sources */
    int fail_at;       /* the n-th call from now on fails, once; 0 = none */
} st_ref_device_config;

/* May be changed at any time but while plans exist; `state` as opened. */
st_ref_device_config *st_ref_device_configure(void *state);
/* Calls so far, buffers that exist, bytes of the copies that the device was asked for (all kinds). */
typedef struct st_ref_device_counts {
    int calls, buffers;
    uint64_t bytes, copied, peer_bytes;
    int waits; /* for events of other queues */
} st_ref_device_counts;
st_ref_device_counts *st_ref_device_count(void *state);

#endif
