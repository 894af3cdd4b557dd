//! The commands of the `spikelet` binary, one module each.
//!
//! In come arguments, out go files, lines on stdout and an exit status: 0, 2 for bad usage or input, 1 for a failure while
//! running. Errors are one line on stderr, `error: what is wrong: where: what to do`. What several commands need is beside them:
//! `model_file` (a blob from disk), `recover` (parameters from a blob), `given` (parameters as numbers or arrays), `framing` (how
//! data becomes points, as flags), `engine` (points through the core), `streaming` (recordings through it), `inferring` and
//! `sampling` (its settings as flags), `processor` (what cores take), `results` (the arrays they make), `sanity` (data that
//! cannot be meant), `source_text` (a blob as C or Rust), `output` (files, lines, progress).

mod advise;
mod chosen_states;
mod demo;
mod denoise;
mod engine;
mod eval;
mod export;
mod framing;
mod given;
mod import;
mod infer;
mod inferring;
mod inspect;
mod merge;
mod model_file;
mod output;
mod processor;
mod quantize;
mod recover;
mod report;
mod results;
mod sampling;
mod sanity;
mod separate;
mod source_text;
mod streaming;
mod train;
mod usage;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;

const EXAMPLE: &str = "\
Examples: see it work, and ask what suits a recording of yours
  spikelet demo
  spikelet advise mixture.wav --core m4f --clock 168MHz

From a recording of several microphones to firmware
  spikelet train --model gsc --latents 3 mixture.wav --out model.spk
  spikelet separate model.spk mixture.wav --out-dir sources
  spikelet report model.json --data mixture.wav --out report.html
  spikelet inspect model.spk --core m4f --clock 168MHz
  spikelet export model.spk --format c --out model.h

From a dictionary W (D x H) that is there already
  spikelet import --model gsc --w W.npy --sigma2 0.01 --out model.spk
  spikelet infer model.spk points.npy --out-dir results

Channels, microphones, lines and columns of tables are counted from 1; points, dimensions and latents of arrays from 0, as in NumPy and C.
Exit status: 0 done, 1 failed while running, 2 bad usage or input, 130 interrupted.";

/// Which sources are on, and how strong, for every sample: models for microcontrollers, made and run on a desktop.
#[derive(Debug, Parser)]
#[command(name = "spikelet", version, after_help = EXAMPLE, arg_required_else_help = false)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Advise(advise::Advise),
    Import(import::Import),
    Train(Box<train::Train>),
    Infer(infer::Infer),
    Separate(separate::Separate),
    Denoise(denoise::Denoise),
    Merge(merge::Merge),
    Inspect(inspect::Inspect),
    Eval(eval::Eval),
    Quantize(quantize::Quantize),
    Report(report::Report),
    Export(export::Export),
    Demo(demo::Demo),
}

impl Command {
    fn run(self) -> crate::Result<()> {
        match self {
            Self::Advise(command) => command.run(),
            Self::Import(command) => command.run(),
            Self::Train(command) => command.run(),
            Self::Infer(command) => command.run(),
            Self::Separate(command) => command.run(),
            Self::Denoise(command) => command.run(),
            Self::Merge(command) => command.run(),
            Self::Inspect(command) => command.run(),
            Self::Eval(command) => command.run(),
            Self::Quantize(command) => command.run(),
            Self::Report(command) => command.run(),
            Self::Export(command) => command.run(),
            Self::Demo(command) => command.run(),
        }
    }
}

/// Runs the command that the arguments of the process name.
pub fn main() -> ExitCode {
    let parsed = with_negative_numbers(Cli::command()).try_get_matches();
    let cli = match parsed.and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches)) {
        Ok(cli) => cli,
        Err(error) => {
            let command = std::env::args().nth(1);
            let is_known = |name: &String| Cli::command().find_subcommand(name).is_some();
            if let Some(error) = usage::explain(&error, command.filter(is_known).as_deref()) {
                output::say(format_args!("error: {error}"));
                return ExitCode::from(error.exit_code());
            }
            // Help and version come this way too. A closed pipe is no reason to fail.
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
    };
    match cli.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::say(format_args!("error: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}

/// Flags that take `-1` as their value, to refuse it with a reason, instead of as a flag that does not exist.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let flags = |arg: clap::Arg| match arg.is_positional() || !arg.get_action().takes_values() {
        true => arg,
        false => arg.allow_negative_numbers(true),
    };
    command.mut_subcommands(|command| command.mut_args(flags))
}
