//! The core's stages import one way. A stage is a file or a folder of `src/`, and may use only what stands before it in
//! [`STAGES`]: so it can be read, changed and tested without what comes later.
//!
//! Comments and what is compiled for tests only do not count. What `src/lib.rs` re-exports counts as the stage it comes from.

use std::collections::BTreeSet;
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

/// From the first to the last, in the order that data flows.
const STAGES: [&str; 25] = [
    // What everything stands on.
    "capacity",
    "counts",
    "numeric",
    "kinds",
    "features",
    "error",
    // A model, as numbers and as bytes.
    "model",
    "blob",
    // What inference works with, beside the model: settings, memory.
    "memory",
    "engine",
    // A sample, from its projection to its posterior.
    "project",
    "select",
    "states",
    "posterior",
    "state",
    "gibbs",
    "fixed",
    "inference",
    // Signals, and what all of it costs.
    "stream",
    "spatial",
    "spectral",
    "cost",
    "doc",
    "guide",
    "lib",
];

/// What `src/lib.rs` re-exports by another name, as far as the core itself uses it.
const EXPORTED: [(&str, &str); 12] = [
    ("arena_len", "memory"),
    ("gibbs_arena_len", "memory"),
    ("state_bytes", "memory"),
    ("gibbs_state_bytes", "memory"),
    ("Kind", "kinds"),
    ("Model", "model"),
    ("Shape", "model"),
    ("Blob", "blob"),
    ("Engine", "engine"),
    ("Inference", "inference"),
    ("stft", "stream"),
    ("math", "numeric"),
];

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The code of a file without comments and without its tests, which are at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The names after `crate::`, in paths and in lists.
fn imports(code: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut names = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        match after.strip_prefix('{') {
            None => {
                names.insert(after.split(|c| !is_name(c)).next().unwrap_or_default().to_owned());
            }
            Some(list) => {
                // The first name of each entry of the list itself.
                let (mut depth, mut entry) = (0, String::new());
                for c in list.chars() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => {
                            names.insert(std::mem::take(&mut entry));
                            continue;
                        }
                        _ => {}
                    }
                    if depth == 0 {
                        entry.push(c);
                    }
                }
                names.insert(entry);
            }
        }
    }
    let first = |name: String| name.trim().split(|c| !is_name(c)).next().unwrap_or_default().to_owned();
    names.into_iter().map(first).filter(|name| !name.is_empty()).collect()
}

/// Where a stage stands, by its name or one that the crate exports.
fn place(name: &str) -> Option<usize> {
    let exported = EXPORTED.iter().find(|(exported, _)| *exported == name);
    let stage = exported.map_or(name, |(_, stage)| stage);
    STAGES.iter().position(|known| *known == stage)
}

/// Every import of a later stage, and every name that no list here has.
fn violations(file: &str, text: &str) -> Vec<String> {
    let stage = file.split('/').next().unwrap_or_default().trim_end_matches(".rs");
    let Some(own) = place(stage) else {
        return vec![format!("{file}: {stage} is not in the list of stages")];
    };
    let said = |name: &String| match place(name) {
        None => Some(format!("{file}: imports {name}, which is not in the list of stages")),
        Some(at) if at > own => Some(format!("{file}: imports {name}, a later stage")),
        Some(_) => None,
    };
    imports(&code(text)).iter().filter_map(said).collect()
}

#[test]
fn stages_import_one_way() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    files.sort();
    assert!(files.len() > 50, "{} files: is this the core?", files.len());
    let mut wrong = Vec::new();
    for path in &files {
        let file = path.strip_prefix(&source).unwrap().to_str().unwrap().replace('\\', "/");
        if file != "lib.rs" && !file.ends_with("/tests.rs") {
            wrong.extend(violations(&file, &read_to_string(path).unwrap()));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The test itself: it finds what it looks for.
#[test]
fn violations_are_found() {
    let text = "use crate::numeric::math::Real;\nuse crate::{blob, stream::Stream, model::{Kind, Shape}};\n\
                // use crate::spatial::x;\nlet x = crate::cost::bound();\n#[cfg(test)]\nmod tests { use crate::doc; }";
    let found = violations("model/mod.rs", text);
    assert_eq!(found.len(), 3, "{found:?}");
    for (found, name) in found.iter().zip(["blob", "cost", "stream"]) {
        assert!(found.contains(name), "{found}");
    }
    assert_eq!(violations("nowhere.rs", "").len(), 1);
    assert_eq!(violations("cost.rs", "use crate::elsewhere;").len(), 1);
}
