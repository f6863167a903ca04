/* agenda.h: what a probe is going to measure, most valuable first. */
#ifndef CB_RUN_AGENDA_H
#define CB_RUN_AGENDA_H

#include "run/probe.h"

typedef struct cb__planned_job {
    cb__job_kind kind;
    char what[16];
    char variants[CB__JOB_VARIANTS_MAX][96];
    int nvariants;
    int64_t bytes[CB__SIZES_MAX]; /* rise */
    int n;
    bool dropped; /* the budget had no room for it, or none any more */
    int sweeps;   /* made of it */
} cb__planned_job;

typedef struct cb__planned_group {
    char name[64];       /* for a person: "2 threads" */
    int threads;         /* of which the figures are said to be */
    int started_threads; /* 0: so many; else a fault to seed */
    bool scattered;
    cb__page_kind pages;
    double share; /* of a sweep's time, by weight */
    cb__planned_job jobs[CB__JOBS_MAX];
    int njobs;
    bool failed; /* its process died: nothing more is asked of it */
} cb__planned_group;

typedef struct cb__agenda {
    cb__planned_group groups[CB__GROUPS_MAX];
    int ngroups;
    int64_t largest_bytes;
    bool quarter; /* the range ends at a quarter of the memory, and not where it should */
} cb__agenda;

cb_status cb__agenda_make(const cb__probe_request *request, const cb__device_info *device,
                          cb__agenda *plan, cb_error *err);
/* One more group, without jobs; NULL: there is no room. */
cb__planned_group *cb__agenda_group(cb__agenda *plan, int threads, bool scattered,
                                    cb__page_kind pages, double share);
/* Every variant of `kernel` that the probe tries, into the job. nontemporal: stores of that kind,
 * -1: there is no such choice. */
void cb__agenda_variants(const cb__probe_request *request, const char *kernel, int nontemporal,
                         cb__planned_job *job);
/* Sweep `sweep` over an agenda, as raw readings; out->device is the caller's to fill. The first one
 * begins `out`. */
cb_status cb__probe_sweep(const cb__probe_request *request, cb__agenda *plan, int sweep,
                          cb__probe *out, cb_error *err);
/* All sweeps. */
cb_status cb__probe_follow(const cb__probe_request *request, cb__agenda *plan, cb__probe *out,
                           cb_error *err);
cb_status cb__probe_describe(const cb__probe_request *request, cb__device_info *info,
                             cb_error *err);
/* A group that no time was left for. */
void cb__agenda_drop(cb__agenda *plan, int group);
/* What has fewer than `planned` sweeps, and a range cut short, in words; "" nothing. */
void cb__agenda_dropped_text(const cb__agenda *plan, int planned, char *text, size_t size);

#endif
