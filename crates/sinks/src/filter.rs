//! Which records and metrics a sink wants, by Hadoop's rules.
//!
//! A source is what has a bean (`RegionServer,sub=Server`), its record is named by its part (`Server`), a metric as
//! the bean's attribute. Each of the three has patterns; a name must fit as a whole, as Java's `matches` has it.

use base::metrics::record_of;
use regex::Regex;

/// How names of all beans begin.
const BEAN_PREFIX: &str = "Hadoop:service=HBase,name=";
/// What Hadoop calls the record of all regions, which has most of all metrics.
const REGIONS_RECORD: &str = "Regions";

/// What of the names of one kind is wanted.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    /// These; and nothing else, unless there is something to leave out too.
    pub include: Option<Regex>,
    /// Not these, unless they are among the above.
    pub exclude: Option<Regex>,
}

impl Patterns {
    /// Whether a name is wanted.
    ///
    /// Source: Hadoop's `AbstractPatternFilter`: what is included counts first; beside a list of what is left out a
    /// list of what is included does not shut out the rest.
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

/// What a sink wants.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only records of this context.
    pub context: Option<String>,
    /// Of these sources.
    pub sources: Patterns,
    /// These records.
    pub records: Patterns,
    /// These metrics of them.
    pub metrics: Patterns,
    /// Nothing of single regions.
    pub leaves_out_regions: bool,
}

impl Filter {
    /// Whether a bean may have something that is wanted: others are not asked for their values.
    pub(crate) fn wants_bean(&self, bean: &str) -> bool {
        let source = bean.strip_prefix(BEAN_PREFIX).unwrap_or(bean);
        let record = record_of(source);
        let is_left_out = self.leaves_out_regions && record == REGIONS_RECORD;
        !is_left_out && self.sources.accepts(source) && self.records.accepts(record)
    }

    /// Whether records of a context are wanted.
    pub(crate) fn wants_context(&self, context: &str) -> bool {
        self.context.as_deref().is_none_or(|wanted| wanted == context)
    }

    /// Whether a metric is wanted, whose name stands in pieces; `joined` is room to put them together.
    pub(crate) fn wants_metric(&self, pieces: [&str; 3], joined: &mut String) -> bool {
        if self.metrics.is_empty() {
            return true;
        }
        joined.clear();
        pieces.iter().for_each(|piece| joined.push_str(piece));
        self.metrics.accepts(joined)
    }
}

/// A regular expression that fits whole names.
///
/// # Errors
/// What is wrong with it, in one line.
pub fn regular(pattern: &str) -> Result<Regex, String> {
    // The error shows the pattern over several lines; the last says what it is about.
    let said = |error: regex::Error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default();
        format!("no regular expression ({})", last.strip_prefix("error: ").unwrap_or(last))
    };
    // Alone first: put into a group, a stray parenthesis could fit one of the group's.
    Regex::new(pattern).map_err(said)?;
    Regex::new(&format!("^(?s:{pattern})$")).map_err(said)
}

/// A pattern of Hadoop's `GlobFilter`: `*`, `?`, `[…]`, `{one,another}` and `\` before what stands for itself.
///
/// # Errors
/// What is wrong with it, in one line.
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
                None => return Err("no pattern: nothing stands behind the last `\\`".to_owned()),
            },
            plain => expression.push_str(&regex::escape(plain.encode_utf8(&mut [0; 4]))),
        }
    }
    if depth > 0 {
        return Err("no pattern: a `{` is not closed".to_owned());
    }
    regular(&expression)
}

/// A set of letters, whose `[` is read already.
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
    Err("no pattern: a `[` is not closed".to_owned())
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
    fn globs_fit_whole_names() {
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
    fn expressions_fit_whole_names_and_say_what_is_wrong() {
        assert!(regular("Get|Put").unwrap().is_match("Put"));
        assert!(!regular("Get|Put").unwrap().is_match("Puts"));
        for broken in ["(", "a)(b", "[", "*"] {
            let error = regular(broken).unwrap_err();
            assert!(error.starts_with("no regular expression (") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn beans_are_known_by_source_and_record() {
        let bean = |record: &str| format!("Hadoop:service=HBase,name={record}");
        let mut filter = Filter::default();
        assert!(filter.wants_bean(&bean("RegionServer,sub=Regions")));
        filter.leaves_out_regions = true;
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
        let mut room = String::new();
        assert!(filter.wants_metric(["t", "Get", "_mean"], &mut room));
        assert!(!filter.wants_metric(["t", "Get", "_num_ops"], &mut room));
    }
}
