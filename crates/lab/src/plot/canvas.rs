//! Drawing on an SVG canvas.
//!
//! The library counts in whole pixels. So the canvas has [`FINENESS`] of them for each unit of the chart, and the document
//! shrinks it again. The library knows no dashes either: they are added to its text afterwards.

use plotters::{
    coord::Shift,
    prelude::{Circle, DrawingArea, DrawingAreaErrorKind, IntoDrawingArea, PathElement, Polygon, SVGBackend, Text},
    style::{
        Color, IntoFont, RGBColor, ShapeStyle, TextStyle,
        text_anchor::{HPos, Pos, VPos},
    },
};

/// Pixels for each unit of the chart.
const FINENESS: f64 = 10.0;

/// The library divides the size of a font by this.
const LINE: f64 = 1.24;

pub(super) const WHITE: RGBColor = RGBColor(255, 255, 255);

/// The colour of titles and numbers.
const INK: RGBColor = RGBColor(34, 34, 34);

/// A place on the canvas: to the right, and down.
pub(super) type Place = (f64, f64);

/// Which part of a text stands at its place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    /// The middle of its beginning.
    Start,
    /// Its middle.
    Middle,
    /// The middle of its end.
    End,
    /// Its middle, and it runs upwards.
    Upwards,
}

/// What is drawn on.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
    /// The dashes of the paths so far.
    dashes: Vec<&'static [f64]>,
}

/// A document of this size, with what `paint` draws.
pub(super) fn document(title: &str, (width, height): (u32, u32), paint: impl FnOnce(&mut Canvas<'_>)) -> String {
    let fine = |length: u32| length * FINENESS as u32;
    let mut drawn = String::new();
    let dashes = painted(&mut drawn, (fine(width), fine(height)), paint);
    // The library's opening tag is replaced by one for readers who hear the page.
    let body = drawn.split_once(">\n").map_or("", |(_, body)| body);
    let title = escaped(title);
    let body = dashed(body, &dashes).replace(" opacity=\"1\"", "");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {} {}\" \
         role=\"img\" aria-label=\"{title}\" stroke-linejoin=\"round\">\n<title>{title}</title>\n{body}",
        fine(width),
        fine(height)
    )
}

/// Lets the library write into `drawn`, and gives the dashes of its paths.
fn painted(drawn: &mut String, size: (u32, u32), paint: impl FnOnce(&mut Canvas<'_>)) -> Vec<&'static [f64]> {
    let mut canvas = Canvas { area: SVGBackend::with_string(drawn, size).into_drawing_area(), dashes: Vec::new() };
    written(canvas.area.fill(&WHITE));
    paint(&mut canvas);
    written(canvas.area.present());
    canvas.dashes
}

impl Canvas<'_> {
    /// A straight line of this thickness.
    pub(super) fn line(&mut self, from: Place, to: Place, thickness: f64, colour: RGBColor) {
        self.path(&[from, to], thickness, colour, &[]);
    }

    /// A line through these places.
    pub(super) fn path(&mut self, places: &[Place], thickness: f64, colour: RGBColor, dashes: &'static [f64]) {
        let style = ShapeStyle { stroke_width: pixels(thickness) as u32, ..colour.stroke_width(0) };
        written(self.area.draw(&PathElement::new(places.iter().map(|&at| pixel(at)).collect::<Vec<_>>(), style)));
        self.dashes.push(dashes);
    }

    /// A filled polygon with these corners.
    pub(super) fn polygon(&mut self, corners: Vec<Place>, colour: RGBColor) {
        let corners: Vec<_> = corners.into_iter().map(pixel).collect();
        written(self.area.draw(&Polygon::new(corners, colour.filled())));
    }

    /// A filled circle.
    pub(super) fn disc(&mut self, at: Place, radius: f64, colour: RGBColor) {
        written(self.area.draw(&Circle::new(pixel(at), pixels(radius), colour.filled())));
    }

    /// A text of this size; one that is longer than `room` is made smaller, at last shorter.
    pub(super) fn text(&mut self, text: &str, at: Place, anchor: Anchor, size: f64, room: f64) {
        let (text, size) = fitting(&cleaned(text), size, room);
        let font = ("sans-serif", font_size(size)).into_font();
        let (horizontal, font) = match anchor {
            Anchor::Start => (HPos::Left, font),
            Anchor::Middle => (HPos::Center, font),
            Anchor::End => (HPos::Right, font),
            Anchor::Upwards => (HPos::Center, font.transform(plotters::style::FontTransform::Rotate270)),
        };
        // The library centres small letters; digits and capitals are higher.
        let lower = size * 0.08;
        let at = if let Anchor::Upwards = anchor { (at.0 + lower, at.1) } else { (at.0, at.1 + lower) };
        let style = TextStyle::from(font).color(&INK).pos(Pos::new(horizontal, VPos::Center));
        written(self.area.draw(&Text::new(text, pixel(at), style)));
    }
}

/// How long a text of this size becomes. A page may use any sans-serif font: these are the letters of a wide one.
pub(super) fn length(text: &str, size: f64) -> f64 {
    let letter = |letter| match letter {
        'i' | 'j' | 'l' | '.' | ',' | '\'' | '|' | ':' | ';' => 0.3,
        'f' | 'r' | 't' | 'I' | ' ' | '-' | '(' | ')' | '[' | ']' | '/' => 0.4,
        'm' | 'w' | 'M' | 'W' | '%' | '—' | '…' => 0.97,
        'A'..='Z' | '+' | '=' | '<' | '>' | '&' => 0.75,
        '\u{1100}'.. => 1.0,
        _ => 0.63,
    };
    text.chars().map(letter).sum::<f64>() * size
}

/// The text and its size, such that it fits.
fn fitting(text: &str, size: f64, room: f64) -> (String, f64) {
    let whole = length(text, size);
    if whole <= room {
        return (text.to_owned(), size);
    }
    // Still smaller letters cannot be read beside the others. Rounding must not make a text too long again.
    let size = (size * room / whole * 0.999).max(size * 0.75);
    if length(text, size) <= room {
        return (text.to_owned(), size);
    }
    let mut kept = text.to_owned();
    while length(&kept, size) + length("…", size) > room {
        if kept.pop().is_none() {
            return (kept, size);
        }
    }
    kept.push('…');
    (kept, size)
}

/// The text without what XML forbids.
fn cleaned(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') { ' ' } else { c }).collect()
}

fn escaped(text: &str) -> String {
    cleaned(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Gives each path in the text its dashes. No other text contains the tag: the library escapes `<`.
fn dashed(body: &str, dashes: &[&[f64]]) -> String {
    let mut parts = body.split("<polyline ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (part, dashes) in parts.zip(dashes) {
        text.push_str("<polyline ");
        let lengths: Vec<String> = dashes.iter().map(|&length| pixels(length).to_string()).collect();
        if !lengths.is_empty() {
            text.push_str(&format!("stroke-dasharray=\"{}\" ", lengths.join(" ")));
        }
        text.push_str(part);
    }
    text
}

/// The size for the library. What it writes has rounding noise for some sizes: then a size a little smaller is as good.
fn font_size(size: f64) -> f64 {
    let wanted = pixels(size);
    let clean = |size: &f64| (size / LINE).fract() == 0.0;
    (wanted - 3..=wanted).rev().map(|size| f64::from(size) * LINE).find(clean).unwrap_or(size * FINENESS * LINE)
}

fn pixel(at: Place) -> (i32, i32) {
    (pixels(at.0), pixels(at.1))
}

fn pixels(length: f64) -> i32 {
    (length * FINENESS).round() as i32
}

/// The library can fail to write a file; here it writes into memory.
fn written<E: std::error::Error + Send + Sync>(result: Result<(), DrawingAreaErrorKind<E>>) {
    result.expect("memory takes every shape");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_shrink_then_lose_their_end() {
        assert_eq!(fitting("short", 10.0, 50.0), ("short".to_owned(), 10.0));
        let (text, size) = fitting("somewhat longer", 10.0, 75.0);
        assert!(text == "somewhat longer" && (7.5..10.0).contains(&size));
        let (text, size) = fitting(&"endless ".repeat(40), 10.0, 75.0);
        assert!(text.starts_with("endless") && text.ends_with('…') && length(&text, size) <= 75.0);
        assert_eq!(fitting("no room", 10.0, 0.0).0, "");
    }

    #[test]
    fn fonts_have_whole_sizes() {
        for size in 80..200 {
            let written = font_size(f64::from(size) / FINENESS) / LINE;
            assert!(written.fract() == 0.0 && (f64::from(size) - 3.0..=f64::from(size)).contains(&written));
        }
    }
}
