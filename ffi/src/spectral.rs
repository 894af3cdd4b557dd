//! The functions of `include/spikelet.h` for streams of sources in one channel.
#![allow(unsafe_code)] // exported names; every dereference is in `pointers`
#![allow(clippy::missing_safety_doc)] // the documentation is the C header's: it says what callers promise
#![allow(non_camel_case_types)] // C's names

use crate::api::done;
use crate::pointers::put;
use crate::stream::{spectral_stream, spk_stream};
use crate::types::{SPK_ERR_SETTING, spk_status};

/// Limits by how many dB other sources are reduced in the signal of one, for models of sources in one channel. At first all is taken away that
/// is recognised as theirs; a little of it hides errors: 10 to 15 dB sound more natural. Takes effect with the next frame, without
/// a click in between, and stays until it is changed, over spk_stream_reset() too.
///
/// @param stream    from spk_stream_init()
/// @param decibels  0, which puts out the input in every signal, or more; 200 and more take all away
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT, SPK_ERR_STATE, or SPK_ERR_SETTING (not such a number, or another kind of model)
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_stream_set_reduction(stream: *mut spk_stream, decibels: f32) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller: `stream` is NULL or comes from spk_stream_init().
        let mut stream = unsafe { spectral_stream(stream)? };
        if decibels.is_nan() || decibels < 0.0 {
            return Err(SPK_ERR_SETTING);
        }
        stream.set_reduction(decibels);
        Ok(())
    })())
}

/// What was heard in the last frame, by models of sources in one channel.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct spk_stream_score {
    /// How badly the model explains the last frames, in nats; 0 before the first.
    pub score: f32,
    /// What usual sound exceeds at the chosen rate.
    pub threshold: f32,
    /// 1 when the score is above the threshold, else 0.
    pub is_above: u32,
}

/// Says how unusual the last frames were, and whether that is an alarm, for models of sources in one channel that know what is usual
/// (`spikelet eval --calibrate`). Changes every `hop` samples.
///
/// @param stream        from spk_stream_init()
/// @param false_alarms  the part of frames of usual sound that may be above the threshold, such as 0.01
/// @param score         set on success
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT, SPK_ERR_STATE, or SPK_ERR_SETTING (another kind of model, one that was not calibrated, or
///         not with enough sound for so small a rate)
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_stream_get_score(
    stream: *mut spk_stream,
    false_alarms: f32,
    score: *mut spk_stream_score,
) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller: `stream` is NULL or comes from spk_stream_init().
        let stream = unsafe { spectral_stream(stream)? };
        let found = stream.score();
        let threshold = stream.model().threshold(false_alarms).ok_or(SPK_ERR_SETTING)?;
        let is_above = u32::from(found > threshold);
        // SAFETY: promised by the caller: NULL or room for a score.
        unsafe { put(score, spk_stream_score { score: found, threshold, is_above }) }
    })())
}

/// The probability that a source was to be heard in the last frame, for models of sources in one channel. Changes every `hop` samples.
///
/// @param stream    from spk_stream_init()
/// @param group     below the stream's `groups`
/// @param activity  set on success, 0 to 1
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT, SPK_ERR_STATE, or SPK_ERR_SETTING (no such source, or another kind of model)
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_stream_get_activity(
    stream: *mut spk_stream,
    group: u32,
    activity: *mut f32,
) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller: `stream` is NULL or comes from spk_stream_init().
        let stream = unsafe { spectral_stream(stream)? };
        if group as usize >= stream.groups() {
            return Err(SPK_ERR_SETTING);
        }
        // SAFETY: promised by the caller: NULL or room for a number.
        unsafe { put(activity, stream.activity(group as usize)) }
    })())
}
