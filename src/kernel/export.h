/* export.h: the embedded modules as files, with an index of their ids: what a gate takes from
 * another build of this program. */
#ifndef CB_KERNEL_EXPORT_H
#define CB_KERNEL_EXPORT_H

#include "coldbench/status.h"

#define CB__EXPORT_INDEX "modules.json"
#define CB__EXPORT_SCHEMA "coldbench-modules/1"

/* Writes FOLDER/NAME.so for each embedded module, then FOLDER/modules.json; makes the folder. CB_IO
 * names the file and the system's words, and leaves none of them. */
cb_status cb__modules_export(const char *folder, cb_error *err);

#endif
