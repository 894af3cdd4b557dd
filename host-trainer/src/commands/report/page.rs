//! The page around the plots: HTML that is XML too, one style sheet, no script, nothing from elsewhere.
//!
//! Text from files goes through [`escaped`] and nowhere else. The policy in the head forbids browsers to load anything, so that
//! even a slip here would stay without effect.

use crate::commands::output::printable;
use std::fmt::{Display, Write};

/// Characters of a text from a file that are shown.
const LONGEST_TEXT: usize = 2000;

/// Text of a file as text of the page.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for (at, c) in printable(text).chars().enumerate() {
        match c {
            _ if at == LONGEST_TEXT => return safe + " …",
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            // Not allowed in XML.
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// The whole page. `title` is text, `body` HTML.
fn page(title: &str, body: &str) -> String {
    let title = escaped(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; media-src data:\"/>\n\
         <title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        include_str!("style.css")
    )
}

/// The page of a model of this name: its head and the sections of its main part, which is open.
pub(super) fn whole(name: &str, body: &str) -> String {
    let end = format!(
        "</main>\n<footer><p>Written by spikelet {} report. This page has no scripts and loads nothing.</p></footer>\n",
        env!("CARGO_PKG_VERSION")
    );
    page(&format!("{name}: model report"), &format!("{body}{end}"))
}

/// A part of the page with a heading.
pub(super) fn section(id: &str, heading: &str, body: &str) -> String {
    format!("<section id=\"{id}\">\n<h2>{heading}</h2>\n{body}</section>\n")
}

/// A picture and what to see in it.
pub(super) fn figure(picture: &str, caption: &str) -> String {
    format!("<figure>\n{picture}<figcaption>{caption}</figcaption>\n</figure>\n")
}

pub(super) fn paragraph(text: impl Display) -> String {
    format!("<p>{text}</p>\n")
}

/// What to do to see more.
pub(super) fn hint(text: impl Display) -> String {
    format!("<p class=\"hint\">{text}</p>\n")
}

/// What a reader should not miss.
pub(super) fn note(text: impl Display) -> String {
    format!("<div class=\"note\"><p>{text}</p></div>\n")
}

/// Names, figures and a word on each.
pub(super) fn facts(rows: &[(&str, String, String)]) -> String {
    let mut html = String::from("<dl class=\"facts\">\n");
    for (name, figure, word) in rows {
        let _ = writeln!(html, "<div><dt>{name}</dt><dd>{figure}<small>{word}</small></dd></div>");
    }
    html + "</dl>\n"
}

/// Columns from which a table does not fit a phone: there every row is a block, with the names of the columns in it.
const WIDE: usize = 5;

/// A table that scrolls by itself where it is too wide; columns named with `#` at the front hold numbers.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let class = |at: usize| if head[at].starts_with('#') { " class=\"n\"" } else { "" };
    let is_wide = head.len() >= WIDE;
    let wide = if is_wide { " class=\"wide\"" } else { "" };
    let name = |at: usize| match is_wide {
        true => format!(" data-name=\"{}\"", head[at].trim_start_matches('#')),
        false => String::new(),
    };
    let mut html =
        format!("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"table\"><table{wide}>\n");

    if head.iter().any(|name| !name.is_empty()) {
        html += "<thead><tr>";
        for (at, name) in head.iter().enumerate() {
            let _ = write!(html, "<th scope=\"col\"{}>{}</th>", class(at), name.trim_start_matches('#'));
        }
        html += "</tr></thead>\n";
    }
    html += "<tbody>\n";
    for row in rows {
        html += "<tr>";
        for (at, cell) in row.iter().enumerate() {
            match at {
                0 => write!(html, "<th scope=\"row\"{}>{cell}</th>", class(at)),
                _ => write!(html, "<td{}{}>{cell}</td>", class(at), name(at)),
            }
            .expect("a string takes all");
        }
        html += "</tr>\n";
    }
    html + "</tbody>\n</table></div>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(escaped("<a href=\"x\">'&\u{1b}"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp; ");
        let long = escaped(&"<".repeat(3000));
        assert_eq!(long, "&lt;".repeat(LONGEST_TEXT) + " …");
    }
}
