//! `docs/config.md`, made from the declarations.

use std::fmt::Write;

use super::declare::OptionInfo;
use super::unsafe_keys::{UNSAFE_KEYS, UnsafeKey};
use super::{OPTIONS, VARIABLE_PREFIX};

const HEAD: &str = "\
<!-- Made from the declarations in crates/base/src/config/options.rs; a test says how to make it anew. -->

# Configuration

Grampus runs without any. Options are given, from the weakest to the strongest, in

1. `hbase-site.xml`, in the directory that `--config` or `HBASE_CONF_DIR` names: HBase's format and HBase's keys, which
   mean what they mean in HBase; `<final>` and `${…}` work, inclusion of other files and entities do not;
2. environment variables, whose names are given with each option;
3. the command line: `--set KEY=VALUE`.

A key that is not listed here is ignored, with a warning at the start, unless that would be [unsafe](#keys-that-stop-the-start). A value that cannot be meant stops the start,
with a line that says where it was given. Sizes count in powers of 1024.

";

const UNSAFE_HEAD: &str = "\
## Keys that stop the start

Grampus does not do what these keys of HBase ask for. A server that ignored them would be less safe than its operator
believes, or would serve other data. So the start ends with a line for each and exit status 1, unless the value asks for
nothing, or `grampus.unsafe.ignore.keys` names the key. `*` stands for any text. `hbase.rootdir` in another file system than
the local one stops the start too.

| key | what it promises | accepted values |
| --- | --- | --- |
";

/// The environment variable of a key: `hbase.master.port` is `GRAMPUS_HBASE_MASTER_PORT`, `grampus.memory` is
/// `GRAMPUS_MEMORY`.
pub fn variable_of(key: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let short = key.strip_prefix("grampus.").unwrap_or(key);
    VARIABLE_PREFIX.chars().chain(short.chars().map(upper)).collect()
}

/// The text of `docs/config.md`.
pub fn document() -> String {
    let mut text = HEAD.to_owned();
    let mut section = "";
    for option in OPTIONS {
        if option.section != section {
            section = option.section;
            let _ = writeln!(text, "## {section}\n");
        }
        describe(option, &mut text);
    }
    describe_unsafe(&mut text);
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
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
    // Writing to a text cannot fail.
    let _ = writeln!(text, "### `{}`\n", option.key);
    for line in option.doc {
        // A doc comment's lines begin with the blank behind `///`.
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
        let _ = writeln!(text, "* a running server takes a change");
    }
    text.push('\n');
}
