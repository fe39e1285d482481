//! Option values from all sources, merged from the weakest to the strongest, before parsing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::declare::OptionInfo;
use super::hadoop::is_hadoop_key;
use super::substitute::{Substitution, substitute};
use super::superseded;
use super::unsafe_keys::find_unsupported;
use super::{Error, OPTIONS};

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The option's default.
    Default,
    /// A site file.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
    /// The command line.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Variable(name) => write!(f, "environment variable {name}"),
            Origin::CommandLine => f.write_str("command line"),
        }
    }
}

/// An option's value as given, with variables replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The documented key.
    pub key: String,
    /// The value as text.
    pub text: String,
    /// Source of the value.
    pub origin: Origin,
}

impl Setting {
    pub(super) fn refused(&self, reason: String) -> Error {
        // A value may be the contents of a whole file by mistake; the message stays on one line.
        let shown: String = self.text.chars().filter(|c| !c.is_control()).take(100).collect();
        Error::Invalid { key: self.key.clone(), value: shown, origin: self.origin.clone(), reason }
    }
}

/// Values by key: a value of a stronger source replaces those of weaker sources.
#[derive(Debug, Default)]
pub(super) struct Layers {
    values: BTreeMap<String, Setting>,
    environment: BTreeMap<String, String>,
    pub(super) warnings: Vec<String>,
}

/// The option with this key or alias.
pub(super) fn find(key: &str) -> Option<&'static OptionInfo> {
    OPTIONS.iter().find(|option| option.key == key || option.aliases.contains(&key))
}

impl Layers {
    pub(super) fn new(environment: &[(String, String)]) -> Layers {
        Layers { environment: environment.iter().cloned().collect(), ..Layers::default() }
    }

    /// Adds the values of one source, stronger than all sources added before. If one source gives
    /// both a key and its alias, the key wins.
    pub(super) fn add(&mut self, given: Vec<(String, String)>, origin: impl Fn(&str) -> Origin) {
        let (older, current): (Vec<_>, Vec<_>) =
            given.into_iter().partition(|(key, _)| find(key).is_some_and(|option| option.key != key));
        for (given_key, text) in older.into_iter().chain(current) {
            let origin = origin(&given_key);
            let key = match find(&given_key) {
                Some(option) => option.key.to_owned(),
                None if is_hadoop_key(&given_key) && find_unsupported(&given_key, &text).is_none() => {
                    given_key
                }
                None => {
                    let why = superseded::warning(&given_key).unwrap_or(
                        match find_unsupported(&given_key, &text) {
                            Some(_) => {
                                "not supported; ignored although this is unsafe (grampus.unsafe.ignore.keys)"
                            }
                            None => "unknown key, ignored",
                        },
                    );
                    self.warnings.push(format!("{given_key} ({origin}): {why}"));
                    given_key
                }
            };
            self.values.insert(key.clone(), Setting { key, text, origin });
        }
    }

    /// Adds or replaces one value, whatever its key.
    pub(super) fn insert(&mut self, setting: Setting) {
        self.values.insert(setting.key.clone(), setting);
    }

    /// All values as given, by key.
    pub(super) fn given(&self) -> impl Iterator<Item = &Setting> {
        self.values.values()
    }

    /// Checks that no key promises safety that this server does not provide, except those in
    /// `ignored`.
    pub(super) fn check_unsafe_keys(&self, ignored: &[String]) -> Result<(), Error> {
        let mut lines = Vec::new();
        for setting in self.values.values().filter(|setting| find(&setting.key).is_none()) {
            if find_unsupported(&setting.key, &setting.text).is_none() || ignored.contains(&setting.key) {
                continue;
            }
            let value = substitute(&setting.text, self).map_err(|reason| setting.refused(reason))?;
            let Some(promise) = find_unsupported(&setting.key, &value) else { continue };
            let (key, what) = (&setting.key, promise.promise);
            let reason = format!(
                "not supported, and ignoring it would be unsafe ({what}); remove it, or start with \
                 --set grampus.unsafe.ignore.keys={key}"
            );
            lines.push(setting.refused(reason).to_string());
        }
        if lines.is_empty() { Ok(()) } else { Err(Error::Unsafe { lines }) }
    }

    /// The value of an option, with variables replaced.
    pub(super) fn setting(&self, key: &str, default: &str) -> Result<Setting, Error> {
        let given = self.values.get(key);
        let mut setting = given.cloned().unwrap_or_else(|| Setting {
            key: key.to_owned(),
            text: default.to_owned(),
            origin: Origin::Default,
        });
        setting.text = substitute(&setting.text, self).map_err(|reason| setting.refused(reason))?;
        setting.text = setting.text.trim().to_owned();
        Ok(setting)
    }
}

impl Substitution for Layers {
    fn property(&self, key: &str) -> Option<String> {
        let option = find(key);
        let key = option.map_or(key, |option| option.key);
        let given = self.values.get(key).map(|setting| setting.text.clone());
        given.or_else(|| option.map(|option| option.default.to_owned())).or_else(|| self.system_property(key))
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.environment.get(name).cloned()
    }
}

impl Layers {
    // Properties of a Java process that site files may refer to.
    fn system_property(&self, key: &str) -> Option<String> {
        match key {
            "user.name" => self.variable("USER"),
            "user.home" => self.variable("HOME"),
            "user.dir" => self.variable("PWD"),
            "java.io.tmpdir" => self.variable("TMPDIR").or_else(|| Some("/tmp".to_owned())),
            _ => None,
        }
    }
}
