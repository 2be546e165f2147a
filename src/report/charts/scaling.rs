//! The plot of `vecaz bench-scaling`.

use super::chart::{Axis, LineChart, Series};
use crate::error::Result;
use crate::report::scaling_plot::ScalingRow;

/// Simulations per second over N as an SVG document with logarithmic axes. One line per network, L, number of threads that were allowed,
/// and root cache on or off.
///
/// # Errors
/// [`crate::Error::Unsupported`] with the plotting library's message.
pub fn scaling_svg(rows: &[ScalingRow]) -> Result<String> {
    let mut series: Vec<Series> = vec![];
    for row in rows.iter().filter(|row| row.games > 0 && row.simulations_per_second > 0.0) {
        let name = line_name(row);
        let point = (row.games as f64, row.simulations_per_second);
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => series.push(Series { name, points: vec![point] }),
        }
    }
    for series in &mut series {
        series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let only = match series.as_slice() {
        [only] => format!("{}, ", only.name), // a chart with one line has no legend
        _ => String::new(),
    };
    let title =
        rows.first().map(|r| format!("{}, S = {}, {only}{}: simulations/s", r.game, r.sims, r.device));
    let chart = LineChart {
        title: title.as_deref().unwrap_or_default(),
        x_label: "N, games at once",
        x_axis: Axis::Log2,
        y_axis: Axis::Log10,
        series,
        reference: None,
        size: (860, 520),
    };
    chart.svg()
}

fn line_name(row: &ScalingRow) -> String {
    let threads = if row.max_threads == 1 { "thread" } else { "threads" };
    let cache = match row.root_cache {
        0 => String::new(),
        simulations => format!(", root cache {simulations}"),
    };
    format!("{}, L = {}, {} {threads}{cache}", row.net, row.leaves, row.max_threads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::scaling_plot::example_rows;

    #[test]
    fn rows_that_differ_in_the_number_of_games_only_are_one_line() {
        let row = |(games, threads)| ScalingRow {
            games,
            threads,
            max_threads: 8,
            leaves: 1,
            net: "uniform".into(),
            simulations_per_second: 1e3 * games as f64,
            ..ScalingRow::default()
        };
        let svg = scaling_svg(&[(1, 1), (16, 8), (4, 4), (512, 8)].map(row)).expect("drawn");
        assert_eq!(svg.matches("<polyline").count() - svg_axes(&svg), 1, "{svg}");
        assert!(svg.contains("uniform, L = 1, 8 threads"), "the title says what the line is");
    }

    /// Lines of the axes and their marks: black, not of a colour of the chart's lines.
    fn svg_axes(svg: &str) -> usize {
        svg.lines()
            .filter(|line| line.starts_with("<polyline") && line.contains("stroke=\"#3C3C3C\""))
            .count()
    }

    #[test]
    fn the_plot_has_one_line_per_network_and_number_of_threads() {
        let svg = scaling_svg(&example_rows()).expect("drawn");
        for name in ["uniform, L = 4, 1 thread", "uniform, L = 4, 2 threads", "2x32, L = 4, 2 threads"] {
            assert!(svg.contains(name), "{name}");
        }
        assert!(scaling_svg(&[]).expect("drawn").starts_with("<svg"));
    }
}
