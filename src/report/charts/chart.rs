//! Line charts as SVG, for reports.

use crate::error::{Error, Result};
use crate::report::compact::compact;
use plotters::prelude::*;

/// Colours of the lines, on white and on a dark page.
const COLORS: [(RGBColor, RGBColor); 8] = [
    (RGBColor(31, 119, 180), RGBColor(90, 170, 235)),
    (RGBColor(214, 90, 20), RGBColor(245, 145, 75)),
    (RGBColor(44, 140, 60), RGBColor(95, 195, 110)),
    (RGBColor(148, 80, 170), RGBColor(195, 140, 220)),
    (RGBColor(200, 40, 60), RGBColor(240, 105, 120)),
    (RGBColor(120, 85, 60), RGBColor(190, 155, 125)),
    (RGBColor(20, 160, 170), RGBColor(80, 205, 215)),
    (RGBColor(110, 110, 110), RGBColor(165, 165, 165)),
];
/// The colour of the reference line: the last one.
const REFERENCE: RGBColor = COLORS[COLORS.len() - 1].0;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

const INK: RGBColor = RGBColor(60, 60, 60);
const GRID: RGBColor = RGBColor(232, 232, 232);

/// Style rules of a page with charts: its variables `--axis`, `--line` and `--paper` replace the colours of ink, grid and ground, and
/// lines are brighter where the reader prefers dark pages.
pub(in crate::report) fn page_style() -> String {
    let hex = |RGBColor(r, g, b): RGBColor| format!("#{r:02X}{g:02X}{b:02X}");
    let rule = |property: &str, from: RGBColor, to: &str| {
        format!("svg [{property}=\"{}\"] {{ {property}: {to}; }}\n", hex(from))
    };
    let mut style = rule("stroke", INK, "var(--axis)") + &rule("fill", INK, "var(--axis)");
    style += &(rule("stroke", GRID, "var(--line)") + &rule("fill", WHITE, "var(--paper)"));
    style += "@media (prefers-color-scheme: dark) {\n";
    for (light, dark) in COLORS {
        style += &(rule("stroke", light, &hex(dark)) + &rule("fill", light, &hex(dark)));
    }
    style + "}\n"
}

/// The labels of a horizontal axis. Both axes are linear, with 0 in the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    /// Labels at any numbers.
    Any,
    /// Labels at whole numbers only.
    Whole,
}

/// One line.
#[derive(Clone, Debug)]
pub(super) struct Series {
    /// The name in the legend.
    pub name: String,
    /// The points, in the order of the line.
    pub points: Vec<(f64, f64)>,
}

/// A line chart.
#[derive(Clone, Debug)]
pub(super) struct LineChart<'a> {
    /// The title above the chart.
    pub title: &'a str,
    /// The label of the horizontal axis.
    pub x_label: &'a str,
    /// Labels of the horizontal axis.
    pub x_axis: Axis,
    /// The lines.
    pub series: Vec<Series>,
    /// A horizontal line for comparison: name and value.
    pub reference: Option<(&'a str, f64)>,
    /// Width and height in pixels.
    pub size: (u32, u32),
}

impl LineChart<'_> {
    /// True if no line has a point.
    pub fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.points.is_empty())
    }

    /// The chart as an SVG document.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the plotting library's message.
    pub fn svg(&self) -> Result<String> {
        let mut svg = String::new();
        let shown = Self { series: self.drawable(), ..*self };
        let drawn = {
            let root = SVGBackend::with_string(&mut svg, self.size).into_drawing_area();
            shown.draw(&root)
        };
        drawn.map_err(|e| Error::unsupported("plotting", e))?;
        Ok(svg)
    }

    /// The lines without the points that cannot be drawn on the axes.
    fn drawable(&self) -> Vec<Series> {
        let on_axes = |&(x, y): &(f64, f64)| is_drawable(x) && is_drawable(y);
        let line = |series: &Series| Series {
            name: series.name.clone(),
            points: series.points.iter().copied().filter(on_axes).collect(),
        };
        self.series.iter().map(line).collect()
    }

    fn draw(&self, root: &Area<'_>) -> Result<(), String> {
        let all = || self.series.iter().flat_map(|series| series.points.iter());
        let reference = self.reference.iter().map(|(_, y)| *y);
        let x = range(all().map(|p| p.0));
        let y = range(all().map(|p| p.1).chain(reference));
        let ends = (x.start, x.end);
        let words = |e: &dyn std::fmt::Display| e.to_string();
        root.fill(&WHITE).map_err(|e| words(&e))?;
        let root = root.margin(6, 0, 0, 0);
        let title = ("sans-serif", 17).into_font().color(&INK);
        let area = root.titled(self.title, title).map_err(|e| words(&e))?;
        let area = self.draw_legend(&area)?;
        let mut builder = ChartBuilder::on(&area);
        builder.margin(10).margin_right(20).x_label_area_size(38).y_label_area_size(52);
        let mut chart = builder.build_cartesian_2d(x, y).map_err(|e| words(&e))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK)
            .x_desc(self.x_label)
            .label_style(("sans-serif", 12).into_font().color(&INK))
            .x_labels(self.x_axis.labels(ends.1))
            .y_labels(7)
            .x_label_formatter(&|value| self.x_axis.label(*value))
            .y_label_formatter(&|value| compact(*value))
            .draw()
            .map_err(|e| words(&e))?;
        if let Some((_, value)) = self.reference {
            let line = LineSeries::new([(ends.0, value), (ends.1, value)], REFERENCE.stroke_width(1));
            chart.draw_series(line).map_err(|e| words(&e))?;
        }
        for (series, (color, _)) in self.series.iter().zip(COLORS.iter().cycle()) {
            if series.points.is_empty() {
                continue;
            }
            let line = LineSeries::new(series.points.iter().copied(), color.stroke_width(2));
            chart.draw_series(line).map_err(|e| words(&e))?;
            if series.points.len() <= 40 {
                let dots = series.points.iter().map(|&point| Circle::new(point, 2, color.filled()));
                chart.draw_series(dots).map_err(|e| words(&e))?;
            }
        }
        root.present().map_err(|e| words(&e))
    }

    /// Draws the legend above the chart and returns the area below it.
    fn draw_legend<'b>(&self, area: &Area<'b>) -> Result<Area<'b>, String> {
        const ROW: i32 = 17;
        const LEFT: i32 = 62;
        const SWATCH: i32 = 16;
        const LETTER_WIDTH: f64 = 6.6; // estimate for 12 pixels; the viewer's font is unknown
        let colors = COLORS.iter().map(|(color, _)| *color).cycle();
        let lines = self.series.iter().map(|series| series.name.as_str()).zip(colors);
        let entries: Vec<(&str, RGBColor)> =
            lines.chain(self.reference.map(|(name, _)| (name, REFERENCE))).collect();
        if entries.len() < 2 {
            return Ok(area.clone());
        }
        let right = area.dim_in_pixel().0 as i32 - 10;
        let mut positions = vec![];
        let (mut x, mut row) = (LEFT, 0);
        for (name, _) in &entries {
            let width = SWATCH + 22 + (name.chars().count() as f64 * LETTER_WIDTH) as i32;
            if x + width > right && x > LEFT {
                (x, row) = (LEFT, row + 1);
            }
            positions.push((x, row * ROW + 11));
            x += width;
        }
        let (legend, rest) = area.split_vertically(ROW * (row + 1) + 4);
        for ((name, color), (x, y)) in entries.into_iter().zip(positions) {
            let swatch = PathElement::new([(x, y), (x + SWATCH, y)], color.stroke_width(3));
            let font = ("sans-serif", 12).into_font().color(&INK);
            let name = Text::new(name.to_string(), (x + SWATCH + 6, y - 5), font);
            let drawn = legend.draw(&swatch).and_then(|()| legend.draw(&name));
            drawn.map_err(|e| e.to_string())?;
        }
        Ok(rest)
    }
}

/// Whether a value can be drawn. The plotting library does not terminate for axes of extreme range.
fn is_drawable(value: f64) -> bool {
    value.abs() <= 1e15
}

impl Axis {
    /// Maximum number of labels of a horizontal axis that ends at `end`.
    fn labels(self, end: f64) -> usize {
        const MAX: usize = 8;
        match self {
            Self::Whole => MAX.min(end.max(1.0) as usize + 1),
            Self::Any => MAX,
        }
    }

    fn label(self, value: f64) -> String {
        match self {
            Self::Whole if value.fract() != 0.0 => String::new(),
            Self::Whole => value.to_string(),
            Self::Any => compact(value),
        }
    }
}

/// The range of the values and 0 with a margin; never empty.
fn range(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    if low > high {
        return 0.0..1.0;
    }
    let (low, high) = (low.min(0.0), high.max(0.0));
    // The library does not terminate for labels closer than the precision of the values either.
    let is_wide = high - low > 1e-9 * high.abs().max(low.abs());
    let span = if is_wide { high - low } else { high.abs().max(1.0) };
    let below = if low == 0.0 { 0.0 } else { 0.04 * span };
    let above = if high == 0.0 && is_wide { 0.0 } else { 0.06 * span };
    low - below..high + above
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, f64)], axis: Axis) -> LineChart<'static> {
        let series = |name: &str| Series { name: name.to_string(), points: points.to_vec() };
        LineChart {
            title: "A title",
            x_label: "x",
            x_axis: axis,
            series: vec![series("first"), series("second")],
            reference: None,
            size: (400, 300),
        }
    }

    #[test]
    fn any_number_of_points_can_be_drawn_on_any_axis() {
        for axis in [Axis::Any, Axis::Whole] {
            for points in [&[][..], &[(1.0, 5.0)], &[(1.0, 5.0), (2.0, 5.0)], &[(1.0, 0.5), (512.0, 1e7)]] {
                let svg = chart(points, axis).svg().expect("drawn");
                assert!(svg.starts_with("<svg") && svg.contains("A title"), "{axis:?} {points:?}");
                assert_eq!(svg.contains("<circle"), !points.is_empty());
                assert!(!svg.contains("NaN"), "{axis:?} {points:?}");
            }
        }
    }

    /// The texts of the horizontal axis, without its name.
    fn marks(points: &[(f64, f64)], axis: Axis) -> Vec<String> {
        let svg = chart(points, axis).svg().expect("drawn");
        let texts = svg.split("<text ").skip(1).filter(|text| text.contains("text-anchor=\"middle\""));
        let texts = texts.filter_map(|text| text.split_once('>')?.1.split_once('<'));
        let texts = texts.map(|(text, _)| text.trim().to_string());
        texts.filter(|text| text.parse::<f64>().is_ok()).collect()
    }

    #[test]
    fn an_axis_of_few_epochs_has_whole_numbers_from_zero() {
        let points = |epochs: i32| (1..=epochs).map(|x| (f64::from(x), 0.5)).collect::<Vec<_>>();
        assert_eq!(marks(&points(1), Axis::Whole), ["0", "1"]);
        assert_eq!(marks(&points(3), Axis::Whole), ["0", "1", "2", "3"]);
        for epochs in [5, 12, 45, 1000, 20_000] {
            let marks = marks(&points(epochs), Axis::Whole);
            assert!((3..=8).contains(&marks.len()) && marks[0] == "0", "{epochs}: {marks:?}");
        }
        let one = marks(&[(0.15, 0.5)], Axis::Any);
        assert!(one.len() >= 3 && one.iter().all(|mark| !mark.starts_with('-')), "{one:?}");
    }

    #[test]
    fn a_reference_line_is_within_the_chart_and_named() {
        let with =
            LineChart { reference: Some(("random", 40.0)), ..chart(&[(1.0, 5.0), (2.0, 6.0)], Axis::Any) };
        let (with, without) = (with.svg().expect("drawn"), chart(&[(1.0, 5.0), (2.0, 6.0)], Axis::Any));
        let without = without.svg().expect("drawn");
        assert!(with.contains("\nrandom\n") && with.contains("\n40\n"), "{with}");
        assert!(!without.contains("random") && !without.contains("\n40\n"));
    }

    #[test]
    fn extreme_values_are_left_out() {
        for axis in [Axis::Any, Axis::Whole] {
            for wild in [1e307, -1e307, 1e-307, f64::MAX, f64::INFINITY, f64::NAN, 1e16, -0.0, 1.0 + 1e-15] {
                for points in [
                    vec![(1.0, wild)],
                    vec![(wild, 1.0), (2.0, 3.0)],
                    vec![(1.0, 1.0), (2.0, wild), (3.0, wild)],
                ] {
                    let svg = chart(&points, axis).svg().expect("drawn");
                    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{axis:?} {points:?}");
                }
            }
        }
    }
}
