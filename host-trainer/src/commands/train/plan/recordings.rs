//! Models of whole recordings (`--model spatial`, `--transform spectrum`) have few settings.

use super::Plan;
use crate::train::Prefer;

impl Plan {
    /// A flag that was given and that only models of points have a use for.
    pub fn given_for_points(&self) -> Option<&'static str> {
        let flags = [
            (self.from.is_some(), "--from"),
            (self.engine.is_some(), "--engine"),
            (self.states.is_some(), "--states"),
            (self.selected.is_some(), "--selected"),
            (self.max_active.is_some(), "--max-active"),
            (self.sweeps.is_some(), "--sweeps"),
            (self.chains.is_some(), "--chains"),
            (self.extra.is_some(), "--extra"),
            (self.selection.is_some(), "--selection"),
            (self.kernel.is_some(), "--kernel"),
            (self.kernel_every.is_some(), "--kernel-every"),
            (self.kernel_rank.is_some(), "--kernel-rank"),
            (self.no_singletons, "--no-singletons"),
            (self.noise.is_some(), "--noise"),
            (self.slab.is_some(), "--slab"),
            (self.prior.is_some(), "--prior"),
            (self.pi.is_some(), "--pi"),
            (self.sigma2.is_some(), "--sigma2"),
            (self.mu.is_some(), "--mu"),
            (self.psi2.is_some(), "--psi2"),
            (self.fix_slab, "--fix-slab"),
            (!self.fix.is_empty(), "--fix"),
            (self.rule.is_some(), "--rule"),
            (self.temperature.is_some(), "--temperature"),
            (self.parameter_noise.is_some(), "--parameter-noise"),
            (self.cut.is_some(), "--cut"),
            (self.whiten, "--whiten"),
            (self.weak.is_some(), "--weak"),
            (self.precision.is_some(), "--precision"),
            (self.batch.is_some(), "--batch"),
            (self.init.is_some(), "--init"),
            (self.restarts.is_some(), "--restarts"),
            (self.prefer != Prefer::FreeEnergy, "--prefer"),
            (self.tolerance.is_some(), "--tolerance"),
            (self.holdout.is_some(), "--holdout"),
        ];
        flags.iter().find(|(given, _)| *given).map(|(_, flag)| *flag)
    }
}
