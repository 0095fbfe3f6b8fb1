/* base.h: status, error, log and version, shared by every other public header.
 *
 * Nothing in this library aborts, exits, prints or keeps process-wide mutable state. A call that can fail returns a
 * sotto_status; results come through out-pointers, which are set to NULL or zero on failure. */
#ifndef SOTTO_BASE_H
#define SOTTO_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#if defined(SOTTO_BUILD_SHARED)
#define SOTTO_API __declspec(dllexport)
#elif defined(SOTTO_USE_SHARED)
#define SOTTO_API __declspec(dllimport)
#else
#define SOTTO_API
#endif
#elif defined(__GNUC__)
#define SOTTO_API __attribute__((visibility("default")))
#else
#define SOTTO_API
#endif

#if defined(__GNUC__)
#define SOTTO_NODISCARD __attribute__((warn_unused_result))
#define SOTTO_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define SOTTO_NODISCARD
#define SOTTO_PRINTF(fmt, args)
#endif

#define SOTTO_VERSION_MAJOR 0
#define SOTTO_VERSION_MINOR 1
#define SOTTO_VERSION_PATCH 0

/* "0.1.0"; valid for the life of the process. */
SOTTO_API const char *sotto_version(void);

/* Outcome of a call. The numbers are frozen. */
typedef enum sotto_status {
    SOTTO_OK = 0,
    SOTTO_E_ARGUMENT = -1,    /* the caller passed something outside the documented range */
    SOTTO_E_IO = -2,          /* the operating system could not open, read, write or map */
    SOTTO_E_FORMAT = -3,      /* a file or request does not follow its format */
    SOTTO_E_MEMORY = -4,      /* no memory, on the host or on a device */
    SOTTO_E_UNSUPPORTED = -5, /* understood, but not implemented or not supported by the device */
    SOTTO_E_DEVICE = -6,      /* a device failed */
    SOTTO_E_ABORTED = -7,     /* the caller's abort callback asked to stop */
    SOTTO_E_NOT_FOUND = -8,   /* no file, model, device, tensor or key of that name */
    SOTTO_E_INTERNAL = -9,    /* a defect of this library */
    SOTTO_E_FULL = -10        /* a context or cache has no room for what was asked */
} sotto_status;

/* "ok", "argument", ...; valid for the life of the process. */
SOTTO_API const char *sotto_status_name(sotto_status status);

/* Why a call failed, owned by the caller: code and one sentence in UTF-8 that names the file, the field, the number and
 * what was expected. Every `sotto_error *` argument may be NULL. */
typedef struct sotto_error {
    sotto_status code;
    char text[500];
} sotto_error;

typedef enum sotto_log_level { SOTTO_LOG_DEBUG = 0, SOTTO_LOG_INFO = 1, SOTTO_LOG_WARNING = 2 } sotto_log_level;

/* Where messages that are not errors go. `text` has no newline and is valid during the call only. May be called from any
 * thread that is inside a call on the object that holds the logger. */
typedef struct sotto_logger {
    void (*write)(void *user, sotto_log_level level, const char *text); /* NULL: messages are dropped */
    void *user;
} sotto_logger;

#ifdef __cplusplus
}
#endif
#endif
