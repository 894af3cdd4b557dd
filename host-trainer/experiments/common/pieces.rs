//! Pieces of a picture or recording, without noise.

use spikelet::{Detail, Inference};
use spikelet_trainer::data::{Mosaic, Pieces, Sheet};
use spikelet_trainer::prepare::Prepared;
use spikelet_trainer::train::State;
use spikelet_trainer::{Error, Result};

/// Every pixel or sample as the mean over the posterior means of the pieces it lies in, weighted by their inverse variances, and
/// how many latents are on in a piece.
pub fn denoised(state: &State, pieces: &Pieces) -> Result<(Sheet, f64)> {
    let prepared = Prepared::<f32>::new(&state.model(), &state.settings.options())?;
    let (model, engine) = (prepared.model()?, state.settings.engine_at(0, 0));
    let refused = |error| Error::input(error, "the data", "check its range");
    let mut memory = vec![0.0; engine.arena_len(model.shape, Detail::Marginals)];
    let mut inference =
        Inference::with_engine(model, &mut memory, Detail::Marginals, engine).map_err(refused)?;
    let (mut values, mut piece) = (Vec::new(), vec![0.0; pieces.dims()]);
    pieces.read(0, pieces.len(), &mut values);
    let (mut mosaic, mut on) = (Mosaic::new(pieces), 0.0);
    for (number, point) in values.chunks_exact(pieces.dims()).enumerate() {
        piece.iter_mut().zip(point).for_each(|(y, &value)| *y = value as f32);
        let estimate = inference.infer(&piece).map_err(refused)?;
        on += estimate.activity.iter().map(|&s| f64::from(s)).sum::<f64>();
        let weight = Mosaic::weight(&model, estimate.variance);
        inference.reconstruct(&mut piece).map_err(refused)?;
        mosaic.add(number, &piece, &[weight]);
    }
    Ok((mosaic.finish(), on / pieces.len() as f64))
}
