//! A blob back to the parameters it was made from, with the precision of `f32`: what writing it in another encoding needs.
//!
//! Everything is in the blob in one form or another: pi as its logit, Sigma as its inverse Cholesky factor, a full slab as the
//! inverses of its 1 x 1 and 2 x 2 blocks in the table of states (with one latent on at most, what is between two latents
//! does not matter, and is taken as zero).

use crate::linalg::covariance_of;
use crate::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use crate::prepare::{GramName, Options, SelectionName, StatesName};
use spikelet::blob::{Blob, Slab};
use spikelet::model::{Kind, Model, Noise, PANEL, Selection, StateTable, States};

/// Scores that were learned beside the parameters, if latents are selected by them. (D x H)
pub(super) fn learned_scores(model: &Model<'_, f32>) -> Option<Vec<f64>> {
    let Selection::Learned { weights } = model.selection else { return None };
    Some(unpacked(weights, model.shape.dims, model.shape.latents))
}

/// A matrix in the layout of the dictionary. (D x H, row-major)
fn unpacked(packed: &[f32], d: usize, h: usize) -> Vec<f64> {
    let entry = |e: usize| packed[((e % h / PANEL) * d + e / h) * PANEL + e % h % PANEL];
    (0..d * h).map(|e| f64::from(entry(e))).collect()
}

/// Parameters and options of a blob of a kind that can be made.
pub(super) fn recover(blob: &Blob<'_>) -> Option<(Parameters, Options)> {
    recover_as(blob, blob.model())
}

/// The same with `model`, which is that of the blob with other states.
pub(super) fn recover_as(blob: &Blob<'_>, model: Model<'_, f32>) -> Option<(Parameters, Options)> {
    let (d, h) = (model.shape.dims, model.shape.latents);
    let wide = |values: &[f32]| values.iter().map(|&v| f64::from(v)).collect::<Vec<f64>>();
    let kind = match model.shape.kind {
        Kind::Gsc => ModelKind::Gsc,
        Kind::Bsc => ModelKind::Bsc,
        Kind::Nmf => ModelKind::Nmf,
        Kind::Mca => ModelKind::Mca,
        Kind::Ssmca => ModelKind::Ssmca,
        Kind::Gmm => ModelKind::Gmm,
        _ => return None,
    };
    let mut dictionary = vec![0.0; d * h];
    for k in 0..h {
        for (i, w) in model.column(k).enumerate() {
            dictionary[i * h + k] = f64::from(w);
        }
    }
    let psi2 = || model.slab_precision.iter().map(|&p| 1.0 / f64::from(p)).collect();
    let parameters = Parameters {
        kind,
        dims: d,
        latents: h,
        dictionary,
        prior: match kind {
            // A single component's is 1, which no prior may be.
            ModelKind::Gmm => wide(model.prior_logit).iter().map(|l| l.exp().min(1.0 - 1e-9)).collect(),
            _ => wide(model.prior_logit).iter().map(|l| 1.0 / (1.0 + (-l).exp())).collect(),
        },
        slab_mean: wide(model.slab_mean),
        slab_cov: match (blob.slab(), model.table) {
            (Slab::Unit | Slab::None, _) => SlabCov::Unit,
            (Slab::Full, Some(table)) => SlabCov::Full(full_slab(&model, &table)),
            _ => SlabCov::Diagonal(psi2()),
        },
        noise: match model.noise {
            _ if kind == ModelKind::Gmm && matches!(model.selection, Selection::Independent { .. }) => {
                let Selection::Independent { precision, .. } = model.selection else { return None };
                NoiseCov::Components(unpacked(precision, d, h).iter().map(|p| 1.0 / p).collect())
            }
            Noise::Shared(precision) => NoiseCov::Shared(1.0 / f64::from(precision)),
            Noise::Diagonal(precisions) => {
                NoiseCov::Diagonal(precisions.iter().map(|&p| 1.0 / f64::from(p)).collect())
            }
            Noise::Full(factor) => NoiseCov::Full(covariance_of(&wide(factor), d)),
        },
    };
    let options = Options {
        selected: model.shape.selected,
        max_active: model.shape.max_active,
        singletons: model.shape.singletons,
        selection: match model.selection {
            Selection::Singleton | Selection::Independent { .. } if kind == ModelKind::Gmm => {
                SelectionName::Singleton
            }
            Selection::Singleton => SelectionName::Singleton,
            Selection::Independent { .. } => SelectionName::Independent,
            Selection::Cosine { .. } => SelectionName::Cosine,
            Selection::Bound => SelectionName::Bound,
            // Which the caller puts back: they are beside the parameters.
            Selection::Learned { .. } => SelectionName::of_kind(kind),
        },
        states: Some(match model.shape.states {
            States::Adaptive { .. } => StatesName::Adaptive,
            States::Subsets => StatesName::Subsets,
            States::Table => StatesName::Table,
        }),
        expansions: match model.shape.states {
            States::Adaptive { expansions } => usize::from(expansions),
            States::Subsets | States::Table => Options::EXPANSIONS,
        },
        gram: match model.gram {
            _ if model.shape.kind.is_maximal() || kind == ModelKind::Gmm => GramName::Auto,
            Some(_) => GramName::Stored,
            None => GramName::Computed,
        },
    };
    Some((parameters, options))
}

/// Psi, from K of every latent and every pair of them.
fn full_slab(model: &Model<'_, f32>, table: &StateTable<'_, f32>) -> Vec<f64> {
    let h = model.shape.latents;
    let number = |at: usize| table.records.get(at).map_or(0.0, |&v| f64::from(v));
    let mut psi = vec![0.0; h * h];
    let single = StateTable::<f32>::record_len(1, true);
    for k in 0..h {
        psi[k * h + k] = 1.0 / number(k * single + 2);
    }
    let pair = StateTable::<f32>::record_len(2, true);
    if model.shape.max_active > 1 {
        for i in 0..h {
            for j in 0..i {
                // Constant, three numbers of the factor, then K_jj, K_ij, K_ii.
                let at = h * single + (i * (i - 1) / 2 + j) * pair + 4;
                let [a, b, c] = [at, at + 1, at + 2].map(number);
                let between = -b / (a * c - b * b);
                (psi[i * h + j], psi[j * h + i]) = (between, between);
            }
        }
    }
    psi
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::write;
    use crate::prepare::Prepared;

    /// What was recovered makes the same blob again, to rounding.
    #[test]
    fn a_blob_comes_back() {
        let (d, h) = (5, 4);
        let number = |at: usize| ((at * 37 % 23) as f64 - 11.0) / 7.0;
        let near = |n: usize, scale: f64| -> Vec<f64> {
            let entry = |at: usize| (at / n, at % n);
            let decay = |(i, j): (usize, usize)| scale * (-(i as f64 - j as f64).abs()).exp();
            (0..n * n).map(|at| decay(entry(at))).collect()
        };
        let full = Parameters {
            kind: ModelKind::Gsc,
            dims: d,
            latents: h,
            dictionary: (0..d * h).map(number).collect(),
            prior: vec![0.1, 0.2, 0.3, 0.4],
            slab_mean: (0..h).map(number).collect(),
            slab_cov: SlabCov::Full(near(h, 2.0)),
            noise: NoiseCov::Full(near(d, 0.1)),
        };
        let diagonal = Parameters {
            slab_cov: SlabCov::Diagonal(vec![0.5, 1.0, 1.5, 2.0]),
            noise: NoiseCov::Diagonal(vec![0.1, 0.2, 0.3, 0.4, 0.5]),
            ..full.clone()
        };
        let options = Options {
            selected: 4,
            max_active: 3,
            singletons: true,
            selection: SelectionName::Singleton,
            states: None,
            expansions: Options::EXPANSIONS,
            gram: GramName::Stored,
        };
        for parameters in [full, diagonal] {
            let bytes =
                write(&Prepared::new(&parameters, &options).unwrap(), &parameters.slab_cov, "").unwrap();
            let file = super::super::model_file::ModelFile::new("test".into(), &bytes);
            let (found, again) = recover(&file.blob().unwrap()).unwrap();
            assert_eq!((again.selected, again.max_active, again.gram), (4, 3, GramName::Stored));
            let close = |a: &[f64], b: &[f64]| {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 2e-6 * (1.0 + b.abs()))
            };
            assert!(
                close(&found.dictionary, &parameters.dictionary) && close(&found.prior, &parameters.prior)
            );
            match (&found.slab_cov, &parameters.slab_cov) {
                (SlabCov::Full(a), SlabCov::Full(b)) | (SlabCov::Diagonal(a), SlabCov::Diagonal(b)) => {
                    assert!(close(a, b), "{a:?} {b:?}");
                }
                other => panic!("{other:?}"),
            }
            match (&found.noise, &parameters.noise) {
                (NoiseCov::Full(a), NoiseCov::Full(b)) | (NoiseCov::Diagonal(a), NoiseCov::Diagonal(b)) => {
                    assert!(close(a, b), "{a:?} {b:?}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
