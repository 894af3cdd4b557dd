//! What tests of training share.

use spikelet_trainer::parameters::Parameters;
use spikelet_trainer::train::{Next, Points, Settings, State};

/// Fails where threads, or a run that is stopped after some iterations and goes on from its checkpoint, change the model.
pub fn threads_and_interruptions_do_not_show(
    settings: &Settings,
    values: &[f64],
    dims: usize,
    stop_after: usize,
) {
    let run = |threads: usize, stop_after: usize| -> Parameters {
        let mut points = Points::new(values.to_vec(), dims);
        let mut state = State::new(settings.clone(), &mut points).unwrap();
        let stop = |state: &State| match state.current.history.len() == stop_after {
            true => Ok(Next::Stop),
            false => Ok(Next::Continue),
        };
        if !state.run(&mut points, threads, stop).unwrap() {
            state = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
            state.run(&mut points, threads, |_| Ok(Next::Continue)).unwrap();
        }
        state.model()
    };
    let first = run(1, usize::MAX);
    assert_eq!(first, run(3, usize::MAX));
    assert_eq!(first, run(2, stop_after));
}
