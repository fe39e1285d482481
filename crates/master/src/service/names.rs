//! Which tables a listing wants: a pattern, a namespace, system tables or not.

use cell::schema::TableName;
use javaregex::Regex;
use wire::exception::{Answer, JavaException};

/// Steps that matching may take in all: about 40 ms.
const STEPS_MAX: u64 = 4_000_000;
/// Flags of `java.util.regex.Pattern`: HBase compiles patterns without any.
const NO_FLAGS: i32 = 0;

/// A choice of tables.
pub(super) struct Names {
    pattern: Option<(String, Regex)>,
    namespace: Option<String>,
    with_system: bool,
}

impl Names {
    /// A choice by Java pattern (the whole name must match) and namespace.
    ///
    /// # Errors
    /// An invalid pattern.
    pub(super) fn new(pattern: Option<&str>, namespace: Option<&str>, with_system: bool) -> Answer<Names> {
        let compiled = |text: &str| match Regex::new(text, NO_FLAGS) {
            Ok(regex) => Ok((text.to_string(), regex)),
            Err(error) => Err(JavaException::do_not_retry(format!("pattern '{text}': {error}"))),
        };
        let pattern = pattern.map(compiled).transpose()?;
        // Clients other than HBase's own say so that they want all namespaces.
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        Ok(Names { pattern, namespace: namespace.map(str::to_string), with_system })
    }

    /// The only namespace whose tables are wanted, which must exist.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Those of `tables` that are wanted. A table of the default namespace may be matched with and
    /// without it.
    ///
    /// # Errors
    /// A pattern that takes too long to match.
    pub(super) fn choose<T>(&self, tables: Vec<T>, name: impl Fn(&T) -> &TableName) -> Answer<Vec<T>> {
        let mut steps_left = STEPS_MAX;
        let mut chosen = Vec::new();
        for table in tables {
            if self.wants(name(&table), &mut steps_left)? {
                chosen.push(table);
            }
        }
        Ok(chosen)
    }

    fn wants(&self, table: &TableName, steps_left: &mut u64) -> Answer<bool> {
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

    fn wants(pattern: &str, name: &str) -> bool {
        let table = TableName::parse(name).unwrap();
        let names = Names::new(Some(pattern), None, false).unwrap();
        !names.choose(vec![table], |table| table).unwrap().is_empty()
    }

    #[test]
    fn the_whole_name_must_match() {
        assert!(wants("t.*", "t1") && !wants("t", "t1") && wants("a|t1", "t1"));
        assert!(wants("ns:t.*", "ns:t1") && !wants("t.*", "ns:t1"));
        assert!(!wants(".*", "hbase:meta"), "system tables only when asked for");
    }

    #[test]
    fn the_default_namespace_may_be_named() {
        assert!(wants("default:t.*", "t1") && !wants("other:t.*", "t1"));
    }

    #[test]
    fn an_empty_namespace_is_none() {
        let names = Names::new(Some(".*"), Some(""), false).unwrap();
        let table = TableName::parse("ns:t1").unwrap();
        assert!(names.namespace().is_none());
        assert_eq!(names.choose(vec![table.clone()], |table| table).unwrap(), [table]);
    }

    #[test]
    fn patterns_are_those_of_java() {
        assert!(wants("(?!tmp).*", "t1") && !wants("(?!tmp|default:tmp).*", "tmp1"));
        assert!(wants("[a-z&&[^x]]\\d++", "t1") && !wants("[a-z&&[^t]]\\d++", "t1"));
        assert!(Names::new(Some("("), None, false).is_err());
    }

    #[test]
    fn a_pattern_that_takes_too_long_is_refused() {
        let tables: Vec<_> =
            (0..1000).map(|at| TableName::parse(&format!("{at}{}_", "a".repeat(40))).unwrap()).collect();
        let names = Names::new(Some("\\d*(a+)+\\1!"), None, false).unwrap();
        let refused = names.choose(tables, |table| table).unwrap_err();
        assert!(refused.to_string().contains("exceeds the limit of 4000000 steps"), "{refused}");
    }
}
