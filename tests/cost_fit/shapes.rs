//! The shapes that are fitted, and others that are predicted: none is in both.

use crate::family::Family;
use spikelet::{Engine, Gibbs, Start};
use spikelet_trainer::parameters::ModelKind;
use spikelet_trainer::predict::Method;

/// What models are for.
#[derive(Clone, Copy, PartialEq)]
pub enum Purpose {
    Fit,
    Check,
}

/// D, H, H', gamma of what is fitted.
const GRID: &[[usize; 4]] = &[
    [2, 2, 2, 2],
    [2, 4, 4, 2],
    [3, 3, 3, 3],
    [4, 6, 6, 3],
    [4, 8, 4, 2],
    [5, 5, 5, 5],
    [6, 10, 10, 5],
    [8, 8, 8, 3],
    [8, 16, 6, 3],
    [8, 24, 8, 4],
    [10, 12, 12, 3],
    [10, 20, 16, 2],
    [12, 16, 10, 3],
    [16, 16, 8, 5],
    [16, 32, 8, 3],
    [16, 32, 12, 3],
    [16, 48, 5, 2],
    [20, 40, 14, 3],
    [24, 24, 12, 4],
    [24, 40, 6, 3],
    [24, 64, 10, 3],
    [32, 32, 10, 3],
    [48, 16, 6, 4],
    [64, 24, 8, 3],
    [64, 32, 9, 2],
    [2, 3, 1, 1],
    [12, 20, 8, 1],
    // All states, as small models have them.
    [4, 6, 6, 6],
    [12, 7, 7, 7],
    [5, 8, 8, 8],
    [10, 10, 10, 10],
];
/// More of those whose factors are not kept, with a slab.
const DEEP: &[[usize; 4]] = &[
    [6, 12, 8, 4],
    [14, 22, 6, 4],
    [18, 40, 9, 4],
    [32, 30, 7, 4],
    [8, 14, 7, 5],
    [22, 26, 8, 5],
    [28, 18, 12, 2],
    [48, 16, 14, 2],
    [12, 24, 11, 2],
    [40, 20, 11, 3],
    [12, 30, 5, 4],
    [9, 12, 6, 6],
];
const UNSEEN: &[[usize; 4]] = &[[6, 9, 7, 3], [14, 28, 9, 3], [20, 36, 7, 4], [30, 20, 11, 2], [8, 7, 7, 7]];

/// The same with so little noise that many samples are loud.
const LOUD: &[[usize; 4]] = &[
    [3, 5, 5, 3],
    [4, 4, 4, 4],
    [6, 8, 6, 2],
    [8, 12, 8, 3],
    [10, 10, 10, 4],
    [12, 24, 8, 3],
    [16, 8, 8, 2],
    [16, 20, 12, 3],
    [24, 32, 7, 3],
    [32, 16, 6, 5],
    [48, 24, 10, 2],
    [5, 6, 6, 6],
];
const UNSEEN_LOUD: &[[usize; 4]] = &[[9, 14, 8, 3], [7, 5, 5, 3], [11, 9, 7, 4]];

/// With a table of states, which grows with the number of latents to the power of gamma.
const TABLES: &[[usize; 4]] = &[
    [2, 2, 2, 2],
    [2, 6, 4, 3],
    [4, 6, 6, 4],
    [4, 12, 8, 2],
    [6, 8, 6, 5],
    [8, 8, 8, 3],
    [8, 24, 10, 2],
    [12, 12, 6, 3],
    [16, 16, 12, 3],
    [16, 32, 12, 2],
    [24, 10, 8, 4],
    [32, 14, 8, 3],
    [48, 40, 16, 2],
    [64, 24, 6, 1],
];
const UNSEEN_TABLES: &[[usize; 4]] = &[[6, 9, 7, 3], [14, 28, 9, 2], [28, 11, 6, 4]];
const LOUD_TABLES: &[[usize; 4]] =
    &[[4, 6, 5, 3], [8, 10, 8, 2], [16, 12, 6, 4], [32, 16, 10, 2], [12, 8, 8, 3]];
const UNSEEN_LOUD_TABLES: &[[usize; 4]] = &[[10, 9, 7, 2]];

/// Shapes of what is drawn: H' alone matters to chains, and D where the strongest latent counts. Then chains, sweeps, latents
/// chosen at random, and whether chains start at random.
type Drawn = ([usize; 4], [u32; 4]);
const CHAINS: &[Drawn] = &[
    ([2, 2, 2, 2], [1, 8, 0, 0]),
    ([2, 4, 4, 2], [2, 4, 1, 0]),
    ([3, 3, 3, 2], [1, 12, 0, 1]),
    ([4, 8, 4, 2], [3, 3, 0, 0]),
    ([6, 10, 10, 2], [1, 6, 2, 0]),
    ([8, 8, 8, 2], [1, 16, 0, 0]),
    ([8, 24, 6, 2], [2, 5, 0, 1]),
    ([10, 20, 16, 2], [1, 4, 1, 0]),
    ([12, 16, 12, 2], [1, 10, 0, 1]),
    ([16, 16, 5, 2], [1, 8, 0, 0]),
    ([16, 32, 12, 2], [1, 3, 3, 0]),
    ([24, 40, 6, 2], [2, 2, 0, 0]),
    ([32, 32, 10, 2], [1, 5, 0, 1]),
    ([48, 16, 4, 2], [1, 6, 1, 0]),
    ([64, 24, 8, 2], [1, 4, 0, 0]),
    ([20, 64, 14, 2], [1, 6, 0, 0]),
];
const UNSEEN_CHAINS: &[Drawn] =
    &[([6, 9, 7, 2], [1, 20, 0, 0]), ([14, 28, 9, 2], [2, 7, 1, 0]), ([28, 18, 5, 2], [1, 9, 0, 1])];
const LOUD_CHAINS: &[Drawn] = &[
    ([4, 6, 6, 2], [1, 8, 0, 0]),
    ([8, 16, 8, 2], [1, 5, 0, 0]),
    ([16, 24, 12, 2], [2, 3, 1, 0]),
    ([32, 12, 5, 2], [1, 6, 0, 1]),
    ([12, 10, 10, 2], [1, 6, 0, 0]),
];
const UNSEEN_LOUD_CHAINS: &[Drawn] = &[([11, 15, 7, 2], [1, 8, 0, 0])];

/// A shape, and how it is inferred.
#[derive(Clone, Copy)]
pub struct Case {
    pub shape: [usize; 4],
    pub engine: Engine,
    /// Variance of the noise; columns of W have about length one.
    pub noise: f64,
}

/// All shapes of a family.
pub fn cases(family: &Family, purpose: Purpose) -> Vec<Case> {
    // Factors are kept of few states; with a slab, the others are another family.
    let listed = |shapes: &[[usize; 4]]| {
        let is_kept = |&[_, _, selected, max_active]: &[usize; 4]| selected <= 10 && max_active <= 3;
        let of_family = |shape: &&[usize; 4]| match family.method {
            Method::Kept | Method::Fixed => is_kept(shape),
            Method::Grown => family.kind != ModelKind::Gsc || !is_kept(shape),
            _ => true,
        };
        { shapes.iter() }.filter(of_family).map(|&shape| (shape, Engine::Truncated)).collect::<Vec<_>>()
    };
    let [plain, loud] = match (family.method, purpose) {
        (Method::Grown, Purpose::Fit) if family.kind == ModelKind::Gsc => {
            [listed(&[GRID, DEEP].concat()), listed(LOUD)]
        }
        (Method::Kept | Method::Fixed | Method::Grown, Purpose::Fit) => [GRID, LOUD].map(listed),
        (Method::Kept | Method::Fixed | Method::Grown, Purpose::Check) => [UNSEEN, UNSEEN_LOUD].map(listed),
        (Method::Table, Purpose::Fit) => [TABLES, LOUD_TABLES].map(listed),
        (Method::Table, Purpose::Check) => [UNSEEN_TABLES, UNSEEN_LOUD_TABLES].map(listed),
        (Method::Chains, Purpose::Fit) => [CHAINS, LOUD_CHAINS].map(|cases| drawn(family.kind, cases)),
        (Method::Chains, Purpose::Check) => {
            [UNSEEN_CHAINS, UNSEEN_LOUD_CHAINS].map(|cases| drawn(family.kind, cases))
        }
    };
    let with_noise = |cases: Vec<(_, _)>, variances: &'static [f64]| {
        let cases = cases.into_iter().zip(variances.iter().cycle());
        cases.map(|((shape, engine), &noise)| Case { shape, engine, noise })
    };
    let plain = with_noise(plain, &[0.1, 0.02, 0.3, 0.01, 0.05]);
    let little: &[f64] = if purpose == Purpose::Fit { &[1e-3, 2e-4, 4e-3] } else { &[4e-3] };
    plain.chain(with_noise(loud, little)).collect()
}

fn drawn(kind: ModelKind, cases: &[Drawn]) -> Vec<([usize; 4], Engine)> {
    let case = |&(shape, [chains, sweeps, extra, is_random]): &Drawn| {
        let start = if is_random > 0 { Start::Random } else { Start::Greedy };
        // Conditionals of pieces take a hundred times as much.
        let sweeps = if kind == ModelKind::Ssmca { sweeps.div_ceil(3) } else { sweeps };
        let usual = Gibbs::new(kind.kind(), sweeps);
        (shape, Engine::Gibbs(Gibbs { chains, start, extra: extra as u16, seed: 1, ..usual }))
    };
    cases.iter().map(case).collect()
}

/// Samples of each: as many as say enough, since the slowest core takes minutes.
pub fn samples(family: &Family, purpose: Purpose) -> u64 {
    let is_integer = family.width.is_some();
    match (family.method, purpose, family.kind) {
        (Method::Chains, _, ModelKind::Ssmca) => 4,
        (Method::Kept | Method::Grown, Purpose::Fit, _) if !is_integer => 18,
        (_, Purpose::Fit, _) => 9,
        (Method::Kept | Method::Grown, Purpose::Check, _) if !is_integer => 50,
        (Method::Kept | Method::Fixed | Method::Grown, Purpose::Check, _) => 20,
        (_, Purpose::Check, _) => 10,
    }
}
