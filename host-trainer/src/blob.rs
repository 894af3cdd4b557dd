//! Writes what [`spikelet::blob`] reads; the format is described there.

use crate::groups::Grouping;
use crate::parameters::SlabCov;
use crate::prepare::Prepared;
use spikelet::blob::{ALIGN, ENTRY_LEN, HEADER_LEN, MAGIC, Slab, VERSION, crc32};
use spikelet::frame::Frame;
use spikelet::model::{Dictionary, FixedLatent, Noise, Selection, States};

/// What a blob says about its model beside the numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct About<'a> {
    /// Where it came from.
    pub provenance: &'a str,
    /// How data becomes points, if that is known.
    pub frame: Option<Frame>,
    /// With a transform: what the coefficients of each bin are multiplied with; empty for nothing.
    pub gains: &'a [f32],
    /// Which latents belong together.
    pub groups: Option<&'a Grouping>,
}

impl<'a> From<&'a str> for About<'a> {
    fn from(provenance: &'a str) -> Self {
        Self { provenance, ..Self::default() }
    }
}

impl<'a> From<&'a String> for About<'a> {
    fn from(provenance: &'a String) -> Self {
        provenance.as_str().into()
    }
}

/// A blob from a prepared model; `slab` is how its slab was given, if it has one.
pub fn write<'a>(
    prepared: &Prepared<f32>,
    slab: &SlabCov,
    about: impl Into<About<'a>>,
) -> crate::Result<Vec<u8>> {
    let about = about.into();
    let model = prepared.model()?;
    let shared;
    let noise = match model.noise {
        Noise::Shared(precision) => {
            shared = [precision];
            &shared[..]
        }
        Noise::Diagonal(values) | Noise::Full(values) => values,
    };
    let mut sections: Vec<(&[u8; 4], Vec<u8>)> = Vec::new();
    let encoding = match model.dictionary {
        Dictionary::Float(packed) => {
            sections.push((b"DICT", bytes(packed)));
            0
        }
        Dictionary::Integer(integers) => {
            sections.push((b"DICT", integers.words.iter().flat_map(|word| word.to_le_bytes()).collect()));
            sections.push((b"DSCL", bytes(integers.scales)));
            integers.width as u8
        }
    };
    sections.push((b"NOIS", bytes(noise)));
    sections.push((b"PRIO", bytes(model.prior_logit)));
    let kind = model.shape.kind;
    if kind.has_slab() {
        sections.push((b"MEAN", bytes(model.slab_mean)));
        sections.push((b"PREC", bytes(model.slab_precision)));
    }
    sections.push((b"GDIA", bytes(model.gram_diagonal)));
    if kind.has_slab() {
        sections.push((b"SOFF", bytes(model.score_offset)));
    }
    sections.extend(model.gram.map(|gram| (b"GRAM", bytes(gram))));
    let selection_code = match model.selection {
        Selection::Singleton => 0,
        Selection::Independent { precision, offset } => {
            sections.push((b"SELP", bytes(precision)));
            sections.push((b"SELO", bytes(offset)));
            1
        }
        Selection::Cosine { scale } => {
            sections.push((b"SELO", bytes(scale)));
            2
        }
        Selection::Bound => 3,
        Selection::Learned { weights } => {
            sections.push((b"SELP", bytes(weights)));
            4
        }
    };
    if let Some(table) = model.table {
        sections.push((b"STAT", bytes(table.records)));
    }
    if let Some(latents) = model.fixed {
        sections.push((b"FIXD", latents.iter().flat_map(fixed_bytes).collect()));
    }
    sections.extend(about.frame.map(|frame| (b"fram", frame.bytes().to_vec())));
    if !about.gains.is_empty() {
        sections.push((b"gain", bytes(about.gains)));
    }
    if let Some(groups) = about.groups {
        sections.push((b"grps", groups.section()?));
    }
    sections.push((b"prov", about.provenance.as_bytes().to_vec()));

    let shape = model.shape;
    let slab = match slab {
        _ if !kind.has_slab() => Slab::None,
        SlabCov::Unit => Slab::Unit,
        SlabCov::Diagonal(_) => Slab::Diagonal,
        SlabCov::Full(_) => Slab::Full,
    };
    let noise_code = match model.noise {
        Noise::Shared(_) => 0,
        Noise::Diagonal(_) => 1,
        Noise::Full(_) => 2,
    };
    let (states_code, expansions) = match model.shape.states {
        States::Subsets => (0, 0),
        States::Table => (1, 0),
        States::Adaptive { expansions } => (2, expansions),
    };

    let singletons = u8::from(shape.singletons);
    let header = Header {
        codes: [kind as u8, encoding, selection_code, noise_code, slab as u8, states_code, singletons, 0],
        dims: shape.dims,
        latents: shape.latents,
        selected: shape.selected as u16,
        max_active: shape.max_active as u16,
        log_norm: model.log_norm,
        expansions,
    };
    let blob = assembled(&header, &sections);
    if u32::try_from(blob.len()).is_err() {
        let advice = "use fewer latents, or states grown instead of tables";
        return Err(crate::Error::input("the blob would be larger than 4 GiB", "the model", advice));
    }
    Ok(blob)
}

/// The fields of a blob's header that say what its sections hold.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Header {
    /// Bytes 16 to 24: kind, encoding, selection, noise, slab, states, singletons, 0.
    pub codes: [u8; 8],
    pub dims: usize,
    pub latents: usize,
    pub selected: u16,
    pub max_active: u16,
    pub log_norm: f32,
    pub expansions: u16,
}

/// Header, sections, length and checksum.
pub(crate) fn assembled(header: &Header, sections: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    // Filled in order; bytes 8..16 (length, checksum) at the end.
    let mut blob = Vec::new();
    blob.extend(MAGIC);
    blob.extend(VERSION.to_le_bytes());
    blob.extend([0; 2 + 8]);
    blob.extend(header.codes);
    blob.extend((header.dims as u32).to_le_bytes());
    blob.extend((header.latents as u32).to_le_bytes());
    blob.extend(header.selected.to_le_bytes());
    blob.extend(header.max_active.to_le_bytes());
    blob.extend(header.log_norm.to_le_bytes());
    blob.extend((sections.len() as u32).to_le_bytes());
    blob.extend(header.expansions.to_le_bytes());
    blob.extend([0; 2]);
    let mut offset = HEADER_LEN + ENTRY_LEN * sections.len();
    for (tag, content) in sections {
        blob.extend(*tag);
        blob.extend((offset as u32).to_le_bytes());
        blob.extend((content.len() as u32).to_le_bytes());
        blob.extend([0; 4]);
        offset += content.len().next_multiple_of(ALIGN);
    }
    for (_, content) in sections {
        blob.extend(content);
        blob.resize(blob.len().next_multiple_of(ALIGN), 0);
    }
    let len = (blob.len() as u32).to_le_bytes();
    blob[8..12].copy_from_slice(&len);
    let crc = crc32(&blob[16..]).to_le_bytes();
    blob[12..16].copy_from_slice(&crc);
    blob
}

fn fixed_bytes(latent: &FixedLatent) -> Vec<u8> {
    let &FixedLatent { scale, exponent, offset, logit, pull, least } = latent;
    [scale, exponent, offset, logit, pull, least].iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
