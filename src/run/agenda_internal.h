/* agenda_internal.h: what the files of the agenda share. */
#ifndef CB_RUN_AGENDA_INTERNAL_H
#define CB_RUN_AGENDA_INTERNAL_H

#include "run/agenda.h"

/* Sizes from `largest` down to `smallest`, both among them, so many an octave. */
void cb__agenda_sizes(double largest, double smallest, double an_octave, bool whole_pages,
                      cb__planned_job *job);
/* The one group of a device that launches are queued to; the range of sizes is chosen. */
void cb__agenda_queued(const cb__probe_request *request, const cb__device_info *device,
                       double smallest, cb__agenda *plan);

#endif
