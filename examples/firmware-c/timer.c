/*
 * QEMU run with -icount shift=N takes 2^N ns for every instruction, so a timer of the board tells how many have run. One
 * instruction is several ticks, so rounding gives the exact number.
 *
 *   board       timer                        shift   ticks an instruction
 *   mps2        CMSDK timer 0, 25 MHz, down  10      25.6    = 128 / 5
 *   mps2-an505  CMSDK timer 0, 20 MHz, down  10      20.48   = 512 / 25
 *   microbit    nRF51 timer 0, 16 MHz, up    8       4.096   = 512 / 125
 *
 * With 32 bits a block may take 167 million instructions on the first board, more on the others.
 */
#include "timer.h"

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

#if defined(BOARD_microbit)

enum { TICKS = 512, INSTRUCTIONS = 125 };

static void start(void)
{
    REGISTER(0x40008508) = 3; /* BITMODE: 32 bits */
    REGISTER(0x40008510) = 0; /* PRESCALER: none */
    REGISTER(0x40008000) = 1; /* TASKS_START */
}

__attribute__((noinline)) uint32_t timer_now(void)
{
    REGISTER(0x40008040) = 1; /* TASKS_CAPTURE[0], to CC[0] */
    return REGISTER(0x40008540);
}

#else

#if defined(BOARD_mps2_an505)
enum { TICKS = 512, INSTRUCTIONS = 25 };
#define TIMER 0x50000000 /* secure alias */
#else
enum { TICKS = 128, INSTRUCTIONS = 5 };
#define TIMER 0x40000000
#endif

static void start(void)
{
    REGISTER(TIMER + 8) = UINT32_MAX; /* RELOAD */
    REGISTER(TIMER + 4) = UINT32_MAX; /* VALUE */
    REGISTER(TIMER) = 1;              /* CTRL: on */
}

/* Never inlined, so that every reading costs the same. */
__attribute__((noinline)) uint32_t timer_now(void)
{
    return ~REGISTER(TIMER + 4);
}

#endif

static uint32_t reading; /* instructions that two readings in a row are apart */

uint32_t timer_between(uint32_t first, uint32_t second)
{
    const uint64_t ticks = second - first;
    const uint32_t count = (uint32_t)((ticks * INSTRUCTIONS + TICKS / 2) / TICKS);

    return count > reading ? count - reading : 0;
}

__attribute__((noinline)) static void spin(uint32_t turns)
{
    __asm__ volatile(".syntax unified\n1: subs %0, #1\n bne 1b" : "+l"(turns) : : "cc");
}

/* A loop of known length must take what it should: two instructions a turn, the call and its argument. It does not
 * without -icount or with another shift. */
int timer_start(void)
{
    uint32_t first, second;

    start();
    reading = 0;
    first = timer_now();
    second = timer_now();
    reading = timer_between(first, second);
    first = timer_now();
    spin(1000);
    second = timer_now();
    first = timer_between(first, second);
    return first >= 2000 && first < 2016;
}
