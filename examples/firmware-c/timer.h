/* A clock that counts instructions, for realtime.c. On hardware count cycles instead: on a Cortex-M3 or larger
 * timer_now() is a read of DWT->CYCCNT, and timer_between() the difference. */
#ifndef TIMER_H
#define TIMER_H

#include <stdint.h>

/* The desktop has none. */
#ifdef BOARD_host
#define TIMER_COUNTS 0
#else
#define TIMER_COUNTS 1
#endif

int timer_start(void);                                  /* 0 when it does not count instructions */
uint32_t timer_now(void);                               /* a moment */
uint32_t timer_between(uint32_t first, uint32_t second); /* instructions, without those of reading the clock */

#endif
