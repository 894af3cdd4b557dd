//! Reads tables of numbers (`.csv`) whole.
//!
//! Columns are separated by tabs, else semicolons, else commas, else spaces, whichever the first line has; decimals have a point. A
//! first line without any number is a header. Blank lines and lines that begin with `#` are skipped.
//!
//! Fails, naming line and column (counted from 1), where a cell is empty or not a finite number, where a row has more
//! or fewer cells than the first, and where the header has numbers in it: whether such a line is a point cannot be known.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use csv::{ByteRecord, ErrorKind, ReaderBuilder};

use super::open_file;
use crate::error::{Error, Result};

/// The numbers, row after row, and how many a row has (at least 1).
pub(super) fn read(path: &Path) -> Result<(Vec<f64>, usize)> {
    let (file, _) = open_file(path)?;
    let mut file = BufReader::with_capacity(1 << 16, file);
    let start = file.fill_buf().map_err(|cause| Error::reading(path, &cause))?;
    if start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]) {
        return Err(Error::input("the table is UTF-16 text", path.display(), "save it as UTF-8"));
    }
    let mark = if start.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    file.consume(mark);
    let delimiter = delimiter(file.buffer());
    // `flexible`, because we name the line of a ragged row ourselves.
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .delimiter(delimiter)
        .from_reader(file);

    let mut record = ByteRecord::new();
    let (mut values, mut columns) = (Vec::new(), 0);
    loop {
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return Err(broken(path, error)),
        }
        let byte = mark as u64 + record.position().map_or(0, csv::Position::byte);
        if delimiter == b' ' {
            // However many spaces there are between two numbers.
            record = record.iter().filter(|cell| !cell.is_empty()).collect();
        }
        if columns == 0 {
            columns = record.len();
            if is_header(&record, path, byte)? {
                continue;
            }
        }
        if record.len() != columns {
            return Err(Error::input(
                match record.len() {
                    1 => format!("the row has one cell instead of {columns}"),
                    cells => format!("the row has {cells} cells instead of {columns}"),
                },
                format_args!("{}, line {}", path.display(), line_of(path, byte)),
                "give every row the same number of cells",
            ));
        }
        for (column, cell) in record.iter().enumerate() {
            values.push(number(cell).ok_or_else(|| not_a_number(path, byte, column, cell))?);
        }
    }
    if values.is_empty() {
        return Err(Error::input(
            "the table holds no rows of numbers",
            path.display(),
            "check how it was made",
        ));
    }
    Ok((values, columns))
}

/// A tab or semicolon is never part of a number, a comma may be (`1,5;2,5`): it comes after them. Spaces may be part of a name: they
/// count where numbers stand between them.
fn delimiter(start: &[u8]) -> u8 {
    let lines = start.split(|byte| matches!(byte, b'\n' | b'\r'));
    let mut lines = lines.map(<[u8]>::trim_ascii).filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    let first = lines.next().unwrap_or_default();
    let mut quoted = false;
    let outside: Vec<u8> = first
        .iter()
        .copied()
        .filter(|&byte| {
            quoted ^= byte == b'"';
            !quoted
        })
        .collect();
    if let Some(found) = [b'\t', b';', b','].into_iter().find(|delimiter| outside.contains(delimiter)) {
        return found;
    }
    let words = |line: &[u8]| text(line).split_ascii_whitespace().count();
    let are_numbers =
        |line: &[u8]| text(line).split_ascii_whitespace().all(|word| word.parse::<f64>().is_ok());
    let second = lines.next().unwrap_or(first);
    let is_apart = words(first) > 1 && words(first) == words(second);
    if is_apart && (are_numbers(first) || are_numbers(second)) { b' ' } else { b',' }
}

/// Names, no numbers. A line of both, or of numbers in another notation, is an error: skipping it would lose a point.
fn is_header(record: &ByteRecord, path: &Path, byte: u64) -> Result<bool> {
    let is_number = |cell: &[u8]| text(cell).parse::<f64>().is_ok();
    let is_meant_as_number = |cell: &[u8]| {
        let digits = text(cell).trim_start_matches(['+', '-']);
        digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_digit() || "., '_".contains(c))
    };
    if !record.iter().any(|cell| is_number(cell) || is_meant_as_number(cell)) {
        return Ok(record.iter().any(|cell| !text(cell).is_empty()));
    }
    match record.iter().position(|cell| !is_number(cell)) {
        Some(column) => Err(not_a_number(path, byte, column, &record[column])),
        None => Ok(false),
    }
}

/// Empty where it is not UTF-8: then it is no number either.
fn text(cell: &[u8]) -> &str {
    std::str::from_utf8(cell).unwrap_or_default().trim()
}

fn number(cell: &[u8]) -> Option<f64> {
    text(cell).parse().ok().filter(|value: &f64| value.is_finite())
}

fn not_a_number(path: &Path, byte: u64, column: usize, cell: &[u8]) -> Error {
    let text = String::from_utf8_lossy(cell);
    let text = text.trim();
    let what = match text.parse::<f64>() {
        _ if text.is_empty() => "the cell is empty".to_string(),
        Ok(value) => format!("{value} is not a finite number"),
        Err(_) if text.chars().count() > 24 => {
            format!("'{}...' is not a number", text.chars().take(20).collect::<String>())
        }
        Err(_) => format!("'{text}' is not a number"),
    };
    let advice = match () {
        () if text.is_empty() => "fill it or remove the row",
        () if text.parse::<f64>().is_ok() => "remove the row, or replace the number",
        () => "write a number with a decimal point, or leave the column out",
    };
    let line = line_of(path, byte);
    Error::input(what, format_args!("{}, line {line}, column {}", path.display(), column + 1), advice)
}

/// The line, counted from 1, of the row that was looked for from `byte` on. The parser knows only where it began to look,
/// which is before the lines that it skips; going through the file again is left for the case of an error.
fn line_of(path: &Path, byte: u64) -> u64 {
    let Ok(file) = File::open(path) else { return 0 };
    let (mut line, mut is_comment) = (1, false);
    for (at, next) in BufReader::new(file).bytes().enumerate() {
        match next {
            Ok(b'\n') => (line, is_comment) = (line + 1, false),
            Ok(next) if (at as u64) < byte || next == b'\r' || is_comment => {}
            Ok(b'#') => is_comment = true,
            _ => break,
        }
    }
    line
}

fn broken(path: &Path, error: csv::Error) -> Error {
    match error.into_kind() {
        ErrorKind::Io(cause) => Error::reading(path, &cause),
        other => Error::input(
            format_args!("the table cannot be read ({other:?})"),
            path.display(),
            "save it again",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_tells_the_delimiter() {
        for (start, expected) in [
            ("1,2\n3;4", b','),
            ("\n\r\n1;2", b';'),
            ("1,5;2,5", b';'),
            ("1\t2;3", b'\t'),
            ("\"a;b\",c", b','),
            ("# made by hand; twice\n1,2", b','),
            ("1.5  -2e3\n3 4", b' '),
            ("left right\n1 2", b' '),
            ("a column\n1", b','),
            ("a b\nc d", b','),
            ("7", b','),
            ("", b','),
        ] {
            assert_eq!(delimiter(start.as_bytes()), expected, "{start:?}");
        }
    }
}
