//! Puts a chart together: title above, axes around, series inside, legend below.

use plotters::style::RGBColor;

use super::{
    Plot, Point, Series,
    canvas::{Anchor, Canvas, Place, document, length},
    legend::Legend,
    look::Look,
    scale::{LARGEST, Scale, Tick, can_show},
};

/// How thick the line of a series is.
pub(super) const THICKNESS: f64 = 1.5;

/// The width of the whole chart, and the height of what is inside the axes.
const SIZE: (f64, f64) = (560.0, 262.0);

/// Free space at the border.
const BORDER: f64 = 8.0;

/// The sizes of letters.
const TITLE: f64 = 15.0;
const LABEL: f64 = 13.0;
const NUMBER: f64 = 12.0;

/// How far ticks reach out of the axes, and how far away the numbers are.
const TICK: f64 = 5.0;
const SMALL_TICK: f64 = 3.0;
const TO_NUMBER: f64 = 8.0;

/// Half the width of an error bar's ends.
const CAP: f64 = 3.5;

/// A line of more points has no marker and error bar at some, or they would hide it.
const MOST_MARKERS: usize = 30;

const AXIS: RGBColor = RGBColor(68, 68, 68);
const GRID: RGBColor = RGBColor(226, 226, 226);

/// The two scales; without any point there are none.
type Scales = Option<(Scale, Scale)>;

/// The rectangle inside the axes.
#[derive(Clone, Copy)]
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// The ticks of both axes.
struct Ticks {
    x: Vec<Tick>,
    y: Vec<Tick>,
}

/// The chart as text.
pub(super) fn draw(plot: &Plot) -> String {
    let scales = scales(plot);
    let shown = |series: &Series| scales.is_none() || series.points.iter().any(|point| is_shown(plot, point));
    let legend = Legend::new(plot.series.iter().map(|series| (series, shown(series))), SIZE.0 - 2.0 * BORDER);
    let (frame, ticks) = layout(scales.as_ref());
    let below = frame.bottom + TO_NUMBER + NUMBER + LABEL + 16.0;
    let height = below + legend.height() + BORDER;
    document(&plot.title, (SIZE.0 as u32, height.ceil() as u32), |canvas| {
        let middle = (frame.left + frame.right) / 2.0;
        canvas.text(&plot.title, (SIZE.0 / 2.0, frame.top / 2.0), Anchor::Middle, TITLE, SIZE.0 - 2.0 * BORDER);
        axes(canvas, frame, &ticks, scales.as_ref());
        let x_label = (middle, below - LABEL / 2.0 - 8.0);
        canvas.text(&plot.x.label, x_label, Anchor::Middle, LABEL, frame.right - frame.left);
        let y_label = (BORDER + LABEL / 2.0, (frame.top + frame.bottom) / 2.0);
        canvas.text(&plot.y.label, y_label, Anchor::Upwards, LABEL, SIZE.1 + 20.0);
        match &scales {
            Some(scales) => lines(canvas, plot, frame, scales),
            None => canvas.text("no data", (middle, (frame.top + frame.bottom) / 2.0), Anchor::Middle, TITLE, SIZE.0),
        }
        legend.draw(canvas, SIZE.0 / 2.0, below);
    })
}

/// Whether both axes can show the point.
fn is_shown(plot: &Plot, point: &Point) -> bool {
    can_show(&plot.x, point.x) && can_show(&plot.y, point.y)
}

/// The scales that show all points that can be shown, and their error bars.
fn scales(plot: &Plot) -> Scales {
    let points = || plot.series.iter().flat_map(|series| &series.points).filter(|point| is_shown(plot, point));
    let x = Scale::over(&plot.x, points().map(|point| point.x))?;
    let ends = points().flat_map(|point| {
        let (low, high) = bar(point).unwrap_or((point.y, point.y));
        // A bar that nearly reaches zero would stretch the axis without end: it is cut. So is one below an axis that
        // begins at zero.
        let least = match point.y {
            y if plot.y.log => y / 10.0,
            y if plot.y.zero && y >= 0.0 => 0.0,
            _ => low,
        };
        [low.max(least), point.y, high]
    });
    // A tenth of the smallest value is less than the axis can show.
    let y = Scale::over(&plot.y, ends.filter(|&end| can_show(&plot.y, end)))?;
    Some((x, y))
}

/// The ends of the error bar, if there is one to draw.
fn bar(point: &Point) -> Option<(f64, f64)> {
    let half = point.ci95.filter(|half| half.is_finite() && *half > 0.0)?;
    Some(((point.y - half).max(-LARGEST), (point.y + half).min(LARGEST)))
}

/// Where the axes stand, and their ticks: the numbers on the left decide how much width remains.
fn layout(scales: Option<&(Scale, Scale)>) -> (Frame, Ticks) {
    let top = TITLE + 2.0 * BORDER + 2.0;
    let bottom = top + SIZE.1;
    let y = scales.map_or_else(Vec::new, |(_, y)| y.ticks(|ticks| are_apart(ticks, SIZE.1, |_| 16.0, 28.0)));
    let widest = y.iter().map(|tick| length(&tick.text, NUMBER)).fold(0.0, f64::max);
    let left = BORDER + LABEL + 6.0 + widest + TO_NUMBER;
    let right = SIZE.0 - 2.0 * BORDER;
    let width = |tick: &Tick| length(&tick.text, NUMBER);
    let x = scales.map_or_else(Vec::new, |(x, _)| x.ticks(|ticks| are_apart(ticks, right - left, width, 44.0)));
    // The last number may reach beyond the axis.
    let beyond = x.last().map_or(0.0, |tick| width(tick) / 2.0 - (1.0 - tick.place) * (right - left));
    let right = right.min(SIZE.0 - BORDER / 2.0 - beyond);
    (Frame { left, right, top, bottom }, Ticks { x, y })
}

/// Whether the numbers stand well apart on an axis of this length, and by `least` at any rate. `size` tells how much of it
/// a number takes.
fn are_apart(ticks: &[Tick], length: f64, size: impl Fn(&Tick) -> f64, least: f64) -> bool {
    ticks.windows(2).all(|pair| {
        let taken = (size(&pair[0]) + size(&pair[1])) / 2.0;
        (pair[1].place - pair[0].place) * length >= (taken + 12.0).max(least)
    })
}

/// The grid, both axes, their ticks and numbers.
fn axes(canvas: &mut Canvas<'_>, frame: Frame, ticks: &Ticks, scales: Option<&(Scale, Scale)>) {
    let Frame { left, right, top, bottom } = frame;
    for tick in &ticks.x {
        let x = frame.x(tick.place);
        canvas.line((x, top), (x, bottom), 1.0, GRID);
    }
    for tick in &ticks.y {
        let y = frame.y(tick.place);
        canvas.line((left, y), (right, y), 1.0, GRID);
    }
    let small = |scale: Option<&Scale>| scale.map_or_else(Vec::new, Scale::small_ticks);
    let places = |ticks: &[Tick]| ticks.iter().map(|tick| (tick.place, TICK)).collect::<Vec<_>>();
    let with = |small: Vec<f64>| small.into_iter().map(|place| (place, SMALL_TICK));
    for (place, reach) in places(&ticks.x).into_iter().chain(with(small(scales.map(|(x, _)| x)))) {
        let x = frame.x(place);
        canvas.line((x, bottom), (x, bottom + reach), 1.0, AXIS);
    }
    for (place, reach) in places(&ticks.y).into_iter().chain(with(small(scales.map(|(_, y)| y)))) {
        let y = frame.y(place);
        canvas.line((left - reach, y), (left, y), 1.0, AXIS);
    }
    canvas.path(&[(left, top), (left, bottom), (right, bottom)], 1.0, AXIS, &[]);
    for tick in &ticks.x {
        let at = (frame.x(tick.place), bottom + TO_NUMBER + NUMBER / 2.0);
        canvas.text(&tick.text, at, Anchor::Middle, NUMBER, SIZE.0);
    }
    for tick in &ticks.y {
        canvas.text(&tick.text, (left - TO_NUMBER, frame.y(tick.place)), Anchor::End, NUMBER, SIZE.0);
    }
}

/// All series. The markers come last, so that no line hides one.
fn lines(canvas: &mut Canvas<'_>, plot: &Plot, frame: Frame, scales: &(Scale, Scale)) {
    let place = |point: &Point| (frame.x(scales.0.place(point.x)), frame.y(scales.1.place(point.y)));
    let mut markers: Vec<(Look, Place)> = Vec::new();
    for series in &plot.series {
        let look = Look::of(series.style);
        for run in series.points.split(|point| !is_shown(plot, point)) {
            let places: Vec<Place> = run.iter().map(place).collect();
            let stride = run.len().div_ceil(MOST_MARKERS).max(1);
            for (point, &at) in run.iter().zip(&places).step_by(stride) {
                error_bar(canvas, frame, &scales.1, (point, at), look.colour);
                markers.push((look, at));
            }
            if places.len() > 1 {
                canvas.path(&places, THICKNESS, look.colour, look.dashes);
            }
        }
    }
    for (look, at) in markers {
        look.mark(canvas, at);
    }
}

/// A bar from one end of the interval to the other. It is cut at the border, and an end that is cut away has no cap.
fn error_bar(canvas: &mut Canvas<'_>, frame: Frame, scale: &Scale, (point, at): (&Point, Place), colour: RGBColor) {
    let Some((low, high)) = bar(point) else { return };
    let mut places = Vec::new();
    for end in [low, high].map(|end| scale.place(end)) {
        let y = frame.y(end.clamp(0.0, 1.0));
        let cap = if (0.0..=1.0).contains(&end) { CAP } else { 0.0 };
        places.push([(at.0 - cap, y), (at.0 + cap, y), (at.0, y)]);
    }
    // One stroke: the lower cap, up to the middle of the upper one, and that cap.
    places[1].rotate_right(1);
    canvas.path(&places.concat(), 1.0, colour, &[]);
}

impl Frame {
    fn x(&self, place: f64) -> f64 {
        self.left + place * (self.right - self.left)
    }

    fn y(&self, place: f64) -> f64 {
        self.bottom - place * (self.bottom - self.top)
    }
}
