//! The dictionary at the start of a NumPy array file.
//!
//! In comes text such as `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, out come its three entries.
//! Fails on anything NumPy does not write for a plain array, with words that name the first thing that is wrong.

/// What the header says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Name of the number format.
    pub descr: String,
    /// Whether the first axis is the fastest.
    pub fortran_order: bool,
    /// Length of every axis.
    pub shape: Vec<usize>,
}

/// Reads the dictionary.
pub(super) fn parse(text: &[u8]) -> Result<Header, String> {
    let mut cursor = Cursor { rest: text };
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    cursor.expect(b'{')?;
    while !cursor.take(b'}') {
        let key = cursor.string()?;
        cursor.expect(b':')?;
        match key {
            "descr" => descr = Some(cursor.descr()?),
            "fortran_order" => fortran_order = Some(cursor.truth()?),
            "shape" => shape = Some(cursor.tuple()?),
            _ => return Err("an entry is not known".into()),
        }
        if !cursor.take(b',') {
            cursor.expect(b'}')?;
            break;
        }
    }
    cursor.skip_space();
    if !cursor.rest.is_empty() {
        return Err("there is something after the dictionary".into());
    }
    Ok(Header {
        descr: descr.ok_or("'descr' is missing")?,
        fortran_order: fortran_order.ok_or("'fortran_order' is missing")?,
        shape: shape.ok_or("'shape' is missing")?,
    })
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        match self.rest {
            [first, rest @ ..] if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.take(byte) { Ok(()) } else { Err(format!("'{}' is missing", char::from(byte))) }
    }

    /// A quoted text without escapes: names and number formats have none.
    fn string(&mut self) -> Result<&'a str, String> {
        let quote = if self.take(b'\'') {
            b'\''
        } else if self.take(b'"') {
            b'"'
        } else {
            return Err("a quoted text is missing".into());
        };
        let end = self.rest.iter().position(|&byte| byte == quote).ok_or("a quoted text does not end")?;
        let text = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        std::str::from_utf8(text).map_err(|_| "a quoted text is not UTF-8".into())
    }

    /// A number format, which for records is a list of fields: enough to know that it is one.
    fn descr(&mut self) -> Result<String, String> {
        if !self.take(b'[') {
            return self.string().map(str::to_owned);
        }
        let mut depth = 1;
        while depth > 0 {
            self.skip_space();
            match self.rest.first().ok_or("a list does not end")? {
                b'\'' | b'"' => {
                    self.string()?;
                    continue;
                }
                b'[' => depth += 1,
                b']' => depth -= 1,
                _ => {}
            }
            self.rest = &self.rest[1..];
        }
        Ok("V".into())
    }

    fn truth(&mut self) -> Result<bool, String> {
        self.skip_space();
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err("'fortran_order' is neither True nor False".into())
    }

    fn tuple(&mut self) -> Result<Vec<usize>, String> {
        let mut axes = Vec::new();
        self.expect(b'(')?;
        while !self.take(b')') {
            axes.push(self.integer()?);
            if !self.take(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(axes)
    }

    fn integer(&mut self) -> Result<usize, String> {
        self.skip_space();
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest.strip_prefix(b"L").unwrap_or(rest); // Python 2 wrote long integers so.
        let number = std::str::from_utf8(number).map_err(|_| "an axis is not a number")?;
        number.parse().map_err(|_| "the length of an axis is not a number that fits".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(descr: &str, fortran_order: bool, shape: &[usize]) -> Result<Header, String> {
        Ok(Header { descr: descr.into(), fortran_order, shape: shape.to_vec() })
    }

    #[test]
    fn what_numpy_writes() {
        let text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (), }      \n";
        assert_eq!(parse(text), header("<f8", false, &[]));
        let text = b"{'descr': '|u1', 'fortran_order': True, 'shape': (3,), }\n";
        assert_eq!(parse(text), header("|u1", true, &[3]));
        let text = b"{\"shape\":(3L,40),'fortran_order':False,'descr':'>i2'}";
        assert_eq!(parse(text), header(">i2", false, &[3, 40]));
        let text = b"{'descr': [('a]', '<f4', (2,)), ('b', [('c', '<i2')])], 'fortran_order': False, 'shape': (3,), }\n";
        assert_eq!(parse(text), header("V", false, &[3]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, what) in [
            (&b""[..], "'{' is missing"),
            (b"{}", "'descr' is missing"),
            (b"{'descr': '<f4", "a quoted text does not end"),
            (b"{'descr': [[(", "a list does not end"),
            (b"{'descr': '<f4', 'fortran_order': 0}", "'fortran_order' is neither True nor False"),
            (b"{'shape': (-1,)}", "the length of an axis is not a number that fits"),
            (b"{'shape': (99999999999999999999999,)}", "the length of an axis is not a number that fits"),
            (b"{'shape': (1 2)}", "')' is missing"),
            (b"{'evil': 1}", "an entry is not known"),
            (
                b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
                "there is something after the dictionary",
            ),
        ] {
            assert_eq!(parse(text), Err(what.to_string()));
        }
    }
}
