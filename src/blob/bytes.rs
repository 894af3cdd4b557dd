//! Bytes to numbers.

use crate::error::BlobError;
use crate::model::FixedLatent;

/// The byte at `offset`, or 0 past the end; callers have checked the length.
pub(crate) fn u8_at(bytes: &[u8], offset: usize) -> u8 {
    bytes.get(offset).copied().unwrap_or_default()
}

/// Little-endian.
pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    bytes.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

/// Little-endian.
#[inline(never)]
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    bytes.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Bytes as `f32` in place, or `None` when they are misaligned or not a multiple of four.
///
/// Reading number by number from bytes would need no `unsafe`, but costs four byte loads each on
/// cores without unaligned access and keeps FPU loads away on all others.
#[allow(unsafe_code)]
pub(crate) fn floats(bytes: &[u8]) -> Option<&[f32]> {
    // SAFETY: every bit pattern is a valid f32, and align_to only returns correctly aligned,
    // in-bounds parts of `bytes`. Targets are little-endian (checked in lib.rs), as blobs are.
    let (before, numbers, after) = unsafe { bytes.align_to::<f32>() };
    if before.is_empty() && after.is_empty() { Some(numbers) } else { None }
}

/// The same as words.
#[allow(unsafe_code)]
pub(crate) fn words(bytes: &[u8]) -> Option<&[u32]> {
    // SAFETY: as above.
    let (before, words, after) = unsafe { bytes.align_to::<u32>() };
    if before.is_empty() && after.is_empty() { Some(words) } else { None }
}

/// The same as latents in fixed point.
#[allow(unsafe_code)]
pub(crate) fn fixed_latents(bytes: &[u8]) -> Result<&[FixedLatent], BlobError> {
    // SAFETY: six 32-bit integers in order (repr(C)), for which every bit pattern is valid; the rest as above.
    let (before, latents, after) = unsafe { bytes.align_to::<FixedLatent>() };
    match before.is_empty() && after.is_empty() {
        true => Ok(latents),
        false => Err(BlobError::SectionLength { tag: *b"FIXD" }),
    }
}

/// CRC-32 of IEEE 802.3, as in zlib: a nibble at a time, 64 bytes of table.
///
/// ```
/// assert_eq!(spikelet::blob::crc32(b"123456789"), 0xcbf4_3926);
/// ```
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..2 {
            crc = (crc >> 4) ^ NIBBLES[(crc & 15) as usize];
        }
    }
    !crc
}

const NIBBLES: [u32; 16] = {
    let mut table = [0; 16];
    let mut i = 0;
    while i < 16 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 4 {
            crc = if crc & 1 != 0 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
};
