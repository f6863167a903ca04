/* compare_functions.c: two ways to sum an array; which is faster, by how much, how sure.
 * Every round of the comparison is a fresh copy of this program, which runs main again up to
 * cb_compare: that is what cb_worker_entry is for. */
#include <coldbench/compare.h>
#include <coldbench/worker.h>
#include <stdio.h>

static float numbers[4096], sum;

static void one_chain(void *state)
{
    const float *x = state;
    float s = 0;
    for (int i = 0; i < 4096; i++)
        s += x[i];
    sum = s;
}

static void four_chains(void *state)
{
    const float *x = state;
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int i = 0; i < 4096; i += 4) {
        s0 += x[i];
        s1 += x[i + 1];
        s2 += x[i + 2];
        s3 += x[i + 3];
    }
    sum = s0 + s1 + s2 + s3;
}

int main(int argc, char **argv)
{
    int worker = cb_worker_entry(argc, argv);
    if (worker >= 0)
        return worker;
    for (int i = 0; i < 4096; i++)
        numbers[i] = (float)(i % 7);
    cb_compare_request request = {.a = one_chain,
                                  .b = four_chains,
                                  .state = numbers,
                                  .a_name = "one chain",
                                  .b_name = "four chains",
                                  .output = &sum,
                                  .output_bytes = sizeof sum};
    cb_compare_result result;
    cb_error err = CB_ERROR_INIT;
    cb_status status = cb_compare(&request, &result, &err);
    puts(status == CB_OK ? result.text : err.message);
    return cb_status_exit(status);
}
