//! What every chart must be: well-formed, inside its borders, and honest about what it shows.

use super::*;

fn axis(label: &str, log: bool, zero: bool) -> Axis {
    Axis { label: label.to_owned(), log, zero }
}

fn series(name: &str, style: usize, points: &[(f64, f64)]) -> Series {
    let point = |&(x, y): &(f64, f64)| Point { x, y, ci95: None };
    Series { name: name.to_owned(), points: points.iter().map(point).collect(), style }
}

fn plot(log: bool, series: Vec<Series>) -> Plot {
    Plot { title: "a title".to_owned(), x: axis("time (s)", log, false), y: axis("delay (ms)", log, !log), series }
}

/// The same with error bars.
fn with_bars(mut series: Series, half: f64) -> Series {
    series.points.iter_mut().for_each(|point| point.ci95 = Some(half));
    series
}

/// The places of the lines in this colour, one list a line.
fn lines(svg: &str, colour: &str) -> Vec<Vec<(i32, i32)>> {
    let stroke = format!("stroke=\"{colour}\"");
    let lines = svg.lines().filter(|line| line.starts_with("<polyline") && line.contains(&stroke));
    lines.map(|line| places(attribute(line, "points").expect("a line has places"))).collect()
}

fn places(text: &str) -> Vec<(i32, i32)> {
    let number = |text: &str| text.parse().expect("a whole number");
    text.split_whitespace()
        .map(|pair| pair.split_once(',').expect("a pair"))
        .map(|(x, y)| (number(x), number(y)))
        .collect()
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

/// Fails unless tags are balanced, references are known, and everything stands inside the borders.
fn check(plot: &Plot) -> String {
    let svg = plot.svg();
    let mut open = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("a tag ends");
        assert!(!text.contains('>') && tag.matches('"').count() % 2 == 0, "{part}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if tag.ends_with('/') => inside(&svg, tag),
            None => open.push(tag.split(' ').next().expect("a name")),
        }
    }
    assert!(open.is_empty(), "not closed: {open:?}");
    for reference in svg.split('&').skip(1) {
        assert!(["amp;", "lt;", "gt;", "quot;", "apos;"].iter().any(|known| reference.starts_with(known)));
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    svg
}

fn inside(svg: &str, tag: &str) {
    let size = attribute(svg, "viewBox").expect("a size").replace("0 0 ", "").replace(' ', ",");
    let (width, height) = places(&size)[0];
    let mut found = attribute(tag, "points").map(places).unwrap_or_default();
    if let (Some(x), Some(y)) = (attribute(tag, "cx"), attribute(tag, "cy")) {
        found.extend(places(&format!("{x},{y}")));
    }
    for (x, y) in found {
        // The library moves what is outside to the border itself, where nothing belongs.
        assert!((1..width).contains(&x) && (1..height).contains(&y), "{tag}");
    }
}

#[test]
fn everything_written_is_inside_and_escaped() {
    let mut plot = plot(false, vec![series("<lamport> & \"co\"", 0, &[(1.0, 2.0), (2.0, 3.0)])]);
    plot.series.push(series("token-ring-regenerating-it", 1, &[(1.0, 1.0)]));
    plot.title = "a < b & c\u{0}".to_owned();
    plot.x.label = "rate > 0 (1/s)".to_owned();
    let svg = check(&plot);
    for text in
        ["&lt;lamport&gt; &amp; &quot;co&quot;", "token-ring-regenerating-it", "a &lt; b &amp; c ", "rate &gt; 0 (1/s)"]
    {
        assert!(svg.contains(&format!(">\n{text}\n</text>")), "{text}");
    }
    assert!(svg.contains("<title>a &lt; b &amp; c </title>") && svg.contains("aria-label=\"a &lt; b &amp; c \""));
    assert!(svg.contains(">\ndelay (ms)\n</text>"));
}

#[test]
fn the_same_plot_gives_the_same_bytes() {
    let svg = plot(false, Vec::new()).svg();
    let text = |place: &str, size: u32, turn: &str, text: &str| {
        let font = format!("font-family=\"sans-serif\" font-size=\"{size}\" fill=\"#222222\"");
        format!("<text {place} dy=\"0.5ex\" text-anchor=\"middle\" {font}{turn}>\n{text}\n</text>\n")
    };
    let expected = [
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"560\" height=\"352\" viewBox=\"0 0 5600 3520\" role=\"img\" \
         aria-label=\"a title\" stroke-linejoin=\"round\">\n<title>a title</title>\n\
         <rect x=\"0\" y=\"0\" width=\"5600\" height=\"3520\" fill=\"#FFFFFF\" stroke=\"none\"/>\n",
        &text("x=\"2800\" y=\"177\"", 150, "", "a title"),
        "<polyline fill=\"none\" stroke=\"#444444\" stroke-width=\"10\" points=\"350,330 350,2950 5440,2950 \"/>\n",
        &text("x=\"2895\" y=\"3305\"", 130, "", "time (s)"),
        &text("x=\"155\" y=\"1640\"", 130, " transform=\"rotate(270, 155, 1640)\"", "delay (ms)"),
        &text("x=\"2895\" y=\"1652\"", 150, "", "no data"),
        "</svg>\n",
    ];
    assert_eq!(svg, expected.concat());
}

#[test]
fn odd_values_make_a_chart() {
    let odd: [&[(f64, f64)]; 12] = [
        &[(3.0, 7.0)],
        &[(3.0, 7.0), (3.0, 7.0)],
        &[(0.0, 0.0), (1.0, 0.0)],
        &[(1.0, 5.0), (2.0, 5.0), (3.0, 5.000_000_000_1)],
        &[(1.0, f64::MAX), (2.0, 1.0), (f64::MIN, 3.0)],
        &[(1.0, 1e300), (2.0, -1e300)],
        &[(1e-300, 1e-300), (1.0, 1e300)],
        &[(f64::MIN_POSITIVE, 5e-324), (1e-320, 1e-310)],
        &[(1.0, f64::NAN), (f64::INFINITY, 1.0), (2.0, 3.0), (4.0, f64::NEG_INFINITY)],
        &[(-1.0, -5.0), (-2.0, -7.0)],
        &[(1e-40, 1e-40), (1.0, 1.0)],
        &[(1e6, 1e9), (1.000_01e6, 1.000_01e9)],
    ];
    for (points, log) in odd.into_iter().flat_map(|points| [(points, false), (points, true)]) {
        for half in [0.0, -1.0, 1e-3, 1e30, f64::MAX, f64::NAN, f64::INFINITY] {
            let svg = check(&plot(log, vec![with_bars(series("lamport", 0, points), half)]));
            let shown = points.iter().filter(|(x, y)| {
                let fits = |value: f64| value.abs() <= 1e300 && (!log || value >= 1e-300);
                fits(*x) && fits(*y)
            });
            let shown = shown.count();
            // One marker stands in the legend.
            assert_eq!(svg.matches("<circle").count(), shown + 1, "{points:?}, log: {log}");
            assert_eq!(svg.contains("no data"), shown == 0);
            let circles = svg.lines().filter(|line| line.starts_with("<circle"));
            let mut heights = circles.filter_map(|circle| attribute(circle, "cy")?.parse().ok()).take(shown);
            assert!(heights.all(|height: i32| (330..=2950).contains(&height)), "beyond the axes: {points:?}");
        }
    }
}

#[test]
fn a_missing_point_leaves_a_gap() {
    let points = [(1.0, 1.0), (2.0, 2.0), (3.0, 0.0), (4.0, 2.0), (5.0, 4.0), (6.0, 5.0)];
    let lengths = |log| -> Vec<usize> {
        let svg = check(&plot(log, vec![series("lamport", 0, &points)]));
        lines(&svg, "#0072B2").iter().map(Vec::len).collect()
    };
    assert_eq!(lengths(false), [6, 2]);
    assert_eq!(lengths(true), [2, 3, 2]);
}

#[test]
fn a_series_without_any_point_says_so() {
    let points = [(1.0, 0.0), (2.0, 0.0)];
    let svg = check(&plot(true, vec![series("never", 0, &points), series("lamport", 1, &[(1.0, 1.0)])]));
    assert!(svg.contains("\nnever (none shown)\n") && svg.contains("\nlamport\n"));
}

#[test]
fn an_error_bar_that_reaches_zero_is_cut_on_a_logarithmic_axis() {
    let bar = |log, half| {
        let svg = check(&plot(log, vec![with_bars(series("lamport", 0, &[(1.0, 1.0)]), half)]));
        let bar = lines(&svg, "#0072B2").swap_remove(0);
        // The widths of its lower and upper cap.
        (bar[1].0 - bar[0].0, bar[5].0 - bar[4].0)
    };
    assert_eq!(bar(true, 0.5), (70, 70));
    assert_eq!(bar(true, 0.999_999), (0, 70), "the axis does not go down to 1e-6 for it");
    assert_eq!(bar(true, 1.0), (0, 70));
    assert_eq!(bar(true, 3.0), (0, 70));
    assert_eq!(bar(false, 0.5), (70, 70));
    assert_eq!(bar(false, 3.0), (0, 70), "the axis begins at zero");
}

#[test]
fn each_style_has_its_own_marker_and_neighbours_other_dashes() {
    let drawn = |style| {
        let svg = check(&plot(false, vec![series("lamport", style, &[(1.0, 1.0), (2.0, 2.0)])]));
        let rows =
            svg.lines().filter(|row| row.starts_with("<polyline") && attribute(row, "stroke-width") == Some("15"));
        let lines: Vec<&str> = rows.collect();
        let dashes = lines.iter().find_map(|row| attribute(row, "stroke-dasharray")).map(str::to_owned);
        // What remains without colours and lines is the markers; strokes of a marker have no dashes.
        let colourless = |row: &str| row.split('#').map(|part| part.get(6..).unwrap_or("")).collect::<String>();
        let markers: Vec<String> =
            svg.lines().filter(|row| attribute(row, "stroke-dasharray").is_none()).map(colourless).collect();
        (dashes, markers)
    };
    let all: Vec<_> = (0..20).map(drawn).collect();
    for (index, (dashes, markers)) in all.iter().enumerate() {
        assert!(all[..index].iter().all(|(_, other)| other != markers), "marker of style {index}");
        let before = &all[index.saturating_sub(5)..index];
        assert!(before.iter().all(|(other, _)| other != dashes), "dashes of style {index}");
    }
    assert_eq!(drawn(1), drawn(1));
    check(&plot(false, vec![series("lamport", usize::MAX, &[(1.0, 1.0)])]));
}

#[test]
fn many_points_keep_the_line_and_lose_markers() {
    let points: Vec<(f64, f64)> = (0..200).map(|i| (f64::from(i), f64::from(i * i % 37))).collect();
    let svg = check(&plot(false, vec![with_bars(series("lamport", 0, &points), 1.0)]));
    assert!(lines(&svg, "#0072B2").iter().any(|line| line.len() == 200));
    assert!((20..=31).contains(&svg.matches("<circle").count()));
}

#[test]
fn twenty_series_have_room_in_the_legend() {
    let name = |style: usize| format!("a-name-of-25-characters-{style:02}");
    let all: Vec<Series> =
        (0..20).map(|style| series(&name(style), style, &[(1.0, style as f64), (9.0, 3.0)])).collect();
    let svg = check(&plot(false, all));
    assert!((0..20).all(|style| svg.contains(&format!("\n{}\n", name(style)))));
}
