//! What this build has: every kind of model and every engine is a feature, so that firmware for one of them links
//! nothing of the others.
//!
//! Nothing is compiled conditionally. Models of other kinds are refused when they are put together ([`left_out`]), and the few
//! places that tell kinds apart ask here: where the build leaves one answer only, the compiler knows it and drops the rest.

use crate::model::{Dictionary, Kind, Model, States};

/// Gibbs sampling.
pub(crate) const GIBBS: bool = cfg!(feature = "gibbs");
/// More detail than marginals.
pub(crate) const DETAIL: bool = cfg!(feature = "training");
/// Tables of states.
pub(crate) const TABLES: bool = cfg!(feature = "tables");
/// Dictionaries of integers.
pub(crate) const INTEGERS: bool = cfg!(feature = "integers");
/// Inference in integers.
pub(crate) const FIXED: bool = cfg!(feature = "fixed-point");
/// Inference in floats of the models that integers are for: of what is too loud for them, if nothing else.
pub(crate) const FLOAT_SLAB: bool = cfg!(feature = "gsc");
/// Any inference in floats.
pub(crate) const FLOATS: bool = FLOAT_SLAB || SWITCHED || GIBBS;
/// Spike-and-slab models that [`crate::kept`] does not serve.
pub(crate) const DEEP: bool = cfg!(feature = "deep");
/// Shapes that have too many states for any core.
pub(crate) const MANY_STATES: bool = DEEP || SWITCHED || GIBBS;
/// What streams are made of, and into.
pub(crate) const STREAM: bool = cfg!(feature = "stream");
/// Selection for kinds other than Gaussian sparse coding.
pub(crate) const COSINE: bool = SWITCHED || cfg!(feature = "ssmca");
/// Selection where W is not negative and latents have no slab.
pub(crate) const BOUND: bool = cfg!(any(feature = "nmf", feature = "mca"));
/// Selection for Gaussian sparse coding.
pub(crate) const INDEPENDENT: bool = cfg!(feature = "gsc");

const SLAB: bool = cfg!(any(feature = "gsc", feature = "fixed-point", feature = "ssmca"));
const SWITCHED: bool = cfg!(any(feature = "bsc", feature = "nmf", feature = "mca"));
const LINEAR: bool = cfg!(any(feature = "gsc", feature = "fixed-point", feature = "bsc", feature = "nmf"));
const MAXIMAL: bool = cfg!(any(feature = "mca", feature = "ssmca"));

#[cfg(not(any(
    feature = "gsc",
    feature = "fixed-point",
    feature = "bsc",
    feature = "nmf",
    feature = "mca",
    feature = "ssmca"
)))]
compile_error!("choose at least one kind of model, a feature: gsc, fixed-point, bsc, nmf, mca or ssmca");

/// [`Kind::has_slab`] of a model that was not refused.
#[inline(always)]
pub(crate) const fn has_slab(kind: Kind) -> bool {
    SLAB && (!SWITCHED || kind.has_slab())
}

/// [`Kind::is_maximal`] of a model that was not refused.
#[inline(always)]
pub(crate) const fn is_maximal(kind: Kind) -> bool {
    MAXIMAL && (!LINEAR || kind.is_maximal())
}

/// [`Kind::is_sampled`] of a model that was not refused.
#[inline(always)]
pub(crate) const fn is_sampled(kind: Kind) -> bool {
    cfg!(feature = "ssmca") && kind.is_sampled()
}

/// Whether this build has a kind, and the feature that brings it.
const fn feature(kind: Kind) -> (bool, &'static str) {
    match kind {
        Kind::Gsc => (cfg!(feature = "gsc"), "gsc"),
        Kind::Bsc => (cfg!(feature = "bsc"), "bsc"),
        Kind::Nmf => (cfg!(feature = "nmf"), "nmf"),
        Kind::Mca => (cfg!(feature = "mca"), "mca"),
        Kind::Ssmca => (cfg!(feature = "ssmca"), "ssmca"),
    }
}

/// The feature that a model needs and this build lacks; [`DEEP`] aside, which the engine decides about.
pub(crate) const fn left_out<T>(model: &Model<'_, T>) -> Option<&'static str> {
    let (has, name) = feature(model.shape.kind);
    match (&model.states, &model.dictionary) {
        _ if !(has || FIXED && model.fixed.is_some()) => Some(name),
        (States::Table(_), _) if !TABLES => Some("tables"),
        (_, Dictionary::Integer(_)) if !INTEGERS => Some("integers"),
        _ if !FIXED && model.fixed.is_some() => Some("fixed-point"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc::TWO_SOURCES;
    use crate::model::{Integers, Noise, Selection, Width};
    use crate::{Blob, BlobError, Detail, Engine, Error, Gibbs, Inference, ModelError, Shape};

    #[test]
    fn what_is_left_out_is_refused() {
        let missing = |feature| BlobError::Model(ModelError::LeftOut { feature });
        let blob = Blob::parse(TWO_SOURCES);
        if !cfg!(feature = "gsc") {
            assert_eq!(blob.unwrap_err(), missing("gsc"));
            return;
        }
        let model = blob.unwrap().model();
        let mut memory = [0.0; 256];
        let engine = Engine::Gibbs(Gibbs::new(Kind::Gsc, 10));
        let sampled = Inference::with_engine(model, &mut memory, Detail::Marginals, engine);
        assert_eq!(sampled.err(), (!GIBBS).then_some(Error::Setting { field: "engine" }));
        let detailed = Inference::with_detail(model, &mut memory, Detail::SecondMoments);
        assert_eq!(detailed.err(), (!DETAIL).then_some(Error::Setting { field: "detail" }));
        let integers = Integers { width: Width::I8, words: &[1, 1, 0, 0], scales: &[1.0, 1.0], peak: 0 };
        let of_integers = Model::new(Model { dictionary: Dictionary::Integer(integers), ..model });
        let refused = |feature| Some(ModelError::LeftOut { feature });
        assert_eq!(of_integers.err(), refused("integers").filter(|_| !INTEGERS));
        if INTEGERS && !FIXED {
            let in_integers = Model { fixed: Some(&[]), ..of_integers.unwrap() };
            assert_eq!(Model::new(in_integers).err(), refused("fixed-point"));
        }
        // Narrow slabs far from zero.
        let narrow = Model { slab_mean: &[10.0; 2], slab_precision: &[100.0; 2], ..model };
        assert_eq!(Model::new(narrow).err(), refused("deep").filter(|_| !DEEP && !GIBBS));
        let without_sampling = Inference::new(narrow, &mut memory);
        assert_eq!(without_sampling.is_err(), GIBBS && !DEEP);
        let mut inference = Inference::new(model, &mut memory).unwrap();
        assert!(inference.infer(&[0.0, 2.0]).unwrap().activity[1] > 0.9);
    }

    /// Without floats, what is too loud for integers is refused.
    #[test]
    fn integers_alone() {
        if !FIXED {
            return;
        }
        // Two latents that each have a dimension to themselves: G = 100, K = 1.
        let (g, k) = (100.0, 1.0);
        let s = 1.0 / libm::sqrt(g + k);
        let bits = |nats: f64| (nats * core::f64::consts::LOG2_E * 8192.0) as i32;
        let offset = 0.5 * libm::log(k / (g + k));
        let latent = [
            (s * 17_179_869_184.0) as i32,
            -4,
            bits(offset),
            bits(-1.0),
            0,
            (k / (g + k) * 1_073_741_824.0) as i32,
        ];
        let (latents, offsets) = ([latent; 2], [offset as f32; 2]);
        let model = Model::new(Model {
            shape: Shape {
                kind: Kind::Gsc,
                dims: 2,
                latents: 2,
                selected: 2,
                max_active: 2,
                singletons: true,
            },
            dictionary: Dictionary::Integer(Integers {
                width: Width::I16,
                words: &[1000, 1000 << 16, 0, 0, 0, 0, 0, 0],
                scales: &[1e-3f32; 2],
                peak: 0,
            }),
            noise: Noise::Shared(100.0),
            prior_logit: &[-1.0; 2],
            slab_mean: &[0.0; 2],
            slab_precision: &[1.0; 2],
            gram_diagonal: &[100.0; 2],
            score_offset: &offsets,
            gram: Some(&[100.0, 0.0, 100.0]),
            selection: Selection::Singleton,
            states: States::Grown,
            fixed: Some(&latents),
            log_norm: 0.0,
        })
        .unwrap();
        let mut memory = [0.0; 256];
        let mut inference = Inference::new(model, &mut memory).unwrap();
        let found = inference.infer(&[0.0, 2.0]).unwrap();
        assert!(found.activity[0] < 0.1 && found.activity[1] > 0.999);
        assert!((found.mean[1] - 2.0 / 1.01).abs() < 1e-3);
        assert!(inference.is_fixed());
        let loud = inference.infer(&[0.0, 2000.0]).map(|found| found.mean[1] > 1900.0);
        assert_eq!(loud, if FLOAT_SLAB { Ok(true) } else { Err(Error::OutOfRange) });
        // Nothing is left of it.
        assert!(inference.infer(&[0.0, 2.0]).unwrap().activity[1] > 0.999);
    }

    #[test]
    fn kinds_are_told_apart_as_far_as_they_are_there() {
        for kind in [Kind::Gsc, Kind::Bsc, Kind::Nmf, Kind::Mca, Kind::Ssmca] {
            if feature(kind).0 {
                assert_eq!(
                    (has_slab(kind), is_maximal(kind), is_sampled(kind)),
                    (kind.has_slab(), kind.is_maximal(), kind.is_sampled())
                );
            }
        }
    }
}
