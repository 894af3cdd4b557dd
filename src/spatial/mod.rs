//! Sources on spaced microphones in a room: delays and echoes, and more sources than microphones.
//!
//! One matrix for all frequencies cannot express a delay. So every bin f of a short-time Fourier transform ([`crate::stft`]) has its own
//! model, complex and without a scale; a source is a group of D columns that share one spike:
//!
//! ```text
//! y_ft = gamma_ft sum_h sqrt(l(s_h)) c_h,   c_h ~ CN(0, R_hf),   l(1) = 1, l(0) = eps
//! C_s  = sum_h l(s_h) R_h + delta I,  delta I -> I where all are off: a diffuse background
//! p(s | y) ~ pi_s det(C_s)^-1 (y^H C_s^-1 y)^-D e^{beta sum_h s_h (abar_h - m_h)}
//! x_h = R_h[m, :] (sum_s p_s l(s_h) C_s^-1) y                                     the image of source h at microphone m
//! ```
//!
//! R_hf is Hermitian, D x D and of full rank: it holds where a source is and how far its echoes smear that. gamma is improper, so that
//! loudness does not matter. All 2^H states are summed over, H <= 4 on D <= 4 microphones. abar_h is the activity of the frame before,
//! averaged over three bins, m_h its mean in training: what was on stays on, and nothing of the future is needed.
//!
//! The blob holds Cholesky factors of R_h, so that whatever the bytes are, C_s can be inverted. Nothing of a bin is kept from frame to
//! frame except activities: two microphones have closed forms, so that 2^H inverses of every bin would only take memory and flash reads.
//!
//! **Blob.** Kind 7 in the format of [`crate::blob`]; D and H as there, the encoding f32 or i16, other fields of the header 0. Sections:
//!
//! | tag | holds |
//! |---|---|
//! | `ROOM` | u32 microphone that is put out; f32 eps, beta, delta; f32 scale of integers, 0 for f32; f32 rate at which parameters follow, 0 for never |
//! | `SPAT` | for each of L/2 + 1 bins: H factors of D^2 numbers ([`Bin::factors`]), pi0, m_h (H); integers are multiplied with the scale, pi0 and m with 2^-15 |
//! | `fram` | form 4, the transform |
//! | `grps`, `prov` | as there; every source is a group |
//!
//! Work, every K samples: D + H real transforms of L samples, and for each of the L/2 + 1 bins 2^H states, each a division and some 10
//! multiply-adds for D = 2, a factorisation of D x D for more. Memory: [`SpatialStream::memory_len`].
//!
//! Parameters are as they were trained, or on two microphones follow sources that move slowly, where the model says so
//! ([`SpatialModel::following`]): more work and memory, bounded, and [`FrameStream::reset`](crate::stream::SourceStream::reset) goes back.

mod array;
mod bin;
mod follow;
mod model;
mod pair;
mod stream;
#[cfg(test)]
mod tests;

pub use crate::stream::frames::stream_bytes;
pub use bin::{Bin, Complex, Constants, Found, MOST_MICROPHONES, MOST_SOURCES, MOST_STATES, Posterior};
pub use model::{SpatialModel, record_len};
pub use stream::SpatialStream;
