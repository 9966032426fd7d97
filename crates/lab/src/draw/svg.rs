//! The few shapes that drawings are made of.

use std::fmt::Write as _;

/// A point: right, and down.
pub(super) type Point = (f64, f64);

/// Black that is kind to the eye.
pub(super) const INK: &str = "#222222";
/// For what stands in the background.
pub(super) const GREY: &str = "#999999";
/// For what is hardly to be seen.
pub(super) const PALE: &str = "#e6e6e6";

/// How a line is drawn.
#[derive(Clone, Copy)]
pub(super) struct Stroke {
    pub(super) color: &'static str,
    pub(super) width: f64,
    /// Lengths of dashes and gaps; none if it is solid.
    pub(super) dash: &'static str,
}

impl Stroke {
    pub(super) const fn solid(color: &'static str, width: f64) -> Self {
        Self { color, width, dash: "" }
    }

    pub(super) const fn dashed(self, dash: &'static str) -> Self {
        Self { dash, ..self }
    }

    fn attributes(self) -> String {
        let dash = if self.dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", self.dash) };
        format!("stroke=\"{}\" stroke-width=\"{}\"{dash}", self.color, number(self.width))
    }
}

/// Where a text stands relative to its point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing under way.
#[derive(Default)]
pub(super) struct Svg {
    body: String,
}

impl Svg {
    pub(super) fn line(&mut self, from: Point, to: Point, stroke: Stroke) {
        let (x1, y1, x2, y2) = (number(from.0), number(from.1), number(to.0), number(to.1));
        self.add(&format!(r#"<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {}/>"#, stroke.attributes()));
    }

    /// A line bent towards a point.
    pub(super) fn curve(&mut self, from: Point, towards: Point, to: Point, stroke: Stroke) {
        let [a, b, c] = [from, towards, to].map(|(x, y)| format!("{} {}", number(x), number(y)));
        self.add(&format!(r#"<path d="M{a} Q{b} {c}" fill="none" {}/>"#, stroke.attributes()));
    }

    pub(super) fn polygon(&mut self, points: &[Point], fill: &str, stroke: Stroke) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect();
        self.add(&format!(r#"<polygon points="{}" fill="{fill}" {}/>"#, points.join(" "), stroke.attributes()));
    }

    /// A rectangle given by its upper left and lower right corners.
    pub(super) fn rect(&mut self, from: Point, to: Point, fill: &str, stroke: Stroke) {
        let (x, y, width, height) = (number(from.0), number(from.1), number(to.0 - from.0), number(to.1 - from.1));
        let stroke = stroke.attributes();
        self.add(&format!(r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}" {stroke}/>"#));
    }

    pub(super) fn circle(&mut self, at: Point, radius: f64, fill: &str, stroke: Stroke) {
        let (x, y, radius) = (number(at.0), number(at.1), number(radius));
        self.add(&format!(r#"<circle cx="{x}" cy="{y}" r="{radius}" fill="{fill}" {}/>"#, stroke.attributes()));
    }

    /// A cross, for what ends badly.
    pub(super) fn cross(&mut self, (x, y): Point, size: f64, stroke: Stroke) {
        self.line((x - size, y - size), (x + size, y + size), stroke);
        self.line((x - size, y + size), (x + size, y - size), stroke);
    }

    /// The head of an arrow whose tip is at the second point.
    pub(super) fn head(&mut self, from: Point, tip: Point, size: f64, color: &'static str) {
        let (dx, dy) = (tip.0 - from.0, tip.1 - from.1);
        let length = dx.hypot(dy).max(1e-9);
        let (ux, uy) = (dx / length, dy / length);
        let wing = |side: f64| (tip.0 - size * ux - side * size * 0.4 * uy, tip.1 - size * uy + side * size * 0.4 * ux);
        self.polygon(&[tip, wing(1.0), wing(-1.0)], color, Stroke::solid(color, 0.5));
    }

    /// A text with a white rim, so that it can be read on a line. The point is on its base line.
    pub(super) fn text(&mut self, at: Point, anchor: Anchor, size: f64, color: &str, text: &str) {
        self.text_on("white", at, anchor, size, color, text);
    }

    /// A text with a rim of the colour that it stands on.
    pub(super) fn text_on(&mut self, ground: &str, at: Point, anchor: Anchor, size: f64, color: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y, size, text) = (number(at.0), number(at.1), number(size), escape(text));
        let rim = format!(r#"stroke="{ground}" stroke-width="3" stroke-linejoin="round" paint-order="stroke""#);
        self.add(&format!(
            r#"<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" fill="{color}" {rim}>{text}</text>"#
        ));
    }

    fn add(&mut self, element: &str) {
        self.body += element;
        self.body.push('\n');
    }

    /// The whole drawing. It becomes narrower with the page, not wider than it is.
    pub(super) fn finish(self, title: &str, width: f64, height: f64) -> String {
        let (width, height, title) = (number(width), number(height), escape(title));
        let mut svg = String::new();
        let _ = writeln!(
            svg,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{title}" font-family="Helvetica, Arial, sans-serif" style="max-width: 100%; height: auto">"#
        );
        let _ = writeln!(svg, "<title>{title}</title>");
        svg + &self.body + "</svg>\n"
    }
}

/// About how wide a text is.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let wide = |letter: char| match letter {
        'i' | 'j' | 'l' | 'I' | 't' | 'f' | 'r' | '.' | ',' | ':' | ';' | '(' | ')' | ' ' | '|' => 0.34,
        'm' | 'w' | 'M' | 'W' => 0.86,
        'A'..='Z' => 0.7,
        _ => 0.57,
    };
    text.chars().map(wide).sum::<f64>() * size
}

/// With one digit after the point, if it is not 0.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, -0.01, 1.25, -3.0, 10.0].map(number), ["0", "0", "1.2", "-3", "10"]);
    }

    #[test]
    fn text_is_escaped() {
        let mut svg = Svg::default();
        svg.text((0.0, 0.0), Anchor::Start, 10.0, INK, "<a> & \"b\"");
        let drawing = svg.finish("x < y", 10.0, 10.0);
        assert!(drawing.contains(">&lt;a&gt; &amp; &quot;b&quot;</text>"), "{drawing}");
        assert!(drawing.contains("<title>x &lt; y</title>"), "{drawing}");
    }
}
