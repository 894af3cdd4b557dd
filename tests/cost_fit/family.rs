//! Models that share weights: a kind, its encoding, and how posteriors are found.

use spikelet::model::Width;
use spikelet_trainer::parameters::ModelKind;
use spikelet_trainer::predict::Method;

/// What a name stands for.
pub struct Family {
    /// Such as `gsc-i16-table`.
    pub name: String,
    pub kind: ModelKind,
    pub width: Option<Width>,
    pub method: Method,
}

impl Family {
    pub fn parse(name: &str) -> Self {
        let kinds = [ModelKind::Gsc, ModelKind::Bsc, ModelKind::Nmf, ModelKind::Mca, ModelKind::Ssmca];
        let mut words = name.split('-');
        let first = words.next().unwrap_or_default();
        let kind = kinds.into_iter().find(|kind| kind.name() == first);
        let kind = kind.unwrap_or_else(|| panic!("{first}: no such kind"));
        let method = if kind == ModelKind::Gsc { Method::Kept } else { Method::Grown };
        let mut family = Self { name: name.into(), kind, width: None, method };
        for word in words {
            match word {
                "i16" => family.width = Some(Width::I16),
                "i8" => family.width = Some(Width::I8),
                "fixed" => family.method = Method::Fixed,
                "deep" => family.method = Method::Grown,
                "table" => family.method = Method::Table,
                "gibbs" => family.method = Method::Chains,
                other => panic!("{other}: neither integers nor a method"),
            }
        }
        family
    }
}
