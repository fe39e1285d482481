//! Selects records and metrics for a sink, by Hadoop's rules.
//!
//! A source is an object with a bean (`RegionServer,sub=Server`). Its record has the name of the
//! last part (`Server`), and a metric has the name of the bean's attribute. Each of the three has
//! patterns. A pattern must match the whole name, as in Java's `matches`.

use base::metrics::record_of;
use regex::Regex;

/// The prefix of all bean names.
const BEAN_PREFIX: &str = "Hadoop:service=HBase,name=";
/// Hadoop's record name for all regions, which have the most metrics by far.
const REGIONS_RECORD: &str = "Regions";

/// The patterns for one kind of names.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    /// Names to include. All others are excluded, unless there is an exclude pattern too.
    pub include: Option<Regex>,
    /// Names to exclude, unless they match the include pattern.
    pub exclude: Option<Regex>,
}

impl Patterns {
    /// Whether a name is selected.
    ///
    /// Source: Hadoop's `AbstractPatternFilter`: an include match wins. If there is an exclude
    /// pattern too, the include pattern does not exclude other names.
    pub fn accepts(&self, name: &str) -> bool {
        if self.include.as_ref().is_some_and(|include| include.is_match(name)) {
            return true;
        }
        match &self.exclude {
            Some(exclude) => !exclude.is_match(name),
            None => self.include.is_none(),
        }
    }

    fn is_empty(&self) -> bool {
        self.include.is_none() && self.exclude.is_none()
    }
}

/// The selection of a sink.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// If set, only records of this context.
    pub context: Option<String>,
    /// Patterns for sources.
    pub sources: Patterns,
    /// Patterns for records.
    pub records: Patterns,
    /// Patterns for metrics.
    pub metrics: Patterns,
    /// Whether metrics of single regions are excluded.
    pub excludes_regions: bool,
}

impl Filter {
    /// Whether a bean may have selected metrics. Values of other beans are not collected.
    pub(crate) fn wants_bean(&self, bean: &str) -> bool {
        let source = bean.strip_prefix(BEAN_PREFIX).unwrap_or(bean);
        let record = record_of(source);
        let is_excluded = self.excludes_regions && record == REGIONS_RECORD;
        !is_excluded && self.sources.accepts(source) && self.records.accepts(record)
    }

    /// Whether records of a context are selected.
    pub(crate) fn wants_context(&self, context: &str) -> bool {
        self.context.as_deref().is_none_or(|selected| selected == context)
    }

    /// Whether a metric is selected. Its name is given in pieces; `joined` is a buffer for the
    /// whole name.
    pub(crate) fn wants_metric(&self, pieces: [&str; 3], joined: &mut String) -> bool {
        if self.metrics.is_empty() {
            return true;
        }
        joined.clear();
        pieces.iter().for_each(|piece| joined.push_str(piece));
        self.metrics.accepts(joined)
    }
}

/// Compiles a regular expression that must match whole names.
///
/// # Errors
/// The reason why it is invalid, in one line.
pub fn regular(pattern: &str) -> Result<Regex, String> {
    // The error shows the pattern on several lines; its last line states the reason.
    let describe = |error: regex::Error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default();
        format!("no regular expression ({})", last.strip_prefix("error: ").unwrap_or(last))
    };
    // Compile it alone first: inside the group, an unbalanced parenthesis could pair with the
    // group's.
    Regex::new(pattern).map_err(describe)?;
    Regex::new(&format!("^(?s:{pattern})$")).map_err(describe)
}

/// Compiles a pattern of Hadoop's `GlobFilter`: `*`, `?`, `[…]`, `{one,another}`, and `\` before a
/// literal character.
///
/// # Errors
/// The reason why it is invalid, in one line.
pub fn glob(pattern: &str) -> Result<Regex, String> {
    let mut expression = String::with_capacity(pattern.len() * 2);
    let (mut depth, mut letters) = (0_usize, pattern.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '*' => expression.push_str(".*"),
            '?' => expression.push('.'),
            '[' => put_set(&mut letters, &mut expression)?,
            '{' => {
                depth += 1;
                expression.push_str("(?:");
            }
            ',' if depth > 0 => expression.push('|'),
            '}' if depth > 0 => {
                depth -= 1;
                expression.push(')');
            }
            '\\' => match letters.next() {
                Some(escaped) => expression.push_str(&regex::escape(escaped.encode_utf8(&mut [0; 4]))),
                None => return Err("invalid pattern: nothing follows the last `\\`".to_owned()),
            },
            plain => expression.push_str(&regex::escape(plain.encode_utf8(&mut [0; 4]))),
        }
    }
    if depth > 0 {
        return Err("invalid pattern: a `{` is not closed".to_owned());
    }
    regular(&expression)
}

/// Translates a set of characters; its `[` has been consumed.
fn put_set(letters: &mut std::str::Chars<'_>, expression: &mut String) -> Result<(), String> {
    expression.push('[');
    let mut is_first = true;
    for letter in letters.by_ref() {
        match letter {
            ']' if !is_first => {
                expression.push(']');
                return Ok(());
            }
            '!' | '^' if is_first => expression.push('^'),
            '-' => expression.push('-'),
            other => expression.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
        is_first = false;
    }
    Err("invalid pattern: a `[` is not closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(include: Option<&str>, exclude: Option<&str>, accepted: &[&str], refused: &[&str]) {
        let of = |pattern: Option<&str>| pattern.map(|pattern| glob(pattern).unwrap());
        let patterns = Patterns { include: of(include), exclude: of(exclude) };
        accepted.iter().for_each(|name| assert!(patterns.accepts(name), "{name}"));
        refused.iter().for_each(|name| assert!(!patterns.accepts(name), "{name}"));
    }

    #[test]
    fn lists_count_as_in_hadoop() {
        check(None, None, &["a"], &[]);
        check(Some("a*"), None, &["a", "ab"], &["b", "ba"]);
        check(None, Some("a*"), &["b", "ba"], &["a", "ab"]);
        check(Some("ab"), Some("a*"), &["ab", "c"], &["a", "abc"]);
    }

    #[test]
    fn globs_match_whole_names() {
        let fits = |pattern: &str, name: &str| glob(pattern).unwrap().is_match(name);
        assert!(fits("Get_*", "Get_mean") && !fits("Get_*", "xGet_mean"));
        assert!(fits("?et", "Get") && !fits("?et", "et"));
        assert!(fits("{Get,Put}_[mn]*", "Put_mean") && !fits("{Get,Put}_[mn]*", "Put_95th"));
        assert!(fits("[!a]b", "cb") && !fits("[!a]b", "ab"));
        assert!(fits("a.b", "a.b") && !fits("a.b", "axb"));
        assert!(fits(r"a\*", "a*") && !fits(r"a\*", "ab"));
        for broken in ["{a", "[a", "a\\", "[]"] {
            assert!(glob(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn expressions_match_whole_names_and_report_errors() {
        assert!(regular("Get|Put").unwrap().is_match("Put"));
        assert!(!regular("Get|Put").unwrap().is_match("Puts"));
        for broken in ["(", "a)(b", "[", "*"] {
            let error = regular(broken).unwrap_err();
            assert!(error.starts_with("no regular expression (") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn beans_are_selected_by_source_and_record() {
        let bean = |record: &str| format!("Hadoop:service=HBase,name={record}");
        let mut filter = Filter::default();
        assert!(filter.wants_bean(&bean("RegionServer,sub=Regions")));
        filter.excludes_regions = true;
        assert!(!filter.wants_bean(&bean("RegionServer,sub=Regions")));
        assert!(filter.wants_bean(&bean("RegionServer,sub=Server")));
        filter.records.exclude = Some(glob("RegionServer").unwrap());
        assert!(!filter.wants_bean(&bean("RegionServer,sub=IPC")), "its record has the server's name");
        filter.sources.include = Some(glob("Master,*").unwrap());
        assert!(!filter.wants_bean(&bean("RegionServer,sub=WAL")));
        assert!(filter.wants_bean(&bean("Master,sub=Server")));
        assert!(filter.wants_context("any"));
        filter.context = Some("master".into());
        assert!(filter.wants_context("master") && !filter.wants_context("regionserver"));
        filter.metrics.include = Some(regular("tGet_m.*").unwrap());
        let mut buffer = String::new();
        assert!(filter.wants_metric(["t", "Get", "_mean"], &mut buffer));
        assert!(!filter.wants_metric(["t", "Get", "_num_ops"], &mut buffer));
    }
}
