//! The result files of inference: NumPy arrays that grow by the rows of one piece of data after the other.

use super::engine::Posteriors;
use spikelet::Shape;
use std::io::{self, Write};

/// One result file.
#[derive(Clone, Copy)]
pub(super) struct ResultFile {
    pub name: &'static str,
    /// NumPy's name of the number format.
    format: &'static str,
    /// Columns; none for a vector.
    columns: fn(Shape) -> Option<usize>,
    /// Its rows of these points, as bytes.
    pub rows: fn(&Posteriors) -> Vec<u8>,
}

/// Those of all models.
const RESULTS: [ResultFile; 6] = [
    ResultFile {
        name: "activity.npy",
        format: "<f4",
        columns: |shape| Some(shape.latents),
        rows: |points| floats(&points.activity),
    },
    ResultFile {
        name: "mean.npy",
        format: "<f4",
        columns: |shape| Some(shape.latents),
        rows: |points| floats(&points.mean),
    },
    ResultFile {
        name: "variance.npy",
        format: "<f4",
        columns: |shape| Some(shape.latents),
        rows: |points| floats(&points.variance),
    },
    ResultFile {
        name: "map.npy",
        format: "<i8",
        columns: |shape| Some(shape.latents),
        rows: |points| integers(&points.map),
    },
    ResultFile {
        name: "selected.npy",
        format: "<i8",
        columns: |shape| Some(shape.selected),
        rows: |points| integers(&points.selected),
    },
    ResultFile {
        name: "evidence.npy",
        format: "<f4",
        columns: |_| None,
        rows: |points| floats(&points.evidence),
    },
];

/// Of mixtures: squared distances from the components.
const DISTANCE: ResultFile = ResultFile {
    name: "distance.npy",
    format: "<f4",
    columns: |shape| Some(shape.latents),
    rows: |points| floats(&points.distance),
};

/// Those that a model of this shape has.
pub(super) fn of_shape(shape: Shape) -> Vec<ResultFile> {
    RESULTS.into_iter().chain(shape.kind.is_mixture().then_some(DISTANCE)).collect()
}

/// The states behind them, if asked for: as many rows as there are states, which is known at the end.
pub(super) const STATES: ResultFile = ResultFile {
    name: "states.npy",
    format: "<i8",
    columns: |_| Some(2),
    rows: |points| integers(&points.states),
};

impl ResultFile {
    /// The header of the array, padded to a multiple of 64 bytes as NumPy does, so that it can be written again in place. As many
    /// rows follow.
    pub fn start(&self, writer: &mut impl Write, rows: usize, shape: Shape) -> io::Result<()> {
        let axes = match (self.columns)(shape) {
            Some(columns) => format!("({rows}, {columns})"),
            None => format!("({rows},)"),
        };
        let text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': {axes}, }}", self.format);
        // 10 bytes before it, 117 and a line end: room for far longer axes than 64 bits can count.
        writer.write_all(b"\x93NUMPY\x01\x00\x76\x00")?;
        writeln!(writer, "{text:<117}")
    }
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn integers(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
