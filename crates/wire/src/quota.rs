//! The rows of `hbase:quota`: the subject of each quota, and its settings.
//!
//! ```text
//! u.USER  q:s             quota of a user               t.TABLE  q:s  of a table
//!         q:s.TABLE       of a user's calls of a table  n.NAME   q:s  of a namespace
//!         q:s.NAMESPACE:  of those of a namespace       r.all    q:s  of each region server
//! exceedThrottleQuota  q:s  one byte: whether servers with spare capacity let quotas be exceeded
//! ```
//!
//! A value is `PBUF` followed by a `Quotas` message. Clients scan the table themselves. Source:
//! HBase `QuotaTableUtil`.

use bytes::Bytes;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};

/// The column family of quota settings.
pub const FAMILY: &[u8] = b"q";
/// The qualifier of settings, and the prefix of a user's qualifiers for tables and namespaces.
pub const SETTINGS: &[u8] = b"s";
/// The row that states whether quotas may be exceeded.
pub const EXCEED_ROW: &[u8] = b"exceedThrottleQuota";
/// This row exists while throttling is off. HBase stores this flag outside its tables, in
/// ZooKeeper.
pub const UNTHROTTLED_ROW: &[u8] = b"rpcThrottleOff";
/// The name that denotes every region server. HBase's clients reject a quota of a single server.
pub const ALL_SERVERS: &str = "all";

const USAGE_FAMILY: &[u8] = b"u";

/// The name of `hbase:quota`.
pub fn table_name() -> TableName {
    TableName::new("hbase", "quota").expect("the name is valid")
}

/// The table's descriptor.
pub fn descriptor() -> TableDescriptor {
    let family =
        |name: &'static [u8]| FamilyDescriptor::new(name).with("BLOOMFILTER", "ROW").with("VERSIONS", "1");
    let mut table =
        TableDescriptor::new(table_name()).with_family(family(FAMILY)).with_family(family(USAGE_FAMILY));
    // HBase sets this attribute on every table that it creates.
    table.attributes.insert("hbase.store.file-tracker.impl".into(), "DEFAULT".into());
    table
}

/// The subject of a quota: the calls that it limits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// All calls of a user.
    User(String),
    /// A user's calls of a table.
    UserTable(String, TableName),
    /// A user's calls of tables of a namespace.
    UserNamespace(String, String),
    /// All calls of a table.
    Table(TableName),
    /// All calls of tables of a namespace.
    Namespace(String),
    /// All calls to a server.
    Server(String),
}

impl Subject {
    /// The subject whose quota a request sets: the first of user, table, namespace and server that
    /// it names.
    pub fn of(request: &proto::SetQuotaRequest) -> Result<Option<Subject>, cell::schema::IllegalName> {
        let proto::SetQuotaRequest { user_name, namespace, table_name, region_server, .. } = request.clone();
        let table = table_name.map(|name| {
            TableName::new(
                &String::from_utf8_lossy(&name.namespace),
                &String::from_utf8_lossy(&name.qualifier),
            )
        });
        let table = table.transpose()?;
        Ok(match (user_name, table, namespace, region_server) {
            (Some(user), Some(table), _, _) => Some(Subject::UserTable(user, table)),
            (Some(user), None, Some(namespace), _) => Some(Subject::UserNamespace(user, namespace)),
            (Some(user), None, None, _) => Some(Subject::User(user)),
            (None, Some(table), _, _) => Some(Subject::Table(table)),
            (None, None, Some(namespace), _) => Some(Subject::Namespace(namespace)),
            (None, None, None, Some(server)) => Some(Subject::Server(server)),
            (None, None, None, None) => None,
        })
    }

    /// The row key of the subject's quota.
    pub fn row(&self) -> Vec<u8> {
        let text = match self {
            Subject::User(user) | Subject::UserTable(user, _) | Subject::UserNamespace(user, _) => {
                format!("u.{user}")
            }
            Subject::Table(table) => format!("t.{table}"),
            Subject::Namespace(namespace) => format!("n.{namespace}"),
            Subject::Server(server) => format!("r.{server}"),
        };
        text.into_bytes()
    }

    /// The qualifier of the quota in its row.
    pub fn qualifier(&self) -> Vec<u8> {
        match self {
            Subject::UserTable(_, table) => format!("s.{table}").into_bytes(),
            Subject::UserNamespace(_, namespace) => format!("s.{namespace}:").into_bytes(),
            _ => SETTINGS.to_vec(),
        }
    }

    /// The subject of the quota at this row and qualifier; `None` if there is no quota in this
    /// column.
    pub fn parse(row: &[u8], qualifier: &[u8]) -> Option<Subject> {
        let row = std::str::from_utf8(row).ok()?;
        let qualifier = std::str::from_utf8(qualifier).ok()?;
        let (kind, name) = row.split_once('.')?;
        let subject = match (kind, qualifier.strip_prefix("s.")) {
            ("u", Some(other)) => match other.strip_suffix(':') {
                Some(namespace) => Subject::UserNamespace(name.to_string(), namespace.to_string()),
                None => Subject::UserTable(name.to_string(), TableName::parse(other).ok()?),
            },
            _ if qualifier.as_bytes() != SETTINGS => return None,
            ("u", None) => Subject::User(name.to_string()),
            ("t", None) => Subject::Table(TableName::parse(name).ok()?),
            ("n", None) => Subject::Namespace(name.to_string()),
            ("r", None) => Subject::Server(name.to_string()),
            _ => return None,
        };
        Some(subject)
    }
}

/// Encodes a quota as a cell value.
pub fn encode(quotas: &proto::Quotas) -> Bytes {
    proto::magic::with_magic(quotas)
}

/// Decodes the quota in a cell value; `None` if the value is not a quota.
pub fn decode(value: &[u8]) -> Option<proto::Quotas> {
    proto::magic::without_magic(&Bytes::copy_from_slice(value)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_read_back_from_their_cells() {
        let table = TableName::parse("ns:t").unwrap();
        for subject in [
            Subject::User("a.b".into()),
            Subject::UserTable("a".into(), table.clone()),
            Subject::UserTable("a".into(), TableName::parse("t").unwrap()),
            Subject::UserNamespace("a".into(), "ns".into()),
            Subject::Table(table),
            Subject::Namespace("default".into()),
            Subject::Server("all".into()),
        ] {
            assert_eq!(Subject::parse(&subject.row(), &subject.qualifier()), Some(subject));
        }
        assert_eq!(Subject::parse(EXCEED_ROW, SETTINGS), None);
        assert_eq!(Subject::parse(UNTHROTTLED_ROW, SETTINGS), None);
        assert_eq!(Subject::parse(b"t.x", b"q"), None);
        assert_eq!(Subject::parse(b"x.y", SETTINGS), None);
    }
}
