//! What this build has: every kind of model and every engine is a feature, so that firmware for one of them links
//! nothing of the others.
//!
//! Nothing is compiled conditionally. Models of other kinds are refused when they are put together ([`Features::of`]), and the few
//! places that tell kinds and engines apart ask here or [`crate::Kind`]'s family: where the build leaves one answer only, the compiler
//! knows it and drops the rest.

use crate::kinds::Kind;

/// Gibbs sampling.
pub(crate) const GIBBS: bool = cfg!(feature = "gibbs");
/// The papers' sets of states, with matrices computed on the way or beforehand.
pub(crate) const SUBSETS: bool = cfg!(feature = "subsets");
/// More detail than marginals.
pub(crate) const DETAIL: bool = cfg!(feature = "training");
/// Dictionaries of integers.
pub(crate) const INTEGERS: bool = cfg!(feature = "integers");
/// Inference in integers.
pub(crate) const FIXED: bool = cfg!(feature = "fixed-point");
/// Inference in floats: without it, samples that are too loud for integers are refused.
pub(crate) const FLOATS: bool = cfg!(any(
    feature = "gsc",
    feature = "binary",
    feature = "mca",
    feature = "ssmca",
    feature = "gmm",
    feature = "gibbs"
));
/// Streams: windows, transforms, groups of latents.
pub(crate) const STREAM: bool = cfg!(feature = "stream");

/// Sources in a room that move slowly.
pub(crate) const FOLLOWING: bool = cfg!(feature = "following");

/// The features of this crate that models need, one bit each.
const NAMES: [&str; 13] = [
    "gsc",
    "binary",
    "mca",
    "ssmca",
    "gibbs",
    "subsets",
    "integers",
    "fixed-point",
    "stream",
    "spatial",
    "spectral",
    "gmm",
    "following",
];

/// A set of Cargo features, of those that decide which models a build can run.
///
/// ```
/// # let model = spikelet::Blob::parse(spikelet::doc::TWO_SOURCES).unwrap().model();
/// use spikelet::Features;
/// assert!(Features::of(&model).names().eq(["gsc", "subsets"]));
/// assert_eq!(Features::of(&model).without(Features::BUILT), Features::default()); // nothing is missing
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(u16);

impl Features {
    /// The features of this build.
    pub const BUILT: Self = Self::NONE
        .with(Self::GSC, cfg!(feature = "gsc"))
        .with(Self::BINARY, cfg!(feature = "binary"))
        .with(Self::MCA, cfg!(feature = "mca"))
        .with(Self::SSMCA, cfg!(feature = "ssmca"))
        .with(Self::GIBBS, GIBBS)
        .with(Self::SUBSETS, SUBSETS)
        .with(Self::INTEGERS, INTEGERS)
        .with(Self::FIXED_POINT, FIXED)
        .with(Self::STREAM, STREAM)
        .with(Self::SPATIAL, cfg!(feature = "spatial"))
        .with(Self::SPECTRAL, cfg!(feature = "spectral"))
        .with(Self::GMM, cfg!(feature = "gmm"))
        .with(Self::FOLLOWING, FOLLOWING);
    pub(crate) const NONE: Self = Self(0);
    const GSC: Self = Self(1);
    const BINARY: Self = Self(1 << 1);
    const MCA: Self = Self(1 << 2);
    const SSMCA: Self = Self(1 << 3);
    /// Sampling, of any kind.
    pub const GIBBS: Self = Self(1 << 4);
    pub(crate) const SUBSETS: Self = Self(1 << 5);
    pub(crate) const INTEGERS: Self = Self(1 << 6);
    pub(crate) const FIXED_POINT: Self = Self(1 << 7);
    /// Streams.
    pub const STREAM: Self = Self(1 << 8);
    /// Sources on spaced microphones.
    pub const SPATIAL: Self = Self(1 << 9);
    /// Sources in one channel.
    pub const SPECTRAL: Self = Self(1 << 10);
    const GMM: Self = Self(1 << 11);
    /// Sources that move slowly, of [`Features::SPATIAL`].
    #[cfg_attr(not(feature = "spatial"), allow(dead_code))]
    pub(crate) const FOLLOWING: Self = Self(1 << 12);

    /// Whether this build has a kind of model that infers points: firmware for sources in a room or in one channel needs none.
    pub const HAS_POINTS: bool = Self::BUILT.0
        & (Self::GSC.0 | Self::BINARY.0 | Self::MCA.0 | Self::SSMCA.0 | Self::GMM.0 | Self::FIXED_POINT.0)
        != 0;

    /// The union with `others`, if they are `needed`.
    pub const fn with(self, others: Self, needed: bool) -> Self {
        Self(if needed { self.0 | others.0 } else { self.0 })
    }

    /// What brings a kind of model.
    pub(crate) const fn of_kind(kind: Kind) -> Self {
        match kind {
            Kind::Gsc => Self::GSC,
            Kind::Bsc | Kind::Nmf => Self::BINARY,
            Kind::Mca => Self::MCA,
            Kind::Ssmca => Self::SSMCA.with(Self::GIBBS, true),
            Kind::Gmm => Self::GMM,
        }
    }

    /// The set difference.
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Their names in `Cargo.toml`.
    pub fn names(self) -> impl Iterator<Item = &'static str> + Clone {
        NAMES.iter().enumerate().filter(move |(i, _)| self.0 >> i & 1 == 1).map(|(_, name)| *name)
    }
}

/// gsc, integers.
impl core::fmt::Display for Features {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (i, name) in self.names().enumerate() {
            write!(f, "{}{name}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Features {
    fn format(&self, f: defmt::Formatter<'_>) {
        for name in self.names() {
            defmt::write!(f, "{=str} ", name);
        }
    }
}

/// Kinds that have the score [`crate::model::Selection::Independent`].
pub(crate) const INDEPENDENT: bool = cfg!(feature = "gsc") && SUBSETS || cfg!(feature = "gmm");
/// Kinds that have the score [`crate::model::Selection::Cosine`].
pub(crate) const COSINE: bool = cfg!(any(feature = "binary", feature = "mca", feature = "ssmca"));
/// Kinds that have the score [`crate::model::Selection::Bound`].
pub(crate) const BOUND: bool = cfg!(any(feature = "binary", feature = "mca"));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc::TWO_SOURCES;
    use crate::kinds::Family;
    use crate::model::{Dictionary, FixedLatent, Integers, Kind, Model, Noise, Selection, States, Width};
    use crate::{Blob, BlobError, Detail, Engine, Error, Gibbs, Inference, ModelError, Shape};

    const SHAPE: Shape = Shape {
        kind: Kind::Gsc,
        dims: 2,
        latents: 2,
        selected: 2,
        max_active: 2,
        singletons: false,
        states: States::Adaptive { expansions: 4 },
    };

    /// Two sources on two sensors, one each, as [`TWO_SOURCES`] has them: G = 100, K = 1.
    fn two_sources(kind: Kind) -> Model<'static, f32> {
        let slab = kind.has_slab();
        Model {
            shape: match kind {
                Kind::Gmm => Shape { kind, max_active: 1, states: States::Subsets, ..SHAPE },
                _ => Shape { kind, ..SHAPE },
            },
            dictionary: Dictionary::Float(&[
                1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
            ]),
            noise: Noise::Shared(100.0),
            prior_logit: &[-1.0; 2],
            slab_mean: if slab { &[0.0; 2] } else { &[] },
            slab_precision: if slab { &[1.0; 2] } else { &[] },
            gram_diagonal: &[100.0; 2],
            score_offset: if slab { &[-2.307_56; 2] } else { &[] },
            gram: Some(&[100.0, 0.0, 100.0]),
            selection: Selection::Singleton,
            table: None,
            fixed: None,
            is_transformed: false,
            has_slab_mean: false,
            may_lose_digits: false,
            log_norm: 0.0,
        }
    }

    #[test]
    fn what_is_left_out_is_refused() {
        let refused = |features| Some(ModelError::LeftOut { features });
        let blob = Blob::parse(TWO_SOURCES).map(|_| ());
        // All that is missing at once; a build without kinds of models of points only looks at the kind.
        let features = Features::NONE
            .with(Features::GSC, !cfg!(feature = "gsc"))
            .with(Features::SUBSETS, !SUBSETS && Features::HAS_POINTS);
        let missing = BlobError::Model(ModelError::LeftOut { features });
        assert_eq!(blob.err(), (features != Features::NONE).then_some(missing));

        for kind in Kind::ALL {
            let spec = kind.spec();
            let model = Model::new(two_sources(kind));
            let features = Features::of_kind(kind).without(Features::BUILT);
            let refused = (features != Features::NONE).then_some(ModelError::LeftOut { features });
            assert_eq!(model.err(), refused, "{}", spec.name);
        }
        let Ok(model) = Model::new(two_sources(Kind::Gsc)) else { return };
        for states in [States::Subsets, States::Adaptive { expansions: 1 }] {
            let lacks = !SUBSETS && states == States::Subsets;
            let other = Model { shape: Shape { states, ..SHAPE }, ..model };
            assert_eq!(Model::new(other).err(), refused(Features::SUBSETS).filter(|_| lacks));
            assert_eq!(model.with_states(2, 2, states).err(), refused(Features::SUBSETS).filter(|_| lacks));
        }
        let mut memory = [0.0; 256];
        let engine = Engine::Gibbs(Gibbs::new(Kind::Gsc, 10));
        let sampled = Inference::with_engine(model, &mut memory, Detail::Marginals, engine);
        assert_eq!(sampled.err(), (!GIBBS).then_some(Error::Setting { field: "engine" }));
        let detailed = Inference::with_detail(model, &mut memory, Detail::SecondMoments);
        assert_eq!(detailed.err(), (!DETAIL).then_some(Error::Setting { field: "detail" }));
        let integers = Integers { width: Width::I8, words: &[1, 1, 0, 0], scales: &[1.0, 1.0], peak: 0 };
        let of_integers = Model::new(Model { dictionary: Dictionary::Integer(integers), ..model });
        assert_eq!(of_integers.err(), refused(Features::INTEGERS).filter(|_| !INTEGERS));
        if INTEGERS && !FIXED {
            let in_integers = Model { fixed: Some(&[]), ..of_integers.unwrap() };
            assert_eq!(Model::new(in_integers).err(), refused(Features::FIXED_POINT));
        }
        // Coefficients of a transform: without streams there is nothing to make them.
        let transformed = Model::new(Model { is_transformed: true, ..model });
        assert_eq!(transformed.err(), refused(Features::STREAM).filter(|_| !STREAM));
        if let Ok(model) = transformed {
            assert_eq!(Inference::new(model, &mut memory).err(), Some(Error::Transformed));
            assert!(Inference::with_detail(model, &mut memory, Detail::Marginals).is_ok());
        }
    }

    #[test]
    fn features_have_names() {
        use core::fmt::Write;
        let features = Features::NONE
            .with(Features::STREAM, true)
            .with(Features::GIBBS, true)
            .with(Features::GSC, false);
        let mut text = heapless::String::<32>::new();
        write!(text, "{features}").unwrap();
        assert_eq!(text, "gibbs, stream");
        // Specs and sets call kinds alike.
        assert!(
            Kind::ALL.iter().all(|kind| Features::of_kind(*kind).names().next() == Some(kind.spec().feature))
        );
    }

    #[test]
    fn what_is_there_infers() {
        for kind in Kind::ALL.into_iter().filter(|kind| kind.spec().is_built) {
            let model = Model::new(two_sources(kind)).unwrap();
            let mut memory = [0.0; 512];
            let mut inference = Inference::new(model, &mut memory).unwrap();
            let found = inference.infer(&[0.0, 1.0]).unwrap();
            assert!(found.activity[0] < 0.3 && found.activity[1] > 0.9, "{}", kind.spec().name);
        }
    }

    /// Without floats, what is too loud for integers is refused.
    #[test]
    fn integers_alone() {
        if !FIXED {
            return;
        }
        let (g, k) = (100.0, 1.0);
        let s = 1.0 / libm::sqrt(g + k);
        let bits = |nats: f64| (nats * core::f64::consts::LOG2_E * 8192.0) as i32;
        let latent = FixedLatent {
            scale: (s * 17_179_869_184.0) as i32,
            exponent: -4,
            offset: bits(0.5 * libm::log(k / (g + k))),
            logit: bits(-1.0),
            pull: 0,
            least: (k / (g + k) * 1_073_741_824.0) as i32,
        };
        let latents = [latent; 2];
        let dictionary = Dictionary::Integer(Integers {
            width: Width::I16,
            words: &[1000, 1000 << 16, 0, 0, 0, 0, 0, 0],
            scales: &[1e-3f32; 2],
            peak: 0,
        });
        let shape = Shape { states: States::Adaptive { expansions: 4 }, ..SHAPE };
        let model = Model::new(Model { shape, dictionary, fixed: Some(&latents), ..two_sources(Kind::Gsc) });
        let mut memory = [0.0; 256];
        let mut inference = Inference::new(model.unwrap(), &mut memory).unwrap();
        for (loudness, is_fixed) in [(1.0f32, true), (1e3, true), (1e6, false), (1.0, true)] {
            let found = inference.infer(&[0.0, 2.0 * loudness]);
            if !is_fixed && !FLOATS {
                assert_eq!(found.err(), Some(Error::OutOfRange));
                continue;
            }
            let found = found.unwrap();
            assert!(found.activity[0] < 0.1 && found.activity[1] > 0.999);
            assert!((found.mean[1] / loudness - 2.0 / 1.01).abs() < 1e-3);
            assert_eq!(inference.is_fixed(), is_fixed);
        }
    }

    #[test]
    fn families_of_the_kinds_that_are_built() {
        for kind in Kind::ALL.into_iter().filter(|kind| kind.spec().is_built) {
            let expected = match (kind.has_slab(), kind.is_maximal()) {
                (_, true) => Family::Maximal,
                (true, false) => Family::Slab,
                (false, false) => Family::Binary,
            };
            assert!(kind.family() == expected, "{}", kind.spec().name);
        }
    }
}
