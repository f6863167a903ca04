/* A program that is linked to a shared library other than glibc's: what test_static.sh must refuse.
 */
#include <jansson.h>

int main(void)
{
    return json_object() == NULL;
}
