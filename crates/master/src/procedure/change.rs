//! A change of a table's descriptor. It is applied when the procedure runs.

use bytes::Bytes;
use cell::schema::{FamilyDescriptor, TableDescriptor};
use proto::exception::{Answer, JavaException, class};

/// A change of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Replace the whole descriptor: attributes, settings and families.
    Replace(Box<TableDescriptor>),
    /// Add a family.
    AddFamily(FamilyDescriptor),
    /// Replace the attributes and settings of a family.
    ModifyFamily(FamilyDescriptor),
    /// Delete a family with its data.
    DeleteFamily(Bytes),
}

impl Change {
    /// Applies the change to the descriptor `old`.
    ///
    /// # Errors
    /// `InvalidFamilyOperationException`, with HBase's message.
    pub fn apply(&self, old: &TableDescriptor) -> Answer<TableDescriptor> {
        let mut new = old.clone();
        match self {
            Change::Replace(table) => new = (**table).clone(),
            Change::AddFamily(family) => {
                if new.families.insert(family.name.clone(), family.clone()).is_some() {
                    return Err(refused(format!(
                        "Column family '{}' in table '{}' already exists so cannot be added",
                        printable(&family.name),
                        old.name
                    )));
                }
            }
            Change::ModifyFamily(family) => {
                if new.families.insert(family.name.clone(), family.clone()).is_none() {
                    return Err(refused(format!(
                        "Family '{}' does not exist, so it cannot be modified",
                        printable(&family.name)
                    )));
                }
            }
            Change::DeleteFamily(name) => {
                if new.families.remove(name).is_none() {
                    return Err(refused(format!(
                        "Family '{}' does not exist, so it cannot be deleted",
                        printable(name)
                    )));
                }
                if new.families.is_empty() {
                    return Err(refused(format!(
                        "Family '{}' is the only column family in the table, so it cannot be deleted",
                        printable(name)
                    )));
                }
            }
        }
        Ok(new)
    }
}

fn refused(message: String) -> JavaException {
    JavaException::new(class::INVALID_FAMILY_OPERATION, message)
}

fn printable(name: &[u8]) -> String {
    name.escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::schema::TableName;

    fn table(families: &[&'static str]) -> TableDescriptor {
        let table = TableDescriptor::new(TableName::parse("t").unwrap());
        families.iter().fold(table, |table, family| table.with_family(FamilyDescriptor::new(*family)))
    }

    fn check(old: &[&'static str], change: &Change, expected: Result<&[&'static str], &str>) {
        match (change.apply(&table(old)), expected) {
            (Ok(new), Ok(families)) => {
                let names: Vec<_> = new.families.keys().map(|name| &name[..]).collect();
                assert_eq!(names, families.iter().map(|name| name.as_bytes()).collect::<Vec<_>>());
            }
            (Err(exception), Err(part)) => {
                assert!(exception.is(class::INVALID_FAMILY_OPERATION), "{exception}");
                assert!(exception.message.contains(part), "{exception}");
            }
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn families_are_added_modified_and_deleted() {
        let family = |name: &'static str| FamilyDescriptor::new(name);
        check(&["a"], &Change::AddFamily(family("b")), Ok(&["a", "b"]));
        check(&["a"], &Change::AddFamily(family("a")), Err("already exists"));
        check(&["a"], &Change::ModifyFamily(family("a")), Ok(&["a"]));
        check(&["a"], &Change::ModifyFamily(family("b")), Err("cannot be modified"));
        check(&["a", "b"], &Change::DeleteFamily("a".into()), Ok(&["b"]));
        check(&["a"], &Change::DeleteFamily("b".into()), Err("does not exist"));
        check(&["a"], &Change::DeleteFamily("a".into()), Err("only column family"));
        check(&["a"], &Change::Replace(Box::new(table(&["x"]))), Ok(&["x"]));
    }
}
