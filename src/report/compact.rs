//! Numbers in few characters, for charts, tables and lines of progress.

/// Formats a number in few characters: 0.0125, 3.5, 812, 12.3k, 4.56M.
pub(super) fn compact(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        x if x >= 999_950_000.0 => (value / 1e9, "G"),
        x if x >= 999_950.0 => (value / 1e6, "M"),
        x if x >= 9_999.5 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let decimals = match scaled.abs() {
        0.0 => 0,
        x if x >= 99.95 => 0,
        x if x >= 9.995 => 1,
        x if x >= 0.9995 => 2,
        x => (2.0 - x.log10().floor().max(-6.0)) as usize,
    };
    let text = format!("{scaled:.decimals$}");
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{short}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.002, "0.002"),
            (0.012345, "0.0123"),
            (1.0, "1"),
            (3.456, "3.46"),
            (812.4, "812"),
            (9_999.0, "9999"),
            (12_345.0, "12.3k"),
            (4_561_000.0, "4.56M"),
            (100_000_000.0, "100M"),
            (-2.5, "-2.5"),
        ] {
            assert_eq!(compact(value), text);
        }
    }
}
