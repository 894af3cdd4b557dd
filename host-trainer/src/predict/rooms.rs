//! Instructions of spatial streams: no samples need to be drawn, since a hop takes the same work whatever is heard, only silence less.
//!
//! ```text
//! (D + H) (transform(L) + number K) + (L/2 + 1) (bin(D, H) + integer D^2 H)
//! transform(L) = butterfly L/4 log2(L/2) + sample L
//! ```
//!
//! Measured like the table of `tests/cost --rooms`, with rooms of all numbers of microphones and sources, L = 64 to 1024.

use super::Core;
use spikelet::SpatialModel;

/// What a core takes.
struct Weights {
    /// A butterfly of the Fourier transform.
    butterfly: f64,
    /// A sample that is windowed, rotated and added up.
    sample: f64,
    /// A number that goes in or comes out.
    number: f64,
    /// A parameter of a bin that is an integer.
    integer: f64,
    /// A bin: a row for 2, 3 and 4 microphones, a column for 1 to 4 sources.
    bins: [[f64; 4]; 3],
}

/// With a float unit.
const FLOAT: Weights = Weights {
    butterfly: 18.75,
    sample: 19.0,
    number: 42.6,
    integer: 8.9,
    bins: [
        [564.0, 886.0, 1268.0, 1809.0],
        [2934.0, 3922.0, 5569.0, 8575.0],
        [3954.0, 5515.0, 8032.0, 12508.0],
    ],
};

/// Without one, RISC-V. How a transform divides into butterflies and samples, and `number` and `integer`, are estimates: two lengths
/// were measured for three sources on two microphones, one for the others.
const SOFT: Weights = Weights {
    butterfly: 683.0,
    sample: 478.0,
    number: 60.0,
    integer: 70.0,
    bins: [
        [7601.0, 16990.0, 30817.0, 52374.0],
        [24555.0, 49435.0, 93306.0, 176_456.0],
        [43542.0, 88252.0, 167_015.0, 315_452.0],
    ],
};

/// Instructions of a hop, the worst case; nothing for cores that were not measured. Times the rate over the hop they are instructions
/// a second.
pub fn hop_instructions(core: &Core, model: &SpatialModel<'_>) -> Option<f64> {
    let weights = match core.measured_as() {
        "cortex-m4f" | "cortex-m33" => &FLOAT,
        "riscv32imac" => &SOFT,
        _ => return None,
    };
    let (d, h) = (model.microphones(), model.sources());
    let (length, hop) = (model.length() as f64, model.hop() as f64);
    let transform = weights.butterfly * length / 4.0 * (length / 2.0).log2() + weights.sample * length;
    let decoded = if model.is_integer() { weights.integer * (d * d * h) as f64 } else { 0.0 };
    let bin = weights.bins.get(d.checked_sub(2)?)?.get(h.checked_sub(1)?)? + decoded;
    Some((d + h) as f64 * (transform + weights.number * hop) + model.bins() as f64 * bin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use spikelet::Aligned;

    macro_rules! file {
        ($name:literal) => {{
            static FILE: Aligned<
                { include_bytes!(concat!("../../../tests/conformance/", $name, ".spk")).len() },
            > = Aligned::new(include_bytes!(concat!("../../../tests/conformance/", $name, ".spk")));
            SpatialModel::parse(FILE.bytes()).unwrap()
        }};
    }

    /// What `tests/cost --rooms` prints.
    #[test]
    fn as_measured() {
        let (m4f, soft) = (Core::find("m4f").unwrap(), Core::find("rv32").unwrap());
        for (core, model, measured) in [
            (m4f, file!("room-d2h2"), 756_306.0),
            (m4f, file!("room-d2h3"), 1_091_291.0),
            (m4f, file!("room-d2h4"), 159_044.0),
            (m4f, file!("room-d3h3"), 203_574.0),
            (soft, file!("room-d2h2"), 17_048_684.0),
            (soft, file!("room-d2h3"), 27_176_343.0),
            (soft, file!("room-d2h4"), 4_719_352.0),
            (soft, file!("room-d3h3"), 3_605_123.0),
        ] {
            let predicted = hop_instructions(&core, &model).unwrap();
            assert!((predicted / measured - 1.0).abs() < 0.1, "{}: {predicted}, not {measured}", core.name);
        }
        assert_eq!(hop_instructions(&Core::find("m0").unwrap(), &file!("room-d2h4")), None);
    }
}
