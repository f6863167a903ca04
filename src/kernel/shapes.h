/* shapes.h: shipped lists of shapes: the decode projections of real models, from their public
 * configurations. */
#ifndef CB_KERNEL_SHAPES_H
#define CB_KERNEL_SHAPES_H

#include "coldbench/status.h"

enum { CB__SHAPES_MAX = 8 };

typedef struct cb__shape_list {
    const char *name;
    const char *model;
    struct {
        const char *shape; /* rows x cols of W */
        const char *what;
    } shapes[CB__SHAPES_MAX]; /* ends at a NULL shape */
} cb__shape_list;

/* CB_USAGE with the valid names and the nearest. */
cb_status cb__shape_list_find(const char *name, const cb__shape_list **out, cb_error *err);
/* All of them; *n entries. */
const cb__shape_list *cb__shape_lists(int *n);

#endif
