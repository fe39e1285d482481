//! Targets on the command line: all, names, or regular expressions that match a whole name.

use regex::Regex;

use super::failure::Failure;

/// What to probe.
#[derive(Debug)]
pub(super) enum Targets {
    All,
    Names(Vec<String>),
    Patterns(Vec<Regex>),
}

impl Targets {
    /// Parses the names or patterns on the command line.
    ///
    /// # Errors
    /// [`Failure::Usage`] for an invalid regular expression.
    pub(super) fn new(words: &[String], are_patterns: bool) -> Result<Targets, Failure> {
        if words.is_empty() {
            return Ok(Targets::All);
        }
        if !are_patterns {
            return Ok(Targets::Names(words.to_vec()));
        }
        let pattern = |word: &String| {
            Regex::new(&format!("^(?:{word})$")).map_err(|error| Failure::Usage(format!("{word}: {error}")))
        };
        Ok(Targets::Patterns(words.iter().map(pattern).collect::<Result<_, _>>()?))
    }

    /// Whether a target with any of these names is selected.
    pub(super) fn matches(&self, names: &[&str]) -> bool {
        match self {
            Targets::All => true,
            Targets::Names(own) => own.iter().any(|own| names.contains(&own.as_str())),
            Targets::Patterns(own) => own.iter().any(|own| names.iter().any(|name| own.is_match(name))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns_match_whole_names() {
        let targets = |words: &[&str], are_patterns| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            Targets::new(&words, are_patterns)
        };
        assert!(targets(&[], true).unwrap().matches(&["x"]));
        let names = targets(&["t.*", "u"], false).unwrap();
        assert!(names.matches(&["v", "u"]) && !names.matches(&["t1"]) && !names.matches(&["uu"]));
        let patterns = targets(&["t.*|v", "u"], true).unwrap();
        assert!(patterns.matches(&["t1"]) && patterns.matches(&["v"]) && !patterns.matches(&["at1"]));
        assert_eq!(targets(&["("], true).unwrap_err().exit_code(), 1);
    }
}
