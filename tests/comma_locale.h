/* comma_locale.h: puts the process into a locale with a decimal comma, for the tests that must not
 * notice. Uses an installed one, else compiles one into the build folder. */
#ifndef CB_TESTS_COMMA_LOCALE_H
#define CB_TESTS_COMMA_LOCALE_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static bool comma_locale_set(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8"};
    for (int compiled = 0; compiled < 2; compiled++) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (setlocale(LC_ALL, names[i]) && *localeconv()->decimal_point == ',')
                return true;
        mkdir(CB_BINARY_DIR "/locale", 0777);
        if (system("localedef -i de_DE -f UTF-8 '" CB_BINARY_DIR "/locale/de_DE.UTF-8' "
                   ">/dev/null 2>&1"))
            break;
        setenv("LOCPATH", CB_BINARY_DIR "/locale", 1);
    }
    return false;
}

#endif
