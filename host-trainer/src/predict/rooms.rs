//! Instructions of spatial streams, from counts like those of other models.
//!
//! A hop takes the same work whatever is heard; bins that are silent take less. So noise in all bins is the
//! mean; the worst case adds the error that a prediction may have.

use super::{ALLOWED, Core, Prediction, dot, hops};
use crate::Result;
use spikelet::counts::Counts;
use spikelet::rng::Rng;
use spikelet::spatial::stream_bytes;
use spikelet::{SpatialModel, SpatialStream};

/// Hops that are counted: as many as a frame overlaps, and some more.
const HOPS: usize = 12;

/// Counts of every hop of a recording of all microphones.
pub fn count_hops(model: &SpatialModel<'_>, signal: &[f32]) -> Result<Vec<Counts>> {
    let mut memory = vec![0.0; SpatialStream::memory_len(model)];
    let refused = |error| crate::Error::run(error, "the stream of the model", "choose another model");
    let mut stream = SpatialStream::new(*model, &mut memory).map_err(refused)?;
    let [read, written] = [stream.channels(), stream.groups()].map(|each| each * stream.hop());
    Ok(hops(signal, read, written, |block, out| stream.process(block, out)))
}

/// What a spatial stream takes on one core, for each hop; nothing if that was not measured.
///
/// ```
/// # static FILE: spikelet::Aligned<{ include_bytes!("../../../tests/conformance/room-d2h4.spk").len() }> =
/// #     spikelet::Aligned::new(include_bytes!("../../../tests/conformance/room-d2h4.spk"));
/// use spikelet_trainer::predict::{Core, rooms};
/// let model = spikelet::SpatialModel::parse(FILE.bytes()).unwrap();
/// let hop = rooms::predict(Core::find("m4f").unwrap(), &model).unwrap().unwrap();
/// assert!(hop.instructions() > 50_000.0 && hop.worst >= hop.instructions());
/// ```
pub fn predict(core: Core, model: &SpatialModel<'_>) -> Result<Option<Prediction>> {
    let mut rng = Rng::new(super::SEED);
    let numbers = HOPS * model.hop() * model.microphones();
    let signal: Vec<f32> = (0..numbers).map(|_| 0.1 * rng.normal::<f32>()).collect();
    let counts = count_hops(model, &signal)?;
    let weights = core.weights();
    let of = |counts: &Counts| dot(&weights, counts.iter().map(|&count| count as f64));
    let hop = counts.iter().map(of).fold(0.0, f64::max);
    let unknown = super::unknown(&weights, &counts);
    if weights.iter().all(Option::is_none) {
        return Ok(None);
    }
    let bytes = |what: &str| core.entry(what).unwrap_or_default();
    Ok(Some(Prediction {
        core,
        stages: [0.0, 0.0, hop],
        // Delays are looked at in some hops only.
        worst: (1.0 + if model.following().is_some() { 2.0 * ALLOWED } else { ALLOWED }) * hop,
        streamed: None,
        worst_block: None,
        text_bytes: bytes(if model.following().is_some() { "text:following" } else { "text:spatial" }) as u32,
        arena_bytes: stream_bytes(model),
        stack_bytes: bytes("stack:spatial") as u32,
        beyond: unknown,
    }))
}
