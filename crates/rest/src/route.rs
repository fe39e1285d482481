//! Paths: which resource a request addresses.
//!
//! Paths are matched before they are decoded, because row keys may contain escaped slashes.

use crate::escape;

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route<'a> {
    /// The list of tables.
    Tables,
    /// The version of this server.
    Version,
    /// The version of the cluster.
    ClusterVersion,
    /// The status of the cluster.
    ClusterStatus,
    /// The list of namespaces.
    Namespaces,
    /// A namespace.
    Namespace(String),
    /// The tables of a namespace.
    NamespaceTables(String),
    /// Whether a table exists.
    Exists(String),
    /// The regions of a table.
    Regions(String),
    /// The schema of a table.
    Schema(String),
    /// New scanners of a table.
    Scanners(String),
    /// An open scanner.
    Scanner(String),
    /// Several rows of a table: the table, and the columns as text.
    MultiGet(String, String),
    /// A scan without state: the table, and the prefix of the row keys.
    Scan(String, String),
    /// A row or a range of rows: the table, and the undecoded specification.
    Rows(String, &'a str),
    /// The description of this API.
    OpenApi,
}

/// The path of the OpenAPI description.
pub(crate) const OPENAPI_PATH: &str = "/openapi.json";

impl<'a> Route<'a> {
    /// The resource of an undecoded path; `None` if there is none.
    pub fn parse(path: &'a str) -> Option<Route<'a>> {
        if path == OPENAPI_PATH {
            return Some(Route::OpenApi);
        }
        let path = path.strip_prefix('/')?;
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        match (first, rest.trim_end_matches('/')) {
            ("", "") => Some(Route::Tables),
            ("", _) => None,
            ("version", "" | "rest") => Some(Route::Version),
            ("version", "cluster") => Some(Route::ClusterVersion),
            ("version", _) => None,
            ("status", "cluster") => Some(Route::ClusterStatus),
            ("status", _) => None,
            ("namespaces", rest) => Route::of_namespace(rest),
            (table, _) => Route::of_table(escape::decode(table)?, rest),
        }
    }

    fn of_namespace(rest: &str) -> Option<Route<'a>> {
        let name = |text: &str| escape::decode(text);
        match rest.split_once('/') {
            None if rest.is_empty() => Some(Route::Namespaces),
            None => Some(Route::Namespace(name(rest)?)),
            Some((namespace, "tables")) => Some(Route::NamespaceTables(name(namespace)?)),
            Some(_) => None,
        }
    }

    fn of_table(table: String, rest: &'a str) -> Option<Route<'a>> {
        let (word, more) = rest.split_once('/').unwrap_or((rest, ""));
        match (word, more) {
            ("", _) if rest.is_empty() => None,
            ("exists", "") => Some(Route::Exists(table)),
            ("regions", "") => Some(Route::Regions(table)),
            ("schema", "") => Some(Route::Schema(table)),
            ("scanner", "") => Some(Route::Scanners(table)),
            ("scanner", id) => Some(Route::Scanner(escape::decode(id)?)),
            ("exists" | "regions" | "schema", _) => None,
            _ => Route::of_rows(table, rest),
        }
    }

    fn of_rows(table: String, rest: &'a str) -> Option<Route<'a>> {
        if let Some(columns) = rest.strip_prefix("multiget") {
            let columns = columns.strip_prefix('/').unwrap_or(columns);
            return Some(Route::MultiGet(table, escape::decode(columns)?));
        }
        match rest.find('*') {
            None => Some(Route::Rows(table, rest)),
            Some(at) if rest.ends_with('*') => Some(Route::Scan(table, escape::decode(&rest[..at])?)),
            // A prefix of row keys, followed by columns.
            Some(_) if rest.contains("*/") => Some(Route::Rows(table, rest)),
            Some(_) => None,
        }
    }

    /// The value of the `Allow` header.
    pub(crate) fn allowed(&self) -> &'static str {
        match self {
            Route::Scanners(_) => "POST,OPTIONS,PUT",
            Route::Scanner(_) => "DELETE,GET,OPTIONS",
            Route::Namespace(_) | Route::NamespaceTables(_) | Route::Schema(_) | Route::Rows(..) => {
                "DELETE,POST,GET,OPTIONS,PUT"
            }
            _ => "GET,OPTIONS",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_words_come_before_tables_and_rows() {
        let t = || "t".to_owned();
        let cases = [
            ("/", Some(Route::Tables)),
            ("/version", Some(Route::Version)),
            ("/version/rest", Some(Route::Version)),
            ("/version/cluster", Some(Route::ClusterVersion)),
            ("/version/x", None),
            ("/status/cluster", Some(Route::ClusterStatus)),
            ("/status", None),
            ("/namespaces/", Some(Route::Namespaces)),
            ("/namespaces/n", Some(Route::Namespace("n".into()))),
            ("/namespaces/n/tables", Some(Route::NamespaceTables("n".into()))),
            ("/namespaces/n/x", None),
            ("/openapi.json", Some(Route::OpenApi)),
            ("/t", None),
            ("/t/", None),
            ("//t/r", None),
            ("/n%3At/schema", Some(Route::Schema("n:t".into()))),
            ("/t/exists", Some(Route::Exists(t()))),
            ("/t/exists/x", None),
            ("/t/regions", Some(Route::Regions(t()))),
            ("/t/scanner/", Some(Route::Scanners(t()))),
            ("/t/scanner/ab", Some(Route::Scanner("ab".into()))),
            ("/t/multiget", Some(Route::MultiGet(t(), String::new()))),
            ("/t/multiget/f:a,g", Some(Route::MultiGet(t(), "f:a,g".into()))),
            ("/t/*", Some(Route::Scan(t(), String::new()))),
            ("/t/a%20b*", Some(Route::Scan(t(), "a b".into()))),
            ("/t/a*/f:a", Some(Route::Rows(t(), "a*/f:a"))),
            ("/t/a*b", None),
            ("/t/r%2F1/f:a", Some(Route::Rows(t(), "r%2F1/f:a"))),
        ];
        for (path, expected) in cases {
            assert_eq!(Route::parse(path), expected, "{path}");
        }
    }
}
