//! What the shapes in a drawing mean.

use super::svg::{Anchor, INK, Point, Svg, text_width};

const SIZE: f64 = 12.0;
const ROW: f64 = 20.0;
/// The width of a shape, and between two entries.
const SHAPE: f64 = 34.0;
const BETWEEN: f64 = 18.0;

/// Draws one shape around a point, at most so wide: see [`Entry`].
pub(super) type Shape<'a> = Box<dyn Fn(&mut Svg, Point) + 'a>;

/// A shape, and what it means.
pub(super) struct Entry<'a> {
    pub(super) shape: Shape<'a>,
    pub(super) text: String,
}

/// Draws rows of entries from a point on, no wider than this, and says how high they are. A row that is given separately
/// begins on a new line.
pub(super) fn legend(svg: &mut Svg, (left, top): Point, width: f64, rows: &[Vec<Entry<'_>>]) -> f64 {
    let mut y = top + ROW / 2.0;
    for row in rows.iter().filter(|row| !row.is_empty()) {
        let mut x = left;
        for Entry { shape, text } in row {
            let wide = SHAPE + 6.0 + text_width(text, SIZE);
            if x > left && x + wide > left + width {
                x = left;
                y += ROW;
            }
            shape(svg, (x + SHAPE / 2.0, y));
            svg.text((x + SHAPE + 6.0, y + 0.35 * SIZE), Anchor::Start, SIZE, INK, text);
            x += wide + BETWEEN;
        }
        y += ROW;
    }
    y - ROW / 2.0 - top
}
