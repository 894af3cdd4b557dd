//! RAM that the C interface takes, from the archive that is shipped, a line for each model in flash:
//!
//! ```text
//! name state stack
//! ```
//!
//! `state` is what `spk_state_size` asks for, or `spk_stream_size` for a model that is only for streams; `stack` the deepest of
//! set-up and inference, below the caller's frame; both in bytes.
#![no_std]
#![no_main]

mod settings;

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use settings::sampling;
use spikelet_firmware::board::{entry, exit, paint_stack, print, print_value, stack_depth, stack_pointer};
use spikelet_firmware::recording::{RECORDINGS, Recording};

const MAX_DIMS: usize = 64;
/// Sources of a stream.
const MAX_GROUPS: usize = 16;
/// `SPK_ERR_BLOB_STREAM`.
const ERR_BLOB_STREAM: i32 = -29;

/// Room for a state, aligned as `SPK_STATE_ALIGN` says. The smallest core has none for rooms of full size.
const MEMORY_LEN: usize = if cfg!(timer = "nrf51") { 1152 } else { 8704 };
static mut MEMORY: [u64; MEMORY_LEN] = [0; MEMORY_LEN];

// From include/spikelet.h. The estimate is not read here, room for it is enough.
type State = *mut c_void;
type Estimate = [u64; 16];
#[derive(Default)]
#[repr(C)]
struct Info {
    kind: u32,
    dims: u32,
    latents: u32,
    selected: u32,
    max_active: u32,
    states_kind: u32,
    expansions: u32,
    states: u64,
    operations: [u64; 2],
    state_size: usize,
}
#[derive(Default)]
#[repr(C)]
struct Gibbs {
    seed: u64,
    sweeps: u32,
    burn_in: u32,
    thinning: u32,
    chains: u32,
    start: u32,
    extra: u32,
    max_active: u32,
}
unsafe extern "C" {
    fn spk_inspect(blob: *const u8, blob_len: usize, info: *mut Info) -> i32;
    fn spk_init(
        memory: *mut u64,
        memory_len: usize,
        blob: *const u8,
        blob_len: usize,
        state: *mut State,
    ) -> i32;
    fn spk_gibbs_state_size(blob: *const u8, blob_len: usize) -> usize;
    fn spk_gibbs_settings(blob: *const u8, blob_len: usize, sweeps: u32, settings: *mut Gibbs) -> i32;
    fn spk_init_gibbs(
        memory: *mut u64,
        memory_len: usize,
        blob: *const u8,
        blob_len: usize,
        settings: *const Gibbs,
        state: *mut State,
    ) -> i32;
    fn spk_process(state: State, sample: *const f32, sample_len: usize, estimate: *mut Estimate) -> i32;
    fn spk_stream_size(blob: *const u8, blob_len: usize) -> usize;
    fn spk_stream_init(
        memory: *mut u64,
        memory_len: usize,
        blob: *const u8,
        blob_len: usize,
        stream: *mut State,
    ) -> i32;
    fn spk_stream_process(stream: State, input: *const f32, output: *mut f32, samples: usize) -> i32;
    fn spk_status_str(status: i32) -> *const core::ffi::c_char;
}

#[entry]
fn main() -> ! {
    for recording in RECORDINGS {
        if let Err(status) = measure(recording) {
            // SAFETY: a static text, whatever the number.
            print(unsafe { CStr::from_ptr(spk_status_str(status)) });
            print(c"\n");
            exit(1)
        }
    }
    exit(0)
}

fn measure(recording: &Recording) -> Result<(), i32> {
    let (mut buffer, mut sources) = ([0.0f32; MAX_DIMS], [0.0f32; MAX_GROUPS]);
    let (mut info, mut state, mut estimate, mut is_stream) = (Info::default(), null_mut(), [0; 16], false);
    let (memory, blob, blob_len) = (&raw mut MEMORY, recording.blob.as_ptr(), recording.blob.len());

    // Below here lies what the library takes.
    let top = stack_pointer();
    paint_stack();
    // SAFETY: pointers and lengths belong together, and nothing but the state uses MEMORY.
    unsafe {
        match spk_inspect(blob, blob_len, &mut info) {
            // The header tells: of kind 8, one channel, else as many microphones as dimensions.
            ERR_BLOB_STREAM => {
                let at = |offset: usize| recording.blob.get(offset).copied().unwrap_or_default();
                info.dims = if at(16) == 8 { 1 } else { at(24).into() };
            }
            status => ok(status)?,
        }
        if let Some(sampling) = sampling(recording) {
            let mut settings = Gibbs::default();
            ok(spk_gibbs_settings(blob, blob_len, sampling.sweeps, &mut settings))?;
            (settings.chains, settings.extra, settings.seed) = (sampling.chains, sampling.extra, 1);
            settings.start = u32::from(sampling.is_random); // SPK_START_GREEDY, SPK_START_RANDOM
            let len = size_of_val(&*memory);
            ok(spk_init_gibbs(memory.cast(), len, blob, blob_len, &settings, &mut state))?;
            info.state_size = spk_gibbs_state_size(blob, blob_len);
        } else {
            let len = size_of_val(&*memory);
            match spk_init(memory.cast(), len, blob, blob_len, &mut state) {
                ERR_BLOB_STREAM => {
                    ok(spk_stream_init(memory.cast(), len, blob, blob_len, &mut state))?;
                    info.state_size = spk_stream_size(blob, blob_len);
                    is_stream = true;
                }
                status => ok(status)?,
            }
        }
    }
    let sample = buffer.get_mut(..info.dims as usize).unwrap_or_default();
    // Of many shapes a few samples will do; the third is a loud one.
    let most = if cfg!(feature = "each") { 3 } else { usize::MAX };
    for n in 0..recording.count(sample.len()).min(most) {
        recording.read(n, sample);
        // SAFETY: `state` was made above; a sample in, and at most one number for each latent out.
        ok(unsafe {
            match is_stream {
                true => spk_stream_process(state, sample.as_ptr(), sources.as_mut_ptr(), 1),
                false => spk_process(state, sample.as_ptr(), sample.len(), &mut estimate),
            }
        })?;
    }
    let stack = stack_depth(top);

    print(recording.name);
    print_value(c" ", info.state_size as u32);
    print_value(c" ", stack);
    print(c"\n");
    Ok(())
}

fn ok(status: i32) -> Result<(), i32> {
    if status == 0 { Ok(()) } else { Err(status) }
}
