//! What an operator should know before an adoption: features that prevent it, and features that
//! have no effect here.

use std::fmt;

use cell::attribute::{Fault, problems};
use cell::schema::{TableDescriptor, TableName};

/// How a finding affects an adoption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The directory cannot be adopted.
    Blocker,
    /// It can be adopted, but something has no effect or is lost.
    Warning,
    /// For information.
    Note,
}

impl Severity {
    /// The word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Blocker => "blocker",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// How it affects an adoption.
    pub severity: Severity,
    /// The table, if it is one of a table.
    pub table: Option<TableName>,
    /// What was found, and what it means.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.severity.as_str())?;
        if let Some(table) = &self.table {
            write!(f, "table {table}: ")?;
        }
        f.write_str(&self.what)
    }
}

/// Collects findings.
#[derive(Debug, Default)]
pub struct Findings(pub Vec<Finding>);

impl Findings {
    /// Adds a finding of the whole directory.
    pub fn add(&mut self, severity: Severity, what: impl Into<String>) {
        self.0.push(Finding { severity, table: None, what: what.into() });
    }

    /// Adds a finding of a table.
    pub fn of_table(&mut self, severity: Severity, table: &TableName, what: impl Into<String>) {
        self.0.push(Finding { severity, table: Some(table.clone()), what: what.into() });
    }
}

/// Attributes whose files a server of Grampus cannot read or must not write.
const UNREADABLE: [&str; 2] = ["ENCRYPTION", "ENCRYPTION_KEY"];
/// Attributes that adoption handles, or that have findings of their own.
const HANDLED: [&str; 2] = ["hbase.store.file-tracker.impl", "COMPRESSION"];

/// The findings in the descriptor of a table. `is_disabled`: the table will not be served, so
/// features that cannot be served do not prevent an adoption.
pub fn of_descriptor(table: &TableDescriptor, is_disabled: bool, findings: &mut Findings) {
    for problem in problems(table) {
        let name = problem.name.as_str();
        if HANDLED.contains(&name) {
            continue;
        }
        let is_unreadable = UNREADABLE.contains(&name) && matches!(problem.fault, Fault::Unsupported { .. });
        let severity = match (is_unreadable, is_disabled) {
            (true, false) => Severity::Blocker,
            _ => Severity::Warning,
        };
        let remedy = match severity {
            Severity::Blocker => disable_hint(&table.name),
            _ => String::new(),
        };
        findings.of_table(severity, &table.name, format!("{problem}{remedy}"));
    }
    for family in table.families.values() {
        if let Some(codec) = family.unsupported_compression() {
            let family = family.name.escape_ascii();
            let severity = if is_disabled { Severity::Warning } else { Severity::Blocker };
            let hint = disable_hint(&table.name);
            findings.of_table(
                severity,
                &table.name,
                format!("compression {codec} of family {family} is not supported{hint}"),
            );
        }
        if family.replication_scope() > 0 {
            let what = format!(
                "family {} is replicated; replication peers and their queues are not taken over",
                family.name.escape_ascii()
            );
            findings.of_table(Severity::Warning, &table.name, what);
        }
    }
    let is_coprocessor = |name: &bytes::Bytes| name.starts_with(b"coprocessor$");
    if !table.name.is_meta() && table.attributes.keys().any(is_coprocessor) {
        let what = "its coprocessors are Java classes; those without an equivalent in Grampus are not run";
        findings.of_table(Severity::Warning, &table.name, what);
    }
}

/// The option that adopts a table without serving it.
pub(crate) fn disable_hint(table: &TableName) -> String {
    format!("; `--disable {table}` adopts the table disabled, with its files unchanged")
}

/// System tables whose purpose a server of Grampus does not have.
pub fn of_system_table(table: &TableName, findings: &mut Findings) {
    let what = match table.to_string().as_str() {
        "hbase:acl" => "permissions are kept, but not enforced: every client may read and write",
        "hbase:labels" => "visibility labels are kept, but not enforced: every client may read labeled cells",
        "hbase:rsgroup" => "region server groups are kept, but have no effect",
        "hbase:replication" => "replication queues are kept, but no edit is shipped from them",
        _ => return,
    };
    findings.of_table(Severity::Warning, table, what);
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::schema::FamilyDescriptor;

    #[test]
    fn unreadable_features_block_unless_the_table_is_disabled() {
        let name = TableName::parse("t").unwrap();
        let family = FamilyDescriptor::new(&b"f"[..]).with("ENCRYPTION", "AES").with("COMPRESSION", "LZO");
        let table = TableDescriptor::new(name).with_family(family);
        for (is_disabled, expected) in [(false, Severity::Blocker), (true, Severity::Warning)] {
            let mut findings = Findings::default();
            of_descriptor(&table, is_disabled, &mut findings);
            assert_eq!(findings.0.len(), 2, "{findings:?}");
            assert!(findings.0.iter().all(|finding| finding.severity == expected), "{findings:?}");
        }
    }

    #[test]
    fn the_tracker_of_store_files_is_handled() {
        let mut table = TableDescriptor::new(TableName::parse("t").unwrap());
        table.attributes.insert("hbase.store.file-tracker.impl".into(), "FILE".into());
        let mut findings = Findings::default();
        of_descriptor(&table, false, &mut findings);
        assert_eq!(findings.0, []);
    }
}
