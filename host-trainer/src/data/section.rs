//! Numbers that stand one after the other in a file, read from any of them on.
//!
//! The header readers make a `Section` after comparing its size with that of the file, so nothing here depends on what
//! a header claims. Reads block by block; fails as the system does, or when the file became shorter.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};

use super::scalar::Scalar;

/// What numbers are read from.
#[derive(Debug)]
pub(super) enum Bytes {
    File(File),
    /// Of an archive that is compressed.
    Memory(Cursor<Vec<u8>>),
}

impl Read for Bytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Memory(bytes) => bytes.read(buffer),
        }
    }
}

impl Seek for Bytes {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::File(file) => file.seek(to),
            Self::Memory(bytes) => bytes.seek(to),
        }
    }
}

/// Bytes read at a time: a multiple of every size of a number (3 included).
const BLOCK: usize = 3 * (1 << 15);

/// Equal numbers from `offset` on.
#[derive(Debug)]
pub(super) struct Section {
    pub bytes: Bytes,
    pub offset: u64,
    pub scalar: Scalar,
    pub big_endian: bool,
}

impl Section {
    /// Hands `count` numbers from number `start` on to `out`.
    pub fn read(&mut self, start: u64, count: usize, mut out: impl FnMut(f64)) -> io::Result<()> {
        let size = self.scalar.size();
        self.bytes.seek(SeekFrom::Start(self.offset + start * size as u64))?;
        let mut left = count * size;
        let mut block = vec![0; left.min(BLOCK)];
        while left > 0 {
            let part = &mut block[..left.min(BLOCK)];
            self.bytes.read_exact(part)?;
            self.scalar.decode(self.big_endian, part, &mut out);
            left -= part.len();
        }
        Ok(())
    }
}
