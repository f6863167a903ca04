/* What a gate says of its cases: none is left undecided without a word of why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"

#define BUDGET "the budget (0.5 s) was spent after 0 of the 6 rounds that an answer needs"

typedef struct row {
    const char *why, *unclear; /* as the comparison and the head's worker said */
    int rounds;
    cb__decision decision;
    const char *said, *not_said;
} row;

static void open_case(const row *r, cb__gate_case *c)
{
    cb__comparison *x = &c->comparison;
    snprintf(c->variant, sizeof c->variant, "gated");
    x->measured = x->complete = true;
    x->nsides = 2;
    x->npairs = 1;
    x->pairs[0].b = 1;
    x->pairs[0].decision = r->decision;
    x->nrounds = r->rounds;
    snprintf(x->why, sizeof x->why, "%s", r->why);
    for (int i = 0; i < 2; i++) {
        cb__compare_side *side = &x->sides[i];
        bool unclear = i == 1 && r->unclear;
        side->verdict = unclear || !r->rounds ? CB_VERDICT_UNKNOWN : CB_VERDICT_OK;
        if (unclear)
            cb_error_set(&side->evidence.unclear, CB_CRASHED, "%s", r->unclear);
        side->checks[side->nchecks] = (cb__check){.name = "launch", .status = CB__PASS};
        side->checks[side->nchecks++].required = true;
        cb__check *worker = &side->checks[side->nchecks++];
        *worker = (cb__check){.name = "worker",
                              .status = unclear ? CB__SKIP : CB__PASS,
                              .required = true,
                              .verdict = CB_VERDICT_WRONG};
        snprintf(worker->detail, sizeof worker->detail, "%s", unclear ? r->unclear : "ended");
    }
}

static void what_is_undecided_says_why(void **state)
{
    (void)state;
    static const row rows[] = {
        {BUDGET, NULL, 0, CB__INCONCLUSIVE, "    " BUDGET "; a larger --budget may tell\n",
         "is unknown"},
        {"", NULL, 3, CB__INCONCLUSIVE, "not settled in the 3 rounds that the budget allowed",
         NULL},
        {"", NULL, 40, CB__INCONCLUSIVE, "not settled in 40 rounds, the most there are", NULL},
        {"", NULL, 9, CB__UNSTABLE, "unstable after 9 rounds", NULL},
        {"fewer than two sides were left", "signal 9 in the midst of both", 0, CB__INCONCLUSIVE,
         "    fewer than two sides were left\n    head is unknown: worker: signal 9 in the midst "
         "of "
         "both\n",
         "--budget"},
        {"fewer than two sides were left", "signal 9 in the midst of both", 7, CB__INCONCLUSIVE,
         "    head is unknown: worker: signal 9 in the midst of both\n", "--budget"},
        {"", NULL, 0, CB__ANOTHER_ROUND, "    the comparison came to no decision", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static cb__gate_case c;
        cb__gate gate = {.cases = &c, .ncases = 1};
        cb__buf out = CB__BUF_INIT, markdown = CB__BUF_INIT;
        memset(&c, 0, sizeof c);
        open_case(&rows[i], &c);
        cb__report_gate(&gate, false, false, &out);
        cb__report_gate_markdown(&gate, &markdown);
        assert_int_equal(strncmp(cb__buf_text(&out), "undecided ", 10), 0);
        if (!strstr(cb__buf_text(&out), rows[i].said) ||
            (rows[i].not_said && strstr(cb__buf_text(&out), rows[i].not_said)))
            fail_msg("row %zu: not as expected:\n%s", i, cb__buf_text(&out));
        assert_null(strstr(cb__buf_text(&markdown), "|  |\n"));
        cb__buf_fini(&out);
        cb__buf_fini(&markdown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_undecided_says_why)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
