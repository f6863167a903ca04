/* entry.h: what cb_worker_entry has learned, for the comparisons that the program makes later. */
#ifndef CB_WORKER_ENTRY_H
#define CB_WORKER_ENTRY_H

#include <stdbool.h>

/* In the environment of a copy of the program that is one round of a comparison of its functions:
 * the descriptor of the story so far, a memory file. */
#define CB__ROUND_VARIABLE "COLDBENCH_ROUND"
#define CB__PROGRAM_COPY                                                                           \
    "coldbench-program"            /* the memory file that such a copy is executed from            \
                                    */
#define CB__STORY_MAGIC "cbround1" /* the file's first bytes */

typedef struct cb__main_entry {
    char **argv; /* as main got it; NULL: cb_worker_entry was not called */
    bool round;  /* this process is one round; then: */
    int in, out; /* the protocol's ends, out of the program's way */
    int story;
} cb__main_entry;

/* Static storage. */
const cb__main_entry *cb__main_entry_get(void);
/* Standard input and output become /dev/null; where they led is *in and *out, close-on-exec. */
bool cb__ends_take(int *in, int *out);

#endif
