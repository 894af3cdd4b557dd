//! Bad usage and bad input, flag by flag: what the message says, and that nothing is left behind.

use crate::desk::Desk;
use std::fs;

#[test]
fn bad_input_is_refused_and_leaves_nothing_behind() {
    let desk = Desk::with_model();
    desk.array("vector.npy", &[4], &[1.0; 4]);
    desk.array("five.npy", &[5], &[0.5; 5]);
    desk.array("no_latents.npy", &[4, 0], &[]);
    desk.array("no_dims.npy", &[0, 4], &[]);
    desk.array("huge.npy", &[2, 2], &[1.0, 1e39, 0.0, 1.0]);
    desk.array("nan.npy", &[1, 2], &[1.0, f64::NAN]);
    desk.array("wide.npy", &[2, 100], &[0.1; 200]);
    desk.array("too_wide.npy", &[1, 70_000], &[0.1; 70_000]);
    let square =
        |n: usize, f: &dyn Fn(usize, usize) -> f64| (0..n * n).map(|i| f(i / n, i % n)).collect::<Vec<_>>();
    desk.array("indefinite.npy", &[4, 4], &square(4, &|_, _| 1.0 - 1e-3));
    desk.array("negative.npy", &[6, 6], &square(6, &|i, j| if i == j { -1.0 } else { 0.0 }));
    desk.array("asymmetric.npy", &[4, 4], &square(4, &|i, j| if i <= j { 1.0 } else { 0.0 }));
    desk.array("full.npy", &[6, 6], &square(6, &|i, j| if i == j { 1.0 } else { 0.2 }));
    desk.array("noise.npy", &[4, 4], &square(4, &|i, j| if i == j { 1.0 } else { 0.2 }));
    desk.array("Y3.npy", &[5, 3], &[1.0; 15]);
    desk.array("Y_loud.npy", &[3, 4], &[1.0, 1.0, 1.0, 1.0, 1e30, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    desk.array("Y_huge.npy", &[1, 4], &[1.0, 1.0, 1e39, 1.0]);
    desk.array("Y_nan.npy", &[1, 4], &[1.0, 1.0, 1.0, f64::NAN]);
    desk.good("import --model gsc --w W.npy --sigma2 0.01 --max-active 2 --states table --out table.spk");
    desk.good("import --model gsc --w W.npy --sigma2 0.01 --psi2 full.npy --out full.spk");
    desk.array("positive.npy", &[4, 6], &(0..24).map(|i| f64::from(i % 5)).collect::<Vec<_>>());
    desk.good("import --model ssmca --w positive.npy --sigma2 0.01 --out ssmca.spk");
    let model = fs::read(desk.path("model.spk")).unwrap();
    fs::write(desk.path("empty.spk"), []).unwrap();
    fs::write(desk.path("cut.spk"), &model[..model.len() - 8]).unwrap();
    let mut flipped = model.clone();
    flipped[300] ^= 1;
    fs::write(desk.path("flipped.spk"), flipped).unwrap();
    let mut newer = model;
    newer[4] = 9;
    fs::write(desk.path("newer.spk"), newer).unwrap();

    fs::write(desk.path("junk.npz"), "no archive").unwrap();
    fs::create_dir(desk.path("old")).unwrap();
    fs::copy(desk.path("Y.npy"), desk.path("old/mean.npy")).unwrap();

    let import = |rest: &str| format!("import --model gsc --w W.npy --out new.spk {rest}");
    let sized = |rest: &str| import(&format!("--sigma2 0.01 {rest}"));
    let other =
        |kind: &str, rest: &str| format!("import --model {kind} --w W.npy --sigma2 1 --out new.spk {rest}");
    let positive = |rest: &str| {
        let noise = if rest.contains("sigma2") { "" } else { "--sigma2 1" };
        format!("import --model ssmca --w positive.npy --out new.spk {noise} {rest}")
    };
    let infer = |rest: &str| format!("infer model.spk Y.npy --out-dir new/results {rest}");
    let dictionary = |w: &str| format!("import --model gsc --w {w} --sigma2 0.01 --out new.spk");
    let cases = [
        // usage
        (String::new(), "no command was given: spikelet: see `spikelet --help`, or run `spikelet demo`"),
        ("separates".into(), "there is no such command: separates: did you mean separate?"),
        ("import".into(), "--model"),
        ("infer model.spk".into(), "<DATA>"),
        ("inspect".into(), "<MODEL.spk>"),
        ("inspect model.spk --yaml".into(), "--yaml"),
        ("export model.spk --out model.h".into(), "--format"),
        // --model, --w, --out
        (
            "import --model pca --w W.npy --out new.spk".into(),
            "--model: it knows gsc, bsc (also called linca), nmf, mca, ssmca and gmm",
        ),
        (other("mca", ""), "must not be negative in a model of kind mca: W[0, "),
        (other("bsc", "--mu 1"), "off or on, without a strength: --mu"),
        (other("linca", "--psi2 1"), "off or on, without a strength: --psi2"),
        (other("bsc", "--states table"), "have no matrices: --states table"),
        (
            other("bsc", "--selection bound"),
            "--selection bound: choose cosine or singleton for a model of kind bsc",
        ),
        (other("bsc", "--selection independent"), "here the score singleton is the same"),
        (other("mca", "--gram stored"), "has no Gram matrix: --gram"),
        (sized("--selection cosine"), "choose singleton or independent for a model of kind gsc"),
        (sized("--selection bound"), "the bound holds only where W is not negative"),
        (dictionary("missing.npy"), "there is no such file: missing.npy"),
        (dictionary("."), "this is a folder"),
        (dictionary("model.spk"), "not a NumPy array file: model.spk"),
        (dictionary("vector.npy"), "shape (4) is no dictionary: vector.npy"),
        (dictionary("no_latents.npy"), "shape (4 x 0) is no dictionary"),
        (dictionary("no_dims.npy"), "shape (0 x 4) is no dictionary"),
        (dictionary("huge.npy"), "1e39 does not fit a 32-bit number: W[0, 1]"),
        (dictionary("nan.npy"), "nan.npy, row 0, column 1"),
        (dictionary("too_wide.npy"), "70000 latents are more than 65535"),
        (
            "import --model gsc --w W.npy --sigma2 1 --out W.npy".into(),
            "would replace a file it is made from",
        ),
        ("import --model gsc --w W.npy --sigma2 1 --out no/new.spk".into(), "the folder does not exist"),
        ("import --model gsc --w W.npy --sigma2 1 --out .".into(), "a folder is in the way"),
        // --sigma2
        (import(""), "the noise is not known: --sigma2"),
        (import("--sigma2 0"), "0 must be positive (it is a variance): sigma2[0]"),
        (import("--sigma2 -1"), "-1 must be positive"),
        (import("--sigma2 nan"), "NaN must be positive"),
        (import("--sigma2 inf"), "inf must be positive"),
        (import("--sigma2 1e-60"), "beyond the numbers a model can hold"),
        (import("--sigma2 1e60"), "1 / sigma2[0] is beyond"),
        (import("--sigma2 0,1"), "neither a number nor a file: 0,1"),
        (import("--sigma2 missing.npy"), "there is no such file: missing.npy"),
        (import("--sigma2 five.npy"), "give one number, 4 (one per dimension), or a 4 x 4 matrix"),
        (import("--sigma2 full.npy"), "the shape (6 x 6) does not fit W"),
        (import("--sigma2 indefinite.npy"), "not positive definite: sigma2"),
        (import("--sigma2 asymmetric.npy"), "not symmetric: sigma2[1, 0]"),
        // --pi, --mu, --psi2
        (sized("--pi 0"), "must lie between 0 and 1, both excluded: pi[0]"),
        (sized("--pi 1"), "pi[0]"),
        (sized("--pi -0.5"), "pi[0]"),
        (sized("--pi five.npy"), "give one number, or 6 (one per latent)"),
        (sized("--pi full.npy"), "the shape (6 x 6) does not fit W"),
        (sized("--mu inf"), "must be finite: mu[0]"),
        (sized("--mu 1e39"), "mu[0] is beyond"),
        (sized("--mu five.npy"), "one per latent"),
        (sized("--psi2 0"), "must be positive (it is a variance): psi2[0]"),
        (sized("--psi2 1e-60"), "1 / psi2[0] is beyond"),
        (sized("--psi2 noise.npy"), "or a 6 x 6 matrix"),
        (sized("--psi2 negative.npy"), "not positive definite: psi2"),
        // truncation and options
        (sized("--selected 0"), "--selected: choose 1 to 6"),
        (sized("--selected 7"), "--selected: choose 1 to 6"),
        (sized("--selected x"), "--selected"),
        (sized("--selected 99999999999999999999"), "--selected"),
        (sized("--max-active 0"), "--max-active: choose 1 to 6"),
        (sized("--selected 3 --max-active 4"), "--max-active: choose 1 to 3"),
        (
            dictionary("wide.npy") + " --selected 33",
            "33 latents are not possible: --selected: choose 1 to 32",
        ),
        (dictionary("wide.npy") + " --states subsets --selected 65", "--selected: choose 1 to 64"),
        (
            dictionary("wide.npy") + " --states subsets --selected 64 --max-active 33",
            "--max-active: choose 1 to 32",
        ),
        (dictionary("wide.npy") + " --states subsets --selected 64 --max-active 30", "more than 2^32 states"),
        (sized("--expansions 0"), "--expansions: choose 1 to 1024"),
        (sized("--expansions 1025"), "--expansions: choose 1 to 1024"),
        (dictionary("wide.npy") + " --max-active 6 --states table", "too many for a table: --max-active"),
        (sized("--psi2 full.npy --states subsets"), "--states table"),
        (sized("--psi2 full.npy --states adaptive"), "--states table"),
        (infer("--states table"), "the model has no table of states: --states table"),
        (infer("--states subsets --expansions 3"), "only adaptive states are expanded: --expansions"),
        (import("--sigma2 noise.npy --gram computed"), "full noise needs the Gram matrix"),
        (sized("--selection cosine"), "--selection"),
        (sized("--states both"), "--states"),
        (sized("--gram no"), "--gram"),
        // infer
        ("infer missing.spk Y.npy --out-dir new".into(), "there is no such file: missing.spk"),
        ("infer . Y.npy --out-dir new".into(), "this is not a file"),
        ("infer Y.npy Y.npy --out-dir new".into(), "this is not a Spikelet model: Y.npy"),
        ("infer empty.spk Y.npy --out-dir new".into(), "0 bytes where 48 are needed"),
        ("infer cut.spk Y.npy --out-dir new".into(), "the model is damaged"),
        ("infer flipped.spk Y.npy --out-dir new".into(), "checksum"),
        ("infer newer.spk Y.npy --out-dir new".into(), "format version 9"),
        ("infer model.spk missing.npy --out-dir new".into(), "there is no such file: missing.npy"),
        ("infer model.spk missing.npz --out-dir new".into(), "there is no such file: missing.npz"),
        ("infer model.spk missing.npz:a --out-dir new".into(), "there is no such file: missing.npz"),
        ("infer model.spk junk.npz --out-dir new".into(), "this is not a ZIP archive"),
        ("infer model.spk model.spk --out-dir new".into(), "the ending of the name"),
        (
            "infer model.spk Y3.npy --out-dir new".into(),
            "the points have 3 dimensions, the model 4: Y3.npy and model.spk",
        ),
        ("infer model.spk Y_nan.npy --out-dir new/a/b".into(), "Y_nan.npy, point 0, dimension 3"),
        ("infer model.spk Y_huge.npy --out-dir new/a/b".into(), "(dimension 2): Y_huge.npy, point 0"),
        ("infer model.spk Y_loud.npy --out-dir new/a/b".into(), "Y_loud.npy, point 1 (counted from 0)"),
        ("infer model.spk Y.npy --out-dir model.spk".into(), "a file is in the way of the folder"),
        (
            "infer model.spk old/mean.npy --out-dir old".into(),
            "would replace a file it is made from: old/mean.npy",
        ),
        (infer("--engine exact"), "it has no value 'exact': --engine <NAME>: choose one of truncated, gibbs"),
        (infer("--sweeps 3"), "does not sample: --sweeps: leave the flag out, or add --engine gibbs"),
        (infer("--engine truncated --chains 2"), "does not sample: --chains"),
        (infer("--burn-in 0.5"), "does not sample: --burn-in"),
        (infer("--engine gibbs --sweeps 0"), "0 leaves nothing to average: --sweeps"),
        (infer("--engine gibbs --sweeps x"), "--sweeps"),
        (infer("--engine gibbs --thinning 0"), "0 leaves nothing to average: --thinning"),
        (infer("--engine gibbs --chains 0"), "0 leaves nothing to average: --chains"),
        (infer("--engine gibbs --burn-in 1"), "1 is no part of the sweeps that leaves any: --burn-in"),
        (infer("--engine gibbs --burn-in nan"), "NaN is no part of the sweeps"),
        (infer("--engine gibbs --extra 6"), "6 of 6 latents at random leave none to the scores: --extra"),
        (infer("--engine gibbs --start here"), "--start"),
        (infer("--engine gibbs --max-active 33"), "so many latents on: --max-active: choose 1 to 32"),
        (infer("--engine gibbs --max-active 0"), "so many latents on: --max-active"),
        (infer("--engine gibbs --selected 7"), "--selected: choose 1 to 6"),
        (
            "infer full.spk Y.npy --out-dir new --engine gibbs".into(),
            "depend on each other cannot be sampled",
        ),
        ("infer ssmca.spk Y.npy --out-dir new --engine truncated".into(), "no closed form: --engine"),
        (other("ssmca", ""), "must not be negative in a model of kind ssmca: W[0, "),
        (positive("--psi2 full.npy"), "cannot depend on each other: psi2"),
        (positive("--sigma2 noise.npy"), "depends on other dimensions: sigma2"),
        (positive("--selection bound"), "without a strength: --selection bound: choose cosine or singleton"),
        (positive("--states table"), "have no matrices: --states table"),
        (positive("--gram stored"), "has no Gram matrix: --gram"),
        (infer("--seed x"), "--seed"),
        (infer("--threads 0"), "--threads"),
        (infer("--threads many"), "--threads"),
        (infer("--selected 7"), "--selected: choose 1 to 6"),
        (infer("--selected 2 --max-active 3"), "--max-active: choose 1 to 2"),
        (infer("--max-active 0"), "--max-active"),
        (
            "infer table.spk Y.npy --out-dir new --max-active 3".into(),
            "table of states with up to 2 latents on",
        ),
        // inspect, export, demo
        ("inspect missing.spk".into(), "there is no such file"),
        ("inspect flipped.spk --json".into(), "the model is damaged"),
        ("inspect model.spk --core m5".into(), "choose one of m0, m4f, m7, m33, rv32"),
        ("inspect model.spk --clock 168MHz".into(), "--core"),
        ("inspect model.spk --core m4f --clock 0".into(), "give 1 Hz to 1000 GHz"),
        ("inspect model.spk --core m4f --clock 168furlongs".into(), "give 1 Hz to 1000 GHz"),
        ("inspect model.spk --core m4f --clock 168".into(), "write 168MHz"),
        ("inspect model.spk --core m4f --clock 84000000".into(), "write 84000000Hz"),
        ("inspect model.spk --core m4f --clock 168Hz".into(), "give 10 kHz or more"),
        ("inspect model.spk --core m4f --clock 9.9kHz".into(), "too slow"),
        ("inspect model.spk --core m4f --clock nan".into(), "give 1 Hz to 1000 GHz"),
        ("inspect model.spk --core m4f --clock 1e99GHz".into(), "give 1 Hz to 1000 GHz"),
        ("inspect model.spk --core m4f --clock 168MHz".into(), "add --rate"),
        ("inspect model.spk --core m4f --rate 16000".into(), "--clock"),
        ("inspect model.spk --core m4f --clock 1MHz --rate 0Hz".into(), "give samples a second, 1 or more"),
        ("inspect model.spk --core m4f --clock 1MHz --rate 1 --cpi 0".into(), "choose 0.1 to 1000 cycles"),
        ("export cut.spk --format bin --out new.bin".into(), "the model is damaged"),
        ("export model.spk --format java --out new.h".into(), "--format"),
        ("export model.spk --format c --out model.spk".into(), "would replace a file it is made from"),
        ("export model.spk --format c --out no/new.h".into(), "the folder does not exist"),
        (
            "export model.spk --format c --out new.h --name 3d".into(),
            "'3d' is not a name that C and Rust accept: --name",
        ),
        ("demo --seed x".into(), "--seed"),
        ("demo --out-dir model.spk".into(), "a file is in the way of the folder"),
    ];
    for (line, expected) in &cases {
        let said = desk.refused(line, expected);
        assert!(said.starts_with("error: "), "{line}: {said}");
    }
}

/// Writing to a device that is always full: the failure is not the user's.
#[cfg(target_os = "linux")]
#[test]
fn failures_while_running_have_status_1() {
    let desk = Desk::with_model();
    for line in [
        "export model.spk --format bin --out /dev/full",
        "import --model gsc --w W.npy --sigma2 1 --out /dev/full",
    ] {
        let output = desk.run(&line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert!(
            String::from_utf8(output.stderr).unwrap().starts_with("error: the disk is full: /dev/full"),
            "{line}"
        );
    }
}
