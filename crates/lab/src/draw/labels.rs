//! Where to put words so that they can be read.
//!
//! Each text has a few places where it could stand. The one that disturbs least is taken, text by text: words on words disturb
//! most, then words on bars and marks, then words on lines.

use super::svg::{Point, text_width};

/// A part of the page.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Area {
    /// Where a text of this width and height stands around a point.
    fn around((x, y): Point, width: f64, height: f64) -> Self {
        Self { left: x - width / 2.0, top: y - height / 2.0, right: x + width / 2.0, bottom: y + height / 2.0 }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    fn contains(&self, other: &Self) -> bool {
        self.left <= other.left && self.top <= other.top && self.right >= other.right && self.bottom >= other.bottom
    }

    /// Whether a line goes through: what is left of it between the four sides.
    fn is_crossed(&self, from: Point, to: Point) -> bool {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let (mut first, mut last) = (0.0_f64, 1.0_f64);
        for (step, near, far) in
            [(dx, self.left - from.0, self.right - from.0), (dy, self.top - from.1, self.bottom - from.1)]
        {
            if step.abs() < 1e-9 {
                if near > 0.0 || far < 0.0 {
                    return false;
                }
            } else {
                let (one, other) = (near / step, far / step);
                first = first.max(one.min(other));
                last = last.min(one.max(other));
            }
        }
        first <= last
    }

    /// The middle of the base line of a text that stands here.
    pub(super) fn base(&self) -> Point {
        let height = self.bottom - self.top;
        (f64::midpoint(self.left, self.right), self.bottom - 0.22 * height)
    }
}

/// What is on the page already.
pub(super) struct Room {
    pub(super) page: Area,
    /// Words.
    pub(super) words: Vec<Area>,
    /// Bars and marks.
    pub(super) shapes: Vec<Area>,
    /// Arrows.
    pub(super) arrows: Vec<(Point, Point)>,
    /// What a word may well stand on, if it must.
    pub(super) faint: Vec<(Point, Point)>,
}

/// A text that costs more than this disturbs more than it tells.
pub(super) const TOO_MUCH: f64 = 45.0;

impl Room {
    /// The best of these places, earlier ones first, and what it costs.
    pub(super) fn best(&self, places: &[Area]) -> Option<(Area, f64)> {
        let mut best: Option<(Area, f64)> = None;
        for (at, place) in places.iter().enumerate() {
            let cost = self.cost(place) + 0.25 * at as f64;
            if best.is_none_or(|(_, least)| cost < least) {
                best = Some((*place, cost));
            }
        }
        best
    }

    fn cost(&self, place: &Area) -> f64 {
        let on = |areas: &[Area]| areas.iter().filter(|area| area.overlaps(place)).count() as f64;
        let crossed =
            |lines: &[(Point, Point)]| lines.iter().filter(|line| place.is_crossed(line.0, line.1)).count() as f64;
        let outside = if self.page.contains(place) { 0.0 } else { 10_000.0 };
        outside
            + 1000.0 * on(&self.words)
            + 40.0 * on(&self.shapes)
            + 9.0 * crossed(&self.arrows)
            + 6.0 * crossed(&self.faint)
    }
}

/// How far a text stays away from what it belongs to.
const GAP: f64 = 3.0;

/// Farther away a text does not seem to belong to its arrow.
const FAR: f64 = 34.0;

/// Places for a text beside an arrow: near its middle first, on either side.
pub(super) fn beside(from: Point, to: Point, text: &str, size: f64) -> Vec<Area> {
    let (width, height) = (text_width(text, size), size);
    let (dx, dy) = ((to.0 - from.0).abs().max(1e-9), (to.1 - from.1).abs().max(1e-9));
    let aside = width / 2.0 + height / 2.0 * dx / dy + GAP;
    let above = height / 2.0 + width / 2.0 * dy / dx + GAP;
    let mut places = Vec::new();
    for share in [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82] {
        let (x, y) = (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1));
        if aside - width / 2.0 <= FAR {
            places.push(Area::around((x + aside, y), width, height));
            places.push(Area::around((x - aside, y), width, height));
        }
        if above <= FAR {
            places.push(Area::around((x, y - above), width, height));
            places.push(Area::around((x, y + above), width, height));
        }
    }
    places
}

/// Places for a text at a mark: beside it, unless it stands on a line; above and below, to the right, to the left, or in the
/// middle.
pub(super) fn at_mark((x, y): Point, on_line: bool, text: &str, size: f64) -> Vec<Area> {
    const MARK: f64 = 5.0;
    let (width, height) = (text_width(text, size), size);
    let (aside, above) = (width / 2.0 + MARK, height / 2.0 + MARK + GAP);
    let mut places = Vec::new();
    if !on_line {
        let aside = aside + GAP;
        places.extend([aside, -aside].map(|right| Area::around((x + right, y), width, height)));
    }
    for level in [above, above + height + 2.0] {
        for (right, down) in
            [(aside, -level), (aside, level), (0.0, -level), (0.0, level), (-aside, -level), (-aside, level)]
        {
            places.push(Area::around((x + right, y + down), width, height));
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Area = Area { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };

    #[test]
    fn lines_cross_areas() {
        assert!(AREA.is_crossed((-5.0, 5.0), (15.0, 6.0)));
        assert!(AREA.is_crossed((5.0, -5.0), (5.0, 15.0)));
        assert!(AREA.is_crossed((2.0, 2.0), (3.0, 3.0)));
        assert!(!AREA.is_crossed((-5.0, 5.0), (-1.0, 5.0)));
        assert!(!AREA.is_crossed((-5.0, 8.0), (8.0, 25.0)));
    }

    #[test]
    fn words_do_not_stand_on_words_while_there_is_room() {
        let page = Area { left: -100.0, top: -100.0, right: 100.0, bottom: 100.0 };
        let mut room = Room { page, words: vec![], shapes: vec![], arrows: vec![], faint: vec![] };
        let arrow = ((0.0, -90.0), (20.0, 90.0));
        room.arrows.push(arrow);
        for _ in 0..8 {
            let (place, cost) = room.best(&beside(arrow.0, arrow.1, "Reply", 11.0)).expect("there are places");
            assert!(cost < 9.0 && !room.words.iter().any(|word| word.overlaps(&place)));
            room.words.push(place);
        }
    }
}
