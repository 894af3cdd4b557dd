//! One number in a file: from its bytes to `f64`.
//!
//! Every format here fits `f64` without rounding except 64-bit integers beyond 2^53, which go to the nearest `f64`.

/// How a number is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Bool,
    I8,
    I16,
    /// Three bytes: recordings only.
    I24,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
}

impl Scalar {
    /// Bytes a number takes.
    pub fn size(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I24 => 3,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Decodes whole numbers from `bytes`; a part of one at the end is left out.
    pub fn decode(self, big_endian: bool, bytes: &[u8], out: &mut impl FnMut(f64)) {
        match self {
            Self::Bool => each(bytes, big_endian, |[byte]| f64::from(u8::from(byte != 0)), out),
            Self::I8 => each(bytes, big_endian, |bytes| f64::from(i8::from_le_bytes(bytes)), out),
            Self::I16 => each(bytes, big_endian, |bytes| f64::from(i16::from_le_bytes(bytes)), out),
            // Shifted to the top of a word and back, the sign fills what was empty.
            Self::I24 => {
                each(bytes, big_endian, |[a, b, c]| f64::from(i32::from_le_bytes([0, a, b, c]) >> 8), out)
            }
            Self::I32 => each(bytes, big_endian, |bytes| f64::from(i32::from_le_bytes(bytes)), out),
            Self::I64 => each(bytes, big_endian, |bytes| i64::from_le_bytes(bytes) as f64, out),
            Self::U8 => each(bytes, big_endian, |[byte]| f64::from(byte), out),
            Self::U16 => each(bytes, big_endian, |bytes| f64::from(u16::from_le_bytes(bytes)), out),
            Self::U32 => each(bytes, big_endian, |bytes| f64::from(u32::from_le_bytes(bytes)), out),
            Self::U64 => each(bytes, big_endian, |bytes| u64::from_le_bytes(bytes) as f64, out),
            Self::F16 => each(bytes, big_endian, |bytes| half(u16::from_le_bytes(bytes)), out),
            Self::F32 => each(bytes, big_endian, |bytes| f64::from(f32::from_le_bytes(bytes)), out),
            Self::F64 => each(bytes, big_endian, f64::from_le_bytes, out),
        }
    }
}

fn each<const N: usize>(
    bytes: &[u8],
    big_endian: bool,
    decode: impl Fn([u8; N]) -> f64,
    out: &mut impl FnMut(f64),
) {
    for chunk in bytes.as_chunks::<N>().0 {
        let mut chunk = *chunk;
        if big_endian {
            chunk.reverse();
        }
        out(decode(chunk));
    }
}

/// IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits.
fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match (bits >> 10) & 0x1f {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(scalar: Scalar, big_endian: bool, bytes: &[u8]) -> Vec<f64> {
        let mut values = Vec::new();
        scalar.decode(big_endian, bytes, &mut |value| values.push(value));
        values
    }

    #[test]
    fn both_byte_orders() {
        assert_eq!(decoded(Scalar::I16, false, &[0xfe, 0xff, 0x01, 0x02]), [-2.0, 513.0]);
        assert_eq!(decoded(Scalar::I16, true, &[0xff, 0xfe, 0x02, 0x01]), [-2.0, 513.0]);
        assert_eq!(decoded(Scalar::F64, true, &1.5f64.to_be_bytes()), [1.5]);
        assert_eq!(decoded(Scalar::U64, false, &[0xff; 8]), [18_446_744_073_709_551_616.0]);
        assert_eq!(decoded(Scalar::Bool, false, &[0, 1, 255]), [0.0, 1.0, 1.0]);
    }

    #[test]
    fn three_byte_integers_keep_their_sign() {
        let bytes = [0x00, 0x00, 0x80, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff];
        assert_eq!(decoded(Scalar::I24, false, &bytes), [-8_388_608.0, 8_388_607.0, -1.0]);
    }

    #[test]
    fn halves() {
        // Smallest subnormal, 1, largest finite, -2: the values of the standard.
        for (bits, value) in [(1, 2f64.powi(-24)), (0x3c00, 1.0), (0x7bff, 65504.0), (0xc000, -2.0)] {
            assert_eq!(half(bits), value);
        }
        assert_eq!(half(0xfc00), f64::NEG_INFINITY);
        assert!(half(0x7c01).is_nan());
    }

    #[test]
    fn a_part_of_a_number_is_left_out() {
        assert_eq!(decoded(Scalar::F32, false, &[0, 0, 0x80, 0x3f, 7]), [1.0]);
    }
}
