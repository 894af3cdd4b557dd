//! Gaussian process regression of the posterior probabilities of all latents on the data [004 ch. 4].
//!
//! All latents share the kernel matrix K (N x N, with the white variance on its diagonal), so one factorisation gives the
//! affinity of every latent h to every point n: the prediction of `<s_h>` at y_n from all other points,
//!
//! ```text
//! affinity_nh = <s_h>_n - [K^-1 <s_h>]_n / [K^-1]_nn        [004 eq. 4.6, corrected index]
//! ```
//!
//! | module | has |
//! |---|---|
//! | [`kernel`] | linear, radial, bias and white parts |
//! | [`factor`] | K by incomplete Cholesky, affinities, predictions; cost linear in N |
//! | [`fit()`] | hyperparameters by marginal likelihood |

pub mod factor;
pub mod fit;
pub mod kernel;

pub use factor::Factor;
pub use fit::fit;
pub use kernel::{Kernel, KernelName};
