/* model_summary.h: a whole machine model on one screen. */
#ifndef CB_REPORT_MODEL_SUMMARY_H
#define CB_REPORT_MODEL_SUMMARY_H

#include "base/buf.h"
#include "model/model.h"

void cb__report_model(const cb_model *model, bool color, cb__buf *out);

#endif
