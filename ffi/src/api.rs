//! The functions of `include/spikelet.h`.
#![allow(unsafe_code)] // exported names; every dereference is in `pointers`
#![allow(clippy::missing_safety_doc)] // the documentation is the C header's: it says what callers promise

use crate::pointers::{create, open, put, slice, slice_mut};
use crate::types::{SPK_API_VERSION, SPK_BLOB_VERSION, SPK_OK, TEXTS, blob_status, status, used};
use crate::types::{SPK_ERR_BLOB_STREAM, SPK_ERR_LENGTH, SPK_ERR_SETTING};
use crate::types::{SPK_START_BEST, SPK_START_GREEDY, SPK_START_RANDOM};
use crate::types::{SPK_STATES_ADAPTIVE, SPK_STATES_SUBSETS, SPK_STATES_TABLE};
use crate::types::{spk_estimate, spk_gibbs, spk_info, spk_state, spk_status};
use core::ffi::{CStr, c_char, c_void};
#[cfg(feature = "spatial")]
use spikelet::SpatialModel;
use spikelet::model::States;
use spikelet::{Blob, BlobError, Engine, Estimate, Gibbs, Model, ModelError, Start, State};
use spikelet::{gibbs_state_bytes, state_bytes};

/// `?` on the inside, a status on the outside.
pub(crate) fn done(result: Result<(), spk_status>) -> spk_status {
    result.err().unwrap_or(SPK_OK)
}

/// # Safety
/// Unless NULL, `blob` points to `len` bytes that stay as they are during `'a`.
pub(crate) unsafe fn parse<'a>(blob: *const c_void, len: usize) -> Result<Blob<'a>, spk_status> {
    // SAFETY: promised by the caller.
    Blob::parse(unsafe { slice(blob.cast::<u8>(), len)? }).map_err(blob_status)
}

/// A model whose points are samples.
fn samples(model: Model<'_, f32>) -> Result<Model<'_, f32>, spk_status> {
    if model.is_transformed { Err(SPK_ERR_BLOB_STREAM) } else { Ok(model) }
}

/// Checks a blob and says what is in it.
///
/// @param blob      the blob, aligned to SPK_STATE_ALIGN bytes
/// @param blob_len  bytes readable there; more than the blob has is fine
/// @param info      filled in on success
/// @return SPK_OK, or why the blob is refused
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_inspect(
    blob: *const c_void,
    blob_len: usize,
    info: *mut spk_info,
) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller, as documented above.
        let model = unsafe { parse(blob, blob_len)? }.model();
        let (shape, operations) = (model.shape, model.operations());
        let (states_kind, expansions) = match shape.states {
            States::Adaptive { expansions } => (SPK_STATES_ADAPTIVE, u32::from(expansions)),
            States::Subsets => (SPK_STATES_SUBSETS, 0),
            States::Table => (SPK_STATES_TABLE, 0),
        };
        let found = spk_info {
            kind: shape.kind as u32,
            dims: shape.dims as u32,
            latents: shape.latents as u32,
            selected: shape.selected as u32,
            max_active: shape.max_active as u32,
            states_kind,
            expansions,
            states: shape.states(),
            operations: operations.total(),
            operations_loud: operations.refinement,
            state_size: state_bytes(shape),
        };
        // SAFETY: as above.
        unsafe { put(info, found) }
    })())
}

/// Bytes of memory that spk_init() needs for this blob; 0 when the blob is refused (spk_inspect()
/// says why). The same on every target, and in the exported model header as a macro.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_state_size(blob: *const c_void, blob_len: usize) -> usize {
    // SAFETY: promised by the caller: `blob` is NULL or points to `blob_len` readable bytes.
    unsafe { parse(blob, blob_len) }.map_or(0, |blob| state_bytes(blob.model().shape))
}

/// Checks a blob and makes a state for one stream of samples. Several states can share a blob.
///
/// @param memory      memory for the state, aligned to SPK_STATE_ALIGN bytes; it belongs to the state
///                    from now on. There is nothing to free: when done, just reuse it.
/// @param memory_len  bytes there, at least spk_state_size()
/// @param blob        the blob, aligned to SPK_STATE_ALIGN bytes. It is not copied: it must stay in
///                    place and unchanged as long as the state is used.
/// @param blob_len    bytes readable there
/// @param state       set on success
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT, SPK_ERR_MEMORY or a SPK_ERR_BLOB_ code; SPK_ERR_BLOB_STREAM for a model that
///         only spk_stream_init() takes
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_init(
    memory: *mut c_void,
    memory_len: usize,
    blob: *const c_void,
    blob_len: usize,
    state: *mut *mut spk_state,
) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller, as documented above.
        unsafe {
            put(state, core::ptr::null_mut())?;
            let model = samples(parse(blob, blob_len)?.model())?;
            put(state, create(memory, memory_len, spk_state::new(model, Engine::of_kind(model.shape.kind)))?)
        }
    })())
}

/// Bytes of memory that spk_init_gibbs() needs for this blob; 0 when the blob is refused. The same on every target.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_gibbs_state_size(blob: *const c_void, blob_len: usize) -> usize {
    // SAFETY: promised by the caller: `blob` is NULL or points to `blob_len` readable bytes.
    unsafe { parse(blob, blob_len) }.map_or(0, |blob| gibbs_state_bytes(blob.model().shape))
}

/// Settings to begin with: one chain from a greedy start, a half (SPK_KIND_GSC) or a third of its sweeps as burn-in, seed 0.
///
/// @param blob      the blob
/// @param blob_len  bytes readable there
/// @param sweeps    sweeps of the chain; 100 are a good start
/// @param settings  filled in on success; change what should be different
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT or a SPK_ERR_BLOB_ code
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_gibbs_settings(
    blob: *const c_void,
    blob_len: usize,
    sweeps: u32,
    settings: *mut spk_gibbs,
) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller, as documented above.
        let kind = unsafe { parse(blob, blob_len)? }.kind();
        let Gibbs { sweeps, burn_in, thinning, chains, extra, max_active, seed, .. } =
            Gibbs::new(kind, sweeps);
        let (start, extra, max_active) = (SPK_START_GREEDY, u32::from(extra), u32::from(max_active));
        let found = spk_gibbs { seed, sweeps, burn_in, thinning, chains, start, extra, max_active };
        // SAFETY: as above.
        unsafe { put(settings, found) }
    })())
}

/// spk_init() for a state whose posteriors are drawn by Gibbs sampling instead of summed over states: for many preselected
/// sources, with any number of them on. The work for a sample grows with `sweeps` times `chains` (`spikelet inspect` prints
/// it); nothing else of the interface changes.
///
/// @param memory      as in spk_init()
/// @param memory_len  bytes there, at least spk_gibbs_state_size()
/// @param blob        as in spk_init()
/// @param blob_len    bytes readable there
/// @param settings    from spk_gibbs_settings(); copied
/// @param state       set on success
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT, SPK_ERR_MEMORY, SPK_ERR_SETTING or a SPK_ERR_BLOB_ code
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_init_gibbs(
    memory: *mut c_void,
    memory_len: usize,
    blob: *const c_void,
    blob_len: usize,
    settings: *const spk_gibbs,
    state: *mut *mut spk_state,
) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller, as documented above.
        unsafe {
            put(state, core::ptr::null_mut())?;
            let model = samples(parse(blob, blob_len)?.model())?;
            let &[settings] = slice(settings, 1)? else { return Err(SPK_ERR_SETTING) };
            let engine = Engine::Gibbs(gibbs(settings)?);
            let made = create(memory, memory_len, spk_state::new(model, engine))?;
            // Settings that do not fit the model show when both are put together.
            let (header, arena) = open(made)?;
            used(&mut header.inference(arena))?;
            put(state, made)
        }
    })())
}

fn gibbs(settings: spk_gibbs) -> Result<Gibbs, spk_status> {
    let spk_gibbs { seed, sweeps, burn_in, thinning, chains, start, extra, max_active } = settings;
    let start = match start {
        SPK_START_GREEDY => Start::Greedy,
        SPK_START_RANDOM => Start::Random,
        SPK_START_BEST => Start::Best,
        _ => return Err(SPK_ERR_SETTING),
    };
    let small = |value: u32| u16::try_from(value).map_err(|_| SPK_ERR_SETTING);
    let (extra, max_active) = (small(extra)?, small(max_active)?);
    Ok(Gibbs { seed, sweeps, burn_in, thinning, chains, start, extra, max_active })
}

/// Makes the next sample number `number`. Samples are counted from 0, and the random numbers of a sampled state depend on the
/// seed and on this number only: any sample of a stream can be inferred again by itself. Others ignore it.
///
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT or SPK_ERR_STATE
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_seek(state: *mut spk_state, number: u64) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller: `state` is NULL or comes from spk_init() or spk_init_gibbs().
        let (state, arena) = unsafe { open(state)? };
        used(&mut state.inference(arena))?.seek(number);
        Ok(())
    })())
}

/// Infers the sources of one sample. Takes at most the work that spk_inspect() states, allocates
/// nothing and does not block. Not reentrant for one state; different states are independent.
///
/// @param state       from spk_init()
/// @param sample      the sample: `sample_len` finite numbers in the units the model was trained in
/// @param sample_len  the model's `dims`
/// @param estimate    filled in on success
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT, SPK_ERR_STATE, SPK_ERR_LENGTH, SPK_ERR_NOT_FINITE
///         or SPK_ERR_RANGE
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_process(
    state: *mut spk_state,
    sample: *const f32,
    sample_len: usize,
    estimate: *mut spk_estimate,
) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller, as documented above.
        let (state, arena) = unsafe { open(state)? };
        // SAFETY: as above.
        let sample = unsafe { slice(sample, sample_len)? };
        let mut inference = state.inference(arena);
        let found = used(&mut inference)?.infer(sample).map_err(status)?;
        // SAFETY: as above.
        unsafe { put(estimate, translate(&found)) }
    })())
}

/// spk_process() for a sample of integers, as an ADC or a sound file has them: the sample is `step` times these. With a
/// model of integers (spikelet quantize) and noise that is the same in all dimensions they are multiplied as they are.
///
/// @param state       from spk_init()
/// @param sample      the sample: `sample_len` integers
/// @param sample_len  the model's `dims`
/// @param step        what one step of the integers is in the units the model was trained in, above 0; 1/32768 for sound
///                    whose full scale is 1
/// @param estimate    filled in on success
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT, SPK_ERR_STATE, SPK_ERR_LENGTH, SPK_ERR_SETTING (the step) or
///         SPK_ERR_RANGE
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_process_i16(
    state: *mut spk_state,
    sample: *const i16,
    sample_len: usize,
    step: f32,
    estimate: *mut spk_estimate,
) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller, as documented above.
        let (state, arena) = unsafe { open(state)? };
        // SAFETY: as above.
        let sample = unsafe { slice(sample, sample_len)? };
        let mut inference = state.inference(arena);
        let found = used(&mut inference)?.infer_i16(sample, step).map_err(status)?;
        // SAFETY: as above.
        unsafe { put(estimate, translate(&found)) }
    })())
}

fn translate(found: &Estimate<'_, f32>) -> spk_estimate {
    spk_estimate {
        activity: found.activity.as_ptr(),
        mean: found.mean.as_ptr(),
        variance: found.variance.as_ptr(),
        selected: found.selected.as_ptr(),
        map_latents: found.map_latents.as_ptr(),
        map_values: found.map_values.as_ptr(),
        latents: found.activity.len() as u32,
        selected_len: found.selected.len() as u32,
        map_len: found.map_latents.len() as u32,
        evidence: found.evidence,
    }
}

/// The last sample without its noise: the dictionary times the posterior means; for SPK_KIND_MCA and SPK_KIND_SSMCA the mean of
/// the maximum, for which all states are visited once more unless they were sampled. Call it right after spk_process().
///
/// @param state    from spk_init()
/// @param out      filled with `out_len` numbers
/// @param out_len  the model's `dims`
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT, SPK_ERR_STATE or SPK_ERR_LENGTH
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_reconstruct(state: *mut spk_state, out: *mut f32, out_len: usize) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller, as documented above.
        let (state, arena) = unsafe { open(state)? };
        // SAFETY: as above.
        let out = unsafe { slice_mut(out, out_len)? };
        used(&mut state.inference(arena))?.reconstruct(out).map_err(status)
    })())
}

/// The squared distance of the last sample from each component of a mixture (SPK_KIND_GMM), in units of its noise: exact for the selected ones, for
/// the others as far as their scores tell. A sample that no component made is far from all. Call it right after spk_process().
///
/// @param state    from spk_init()
/// @param out      filled with `out_len` numbers
/// @param out_len  the model's `latents`
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT, SPK_ERR_STATE, SPK_ERR_LENGTH, or SPK_ERR_SETTING for other kinds
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_distances(state: *mut spk_state, out: *mut f32, out_len: usize) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller, as documented above.
        let (state, arena) = unsafe { open(state)? };
        // SAFETY: as above.
        let out = unsafe { slice_mut(out, out_len)? };
        let mut inference = state.inference(arena);
        let inference = used(&mut inference)?;
        if !inference.model().shape.kind.is_mixture() {
            return Err(SPK_ERR_SETTING);
        }
        let distances = inference.estimate().distance;
        if distances.len() != out.len() {
            return Err(SPK_ERR_LENGTH);
        }
        out.iter_mut().zip(distances).for_each(|(out, &distance)| *out = distance);
        Ok(())
    })())
}

/// Forgets the samples seen so far, as if the state had just been made.
///
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT or SPK_ERR_STATE
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_reset(state: *mut spk_state) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller: `state` is NULL or comes from spk_init().
        let (state, arena) = unsafe { open(state)? };
        state.state = State::default();
        arena.fill(0.0);
        Ok(())
    })())
}

/// Names the features of the library that a blob needs and that it was built without, after SPK_ERR_BLOB_LEFT_OUT: "gibbs,
/// integers".
///
/// @param blob      the blob, aligned to SPK_STATE_ALIGN bytes
/// @param blob_len  bytes readable there
/// @param text      filled with as much of the list as there is room for, and a NUL; empty when nothing is missing, and when
///                  the blob is refused for another reason
/// @param text_len  bytes there; 112 are enough for all features
/// @return SPK_OK when nothing is missing, SPK_ERR_BLOB_LEFT_OUT when the list is in `text`, SPK_ERR_NULL, SPK_ERR_LENGTH
///         (no room at all), or why the blob is refused
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_missing_features(
    blob: *const c_void,
    blob_len: usize,
    text: *mut c_char,
    text_len: usize,
) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller, as documented above.
        let text = unsafe { slice_mut(text.cast::<u8>(), text_len)? };
        text.fill(0);
        let room = text.len().checked_sub(1).ok_or(SPK_ERR_LENGTH)?;
        // SAFETY: as above.
        let bytes = unsafe { slice(blob.cast::<u8>(), blob_len)? };
        let refused = match Blob::parse(bytes) {
            #[cfg(feature = "spatial")]
            Err(BlobError::StreamOnly) if SpatialModel::is_one(bytes) => match SpatialModel::parse(bytes) {
                Ok(_) => return Ok(()),
                Err(refused) => refused,
            },
            Ok(_) | Err(BlobError::StreamOnly) => return Ok(()),
            Err(refused) => refused,
        };
        if let BlobError::Model(ModelError::LeftOut { features }) = refused {
            let (mut slots, mut before) = (text.iter_mut().take(room), "");
            for name in features.names() {
                for part in [before, name] {
                    part.bytes().zip(slots.by_ref()).for_each(|(byte, slot)| *slot = byte);
                }
                before = ", ";
            }
        }
        Err(blob_status(refused))
    })())
}

/// A status in words: a static, NUL-terminated English text, also for numbers that are no status.
#[unsafe(no_mangle)]
pub extern "C" fn spk_status_str(status: spk_status) -> *const c_char {
    let known = TEXTS.iter().find(|(code, _)| *code == status);
    known.map_or(c"not a status of this library", |(_, text): &(_, &CStr)| text).as_ptr()
}

/// SPK_API_VERSION of the library that is linked; compare it with the one of this header.
#[unsafe(no_mangle)]
pub extern "C" fn spk_api_version() -> u32 {
    SPK_API_VERSION
}

/// SPK_BLOB_VERSION of the library that is linked.
#[unsafe(no_mangle)]
pub extern "C" fn spk_blob_version() -> u32 {
    SPK_BLOB_VERSION
}
