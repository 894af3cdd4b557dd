//! Blobs for tests of what reads them.

extern crate std;
use super::{ALIGN, ENTRY_LEN, HEADER_LEN, MAGIC, VERSION, crc32};
use std::vec;
use std::vec::Vec;

/// Bytes on the boundary that a blob needs: a header that is zero where nothing is said, and sections.
pub(crate) fn assemble(
    [kind, encoding]: [u8; 2],
    dims: usize,
    latents: usize,
    sections: &[(&[u8; 4], Vec<u8>)],
) -> Vec<u64> {
    let mut blob = vec![0; HEADER_LEN];
    blob[..4].copy_from_slice(&MAGIC);
    blob[4..6].copy_from_slice(&VERSION.to_le_bytes());
    (blob[16], blob[17]) = (kind, encoding);
    for (place, number) in [(24, dims), (28, latents), (40, sections.len())] {
        blob[place..place + 4].copy_from_slice(&(number as u32).to_le_bytes());
    }
    let mut offset = HEADER_LEN + ENTRY_LEN * sections.len();
    for (tag, content) in sections {
        blob.extend(*tag);
        [offset, content.len(), 0].iter().for_each(|&word| blob.extend((word as u32).to_le_bytes()));
        offset += content.len().next_multiple_of(ALIGN);
    }
    for (_, content) in sections {
        blob.extend(content);
        blob.resize(blob.len().next_multiple_of(ALIGN), 0);
    }
    let len = (blob.len() as u32).to_le_bytes();
    blob[8..12].copy_from_slice(&len);
    sealed(blob)
}

/// With its checksum, as words.
pub(crate) fn sealed(mut blob: Vec<u8>) -> Vec<u64> {
    let crc = crc32(&blob[16..]).to_le_bytes();
    blob[12..16].copy_from_slice(&crc);
    blob.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// The bytes of words.
#[allow(unsafe_code)]
pub(crate) fn bytes(words: &[u64]) -> &[u8] {
    // SAFETY: words are as many bytes, of any value, and targets are little-endian.
    unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), 8 * words.len()) }
}
