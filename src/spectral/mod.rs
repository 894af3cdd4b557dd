//! Two or more sources in one channel: a voice and its noise, told apart by which is louder where.
//!
//! In a compressed spectrum the louder source hides the other, so that a mixture is the *maximum* of its sources [002, maximal
//! causes], here of groups of latents of which exactly one is on. A group is a source, a latent one of its typical spectra. For
//! every frame of a short-time Fourier transform ([`crate::stft`]) X, with a_f = 20 c |X_f| / L, so that a sine of amplitude 1
//! gives 5 c:
//!
//! ```text
//! v_d = max(sqrt(sum_f P_df a_f^2), floor)^p                                            bands d of a frame, compressed
//! l_s = -sum_d (v_d - max(floor^p, max_h g_h^p W_h,s_h,d))^2 / (2 sigma^2) + sum_h ln alpha_h(s_h)      s_h: which latent of group h is on
//! alpha_h = (1 - lambda) prior_h + lambda T_h^T q_h                                      q_h: the posterior of the frame before
//! M_hf = sum_s q_s g_h^2 U_h,s_h,f / sum_j g_j^2 U_j,s_j,f                               the part of source h, U the second dictionary
//! x_h = M_h X
//! ```
//!
//! **Selection by partners.** Whether a latent fits shows only beside what else is on. For each group in turn all its latents are
//! tried beside three backgrounds: at first the two most expected latents of the other groups and the one that fits best alone
//! (where the first source is quietest), then the best of those groups that had their turn. The 8 best of each of two groups make
//! 64 states, whose posterior is exact (5 of three groups, 3 of four). All 4096 pairs of 64 latents give the same to 0.03 dB.
//! Spectra in bytes are compared band after band, those that are among the best with the gains before first, and no further than
//! it takes to see that one is not among the best: that leaves out half of the work and changes nothing. Of q only what is above
//! 10^-4 leads to successors, and masks are made of the 8 most probable states, of 4 where a filter has at most half of the
//! weight.
//!
//! **Offset.** What is constant in the samples, as converters add it, is taken out of a frame before and divided evenly among the
//! sources after: the mean of X_0 over the last 125 frames, and minus half of it in X_1. The X_0 of a single frame will not do:
//! fans and knocks have much of their power there.
//!
//! **Levels.** c makes the mean power of the input G, the number of sources, as if each had the power 1 that it was learned at.
//! Their ratio is unknown: for each of a few vectors of gains g a filter of its own runs, and their masks are averaged by
//! softmax(E), where E <- 0.98 E + 0.3 ln sum_s e^{l_s}.
//!
//! **Events and anomalies.** The same posterior says which sources are to be heard ([`SpectralStream::activity`]), and the
//! evidence of a frame whether it is like what the model was learned from ([`SpectralStream::score`]).
//!
//! **Blob.** Kind 8 in the format of [`crate::blob`]; D is the number of bands and H that of all latents, the encoding f32 or i8,
//! other fields of the header 0. Sections:
//!
//! | tag | holds |
//! |---|---|
//! | `SPEC` | f32 floor, p, lambda; u32 R, successors of a latent; u32 bins that have an entry in `MASK` each, above which two share one; f32 scale of bytes in `CODE`, 0 for f32 |
//! | `SRCS` | for each group u32 latents, f32 sigma, f32 mean power of what it was learned from; sigma^2 of the model is the mean of the groups' |
//! | `GAIN` | g of every filter, G f32 each |
//! | `BAND` | for each band f32 lo, rise, hi, fall: P_df = max(0, min((f - lo) rise, (hi - f) fall)) |
//! | `CODE` | W, a row of D for each latent; f32, or bytes that are multiplied with the scale |
//! | `MASK` | U, a row of bytes for each latent: 10^-5 10^{0.0375 byte} |
//! | `PRIO` | prior, f32 |
//! | `NEXT` | T: for each latent R times u8 latent of its group, u8 255 times its probability; what is left goes to the prior |
//! | `norm` | what scores are usual, where it was measured: pairs of f32, the rate of frames above a score and that score, rates falling and scores not |
//! | `fram` | form 4, the transform; K may be L/2 |
//! | `grps`, `prov` | as there |
//!
//! Work, every K samples: 1 + G real transforms of L samples, and for each filter at most about 3 D (H + K_1) + 64 D operations
//! on bands for two groups, H logarithms, and 4 or 8 divisions for each entry of a row of `MASK`. Memory:
//! [`SpectralStream::memory_len`].

mod bands;
mod distance;
#[cfg(spikelet_dsp)]
mod dsp;
mod filter;
mod level;
mod model;
mod stream;
#[cfg(test)]
mod tests;
mod watch;

pub use crate::stream::frames::stream_bytes;
pub use bands::{Band, compress, frame_power};
pub use model::{
    MASK_BASE, MASK_STEP, MOST_BANDS, MOST_FILTERS, MOST_LATENTS, MOST_SOURCES, SpectralModel, mask_len,
};
pub use stream::SpectralStream;
