/* What test_dl loads: code and data of its own. */
int dl_module_next(void);
extern int dl_module_count;

__attribute__((visibility("default"))) int dl_module_count = 40;

__attribute__((visibility("default"))) int dl_module_next(void)
{
    return ++dl_module_count;
}
