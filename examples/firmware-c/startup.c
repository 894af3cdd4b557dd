/*
 * Start-up of a Cortex-M: vector table, FPU, .data, .bss, painted stack, main().
 * The linker script (sections.ld) defines every symbol declared extern here.
 */
#include <stdint.h>

#include "board.h"

#define STACK_PAINT UINT32_C(0xa5a5a5a5)

extern uint32_t data_start[], data_end[], bss_start[], bss_end[], stack_limit[], stack_top[];
extern const uint32_t data_load[];

int main(void);
void reset(void);

static void enable_fpu(void)
{
#ifdef __ARM_FP
    /* Full access to coprocessors 10 and 11; the barriers keep FPU instructions from overtaking it. */
    volatile uint32_t *cpacr = (volatile uint32_t *)UINT32_C(0xe000ed88);
    *cpacr |= UINT32_C(0xf) << 20;
    __asm__ volatile("dsb\n isb" ::: "memory");
#endif
}

__attribute__((noreturn)) void reset(void)
{
    uint32_t *here = __builtin_frame_address(0);
    const uint32_t *load = data_load;

    enable_fpu();
    for (uint32_t *word = data_start; word < data_end; word++)
        *word = *load++;
    for (uint32_t *word = bss_start; word < bss_end; word++)
        *word = 0;
    /* Sixteen words below the frame stay as they are: registers pushed by this function may be there. */
    for (volatile uint32_t *word = stack_limit; word < here - 16; word++)
        *word = STACK_PAINT;
    board_exit(main());
}

/* An unaligned access, a double-precision instruction without the unit for it, an unmapped address. */
static void fault(void)
{
    print("fault\n");
    board_exit(125);
}

uint32_t board_stack_used(void)
{
    const volatile uint32_t *word = stack_limit;

    while (word < stack_top && *word == STACK_PAINT)
        word++;
    return (uint32_t)(stack_top - word) * sizeof *word;
}

/* No interrupt is in use, so the table ends with the sixteen entries of the core. */
__attribute__((section(".vectors"), used)) static const struct {
    uint32_t *stack;
    void (*handler[15])(void);
} vectors = {
    stack_top,
    { reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, fault, fault, 0, fault, fault },
};
