//! `spikelet export`: a model as source text, or as the bare blob.

use super::model_file::{ModelFile, needed};
use super::output::{print, refuse_description, refuse_overwriting};
use super::source_text::signals::Signals;
use super::source_text::{Symbol, c_header, rust_module, signals};
use crate::{Result, files};
use std::io::Write;
use std::path::PathBuf;

/// Write a model as a C header, a Rust module or bare bytes for firmware
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The C header holds the model as `NAME_blob`, aligned, and the macros NAME_STATE_SIZE (bytes of memory for
spk_init) and NAME_STREAM_SIZE (for spk_stream_init), NAME_STATE_ALIGN, NAME_ALIGNED, NAME_BLOB_SIZE, NAME_DIMS, NAME_LATENTS,
NAME_SELECTED, NAME_MAX_ACTIVE, NAME_STATES. The Rust module holds `NAME` (a spikelet::Aligned), NAME_ARENA_LEN and NAME_STREAM_LEN.
The comment on top shows the calls. Models of a transform, of a room or of one channel have no NAME_STATE_SIZE: they only
run as streams.

Example:
  spikelet export model.spk --format c --out model.h
  spikelet export model.spk --format rust --name SENSORS --out src/sensors.rs")]
pub(super) struct Export {
    /// The model, made by `spikelet train`, `import`, `merge` or `quantize`
    #[arg(value_name = "MODEL.spk")]
    model: PathBuf,
    /// What to write
    #[arg(long, value_enum)]
    format: Format,
    /// First part of the names in the text [default: the name of the output file]
    #[arg(long)]
    name: Option<String>,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A header for C99, C++11 and later
    C,
    /// A module for the spikelet crate
    Rust,
    /// The blob itself, checked
    Bin,
}

impl Export {
    pub fn run(self) -> Result<()> {
        let symbol = match &self.name {
            Some(name) => Symbol::new(name)?,
            None => Symbol::of_file(&self.out),
        };
        let ending = match self.format {
            Format::C => "h",
            Format::Rust => "rs",
            Format::Bin => "spk",
        };
        refuse_description(&self.out, ending)?;
        files::check_target(&self.out)?;
        let file = ModelFile::read(&self.model)?;
        refuse_overwriting(&self.out, &[&self.model])?;
        let signals = match (file.room()?, file.spectral()?) {
            (Some(model), _) => Some(Signals::from(&model)),
            (_, Some(model)) => Some(Signals::from(&model)),
            _ => None,
        };
        if let Some(model) = signals {
            let bytes = file.first(model.byte_len);
            let content = match self.format {
                Format::C => signals::c_header(&symbol, &model, bytes).into_bytes(),
                Format::Rust => signals::rust_module(&symbol, &model, bytes).into_bytes(),
                Format::Bin => bytes.to_vec(),
            };
            return self.write(&content, bytes.len(), model.feature);
        }
        let blob = file.blob()?;
        let bytes = file.bytes(&blob);
        let content = match self.format {
            Format::C => c_header(&symbol, &blob, bytes).into_bytes(),
            Format::Rust => rust_module(&symbol, &blob, bytes).into_bytes(),
            Format::Bin => bytes.to_vec(),
        };
        self.write(&content, bytes.len(), &needed(&blob))
    }

    fn write(&self, content: &[u8], model_bytes: usize, features: &str) -> Result<()> {
        files::write_atomically(&self.out, |writer| writer.write_all(content))?;
        if !self.out.is_file() {
            return Ok(()); // /dev/stdout: the text itself went there
        }
        print(&format!(
            "{}: a model of {model_bytes} bytes; the library needs the features {features}\n",
            self.out.display(),
        ))
    }
}
