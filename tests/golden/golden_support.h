/* golden_support.h: golden values of tests/golden/data, recordings and models for tests; absent ones are skipped. */
#ifndef SOTTO_TESTS_GOLDEN_SUPPORT_H
#define SOTTO_TESTS_GOLDEN_SUPPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

typedef struct golden {
    json_t *json;
    float *values; /* the .f32 file beside it */
    int64_t n_values;
} golden;

/* data/FOLDER/NAME.json and .f32. Fails the test when they cannot be read: they are part of the repository. */
golden golden_open(const char *folder, const char *name);
void golden_close(golden *g);
/* Member of an object; fails the test when it is missing. */
json_t *golden_at(json_t *object, const char *key);
/* The numbers of an {"offset", "shape"} entry; *count gets how many. */
const float *golden_floats(const golden *g, json_t *entry, int64_t *count);

typedef struct recording {
    float *pcm; /* 16 kHz mono */
    int64_t n;
} recording;

/* Joins the golden's parts, with at least `pad_to` samples (zeros added). False when a file is not here; nothing is
 * allocated then. */
bool recording_open(json_t *parts, int64_t pad_to, recording *out);
void recording_close(recording *r);

/* models/NAME below the repository, or NULL with a message when it has not been fetched. */
const char *model_path(const char *name);

/* Resident pages of this process; 0 where the system does not tell. */
long golden_resident_pages(void);

#endif
