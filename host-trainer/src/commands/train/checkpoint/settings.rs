//! Which setting of a checkpoint is not that of the command, by the name of its flag.

use crate::train::Settings;
use serde_json::Value;

/// Flags that are not called like the setting; `schedule` and `iterations` may differ.
const FLAGS: [(&str, &str); 9] = [
    ("first_prior", "pi"),
    ("first_noise", "sigma2"),
    ("first_mean", "mu"),
    ("first_spread", "psi2"),
    ("fixed", "fix"),
    ("singletons", "no-singletons"),
    ("gp", "selection"),
    ("schedule", ""),
    ("iterations", ""),
];

/// The first setting that differs, as in `--seed 1, not 9`.
pub(super) fn difference(written: &Settings, asked: &Settings) -> Option<String> {
    let settings = |settings: &Settings| match serde_json::to_value(settings) {
        Ok(Value::Object(settings)) => settings,
        _ => serde_json::Map::new(),
    };
    let (written, asked) = (settings(written), settings(asked));
    let mut keys: Vec<&String> = written.keys().chain(asked.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    // What the user chooses first: most other defaults follow from these.
    keys.sort_by_key(|key| !["model", "latents", "engine", "states", "from"].contains(&key.as_str()));
    for key in keys {
        let flag = FLAGS.iter().find(|(setting, _)| setting == key).map_or(key.as_str(), |(_, flag)| flag);
        let (before, now) = (written.get(key), asked.get(key));
        if before != now && !flag.is_empty() {
            let flag = flag.replace('_', "-");
            return Some(format!("--{flag} {}, not {}", shown(before), shown(now)));
        }
    }
    None
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "by default".into(),
        Some(Value::Bool(set)) => (if *set { "on" } else { "off" }).into(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(values)) if values.is_empty() => "nothing".into(),
        Some(Value::Array(values)) => {
            let texts: Vec<String> = values.iter().map(|value| shown(Some(value))).collect();
            texts.join(if values.iter().all(Value::is_number) { ":" } else { "," })
        }
        Some(value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::ModelKind;

    #[test]
    fn the_flag_is_named() {
        let one = Settings::new(ModelKind::Gsc, 3);
        assert_eq!(difference(&one, &one), None);
        for (other, words) in [
            (Settings { seed: 9, ..one.clone() }, "--seed 1, not 9"),
            (Settings { first_prior: Some(0.5), ..one.clone() }, "--pi by default, not 0.5"),
            (Settings { temperature: (3.0, 1.0), ..one.clone() }, "--temperature 1.0:1.0, not 3.0:1.0"),
            (Settings { max_active: 2, seed: 9, ..one.clone() }, "--max-active 3, not 2"),
            (Settings { latents: 4, batch: 9, ..one.clone() }, "--latents 3, not 4"),
        ] {
            assert_eq!(difference(&one, &other).unwrap(), words);
        }
        assert_eq!(difference(&one, &Settings { iterations: 200, ..one.clone() }), None);
    }
}
