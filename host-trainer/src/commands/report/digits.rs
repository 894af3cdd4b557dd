//! Numbers as people read them: few digits, groups of three, powers of ten.

/// About four digits.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { "none".into() };
    }
    if !(1e-3..1e6).contains(&size) {
        return power(value);
    }
    let before = size.log10().floor() as i32;
    fixed(value, (3 - before).clamp(0, 6) as usize)
}

/// With so many digits after the point, a true minus, and groups of three before it.
pub(super) fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let zero = text.bytes().all(|digit| matches!(digit, b'0' | b'.'));
    let sign = if value < 0.0 && !zero { "−" } else { "" };
    format!("{sign}{}{rest}", grouped(whole))
}

/// A count, in groups of three.
pub(super) fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// A part of one, in percent.
pub(super) fn percent(part: f64) -> String {
    let percent = 100.0 * part;
    match percent {
        _ if percent >= 99.95 || percent <= 0.0 => format!("{percent:.0} %"),
        _ if percent >= 10.0 => format!("{percent:.1} %"),
        _ if percent >= 0.1 => format!("{percent:.2} %"),
        _ => format!("{} %", number(percent)),
    }
}

/// Bytes, in the unit that shows their size.
pub(super) fn bytes(value: u64) -> String {
    match value {
        0..10_000 => format!("{} bytes", count(value)),
        10_000..10_000_000 => format!("{:.1} KiB", value as f64 / 1024.0),
        _ => format!("{:.1} MiB", value as f64 / 1_048_576.0),
    }
}

/// Two digits and a power of ten.
fn power(value: f64) -> String {
    let text = format!("{value:.2e}");
    let (digits, exponent) = text.split_once('e').expect("an exponent");
    let raised: String = exponent
        .chars()
        .map(|c| match c {
            '-' => '⁻',
            digit => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize - '0' as usize],
        })
        .collect();
    format!("{} × 10{raised}", digits.replace('-', "−"))
}

fn grouped(digits: &str) -> String {
    // Four digits read well without.
    if digits.len() < 5 {
        return digits.into();
    }
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1.000"),
            (-12.3456, "−12.35"),
            (0.001234567, "0.001235"),
            (-0.0004, "−4.00 × 10⁻⁴"),
            (123456.7, "123\u{202f}457"),
            (1e300, "1.00 × 10³⁰⁰"),
            (f64::INFINITY, "none"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!((fixed(-0.001, 2).as_str(), fixed(-1234.5, 1).as_str()), ("0.00", "−1234.5"));
        assert_eq!(count(1234567), "1\u{202f}234\u{202f}567");
        assert_eq!(
            [0.0, 0.00001, 0.0312, 0.5, 1.0].map(percent),
            ["0 %", "0.001000 %", "3.12 %", "50.0 %", "100 %"]
        );
        assert_eq!([999, 20_480, 20_971_520].map(bytes), ["999 bytes", "20.0 KiB", "20.0 MiB"]);
    }
}
