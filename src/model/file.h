/* file.h: what writing, reading and storing a model share. */
#ifndef CB_MODEL_FILE_H
#define CB_MODEL_FILE_H

#include "model/model.h"

enum { CB__MODEL_BYTES_MAX = 16 << 20 }; /* of a file */

/* An identity names a file: [A-Za-z0-9._-], some of it. */
bool cb__model_identity_ok(const char *identity);

#endif
