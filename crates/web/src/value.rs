//! A value on a page: a short text, and optionally a tooltip, link or level.

use base::history::Unit;
use maud::{Markup, html};

use crate::meter::meter;
use crate::units;

/// Maximum number of characters of a key to show. The tooltip has the whole key.
const KEY_CHARS_MAX: usize = 40;

/// The severity of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No action needed.
    Good,
    /// Action is needed soon, during working hours.
    Warning,
    /// Action is needed now.
    Bad,
}

impl Level {
    /// The class in the style sheet.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Level::Good => "good",
            Level::Warning => "warning",
            Level::Bad => "bad",
        }
    }
}

/// A value in a table cell or a list of facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Value {
    text: String,
    title: Option<String>,
    address: Option<String>,
    is_number: bool,
    is_key: bool,
    is_whole: bool,
    // The used amount and its limit.
    used: Option<(u64, u64)>,
    level: Option<Level>,
}

impl Value {
    /// A text.
    pub fn text(text: impl Into<String>) -> Value {
        Value { text: text.into(), ..Value::default() }
    }

    /// An integer, shown in full.
    pub fn count(count: u64) -> Value {
        Value { text: units::exact(count), is_number: true, ..Value::default() }
    }

    /// A number that is a name, such as an id: aligned right, without thousands separators.
    pub fn id(text: impl Into<String>) -> Value {
        Value { is_number: true, ..Value::text(text) }
    }

    /// A size in bytes, rounded. The tooltip has the exact size.
    pub fn bytes(bytes: u64) -> Value {
        Value {
            text: units::format(bytes as f64, Unit::Bytes),
            title: Some(format!("{} bytes", units::exact(bytes))),
            is_number: true,
            ..Value::default()
        }
    }

    /// The used share of a limit in bytes, as a bar and a percentage. The tooltip has the bytes.
    pub fn used_share(used: u64, limit: u64) -> Value {
        let percent = if limit == 0 { 0.0 } else { used as f64 * 100.0 / limit as f64 };
        let bytes = |bytes: u64| units::format(bytes as f64, Unit::Bytes);
        Value {
            text: format!("{percent:.0} %"),
            title: Some(format!("{} of {}", bytes(used), bytes(limit))),
            used: Some((used, limit)),
            ..Value::default()
        }
    }

    /// A number with its unit.
    pub fn quantity(value: f64, unit: Unit) -> Value {
        Value { text: units::format(value, unit), is_number: true, ..Value::default() }
    }

    /// A duration.
    pub fn duration(ms: u64) -> Value {
        let title = Some(format!("{} ms", units::exact(ms)));
        Value { text: units::duration(ms), title, is_number: true, ..Value::default() }
    }

    /// The time from `then_ms` to `now_ms`. The tooltip has the date.
    pub fn ago(then_ms: u64, now_ms: u64) -> Value {
        if then_ms == 0 {
            return Value::none();
        }
        let text = format!("{} ago", units::duration(now_ms.saturating_sub(then_ms)));
        Value { text, title: Some(units::moment(then_ms)), is_number: true, ..Value::default() }
    }

    /// A date with time.
    pub fn moment(ms: u64) -> Value {
        if ms == 0 { Value::none() } else { Value::text(units::moment(ms)) }
    }

    /// A key or another name chosen by users. Bytes outside printable ASCII are shown as `\xff`,
    /// and long keys are truncated. The tooltip has the whole key.
    pub fn key(key: &[u8]) -> Value {
        Value::printed_key(key.escape_ascii().to_string())
    }

    /// Like [`Value::key`], for a key that is already escaped.
    pub fn printed_key(all: String) -> Value {
        if all.chars().count() <= KEY_CHARS_MAX {
            return Value { text: all, is_key: true, ..Value::default() };
        }
        let prefix: String = all.chars().take(KEY_CHARS_MAX - 1).collect();
        Value { text: prefix + "…", title: Some(all), is_key: true, ..Value::default() }
    }

    /// A whole key, regardless of its length.
    pub fn whole_key(key: &[u8]) -> Value {
        Value { text: key.escape_ascii().to_string(), is_key: true, is_whole: true, ..Value::default() }
    }

    /// No value.
    pub fn none() -> Value {
        Value { text: units::NO_VALUE.to_owned(), ..Value::default() }
    }

    /// Adds a link.
    pub fn linked(self, address: impl Into<String>) -> Value {
        Value { address: Some(address.into()), ..self }
    }

    /// Replaces the tooltip.
    pub fn titled(self, title: impl Into<String>) -> Value {
        Value { title: Some(title.into()), ..self }
    }

    /// Sets the level.
    pub fn with_level(self, level: Level) -> Value {
        Value { level: Some(level), ..self }
    }

    /// The short text.
    pub fn as_text(&self) -> &str {
        &self.text
    }

    /// Whether the value is aligned right.
    pub(crate) fn is_number(&self) -> bool {
        self.is_number
    }

    pub(crate) fn render(&self) -> Markup {
        if let Some((used, limit)) = self.used {
            return html! { div class="used" title=[&self.title] { (meter(used, limit)) } };
        }
        let inner = html! {
            @match &self.address {
                Some(address) => a href=(address) title=[&self.title] { (self.text) },
                None => @match &self.title {
                    Some(title) => span title=(title) { (self.text) },
                    None => (self.text),
                },
            }
        };
        let level = self.level.map(Level::class);
        html! {
            @match (self.is_key, level) {
                (true, _) => code class=[self.is_whole.then_some("whole")] { (inner) },
                (false, Some(level)) => span class={ "mark " (level) } { (inner) },
                (false, None) => (inner),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_keys_are_truncated_and_the_title_has_the_whole_key() {
        let key = "k".repeat(100) + "<end>";
        let text = Value::key(key.as_bytes()).render().into_string();
        assert!(text.contains(&format!(">{}…<", "k".repeat(39))), "{text}");
        assert!(text.contains(&format!("title=\"{}&lt;end&gt;\"", "k".repeat(100))), "{text}");
        assert_eq!(Value::key(b"a\x00\xff\"").render().into_string(), "<code>a\\x00\\xff\\&quot;</code>");
    }

    #[test]
    fn rounded_values_are_exact_in_the_title() {
        let text = Value::bytes(1_610_612_737).linked("/x?a=1&b=2").render().into_string();
        assert_eq!(text, "<a href=\"/x?a=1&amp;b=2\" title=\"1,610,612,737 bytes\">1.5 GiB</a>");
        let text = Value::used_share(96 << 20, 100 << 20).render().into_string();
        assert!(text.contains("title=\"96 MiB of 100 MiB\"") && text.contains("meter warning"), "{text}");
        assert!(text.contains("96 %"), "{text}");
        assert_eq!(Value::ago(0, 5000).as_text(), "–");
        assert_eq!(Value::ago(1000, 5000).as_text(), "4 s ago");
    }
}
