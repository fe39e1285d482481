//! The spelling of options in HBase's tools: long names after a single dash.

use std::ffi::OsString;

/// Long options of HBase's canary, and their names here.
const CANARY: &[(&str, &str)] = &[
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

/// Long options of HBase's `SnapshotInfo`.
const SNAPSHOT: &[(&str, &str)] = &[
    ("-help", "--help"),
    ("-snapshot", "--snapshot"),
    ("-remote-dir", "--remote-dir"),
    ("-list-snapshots", "--list-snapshots"),
    ("-files", "--files"),
    ("-stats", "--stats"),
    ("-schema", "--schema"),
    ("-size-in-bytes", "--size-in-bytes"),
];

/// Rewrites HBase's options of `canary` and `snapshot` from one dash to two. The arguments begin
/// with the name of the process. Arguments of other commands are unchanged.
pub fn double_dashed(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let names = match arguments.get(1).and_then(|command| command.to_str()) {
        Some("canary") => CANARY,
        Some("snapshot") => SNAPSHOT,
        _ => return arguments,
    };
    let options = arguments.iter_mut().skip(2).take_while(|argument| *argument != "--");
    for argument in options {
        if let Some((_, name)) = names.iter().find(|(one_dash, _)| argument == one_dash) {
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
    fn long_options_of_snapshots_may_have_one_dash() {
        check(
            "grampus snapshot -remote-dir d -snapshot s -files -size-in-bytes --stats",
            "grampus snapshot --remote-dir d --snapshot s --files --size-in-bytes --stats",
        );
        check("grampus snapshot -list-snapshots -t", "grampus snapshot --list-snapshots -t");
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
