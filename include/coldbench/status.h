/* status.h: how every coldbench function says what happened.
 *
 * A function that can fail returns a cb_status and, through a caller's cb_error, one message that
 * names the object, the value and, where there is one, the system's own words. The library never
 * prints and never exits.
 */
#ifndef COLDBENCH_STATUS_H
#define COLDBENCH_STATUS_H

#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One table gives the code, the name, the exit status of the command, and the text. */
#define CB_STATUS_TABLE(X)                                                                         \
    X(OK, 0, "ok")                                                                                 \
    X(WRONG, 1, "a result is wrong, or a check failed")                                            \
    X(USAGE, 2, "the request is not valid")                                                        \
    X(UNAVAILABLE, 3, "a device, library or model is not available")                               \
    X(NO_MEMORY, 3, "not enough memory")                                                           \
    X(UNDECIDED, 4, "the measurement could not answer")                                            \
    X(IO, 5, "input or output failed")                                                             \
    X(INTERNAL, 5, "internal error")                                                               \
    X(CRASHED, 1, "a worker process died")                                                         \
    X(TIMEOUT, 1, "a worker process did not answer in time")                                       \
    X(GARBAGE, 1, "a worker process broke the protocol")                                           \
    X(INTERRUPTED, 130, "interrupted")

typedef enum cb_status {
#define CB_STATUS_ENUM(name, code, text) CB_##name,
    CB_STATUS_TABLE(CB_STATUS_ENUM)
#undef CB_STATUS_ENUM
        CB_STATUS_COUNT
} cb_status;

/* "CB_USAGE"; "unknown status" for a value outside the table. Static storage. */
const char *cb_status_name(cb_status status);
/* The table's text. Static storage. */
const char *cb_status_text(cb_status status);
/* The exit status of the coldbench command for this status (0 to 5, 130). */
int cb_status_exit(cb_status status);

/* Filled where the fault is found. Initialise with CB_ERROR_INIT; reuse after cb_error_clear. */
typedef struct cb_error {
    cb_status status;
    char message[1000]; /* always terminated; empty while status is CB_OK */
} cb_error;

#define CB_ERROR_INIT                                                                              \
    {                                                                                              \
        CB_OK,                                                                                     \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/* Records status and message and returns status, so that `return cb_error_set(...)` reads well. The
 * first message stays: a later call on an error that is already set changes nothing and returns the
 * first status. err may be NULL (the message is dropped). A message too long for the buffer is cut,
 * still terminated. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
cb_status
cb_error_set(cb_error *err, cb_status status, const char *format, ...);

/* Puts "prefix: " before the message of a set error; nothing on a clear one. Returns err's status.
 */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
cb_status
cb_error_prefix(cb_error *err, const char *format, ...);

void cb_error_clear(cb_error *err);

#ifdef __cplusplus
}
#endif
#endif
