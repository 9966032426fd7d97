//! The legend: below the chart in columns, where long names have room.

use super::{
    Series,
    canvas::{Anchor, Canvas, length},
    look::Look,
};

/// The size of the names.
const SIZE: f64 = 12.0;

/// The height of a row.
const ROW: f64 = 17.0;

/// The length of the piece of line before a name.
const SAMPLE: f64 = 34.0;

/// The space between that and the name, and between two columns.
const GAPS: (f64, f64) = (6.0, 14.0);

/// More columns than this are hard to read.
const MOST_COLUMNS: usize = 4;

/// Names with their looks, in columns.
pub(super) struct Legend {
    names: Vec<(String, Look)>,
    rows: usize,
    /// The widths of the columns.
    columns: Vec<f64>,
}

impl Legend {
    /// The legend of these series, in as few rows as the room allows. The flag says whether the chart shows any of the
    /// series: a name without a line needs a word.
    pub(super) fn new<'a>(series: impl Iterator<Item = (&'a Series, bool)>, room: f64) -> Self {
        let names: Vec<(String, Look)> = series
            .map(|(series, shown)| {
                let note = if shown { "" } else { " (none shown)" };
                (format!("{}{note}", series.name), Look::of(series.style))
            })
            .collect();
        let widest = room - SAMPLE - GAPS.0;
        let widths = names.iter().map(|(name, _)| SAMPLE + GAPS.0 + length(name, SIZE).min(widest));
        let widths: Vec<f64> = widths.collect();
        let most = MOST_COLUMNS.min(names.len()).max(1);
        let (rows, columns) = (1..=most)
            .rev()
            .map(|count| columns(&widths, names.len().div_ceil(count).max(1)))
            .find(|(_, columns)| total(columns) <= room)
            .unwrap_or_else(|| columns(&widths, names.len().max(1)));
        Self { names, rows, columns }
    }

    pub(super) fn height(&self) -> f64 {
        if self.names.is_empty() { 0.0 } else { self.rows as f64 * ROW }
    }

    /// Draws it below `top`, around this middle.
    pub(super) fn draw(&self, canvas: &mut Canvas<'_>, middle: f64, top: f64) {
        let mut left = middle - total(&self.columns) / 2.0;
        for (column, &width) in self.names.chunks(self.rows).zip(&self.columns) {
            for (row, (name, look)) in column.iter().enumerate() {
                let y = top + (row as f64 + 0.5) * ROW;
                canvas.path(&[(left, y), (left + SAMPLE, y)], super::chart::THICKNESS, look.colour, look.dashes);
                look.mark(canvas, (left + SAMPLE / 2.0, y));
                let at = left + SAMPLE + GAPS.0;
                canvas.text(name, (at, y), Anchor::Start, SIZE, width - SAMPLE - GAPS.0);
            }
            left += width + GAPS.1;
        }
    }
}

/// The widths of the columns with so many rows each.
fn columns(widths: &[f64], rows: usize) -> (usize, Vec<f64>) {
    let widest = |column: &[f64]| column.iter().copied().fold(0.0, f64::max);
    (rows, widths.chunks(rows).map(widest).collect())
}

/// The width of all columns with the gaps.
fn total(columns: &[f64]) -> f64 {
    columns.iter().sum::<f64>() + GAPS.1 * columns.len().saturating_sub(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legend(count: usize, name: &str) -> Legend {
        let series = Series { name: name.to_owned(), points: Vec::new(), style: 0 };
        Legend::new((0..count).map(|_| (&series, true)), 540.0)
    }

    #[test]
    fn columns_fit_into_the_room() {
        for (count, name, columns) in [(0, "lamport", 0), (1, "lamport", 1), (8, "lamport", 4), (20, "a name of 25 characters!!", 2)] {
            let legend = legend(count, name);
            assert_eq!(legend.columns.len(), columns);
            assert!(total(&legend.columns) <= 540.0 && legend.rows * columns >= count);
        }
        let endless = legend(3, &"endless".repeat(50));
        assert!(endless.rows == 3 && total(&endless.columns) <= 540.0);
    }
}
