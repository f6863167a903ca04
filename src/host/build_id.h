/* build_id.h: the build id that the linker wrote into the running program. */
#ifndef CB_HOST_BUILD_ID_H
#define CB_HOST_BUILD_ID_H

#include <stddef.h>

/* Lower-case hexadecimal; "" where the program has none. */
void cb__build_id(char *text, size_t size);

#endif
