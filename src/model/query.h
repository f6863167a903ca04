/* query.h: what the files of queries share. */
#ifndef CB_MODEL_QUERY_H
#define CB_MODEL_QUERY_H

#include "model/model.h"

/* The curve that answers; workers 0: the most (latency: 1). CB_UNDECIDED says what there is. */
cb_status cb__model_find_series(const cb_model *model, cb__series_kind kind, const char *what,
                                int workers, const cb__series **out, cb_error *err);

/* Bytes behind which these threads (0: the model's own) stream from memory, as probed; 0: not
 * known, or no model. */
uint64_t cb__model_beyond_bytes(const cb_model *model, int threads);

#endif
