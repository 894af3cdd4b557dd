//! What data are compared with: themselves without noise, or the sources they were mixed from.

use crate::data::Source;
use crate::{Error, Result};
use spikelet::Shape;
use spikelet::frame::{Form, Frame};
use std::path::Path;

/// More pairs of a source and a latent are not compared: every thread holds a sum for each.
const MOST_PAIRS: usize = 1 << 18;

/// What the columns of a reference are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::commands) enum ReferenceIs {
    /// The dimensions of the data, without noise.
    Clean,
    /// True sources.
    Sources,
}

/// An open reference that fits data and model.
#[derive(Debug)]
pub(in crate::commands) struct Reference {
    pub source: Source,
    /// Compared with the reconstruction.
    pub clean: bool,
    /// Compared with the posterior means.
    pub sources: bool,
}

impl Reference {
    pub fn open(
        path: &Path,
        is: Option<ReferenceIs>,
        data: &Source,
        frame: Option<&Frame>,
        shape: Shape,
        notes: &mut Vec<String>,
    ) -> Result<Self> {
        if let Some(Frame { form: Form::Transform { .. }, .. }) = frame {
            let what = "sources of a transform are compared as sounds";
            return Err(Error::input(what, "--reference", "use spikelet separate --reference"));
        }
        let source = Source::open_framed(path, frame, 1)?;
        let place = || format!("{} and {}", path.display(), data.path().display());
        if source.points() != data.points() {
            let what = format!("the reference has {} points, the data {}", source.points(), data.points());
            return Err(Error::input(what, place(), "give the reference of exactly these points"));
        }
        let (columns, Shape { dims, latents, .. }) = (source.dims(), shape);
        let (clean, mut sources) = match is {
            Some(ReferenceIs::Clean) => (columns == dims, false),
            Some(ReferenceIs::Sources) => (false, columns <= latents),
            None => (columns == dims, columns == latents && source.pieces().is_none()),
        };
        if !clean && !sources {
            let what = format!("the reference has {columns} columns");
            let advice = match is {
                Some(ReferenceIs::Clean) => format!("give {dims}, the dimensions of the data"),
                Some(ReferenceIs::Sources) => format!("give at most {latents}, the latents of the model"),
                None => format!(
                    "give {dims} for clean data or {latents} for sources, or --reference-is sources for fewer"
                ),
            };
            return Err(Error::input(what, place(), advice));
        }
        if clean && sources {
            notes.push(
                "the reference was taken both as clean data and as sources: say --reference-is clean or sources"
                    .into(),
            );
        }
        if sources && columns.saturating_mul(latents) > MOST_PAIRS {
            notes.push(format!("no si_sdr_db: {columns} sources and {latents} latents are too many pairs"));
            sources = false;
        }
        Ok(Self { source, clean, sources })
    }
}
