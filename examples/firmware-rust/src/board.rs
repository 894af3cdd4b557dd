//! The little a program needs from its board: text, an exit status, the depth of the stack, and no panics.

use core::{arch::asm, ffi::CStr, panic::PanicInfo};
use semihosting::sys::arm_compat::sys_write0;

#[cfg(target_arch = "arm")]
pub use cortex_m_rt::entry;
#[cfg(target_arch = "riscv32")]
pub use riscv_rt::entry;
pub use semihosting::process::exit;

/// Prints by semihosting: a breakpoint that QEMU, or a debugger, serves.
pub fn print(text: &CStr) {
    sys_write0(text);
}

/// Prints a label and a number. (`core::fmt` would do it too, with 4 KiB more flash.)
pub fn print_value(label: &CStr, value: u32) {
    print(label);
    print_digits::<10>(u64::from(value), 1);
}

/// Prints 16 hexadecimal digits.
pub fn print_hex(value: u64) {
    print_digits::<16>(value, 16);
}

fn print_digits<const BASE: u64>(mut value: u64, at_least: usize) {
    let mut text = [0; 21];
    let mut start = text.len() - 1;
    for (at, digit) in text.iter_mut().enumerate().rev().skip(1) {
        if value == 0 && start + at_least < 21 {
            break;
        }
        *digit = b"0123456789abcdef"[(value % BASE) as usize % 16];
        value /= BASE;
        start = at;
    }
    if let Some(Ok(text)) = text.get(start..).map(CStr::from_bytes_until_nul) {
        print(text);
    }
}

const PAINT: u32 = 0xa5a5_a5a5;

unsafe extern "C" {
    // From the linker script, where the address is the value: the stack grows from start down to end.
    static mut _stack_end: u32;
    static mut _stack_start: u32;
}

/// Paints the unused stack, so that [`stack_depth`] finds how deep later calls went.
#[inline(never)]
pub fn paint_stack() {
    // Not right up to the stack pointer: what this loop itself spills is there.
    let top = stack_pointer() - 64;
    let mut word = &raw mut _stack_end;
    while (word as usize) < top {
        // SAFETY: between the end of .bss and the stack pointer there is RAM that nothing uses.
        unsafe { word.write_volatile(PAINT) };
        word = word.wrapping_add(1);
    }
}

/// Bytes from `top` (a value of [`stack_pointer`]) down to the deepest word written since [`paint_stack`].
pub fn stack_depth(top: usize) -> u32 {
    let mut word = &raw const _stack_end;
    // SAFETY: the same words as above, read.
    while (word as usize) < top && unsafe { word.read_volatile() } == PAINT {
        word = word.wrapping_add(1);
    }
    (top - word as usize) as u32
}

/// The whole stack in use, [`stack_depth`] from its very top.
pub fn stack_used() -> u32 {
    stack_depth(&raw const _stack_start as usize)
}

/// Of the calling function.
#[inline(always)]
pub fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: reads a register.
    unsafe {
        #[cfg(target_arch = "arm")]
        asm!("mov {}, sp", out(reg) sp, options(nomem, nostack, preserves_flags));
        #[cfg(target_arch = "riscv32")]
        asm!("mv {}, sp", out(reg) sp, options(nomem, nostack, preserves_flags));
    }
    sp
}

/// Proof that nothing here can panic: the symbol exists nowhere, so the program links only when the linker
/// found no way to this handler and dropped it.
#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    unsafe extern "C" {
        safe fn spikelet_panic_path_survives() -> !;
    }
    spikelet_panic_path_survives()
}

/// An unaligned access, an instruction the core lacks, an unmapped address.
#[cfg(target_arch = "arm")]
#[cortex_m_rt::exception]
unsafe fn HardFault(_: &cortex_m_rt::ExceptionFrame) -> ! {
    fault()
}

#[cfg(target_arch = "riscv32")]
#[unsafe(export_name = "ExceptionHandler")]
extern "C" fn exception(_: &riscv_rt::TrapFrame) -> ! {
    fault()
}

fn fault() -> ! {
    print(c"fault\n");
    exit(125)
}
