//! Names of beans and patterns of them, as JMX has them: a domain and properties, whose order does not matter.

/// Whether `name` fits a pattern: each of its properties is one of the name's, and all of them unless it ends with `*`.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (Some((domain, properties)), Some((name_domain, name_properties))) =
        (pattern.split_once(':'), name.split_once(':'))
    else {
        return is_like(pattern, name);
    };
    let mut left: Vec<&str> = name_properties.split(',').collect();
    let mut may_have_others = false;
    for wanted in properties.split(',') {
        if wanted == "*" {
            may_have_others = true;
            continue;
        }
        let Some(at) = left.iter().position(|property| is_like(wanted, property)) else { return false };
        left.swap_remove(at);
    }
    is_like(domain, name_domain) && (may_have_others || left.is_empty())
}

/// Whether `name` is like `pattern`: `*` stands for any text, `?` for one character.
fn is_like(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // The classic two-pointer match: on a mismatch go back to the last star and let it take one more character.
    let (mut at, mut star, mut named, mut taken) = (0, None, 0, 0);
    while named < name.len() {
        if at < pattern.len() && (pattern[at] == '?' || pattern[at] == name[named]) && pattern[at] != '*' {
            at += 1;
            named += 1;
        } else if at < pattern.len() && pattern[at] == '*' {
            star = Some(at);
            taken = named;
            at += 1;
        } else if let Some(last) = star {
            at = last + 1;
            taken += 1;
            named = taken;
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
