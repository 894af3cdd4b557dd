//! The only place where C's pointers become references. Each helper checks what can be checked
//! (NULL, alignment, length) and states what the caller must promise.
#![allow(unsafe_code)]

use crate::types::{SPK_ERR_ALIGNMENT, SPK_ERR_LENGTH, SPK_ERR_MEMORY, SPK_ERR_NULL, SPK_ERR_STATE};
use crate::types::{spk_state, spk_status};
use core::ffi::c_void;
use spikelet::{Detail, Engine, Found, Model, STATE_BASE};

/// Says that memory holds a state; any value that memory does not hold by accident.
const MAGIC: u32 = 0x5350_4b01;

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

fn check<T>(pointer: *const T, len: usize) -> Result<(), spk_status> {
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

/// Makes a state of `len` bytes at `memory`.
///
/// # Safety
/// Unless NULL, `memory` points to `len` bytes that belong to the state from now on.
pub unsafe fn create(
    memory: *mut c_void,
    len: usize,
    model: Model<'static, f32>,
    engine: Engine,
) -> Result<*mut spk_state, spk_status> {
    let state = memory.cast::<spk_state>();
    check(state, 1)?;
    let needed = engine.state_bytes(model.shape);
    if len < needed {
        return Err(SPK_ERR_MEMORY);
    }
    // SAFETY: not NULL, aligned, and at least Engine::state_bytes() long, which is STATE_BASE (no smaller
    // than spk_state, a multiple of 8) plus the arena.
    unsafe {
        state.write(spk_state { magic: MAGIC, model, engine, found: Found::default() });
        memory.cast::<u8>().add(STATE_BASE).write_bytes(0, needed - STATE_BASE);
    }
    Ok(state)
}

/// A state and its arena.
///
/// # Safety
/// Unless NULL, `state` points to memory given to [`create`] (or a copy of it) that nobody else uses
/// during `'a`, and the blob given there is still in place.
pub unsafe fn open<'a>(state: *mut spk_state) -> Result<(&'a mut spk_state, &'a mut [f32]), spk_status> {
    check(state, 1)?;
    // SAFETY: not NULL and aligned; the caller promises that a state is there.
    let header = unsafe { &mut *state };
    if header.magic != MAGIC {
        return Err(SPK_ERR_STATE);
    }
    // SAFETY: `create` made sure that the arena of this length follows, and set it to zero; STATE_BASE
    // keeps it apart from the header and aligned.
    let arena = unsafe {
        let start = state.cast::<u8>().add(STATE_BASE).cast::<f32>();
        core::slice::from_raw_parts_mut(start, header.engine.arena_len(header.model.shape, Detail::Marginals))
    };
    Ok((header, arena))
}
