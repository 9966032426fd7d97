//! What the shapes in a drawing mean.

use super::svg::{Anchor, INK, Point, Svg, text_width};

const SIZE: f64 = 12.0;
const ROW: f64 = 20.0;
/// Between two entries.
const BETWEEN: f64 = 20.0;

/// Draws a shape around a point.
pub(super) type Sample = Box<dyn Fn(&mut Svg, Point)>;

/// A shape, and what it means.
pub(super) struct Entry {
    pub(super) shape: Sample,
    pub(super) width: f64,
    pub(super) text: String,
}

/// Draws rows of entries from a point on, no wider than this, and says how high they are. A row that is given separately
/// begins on a new line.
pub(super) fn legend(svg: &mut Svg, (left, top): Point, width: f64, rows: &[Vec<Entry>]) -> f64 {
    let mut y = top + ROW / 2.0;
    for row in rows.iter().filter(|row| !row.is_empty()) {
        let mut x = left;
        for Entry { shape, width: shape_width, text } in row {
            let wide = shape_width + 6.0 + text_width(text, SIZE);
            if x > left && x + wide > left + width {
                x = left;
                y += ROW;
            }
            shape(svg, (x + shape_width / 2.0, y));
            svg.text((x + shape_width + 6.0, y + 0.35 * SIZE), Anchor::Start, SIZE, INK, text);
            x += wide + BETWEEN;
        }
        y += ROW;
    }
    y - ROW / 2.0 - top
}
