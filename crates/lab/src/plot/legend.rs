//! The legend: below the chart in columns, where long names have room.

use super::{
    Series,
    canvas::{Anchor, Canvas, length},
    chart::THICKNESS,
    look::Look,
};

/// The sizes that the names may have: smaller ones may save a row.
const SIZES: [f64; 2] = [12.0, 11.0];

/// The height of a row.
const ROW: f64 = 17.0;

/// The length of the piece of line before a name.
const SAMPLE: f64 = 32.0;

/// The space between that and the name, and between two columns.
const GAPS: (f64, f64) = (6.0, 14.0);

/// More columns than this are hard to read.
const MOST_COLUMNS: usize = 4;

/// Names with their looks, in columns.
pub(super) struct Legend {
    names: Vec<(String, Look)>,
    grid: Grid,
}

/// How the names are arranged.
struct Grid {
    /// The size of the letters.
    size: f64,
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
        let most = MOST_COLUMNS.min(names.len()).max(1);
        let grids = (1..=most).rev().flat_map(|columns| SIZES.map(|size| Grid::new(&names, columns, size)));
        let fitting = grids.into_iter().find(|grid| grid.width() <= room);
        let grid = fitting.unwrap_or_else(|| Grid { columns: vec![room], ..Grid::new(&names, 1, SIZES[1]) });
        Self { names, grid }
    }

    pub(super) fn height(&self) -> f64 {
        self.grid.rows as f64 * ROW
    }

    /// Draws it below `top`, around this middle.
    pub(super) fn draw(&self, canvas: &mut Canvas<'_>, middle: f64, top: f64) {
        let mut left = middle - self.grid.width() / 2.0;
        for (column, &width) in self.names.chunks(self.grid.rows.max(1)).zip(&self.grid.columns) {
            for (row, (name, look)) in column.iter().enumerate() {
                let y = top + (row as f64 + 0.5) * ROW;
                canvas.path(&[(left, y), (left + SAMPLE, y)], THICKNESS, look.colour, look.dashes);
                look.mark(canvas, (left + SAMPLE / 2.0, y));
                let at = (left + SAMPLE + GAPS.0, y);
                canvas.text(name, at, Anchor::Start, self.grid.size, width - SAMPLE - GAPS.0);
            }
            left += width + GAPS.1;
        }
    }
}

impl Grid {
    /// At most so many columns, as wide as the names need.
    fn new(names: &[(String, Look)], columns: usize, size: f64) -> Self {
        let rows = names.len().div_ceil(columns);
        let width = |(name, _): &(String, Look)| SAMPLE + GAPS.0 + length(name, size);
        let columns = names.chunks(rows.max(1)).map(|column| column.iter().map(width).fold(0.0, f64::max)).collect();
        Self { size, rows, columns }
    }

    /// The width of all columns with the gaps.
    fn width(&self) -> f64 {
        self.columns.iter().sum::<f64>() + GAPS.1 * self.columns.len().saturating_sub(1) as f64
    }
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
        for (count, name, columns) in
            [(0, "lamport", 0), (1, "lamport", 1), (8, "lamport", 4), (20, "a name of 25 characters!!", 2)]
        {
            let legend = legend(count, name);
            assert_eq!(legend.grid.columns.len(), columns);
            assert!(legend.grid.width() <= 540.0 && legend.grid.rows * columns >= count);
        }
        let endless = legend(3, &"endless".repeat(50));
        assert!(endless.grid.rows == 3 && endless.grid.width() <= 540.0);
    }
}
