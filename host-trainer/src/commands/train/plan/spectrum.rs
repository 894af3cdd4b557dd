//! What of the flags there is for sources of spectra.

use super::Plan;

impl Plan {
    /// Most iterations.
    pub fn iterations(&self) -> usize {
        self.iterations
    }

    /// A flag that was given and has no meaning for them.
    pub fn given_beside_spectrum(&self) -> Option<&'static str> {
        let flags = [
            ("--from", self.from.is_some()),
            ("--engine", self.engine.is_some()),
            ("--selected", self.selected.is_some()),
            ("--max-active", self.max_active.is_some()),
            ("--sweeps", self.sweeps.is_some()),
            ("--chains", self.chains.is_some()),
            ("--extra", self.extra.is_some()),
            ("--no-singletons", self.no_singletons),
            ("--noise", self.noise.is_some()),
            ("--slab", self.slab.is_some()),
            ("--prior", self.prior.is_some()),
            ("--pi", self.pi.is_some()),
            ("--sigma2", self.sigma2.is_some()),
            ("--mu", self.mu.is_some()),
            ("--psi2", self.psi2.is_some()),
            ("--fix-slab", self.fix_slab),
            ("--fix", !self.fix.is_empty()),
            ("--rule", self.rule.is_some()),
            ("--temperature", self.temperature.is_some()),
            ("--parameter-noise", self.parameter_noise.is_some()),
            ("--cut", self.cut.is_some()),
            ("--whiten", self.whiten),
            ("--weak", self.weak.is_some()),
            ("--batch", self.batch.is_some()),
            ("--init", self.init.is_some()),
            ("--restarts", self.restarts.is_some()),
            ("--tolerance", self.tolerance.is_some()),
            ("--holdout", self.holdout.is_some()),
        ];
        flags.iter().find(|(_, is_given)| *is_given).map(|(flag, _)| *flag)
    }
}
