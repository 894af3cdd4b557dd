/* The little a program needs from its board. Replace semihosting.c to print over a UART instead. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

void print(const char *text);
void print_hex(uint64_t value);                         /* 16 digits */
void print_value(const char *label, uint32_t value);    /* decimal */
void board_exit(int status) __attribute__((noreturn));  /* ends QEMU with this exit status */

/* Deepest use of the stack since reset, in bytes: start-up paints it, this looks for the paint. */
uint32_t board_stack_used(void);

#endif
