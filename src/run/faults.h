/* faults.h: faults that selftest seeds, of both kinds, and what is shared of noting them. */
#ifndef CB_RUN_FAULTS_H
#define CB_RUN_FAULTS_H

#include "run/selftest.h"

/* Launches that go wrong: how many results they add, and one run of each. `results` are theirs. */
int cb__launch_faults_list(cb__fault_result *results);
cb_status cb__launch_faults_run(const cb__probe_request *request, const cb__device_info *device,
                                int run, cb__fault_result *results, cb_error *err);

/* What the seeded search of a GPU's loads tries, for who embeds code of default constants. */
const char *const *cb__sweep_fault_variants(int *n);

#endif
