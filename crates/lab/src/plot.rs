//! Charts for a report, as SVG text.
//!
//! [`Plot::svg`] draws lines with markers and error bars on linear or logarithmic axes. Many of these charts are printed
//! without colour, so a series has its own marker and dashes too. They are chosen by a number that the caller gives: an
//! algorithm then looks the same in every chart. The same plot gives the same bytes.

mod canvas;
mod chart;
mod legend;
mod look;
mod scale;
mod tick;

/// A chart: some series over the same two axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Plot {
    /// What the chart shows; it stands above it.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines, in the order of the legend.
    pub series: Vec<Series>,
}

/// One of the two axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// The quantity with its unit.
    pub label: String,
    /// Whether the scale is logarithmic. Such an axis cannot show zero or less.
    pub log: bool,
    /// Whether a linear axis begins at zero, however far away the values are.
    pub zero: bool,
}

/// A line with its name.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The points, joined in this order. A point that cannot be shown, infinite or not positive on a logarithmic axis,
    /// leaves a gap.
    pub points: Vec<Point>,
    /// Chooses marker, dashes and colour: one number, one look. The markers of 0 to 19 all differ.
    pub style: usize,
}

/// A value with its error.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Where it stands.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// Half the length of the error bar, if there is one.
    pub ci95: Option<f64>,
}

impl Plot {
    /// The chart as an SVG document, without the line that declares XML, so that a page can contain it. It is 560 wide
    /// and about 380 high: the legend of many series makes it higher.
    #[must_use]
    pub fn svg(&self) -> String {
        chart::draw(self)
    }
}

#[cfg(test)]
mod tests;
