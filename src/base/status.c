#include "coldbench/status.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int exit_code;
    const char *text;
} table[] = {
#define CB_STATUS_ROW(name, code, text) {"CB_" #name, code, text},
    CB_STATUS_TABLE(CB_STATUS_ROW)
#undef CB_STATUS_ROW
};

const char *cb_status_name(cb_status status)
{
    return (unsigned)status < CB_STATUS_COUNT ? table[status].name : "unknown status";
}

const char *cb_status_text(cb_status status)
{
    return (unsigned)status < CB_STATUS_COUNT ? table[status].text : "unknown status";
}

int cb_status_exit(cb_status status)
{
    return (unsigned)status < CB_STATUS_COUNT ? table[status].exit_code : 5;
}

cb_status cb_error_set(cb_error *err, cb_status status, const char *format, ...)
{
    if (!err)
        return status;
    if (err->status != CB_OK)
        return err->status;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    err->status = status;
    return status;
}

cb_status cb_error_prefix(cb_error *err, const char *format, ...)
{
    if (!err || err->status == CB_OK)
        return err ? err->status : CB_OK;
    char old[sizeof err->message];
    memcpy(old, err->message, sizeof old);
    va_list args;
    va_start(args, format);
    int used = vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    /* Room for ": " and a terminator; what does not fit is cut. */
    int room = (int)sizeof err->message - used - 3;
    if (used >= 0 && room > 0)
        snprintf(err->message + used, (size_t)room + 3, ": %.*s", room, old);
    return err->status;
}

void cb_error_clear(cb_error *err)
{
    err->status = CB_OK;
    err->message[0] = '\0';
}
