/* queue.h: an opened device: a queue of commands that do not begin before somebody waits for them. */
#ifndef SOTTO_SRC_BACKENDS_GPU_API_SIM_QUEUE_H
#define SOTTO_SRC_BACKENDS_GPU_API_SIM_QUEUE_H

#include "backends/gpu/api/sim/group.h"
#include "base/thread.h"

/* Device memory: lives until it is freed and no command in a queue needs it. */
typedef struct st_sim_memory st_sim_memory;
st_sim_memory *st_sim_memory_create(int device, size_t size);           /* filled with 0xff; NULL without memory */
st_sim_memory *st_sim_memory_over(int device, void *host, size_t size); /* which is only read */
void st_sim_memory_release(st_sim_memory *m);                           /* NULL allowed */
bool st_sim_memory_is_wrapped(const st_sim_memory *m);
int st_sim_memory_device(const st_sim_memory *m);
size_t st_sim_memory_size(const st_sim_memory *m);
char *st_sim_memory_bytes(st_sim_memory *m);

typedef enum st_sim_command_kind {
    ST_SIM_WRITE,
    ST_SIM_COPY,
    ST_SIM_ZERO,
    ST_SIM_LAUNCH,
    ST_SIM_EVENT
} st_sim_command_kind;

enum { ST_SIM_COMMAND_MEMORY = ST_GPU_MAX_ARGS };

typedef struct st_sim_command {
    st_sim_command_kind kind;
    st_sim_memory *memory[ST_SIM_COMMAND_MEMORY]; /* that it needs: of a copy to and from; of a launch its arguments */
    size_t offset[2], bytes;
    char *data; /* of a write */
    st_sim_work work;
    struct st_sim_event *event;
    struct st_sim_command *next;
} st_sim_command;

typedef struct st_sim_queue st_sim_queue;

typedef struct st_sim_event {
    st_sim_queue *queue; /* where it was recorded last, NULL: nowhere */
    uint64_t ticket;     /* of the command that makes it happen */
    double seconds;      /* when it did */
    int owners;          /* whoever created it, and commands; behind the queue's lock once recorded */
} st_sim_event;

sotto_status st_sim_queue_create(int device, st_sim_queue **out, sotto_error *err);
void st_sim_queue_release(st_sim_queue *q);
int st_sim_queue_device(const st_sim_queue *q);
/* Takes a copy of the command, whose memory is kept until it has run, and `data`, also when it fails. */
sotto_status st_sim_queue_put(st_sim_queue *q, const st_sim_command *command, sotto_error *err);
/* Runs what is queued. A failure ends the queue: what was behind it never runs. */
sotto_status st_sim_queue_run(st_sim_queue *q, sotto_error *err);
sotto_status st_sim_queue_read(st_sim_queue *q, st_sim_memory *m, size_t offset, void *out, size_t bytes,
                               sotto_error *err);

st_sim_event *st_sim_event_create(void);
void st_sim_event_free(st_sim_event *e);
sotto_status st_sim_event_record(st_sim_queue *q, st_sim_event *e, sotto_error *err);
/* Runs the event's queue until it has happened; one that was never recorded has. */
sotto_status st_sim_event_reach(st_sim_event *e, sotto_error *err);
double st_sim_event_seconds(st_sim_event *e);

#endif
