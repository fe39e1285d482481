//! Replaces `${name}` in values, as Hadoop does.
//!
//! Steps and length are bounded, so that values that refer to each other cannot grow without end.
//! Unlike Hadoop, an unset name is an error: a directory called `${hbase.tmp.dir}` is useless.

// Source: Hadoop `Configuration.MAX_SUBST`.
const STEPS_MAX: usize = 20;
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Resolves names.
pub(super) trait Substitution {
    /// The value of another key, or of a system property.
    fn property(&self, key: &str) -> Option<String>;
    /// The value of an environment variable.
    fn variable(&self, name: &str) -> Option<String>;
}

/// `text` with every `${name}`, `${env.NAME}`, `${env.NAME:-default}` and `${env.NAME-default}`
/// replaced.
pub(super) fn substitute(text: &str, names: &dyn Substitution) -> Result<String, String> {
    let mut text = text.to_owned();
    for _ in 0..STEPS_MAX {
        let Some((start, end)) = innermost(&text) else { return Ok(text) };
        let name = &text[start + 2..end];
        let value = look_up(name, names).ok_or_else(|| format!("${{{name}}} is not set"))?;
        if text.len() + value.len() > TEXT_BYTES_MAX {
            return Err(format!("longer than {TEXT_BYTES_MAX} bytes after variables are replaced"));
        }
        text.replace_range(start..=end, &value);
    }
    match innermost(&text) {
        None => Ok(text),
        Some(_) => Err(format!("more than {STEPS_MAX} variables, or a variable that refers to itself")),
    }
}

// The positions of `$` and `}` of the first `${…}` that contains no other.
fn innermost(text: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    while let Some(close) = text[from..].find('}').map(|at| from + at) {
        if let Some(open) = text[from..close].rfind("${").map(|at| from + at) {
            let name = &text[open + 2..close];
            // Source: Hadoop `Configuration.findSubVariable`: the name is not empty and contains no
            // `$` or space.
            if !name.is_empty() && !name.contains(['$', ' ']) {
                return Some((open, close));
            }
        }
        from = close + 1;
    }
    None
}

fn look_up(name: &str, names: &dyn Substitution) -> Option<String> {
    let Some(variable) = name.strip_prefix("env.") else { return names.property(name) };
    // `:-` uses the default also for an empty value, `-` only for an unset variable.
    let Some((variable, default)) = variable.split_once('-') else { return names.variable(variable) };
    match variable.strip_suffix(':') {
        Some(variable) => Some(
            names.variable(variable).filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned()),
        ),
        None => Some(names.variable(variable).unwrap_or_else(|| default.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Names;

    impl Substitution for Names {
        fn property(&self, key: &str) -> Option<String> {
            match key {
                "dir" => Some("/data".to_owned()),
                "below" => Some("${dir}/below".to_owned()),
                "which" => Some("dir".to_owned()),
                "itself" => Some("x${itself}".to_owned()),
                "double" => Some("${double}${double}".to_owned()),
                "long" => Some("x".repeat(40_000)),
                _ => None,
            }
        }

        fn variable(&self, name: &str) -> Option<String> {
            match name {
                "HOME" => Some("/home/me".to_owned()),
                "EMPTY" => Some(String::new()),
                _ => None,
            }
        }
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(substitute(text, &Names), Ok(expected.to_owned()), "{text}");
    }

    #[test]
    fn names_are_replaced() {
        check("plain", "plain");
        check("${dir}/x", "/data/x");
        check("${below}", "/data/below");
        check("${${which}}", "/data");
        check("${dir}${dir}", "/data/data");
        check("${env.HOME}/x", "/home/me/x");
        check("${env.NONE:-fallback}", "fallback");
        check("${env.EMPTY:-fallback}", "fallback");
        check("${env.EMPTY-fallback}", "");
        check("${env.NONE-fallback}", "fallback");
    }

    #[test]
    fn text_without_names_is_unchanged() {
        for text in ["$", "${", "${}", "}", "${a b}", "$dir", "a}b", "{dir}", "${dir"] {
            check(text, text);
        }
    }

    #[test]
    fn endless_substitution_is_stopped() {
        assert!(substitute("${nobody}", &Names).unwrap_err().contains("${nobody}"));
        assert!(substitute("${env.NONE}", &Names).is_err());
        assert!(substitute("${itself}", &Names).unwrap_err().contains("refers to itself"));
        assert!(substitute("${double}", &Names).is_err());
        assert!(substitute("${long}${long}", &Names).unwrap_err().contains("longer"));
        check(&"${dir}".repeat(20), &"/data".repeat(20));
        assert!(substitute(&"${dir}".repeat(21), &Names).is_err());
    }
}
