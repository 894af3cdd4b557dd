//! Where the tests of the command line run it.

use spikelet_trainer::data::write_npy_f64;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A folder in which commands run.
pub struct Desk {
    pub folder: tempfile::TempDir,
}

impl Desk {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// With W.npy (4 x 6), Y.npy (20 x 4) and a model of them, model.spk.
    pub fn with_model() -> Self {
        let desk = Self::new();
        let wave = |n: usize| (0..n).map(|i| (1.7 * i as f64).sin() + 0.3).collect::<Vec<_>>();
        desk.array("W.npy", &[4, 6], &wave(24));
        desk.array("Y.npy", &[20, 4], &wave(80));
        desk.good("import --model gsc --w W.npy --sigma2 0.01 --out model.spk");
        desk
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn array(&self, name: &str, shape: &[usize], values: &[f64]) {
        write_npy_f64(self.path(name), shape, values).unwrap();
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spikelet"));
        command.args(arguments).current_dir(self.folder.path());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a line without quotes, which must succeed; what it printed.
    pub fn good(&self, line: &str) -> String {
        self.good_with(&line.split_whitespace().collect::<Vec<_>>())
    }

    pub fn good_with(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What a line says on standard error; it must end with this status.
    pub fn said(&self, line: &str, status: i32) -> String {
        let output = self.run(&line.split_whitespace().collect::<Vec<_>>());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{line}: {said}");
        assert!(!said.contains("panicked"), "{line}: {said}");
        said
    }

    /// What is said of a line that must be refused in these words, without a trace left behind.
    pub fn refused(&self, line: &str, words: &str) -> String {
        let before = self.content();
        let said = self.said(line, 2);
        assert!(said.contains("error: ") && said.contains(words), "{line}: {said}");
        assert!(self.content() == before, "{line} left something behind");
        said
    }

    /// Every file and folder below, with its content.
    pub fn content(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut content = BTreeMap::new();
        let mut open = vec![self.folder.path().to_path_buf()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path.clone());
                    content.insert(path, Vec::new());
                } else {
                    content.insert(path.clone(), fs::read(path).unwrap());
                }
            }
        }
        content
    }
}
