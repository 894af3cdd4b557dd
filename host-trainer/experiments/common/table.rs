//! Figures as a Markdown table, and the few statistics that go into one.

use std::io::Write;

/// Prints a head, then rows as they come.
pub struct Table {
    widths: Vec<usize>,
}

impl Table {
    /// Prints the names of the columns.
    pub fn new(columns: &[&str]) -> Self {
        let table = Self { widths: columns.iter().map(|name| name.chars().count().max(8)).collect() };
        table.row(columns);
        let rules: Vec<String> = table.widths.iter().map(|&width| "-".repeat(width)).collect();
        println!("|-{}-|", rules.join("-|-"));
        table
    }

    /// Prints one row.
    pub fn row<S: AsRef<str>>(&self, cells: &[S]) {
        let cells = cells.iter().zip(&self.widths);
        let padded: Vec<String> = cells.map(|(cell, &width)| format!("{:<width$}", cell.as_ref())).collect();
        println!("| {} |", padded.join(" | "));
        // Rows may take minutes each, and a file or pipe would hold them back; nobody reads them after an error here.
        let _ = std::io::stdout().flush();
    }
}

/// Mean and standard deviation (of the sample).
pub fn mean_and_spread(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>();
    (mean, (square / (n - 1.0).max(1.0)).sqrt())
}

/// As the papers print it: mean and, in brackets, standard deviation.
pub fn spread(values: &[f64]) -> String {
    let (mean, spread) = mean_and_spread(values);
    format!("{mean:.3} ({spread:.3})")
}

/// The value that a fraction of the others does not exceed; NaN when there is none.
pub fn quantile(values: &[f64], fraction: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = fraction * sorted.len().saturating_sub(1) as f64;
    match (sorted.get(place.floor() as usize), sorted.get(place.ceil() as usize)) {
        (Some(low), Some(high)) => low + (high - low) * place.fract(),
        _ => f64::NAN,
    }
}

/// The middle value.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}
