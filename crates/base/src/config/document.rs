//! Generates `docs/config.md` and `docs/sinks.md` from the option declarations.

use std::fmt::Write;

use super::declare::OptionInfo;
use super::unsafe_keys::{UNSAFE_KEYS, UnsafeKey};
use super::{OPTIONS, VARIABLE_PREFIX};

const HEAD: &str = "\
<!-- Generated from crates/base/src/config/options.rs; see crates/base/tests/config_doc.rs to regenerate. -->

# Configuration

Grampus runs without any configuration. Options come from these sources; later sources override earlier ones:

1. `hbase-site.xml` in the directory given by `--config` or `HBASE_CONF_DIR`. The format and the keys are HBase's, with the
   same meaning. `<final>` and `${…}` are supported; inclusion of other files and entities are not.
2. Environment variables, listed with each option.
3. The command line: `--set KEY=VALUE`.

A key that is not listed here is ignored with a warning at startup, unless ignoring it would be
[unsafe](#keys-that-stop-the-start). An invalid value stops the start with an error that names its source. Size units are
powers of 1024. [sinks.md](sinks.md) lists the options of metrics sinks, which are an optional part of the build.

";

const SINKS_HEAD: &str = include_str!("sinks.md");
/// Sections of options that only builds with a cargo feature support. They are in `docs/sinks.md`.
const SINK_SECTIONS: &[&str] = &["Metrics sinks", "OpenTelemetry"];

const UNSAFE_HEAD: &str = "\
## Keys that stop the start

Grampus does not support what these HBase keys promise. A server that ignored them would be less safe than its operator
believes, or would serve other data. So startup fails with exit status 1 and one error line per key. It does not fail for
an accepted value, or if `grampus.unsafe.ignore.keys` lists the key. `*` matches any text. The start also stops if
`hbase.rootdir` is on an unsupported file system: one process needs a local directory, a cluster also supports `hdfs://`.

| key | promise | accepted values |
| --- | --- | --- |
";

/// The environment variable of a key: `hbase.master.port` is `GRAMPUS_HBASE_MASTER_PORT`,
/// `grampus.memory` is `GRAMPUS_MEMORY`.
pub fn variable_of(key: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let short = key.strip_prefix("grampus.").unwrap_or(key);
    VARIABLE_PREFIX.chars().chain(short.chars().map(upper)).collect()
}

/// The text of `docs/config.md`.
pub fn document() -> String {
    let mut text = HEAD.to_owned();
    describe_sections(&mut text, |section| !SINK_SECTIONS.contains(&section));
    describe_unsafe(&mut text);
    trimmed(text)
}

/// The text of `docs/sinks.md`.
pub fn sinks_document() -> String {
    let mut text = SINKS_HEAD.to_owned();
    describe_sections(&mut text, |section| SINK_SECTIONS.contains(&section));
    trimmed(text)
}

fn trimmed(mut text: String) -> String {
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn describe_sections(text: &mut String, is_included: impl Fn(&str) -> bool) {
    let mut section = "";
    for option in OPTIONS.iter().filter(|option| is_included(option.section)) {
        if option.section != section {
            section = option.section;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "## {section}\n");
        }
        describe(option, text);
    }
}

fn describe_unsafe(text: &mut String) {
    text.push_str(UNSAFE_HEAD);
    for UnsafeKey { pattern, neutral, promise } in UNSAFE_KEYS {
        let neutral: Vec<String> = neutral.iter().map(|value| format!("`{value}`")).collect();
        let neutral = if neutral.is_empty() { "empty".to_owned() } else { neutral.join(", ") };
        let _ = writeln!(text, "| `{pattern}` | {promise} | {neutral} |");
    }
}

fn describe(option: &OptionInfo, text: &mut String) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "### `{}`\n", option.key);
    for line in option.doc {
        // The lines of a doc comment start with the space after `///`.
        let _ = writeln!(text, "{}", line.strip_prefix(' ').unwrap_or(line));
    }
    let default =
        if option.default.is_empty() { "empty".to_owned() } else { format!("`{}`", option.default) };
    let _ = writeln!(text, "\n* default: {default}");
    let _ = writeln!(text, "* value: {}", option.form);
    let _ = writeln!(text, "* variable: `{}`", variable_of(option.key));
    for alias in option.aliases {
        let _ = writeln!(text, "* older key: `{alias}`");
    }
    if option.reload {
        let _ = writeln!(text, "* can be changed while the server runs");
    }
    text.push('\n');
}
