//! Arrays in NumPy archives (`.npz`), which are ZIP files with one `.npy` per array.
//!
//! In comes the path of an archive and maybe the name of an array, out comes where its `.npy` begins and how long it is: in the
//! archive itself as `numpy.savez` writes it, in memory as `numpy.savez_compressed` does. Read by the central directory at the
//! end, as the format wants. Archives beyond 4 GiB are refused: a `.npy` can be read without a copy in memory.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::section::Bytes;
use super::{open_file, reserve};
use crate::error::{Error, Result};
use crate::files::ending;
use flate2::Crc;
use flate2::read::DeflateDecoder;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Records of the format: their first bytes, and how long they are without what has a length of its own.
const END: ([u8; 4], usize) = (*b"PK\x05\x06", 22);
const ENTRY: ([u8; 4], usize) = (*b"PK\x01\x02", 46);
const LOCAL: ([u8; 4], usize) = (*b"PK\x03\x04", 30);

/// Longest comment at the end of an archive.
const LONGEST_COMMENT: u64 = 0xffff;

/// Deflate makes nothing smaller than by this factor, so an entry that claims more is no honest one.
const MOST_SQUEEZED: u64 = 1032;

/// Names of arrays that a message lists, at most.
const LISTED: usize = 12;

/// The archive and the name of the array, where this is one: `FILE.npz` or `FILE.npz:NAME`.
pub(super) fn split(path: &Path) -> Option<(PathBuf, Option<String>)> {
    if ending(path).as_deref() == Some("npz") {
        return Some((path.to_path_buf(), None));
    }
    let text = path.to_str()?;
    let at = text.to_ascii_lowercase().rfind(".npz:")? + 4;
    Some((PathBuf::from(&text[..at]), Some(text[at + 1..].to_owned())))
}

/// One file in an archive.
struct Entry {
    name: String,
    flags: u16,
    method: u16,
    crc: u32,
    /// Bytes in the archive, and when unpacked.
    packed: u64,
    length: u64,
    /// Where its own header begins.
    header: u64,
}

/// The bytes of an array file, where it begins in them, and its length.
pub(super) fn open(archive: &Path, name: Option<&str>) -> Result<(Bytes, u64, u64)> {
    let (mut file, len) = open_file(archive)?;
    let entries = directory(&mut file, len).map_err(|cause| damaged(archive, &cause))?;
    let entry = choose(&entries, name, archive)?;
    if entry.flags & 1 != 0 || ![STORED, DEFLATED].contains(&entry.method) {
        let what = format!("the array {} is encrypted or packed in an unknown way", entry.name);
        return Err(Error::input(what, archive.display(), "save it again with numpy.savez"));
    }
    let start = data_start(&mut file, entry).map_err(|cause| damaged(archive, &cause))?;
    if entry.packed > len.saturating_sub(start) || (entry.method == STORED && entry.packed != entry.length) {
        return Err(damaged(archive, &invalid("an array reaches beyond the end")));
    }
    if entry.method == STORED {
        file.seek(SeekFrom::Start(start)).map_err(|cause| Error::reading(archive, &cause))?;
        return Ok((Bytes::File(file), start, entry.length));
    }
    let bytes = unpack(&mut file, entry, start, archive)?;
    Ok((Bytes::Memory(Cursor::new(bytes)), 0, entry.length))
}

fn choose<'a>(entries: &'a [Entry], name: Option<&str>, archive: &Path) -> Result<&'a Entry> {
    let name = name.filter(|name| !name.is_empty());
    let plain = |entry: &Entry| entry.name.strip_suffix(".npy").unwrap_or(&entry.name).to_owned();
    let arrays: Vec<&Entry> = entries.iter().filter(|entry| entry.name.ends_with(".npy")).collect();
    let mut names: Vec<String> = arrays.iter().take(LISTED).map(|entry| plain(entry)).collect();
    if arrays.len() > LISTED {
        names.push("...".into());
    }
    let place = archive.display();
    match (name, &arrays[..]) {
        (_, []) => Err(Error::input("the archive holds no arrays", place, "save some with numpy.savez")),
        (None, [array]) => Ok(array),
        (None, _) => {
            let what = format!("the archive holds several arrays ({})", names.join(", "));
            Err(Error::input(what, &place, format_args!("name one, as in {place}:{}", names[0])))
        }
        (Some(name), _) => {
            let found = arrays.iter().find(|entry| plain(entry) == name || entry.name == name);
            found.copied().ok_or_else(|| {
                let what = format!("the archive holds no array {name}");
                Error::input(what, &place, format_args!("choose one of {}", names.join(", ")))
            })
        }
    }
}

/// All entries, from the directory at the end.
fn directory(file: &mut File, len: u64) -> io::Result<Vec<Entry>> {
    let tail_len = len.min(END.1 as u64 + LONGEST_COMMENT);
    let tail = read_at(file, len - tail_len, tail_len as usize)?;
    let is_end = |at: &usize| tail[*at..].starts_with(&END.0);
    let end = (0..(tail.len() + 1).saturating_sub(END.1)).rev().find(is_end);
    let end = &tail[end.ok_or_else(|| invalid("this is not a ZIP archive"))?..];
    let (count, size, start) = (word(end, 10), long(end, 12), long(end, 16));
    if [size, start].contains(&u64::from(u32::MAX)) || start + size > len {
        return Err(invalid("it is larger than 4 GiB or cut short"));
    }
    let bytes = read_at(file, start, size as usize)?;
    let (mut entries, mut rest) = (Vec::new(), &bytes[..]);
    for _ in 0..count {
        if rest.len() < ENTRY.1 || !rest.starts_with(&ENTRY.0) {
            return Err(invalid("its directory is damaged"));
        }
        let name_len = usize::from(word(rest, 28));
        let whole = ENTRY.1 + name_len + usize::from(word(rest, 30)) + usize::from(word(rest, 32));
        let name =
            rest.get(ENTRY.1..ENTRY.1 + name_len).ok_or_else(|| invalid("its directory is damaged"))?;
        let entry = Entry {
            name: String::from_utf8_lossy(name).into_owned(),
            flags: word(rest, 8),
            method: word(rest, 10),
            crc: long(rest, 16) as u32,
            packed: long(rest, 20),
            length: long(rest, 24),
            header: long(rest, 42),
        };
        if [entry.packed, entry.length, entry.header].contains(&u64::from(u32::MAX)) {
            return Err(invalid("an array is larger than 4 GiB"));
        }
        entries.push(entry);
        rest = rest.get(whole..).ok_or_else(|| invalid("its directory is damaged"))?;
    }
    Ok(entries)
}

/// Where the bytes of an entry begin: its own header may be longer than the directory tells.
fn data_start(file: &mut File, entry: &Entry) -> io::Result<u64> {
    let header = read_at(file, entry.header, LOCAL.1)?;
    if !header.starts_with(&LOCAL.0) {
        return Err(invalid("an array is not where the directory says"));
    }
    Ok(entry.header + LOCAL.1 as u64 + u64::from(word(&header, 26)) + u64::from(word(&header, 28)))
}

/// An entry that is compressed, whole.
fn unpack(file: &mut File, entry: &Entry, start: u64, archive: &Path) -> Result<Vec<u8>> {
    let fail = |cause: &io::Error| damaged(archive, cause);
    if entry.length > MOST_SQUEEZED * entry.packed.max(1) {
        return Err(fail(&invalid("an array claims more numbers than it can hold")));
    }
    let mut bytes = Vec::new();
    reserve(&mut bytes, entry.length as usize, archive)?;
    file.seek(SeekFrom::Start(start)).map_err(|cause| Error::reading(archive, &cause))?;
    // No more than was promised, whatever is in there.
    let unpacked = DeflateDecoder::new(file.take(entry.packed)).take(entry.length).read_to_end(&mut bytes);
    unpacked.map_err(|cause| fail(&cause))?;
    let mut crc = Crc::new();
    crc.update(&bytes);
    if bytes.len() as u64 != entry.length || crc.sum() != entry.crc {
        return Err(fail(&invalid("an array does not have the checksum it should")));
    }
    Ok(bytes)
}

fn damaged(archive: &Path, cause: &io::Error) -> Error {
    let what = format!("the archive cannot be read ({cause})");
    Error::input(what, archive.display(), "save it again with numpy.savez, or the array with numpy.save")
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn read_at(file: &mut File, start: u64, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
}

#[cfg(test)]
mod tests;
