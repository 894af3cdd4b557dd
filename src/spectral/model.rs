//! A model of sources in one channel as it lies in flash.

use super::bands::Band;
use super::distance::QUAD;
use crate::blob::SPECTRAL;
use crate::blob::bytes::u32_at;
use crate::blob::framed::{Framed, Head, Numbers, frame_accessors, is_of, range};
use crate::blob::groups::Groups;
use crate::error::{BlobError, ModelError};
use crate::math::Real;
use crate::numeric::slices::{at, row, span};

/// Most sources.
pub const MOST_SOURCES: usize = 4;
/// Most latents of a source.
pub const MOST_LATENTS: usize = 256;
/// Most bands.
pub const MOST_BANDS: usize = 256;
/// Most vectors of gains.
pub const MOST_FILTERS: usize = 9;
/// Power of byte 0 in `MASK`.
pub const MASK_BASE: f64 = 1e-5;
/// Powers of ten from one byte to the next.
pub const MASK_STEP: f64 = 0.0375;

const KNOWN: [[u8; 4]; 8] = [*b"SPEC", *b"SRCS", *b"GAIN", *b"BAND", *b"CODE", *b"MASK", *b"PRIO", *b"NEXT"];

/// Entries of a row of `MASK`: `single` bins have one each, above it two share one.
pub const fn mask_len(bins: usize, single: usize) -> usize {
    let single = if single < bins { single } else { bins };
    single + (bins - single).div_ceil(2)
}

/// One group of latents.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Source {
    /// Its first latent.
    pub first: usize,
    /// How many it has.
    pub latents: usize,
    pub sigma: f32,
    /// Mean power of the recordings it was learned from.
    pub power: f32,
}

/// A checked model of two or more sources in one channel; borrowed from the blob.
#[derive(Clone, Copy, Debug)]
pub struct SpectralModel<'a> {
    bands: &'a [[f32; 4]],
    latents: usize,
    framed: Framed<'a>,
    floor: f32,
    power: f32,
    persistence: f32,
    successors: usize,
    single: usize,
    scale: f32,
    sources: [Source; MOST_SOURCES],
    count: usize,
    gains: &'a [f32],
    rows: Numbers<'a>,
    masks: &'a [u8],
    prior: &'a [f32],
    next: &'a [u8],
    normal: &'a [f32],
    groups: Groups<'a>,
}

impl<'a> SpectralModel<'a> {
    /// Whether bytes look like such a model; nothing of it is checked.
    pub fn is_one(bytes: &[u8]) -> bool {
        is_of(bytes, SPECTRAL)
    }

    /// Checks all of `bytes`, once.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BlobError> {
        let mut head = Head::parse(bytes, SPECTRAL, 1..=MOST_BANDS, MOST_SOURCES * MOST_LATENTS, &KNOWN)?;
        let Head { dims, latents, framed, .. } = head;
        if !dims.is_multiple_of(QUAD) {
            return Err(range("dims", 0));
        }
        let (spec, srcs) = (head.section(*b"SPEC"), head.section(*b"SRCS"));
        if spec.len() != 24 {
            head.refuse(BlobError::SectionLength { tag: *b"SPEC" });
        }
        if srcs.len() > 12 * MOST_SOURCES || srcs.is_empty() || !srcs.len().is_multiple_of(12) {
            head.refuse(BlobError::SectionLength { tag: *b"SRCS" });
        }
        let number = |bytes: &[u8], offset| f32::from_bits(u32_at(bytes, offset));
        let (mut sources, mut count, mut first) = ([Source::default(); MOST_SOURCES], 0, 0);
        for (slot, bytes) in sources.iter_mut().zip(srcs.chunks_exact(12)) {
            let latents = u32_at(bytes, 0).min(MOST_LATENTS as u32 + 1) as usize;
            *slot = Source { first, latents, sigma: number(bytes, 4), power: number(bytes, 8) };
            head.within("latents", count, latents as f32, 1.0, MOST_LATENTS as f32);
            head.within("sigma", count, slot.sigma, 1e-3, 1e3);
            head.within("level", count, slot.power, 1e-12, 1e12);
            first += latents;
            count += 1;
        }
        head.length("latents", latents, first);
        let scale = number(spec, 20);
        let rows = head.numbers(*b"CODE", (2, 1), scale, "states", latents * dims);
        let normal = if head.sections.find(*b"norm").is_some() { head.floats(*b"norm") } else { &[] };
        let groups = match head.groups()? {
            Some(groups) => groups,
            None if count == 1 => Groups::unnamed(latents, true),
            None => return Err(BlobError::MissingSection { tag: *b"grps" }),
        };
        let bands = head.floats(*b"BAND");
        head.length("bands", 4 * dims, bands.len());
        let model = Self {
            bands: bands.as_chunks().0,
            latents,
            framed,
            floor: number(spec, 0),
            power: number(spec, 4),
            persistence: number(spec, 8),
            successors: u32_at(spec, 12) as usize,
            single: u32_at(spec, 16) as usize,
            scale,
            sources,
            count,
            gains: head.floats(*b"GAIN"),
            rows,
            masks: head.section(*b"MASK"),
            prior: head.floats(*b"PRIO"),
            next: head.section(*b"NEXT"),
            normal,
            groups,
        };
        head.within("floor", 0, model.floor, 1e-4, 1.0);
        head.within("compression", 0, model.power, 0.05, 1.0);
        head.within("persistence", 0, model.persistence, 0.0, 0.99);
        if model.successors > MOST_LATENTS || model.single > model.bins() {
            return Err(range("sizes", 0));
        }
        head.length("masks", latents * model.mask_len(), model.masks.len());
        head.length("prior", latents, model.prior.len());
        head.length("successors", latents * model.successors * 2, model.next.len());
        let filters = model.filters();
        if !(1..=MOST_FILTERS).contains(&filters) || filters * count != model.gains.len() {
            head.refuse(range("gains", 0));
        }
        let float_rows = if let Numbers::Float(rows) = rows { rows } else { &[] };
        for (field, numbers, least, most) in [
            ("gains", model.gains, 1e-3, 1e3),
            ("states", float_rows, 0.0, 1e3),
            ("prior", model.prior, 1e-6, 1.0),
        ] {
            numbers.iter().enumerate().for_each(|(i, &number)| head.within(field, i, number, least, most));
        }
        head.checked()?;
        model.check()?;
        Ok(model)
    }

    /// Bands, successors and groups that belong together.
    fn check(&self) -> Result<(), BlobError> {
        for (d, &[lo, rise, hi, fall]) in self.bands.iter().enumerate() {
            let is_placed = lo >= -1.0 && lo < hi && hi <= self.bins() as f32;
            if !is_placed || !(1e-6..=1e3).contains(&rise) || !(1e-6..=1e3).contains(&fall) {
                return Err(range("bands", d));
            }
        }
        let (pairs, rest) = self.normal.as_chunks::<2>();
        let is_ordered = pairs.windows(2).all(|two| match two {
            [[rate, score], [next_rate, next]] => next_rate < rate && next >= score,
            _ => false,
        });
        let is_usual = |&[rate, score]: &[f32; 2]| rate > 0.0 && rate <= 1.0 && score.is_finite();
        if !rest.is_empty() || !is_ordered || !pairs.iter().all(is_usual) {
            return Err(range("normal", 0));
        }
        for source in self.sources() {
            for latent in source.first..source.first + source.latents {
                let row = self.next(latent);
                let mut total = 0;
                row.iter().for_each(|&[_, probability]| total += u32::from(probability));
                if total > 255 || row.iter().any(|&[latent, _]| usize::from(latent) >= source.latents) {
                    return Err(range("successors", latent));
                }
                let group = self.groups.of(source.first);
                if self.count > 1 && self.groups.of(latent) != group {
                    return Err(BlobError::Model(ModelError::Unfit { field: "groups" }));
                }
            }
        }
        let is_in_order =
            self.sources().iter().enumerate().all(|(g, source)| self.groups.of(source.first) == g);
        if self.groups.len() != self.count || !is_in_order {
            return Err(BlobError::Model(ModelError::Unfit { field: "groups" }));
        }
        Ok(())
    }

    pub(super) fn sources(&self) -> &[Source] {
        span(&self.sources, 0, self.count)
    }

    /// Raises bands to W of a latent times g^p, where they are below.
    #[inline]
    pub(super) fn raise(&self, latent: usize, gain: f32, bands: &mut [f32]) {
        let (dims, gain) = (self.dims(), gain * self.unit());
        let raise = |band: &mut f32, w: f32| *band = if w > *band { w } else { *band };
        match self.rows {
            Numbers::Float(rows) => {
                let row = span(rows, latent * dims, dims);
                bands.iter_mut().zip(row).for_each(|(band, &w)| raise(band, w * gain));
            }
            Numbers::Integer(rows) => {
                let row = span(rows, latent * dims, dims);
                bands.iter_mut().zip(row).for_each(|(band, &w)| raise(band, f32::from(w) * gain));
            }
        }
    }

    #[inline]
    pub(super) fn rows(&self) -> Numbers<'a> {
        self.rows
    }

    /// What numbers of W are multiplied with.
    #[inline]
    pub(super) fn unit(&self) -> f32 {
        if self.is_integer() { self.scale } else { 1.0 }
    }

    /// U of a latent.
    #[inline(never)]
    pub(super) fn mask(&self, latent: usize) -> &'a [u8] {
        span(self.masks, latent * self.mask_len(), self.mask_len())
    }

    /// Successors of a latent, and their probabilities.
    #[inline(never)]
    pub(super) fn next(&self, latent: usize) -> &'a [[u8; 2]] {
        span(self.next, 2 * latent * self.successors, 2 * self.successors).as_chunks().0
    }

    #[inline]
    pub(super) fn prior(&self, latent: usize) -> f32 {
        at(self.prior, latent)
    }

    /// g of a filter for a group.
    #[inline]
    pub(super) fn gain(&self, filter: usize, group: usize) -> f32 {
        at(self.gains, filter * self.count + group)
    }

    /// P_d.
    #[inline]
    pub fn band(&self, d: usize) -> Band {
        let [lo, rise, hi, fall] = row(self.bands, d);
        Band { lo, rise, hi, fall }
    }

    /// W of a latent, as inference sees it, in D numbers.
    pub fn spectrum(&self, latent: usize, to: &mut [f32]) {
        to.fill(0.0);
        self.raise(latent, 1.0, to);
    }

    /// The bytes of U.
    pub fn masks(&self) -> &'a [u8] {
        self.masks
    }

    /// The bytes of T.
    pub fn transitions(&self) -> &'a [u8] {
        self.next
    }

    /// Prior probabilities.
    pub fn priors(&self) -> &'a [f32] {
        self.prior
    }

    /// Number of latents of a group, its sigma, and the mean power of what it was learned from.
    pub fn source(&self, group: usize) -> Option<(usize, f32, f32)> {
        self.sources().get(group).map(|source| (source.latents, source.sigma, source.power))
    }

    /// sigma^2, of all groups.
    pub fn variance(&self) -> f32 {
        let mut sum = 0.0;
        self.sources().iter().for_each(|source| sum += source.sigma * source.sigma);
        sum / self.count.max(1) as f32
    }

    /// Mean power of a mixture of what the groups were learned from.
    pub fn level(&self) -> f32 {
        let mut sum = 0.0;
        self.sources().iter().for_each(|source| sum += source.power);
        sum
    }

    /// D, bands.
    pub fn dims(&self) -> usize {
        self.bands.len()
    }

    /// H, latents of all groups.
    pub fn latents(&self) -> usize {
        self.latents
    }

    /// G.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Vectors of gains.
    pub fn filters(&self) -> usize {
        self.gains.len().checked_div(self.count).unwrap_or_default()
    }

    /// The gains of all filters, G each.
    pub fn gains(&self) -> &'a [f32] {
        self.gains
    }

    /// Bins that have an entry in a row of U each.
    pub fn single(&self) -> usize {
        self.single
    }

    /// Entries of a row of U.
    pub fn mask_len(&self) -> usize {
        mask_len(self.bins(), self.single)
    }

    /// R.
    pub fn successors(&self) -> usize {
        self.successors
    }

    /// The floor of amplitudes.
    pub fn floor(&self) -> f32 {
        self.floor
    }

    /// p, the exponent of the compression.
    pub fn compression(&self) -> f32 {
        self.power
    }

    /// lambda.
    pub fn persistence(&self) -> f32 {
        self.persistence
    }

    /// Whether W is stored in bytes.
    pub fn is_integer(&self) -> bool {
        matches!(self.rows, Numbers::Integer(_))
    }

    /// What scores are usual: pairs of the rate of frames above a score and that score. Empty where it was not measured
    /// (`spikelet eval --calibrate`).
    pub fn normal(&self) -> &'a [f32] {
        self.normal
    }

    /// The score that usual sound exceeds in this part of all frames. Nothing where the recordings of usual sound were too short
    /// to tell, or there were none.
    pub fn threshold(&self, rate: f32) -> Option<f32> {
        let pairs = self.normal.as_chunks::<2>().0;
        let mut before = pairs.first()?;
        if !(rate > 0.0 && rate <= before[0]) {
            return None;
        }
        for pair in pairs {
            if rate >= pair[0] {
                // Scores between two rates go with the logarithm of the rate.
                let (span, part) = (Real::ln(before[0] / pair[0]), Real::ln(before[0] / rate));
                let share: f32 = if span > 0.0 { part / span } else { 1.0 };
                return Some(before[1] + (pair[1] - before[1]) * share);
            }
            before = pair;
        }
        None
    }

    /// At which rate usual sound has this score or a higher one, by the table: the smallest rate whose score is not above it; 1
    /// below all of them.
    pub fn rate_above(&self, score: f32) -> f32 {
        let mut found = 1.0;
        for &[rate, least] in self.normal.as_chunks::<2>().0 {
            found = if score >= least { rate } else { found };
        }
        found
    }
}

frame_accessors!(SpectralModel);
