/* The desktop as a board, for realtime.c: it prints, and has no clock. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "board.h"
#include "timer.h"

void print(const char *text)
{
    fputs(text, stdout);
}

void print_hex(uint64_t value)
{
    printf("%016" PRIx64, value);
}

void print_value(const char *label, uint32_t value)
{
    printf("%s%" PRIu32, label, value);
}

void board_exit(int status)
{
    exit(status);
}

int timer_start(void)
{
    return 1;
}

uint32_t timer_now(void)
{
    return 0;
}

uint32_t timer_between(uint32_t first, uint32_t second)
{
    return second - first;
}
