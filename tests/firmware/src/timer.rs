//! A clock that counts instructions.
//!
//! With `-icount shift=N` QEMU takes 2^N ns of virtual time for every instruction, so a timer of the board
//! tells how many have run. An instruction is one whole tick or several, so rounding gives the exact number.
//!
//! | board      | timer                       | shift | ticks an instruction |
//! |------------|-----------------------------|-------|----------------------|
//! | mps2       | CMSDK timer 0, 25 MHz, down | 10    | 25.6                 |
//! | mps2-an505 | CMSDK timer 0, 20 MHz, down | 10    | 20.48                |
//! | microbit   | nRF51 timer 0, 16 MHz, up   | 8     | 4.096                |
//! | virt       | `minstret`                  | 0     | 1                    |
//!
//! All are read with 32 bits: a stage may take 167 million instructions, more on all but the first.

use hardware::{INSTRUCTIONS, TICKS};

/// A moment. Never inlined, so that every reading costs the same.
#[inline(never)]
pub fn now() -> u32 {
    hardware::ticks()
}

/// Turns moments into instructions.
pub struct Clock {
    reading: u32,
}

impl Clock {
    /// Starts the timer, finds what a reading itself costs, and refuses a machine where a loop of known
    /// length takes another time: QEMU without `-icount`, or with another shift.
    pub fn new() -> Option<Self> {
        hardware::start();
        let (first, second) = (now(), now());
        let clock = Clock { reading: instructions(first, second) };
        let first = now();
        spin(1000);
        let second = now();
        // Two instructions a turn; loading the register and the call are the rest.
        (2000..2008).contains(&clock.between(first, second)).then_some(clock)
    }

    /// Instructions between two moments, without those of the reading.
    pub fn between(&self, first: u32, second: u32) -> u32 {
        instructions(first, second).saturating_sub(self.reading)
    }
}

#[inline(never)]
fn spin(mut _turns: u32) {
    // SAFETY: counts a register down to zero.
    unsafe {
        #[cfg(target_arch = "arm")]
        core::arch::asm!("1:", "subs {0}, #1", "bne 1b", inout(reg) _turns, options(nomem, nostack));
        #[cfg(target_arch = "riscv32")]
        core::arch::asm!("1:", "addi {0}, {0}, -1", "bnez {0}, 1b", inout(reg) _turns, options(nomem, nostack));
    }
}

fn instructions(first: u32, second: u32) -> u32 {
    let ticks = u64::from(second.wrapping_sub(first));
    ((ticks * INSTRUCTIONS + TICKS / 2) / TICKS) as u32
}

#[cfg(any(timer = "mps2", timer = "mps2-an505"))]
mod hardware {
    #[cfg(timer = "mps2")]
    mod board {
        pub const TIMER: *mut u32 = 0x4000_0000 as _;
        pub const TICKS: u64 = 128;
        pub const INSTRUCTIONS: u64 = 5;
    }
    #[cfg(timer = "mps2-an505")]
    mod board {
        pub const TIMER: *mut u32 = 0x5000_0000 as _; // secure alias
        pub const TICKS: u64 = 512;
        pub const INSTRUCTIONS: u64 = 25;
    }
    use board::TIMER;
    pub use board::{INSTRUCTIONS, TICKS};

    pub fn start() {
        // SAFETY: the timer's registers: CTRL, VALUE, RELOAD.
        unsafe {
            TIMER.add(2).write_volatile(u32::MAX);
            TIMER.add(1).write_volatile(u32::MAX);
            TIMER.write_volatile(1);
        }
    }

    pub fn ticks() -> u32 {
        // SAFETY: VALUE. It counts down.
        unsafe { !TIMER.add(1).read_volatile() }
    }
}

#[cfg(timer = "nrf51")]
mod hardware {
    pub const TICKS: u64 = 512;
    pub const INSTRUCTIONS: u64 = 125;
    const TIMER: *mut u8 = 0x4000_8000 as _;

    fn write(offset: usize, value: u32) {
        // SAFETY: a register of the timer.
        unsafe { TIMER.add(offset).cast::<u32>().write_volatile(value) };
    }

    pub fn start() {
        write(0x508, 3); // BITMODE: 32 bits
        write(0x510, 0); // PRESCALER: none, 16 MHz
        write(0x000, 1); // TASKS_START
    }

    pub fn ticks() -> u32 {
        write(0x040, 1); // TASKS_CAPTURE[0], to CC[0]
        // SAFETY: CC[0].
        unsafe { TIMER.add(0x540).cast::<u32>().read_volatile() }
    }
}

#[cfg(timer = "minstret")]
mod hardware {
    pub const TICKS: u64 = 1;
    pub const INSTRUCTIONS: u64 = 1;

    pub fn start() {}

    pub fn ticks() -> u32 {
        let count;
        // SAFETY: reads a counter.
        unsafe { core::arch::asm!("csrr {}, minstret", out(reg) count, options(nostack)) };
        count
    }
}
