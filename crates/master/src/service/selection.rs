//! Selects the tables of a listing: by pattern, by namespace, with or without system tables.

use cell::schema::TableName;
use javaregex::Regex;
use proto::exception::{Answer, JavaException};

/// Maximum number of matching steps of one call; they take about 40 ms.
const STEPS_MAX: u64 = 4_000_000;
/// Flags of `java.util.regex.Pattern`. HBase compiles patterns without any.
const NO_FLAGS: i32 = 0;

/// A selection of tables.
pub(super) struct TableSelection {
    pattern: Option<(String, Regex)>,
    namespace: Option<String>,
    with_system: bool,
}

impl TableSelection {
    /// Creates a selection by Java pattern, which must match the whole name, and by namespace.
    ///
    /// # Errors
    /// An invalid pattern.
    pub(super) fn new(
        pattern: Option<&str>,
        namespace: Option<&str>,
        with_system: bool,
    ) -> Answer<TableSelection> {
        let compiled = |text: &str| match Regex::new(text, NO_FLAGS) {
            Ok(regex) => Ok((text.to_string(), regex)),
            Err(error) => Err(JavaException::do_not_retry(format!("pattern '{text}': {error}"))),
        };
        let pattern = pattern.map(compiled).transpose()?;
        // Clients other than HBase's own send an empty namespace for all namespaces.
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        Ok(TableSelection { pattern, namespace: namespace.map(str::to_string), with_system })
    }

    /// The namespace to which the selection is limited; it must exist.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Selects from `tables`. The pattern may match the name of a table of the default namespace
    /// with or without `default:`.
    ///
    /// # Errors
    /// A pattern that takes too long to match.
    pub(super) fn select<T>(&self, tables: Vec<T>, name: impl Fn(&T) -> &TableName) -> Answer<Vec<T>> {
        let mut steps_left = STEPS_MAX;
        let mut chosen = Vec::new();
        for table in tables {
            if self.matches(name(&table), &mut steps_left)? {
                chosen.push(table);
            }
        }
        Ok(chosen)
    }

    fn matches(&self, table: &TableName, steps_left: &mut u64) -> Answer<bool> {
        let in_scope = (self.with_system || !table.is_system())
            && self.namespace.as_deref().is_none_or(|namespace| namespace == table.namespace());
        let Some((source, regex)) = self.pattern.as_ref().filter(|_| in_scope) else { return Ok(in_scope) };
        let mut matches = |name: &str| {
            let search = regex.matches(name, *steps_left);
            *steps_left = steps_left.saturating_sub(search.steps);
            search.found.map_err(|_| {
                JavaException::do_not_retry(format!(
                    "pattern '{source}': matching exceeds the limit of {STEPS_MAX} steps for a call"
                ))
            })
        };
        let name = table.to_string();
        Ok(matches(&name)? || !name.contains(':') && matches(&format!("default:{name}"))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        let table = TableName::parse(name).unwrap();
        let selection = TableSelection::new(Some(pattern), None, false).unwrap();
        !selection.select(vec![table], |table| table).unwrap().is_empty()
    }

    #[test]
    fn the_whole_name_must_match() {
        assert!(matches("t.*", "t1") && !matches("t", "t1") && matches("a|t1", "t1"));
        assert!(matches("ns:t.*", "ns:t1") && !matches("t.*", "ns:t1"));
        assert!(!matches(".*", "hbase:meta"), "system tables only on request");
    }

    #[test]
    fn the_default_namespace_may_be_named() {
        assert!(matches("default:t.*", "t1") && !matches("other:t.*", "t1"));
    }

    #[test]
    fn an_empty_namespace_is_none() {
        let selection = TableSelection::new(Some(".*"), Some(""), false).unwrap();
        let table = TableName::parse("ns:t1").unwrap();
        assert!(selection.namespace().is_none());
        assert_eq!(selection.select(vec![table.clone()], |table| table).unwrap(), [table]);
    }

    #[test]
    fn patterns_have_java_syntax() {
        assert!(matches("(?!tmp).*", "t1") && !matches("(?!tmp|default:tmp).*", "tmp1"));
        assert!(matches("[a-z&&[^x]]\\d++", "t1") && !matches("[a-z&&[^t]]\\d++", "t1"));
        assert!(TableSelection::new(Some("("), None, false).is_err());
    }

    #[test]
    fn a_slow_pattern_is_refused() {
        let tables: Vec<_> =
            (0..1000).map(|at| TableName::parse(&format!("{at}{}_", "a".repeat(40))).unwrap()).collect();
        let selection = TableSelection::new(Some("\\d*(a+)+\\1!"), None, false).unwrap();
        let refused = selection.select(tables, |table| table).unwrap_err();
        assert!(refused.to_string().contains("exceeds the limit of 4000000 steps"), "{refused}");
    }
}
