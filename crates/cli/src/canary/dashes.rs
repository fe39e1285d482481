//! The spelling of options in HBase's canary: long names after a single dash.

use std::ffi::OsString;

/// Long options in HBase's scripts, and their names here.
const NAMES: [(&str, &str); 17] = [
    ("-help", "--help"),
    ("-regionserver", "--regionserver"),
    ("-allRegions", "--all-regions"),
    // `--zookeeper` is the address of ZooKeeper, as in all commands.
    ("-zookeeper", "--zookeeper-mode"),
    ("-permittedZookeeperFailures", "--permitted-zookeeper-failures"),
    ("-daemon", "--daemon"),
    ("-interval", "--interval"),
    ("-treatFailureAsError", "--treat-failure-as-error"),
    ("-failureAsError", "--treat-failure-as-error"),
    ("-writeSniffing", "--write-sniffing"),
    ("-writeTable", "--write-table"),
    ("-writeTimeout", "--write-timeout"),
    ("-writeTableTimeout", "--write-timeout"),
    ("-readTableTimeouts", "--read-table-timeouts"),
    ("-timeout", "--timeout"),
    ("-regex", "--regex"),
    ("-fail", "--fail"),
];

/// Rewrites HBase's options of `canary` from one dash to two. The arguments begin with the name of
/// the process. Arguments of other commands are unchanged.
pub fn double_dashed(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.get(1).is_none_or(|command| command != "canary") {
        return arguments;
    }
    let options = arguments.iter_mut().skip(2).take_while(|argument| *argument != "--");
    for argument in options {
        if let Some((_, name)) = NAMES.iter().find(|(one_dash, _)| argument == one_dash) {
            *argument = OsString::from(name);
        }
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let words = double_dashed(line.split(' ').map(OsString::from));
        let words: Vec<String> = words.into_iter().map(|word| word.into_string().unwrap()).collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn long_options_of_the_canary_may_have_one_dash() {
        check(
            "grampus canary -regionserver -allRegions -t 500 -f false -e h.*",
            "grampus canary --regionserver --all-regions -t 500 -f false -e h.*",
        );
        check("grampus canary -zookeeper --zookeeper h:1", "grampus canary --zookeeper-mode --zookeeper h:1");
        check("grampus canary --writeSniffing -- -daemon", "grampus canary --writeSniffing -- -daemon");
        check("grampus shell -e -daemon", "grampus shell -e -daemon");
        check("grampus", "grampus");
    }
}
