//! How many segments of a conditional have mass, where only the strongest spike-and-slab latent counts.
//!
//! Between two borders, where another latent takes over a dimension, the logarithm of the conditional is a parabola; each takes
//! an exponential and two tails of a bell unless it is negligible (`spikelet::gibbs`). With little noise most are.

use spikelet::Model;
use spikelet::gibbs::Draw;
use spikelet::math::Real;
use spikelet::model::Noise;

/// One dimension as a latent sees it: 1 / sigma^2, W_dh, y_d, and what the other latents make of it.
struct Dim {
    precision: f64,
    w: f64,
    y: f64,
    others: f64,
}

/// Segments with mass of the conditionals of all latents in a state, on average.
pub(super) fn of_state(model: &Model<'_, f32>, sample: &[f32], state: &Draw<'_, f32>) -> f64 {
    let on: Vec<_> = state.order.iter().zip(state.values).filter(|&(_, &value)| value != 0.0).collect();
    let columns: Vec<Vec<f32>> =
        on.iter().map(|&(&latent, _)| model.column(usize::from(latent)).collect()).collect();
    let of_latent = |&latent: &u16| {
        let dim = |(d, w): (usize, f32)| {
            let others = on.iter().zip(&columns).filter(|&(&(&other, _), _)| other != latent);
            let parts = others.map(|((_, value), column)| f64::from(**value) * f64::from(column[d]));
            let precision = match model.noise {
                Noise::Shared(precision) => precision,
                Noise::Diagonal(precisions) | Noise::Full(precisions) => precisions[d],
            };
            Dim {
                precision: f64::from(precision),
                w: f64::from(w),
                y: f64::from(sample[d]),
                others: parts.fold(0.0, f64::max),
            }
        };
        let dims: Vec<Dim> = model.column(usize::from(latent)).enumerate().map(dim).collect();
        let h = usize::from(latent);
        with_mass(&dims, f64::from(model.slab_mean[h]), f64::from(model.slab_precision[h]))
    };
    state.order.iter().map(of_latent).sum::<f64>() / state.order.len() as f64
}

/// Segments of one conditional.
fn with_mass(dims: &[Dim], mean: f64, precision: f64) -> f64 {
    // Height, slope and bend to the right of x.
    let at = |x: f64| {
        let away = x - mean;
        let mut found = [-0.5 * precision * away * away, -precision * away, precision];
        for dim in dims {
            let (with, without) = (dim.others.max(x * dim.w), dim.others.max(0.0));
            found[0] += dim.precision * (with - without) * (dim.y - 0.5 * (with + without));
            if dim.w > 0.0 && x * dim.w >= dim.others {
                found[1] += dim.precision * dim.w * (dim.y - x * dim.w);
                found[2] += dim.precision * dim.w * dim.w;
            }
        }
        found
    };
    let mut borders: Vec<f64> = dims.iter().filter(|dim| dim.w > 0.0).map(|dim| dim.others / dim.w).collect();
    borders.push(0.0);
    borders.sort_by(f64::total_cmp);
    // The highest point of each segment: at its end, or where its parabola has its top.
    let end = |i: usize| borders.get(i).copied().unwrap_or(f64::INFINITY);
    let first = at(borders[0])[0].max(at(mean.min(borders[0]))[0]);
    let tops = (0..borders.len()).map(|i| {
        let [height, slope, bend] = at(borders[i]);
        let top = borders[i] + slope / bend;
        if slope <= 0.0 { height } else { at(top.min(end(i + 1)))[0] }
    });
    let heights: Vec<f64> = std::iter::once(first).chain(tops).collect();
    let peak = heights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let negligible = f64::from(f32::nats(2 * f32::WEIGHT_BITS));
    heights.iter().filter(|&&height| height > peak - negligible).count() as f64
}
