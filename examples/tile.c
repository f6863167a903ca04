/* tile.c: the largest tile, a power of two, that stays in the caches, and what it gains.
 * Usage: tile [DEVICE [MODEL_FILE]]. `coldbench probe` makes the model of this machine. */
#include <coldbench/model.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const uint64_t full = UINT64_C(128) << 20;
    const char *device = argc > 1 ? argv[1] : "cpu";
    cb_error err = CB_ERROR_INIT;
    cb_model *model = NULL;
    cb_figure gain;
    cb_resident stays = CB_RESIDENT_NO;
    cb_status status = argc > 2 ? cb_model_open_file(argv[2], device, &model, &err)
                                : cb_model_open(device, &model, &err);
    uint64_t tile = full;
    while (status == CB_OK && stays != CB_RESIDENT_YES && (tile /= 2) > 0)
        status = cb_model_resident(model, tile, CB_STREAM_PATTERN, 0, &stays, NULL, &err);
    if (status == CB_OK)
        status = cb_model_tiling_gain(model, full, tile, 0, &gain, &err);
    if (status == CB_OK)
        printf("tile %llu bytes: read %.3g times faster, [%.3g, %.3g], %s\n",
               (unsigned long long)tile, gain.mid, gain.lo, gain.hi, cb_verdict_name(gain.verdict));
    else
        fprintf(stderr, "tile: %s\n", err.message);
    cb_model_free(model);
    return cb_status_exit(status);
}
