//! What crosses the border: status codes, results, the opaque state.
#![allow(non_camel_case_types)] // C's names

use crate::pointers::Header;
use spikelet::{BlobError, Detail, Engine, Error, Inference, Model, ModelError, STATE_BASE, State};

/// Result of every call that can fail: SPK_OK or one of the negative SPK_ERR_ codes.
/// A code never changes its meaning; spk_status_str() puts it in words.
pub type spk_status = i32;

/// Done.
pub const SPK_OK: spk_status = 0;
/// A pointer that must not be NULL is.
pub const SPK_ERR_NULL: spk_status = -1;
/// Memory, blob or sample do not start on the boundary they need (8, 8 and 4 bytes; 2 for a sample of integers).
pub const SPK_ERR_ALIGNMENT: spk_status = -2;
/// The memory is smaller than spk_state_size() says.
pub const SPK_ERR_MEMORY: spk_status = -3;
/// The state was not initialised by spk_init(), or was overwritten.
pub const SPK_ERR_STATE: spk_status = -4;
/// An array does not have as many entries as the model says.
pub const SPK_ERR_LENGTH: spk_status = -5;
/// NaN or infinity in the sample. The results of the sample before are still there.
pub const SPK_ERR_NOT_FINITE: spk_status = -6;
/// The sample is finite, but too large for the precision of the model. There are no results.
pub const SPK_ERR_RANGE: spk_status = -7;
/// An invalid setting of the sampler or step of a sample, a model that cannot be sampled, or one that cannot run as a
/// stream.
pub const SPK_ERR_SETTING: spk_status = -8;
/// The memory for input and for output of a stream overlap.
pub const SPK_ERR_OVERLAP: spk_status = -9;
/// Fewer bytes than the blob says it has.
pub const SPK_ERR_BLOB_TRUNCATED: spk_status = -20;
/// The bytes are not a Spikelet blob.
pub const SPK_ERR_BLOB_MAGIC: spk_status = -21;
/// The blob has a format version that this library does not know.
pub const SPK_ERR_BLOB_VERSION: spk_status = -22;
/// The blob was damaged: its checksum does not fit.
pub const SPK_ERR_BLOB_CHECKSUM: spk_status = -23;
/// The blob needs something this library does not know: a model kind, an encoding, a section.
pub const SPK_ERR_BLOB_UNKNOWN: spk_status = -24;
/// The sections of the blob are inconsistent.
pub const SPK_ERR_BLOB_SECTION: spk_status = -25;
/// The parameters in the blob do not make a model.
pub const SPK_ERR_BLOB_MODEL: spk_status = -26;
/// The model preselects or activates more latents than this library was built for.
pub const SPK_ERR_BLOB_CAPACITY: spk_status = -27;
/// The model needs features that this library was built without: spk_missing_features() says which.
pub const SPK_ERR_BLOB_LEFT_OUT: spk_status = -28;
/// The model takes coefficients of a transform or sound of spaced microphones, not samples: use spk_stream_init().
pub const SPK_ERR_BLOB_STREAM: spk_status = -29;

/// Version of this interface: the functions, types and codes of this header.
pub const SPK_API_VERSION: u32 = 2;
/// Version of the blob format that this library reads.
pub const SPK_BLOB_VERSION: u32 = 1;
/// Alignment in bytes of the memory for a state and of a blob.
pub const SPK_STATE_ALIGN: usize = 8;

/// One stream of samples. Opaque; lives in memory of the caller. It may be copied or moved as bytes
/// (to memory with the same alignment) as long as the blob stays where it is.
#[repr(C, align(8))]
pub struct spk_state {
    magic: u32,
    /// Numbers of the arena, computed once.
    arena_len: u32,
    pub(crate) model: Model<'static, f32>,
    pub(crate) engine: Engine,
    pub(crate) state: State<f32>,
}

impl spk_state {
    #[inline(never)]
    pub(crate) fn new(model: Model<'static, f32>, engine: Engine) -> Self {
        let arena_len = engine.arena_len(model.shape, Detail::Marginals) as u32;
        Self { magic: Self::MAGIC, arena_len, model, engine, state: State::default() }
    }

    /// What infers the next sample; see [`used`].
    #[inline(never)]
    pub(crate) fn inference<'a>(&'a mut self, arena: &'a mut [f32]) -> Result<Inference<'a, f32>, Error> {
        Inference::over(&self.model, self.engine, arena, &mut self.state)
    }
}

/// It is used where it was made: taking it out would copy it, for every sample.
pub(crate) fn used<'x, 'a>(
    made: &'x mut Result<Inference<'a, f32>, Error>,
) -> Result<&'x mut Inference<'a, f32>, spk_status> {
    made.as_mut().map_err(|&mut error| status(error))
}

impl Header for spk_state {
    const MAGIC: u32 = 0x5350_4b01;
    const BASE: usize = STATE_BASE;

    fn magic(&self) -> u32 {
        self.magic
    }

    fn arena_len(&self) -> usize {
        self.arena_len as usize
    }
}

const _: () = assert!(size_of::<spk_state>() <= STATE_BASE, "raise spikelet::STATE_BASE");
const _: () =
    assert!(align_of::<spk_state>() == SPK_STATE_ALIGN && STATE_BASE.is_multiple_of(SPK_STATE_ALIGN));

/// States are found by search around a greedy reference.
pub const SPK_STATES_ADAPTIVE: u32 = 2;
/// All states with at most `max_active` of the `selected` latents on.
pub const SPK_STATES_SUBSETS: u32 = 0;
/// The same, with matrices that were computed beforehand.
pub const SPK_STATES_TABLE: u32 = 1;

/// Gaussian sparse coding: sources that are off, or on with any strength, added up.
pub const SPK_KIND_GSC: u32 = 1;
/// Binary sparse coding (LinCA): sources that are off or on, added up.
pub const SPK_KIND_BSC: u32 = 2;
/// The same with a dictionary that is not negative.
pub const SPK_KIND_NMF: u32 = 3;
/// Maximal causes: sources that are off or on; in each dimension the strongest one counts.
pub const SPK_KIND_MCA: u32 = 4;
/// Maximal causes with strengths: sources that are off, or on with any strength; in each dimension the strongest one counts.
/// It can only be sampled: spk_init() does, with 100 sweeps and seed 0.
pub const SPK_KIND_SSMCA: u32 = 5;
/// A Gaussian mixture: exactly one source, the component, made the sample. `activity` has the probability of each, spk_distances() how far
/// the sample is from them.
pub const SPK_KIND_GMM: u32 = 6;

/// A chain begins at a state that no source alone can improve.
pub const SPK_START_GREEDY: u32 = 0;
/// A chain begins at a draw from the prior.
pub const SPK_START_RANDOM: u32 = 1;
/// A chain begins at the best of all states that spk_init() would evaluate. Refused (SPK_ERR_SETTING) for SPK_KIND_SSMCA and
/// for more than 2^24 states.
pub const SPK_START_BEST: u32 = 2;

/// Settings of Gibbs sampling: see spk_gibbs_settings().
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct spk_gibbs {
    /// Seed of the random numbers, which depend on it and on the number of the sample only: see spk_seek().
    pub seed: u64,
    /// Sweeps of a chain, in each of which every preselected source is drawn once; at least 1.
    pub sweeps: u32,
    /// The first sweeps of each chain, which are not counted; fewer than `sweeps`.
    pub burn_in: u32,
    /// Of the sweeps after that every so-many-th counts; at least 1.
    pub thinning: u32,
    /// Chains for each sample; at least 1.
    pub chains: u32,
    /// One of SPK_START_: where chains begin.
    pub start: u32,
    /// How many of the preselected sources are chosen at random instead of by their scores; fewer than `selected`.
    pub extra: u32,
    /// Most sources on at once; at least 1, at most what the library was built for (32).
    pub max_active: u32,
}

/// What a blob holds.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct spk_info {
    /// One of SPK_KIND_: what its sources are. `mean` equals `activity` for all but SPK_KIND_GSC and
    /// SPK_KIND_SSMCA.
    pub kind: u32,
    /// D: entries of a sample.
    pub dims: u32,
    /// H: latents, that is sources.
    pub latents: u32,
    /// H': latents preselected for each sample; candidates at most with SPK_STATES_ADAPTIVE.
    pub selected: u32,
    /// gamma: most latents that are on in one state.
    pub max_active: u32,
    /// One of SPK_STATES_: which states are evaluated.
    pub states_kind: u32,
    /// SPK_STATES_ADAPTIVE: states whose neighbours are evaluated, at most; 0 otherwise.
    pub expansions: u32,
    /// States evaluated per sample, at most.
    pub states: u64,
    /// Bound on the multiply-adds per sample; a sample far above the noise may take `operations_loud` more.
    pub operations: u64,
    /// See `operations`.
    pub operations_loud: u64,
    /// Bytes of memory that spk_init() needs.
    pub state_size: usize,
}

/// The posterior of one sample. The arrays lie in the state's memory; they are valid until the next
/// call with that state.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct spk_estimate {
    /// Probability that each source is on, 0 to 1. `latents` entries.
    pub activity: *const f32,
    /// Posterior mean of each source, in units of the dictionary's columns. `latents` entries.
    pub mean: *const f32,
    /// Posterior variance of each source. `latents` entries.
    pub variance: *const f32,
    /// The preselected latents, best first. `selected_len` entries.
    pub selected: *const u16,
    /// The latents that are on in the most probable state (of those drawn), ascending. `map_len` entries, maybe 0.
    pub map_latents: *const u16,
    /// Their values in that state. `map_len` entries.
    pub map_values: *const f32,
    /// Number of latents.
    pub latents: u32,
    /// Number of preselected latents.
    pub selected_len: u32,
    /// Number of latents that are on in the most probable state.
    pub map_len: u32,
    /// Natural logarithm of the probability density of the sample, summed over the states evaluated; of a sampled state
    /// that of the best one alone.
    pub evidence: f32,
}

pub(crate) fn blob_status(error: BlobError) -> spk_status {
    match error {
        BlobError::Misaligned => SPK_ERR_ALIGNMENT,
        BlobError::Truncated { .. } | BlobError::Length { .. } => SPK_ERR_BLOB_TRUNCATED,
        BlobError::Magic => SPK_ERR_BLOB_MAGIC,
        BlobError::Version { .. } => SPK_ERR_BLOB_VERSION,
        BlobError::Checksum { .. } => SPK_ERR_BLOB_CHECKSUM,
        BlobError::Unknown { .. } | BlobError::UnknownSection { .. } => SPK_ERR_BLOB_UNKNOWN,
        BlobError::Model(ModelError::Capacity { .. }) => SPK_ERR_BLOB_CAPACITY,
        BlobError::Model(ModelError::LeftOut { .. }) => SPK_ERR_BLOB_LEFT_OUT,
        BlobError::Model(_) => SPK_ERR_BLOB_MODEL,
        BlobError::StreamOnly => SPK_ERR_BLOB_STREAM,
        _ => SPK_ERR_BLOB_SECTION,
    }
}

pub(crate) fn status(error: Error) -> spk_status {
    match error {
        Error::Memory { .. } => SPK_ERR_MEMORY,
        Error::SampleLength { .. } | Error::BlockLength { .. } => SPK_ERR_LENGTH,
        Error::SampleNotFinite { .. } => SPK_ERR_NOT_FINITE,
        Error::Setting { .. } => SPK_ERR_SETTING,
        Error::Transformed => SPK_ERR_BLOB_STREAM,
        _ => SPK_ERR_RANGE,
    }
}

/// Every code and its words, NUL-terminated for C.
pub(crate) const TEXTS: [(spk_status, &core::ffi::CStr); 20] = [
    (SPK_OK, c"done"),
    (SPK_ERR_NULL, c"a pointer is NULL"),
    (SPK_ERR_ALIGNMENT, c"memory, blob or sample is not aligned"),
    (SPK_ERR_MEMORY, c"the memory is smaller than spk_state_size() says"),
    (SPK_ERR_STATE, c"the state was not initialised"),
    (SPK_ERR_LENGTH, c"an array has another length than the model says"),
    (SPK_ERR_NOT_FINITE, c"NaN or infinity in the sample"),
    (SPK_ERR_RANGE, c"the sample is too large for the precision of the model"),
    (SPK_ERR_SETTING, c"the model cannot be run with these settings"),
    (SPK_ERR_OVERLAP, c"input and output overlap"),
    (SPK_ERR_BLOB_TRUNCATED, c"the blob is truncated"),
    (SPK_ERR_BLOB_MAGIC, c"not a Spikelet blob"),
    (SPK_ERR_BLOB_VERSION, c"the blob has an unknown format version"),
    (SPK_ERR_BLOB_CHECKSUM, c"the blob is damaged: its checksum does not fit"),
    (SPK_ERR_BLOB_UNKNOWN, c"the blob needs something this library does not know"),
    (SPK_ERR_BLOB_SECTION, c"the sections of the blob are inconsistent"),
    (SPK_ERR_BLOB_MODEL, c"the parameters in the blob do not make a model"),
    (SPK_ERR_BLOB_CAPACITY, c"the model is larger than this library was built for"),
    (
        SPK_ERR_BLOB_LEFT_OUT,
        c"the library was built without what the model needs: see spk_missing_features()",
    ),
    (SPK_ERR_BLOB_STREAM, c"the model is for streams: use spk_stream_init()"),
];
