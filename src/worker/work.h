/* work.h: what is asked of a worker and what it answers, as structs; work.c turns them into lines
 * and back (docs/protocol.md). */
#ifndef CB_WORKER_WORK_H
#define CB_WORKER_WORK_H

#include "base/arena.h"
#include "base/json.h"
#include "measure/bench.h"
#include "measure/checks.h"
#include "measure/duel.h"
#include "probe/sweep.h"

#define CB__PROTOCOL 1

enum { CB__MODES_MAX = 4, CB__TWINS_MAX = 16 };
/* A duel's exchange begins with a page that holds an int32, the arm in work + 1, away from where
 * stray writes to a descriptor land; then come the slots. */
enum { CB__EXCHANGE_HEAD = 4096, CB__EXCHANGE_AT_WORK = 2048 };

typedef struct cb__mode {
    cb__cache_state cache;
    cb__submit submit;
    int blocks;
} cb__mode;

/* One side of a comparison. Texts are borrowed. */
typedef struct cb__work_arm {
    const char *variant;
    const char *module; /* an embedded module's name; or what messages call the file behind: */
    int module_fd;      /* -1: embedded */
    int ring_fd;
    bool expects;
    uint64_t expected;    /* digest of its verified slots */
    uint64_t ring_digest; /* as it was filled */
} cb__work_arm;

typedef struct cb__duel_work {
    cb__work_arm arms[CB__DUEL_ARMS_MAX];
    int narms; /* 0: the request is about one variant */
    cb__layout layout;
    int arm;          /* fill: whose contents and reference */
    bool head;        /* fill: the sets that are verified; else the whole ring and no reference */
    bool timed;       /* duel: after verifying */
    bool floor, look; /* look: whether an arm edits its ring */
    uint64_t poison_seed;
    int blocks_min;
    int batch, repeats, readings; /* 0: to be found out */
} cb__duel_work;

/* What an earlier worker said of the device, so that this one need not look again. */
typedef struct cb__known {
    const char *processors; /* NULL or "": look */
    unsigned isa;
} cb__known;

/* One case for one worker. Texts are borrowed. */
typedef struct cb__work {
    const char *op; /* "describe", "open", "fill", "pick", "round", "digest", "sweep", "duel" */
    const char *device;
    int threads;        /* 0: the default */
    const char *module; /* file of the kernel; NULL: an embedded one */
    const char *variant, *shape;
    bool cold;
    int ring_fd, reference_fd, exchange_fd;
    uint64_t exchange_bytes;
    uint64_t seed, elapsed_ns;
    uint64_t beyond_bytes;            /* of the device's machine model; 0: not known */
    const char *twins[CB__TWINS_MAX]; /* pick: candidates; round: [0] cold, [1] warm */
    int ntwins;
    cb__mode modes[CB__MODES_MAX];
    int nmodes;
    bool digest;     /* round: also the digest of the ring, after the last launch */
    int proof_pairs; /* 0: no proof, no asymptote */
    /* sweep */
    cb__placement placement;
    cb__page_kind pages;
    uint64_t limit_ns; /* duel: no block begins later than this after the first */
    const cb__job *jobs;
    int njobs;
    cb__duel_work duel;
    cb__known known;
} cb__work;

void cb__work_write(const cb__work *work, cb__buf *line);
/* Texts point into `json`, jobs lie in the arena. */
cb_status cb__work_read(const cb__json *json, cb__arena *arena, cb__work *work, cb_error *err);

/* ---- answers ---- */

typedef struct cb__fill_answer {
    uint64_t digest, sampled_words, distinct_words;
    double prepare_ns;
    uint32_t *checksums; /* [sets], in the arena */
    int sets;
} cb__fill_answer;

typedef struct cb__pick_answer {
    int best[2];                     /* by cache state */
    double kernel_ns[2], twin_ns[2]; /* a launch, batched */
} cb__pick_answer;

typedef struct cb__mode_answer {
    cb__blocks blocks; /* arrays in the arena */
    double floor_ns;
    cb_error launch; /* a launch failed */
    cb__entry *entries;
    int nentries;
    int twin_set; /* -1: no checksum */
    uint32_t twin_sum;
} cb__mode_answer;

typedef struct cb__round_answer {
    cb__mode_answer modes[CB__MODES_MAX];
    int nmodes;
    bool has_proof;
    cb__proof proof;
    cb__asymptote asymptote;
    bool has_digest;
    uint64_t digest;
    cb__pages pages;
    double clock_hz;      /* 0: unknown */
    char telemetry[160];  /* after timing; "": none */
    char kept[160];       /* why what rotates is not cold, as the device says; "": it may be */
    char unasked[160];    /* why it cannot say so; "": it can */
    uint64_t measured_ns; /* inside timed blocks, by the device's clock */
    uint64_t elapsed_ns;  /* of the device's clock, the whole round */
    double steal_s, wall_s;
    int64_t involuntary;
} cb__round_answer;

void cb__digest_answer_write(uint64_t digest, cb__buf *line);
cb_status cb__digest_answer_read(const cb__json *json, uint64_t *digest, cb_error *err);
void cb__describe_answer_write(const cb__device_info *info, cb__buf *line);
cb_status cb__describe_answer_read(const cb__json *json, cb__device_info *info, cb_error *err);
void cb__fill_answer_write(const cb__fill_answer *answer, cb__buf *line);
cb_status cb__fill_answer_read(const cb__json *json, cb__arena *arena, cb__fill_answer *answer,
                               cb_error *err);
void cb__pick_answer_write(const cb__pick_answer *answer, cb__buf *line);
cb_status cb__pick_answer_read(const cb__json *json, cb__pick_answer *answer, cb_error *err);
void cb__round_answer_write(const cb__round_answer *answer, cb__buf *line);
/* `work` is what was asked: an answer with other modes, block counts or entries outside the
 * exchange is CB_GARBAGE. */
cb_status cb__round_answer_read(const cb__json *json, const cb__work *work, const cb__plan *plan,
                                cb__arena *arena, cb__round_answer *answer, cb_error *err);

typedef struct cb__duel_answer {
    cb__duel_result result; /* arrays in the arena */
    double clock_hz;        /* 0: unknown */
    char telemetry[160];    /* after timing; "": none */
    double steal_s, wall_s;
    int64_t involuntary;
} cb__duel_answer;

/* The members of a request that a comparison adds. */
void cb__duel_work_write(const cb__work *work, cb__json_writer *w);
cb_status cb__duel_work_read(const cb__json *json, cb__work *work, cb_error *err);
/* Room for what a request can bring home. */
cb_status cb__duel_result_alloc(const cb__work *work, const cb__plan *plan, cb__arena *arena,
                                cb__duel_result *result, cb_error *err);
void cb__duel_answer_write(const cb__duel_answer *answer, int narms, cb__buf *line);
/* `work` is what was asked: other arms, too many blocks, orders that are none, or entries outside
 * the exchange are CB_GARBAGE. */
cb_status cb__duel_answer_read(const cb__json *json, const cb__work *work, const cb__plan *plan,
                               cb__arena *arena, cb__duel_answer *answer, cb_error *err);

void cb__sweep_answer_write(const cb__sweep_answer *answer, cb__buf *line);
/* `work` is what was asked: other jobs or other counts of readings are CB_GARBAGE. */
cb_status cb__sweep_answer_read(const cb__json *json, const cb__work *work, cb__arena *arena,
                                cb__sweep_answer *answer, cb_error *err);

#endif
