//! `/history`: the time series of the last hour, for programs.

use std::fmt::Write;

use base::history::Window;
use serde_json::json;

use crate::refusal::Refusal;

/// The series named in `wanted` (separated by commas; default: all) as JSON. Gaps are `null`.
///
/// # Errors
/// If a series does not exist.
pub(crate) fn json(window: &Window, wanted: Option<&str>) -> Result<String, Refusal> {
    let names: Vec<&str> = match wanted {
        Some(names) => names.split(',').collect(),
        None => window.all().map(|(series, _)| series.name).collect(),
    };
    let period_ms = window.period.as_millis();
    let mut text =
        format!("{{\n  \"period_ms\": {period_ms},\n  \"end_ms\": {},\n  \"series\": [", window.end_ms);
    for (at, name) in names.iter().enumerate() {
        let Some((series, values)) = window.all().find(|(series, _)| series.name == *name) else {
            return Err(Refusal::missing(format!("Series “{name}” does not exist.")));
        };
        let (unit, help) = (json!(series.unit.name()), json!(series.help));
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(
            text,
            "{comma}\n    {{\"name\": \"{name}\", \"unit\": {unit}, \"help\": {help}, \"values\": ["
        );
        put_values(&mut text, values);
        text.push_str("]}");
    }
    text.push_str("\n  ]\n}\n");
    Ok(text)
}

fn put_values(text: &mut String, values: &[f32]) {
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        match value.is_nan() {
            true => text.push_str("null"),
            // The shortest representation that identifies the value.
            false => drop(write!(text, "{value}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::history::{History, Moment, SAMPLES, Series, Unit};

    use super::*;

    #[test]
    fn series_contain_their_gaps() {
        let series = |name, unit| Series { name, unit, help: "A \"help\"." };
        let series = vec![series("reads", Unit::PerSecond), series("memory", Unit::Bytes)];
        let history = History::new(series, Duration::from_secs(10));
        let now = Moment { wall_ms: 1_700_000_000_000, monotonic: Duration::from_secs(10) };
        history.record(now, &[Some(0.1), Some(3e9)]);
        let window = history.window(now);
        let parsed: serde_json::Value = serde_json::from_str(&json(&window, None).unwrap()).unwrap();
        assert_eq!(
            (&parsed["period_ms"], &parsed["end_ms"]),
            (&json!(10_000), &json!(1_700_000_000_000_u64))
        );
        assert_eq!(parsed["series"][1]["unit"], "bytes");
        let values = parsed["series"][0]["values"].as_array().unwrap();
        assert_eq!((values.len(), &values[0], &values[SAMPLES - 1]), (SAMPLES, &json!(null), &json!(0.1)));
        let one = json(&window, Some("memory")).unwrap();
        assert!(
            one.contains("\"memory\"") && one.contains("3000000000") && !one.contains("\"reads\""),
            "{one}"
        );
        assert_eq!(json(&window, Some("memory,none")).unwrap_err().status, 404);
    }
}
