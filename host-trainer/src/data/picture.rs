//! Pictures (`.png`) in and out.
//!
//! Grey or colour, 8 or 16 bits (fewer become 8, palettes become colours), with or without transparency. Numbers go from
//! 0 to 255 whatever the depth, so that one model fits all. Transparency is no data: it is kept and written again.
//!
//! Fails when the bytes are no PNG file, are damaged, or promise more pixels than so many bytes can hold.

use super::sheet::{Kind, Sheet};
use super::{open_file, reserve};
use crate::error::{Error, Result};
use png::{BitDepth, ColorType, Decoder, DecodingError, Encoder, EncodingError, Limits, Transformations};
use std::io::{self, BufReader, Write};
use std::path::Path;

/// A byte of compressed data gives at most so many (the limit of the deflate format, rounded up).
const MOST_PER_BYTE: u64 = 1040;

/// Where 255 lies, in the units of 16-bit pixels.
const FINE: f64 = 257.0;

/// Reads a picture whole.
pub(super) fn read(path: &Path) -> Result<Sheet> {
    let (file, len) = open_file(path)?;
    let advice = "save it again as PNG";
    let fail = |error: DecodingError| match error {
        DecodingError::IoError(cause) if cause.kind() != io::ErrorKind::UnexpectedEof => {
            Error::reading(path, &cause)
        }
        other => Error::input(format_args!("the picture cannot be read ({other})"), path.display(), advice),
    };
    let most = len.saturating_mul(MOST_PER_BYTE);
    let limits = Limits { bytes: usize::try_from(most).unwrap_or(usize::MAX) };
    let mut decoder = Decoder::new_with_limits(BufReader::new(file), limits);
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(fail)?;
    let promised = reader.output_buffer_size().filter(|&bytes| bytes as u64 <= most);
    let Some(bytes) = promised else {
        let (width, height) = (reader.info().width, reader.info().height);
        let what = format!("{width} x {height} pixels are more than {len} bytes can hold");
        return Err(Error::input(what, path.display(), advice));
    };
    let mut pixels = vec![0; bytes];
    let output = reader.next_frame(&mut pixels).map_err(fail)?;
    let (colours, transparent) = match output.color_type {
        ColorType::Grayscale => (1, false),
        ColorType::GrayscaleAlpha => (1, true),
        ColorType::Rgba => (3, true),
        // A palette was expanded to colours.
        ColorType::Rgb | ColorType::Indexed => (3, false),
    };
    let fine = output.bit_depth == BitDepth::Sixteen;
    let samples = colours + usize::from(transparent);
    let (width, height) = (output.width as usize, output.height as usize);
    let count = width * height;
    let mut planes = Vec::new();
    for plane in 0..samples {
        let mut values = Vec::new();
        reserve(&mut values, count, path)?;
        let at = |pixel: usize| pixel * samples + plane;
        values.extend((0..count).map(|pixel| match fine {
            true => f64::from(u16::from_be_bytes([pixels[2 * at(pixel)], pixels[2 * at(pixel) + 1]])) / FINE,
            false => f64::from(pixels[at(pixel)]),
        }));
        planes.push(values);
    }
    let opacity = if transparent { planes.pop() } else { None };
    Ok(Sheet { kind: Kind::Picture { fine, opacity }, width, height, planes })
}

/// Writes one or three planes as a picture; numbers are rounded, and cut off below 0 and above 255.
pub(super) fn write(
    writer: &mut impl Write,
    sheet: &Sheet,
    fine: bool,
    opacity: Option<&[f64]>,
) -> io::Result<()> {
    let fail = |error| match error {
        EncodingError::IoError(cause) => cause,
        other => io::Error::other(other),
    };
    let size = |pixels: usize| u32::try_from(pixels).map_err(io::Error::other);
    let mut encoder = Encoder::new(writer, size(sheet.width)?, size(sheet.height)?);
    encoder.set_color(match (sheet.planes.len(), opacity) {
        (1, None) => ColorType::Grayscale,
        (1, Some(_)) => ColorType::GrayscaleAlpha,
        (_, None) => ColorType::Rgb,
        (_, Some(_)) => ColorType::Rgba,
    });
    encoder.set_depth(if fine { BitDepth::Sixteen } else { BitDepth::Eight });
    let planes: Vec<&[f64]> = sheet.planes.iter().map(Vec::as_slice).chain(opacity).collect();
    let mut bytes = Vec::with_capacity(planes.len() * sheet.width * sheet.height * (1 + usize::from(fine)));
    for pixel in 0..sheet.width * sheet.height {
        for plane in &planes {
            let value = plane[pixel].clamp(0.0, 255.0);
            match fine {
                true => bytes.extend(((value * FINE).round() as u16).to_be_bytes()),
                false => bytes.push(value.round() as u8),
            }
        }
    }
    let mut image = encoder.write_header().map_err(fail)?;
    image.write_image_data(&bytes).map_err(fail)?;
    image.finish().map_err(fail)
}
