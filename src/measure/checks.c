#include "measure/checks.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS_MIN = 6 };
#define SETTLED 0.05       /* hi / lo - 1 of the paired ratio */
#define COLD_RATIO 1.05    /* time(2k) / time(k) */
#define ABOVE_TWIN 1.03    /* implied bandwidth over the twin's, on 2k */
#define FLOOR_MULTIPLE 2   /* under this many floors: mostly dispatch */
#define ABOVE_CEILING 1.25 /* and over a long read, whose pieces lose their dispatch */
#define FLAT 1.05          /* asymptote on 2k against k sets */

typedef struct judge {
    const cb__evidence *e;
    cb__check *checks;
    int n;
} judge;

__attribute__((format(printf, 6, 7))) static void add(judge *j, const char *name,
                                                      cb_verdict verdict, bool required,
                                                      cb__check_status status, const char *format,
                                                      ...)
{
    cb__check *check = &j->checks[j->n++];
    *check = (cb__check){name, status, required, verdict, {0}};
    va_list args;
    va_start(args, format);
    vsnprintf(check->detail, sizeof check->detail, format, args);
    va_end(args);
    /* A worker's last words end up here; they do not get to steer a terminal. */
    for (char *c = check->detail; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

static cb__check_status pass_if(bool good)
{
    return good ? CB__PASS : CB__FAIL;
}

/* ---- wrong ---- */

static void process(judge *j)
{
    const cb__evidence *e = j->e;
    bool failed = e->launch.status != CB_OK;
    add(j, "launch", CB_VERDICT_WRONG, true, pass_if(!failed), "%s",
        failed ? e->launch.message : "every launch succeeded");
    failed = e->worker.status != CB_OK;
    if (!failed && e->unclear.status != CB_OK)
        add(j, "worker", CB_VERDICT_WRONG, true, CB__SKIP, "%s", e->unclear.message);
    else
        add(j, "worker", CB_VERDICT_WRONG, true, pass_if(!failed), "%s",
            failed ? e->worker.message : "every worker answered and ended by itself");
}

static void outputs(judge *j)
{
    static const char nothing[] = "no output was looked at";
    const cb__findings *f = &j->e->findings;
    cb__check_status seen = f->slots ? CB__PASS : CB__SKIP;
    const unsigned long long n = f->elements;
    if (f->unwritten)
        add(j, "written", CB_VERDICT_WRONG, true, CB__FAIL, "%llu never written, first at %llu%s",
            (unsigned long long)f->unwritten, (unsigned long long)f->first_unwritten, f->where);
    else
        add(j, "written", CB_VERDICT_WRONG, true, seen, "%s",
            f->slots ? "every element differs from one of two poisons" : nothing);
    if (f->guard_bytes)
        add(j, "guards", CB_VERDICT_WRONG, true, CB__FAIL,
            "%llu bytes changed outside an output, first %lld bytes %s its end%s",
            (unsigned long long)f->guard_bytes,
            (long long)(f->first_guard < 0 ? -f->first_guard : f->first_guard),
            f->first_guard < 0 ? "before" : "past", f->where);
    else
        add(j, "guards", CB_VERDICT_WRONG, true, seen, "%s",
            f->slots ? "the zones around outputs are unchanged" : nothing);
    bool held = j->e->complete && (j->e->rounds || j->e->inputs_held);
    add(j, "inputs", CB_VERDICT_WRONG, true,
        j->e->inputs_changed ? CB__FAIL
        : held               ? CB__PASS
                             : CB__SKIP,
        "%s",
        j->e->inputs_changed ? "the digest of the inputs changed while measuring"
        : held               ? "the digest of all inputs is what it was"
                             : "the inputs were not looked at again");
    if (f->beyond)
        add(j, "bound", CB_VERDICT_WRONG, true, CB__FAIL,
            "%llu of %llu elements outside the error bound, first at %llu: got %.9g, want %.9g "
            "+- %.3g%s",
            (unsigned long long)f->beyond, n, (unsigned long long)f->first_beyond, f->got, f->want,
            f->bound, f->where);
    else if (f->vacuous)
        add(j, "bound", CB_VERDICT_WRONG, true, CB__SKIP,
            "the bound of %llu elements is wider than all plausible values: it proves nothing%s",
            (unsigned long long)f->vacuous, f->where);
    else
        add(j, "bound", CB_VERDICT_WRONG, true, seen,
            "%llu elements of %llu outputs, of %d more shapes too, against f64; largest error %.3f "
            "of "
            "the bound",
            n, (unsigned long long)f->slots, f->ragged, f->worst);
    if (f->nonfinite)
        add(j, "finite", CB_VERDICT_WRONG, true, CB__FAIL, "%llu NaN or Inf, first at %llu%s",
            (unsigned long long)f->nonfinite, (unsigned long long)f->first_nonfinite, f->where);
    else
        add(j, "finite", CB_VERDICT_WRONG, true, seen, "%s", f->slots ? "no NaN, no Inf" : nothing);
}

/* ---- impossible ---- */

static void ceiling(judge *j)
{
    const cb__evidence *e = j->e;
    double gb = e->gb_per_s.lo, limit = e->peak_gb_per_s;
    /* That of the memory is the cold check's: above it, a cache has helped. */
    if (e->rounds == 0)
        add(j, "ceiling", CB_VERDICT_IMPOSSIBLE, limit > 0, CB__SKIP, "there is no figure");
    else if (!(limit > 0))
        add(j, "ceiling", CB_VERDICT_IMPOSSIBLE, false, CB__SKIP,
            "no physical ceiling is known for this processor");
    else
        add(j, "ceiling", CB_VERDICT_IMPOSSIBLE, true,
            isnan(gb) || !e->rounds ? CB__SKIP : pass_if(gb <= limit),
            "%.1f GB/s %s the %.1f GB/s of the load ports", gb,
            gb > limit ? "is above" : "is under", limit);
}

/* ---- contaminated ---- */

static void ring(judge *j)
{
    const cb__evidence *e = j->e;
    if (e->cache != CB__COLD)
        return;
    double touched = (double)e->plan->k * (double)e->plan->touched_bytes;
    bool good = e->plan->k >= 2 && touched >= (double)e->plan->needed_bytes;
    add(j, "ring", CB_VERDICT_CONTAMINATED, true, pass_if(good),
        "%d sets, %.1f MiB a rotation; 4x the last-level caches are %.1f MiB", e->plan->k,
        touched / 1048576, (double)e->plan->needed_bytes / 1048576);
}

/* 1: colder than proven impossible to doubt; -1: shown warm; 0: cannot tell. */
static int ratio_says(cb__interval ratio)
{
    return ratio.hi <= COLD_RATIO ? 1 : ratio.lo > COLD_RATIO ? -1 : 0;
}

static void cold(judge *j)
{
    const cb__evidence *e = j->e;
    if (e->cache != CB__COLD)
        return;
    if (*e->kept) {
        add(j, "cold", CB_VERDICT_CONTAMINATED, true, CB__FAIL, "%s", e->kept);
        return;
    }
    if (e->proofs == 0) {
        add(j, "cold", CB_VERDICT_CONTAMINATED, true, CB__SKIP, "no proof of coldness was made");
        return;
    }
    /* Sets that a cache holds by more than the device admits to are read as fast on 2k as on k. */
    double over_ceiling = e->gb_per_s.lo / e->asymptote_gb_per_s.hi;
    if (over_ceiling > ABOVE_CEILING) {
        add(j, "cold", CB_VERDICT_CONTAMINATED, true, CB__FAIL,
            "%.1f GB/s is %.2fx the ceiling of one long read of all sets, over 1.25x: some of it "
            "came from a cache",
            e->gb_per_s.lo, over_ceiling);
        return;
    }
    int kernel = ratio_says(e->kernel_2k_over_k);
    int twin = e->has_twin ? ratio_says(e->twin_2k_over_k) : 1;
    double implied = fmax(e->gb_per_s.lo, e->kernel_2k_gb_per_s.lo);
    double over_twin = fmax(e->over_twin_2k.lo, e->kernel_over_twin_2k.lo);
    bool above_twin = e->has_twin && over_twin > ABOVE_TWIN;
    double dram = e->device->peak_dram_bytes_per_s * 1e-9;
    bool above_dram = dram > 0 && implied > dram;
    if (above_twin || above_dram) {
        add(j, "cold", CB_VERDICT_CONTAMINATED, true, CB__FAIL,
            "%.1f GB/s is %.2fx the twin on 2k sets, %s: some of it came from a cache", implied,
            over_twin, above_dram ? "above the ceiling of the memory" : "over 1.03x");
        return;
    }
    cb__check_status status = kernel < 0 || twin < 0 ? CB__FAIL
                              : kernel && twin       ? CB__PASS
                                                     : CB__SKIP;
    if (status == CB__PASS && *e->unasked) {
        add(j, "cold", CB_VERDICT_CONTAMINATED, true, CB__SKIP, "%s", e->unasked);
        return;
    }
    add(j, "cold", CB_VERDICT_CONTAMINATED, true, status,
        "time on 2k over k sets: kernel %.3f [%.3f, %.3f], twin %.3f [%.3f, %.3f]; %s 1.05",
        e->kernel_2k_over_k.mid, e->kernel_2k_over_k.lo, e->kernel_2k_over_k.hi,
        e->twin_2k_over_k.mid, e->twin_2k_over_k.lo, e->twin_2k_over_k.hi,
        status == CB__PASS   ? "wholly under"
        : status == CB__FAIL ? "wholly above"
                             : "not clear of");
}

static void memory(judge *j)
{
    const cb__evidence *e = j->e;
    if (!e->plan->streams)
        return;
    bool random = e->distinct_words * 10 >= e->sampled_words * 9;
    add(j, "content", CB_VERDICT_CONTAMINATED, true, e->sampled_words ? pass_if(random) : CB__SKIP,
        "%llu of %llu sampled words are distinct", (unsigned long long)e->distinct_words,
        (unsigned long long)e->sampled_words);
    double resident =
        e->plan->file_bytes ? (double)e->pages.resident_bytes / (double)e->plan->file_bytes : 0;
    double huge =
        e->plan->file_bytes ? (double)e->pages.huge_bytes / (double)e->plan->file_bytes : 0;
    if (!e->pages.known)
        add(j, "pages", CB_VERDICT_CONTAMINATED, false, CB__SKIP,
            "the kernel does not say which pages were granted");
    else
        add(j, "pages", CB_VERDICT_CONTAMINATED, true, pass_if(resident >= 0.99),
            "%.1f %% resident, %.0f %% in huge pages", 100 * fmin(resident, 1),
            100 * fmin(huge, 1));
}

static void surroundings(judge *j)
{
    const cb__evidence *e = j->e;
    bool required = e->device->has_counters;
    if (isnan(e->clock_spread))
        add(j, "clock", CB_VERDICT_CONTAMINATED, required, CB__SKIP, "the core clock is unknown");
    else
        add(j, "clock", CB_VERDICT_CONTAMINATED, required, pass_if(e->clock_spread <= 0.05),
            "core clock within %.1f %% over rounds", 100 * e->clock_spread);
    if (isnan(e->steal_share))
        add(j, "interference", CB_VERDICT_CONTAMINATED, required, CB__SKIP,
            "the system does not say");
    else
        add(j, "interference", CB_VERDICT_CONTAMINATED, required, pass_if(e->steal_share <= 0.02),
            "%.1f %% stolen by the hypervisor, %lld involuntary switches", 100 * e->steal_share,
            (long long)e->involuntary);
}

/* ---- unstable, floor-bound, lower-bound ---- */

bool cb__settled(const cb__evidence *e)
{
    cb__interval x = e->has_twin ? e->of_twin : e->time_ns;
    return e->rounds >= ROUNDS_MIN && x.hi / x.lo - 1 <= SETTLED && !(fabs(e->trend) > SETTLED);
}

static void settled(judge *j)
{
    const cb__evidence *e = j->e;
    cb__interval x = e->has_twin ? e->of_twin : e->time_ns;
    if (e->rounds == 0)
        add(j, "settled", CB_VERDICT_UNSTABLE, true, CB__SKIP, "no round was completed");
    else
        add(j, "settled", CB_VERDICT_UNSTABLE, true, pass_if(cb__settled(e)),
            "%s within %.1f %% over %d rounds%s; trend within rounds %+.1f %%",
            e->has_twin ? "ratio to the twin" : "time", 100 * (x.hi / x.lo - 1), e->rounds,
            e->rounds < ROUNDS_MIN ? ", of which 6 are needed" : "", 100 * e->trend);
}

double cb__floor_share(const cb__evidence *e)
{
    double share = e->floor_ns / e->time_ns.mid;
    return share < 1 ? share : 1;
}

static void floors(judge *j)
{
    const cb__evidence *e = j->e;
    /* Time that is proportional to arithmetic alone still has the same floor. */
    bool above = e->time_ns.mid >= FLOOR_MULTIPLE * e->floor_ns;
    if (e->rounds == 0) {
        add(j, "floor", CB_VERDICT_FLOOR_BOUND, true, CB__SKIP, "there is no figure");
        return;
    }
    add(j, "floor", CB_VERDICT_FLOOR_BOUND, true, pass_if(above),
        "%.0f ns a launch, an empty kernel takes %.0f ns %s", e->time_ns.mid, e->floor_ns,
        cb__submit_name(e->submit));
}

static void saturation(judge *j)
{
    const cb__evidence *e = j->e;
    cb__interval flat = e->asymptote_2k_over_k;
    double dram = e->device->peak_dram_bytes_per_s * 1e-9;
    if (dram > 0 && e->asymptote_gb_per_s.lo > dram)
        add(j, "saturation", CB_VERDICT_CONTAMINATED, true, CB__FAIL,
            "the ceiling is %.1f GB/s, and the memory's %.1f: some of it came from a cache",
            e->asymptote_gb_per_s.lo, dram);
    else
        add(j, "saturation", CB_VERDICT_LOWER_BOUND, true,
            pass_if(flat.lo <= FLAT && flat.hi >= 1 / FLAT),
            "the twin's ceiling on 2k over k sets: %.3f [%.3f, %.3f]", flat.mid, flat.lo, flat.hi);
}

static void drive(judge *j)
{
    const cb__evidence *e = j->e;
    if (!e->has_twin)
        return;
    if (e->cache == CB__COLD && e->proofs == 0) {
        add(j, "saturation", CB_VERDICT_LOWER_BOUND, true, CB__SKIP,
            "the ceiling was not measured");
    } else if (e->cache == CB__COLD) {
        saturation(j);
    }
    bool reads = strcmp(e->plan->twin_kernel, "twin_read") == 0;
    if (e->twin_sums_wrong)
        add(j, "drive", CB_VERDICT_LOWER_BOUND, true, CB__FAIL,
            "the twin's checksum was wrong %d of %d times: it did not read everything",
            e->twin_sums_wrong, e->twin_sums_seen);
    else if (e->cache == CB__WARM && e->of_twin.lo > ABOVE_TWIN)
        add(j, "drive", CB_VERDICT_LOWER_BOUND, true, CB__FAIL,
            "%.2fx as fast as plainly moving the same bytes: not all were moved, or the twin is "
            "not "
            "the best",
            e->of_twin.lo);
    else if (reads && e->twin_sums_seen == 0)
        add(j, "drive", CB_VERDICT_LOWER_BOUND, true, CB__SKIP, "no checksum of the twin was seen");
    else if (reads)
        add(j, "drive", CB_VERDICT_LOWER_BOUND, true, pass_if(e->twin_candidates >= 2),
            "the twin is the fastest of %d; its checksum was right %d of %d times",
            e->twin_candidates, e->twin_sums_seen, e->twin_sums_seen);
    else
        add(j, "drive", CB_VERDICT_LOWER_BOUND, true, pass_if(e->twin_candidates >= 2),
            "the twin is the fastest of %d", e->twin_candidates);
}

/* `floor-bound` and `lower-bound` are figures one may use. What could not be looked at, and might
 * have made it wrong, contaminated or unstable, comes before them. */
static cb_verdict verdict_of(const judge *j)
{
    cb_verdict verdict = CB_VERDICT_OK;
    bool unseen = false;
    for (int i = 0; i < j->n; i++) {
        const cb__check *check = &j->checks[i];
        cb_verdict says = !check->required            ? CB_VERDICT_OK
                          : check->status == CB__FAIL ? check->verdict
                          : check->status == CB__SKIP ? CB_VERDICT_UNKNOWN
                                                      : CB_VERDICT_OK;
        if (says < verdict)
            verdict = says;
        unseen = unseen || (says == CB_VERDICT_UNKNOWN && check->verdict <= CB_VERDICT_UNSTABLE);
    }
    return unseen && verdict > CB_VERDICT_UNSTABLE ? CB_VERDICT_UNKNOWN : verdict;
}

cb_verdict cb__judge(const cb__evidence *e, cb__check *checks, int *nchecks)
{
    judge j = {e, checks, 0};
    process(&j);
    outputs(&j);
    ceiling(&j);
    ring(&j);
    cold(&j);
    memory(&j);
    surroundings(&j);
    settled(&j);
    floors(&j);
    drive(&j);
    *nchecks = j.n;
    return verdict_of(&j);
}

cb_verdict cb__judge_side(const cb__evidence *e, cb__check *checks, int *nchecks)
{
    judge j = {e, checks, 0};
    process(&j);
    outputs(&j);
    ceiling(&j);
    *nchecks = j.n;
    return verdict_of(&j);
}

void cb__residency_text(const cb__evidence *e, char *text, size_t size)
{
    text[0] = '\0';
    if (e->cache != CB__WARM || !e->plan->streams)
        return;
    static const char *const answers[] = {[CB_RESIDENT_NO] = "do not fit",
                                          [CB_RESIDENT_MAYBE] =
                                              "may fit: this measures the cache, or part of it",
                                          [CB_RESIDENT_YES] = "fit: this measures the cache"};
    double set = (double)e->plan->touched_bytes, llc = (double)e->plan->llc_bytes;
    cb_resident nominal = set <= llc / 2 ? CB_RESIDENT_YES
                          : set <= llc   ? CB_RESIDENT_MAYBE
                                         : CB_RESIDENT_NO;
    if (e->has_knee)
        snprintf(text, size, "%.4g MB against a last knee of %.4g to %.4g MB, as probed: they %s",
                 set / 1e6, e->knee.lo / 1e6, e->knee.hi / 1e6, answers[e->resident]);
    else
        snprintf(text, size, "%.4g MB against %.4g MB of last-level cache: they %s", set / 1e6,
                 llc / 1e6, answers[nominal]);
    double above = e->gb_per_s.lo / e->asymptote_gb_per_s.hi;
    if (above > 1)
        snprintf(text + strlen(text), size - strlen(text), "; %.1fx the ceiling of the memory",
                 above);
}
