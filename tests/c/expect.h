/* What must hold, counted. */
#ifndef EXPECT_H
#define EXPECT_H

#include <stdio.h>

static int passed, failed;

#define EXPECT(condition)                                                  \
    do {                                                                   \
        if (condition)                                                     \
            passed++;                                                      \
        else {                                                             \
            failed++;                                                      \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
        }                                                                  \
    } while (0)

#endif
