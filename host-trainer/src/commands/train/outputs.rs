//! The files a run writes, checked before any work: none may replace another, or what the run reads.

use crate::commands::output::{Folder, refuse_overwriting, same_file};
use crate::{Error, Result, files};
use std::path::{Path, PathBuf};

/// Where the results go. The folder of the model is created, and removed again if it stays empty.
pub(super) struct Outputs {
    /// MODEL.json, the description beside the model.
    pub json: PathBuf,
    /// MODEL.spk.checkpoint, or the file that was asked for.
    pub checkpoint: PathBuf,
    _folder: Option<Folder>,
}

impl Outputs {
    /// Where they would go; nothing is checked.
    pub fn named(model: &Path, checkpoint: Option<&Path>) -> Self {
        let beside = || {
            let mut name = model.as_os_str().to_owned();
            name.push(".checkpoint");
            PathBuf::from(name)
        };
        let checkpoint = checkpoint.map_or_else(beside, Path::to_path_buf);
        Self { json: model.with_extension("json"), checkpoint, _folder: None }
    }

    pub fn new(model: &Path, checkpoint: Option<&Path>, inputs: &[PathBuf]) -> Result<Self> {
        if files::ending(model).as_deref() == Some("json") {
            let what = "the model would be overwritten by its own description";
            let advice = "name it MODEL.spk; the description is written beside it as MODEL.json";
            return Err(Error::input(what, model.display(), advice));
        }
        if model.as_os_str().to_string_lossy().ends_with(['/', std::path::MAIN_SEPARATOR]) {
            return Err(Error::input("this is a folder, not a file", model.display(), "name a file in it"));
        }
        let Self { json, checkpoint, .. } = Self::named(model, checkpoint);
        for result in [checkpoint.as_path(), &json, model] {
            refuse_overwriting(result, inputs)?;
        }
        if [json.as_path(), model].into_iter().any(|result| same_file(&checkpoint, result)) {
            let what = "the checkpoint would be overwritten by the result";
            return Err(Error::input(what, checkpoint.display(), "name another file for --checkpoint"));
        }
        let parent = model.parent().filter(|folder| *folder != Path::new(""));
        let folder = parent.filter(|folder| !folder.is_dir()).map(Folder::create).transpose()?;
        for result in [model, &json, &checkpoint] {
            files::check_target(result)?;
        }
        Ok(Self { json, checkpoint, _folder: folder })
    }
}
