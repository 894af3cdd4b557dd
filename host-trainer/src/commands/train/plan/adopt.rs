//! Kind, latents and settings of a run, from flags alone or from the model that it goes on from.

use super::super::from::Model;
use super::{Engine, Latents, Plan, Precision, Switch, Trained};
use crate::parameters::ModelKind;
use crate::pictures::Sizes;
use crate::{Error, Result};

impl Plan {
    /// Takes kind and number of latents from the flags.
    pub fn resolve(&mut self) -> Result<()> {
        let lacks = |flag: &str, advice: &str| Error::input("nothing says what to learn", flag, advice);
        let model = self
            .given_model
            .ok_or_else(|| lacks("--model", "name a kind, such as gsc; `spikelet advise DATA` says which"))?;
        self.model = model.kind().unwrap_or_default();
        let latents = self.given_latents.ok_or_else(|| {
            lacks("--latents", "say how many to learn; `spikelet advise DATA` looks for a number")
        })?;
        self.latents = latents.count()?;
        Ok(())
    }

    /// Whether pictures of a size that is left open can be learned from with these flags: as gsc, which is what they get unless told
    /// otherwise.
    pub fn suits_pictures(&self) -> bool {
        matches!(self.given_model, None | Some(Trained::Points(ModelKind::Gsc)))
    }

    /// Whether flags say both kind and number of latents.
    pub fn is_complete(&self) -> bool {
        self.given_model.is_some() && self.given_latents.is_some()
    }

    /// Takes what no flag says from what pictures ask for. True if the number of latents is among it.
    pub fn fill_in(&mut self, sizes: &Sizes) -> bool {
        let is_open = self.given_latents.is_none();
        self.given_model.get_or_insert(Trained::Points(ModelKind::Gsc));
        self.given_latents.get_or_insert(Latents::Count(sizes.latents));
        self.precision.get_or_insert(Precision::F32);
        self.batch.get_or_insert(sizes.batch);
        if sizes.noise > 0.0 {
            self.sigma2.get_or_insert(sizes.noise * sizes.noise);
        }
        is_open
    }

    /// Takes everything that no flag says from a model. There is nothing to cool down and one start only.
    pub fn adopt(&mut self, model: &Model) -> Result<()> {
        let (kind, latents) = (model.parameters.kind, model.parameters.latents);
        let refuse =
            |what: String, flag: &str| Err(Error::input(what, flag, "leave it out, or train without --from"));
        if let Some(given) = self.given_model.and_then(Trained::kind).filter(|given| *given != kind) {
            let what = format!("the model to go on from is of kind {}, not {}", kind.name(), given.name());
            return refuse(what, "--model");
        }
        let given = self.given_latents.map(Latents::count).transpose()?;
        if let Some(given) = given.filter(|given| usize::from(*given) != latents) {
            return refuse(
                format!("the model to go on from has {latents} latents, not {given}"),
                "--latents",
            );
        }
        if self.restarts.is_some_and(|starts| starts > 1) {
            return refuse("all starts from one model would be the same".into(), "--restarts");
        }
        self.model = kind;
        self.latents = u16::try_from(latents).map_err(|_| {
            Error::input(format_args!("{latents} latents are too many"), model.path.display(), "use fewer")
        })?;
        self.restarts = Some(1);
        self.temperature = self.temperature.or(Some((1.0, 1.0)));
        self.parameter_noise = self.parameter_noise.or(Some(0.0));
        self.noise = self.noise.or(Some(model.noise_form()));
        if kind.kind().has_slab() {
            self.slab = self.slab.or(Some(model.slab_form()));
        }
        let Some(settings) = &model.settings else { return Ok(()) };
        if kind == ModelKind::Nmf {
            self.rule = self.rule.or(Some(settings.rule));
        }
        let same_engine = self.engine.is_none_or(|engine| engine == settings.engine);
        let is_open = self.selected.is_none() && self.max_active.is_none();
        if same_engine && (is_open || settings.engine != Engine::Exact) {
            self.engine = Some(settings.engine);
            if settings.is_adaptive() {
                self.states = self.states.or(Some(settings.states));
                self.expansions = self.expansions.or(u16::try_from(settings.expansions).ok());
            }
            // A mixture that looks at all its components says of how many it tells; asked for, they would be all it keeps.
            let tells_all = settings.model.kind().is_mixture() && settings.singletons;
            if settings.engine != Engine::Exact && is_open && !tells_all {
                (self.selected, self.max_active) = (Some(settings.selected), Some(settings.max_active));
            }
            if settings.engine == Engine::Gibbs {
                self.sweeps = self.sweeps.or(Some(settings.sweeps));
                self.chains = self.chains.or(Some(settings.chains));
                self.extra = self.extra.or(Some(settings.extra));
            }
        }
        self.no_singletons |= !settings.singletons && settings.gp.is_none();
        self.prior = self.prior.or(Some(settings.prior));
        self.cut = self.cut.or(Some(if settings.cut { Switch::On } else { Switch::Off }));
        self.weak = self.weak.or(Some(settings.weak));
        if self.fix.is_empty() {
            self.fix.clone_from(&settings.fixed);
        }
        Ok(())
    }
}
