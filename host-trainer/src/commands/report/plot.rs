//! Plots as inline SVG that fit any width: lines stretch, words do not.
//!
//! The drawing has 1000 x 1000 units and no fixed ratio of its sides (`preserveAspectRatio="none"`, strokes that do not scale),
//! so it fills its frame on a desktop and on a phone. Ticks are HTML beside it, placed in percent, in the size of the text.
//! Colours are classes of the style sheet, which knows light and dark.
//!
//! Every number is made finite on its way to a path: a range without extent gets one, and values beyond are drawn at its end.

use super::digits::{fixed, number};
use super::page::escaped;
use std::fmt::Write;

/// Units of a drawing, in both directions.
pub(super) const UNITS: f64 = 1000.0;

/// Points of a curve that are drawn; of longer ones the extremes of as many parts.
pub(super) const MOST_POINTS: usize = 600;

/// Places that have a name each; on a phone, more would run into each other.
const MOST_NAMES: usize = 12;

/// A range of values, where its ticks are and what it shows.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    label: String,
    percent: bool,
    /// Whether there is nothing between whole numbers.
    whole: bool,
    /// Words at 1, 2, 3 and so on, in place of ticks.
    names: Vec<String>,
}

impl Axis {
    /// A range that has all values, and a little more; `label` is text.
    pub fn over(values: impl IntoIterator<Item = f64>, label: &str) -> Self {
        let (low, high) = values
            .into_iter()
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        let room = match 0.04 * (high - low) {
            room if room > 1e-12 * low.abs().max(high.abs()) && room.is_finite() => room,
            _ => 0.5 * low.abs().max(high.abs()).max(1e-300),
        };
        Self {
            label: label.into(),
            ..Self::between((low - room).max(f64::MIN), (high + room).min(f64::MAX), "")
        }
    }

    /// From one number to another.
    pub fn between(low: f64, high: f64, label: &str) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, label: label.into(), percent: false, whole: false, names: Vec::new() }
    }

    /// One place for each of `names`, at 1, 2, 3 and so on; where they are too many for words, ticks count them.
    pub fn places(names: impl ExactSizeIterator<Item = usize>, label: &str) -> Self {
        let axis = Self::between(0.5, names.len() as f64 + 0.5, label);
        match names.len() {
            0..=MOST_NAMES => Self { names: names.map(|name| name.to_string()).collect(), ..axis },
            _ => axis.in_whole(),
        }
    }

    /// Values are counts, and ticks too.
    pub fn in_whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Values are parts of one, and written in percent.
    pub fn in_percent(self) -> Self {
        Self { percent: true, ..self }
    }

    /// Where a value lies, 0 to 1.
    fn place(&self, value: f64) -> f64 {
        // Halves, because the whole range may be more than a number holds.
        let place = (0.5 * value - 0.5 * self.low) / (0.5 * self.high - 0.5 * self.low);
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.5 }
    }

    /// A few round values in the range, and how they are written.
    fn ticks(&self) -> Vec<(f64, String)> {
        if !self.names.is_empty() {
            return self.names.iter().enumerate().map(|(at, name)| (at as f64 + 1.0, name.clone())).collect();
        }
        let scale = if self.percent { 100.0 } else { 1.0 };
        let (low, high) = (scale * self.low, scale * self.high);
        let rough = (high - low) / 5.0;
        if !(rough.is_finite() && rough > 0.0) {
            return vec![(self.low, number(self.low)), (self.high, number(self.high))];
        }
        let unit = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * unit).find(|&step| step >= rough * 0.99);
        let step = step.unwrap_or(10.0 * unit).max(if self.whole { 1.0 } else { 0.0 });
        let decimals = (-step.log10().floor()).clamp(0.0, 300.0) as usize;
        let first = (low / step - 1e-9).ceil();
        let text = |value: f64| match decimals <= 6 && value.abs() < 1e6 {
            true => fixed(value, decimals),
            false => number(value),
        };
        let word = if self.percent { " %" } else { "" };
        (0..8)
            .map(|at| (first + f64::from(at)) * step)
            .take_while(|&value| value <= high + 1e-9 * step)
            .map(|value| (value / scale, text(value) + word))
            .collect()
    }
}

/// A plot that marks are added to.
#[derive(Debug)]
pub(super) struct Plot {
    x: Axis,
    y: Axis,
    marks: String,
    tags: String,
}

impl Plot {
    pub fn new(x: Axis, y: Axis) -> Self {
        Self { x, y, marks: String::new(), tags: String::new() }
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (UNITS * self.x.place(x), UNITS * (1.0 - self.y.place(y)))
    }

    /// A curve through points whose x grows.
    pub fn curve(&mut self, points: &[(f64, f64)], class: &str) {
        let drawn: Vec<_> = thinned(points, |point| point.1).iter().map(|&(x, y)| self.at(x, y)).collect();
        let _ = writeln!(self.marks, "<path class=\"{class}\" d=\"{}\"/>", path(&drawn));
    }

    /// Single points.
    pub fn dots(&mut self, points: &[(f64, f64)]) {
        self.each("dot", points, |(x, y)| format!("M{x:.1} {y:.1}h0"));
    }

    /// Bars of one width from zero.
    pub fn bars(&mut self, points: &[(f64, f64)], width: f64) {
        let ground = self.at(0.0, 0.0).1;
        let half = 0.5 * UNITS * width / (self.x.high - self.x.low);
        self.each("bar", points, |(x, y)| {
            format!("M{:.1} {ground:.1}V{y:.1}h{:.1}V{ground:.1}z", x - half, 2.0 * half)
        });
    }

    /// Upright lines from one value to another: x, low, high.
    pub fn whiskers(&mut self, spans: &[(f64, f64, f64)]) {
        let mut d = String::new();
        for &(x, low, high) in spans {
            let ((x, low), (_, high)) = (self.at(x, low), self.at(x, high));
            let _ = write!(d, "M{x:.1} {low:.1}V{high:.1}");
        }
        let _ = writeln!(self.marks, "<path class=\"whisker\" d=\"{d}\"/>");
    }

    /// An upright line with a word at its top.
    pub fn limit(&mut self, x: f64, word: &str) {
        let at = self.at(x, 0.0).0;
        let left = if at > 0.45 * UNITS { " left" } else { "" };
        let _ = writeln!(self.marks, "<path class=\"limit\" d=\"M{at:.1} 0V{UNITS}\"/>");
        let _ =
            writeln!(self.tags, "<span class=\"tag{left}\" style=\"left:{:.2}%\">{word}</span>", at / 10.0);
    }

    fn each(&mut self, class: &str, points: &[(f64, f64)], mark: impl Fn((f64, f64)) -> String) {
        let d: String = points.iter().map(|&(x, y)| mark(self.at(x, y))).collect();
        let _ = writeln!(self.marks, "<path class=\"{class}\" d=\"{d}\"/>");
    }

    /// HTML; `title` says in words what is drawn, `class` may be ` low`. Few places need less than the whole width.
    pub fn html(&self, title: &str, class: &str) -> String {
        let width = match self.x.names.len() {
            0 => String::new(),
            places => format!(" style=\"max-width:{}rem\"", 9 + 4 * places),
        };
        let (mut rules, mut spans) = (String::new(), self.tags.clone());
        for (value, text) in self.y.ticks() {
            let y = UNITS * (1.0 - self.y.place(value));
            let _ = write!(rules, "M0 {y:.1}H{UNITS}");
            let _ = writeln!(spans, "<span class=\"y\" style=\"top:{:.2}%\">{text}</span>", y / 10.0);
        }
        let mut small = String::new();
        for (value, text) in self.x.ticks() {
            let x = UNITS * self.x.place(value);
            let _ = write!(small, "M{x:.1} {UNITS}v12");
            let _ = writeln!(spans, "<span class=\"x\" style=\"left:{:.2}%\">{text}</span>", x / 10.0);
        }
        let title = escaped(title);
        format!(
            "<div class=\"plot\"{width}><div class=\"upright\">{}</div><div class=\"area{class}\">\n\
             <svg role=\"img\" aria-label=\"{title}\" viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\"><title>{title}</title>\n\
             <path class=\"rule\" d=\"{rules}\"/>\n<path class=\"axis\" d=\"M0 {UNITS}H{UNITS}{small}\"/>\n{}</svg>\n{spans}</div>\
             <div class=\"across\">{}</div></div>\n",
            escaped(&self.y.label),
            self.marks,
            escaped(&self.x.label),
        )
    }
}

/// A line through points, with one digit after the point.
pub(super) fn path(points: &[(f64, f64)]) -> String {
    let mut d = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let _ = write!(d, "{}{x:.1} {y:.1}", if at == 0 { "M" } else { "L" });
    }
    if points.len() == 1 {
        d += "h0";
    }
    d
}

/// Of a long list, the smallest and the largest of each of many equal parts, in their order.
pub(super) fn thinned<T: Copy>(points: &[T], value: impl Fn(&T) -> f64) -> Vec<T> {
    if points.len() <= MOST_POINTS {
        return points.to_vec();
    }
    let part = points.len().div_ceil(MOST_POINTS / 2);
    let extremes = |part: &[T]| {
        let by_value = |a: &usize, b: &usize| value(&part[*a]).total_cmp(&value(&part[*b]));
        let ends = [(0..part.len()).min_by(by_value), (0..part.len()).max_by(by_value)];
        let [low, high] = ends.map(|at| at.unwrap_or(0));
        [part[low.min(high)], part[low.max(high)]]
    };
    points.chunks(part).flat_map(extremes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the values, only finite numbers are drawn, and the page does not grow with them.
    #[test]
    fn all_values_draw() {
        let long: Vec<f64> = (0..100_000).map(|i| f64::from(i).sin()).collect();
        for values in [
            &[][..],
            &[0.0],
            &[5.0, 5.0, 5.0],
            &[-1e308, 1e308],
            &[-f64::MAX; 3],
            &[f64::NAN, f64::INFINITY, 1.0],
            &[1e-320, 2e-320],
            &[1e9, 1e9 + 1e-6],
            &long,
        ] {
            let points: Vec<_> = values.iter().enumerate().map(|(i, &y)| (i as f64, y)).collect();
            let mut plot = Plot::new(
                Axis::over(points.iter().map(|p| p.0), "x"),
                Axis::over(values.iter().copied(), "y"),
            );
            plot.curve(&points, "one");
            plot.dots(&points[..points.len().min(3)]);
            plot.limit(1.0, "here");
            let html = plot.html("a title", "");
            assert!(!html.contains("NaN") && !html.contains("inf"), "{values:?}: {html}");
            assert!(html.len() < 20_000, "{}", html.len());
        }
    }

    #[test]
    fn ticks_are_round() {
        let texts = |axis: Axis| axis.ticks().into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts(Axis::between(0.0, 100.0, "")), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(texts(Axis::between(6.0, 8.0, "").in_whole()), ["6", "7", "8"]);
        assert_eq!(texts(Axis::between(-1.0, 1.0, "")), ["−1.0", "−0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(texts(Axis::between(0.0, 0.4, "").in_percent()), ["0 %", "10 %", "20 %", "30 %", "40 %"]);
    }
}
