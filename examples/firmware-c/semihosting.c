/* Text and exit status by semihosting: a breakpoint that QEMU, or a debugger, serves. Without either it faults. */
#include "board.h"

enum { SYS_WRITE0 = 0x04, SYS_EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026 };

static void semihost(uint32_t operation, const void *argument)
{
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;

    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void print(const char *text)
{
    semihost(SYS_WRITE0, text);
}

void print_hex(uint64_t value)
{
    char text[17];

    text[16] = 0;
    for (int i = 15; i >= 0; i--, value >>= 4)
        text[i] = "0123456789abcdef"[value & 15];
    print(text);
}

void print_value(const char *label, uint32_t value)
{
    char text[11];
    char *digit = &text[10];

    *digit = 0;
    do
        *--digit = (char)('0' + value % 10);
    while (value /= 10);
    print(label);
    print(digit);
}

void board_exit(int status)
{
    const uint32_t block[2] = { APPLICATION_EXIT, (uint32_t)status };

    for (;;)
        semihost(SYS_EXIT_EXTENDED, block);
}
