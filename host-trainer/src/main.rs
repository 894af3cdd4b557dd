//! The `spikelet` command; everything it does is in the library beside it.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    spikelet_trainer::commands::main()
}
