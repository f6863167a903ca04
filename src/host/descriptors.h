/* descriptors.h: which open files a program that is about to be executed may keep. */
#ifndef CB_HOST_DESCRIPTORS_H
#define CB_HOST_DESCRIPTORS_H

/* Marks every open descriptor from `first` on to be closed by exec: by close_range where the kernel
 * can (5.11), else one by one from /proc/self/fd. Safe between fork and exec. 0, or -1 with errno.
 */
int cb__descriptors_cloexec(int first);

#endif
