//! Table descriptors: `.tabledesc/.tableinfo.<sequence, 10 digits>.<length>`.
//!
//! A change writes the next sequence number and then removes the older files. The descriptor is the
//! file with the highest number whose length equals the length in its name. So there is exactly one
//! at any time.
//!
//! Source: HBase `FSTableDescriptors`.

use bytes::Bytes;
use cell::schema::{TableDescriptor, TableName};
use fs::{FilePath, FileStatus, FileSystem};
use proto::TableSchema;
use proto::magic::{with_magic, without_magic};

use crate::store::check_family;
use crate::{Error, Result, RootDir, corrupt, file};

pub(crate) const DIR: &str = ".tabledesc";
const PREFIX: &str = ".tableinfo";

/// The parsed name of a descriptor file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileName {
    sequence: u32,
    /// `None` in names that HBase before 2.5 wrote.
    len: Option<u64>,
}

impl FileName {
    fn parse(name: &str) -> Option<FileName> {
        let rest = name.strip_prefix(PREFIX)?;
        let Some(rest) = rest.strip_prefix('.') else {
            return rest.is_empty().then_some(FileName { sequence: 0, len: None });
        };
        let (sequence, len) =
            rest.split_once('.').map_or((rest, None), |(sequence, len)| (sequence, Some(len)));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if sequence.len() != 10 || !digits(sequence) || !len.is_none_or(digits) {
            return None;
        }
        let len = len.map(str::parse).transpose().ok()?;
        Some(FileName { sequence: sequence.parse().ok()?, len })
    }

    fn is_whole(&self, status: &FileStatus) -> bool {
        self.len.is_none_or(|len| len == status.len)
    }
}

impl RootDir {
    /// Reads a table's descriptor.
    ///
    /// # Errors
    /// [`fs::Error::NotFound`] if there is none, [`Error::Corrupt`] if it is unreadable or belongs
    /// to another table.
    pub async fn read_table_descriptor(
        &self,
        fs: &dyn FileSystem,
        table: &TableName,
    ) -> Result<TableDescriptor> {
        match self.find_table_descriptor(fs, table).await? {
            Some(descriptor) => Ok(descriptor),
            None => Err(fs::Error::NotFound { path: self.table_dir(table).join(DIR) }.into()),
        }
    }

    /// Reads a table's descriptor, if it has one.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is unreadable or belongs to another table.
    pub async fn find_table_descriptor(
        &self,
        fs: &dyn FileSystem,
        table: &TableName,
    ) -> Result<Option<TableDescriptor>> {
        let dir = self.table_dir(table);
        let Some(descriptor) = read_in(fs, &dir).await? else { return Ok(None) };
        if &descriptor.name != table {
            return Err(corrupt(&dir.join(DIR), format!("is the descriptor of {}", descriptor.name)));
        }
        Ok(Some(descriptor))
    }

    /// Replaces a table's descriptor. On return, the new one is durable. After a failure or a power
    /// loss, either the old or the new one is there.
    ///
    /// # Errors
    /// File system errors.
    pub async fn write_table_descriptor(&self, fs: &dyn FileSystem, table: &TableDescriptor) -> Result<()> {
        write_in(fs, &self.table_dir(&table.name), table).await
    }
}

/// Reads the descriptor in the directory of a table or of a snapshot, if there is one.
pub(crate) async fn read_in(fs: &dyn FileSystem, dir: &FilePath) -> Result<Option<TableDescriptor>> {
    let newest = read_newest(fs, &dir.join(DIR)).await?;
    newest.map(|(path, content)| decode(&path, &content)).transpose()
}

/// Writes a descriptor into the directory of its table, at any path.
pub(crate) async fn write_in(
    fs: &dyn FileSystem,
    table_dir: &FilePath,
    table: &TableDescriptor,
) -> Result<()> {
    let (dir, tmp_dir) = (table_dir.join(DIR), table_dir.join(".tmp"));
    for family in table.families.keys() {
        check_family(&dir, family)?;
    }
    fs.make_dirs(&dir).await?;
    fs.make_dirs(&tmp_dir).await?;
    let older = files_in(fs, &dir).await?;
    let sequence = older.iter().map(|(name, _)| name.sequence).max().unwrap_or(0) + 1;
    let content = with_magic(&TableSchema::from(table));
    let name = format!("{PREFIX}.{sequence:010}.{}", content.len());
    file::replace(fs, &tmp_dir.join(&name), &dir.join(&name), content).await?;
    for (_, status) in &older {
        fs.delete(&dir.join(&status.name)).await?;
    }
    Ok(())
}

/// Reads the current descriptor file. It may be replaced after the directory was listed (a region
/// opens while its table is altered), and a listing may miss both the old and the new name. So a
/// missing file is accepted only if two listings in a row agree.
async fn read_newest(fs: &dyn FileSystem, dir: &FilePath) -> Result<Option<(FilePath, Bytes)>> {
    let mut before = None;
    loop {
        let files = files_in(fs, dir).await?;
        let path = newest(&files).map(|(_, status)| dir.join(&status.name));
        let is_as_it_was = before.as_ref() == Some(&path);
        match path {
            None if is_as_it_was => return Ok(None),
            None => before = Some(None),
            Some(path) => match file::read(fs, &path).await {
                Err(Error::Fs(fs::Error::NotFound { .. })) if !is_as_it_was => before = Some(Some(path)),
                content => return Ok(Some((path, content?))),
            },
        }
    }
}

async fn files_in(fs: &dyn FileSystem, dir: &FilePath) -> Result<Vec<(FileName, FileStatus)>> {
    let entries = file::list(fs, dir).await?;
    Ok(entries.into_iter().filter_map(|status| Some((FileName::parse(&status.name)?, status))).collect())
}

fn newest(files: &[(FileName, FileStatus)]) -> Option<&(FileName, FileStatus)> {
    files
        .iter()
        .filter(|(name, status)| !status.is_dir && name.is_whole(status))
        .max_by_key(|(name, _)| name.sequence)
}

fn decode(path: &FilePath, content: &Bytes) -> Result<TableDescriptor> {
    let schema: TableSchema = without_magic(content).map_err(|error| corrupt(path, error))?;
    let table = TableDescriptor::try_from(&schema).map_err(|error| corrupt(path, error))?;
    for family in table.families.keys() {
        check_family(path, family)?;
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_hbases() {
        let parsed = |name| FileName::parse(name).map(|name| (name.sequence, name.len));
        assert_eq!(parsed(".tableinfo.0000000001.626"), Some((1, Some(626))));
        assert_eq!(parsed(".tableinfo.0000000012"), Some((12, None)));
        assert_eq!(parsed(".tableinfo"), Some((0, None)));
        for other in [
            "tableinfo.0000000001.1",
            ".tableinfo.1.1",
            ".tableinfo.0000000001.",
            ".tableinfo.0000000001.x",
            ".tableinfo.",
            ".tableinfo.9999999999.1",
        ] {
            assert_eq!(parsed(other), None, "{other}");
        }
    }
}
