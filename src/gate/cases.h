/* cases.h: the cases of a gate, before anything is measured. Shared by the files of this folder. */
#ifndef CB_GATE_CASES_H
#define CB_GATE_CASES_H

#include "gate/gate.h"

/* Cases, and kernels that one side alone has. CB_USAGE: there is nothing in common. */
cb_status cb__gate_list(const cb__gate_request *request, cb__gate *gate, cb_error *err);
/* check.c. Parses every case on both sides, also those not to be measured, and merges those that
 * mean the same. What one side alone refuses is the case's `refused`. CB_USAGE: both do. */
cb_status cb__gate_check(const cb__gate_request *request, cb__gate *gate, cb_error *err);
/* Marks identical modules; CB_USAGE: a build that two sources share. */
cb_status cb__gate_identify(cb__gate *gate, cb_error *err);

#endif
