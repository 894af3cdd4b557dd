//! Views of the caller's memory as words, integers and records with named fields.
//!
//! Memory is given as numbers of one precision. These are the only casts of it.
#![allow(unsafe_code)]

use super::math::Real;

/// A struct whose fields are all numbers of type `T`, in order and without gaps.
///
/// # Safety
/// Only [`record`] and [`integer_record`] implement it: `repr(C)`, and every field is a `T`.
// SAFETY: a promise, not a use: whoever implements it makes sure of the above.
pub(crate) unsafe trait Record<T>: Copy {
    /// Fields.
    const LEN: usize;
}

/// Declares a struct of numbers that memory can be cut into.
macro_rules! record {
    ($(#[$of_struct:meta])* $name:ident { $($(#[$of_field:meta])* $field:ident),* $(,)? }) => {
        $(#[$of_struct])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name<T> {
            $($(#[$of_field])* pub $field: T,)*
        }

        impl<T: $crate::numeric::math::Real> $name<T> {
            /// All zero.
            #[allow(dead_code)]
            pub const ZERO: Self = Self { $($field: T::ZERO,)* };
        }

        // SAFETY: repr(C), and every field is a T: no padding, the alignment of T, any bits of numbers are one.
        #[allow(unsafe_code)]
        unsafe impl<T: $crate::numeric::math::Real> $crate::numeric::words::Record<T> for $name<T> {
            const LEN: usize = size_of::<Self>() / size_of::<T>();
        }
    };
}
pub(crate) use record;

/// The same of 32-bit integers.
macro_rules! integer_record {
    ($(#[$of_struct:meta])* $name:ident { $($(#[$of_field:meta])* $field:ident),* $(,)? }) => {
        $(#[$of_struct])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct $name {
            $($(#[$of_field])* pub $field: i32,)*
        }

        // SAFETY: repr(C), and every field is an i32: no padding, the alignment of i32, any bits are one.
        #[allow(unsafe_code)]
        unsafe impl $crate::numeric::words::Record<i32> for $name {
            const LEN: usize = size_of::<Self>() / size_of::<i32>();
        }
    };
}
pub(crate) use integer_record;

/// As many records as the numbers make.
pub(crate) fn records_mut<T, R: Record<T>>(numbers: &mut [T]) -> &mut [R] {
    let count = numbers.len().checked_div(R::LEN).unwrap_or_default();
    // SAFETY: a record is R::LEN numbers without padding, so `count` of them lie within the slice, aligned as it is.
    unsafe { core::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), count) }
}

/// Memory of numbers as words.
pub(crate) fn words<T: Real>(numbers: &[T]) -> &[u32] {
    // SAFETY: Real is sealed: T is f32 or f64, whose size and alignment are multiples of those of u32, and any bits are a u32.
    unsafe { core::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers) / 4) }
}

/// `words`, to write.
pub fn words_mut<T: Real>(numbers: &mut [T]) -> &mut [u32] {
    // SAFETY: as above, and any words are a T.
    unsafe { core::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), size_of_val(numbers) / 4) }
}

/// [`words_mut`], with signs.
pub(crate) fn integers_mut<T: Real>(numbers: &mut [T]) -> &mut [i32] {
    // SAFETY: as above.
    unsafe { core::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), size_of_val(numbers) / 4) }
}
