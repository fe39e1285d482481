//! Tables as SQL sees them: the contents of `CREATE EXTERNAL TABLE` for a table and its columns.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use cell::schema::TableName;
use columnar::{Column, ColumnLocation, Encoding, Kind};
use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::common::{Constraint, Constraints};
use datafusion::logical_expr::CreateExternalTable;
use wire::convert::columns::request::column_message;

use crate::mapping::Mapping;
use crate::types::{Family, SqlType};

/// Options of the table, not of a column.
const ENCODING_OPTION: &str = "table.encoding";
const FAMILY_OPTION: &str = "table.family";
/// The prefix that DataFusion adds to options without a dot.
const FORMAT_PREFIX: &str = "format.";
/// An optional prefix for column names, for a column whose name equals an option of DataFusion.
const COLUMN_PREFIX: &str = "column.";

/// A table of the cluster, with names and types for its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Its name in SQL.
    pub name: String,
    /// Its name in the cluster.
    pub table: TableName,
    /// Its columns, at least one.
    pub columns: Vec<DeclaredColumn>,
}

/// A column of a declared table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// The location of its values.
    pub location: ColumnLocation,
    /// The encoding of its values.
    pub encoding: Encoding,
}

impl Declaration {
    /// The declaration in a statement. `families` are the families of the table.
    ///
    /// # Errors
    /// A message that states what is wrong and how to fix it.
    pub fn from_statement(create: &CreateExternalTable, families: &[Bytes]) -> Result<Declaration, String> {
        let table =
            create.locations.first().ok_or("LOCATION is missing: it names the table in the cluster")?;
        let table = TableName::parse(table).map_err(|error| format!("LOCATION '{table}': {error}"))?;
        let mut options = Options::parse(&create.options)?;
        let key = key_column(&create.constraints)?;
        let fields = create.schema.fields().iter().enumerate();
        let columns = fields.map(|(at, field)| {
            let in_column = |error: String| format!("column {}: {error}", field.name());
            let mapping = options.take(field.name()).map_err(in_column)?;
            let mapping = match (mapping, key == Some(at)) {
                (Some(mapping), _) => mapping,
                (None, true) => {
                    let location = ColumnLocation::RowBytes { offset: 0, length: None };
                    Mapping { location, encoding: None, unit: None }
                }
                (None, false) => {
                    let family = options.family(families).map_err(in_column)?;
                    let location = ColumnLocation::Cell {
                        family,
                        qualifier: Bytes::copy_from_slice(field.name().as_bytes()),
                    };
                    Mapping { location, encoding: None, unit: None }
                }
            };
            DeclaredColumn::new(field, &mapping, options.encoding, families).map_err(in_column)
        });
        let columns = columns.collect::<Result<Vec<_>, String>>()?;
        options.check_unused()?;
        if columns.is_empty() {
            return Err(
                "a table needs columns: CREATE EXTERNAL TABLE t (id VARCHAR PRIMARY KEY, a BIGINT, ..)"
                    .into(),
            );
        }
        Ok(Declaration { name: create.name.table().to_string(), table, columns })
    }

    /// An equivalent statement.
    pub fn to_sql(&self) -> String {
        let name = |name: &str| {
            let is_plain =
                |at: usize, c: char| c.is_ascii_lowercase() || c == '_' || (at > 0 && c.is_ascii_digit());
            match name.chars().enumerate().all(|(at, c)| is_plain(at, c)) {
                true => name.to_string(),
                false => format!("\"{}\"", name.replace('"', "\"\"")),
            }
        };
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let types = self.columns.iter().map(|column| format!("{} {}", name(&column.name), column.sql_type));
        let options = self.columns.iter().map(|column| {
            let option = quoted(&format!("{COLUMN_PREFIX}{}", column.name));
            format!("  {option} {}", quoted(&column.mapping().to_string()))
        });
        format!(
            "CREATE EXTERNAL TABLE {} ({})\nSTORED AS GRAMPUS LOCATION {} OPTIONS (\n{})",
            name(&self.name),
            types.collect::<Vec<_>>().join(", "),
            quoted(&self.table.to_string()),
            options.collect::<Vec<_>>().join(",\n")
        )
    }

    /// The Arrow schema of its rows.
    pub fn schema(&self) -> Schema {
        let field = |column: &DeclaredColumn| {
            Field::new(&column.name, column.sql_type.arrow().clone(), column.is_nullable())
        };
        Schema::new(self.columns.iter().map(field).collect::<Vec<_>>())
    }

    /// The families of its columns, which together determine the rows of the table; empty means all
    /// families of the table.
    pub fn families(&self) -> Vec<Bytes> {
        let family = |column: &DeclaredColumn| match &column.location {
            ColumnLocation::Cell { family, .. } => Some(family.clone()),
            _ => None,
        };
        self.columns.iter().filter_map(family).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

impl DeclaredColumn {
    fn new(
        field: &Field,
        mapping: &Mapping,
        default: Family,
        families: &[Bytes],
    ) -> Result<DeclaredColumn, String> {
        let mut sql_type = SqlType::from_arrow(field.data_type())?;
        if let Some(unit) = mapping.unit {
            let named = sql_type.counted_in(unit);
            sql_type =
                named.ok_or_else(|| format!("{sql_type} has no unit {unit:?}: only TIMESTAMP has one"))?;
        } else if mapping.encoding == Some(Encoding::PhoenixTimestamp) {
            sql_type = sql_type.counted_in(TimeUnit::Nanosecond).unwrap_or(sql_type);
        }
        if let ColumnLocation::Cell { family, .. } = &mapping.location
            && !families.contains(family)
        {
            let (family, existing) = (family.escape_ascii(), family_list(families));
            return Err(format!("the table has no family '{family}', it has {existing}"));
        }
        let encoding = mapping.encoding.unwrap_or_else(|| match mapping.location {
            // The parts of a row key have variable lengths, so the default for non-binary types is
            // text.
            ColumnLocation::RowPart { .. } if default == Family::Bytes => {
                sql_type.default_encoding(Family::Text)
            }
            _ => sql_type.default_encoding(default),
        });
        let column = DeclaredColumn {
            name: field.name().clone(),
            sql_type,
            location: mapping.location.clone(),
            encoding,
        };
        match column.sql_type.reads(encoding) {
            true => Ok(column),
            false => {
                let (wrong, right) = (encoding.name(), column.sql_type.default_encoding(default).name());
                Err(format!("{} cannot be read from {wrong}; use {right}", column.sql_type))
            }
        }
    }

    /// The form in the system table: `name TYPE mapping`.
    pub fn to_text(&self) -> String {
        let name = self.name.replace('\\', "\\x5c").replace(' ', "\\x20");
        format!("{name} {} {}", self.sql_type, self.mapping())
    }

    /// The complete mapping of its values: location, encoding and unit.
    fn mapping(&self) -> Mapping {
        let unit = match self.sql_type.arrow() {
            DataType::Timestamp(unit, _) => Some(*unit),
            _ => None,
        };
        Mapping { location: self.location.clone(), encoding: Some(self.encoding), unit }
    }

    /// Parses the output of [`DeclaredColumn::to_text`].
    ///
    /// # Errors
    /// A message.
    pub fn from_text(text: &str) -> Result<DeclaredColumn, String> {
        let mut parts = text.splitn(3, ' ');
        let (Some(name), Some(sql_type), Some(mapping)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(format!("'{text}' is not a column"));
        };
        let mapping = Mapping::parse(mapping)?;
        let sql_type: SqlType = sql_type.parse()?;
        let sql_type = mapping.unit.and_then(|unit| sql_type.counted_in(unit)).unwrap_or(sql_type);
        let encoding = mapping.encoding.ok_or_else(|| format!("'{text}' has no encoding"))?;
        let name = name.replace("\\x20", " ").replace("\\x5c", "\\");
        Ok(DeclaredColumn { name, sql_type, location: mapping.location, encoding })
    }

    /// The kind of its values.
    pub fn kind(&self) -> Kind {
        self.encoding.kind(self.sql_type.scale())
    }

    /// Whether a row may lack a value.
    pub fn is_nullable(&self) -> bool {
        // Every row has a key.
        self.location != ColumnLocation::RowBytes { offset: 0, length: None }
    }

    /// The column as a message for the endpoint.
    pub fn to_proto(&self) -> proto::grampus::Column {
        let (location, encoding) = (self.location.clone(), self.encoding);
        column_message(&Column { location, encoding, scale: self.sql_type.scale() })
    }
}

/// The contents of OPTIONS, by column and for the table.
struct Options {
    columns: HashMap<String, String>,
    encoding: Family,
    family: Option<Bytes>,
}

impl Options {
    fn parse(options: &HashMap<String, String>) -> Result<Options, String> {
        let mut columns = HashMap::new();
        let (mut encoding, mut family) = (Family::default(), None);
        for (name, value) in options {
            match name.as_str() {
                ENCODING_OPTION => encoding = value.parse()?,
                FAMILY_OPTION => family = Some(Bytes::copy_from_slice(value.as_bytes())),
                _ => {
                    let name = name.strip_prefix(FORMAT_PREFIX).unwrap_or(name);
                    let name = name.strip_prefix(COLUMN_PREFIX).unwrap_or(name);
                    columns.insert(name.to_lowercase(), value.clone());
                }
            }
        }
        Ok(Options { columns, encoding, family })
    }

    /// Takes the mapping of a column. Option names are lower case, whatever the case of the
    /// column's name.
    fn take(&mut self, column: &str) -> Result<Option<Mapping>, String> {
        self.columns.remove(&column.to_lowercase()).map(|text| Mapping::parse(&text)).transpose()
    }

    /// The family of columns without a mapping.
    fn family(&self, families: &[Bytes]) -> Result<Bytes, String> {
        match (&self.family, families) {
            (Some(family), _) => Ok(family.clone()),
            (None, [only]) => Ok(only.clone()),
            (None, several) => Err(format!(
                "the table has the families {}: choose one with OPTIONS ('{FAMILY_OPTION}' '..') for all columns or \
                 ('column' 'family:qualifier') for one",
                family_list(several)
            )),
        }
    }

    fn check_unused(&self) -> Result<(), String> {
        match self.columns.keys().min() {
            None => Ok(()),
            Some(name) => Err(format!(
                "OPTIONS names '{name}', which is not a column; table options are '{ENCODING_OPTION}' and '{FAMILY_OPTION}'"
            )),
        }
    }
}

/// The row key column, from PRIMARY KEY.
fn key_column(constraints: &Constraints) -> Result<Option<usize>, String> {
    let mut key = None;
    for constraint in constraints.iter() {
        match constraint {
            Constraint::PrimaryKey(columns) if columns.len() == 1 && key.is_none() => key = Some(columns[0]),
            Constraint::PrimaryKey(_) => {
                return Err(
                    "PRIMARY KEY must be one column, the whole row key; locate parts of it with OPTIONS \
                            ('column' 'row part 1 by |') or ('column' 'row[0..8]')"
                        .into(),
                );
            }
            Constraint::Unique(_) => return Err("UNIQUE is not supported: remove it".into()),
        }
    }
    Ok(key)
}

fn family_list(families: &[Bytes]) -> String {
    families.iter().map(|family| family.escape_ascii().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
pub(crate) mod tests {
    use datafusion::execution::context::SessionContext;
    use datafusion::logical_expr::{DdlStatement, LogicalPlan};

    use super::*;

    /// The declaration in a statement, for a table with these families.
    pub(crate) fn declared(sql: &str, families: &[&'static str]) -> Result<Declaration, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let plan = runtime.block_on(SessionContext::new().state().create_logical_plan(sql)).unwrap();
        let LogicalPlan::Ddl(DdlStatement::CreateExternalTable(create)) = plan else {
            panic!("{sql} does not create an external table");
        };
        Declaration::from_statement(
            &create,
            &families.iter().map(|family| (*family).into()).collect::<Vec<_>>(),
        )
    }

    fn texts(sql: &str) -> Vec<String> {
        declared(sql, &["f"]).unwrap().columns.iter().map(DeclaredColumn::to_text).collect()
    }

    #[test]
    fn without_options_columns_are_those_of_the_only_family() {
        let columns = texts(
            "CREATE EXTERNAL TABLE t (id VARCHAR PRIMARY KEY, a BIGINT, b DOUBLE, c DECIMAL(10,2), d BOOLEAN, \
             e TIMESTAMP, \"X y\" BYTEA) STORED AS GRAMPUS LOCATION 'ns:table'",
        );
        assert_eq!(
            columns,
            [
                "id VARCHAR row raw",
                "a BIGINT f:a bytes_long",
                "b DOUBLE f:b bytes_double",
                "c DECIMAL(10,2) f:c bytes_decimal",
                "d BOOLEAN f:d bytes_boolean",
                "e TIMESTAMP f:e bytes_long millis",
                "X\\x20y BYTEA f:X\\x20y raw",
            ]
        );
    }

    #[test]
    fn options_set_location_and_encoding() {
        let columns = texts(
            "CREATE EXTERNAL TABLE t (region VARCHAR, day INT, a BIGINT, B DOUBLE, at TIMESTAMP, c SMALLINT) \
             STORED AS GRAMPUS LOCATION 't' OPTIONS ('region' 'row part 1 by |', 'day' 'row part 2 by |', \
             'a' 'f:x', 'b' 'f:y bytes_double', 'column.at' 'f:at seconds', 'table.encoding' 'text')",
        );
        assert_eq!(
            columns,
            [
                "region VARCHAR row part 1 by | raw",
                "day INT row part 2 by | text_long",
                "a BIGINT f:x text_long",
                "b DOUBLE f:y bytes_double",
                "at TIMESTAMP f:at text_long seconds",
                "c SMALLINT f:c text_long",
            ]
        );
    }

    #[test]
    fn declared_columns_round_trip_as_text() {
        let sql = "CREATE EXTERNAL TABLE t (\"a b\\\" VARCHAR, at TIMESTAMP, d DECIMAL(9,3), k INT) STORED AS GRAMPUS \
                   LOCATION 't' OPTIONS ('at' 'f:at phoenix_timestamp', 'k' 'row[0..4] phoenix_integer')";
        let declaration = declared(sql, &["f"]).unwrap();
        assert_eq!(declaration.columns[1].sql_type.arrow(), &DataType::Timestamp(TimeUnit::Nanosecond, None));
        for column in &declaration.columns {
            assert_eq!(DeclaredColumn::from_text(&column.to_text()).as_ref(), Ok(column));
        }
    }

    #[test]
    fn invalid_declarations_are_rejected_with_the_valid_values() {
        let check = |columns: &str, options: &str, expected: &str| {
            let sql = format!(
                "CREATE EXTERNAL TABLE t ({columns}) STORED AS GRAMPUS LOCATION 't' OPTIONS ('table.encoding' 'bytes'{options})"
            );
            let error = declared(&sql, &["f", "g"]).unwrap_err();
            assert!(error.contains(expected), "{sql}: {error}");
        };
        check("a BIGINT", "", "families f, g");
        check("a BIGINT", ", 'a' 'h:a'", "no family 'h'");
        check("a BIGINT", ", 'a' 'f:a bytes_double'", "use bytes_long");
        check("a BIGINT", ", 'a' 'f:a', 'b' 'f:a'", "'b', which is not a column");
        check("a DATE", ", 'a' 'f:a'", "declare TIMESTAMP");
        check("a INT, b INT, PRIMARY KEY (a, b)", "", "one column");
        check("a BIGINT", ", 'a' 'f:a seconds'", "only TIMESTAMP");
    }

    #[test]
    fn rows_are_those_of_all_declared_families() {
        let sql = "CREATE EXTERNAL TABLE t (id VARCHAR PRIMARY KEY, a INT, b INT) STORED AS GRAMPUS LOCATION 't' \
                   OPTIONS ('a' 'g:a', 'b' 'f:b')";
        assert_eq!(declared(sql, &["f", "g", "h"]).unwrap().families(), ["f", "g"]);
    }
}
