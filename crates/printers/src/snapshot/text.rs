//! Numbers in the form of Hadoop's `StringUtils` and of Java's `Formatter`.

const UNITS: [&str; 6] = ["K", "M", "G", "T", "P", "E"];

/// A size: `5040`, or `4.9 K` with a unit.
pub(super) fn size(bytes: u64, is_exact: bool) -> String {
    if is_exact || bytes < 1024 {
        return bytes.to_string();
    }
    let mut unit = (bytes.ilog2() / 10) as usize;
    if bytes.is_multiple_of(1 << (10 * unit)) {
        return format!("{} {}", bytes >> (10 * unit), UNITS[unit - 1]);
    }
    let shown = |unit: usize| decimal(bytes as f64 / (1u64 << (10 * unit)) as f64, 1);
    if shown(unit).starts_with("1024") && unit < UNITS.len() {
        unit += 1;
    }
    format!("{} {}", shown(unit), UNITS[unit - 1])
}

/// A number with some decimal places. Java rounds a half up.
pub(super) fn decimal(value: f64, places: usize) -> String {
    let scale = 10_f64.powi(places as i32);
    format!("{:.places$}", (value * scale).round() / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_hadoops() {
        for (bytes, shown) in [
            (0, "0"),
            (1023, "1023"),
            (1024, "1 K"),
            (1025, "1.0 K"),
            (1280, "1.3 K"),
            (5040, "4.9 K"),
            ((1 << 20) - 1, "1.0 M"),
            (3 << 20, "3 M"),
            (u64::MAX, "16.0 E"),
        ] {
            assert_eq!(size(bytes, false), shown);
            assert_eq!(size(bytes, true), bytes.to_string());
        }
    }

    #[test]
    fn halves_are_rounded_up() {
        assert_eq!(decimal(0.125, 2), "0.13");
        assert_eq!(decimal(46.624, 2), "46.62");
        assert_eq!(decimal(f64::NAN, 2), "NaN");
    }
}
