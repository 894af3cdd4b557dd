//! What this build has: every kind of model and every engine is a feature, so that firmware for one of them links
//! nothing of the others.
//!
//! Nothing is compiled conditionally. Models of other kinds are refused when they are put together ([`left_out`]), and the few
//! places that tell kinds and engines apart ask here or [`crate::Kind`]'s family: where the build leaves one answer only, the compiler
//! knows it and drops the rest.

use crate::model::{Dictionary, Model, States};

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
/// Any inference in floats: without it, samples that are nothing for integers are refused.
pub(crate) const FLOATS: bool =
    cfg!(any(feature = "gsc", feature = "binary", feature = "mca", feature = "ssmca", feature = "gibbs"));
/// What streams are made of, and into.
pub(crate) const STREAM: bool = cfg!(feature = "stream");

/// The feature that a model needs and this build lacks.
pub(crate) const fn left_out<T>(model: &Model<'_, T>) -> Option<&'static str> {
    let spec = model.shape.kind.spec();
    if !(spec.is_built || FIXED && model.fixed.is_some()) {
        return Some(spec.feature);
    }
    if !FIXED && model.fixed.is_some() {
        return Some("fixed-point");
    }
    if !INTEGERS && matches!(model.dictionary, Dictionary::Integer(_)) {
        return Some("integers");
    }
    let has_subsets = matches!(model.shape.states, States::Subsets | States::Table);
    // Integers have a walk of their own; what is nothing for them needs that of floats.
    let needs_walk = FLOATS || model.fixed.is_none();
    if !SUBSETS && has_subsets && needs_walk && !model.shape.kind.is_sampled() {
        return Some("subsets");
    }
    None
}

/// Kinds that have the score [`crate::model::Selection::Independent`].
pub(crate) const INDEPENDENT: bool = cfg!(feature = "gsc") && SUBSETS;
/// Kinds that have the score [`crate::model::Selection::Cosine`].
pub(crate) const COSINE: bool = cfg!(any(feature = "binary", feature = "mca", feature = "ssmca"));
/// Kinds that have the score [`crate::model::Selection::Bound`].
pub(crate) const BOUND: bool = cfg!(any(feature = "binary", feature = "mca"));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc::TWO_SOURCES;
    use crate::kinds::Family;
    use crate::model::{FixedLatent, Integers, Kind, Noise, Selection, Width};
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
            shape: Shape { kind, ..SHAPE },
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
            log_norm: 0.0,
        }
    }

    #[test]
    fn what_is_left_out_is_refused() {
        let refused = |feature| Some(ModelError::LeftOut { feature });
        let blob = Blob::parse(TWO_SOURCES).map(|_| ());
        let lacks = if !cfg!(feature = "gsc") { Some("gsc") } else { (!SUBSETS).then_some("subsets") };
        let missing = |feature| BlobError::Model(ModelError::LeftOut { feature });
        assert_eq!(blob.err(), lacks.map(missing));

        for kind in Kind::ALL {
            let spec = kind.spec();
            let model = Model::new(two_sources(kind));
            assert_eq!(model.err(), refused(spec.feature).filter(|_| !spec.is_built), "{}", spec.name);
        }
        let Ok(model) = Model::new(two_sources(Kind::Gsc)) else { return };
        for states in [States::Subsets, States::Adaptive { expansions: 1 }] {
            let lacks = !SUBSETS && states == States::Subsets;
            let other = Model { shape: Shape { states, ..SHAPE }, ..model };
            assert_eq!(Model::new(other).err(), refused("subsets").filter(|_| lacks));
            assert_eq!(model.with_states(2, 2, states).err(), refused("subsets").filter(|_| lacks));
        }
        let mut memory = [0.0; 256];
        let engine = Engine::Gibbs(Gibbs::new(Kind::Gsc, 10));
        let sampled = Inference::with_engine(model, &mut memory, Detail::Marginals, engine);
        assert_eq!(sampled.err(), (!GIBBS).then_some(Error::Setting { field: "engine" }));
        let detailed = Inference::with_detail(model, &mut memory, Detail::SecondMoments);
        assert_eq!(detailed.err(), (!DETAIL).then_some(Error::Setting { field: "detail" }));
        let integers = Integers { width: Width::I8, words: &[1, 1, 0, 0], scales: &[1.0, 1.0], peak: 0 };
        let of_integers = Model::new(Model { dictionary: Dictionary::Integer(integers), ..model });
        assert_eq!(of_integers.err(), refused("integers").filter(|_| !INTEGERS));
        if INTEGERS && !FIXED {
            let in_integers = Model { fixed: Some(&[]), ..of_integers.unwrap() };
            assert_eq!(Model::new(in_integers).err(), refused("fixed-point"));
        }
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
        for states in [States::Subsets, States::Adaptive { expansions: 4 }] {
            let shape = Shape { states, ..SHAPE };
            let model =
                Model::new(Model { shape, dictionary, fixed: Some(&latents), ..two_sources(Kind::Gsc) });
            // With floats beside them, the walk of floats must be there, too.
            if FLOATS && !SUBSETS && states == States::Subsets {
                assert_eq!(model.err(), Some(ModelError::LeftOut { feature: "subsets" }));
                continue;
            }
            let mut memory = [0.0; 256];
            let mut inference = Inference::new(model.unwrap(), &mut memory).unwrap();
            let found = inference.infer(&[0.0, 2.0]).unwrap();
            assert!(found.activity[0] < 0.1 && found.activity[1] > 0.999);
            assert!((found.mean[1] - 2.0 / 1.01).abs() < 1e-3);
            assert!(inference.is_fixed());
            let loud = inference.infer(&[0.0, 2000.0]).map(|found| found.mean[1] > 1900.0);
            assert_eq!(loud, if FLOATS { Ok(true) } else { Err(Error::OutOfRange) });
            // Nothing is left of it.
            assert!(inference.infer(&[0.0, 2.0]).unwrap().activity[1] > 0.999);
        }
    }

    #[test]
    fn kinds_are_told_apart_as_far_as_they_are_there() {
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
