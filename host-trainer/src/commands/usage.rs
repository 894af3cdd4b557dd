//! Lines that cannot be parsed, told as every other error: `what is wrong: where: what to do`.

use super::Cli;
use crate::Error;
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;
use std::fmt::Write as _;

/// What clap found, in our form; none for what is no error, as `--help`.
pub(super) fn explain(error: &clap::Error, command: Option<&str>) -> Option<Error> {
    let help = match command {
        Some(command) => format!("see `spikelet {command} --help`"),
        None => "see `spikelet --help`".to_owned(),
    };
    let argument = || text(error, ContextKind::InvalidArg).unwrap_or_else(|| "the arguments".into());
    let value = || text(error, ContextKind::InvalidValue).unwrap_or_default();
    let input = |what: &str, place: String, advice: &str| Some(Error::input(what, place, advice));
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => None,
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            input("no command was given", "spikelet".into(), &format!("{help}, or run `spikelet demo`"))
        }
        ErrorKind::InvalidSubcommand => {
            let name = text(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            input(
                "there is no such command",
                name,
                &suggested(error, ContextKind::SuggestedSubcommand, &help),
            )
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = argument();
            match missing.contains(", ") {
                true => input("these are missing", missing, &format!("add them; {help}")),
                false => input("this is missing", missing, &format!("add it; {help}")),
            }
        }
        ErrorKind::UnknownArgument => {
            let given = in_full(argument());
            let advice = match owners(&given) {
                Some(owners) => format!("it belongs to {owners}; {help}"),
                None => suggested(error, ContextKind::SuggestedArg, &help),
            };
            match given.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
                true => input("this is neither a flag nor a value that is allowed here", given, &help),
                false if given.starts_with('-') => input("there is no such flag", given, &advice),
                false => input("this is one argument too many", given, &help),
            }
        }
        ErrorKind::ArgumentConflict => {
            let other = text(error, ContextKind::PriorArg).filter(|other| *other != argument());
            match other {
                Some(other) => input(
                    "these exclude each other",
                    format!("{} and {other}", argument()),
                    "leave one of them out",
                ),
                None => input("this is given more than once", argument(), "give it once"),
            }
        }
        ErrorKind::InvalidValue if value().is_empty() => {
            let advice = choices(error).unwrap_or_else(|| help.clone());
            input("its value is missing", argument(), &advice)
        }
        ErrorKind::InvalidValue => {
            let advice = choices(error).unwrap_or_else(|| help.clone());
            input(&format!("it has no value '{}'", value()), argument(), &advice)
        }
        ErrorKind::ValueValidation => {
            let cause = error.source().map(ToString::to_string).unwrap_or_default();
            let (what, advice) = refused(&value(), &cause);
            input(&what, argument(), &advice)
        }
        ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues | ErrorKind::TooManyValues => {
            let number = |kind| match error.get(kind) {
                Some(ContextValue::Number(number)) => Some(*number),
                _ => None,
            };
            let given = number(ContextKind::ActualNumValues).unwrap_or(0);
            let wanted =
                number(ContextKind::MinValues).or(number(ContextKind::ExpectedNumValues)).unwrap_or(1);
            let what = format!("{given} given where {wanted} are needed");
            input(&what, argument(), &help)
        }
        _ => {
            let line = error.to_string();
            let line = line.lines().next().unwrap_or_default();
            input(line.trim_start_matches("error: "), "the command line".into(), &help)
        }
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(all) => Some(all.join(", ")),
        _ => None,
    }
}

/// What was probably meant, or where to look.
fn suggested(error: &clap::Error, kind: ContextKind, help: &str) -> String {
    let found = match error.get(kind) {
        // The closest comes last.
        Some(ContextValue::Strings(all)) => all.last().cloned(),
        _ => text(error, kind),
    };
    let given = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand].into_iter();
    let given = given.filter_map(|kind| text(error, kind)).next().unwrap_or_default();
    match found.filter(|name| is_near(&given, name)) {
        Some(name) => format!("did you mean {name}? Else {help}"),
        None => help.to_owned(),
    }
}

/// Whether one may have been typed for the other: they begin alike and are about as long.
fn is_near(given: &str, meant: &str) -> bool {
    let plain = |text: &str| text.trim_start_matches('-').to_ascii_lowercase();
    let (given, meant) = (plain(given), plain(meant));
    given.chars().next() == meant.chars().next() && given.len().abs_diff(meant.len()) <= 3
}

/// An argument as it was typed, of which the parser names the first letter: `-2` of `-20ms`.
fn in_full(given: String) -> String {
    let is_short = given.len() == 2 && given.starts_with('-');
    let typed = std::env::args().skip(1).find(|word| is_short && word.starts_with(&given));
    typed.unwrap_or(given)
}

/// The commands that have this flag, where the one that was given has not.
fn owners(flag: &str) -> Option<String> {
    let name = flag.strip_prefix("--")?;
    let root = Cli::command();
    let owners: Vec<String> = root
        .get_subcommands()
        .filter(|command| command.get_arguments().any(|argument| argument.get_long() == Some(name)))
        .map(|command| format!("`spikelet {}`", command.get_name()))
        .collect();
    (!owners.is_empty()).then(|| owners.join(", "))
}

/// Of a flag that has a list of values.
fn choices(error: &clap::Error) -> Option<String> {
    let mut advice =
        format!("choose one of {}", text(error, ContextKind::ValidValue).filter(|all| !all.is_empty())?);
    let given = text(error, ContextKind::InvalidValue).unwrap_or_default();
    if let Some(meant) = text(error, ContextKind::SuggestedValue).filter(|meant| is_near(&given, meant)) {
        let _ = write!(advice, "; did you mean {meant}?");
    }
    Some(advice)
}

/// A value that its parser refused. The parsers of numbers speak to programmers; ours say what to give.
fn refused(value: &str, cause: &str) -> (String, String) {
    let whole = "give a whole number, in digits";
    let known = [
        ("invalid digit found in string", "is not a whole number", whole),
        ("cannot parse integer from empty string", "is not a whole number", whole),
        (
            "invalid float literal",
            "is not a number",
            "give a number, with a point for decimals and without a unit",
        ),
        ("cannot parse float from empty string", "is not a number", "give a number"),
        ("number too large to fit in target type", "is too large", "give a smaller number"),
        ("number too small to fit in target type", "is too small", "give a larger number"),
    ];
    let is_negative = value.strip_prefix('-').is_some_and(|rest| rest.parse::<u64>().is_ok());
    if is_negative && cause == known[0].0 {
        return (format!("'{value}' is negative"), "give a whole number from 0".to_owned());
    }
    if let Some((_, what, advice)) = known.iter().find(|(said, ..)| *said == cause) {
        return (format!("'{value}' {what}"), (*advice).to_owned());
    }
    if let Some((least, most)) =
        cause.rsplit_once(" is not in ").and_then(|(_, range)| range.split_once(".."))
    {
        let most = most.trim_start_matches('=');
        // Where the upper limit is that of the type, only the lower one was meant.
        let advice = match most.is_empty() || most.len() > 7 {
            true => format!("give {least} or more"),
            false => format!("give {least} to {most}"),
        };
        return (format!("'{value}' is out of range"), advice);
    }
    match cause.split_once(": ") {
        Some((what, advice)) => (what.to_owned(), advice.to_owned()),
        None => (format!("'{value}' is not valid"), cause.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsers_of_numbers_are_translated() {
        assert_eq!(refused("10%", "invalid float literal").0, "'10%' is not a number");
        assert_eq!(
            refused("0", "0 is not in 1..=1024"),
            ("'0' is out of range".into(), "give 1 to 1024".into())
        );
        assert_eq!(refused("0", "0 is not in 1..=4294967295").1, "give 1 or more");
        assert_eq!(refused("0", "0 is not in 1..18446744073709551615").1, "give 1 or more");
        assert_eq!(refused("-1", "invalid digit found in string").0, "'-1' is negative");
        let clock = refused("168", "a clock needs its unit: write 168MHz");
        assert_eq!(clock, ("a clock needs its unit".into(), "write 168MHz".into()));
        assert_eq!(refused("8", "give 8x8").0, "'8' is not valid");
    }

    #[test]
    fn only_what_looks_alike_is_suggested() {
        for (given, meant) in [("hlep", "help"), ("--jsn", "--json"), ("cpp", "c"), ("i12", "i16")] {
            assert!(is_near(given, meant), "{given} {meant}");
        }
        for (given, meant) in [("--against", "--chains"), ("fast", "factored"), ("", "c")] {
            assert!(!is_near(given, meant), "{given} {meant}");
        }
    }

    #[test]
    fn flags_of_other_commands_are_known() {
        assert_eq!(owners("--microphone").as_deref(), Some("`spikelet train`"));
        assert_eq!(owners("--nonsense"), None);
    }
}
