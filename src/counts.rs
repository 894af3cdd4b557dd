//! Operation counts of inference: how often each operation of [`Count`] runs.
//!
//! The trainer predicts from these counts what a sample takes on a device: instructions are a weighted sum of them, with one
//! weight for each core and operation, fitted to measured ones (`tests/cost --fit`). So there is no second
//! description of the control flow that could drift from the code.
//!
//! Counting needs the feature `counting`, which only the trainer asks for. Without it `Count::add` is empty, and nothing of
//! this module is left on a device. Counts are thread-local, so no stage has to pass them on.

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Operations. Unless stated otherwise, one count per number processed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Count { $($(#[$doc])* $name,)* }

        impl Count {
            /// All of them, in order.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name in the trainer's table of weights.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

counts! {
    // Any sample.
    /// Samples.
    Samples = "samples",
    /// Numbers of samples that are checked and kept.
    Accepted = "accepted",
    /// Numbers weighted with the noise's precision; multiply-adds where the noise is full.
    Weighed = "weighed",
    Whitened = "whitened",
    /// Latents whose results are cleared and checked, and those that are reported.
    Cleared = "cleared",
    Reported = "reported",

    // The dictionary: multiply-adds by encoding, panels or rounded sums.
    Floats = "product-f32",
    Panels = "panels",
    I16 = "product-i16",
    I8 = "product-i8",
    Packed = "packed",
    Scaled = "scaled",
    /// Of single columns, and their integers decoded.
    Columns = "columns",
    ColumnsOfIntegers = "columns-integer",
    DecodedI16 = "decoded-i16",
    DecodedI8 = "decoded-i8",
    /// G: read, or multiply-adds.
    GramRead = "gram-read",
    GramFloats = "gram-f32",
    GramI16 = "gram-i16",
    GramI8 = "gram-i8",

    // Selection.
    /// Scores, by kind of latent; multiply-adds where they depend on D.
    SlabScores = "slab-scores",
    Scores = "scores",
    ScoreDims = "score-dims",
    BoundDims = "bound-dims",
    IndependentDims = "independent-dims",
    /// Latents compared with the best, and places moved among these.
    Ranked = "ranked",
    Moves = "rank-moves",
    /// Gains of all latents in a reference, by kind; multiply-adds where they depend on D.
    SlabGains = "slab-gains",
    MeanGains = "mean-gains",
    Gains = "gains",
    GainDims = "gain-dims",
    GainsTaken = "gains-taken",
    /// Residual projections of all latents updated from G.
    SeenAgain = "seen-again",
    Subtracted = "subtracted",

    // Tableau.
    Appended = "appended",
    RowMacs = "row-macs",
    /// Flips evaluated, by kind, and those of slabs with a mean, which soft floats do not get for nothing; multiply-adds
    /// where they depend on D.
    SlabFlips = "slab-flips",
    MeanFlips = "mean-flips",
    Flips = "flips",
    MaximalFlips = "maximal-flips",
    FlipDims = "flip-dims",
    Sweeps = "sweeps",
    SweepRows = "sweep-rows",
    SweepMacs = "sweep-macs",
    Shifted = "shifted",
    /// Pairs that may be swapped.
    Swaps = "swaps",
    Maxima = "maxima",
    Filled = "filled",
    /// Mixtures: components that are scored and reported, that have a log joint, whose distance is computed; dimensions of the last.
    Components = "components",
    Joints = "joints",
    Distances = "distances",
    DistanceDims = "distance-dims",
    /// Refinements: their number, double-word products, steps of both loops.
    Refined = "refined",
    DoubleWords = "double-words",
    LeftSteps = "left-steps",
    RefinedMacs = "refined-macs",

    // States to moments.
    Expanded = "expanded",
    ExpandedCells = "expanded-cells",
    SlabCells = "slab-cells",
    /// Exponentials.
    Weights = "weights",
    Pairs = "pairs",
    Noted = "noted",
    Queued = "queued",
    /// Subsets: numbers copied, singletons of latents that are no candidates, and those that show.
    Copied = "copied",
    Outside = "outside",
    OutsideWeights = "outside-weights",
    /// Tables: states, their multiply-adds, candidates passed by.
    TableStates = "table-states",
    TableMacs = "table-macs",
    TableSteps = "table-steps",

    // Sampling.
    Givens = "givens",
    SlabGivens = "slab-givens",
    Drawn = "drawn",
    Normals = "normals",
    Moved = "moved",
    Refreshed = "refreshed",
    ChainSweeps = "chain-sweeps",
    Kept = "kept",
    /// Maximal causes: multiply-adds of maxima, of conditionals, of joints.
    ChainMaxima = "chain-maxima",
    MaximalGivens = "maximal-givens",
    GivenDims = "given-dims",
    JointDims = "joint-dims",
    /// Pieces: dimensions, borders, steps of sorting, segments cut, pieces weighed, draws.
    PieceDims = "piece-dims",
    Borders = "borders",
    Sorted = "sorted",
    Segments = "segments",
    Pieces = "pieces",
    PieceDraws = "piece-draws",

    // Integers.
    FixedSamples = "fixed-samples",
    FixedPacked = "fixed-packed",
    FixedScores = "fixed-scores",
    FixedSubtracted = "fixed-subtracted",
    FixedColumns = "fixed-columns",
    FixedRows = "fixed-rows",
    FixedFlips = "fixed-flips",
    FixedGathered = "fixed-gathered",
    FixedSweeps = "fixed-sweeps",
    FixedFlipped = "fixed-flipped",
    FixedRescaled = "fixed-rescaled",
    FixedMacs = "fixed-macs",
    FixedExpanded = "fixed-expanded",
    FixedNoted = "fixed-noted",
    FixedCells = "fixed-cells",
    FixedPairs = "fixed-pairs",
    FixedVisits = "fixed-visits",
    FixedReported = "fixed-reported",

    // Streams.
    /// Numbers that go in or come out, those windowed, transforms, their rotations, points of two stages at once, butterflies of a
    /// last stage, latents mixed.
    Streamed = "streamed",
    Windowed = "windowed",
    Transforms = "transforms",
    Rotated = "rotated",
    TwoStages = "two-stages",
    Butterflies = "butterflies",
    Mixed = "mixed",
    /// Of the short-time Fourier transform: samples windowed and rotated.
    StftSamples = "stft-samples",

    // Spatial sources on two microphones, which have closed forms: bins heard, their sources and states.
    PairBins = "pair-bins",
    PairSources = "pair-sources",
    PairStates = "pair-states",
    /// Bins whose parameters follow, pairs of their sources, states.
    FollowedBins = "followed-bins",
    FollowedPairs = "followed-pairs",
    FollowedStates = "followed-states",
    /// On more microphones: bins heard, numbers of their covariances, states, multiply-adds of the states' factors.
    SpatialBins = "spatial-bins",
    SpatialSources = "spatial-sources",
    SpatialStates = "spatial-states",
    SpatialMacs = "spatial-macs",
    /// Parameters of bins decoded from integers.
    SpatialDecoded = "spatial-decoded",

    // Sources in one channel: frames, bins of their power and of masked spectra, bins of bands.
    ChannelFrames = "channel-frames",
    ChannelBins = "channel-bins",
    ChannelBands = "channel-bands",
    /// Latents of all filters, successors that are followed.
    ChannelLatents = "channel-latents",
    ChannelLogarithms = "channel-logarithms",
    ChannelSuccessors = "channel-successors",
    /// Quads of bands of latents compared with a frame, by encoding.
    ChannelFloats = "channel-f32",
    ChannelBytes = "channel-i8",
    /// Latents that are compared with a frame.
    ChannelCompared = "channel-compared",
    /// Quads of bands of frames and backgrounds, by encoding.
    ChannelBesideFloats = "channel-beside-f32",
    ChannelBesideBytes = "channel-beside-i8",
    ChannelRaisedBytes = "channel-raised-i8",
    /// States, entries of masks of two sources and of more.
    ChannelStates = "channel-states",
    ChannelPairs = "channel-pairs",
    ChannelMasks = "channel-masks",
}

impl Count {
    /// Counts so many.
    #[inline(always)]
    pub(crate) fn add(self, times: usize) {
        #[cfg(feature = "counting")]
        counting::add(self, times);
        let _ = times;
    }
}

#[cfg(feature = "counting")]
pub use counting::{Counts, take};

#[cfg(feature = "counting")]
mod counting {
    extern crate std;
    use super::Count;
    use core::cell::Cell;

    /// Times of each operation, in the order of [`Count::ALL`].
    pub type Counts = [u64; Count::ALL.len()];

    std::thread_local! {
        static COUNTS: [Cell<u64>; Count::ALL.len()] = const { [const { Cell::new(0) }; Count::ALL.len()] };
    }

    #[inline(always)]
    pub fn add(count: Count, times: usize) {
        COUNTS.with(|counts| {
            if let Some(cell) = counts.get(count as usize) {
                cell.set(cell.get().wrapping_add(times as u64));
            }
        });
    }

    /// What this thread counted since the last time it asked.
    ///
    /// ```
    /// # let model = spikelet::Blob::parse(spikelet::doc::TWO_SOURCES).unwrap().model();
    /// # let mut memory = [0.0f32; 256];
    /// use spikelet::counts::{Count, take};
    /// let mut inference = spikelet::Inference::new(model, &mut memory).unwrap();
    /// take();
    /// inference.infer(&[0.0, 2.0]).unwrap();
    /// let counts = take();
    /// assert_eq!((counts[Count::Samples as usize], counts[Count::Accepted as usize]), (1, 2));
    /// ```
    pub fn take() -> Counts {
        COUNTS.with(|counts| core::array::from_fn(|i| counts.get(i).map_or(0, |cell| cell.replace(0))))
    }
}
