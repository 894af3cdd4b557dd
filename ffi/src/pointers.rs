//! The only place where C's pointers become references. Each helper checks what can be checked
//! (NULL, alignment, length) and states what the caller must promise.
#![allow(unsafe_code)]

use crate::types::spk_status;
use crate::types::{SPK_ERR_ALIGNMENT, SPK_ERR_LENGTH, SPK_ERR_MEMORY, SPK_ERR_NULL, SPK_ERR_STATE};
use core::ffi::c_void;

/// `len` items at `pointer`.
///
/// # Safety
/// Unless NULL, `pointer` points to `len` readable items that nobody changes during `'a`.
pub unsafe fn slice<'a, T>(pointer: *const T, len: usize) -> Result<&'a [T], spk_status> {
    check(pointer, len)?;
    // SAFETY: not NULL, aligned and no longer than memory can be; the caller promises the rest.
    Ok(unsafe { core::slice::from_raw_parts(pointer, len) })
}

/// [`slice()`], to write.
///
/// # Safety
/// Unless NULL, `pointer` points to `len` items that nobody else uses during `'a`.
pub unsafe fn slice_mut<'a, T>(pointer: *mut T, len: usize) -> Result<&'a mut [T], spk_status> {
    check(pointer, len)?;
    // SAFETY: as in `slice`.
    Ok(unsafe { core::slice::from_raw_parts_mut(pointer, len) })
}

/// Whether `len` items can be at `pointer`.
pub fn check<T>(pointer: *const T, len: usize) -> Result<(), spk_status> {
    if pointer.is_null() {
        Err(SPK_ERR_NULL)
    } else if !pointer.is_aligned() {
        Err(SPK_ERR_ALIGNMENT)
    } else if len > isize::MAX as usize / size_of::<T>() {
        Err(SPK_ERR_LENGTH)
    } else {
        Ok(())
    }
}

/// Writes a result.
///
/// # Safety
/// Unless NULL, `pointer` points to memory for a `T` that the caller may write to.
pub unsafe fn put<T>(pointer: *mut T, value: T) -> Result<(), spk_status> {
    check(pointer, 1)?;
    // SAFETY: not NULL and aligned; the caller promises that it is writable. A raw write, since what
    // was there may be uninitialised.
    unsafe { pointer.write(value) };
    Ok(())
}

/// What begins a state in the caller's memory; `BASE` bytes later its numbers follow.
pub trait Header {
    /// Says that memory holds such a state; any value that memory does not hold by accident.
    const MAGIC: u32;
    /// No smaller than the header, and a multiple of 8.
    const BASE: usize;
    /// What is there instead of it in memory that holds none.
    fn magic(&self) -> u32;
    /// Numbers that follow.
    fn arena_len(&self) -> usize;
}

/// Makes a state of `len` bytes at `memory`.
///
/// # Safety
/// Unless NULL, `memory` points to `len` bytes that belong to the state from now on.
pub unsafe fn create<H: Header>(memory: *mut c_void, len: usize, header: H) -> Result<*mut H, spk_status> {
    let state = memory.cast::<H>();
    check(state, 1)?;
    let numbers = header.arena_len().checked_next_multiple_of(2).and_then(|len| len.checked_mul(4));
    if numbers.and_then(|bytes| bytes.checked_add(H::BASE)).is_none_or(|needed| len < needed) {
        return Err(SPK_ERR_MEMORY);
    }
    // SAFETY: not NULL, aligned, and long enough for BASE (no smaller than the header, a multiple of 8) and the numbers.
    unsafe {
        state.write(header);
        memory.cast::<u8>().add(H::BASE).write_bytes(0, numbers.unwrap_or_default());
    }
    Ok(state)
}

/// A state and its numbers.
///
/// # Safety
/// Unless NULL, `state` points to memory given to [`create`] (or a copy of it) that nobody else uses
/// during `'a`, and the blob given there is still in place.
pub unsafe fn open<'a, H: Header>(state: *mut H) -> Result<(&'a mut H, &'a mut [f32]), spk_status> {
    check(state, 1)?;
    // SAFETY: not NULL and aligned; the caller promises that a state is there.
    let header = unsafe { &mut *state };
    if header.magic() != H::MAGIC {
        return Err(SPK_ERR_STATE);
    }
    // SAFETY: `create` made sure that as many numbers follow, and set them to zero; BASE keeps them apart from the header
    // and aligned.
    let arena = unsafe {
        let start = state.cast::<u8>().add(H::BASE).cast::<f32>();
        core::slice::from_raw_parts_mut(start, header.arena_len())
    };
    Ok((header, arena))
}
