//! Attributes and settings of tables and families: which values each accepts, and what the server
//! does with it.
//!
//! [`ATTRIBUTES`] has one row per key. The master's validation, `docs/attributes.md` and the note
//! that the shell's `describe` prints come from these rows. Two rules cover all other keys:
//!
//! * A key that HBase gives no meaning to is the user's own metadata. It is stored and returned.
//! * A key that begins as HBase's own keys do ([`RESERVED_PREFIXES`]) is refused. HBase may read it
//!   from a table's configuration, and this server does not.
//!
//! Not here: rules about combinations of attributes, and HBase's recommended ranges, which a table
//! can switch off. Both are in the master's `sanity`.

mod document;
mod form;
mod rows;

pub use document::document;
pub use form::Form;
pub use rows::ATTRIBUTES;

use std::fmt;

use bytes::Bytes;

use crate::schema::{Attributes, Configuration, FamilyDescriptor, TableDescriptor};

/// Which descriptors an attribute belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Tables only.
    Table,
    /// Families only.
    Family,
    /// Families and tables; a family's value overrides its table's.
    Both,
}

/// What the server does with an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Has the effect that it has in HBase.
    Honoured,
    /// Stored and returned without effect. The values listed request nothing; the shell reports all
    /// others.
    Compatibility(&'static [&'static str]),
    /// Refused, except for the values listed, which request nothing.
    Refused(&'static [&'static str]),
}

/// One attribute or setting.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// The key, as HBase spells it.
    pub name: &'static str,
    /// Which descriptors it belongs to.
    pub scope: Scope,
    /// Which values it accepts.
    pub form: Form,
    /// What the server does with it.
    pub treatment: Treatment,
    /// Its meaning, or the reason for its treatment, for the documentation.
    pub doc: &'static str,
}

/// Key prefixes that belong to HBase. Of these keys only those in [`ATTRIBUTES`] are accepted.
pub const RESERVED_PREFIXES: &[&str] = &["hbase.", "hfile.", "io.hfile.", "io.storefile.", "constraint $"];

/// Prefix of the keys of coprocessors, whose values `cell::coprocessor` reads.
const COPROCESSOR_PREFIX: &str = "coprocessor$";

/// The row of a key; `None` for a key without one.
pub fn find(name: &str) -> Option<&'static Attribute> {
    ATTRIBUTES.iter().find(|attribute| attribute.name == name)
}

/// An attribute that must be refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The family that has it; `None` for the table.
    pub family: Option<Bytes>,
    /// The key.
    pub name: String,
    /// The value.
    pub value: Bytes,
    /// What is wrong with it.
    pub fault: Fault,
}

/// Why an attribute must be refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The value is outside what the attribute accepts. An existing table is served as if it did
    /// not have the attribute.
    Value {
        /// The values that are accepted.
        expected: String,
    },
    /// The server does not do what the attribute requests.
    Unsupported {
        /// The values that are accepted, or why none is.
        reason: String,
    },
    /// The key has no effect in this descriptor.
    Misplaced {
        /// Why, and where the key belongs.
        reason: &'static str,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} => '{}'", self.name, self.value.escape_ascii())?;
        match &self.family {
            Some(family) => write!(f, " of family {}", family.escape_ascii())?,
            None => f.write_str(" of the table")?,
        }
        match &self.fault {
            Fault::Value { expected } => write!(f, ": expected {expected}"),
            Fault::Unsupported { reason } => write!(f, " is not supported: {reason}"),
            Fault::Misplaced { reason } => write!(f, " has no effect: {reason}"),
        }
    }
}

/// All attributes and settings of a table and its families that must be refused.
pub fn problems(table: &TableDescriptor) -> Vec<Problem> {
    let mut all = of_maps(None, &table.attributes, &table.configuration);
    for family in table.families.values() {
        all.extend(of_maps(Some(&family.name), &family.attributes, &family.configuration));
    }
    all
}

fn of_maps(family: Option<&Bytes>, attributes: &Attributes, configuration: &Configuration) -> Vec<Problem> {
    let attributes = attributes.iter().filter_map(|(name, value)| {
        // A name that is not text is the user's own.
        let name = std::str::from_utf8(name).ok()?;
        Some((name, value.clone(), check(name, value, family.is_some(), false).err()?))
    });
    let configuration = configuration.iter().filter_map(|(name, value)| {
        let value = Bytes::copy_from_slice(value.as_bytes());
        let fault = check(name, &value, family.is_some(), true).err()?;
        Some((name.as_str(), value, fault))
    });
    let problem = |(name, value, fault): (&str, Bytes, Fault)| Problem {
        family: family.cloned(),
        name: name.to_string(),
        value,
        fault,
    };
    attributes.chain(configuration).map(problem).collect()
}

/// Checks one key and value of a family or a table, from its configuration or its attributes.
fn check(name: &str, value: &[u8], of_family: bool, of_configuration: bool) -> Result<(), Fault> {
    let misplaced = |reason| Err(Fault::Misplaced { reason });
    let Some(attribute) = find(name) else {
        return match RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            true => misplaced("it cannot be set for a single table or family; see docs/attributes.md"),
            false if name.starts_with(COPROCESSOR_PREFIX) && of_family => {
                misplaced("coprocessors belong to tables")
            }
            false => Ok(()),
        };
    };
    match (attribute.scope, of_family) {
        (Scope::Table, true) => return misplaced("it belongs to tables, not to families"),
        (Scope::Family, false) => return misplaced("it belongs to families, not to tables"),
        _ => {}
    }
    // HBase reads a family's attributes from its attributes alone; a table has one map for both.
    if of_configuration && of_family && attribute.scope == Scope::Family {
        return misplaced("it is an attribute and not a setting of CONFIGURATION");
    }
    let text = std::str::from_utf8(value).ok();
    let is_one_of = |values: &[&str]| {
        text.is_some_and(|text| values.iter().any(|value| value.eq_ignore_ascii_case(text)))
    };
    match attribute.treatment {
        Treatment::Refused(neutral) if is_one_of(neutral) => Ok(()),
        Treatment::Refused([]) => Err(Fault::Unsupported { reason: attribute.doc.to_string() }),
        Treatment::Refused(neutral) => {
            let reason = format!("{} Accepted: {}", attribute.doc, form::listed(neutral));
            Err(Fault::Unsupported { reason })
        }
        Treatment::Honoured | Treatment::Compatibility(_) => {
            match text.is_some_and(|text| attribute.form.accepts(text)) {
                true => Ok(()),
                false => Err(Fault::Value { expected: attribute.form.to_string() }),
            }
        }
    }
}

/// The attributes that are stored without effect although they request something: the family's name
/// (`None` for the table) and the key.
pub fn without_effect(table: &TableDescriptor) -> Vec<(Option<Bytes>, &'static str)> {
    let of_family = |family: &FamilyDescriptor| {
        let name = family.name.clone();
        names_without_effect(&family.attributes, &family.configuration)
            .into_iter()
            .map(move |key| (Some(name.clone()), key))
    };
    let of_table = names_without_effect(&table.attributes, &table.configuration);
    of_table.into_iter().map(|key| (None, key)).chain(table.families.values().flat_map(of_family)).collect()
}

fn names_without_effect(attributes: &Attributes, configuration: &Configuration) -> Vec<&'static str> {
    let value_of = |name: &str| {
        let of_configuration = || configuration.get(name).map(String::as_bytes);
        attributes.get(name.as_bytes()).map(|value| &value[..]).or_else(of_configuration)
    };
    let is_requested = |attribute: &&Attribute| match (attribute.treatment, value_of(attribute.name)) {
        (Treatment::Compatibility(neutral), Some(value)) => {
            !neutral.iter().any(|neutral| neutral.as_bytes().eq_ignore_ascii_case(value))
        }
        _ => false,
    };
    ATTRIBUTES.iter().filter(is_requested).map(|attribute| attribute.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::TableName;

    fn table() -> TableDescriptor {
        TableDescriptor::new(TableName::parse("t").unwrap())
    }

    fn family(name: &str, value: &str) -> TableDescriptor {
        table().with_family(FamilyDescriptor::new("f").with(name, value))
    }

    fn of_table(name: &str, value: &str) -> TableDescriptor {
        let mut table = table();
        table.attributes.insert(name.to_string().into(), value.to_string().into());
        table
    }

    fn check(table: &TableDescriptor, expected: &str) {
        let problems: Vec<String> = problems(table).iter().map(ToString::to_string).collect();
        assert_eq!(problems.join("; "), expected);
    }

    #[test]
    fn keys_are_listed_once() {
        for (at, attribute) in ATTRIBUTES.iter().enumerate() {
            let later = &ATTRIBUTES[at + 1..];
            assert!(later.iter().all(|other| other.name != attribute.name), "{}", attribute.name);
        }
    }

    #[test]
    fn invalid_values_are_named_with_the_accepted_ones() {
        check(
            &family("VERSIONS", "x"),
            "VERSIONS => 'x' of family f: expected an integer from 1 to 2147483647",
        );
        check(
            &family("TTL", "2147483648"),
            "TTL => '2147483648' of family f: expected an integer from 1 to 2147483647, or FOREVER",
        );
        check(&family("IN_MEMORY", "yes"), "IN_MEMORY => 'yes' of family f: expected true or false");
        check(
            &of_table("DURABILITY", "NOPE"),
            "DURABILITY => 'NOPE' of the table: expected USE_DEFAULT, SKIP_WAL, ASYNC_WAL, SYNC_WAL or FSYNC_WAL",
        );
        let faulty = [
            ("VERSIONS", "-1"),
            ("VERSIONS", "0"),
            ("TTL", "abc"),
            ("DATA_BLOCK_ENCODING", "NOPE"),
            ("KEEP_DELETED_CELLS", "maybe"),
            ("IN_MEMORY_COMPACTION", "NOPE"),
            ("STORAGE_POLICY", "NOPE"),
            ("MOB_THRESHOLD", "-1"),
        ];
        for (name, value) in faulty {
            assert_eq!(problems(&family(name, value)).len(), 1, "{name} => {value}");
        }
        for (name, value) in [("MAX_FILESIZE", "x"), ("MERGE_ENABLED", "maybe"), ("PRIORITY", "1.5")] {
            assert_eq!(problems(&of_table(name, value)).len(), 1, "{name} => {value}");
        }
    }

    #[test]
    fn unsupported_values_are_refused_and_neutral_ones_accepted() {
        let refused = [("ENCRYPTION", "AES"), ("ENCRYPTION_KEY", "k")];
        for (name, value) in refused {
            assert_eq!(problems(&family(name, value)).len(), 1, "{name}");
        }
        check(&family("IS_MOB", "FALSE"), "");
        check(&family("IS_MOB", "true"), "");
        check(&family("MOB_THRESHOLD", "1"), "");
        check(&of_table("REGION_REPLICATION", "1"), "");
        assert_eq!(problems(&of_table("REGION_REPLICATION", "2")).len(), 1);
    }

    #[test]
    fn user_keys_are_accepted_and_unknown_hbase_keys_are_not() {
        check(&of_table("note", "any"), "");
        check(&family("COLOUR", "green"), "");
        assert_eq!(problems(&of_table("hbase.no.such.setting", "1")).len(), 1);
        assert_eq!(problems(&of_table("TTL", "5")).len(), 1, "a family's attribute");
        assert_eq!(problems(&family("MAX_FILESIZE", "5")).len(), 1, "a table's attribute");
        let mut own = table().with_family(FamilyDescriptor::new("f"));
        own.families.values_mut().next().unwrap().configuration.insert("VERSIONS".into(), "5".into());
        assert_eq!(problems(&own).len(), 1, "HBase reads it from the attributes");
        let key = Bytes::from_static(b"\xFFhbase.");
        own.families.clear();
        own.attributes.insert(key, "x".into());
        check(&own, "");
    }

    #[test]
    fn attributes_without_effect_are_reported_unless_neutral() {
        let table = family("DFS_REPLICATION", "3");
        assert_eq!(without_effect(&table), [(Some(Bytes::from_static(b"f")), "DFS_REPLICATION")]);
        assert_eq!(without_effect(&family("DFS_REPLICATION", "0")), []);
        assert_eq!(without_effect(&of_table("PRIORITY", "7")), [(None, "PRIORITY")]);
        assert_eq!(without_effect(&of_table("MAX_FILESIZE", "7")), []);
    }
}
