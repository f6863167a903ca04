/* environment.h: facts about the machine for the record, and what interfered while measuring. */
#ifndef CB_HOST_ENVIRONMENT_H
#define CB_HOST_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cb__environment {
    char os[96], kernel[96];
    char machine_id_hash[17]; /* hex of a 64-bit hash of /etc/machine-id (or boot id); "" unknown */
    bool virtual_machine, container;
    char virtualization[32];     /* "kvm", "docker", ... ; "none" */
    char governor[32];           /* "" where the file is missing */
    char thp[16], thp_shmem[16]; /* the selected word of each setting */
    double load1;
    char libc[32];
    char variables[8][128]; /* "NAME=value" of the whitelisted variables that are set:
                             * OMP_NUM_THREADS, OPENBLAS_NUM_THREADS, OPENBLAS_CORETYPE,
                             * MKL_NUM_THREADS, GOMP_CPU_AFFINITY, CUDA_VISIBLE_DEVICES,
                             * GLIBC_TUNABLES, MALLOC_ARENA_MAX */
    int nvariables;
} cb__environment;

void cb__environment_read(const char *root, cb__environment *out);

/* Counters of disturbance; take one before and one after, subtract. */
typedef struct cb__interference {
    double steal_s;      /* of all CPUs (/proc/stat) */
    int64_t involuntary; /* context switches of this process */
    int64_t major_faults;
    double other_busy_s; /* CPU seconds used by everything, less this process's own */
} cb__interference;
cb__interference cb__interference_now(void);
cb__interference cb__interference_since(const cb__interference *before);

#endif
