//! The table into which files are loaded.

use std::collections::BTreeMap;

use bytes::Bytes;
use cell::schema::{Compression, FamilyDescriptor, TableDescriptor, TableName};
use client::Client;

use super::discovery::FoundFile;

/// The table's descriptor. A missing table is created if `creates`, from the files: a family for
/// each directory, and regions between files that do not overlap.
///
/// # Errors
/// A one-line message.
pub(super) async fn find_or_create(
    client: &Client,
    name: &TableName,
    files: &[FoundFile],
    creates: bool,
) -> Result<TableDescriptor, String> {
    let failed = |error: client::Error| format!("table {name}: {error}");
    if !client.admin().table_exists(name).await.map_err(failed)? {
        if !creates {
            return Err(format!("table {name} does not exist; use --create to create it"));
        }
        if files.is_empty() {
            return Err(format!("cannot create table {name}: the directory has no HFiles"));
        }
        let (descriptor, split_keys) = (descriptor_of(name, files), boundaries(files));
        client.admin().create_table(&descriptor, &split_keys).await.map_err(failed)?;
        println!("created table {name} with {} regions", split_keys.len() + 1);
    }
    client.admin().describe(name).await.map_err(failed)
}

/// A table with the families of the files, and the compression of each family's first file.
fn descriptor_of(name: &TableName, files: &[FoundFile]) -> TableDescriptor {
    let mut families: BTreeMap<&Bytes, Compression> = BTreeMap::new();
    for file in files {
        families.entry(&file.family).or_insert(file.compression);
    }
    families.into_iter().fold(TableDescriptor::new(name.clone()), |table, (family, compression)| {
        let family = FamilyDescriptor::new(family.clone());
        table.with_family(match compression {
            Compression::None => family,
            compression => family.with("COMPRESSION", compression.name()),
        })
    })
}

/// The rows at which a region can start because no file has rows on both sides.
fn boundaries(files: &[FoundFile]) -> Vec<Bytes> {
    let mut changes: BTreeMap<&Bytes, i64> = BTreeMap::new();
    for file in files {
        *changes.entry(&file.first_row).or_default() += 1;
        *changes.entry(&file.last_row).or_default() -= 1;
    }
    let (mut open, mut starts, mut is_first) = (0, Vec::new(), true);
    for (row, change) in changes {
        if open == 0 && change >= 0 {
            // The first region has no start.
            if !std::mem::take(&mut is_first) {
                starts.push(row.clone());
            }
        }
        open += change;
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(first: &'static str, last: &'static str) -> FoundFile {
        FoundFile {
            family: "f".into(),
            path: fs::FilePath::root(),
            bytes: 1,
            first_row: first.into(),
            last_row: last.into(),
            compression: Compression::Gz,
        }
    }

    #[test]
    fn regions_begin_where_no_file_has_rows_on_both_sides() {
        let check = |files: &[FoundFile], expected: &[&str]| {
            let found = boundaries(files);
            assert_eq!(found, expected.iter().map(|row| row.as_bytes()).collect::<Vec<_>>());
        };
        check(&[file("a", "c"), file("d", "f")], &["d"]);
        check(&[file("a", "e"), file("d", "f"), file("g", "h"), file("i", "i")], &["g", "i"]);
        check(&[file("a", "z")], &[]);
    }

    #[test]
    fn families_have_the_compression_of_their_files() {
        let table = descriptor_of(&TableName::parse("t").unwrap(), &[file("a", "b")]);
        assert_eq!(table.families[&b"f"[..]].compression(), Some(Compression::Gz));
    }
}
