#include "kernel/shapes.h"

#include <string.h>

#include "base/parse.h"

/* hidden_size, intermediate_size and the key/value width (num_key_value_heads x head_dim) of each
 * model's public configuration; q and o are hidden x hidden, k and v kv x hidden, gate and up
 * intermediate x hidden, down hidden x intermediate. No output head. */
static const cb__shape_list lists[] = {
    {"llama-3-8b",
     "Llama 3 8B: hidden 4096, intermediate 14336, 8 key/value heads of 128",
     {{"4096x4096", "q, o"},
      {"1024x4096", "k, v"},
      {"14336x4096", "gate, up"},
      {"4096x14336", "down"}}},
    {"llama-3-70b",
     "Llama 3 70B: hidden 8192, intermediate 28672, 8 key/value heads of 128",
     {{"8192x8192", "q, o"},
      {"1024x8192", "k, v"},
      {"28672x8192", "gate, up"},
      {"8192x28672", "down"}}},
    {"qwen2.5-7b",
     "Qwen2.5 7B: hidden 3584, intermediate 18944, 4 key/value heads of 128",
     {{"3584x3584", "q, o"},
      {"512x3584", "k, v"},
      {"18944x3584", "gate, up"},
      {"3584x18944", "down"}}},
};

enum { NLISTS = sizeof lists / sizeof *lists };

const cb__shape_list *cb__shape_lists(int *n)
{
    *n = NLISTS;
    return lists;
}

cb_status cb__shape_list_find(const char *name, const cb__shape_list **out, cb_error *err)
{
    const char *valid[NLISTS];
    for (int i = 0; i < NLISTS; i++) {
        valid[i] = lists[i].name;
        if (strcmp(name, lists[i].name) == 0) {
            *out = &lists[i];
            return CB_OK;
        }
    }
    return cb__unknown(err, "shape list", name, valid, NLISTS);
}
