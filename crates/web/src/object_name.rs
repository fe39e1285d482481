//! Names of beans and patterns for them, as in JMX: a domain and properties in any order.

/// Whether `name` matches a pattern. The name must have each property of the pattern, and no others
/// unless the pattern contains `*` as a property.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (Some((domain, properties)), Some((name_domain, name_properties))) =
        (pattern.split_once(':'), name.split_once(':'))
    else {
        return is_like(pattern, name);
    };
    let mut remaining: Vec<&str> = name_properties.split(',').collect();
    let mut may_have_others = false;
    for expected in properties.split(',') {
        if expected == "*" {
            may_have_others = true;
            continue;
        }
        let Some(at) = remaining.iter().position(|property| is_like(expected, property)) else {
            return false;
        };
        remaining.swap_remove(at);
    }
    is_like(domain, name_domain) && (may_have_others || remaining.is_empty())
}

/// Whether `name` matches `pattern`: `*` matches any text, `?` matches one character.
fn is_like(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // Greedy match: on a mismatch, return to the last star and let it take one more character.
    let (mut at, mut star, mut named, mut matched) = (0, None, 0, 0);
    while named < name.len() {
        if at < pattern.len() && (pattern[at] == '?' || pattern[at] == name[named]) && pattern[at] != '*' {
            at += 1;
            named += 1;
        } else if at < pattern.len() && pattern[at] == '*' {
            star = Some(at);
            matched = named;
            at += 1;
        } else if let Some(last) = star {
            at = last + 1;
            matched += 1;
            named = matched;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_of_jmx_queries() {
        assert!(matches("Hadoop:*", "Hadoop:service=HBase,name=Master,sub=Server"));
        assert!(matches("*:service=HBase,*", "Hadoop:service=HBase,name=Master,sub=Server"));
        assert!(matches("java.lang:type=Memor?", "java.lang:type=Memory"));
        assert!(!matches("Hadoop:service=HBase", "Hadoop:service=HBase,name=Master"));
        assert!(!matches("", "x"));
        assert!(matches("**", ""));
    }

    #[test]
    fn properties_are_in_any_order() {
        let name = "java.lang:name=None,type=GarbageCollector";
        assert!(matches("java.lang:type=GarbageCollector,*", name));
        assert!(matches("java.lang:type=GarbageCollector,name=*", name));
        assert!(!matches("java.lang:type=GarbageCollector", name));
        assert!(!matches("java.lang:type=Memory,*", name));
        assert!(!matches("Hadoop:type=GarbageCollector,*", name));
        let server = "Hadoop:service=HBase,name=RegionServer,sub=Server";
        assert!(matches("Hadoop:service=HBase,name=RegionServer,sub=*", server));
        assert!(matches("Hadoop:*,sub=Server", server));
        assert!(
            !matches("Hadoop:service=HBase,name=RegionServer*", server),
            "a value ends with its property"
        );
    }
}
