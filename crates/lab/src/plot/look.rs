//! How a series looks: marker, dashes and colour.

use plotters::style::RGBColor;

use super::canvas::{Canvas, Place, WHITE};

/// How far a marker reaches from its centre, about.
const RADIUS: f64 = 4.2;

/// How thick the lines of a marker are.
const STROKE: f64 = 1.5;

/// The colours of Okabe and Ito, which colour-blind readers can tell apart, without the yellow: it vanishes on white.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(0, 0, 0),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// Lengths of dashes and gaps in turn. Six kinds and seven colours: only after 42 styles both repeat.
const DASHES: [&[f64]; 6] =
    [&[], &[7.0, 3.0], &[2.0, 2.0], &[9.0, 3.0, 2.0, 3.0], &[14.0, 4.0], &[6.0, 2.0, 2.0, 2.0, 2.0, 2.0]];

/// The markers, such that neighbours are unlike.
const MARKERS: [Marker; 20] = [
    Marker::Full(Shape::Circle),
    Marker::Hollow(Shape::Square),
    Marker::Full(Shape::Up),
    Marker::Hollow(Shape::Diamond),
    Marker::Strokes(&CROSS),
    Marker::Full(Shape::Down),
    Marker::Hollow(Shape::Circle),
    Marker::Full(Shape::Square),
    Marker::Strokes(&PLUS),
    Marker::Hollow(Shape::Up),
    Marker::Full(Shape::Diamond),
    Marker::Hollow(Shape::Star),
    Marker::Strokes(&ASTERISK),
    Marker::Hollow(Shape::Down),
    Marker::Full(Shape::Right),
    Marker::Hollow(Shape::Left),
    Marker::Full(Shape::Star),
    Marker::Hollow(Shape::Right),
    Marker::Full(Shape::Left),
    Marker::Strokes(&HASH),
];

/// The outline of a marker.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Shape {
    Circle,
    Square,
    Diamond,
    Up,
    Down,
    Left,
    Right,
    Star,
}

/// A line of a marker, from one place to another around the centre.
type Stroke = [(f64, f64); 2];

const CROSS: [Stroke; 2] = [[(-0.85, -0.85), (0.85, 0.85)], [(-0.85, 0.85), (0.85, -0.85)]];
const PLUS: [Stroke; 2] = [[(-1.1, 0.0), (1.1, 0.0)], [(0.0, -1.1), (0.0, 1.1)]];
const ASTERISK: [Stroke; 3] =
    [[(0.0, -1.1), (0.0, 1.1)], [(-0.95, -0.55), (0.95, 0.55)], [(-0.95, 0.55), (0.95, -0.55)]];
const HASH: [Stroke; 4] = [
    [(-0.45, -1.1), (-0.45, 1.1)],
    [(0.45, -1.1), (0.45, 1.1)],
    [(-1.1, -0.45), (1.1, -0.45)],
    [(-1.1, 0.45), (1.1, 0.45)],
];

/// The sign at each point of a series.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Marker {
    Full(Shape),
    Hollow(Shape),
    Strokes(&'static [Stroke]),
}

/// The look of a series.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Look {
    pub(super) colour: RGBColor,
    pub(super) dashes: &'static [f64],
    marker: Marker,
}

impl Look {
    /// The look of this number; every number has one.
    pub(super) fn of(style: usize) -> Self {
        Self {
            colour: COLOURS[style % COLOURS.len()],
            dashes: DASHES[style % DASHES.len()],
            marker: MARKERS[style % MARKERS.len()],
        }
    }

    /// Draws the marker.
    pub(super) fn mark(&self, canvas: &mut Canvas<'_>, at: Place) {
        match self.marker {
            Marker::Full(shape) => fill(canvas, shape, at, self.colour, 0.0),
            Marker::Hollow(shape) => {
                fill(canvas, shape, at, self.colour, 0.0);
                fill(canvas, shape, at, WHITE, STROKE);
            }
            Marker::Strokes(strokes) => {
                for [from, to] in strokes {
                    canvas.line(around(at, *from, RADIUS), around(at, *to, RADIUS), STROKE, self.colour);
                }
            }
        }
    }
}

/// Fills the shape, made thinner by so much all around.
fn fill(canvas: &mut Canvas<'_>, shape: Shape, at: Place, colour: RGBColor, thinner: f64) {
    let corners = shape.corners();
    if corners.is_empty() {
        return canvas.disc(at, RADIUS * 0.95 - thinner, colour);
    }
    // All sides of a shape are equally far from its centre, so that a smaller copy leaves a border of one thickness.
    let [a, b] = [corners[0], corners[1]];
    let inner = (a.0 * b.1 - a.1 * b.0).abs() / libm::hypot(b.0 - a.0, b.1 - a.1);
    let radius = RADIUS - thinner / inner;
    canvas.polygon(corners.iter().map(|&corner| around(at, corner, radius)).collect(), colour);
}

fn around(at: Place, corner: (f64, f64), radius: f64) -> Place {
    (at.0 + corner.0 * radius, at.1 + corner.1 * radius)
}

impl Shape {
    /// The corners around the centre; a circle has none.
    fn corners(self) -> Vec<(f64, f64)> {
        let upright = [(0.0, -1.3), (1.126, 0.65), (-1.126, 0.65)];
        match self {
            Self::Circle => Vec::new(),
            Self::Square => vec![(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)],
            Self::Diamond => vec![(0.0, -1.2), (1.2, 0.0), (0.0, 1.2), (-1.2, 0.0)],
            Self::Up => upright.to_vec(),
            Self::Down => upright.map(|(x, y)| (x, -y)).to_vec(),
            Self::Left => upright.map(|(x, y)| (y, x)).to_vec(),
            Self::Right => upright.map(|(x, y)| (-y, x)).to_vec(),
            Self::Star => (0..10).map(star).collect(),
        }
    }
}

/// A corner of the star with five points; those between the points are nearer to the centre.
fn star(corner: u8) -> (f64, f64) {
    let radius = if corner.is_multiple_of(2) { 1.4 } else { 0.7 };
    let (sine, cosine) = libm::sincos(f64::from(corner) * std::f64::consts::PI / 5.0);
    (radius * sine, -radius * cosine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_differ_and_so_do_looks() {
        for (index, marker) in MARKERS.iter().enumerate() {
            assert!(!MARKERS[..index].contains(marker), "{marker:?} twice");
        }
        let looks: Vec<Look> = (0..42).map(Look::of).collect();
        for (index, look) in looks.iter().enumerate() {
            let same_line = |other: &&Look| (other.colour, other.dashes) == (look.colour, look.dashes);
            assert_eq!(looks[..index].iter().find(same_line), None);
        }
    }
}
