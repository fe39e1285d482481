//! The fate of procedures that HBase's master has not finished.
//!
//! A procedure ends in one of four ways: it has ended already; the start of a server of Grampus
//! does what is left of it; the master of Grampus continues it as a procedure of its own; or it was
//! not committed, and the directories of its regions are removed. All others are refused by name.
//! Only procedures without a parent are judged: their children are parts of them.
//!
//! Source: HBase `MasterProcedure.proto`, `ProcedureTree`.

use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::{NamespaceDescriptor, TableDescriptor, TableName};
use master::procedure::{Change, ChangedTable, Record, Subject, TablePlan, Work};
use prost::Message;
use proto::ProcedureState;

use crate::catalog::Catalog;

/// How a procedure ends after an adoption.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// It has ended.
    Ended,
    /// The start of a server does what is left of it.
    AtStart,
    /// The master of Grampus continues it.
    Continued(Box<Work>),
    /// It was not committed: the directories of these regions are removed.
    RolledBack(Vec<RegionInfo>),
    /// It is not supported.
    Refused(String),
}

/// A procedure and its fate.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Its id.
    pub id: u64,
    /// The last part of the name of its class.
    pub class: String,
    /// Its state.
    pub state: String,
    /// When it was submitted, in milliseconds since the Unix epoch.
    pub submitted_ms: u64,
    /// Its fate.
    pub fate: Fate,
}

impl Judged {
    /// The journal entry with which the master of Grampus continues it.
    pub fn record(&self) -> Option<Record> {
        let Fate::Continued(work) = &self.fate else { return None };
        let (id, submitted_ms, nonce) = (self.id, self.submitted_ms, (0, 0));
        Some(Record { id, work: (**work).clone(), prepared: true, submitted_ms, nonce })
    }

    /// The table that the master of Grampus continues to change.
    pub fn continued_table(&self) -> Option<&TableName> {
        let Fate::Continued(work) = &self.fate else { return None };
        match work.subject() {
            Subject::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The fate in words.
    pub fn outcome(&self) -> String {
        match &self.fate {
            Fate::Ended => "has ended".into(),
            Fate::AtStart => "the first start of Grampus does the rest".into(),
            Fate::Continued(_) => "Grampus finishes it at its first start".into(),
            Fate::RolledBack(regions) => format!("rolled back; regions removed: {}", regions.len()),
            Fate::Refused(reason) => format!("not supported: {reason}"),
        }
    }
}

/// Procedures whose effect a start of Grampus or HBase has anyway: it replays the logs of all
/// servers, opens the regions of all enabled tables, and archives the parents of splits and merges.
const DONE_AT_START: [&str; 18] = [
    "ServerCrashProcedure",
    "SplitWALProcedure",
    "SplitWALRemoteProcedure",
    "TransitRegionStateProcedure",
    "OpenRegionProcedure",
    "CloseRegionProcedure",
    "AssignProcedure",
    "UnassignProcedure",
    "MoveRegionProcedure",
    "ReopenTableRegionsProcedure",
    "RecoverMetaProcedure",
    "GCRegionProcedure",
    "GCMergedRegionsProcedure",
    "GCMultipleMergedRegionsProcedure",
    "FlushTableProcedure",
    "FlushRegionProcedure",
    "SnapshotProcedure",
    "SwitchRpcThrottleProcedure",
];

/// Whether a start of either program has the effect of such a procedure anyway. `class` is the full
/// name of its class.
pub fn is_repeated_at_start(class: &str) -> bool {
    DONE_AT_START.contains(&class.rsplit('.').next().unwrap_or_default())
}

/// Judges the procedures without a parent, by id.
pub fn judge_all(procedures: &[proto::Procedure], catalog: &Catalog) -> Vec<Judged> {
    let roots = procedures.iter().filter(|procedure| procedure.parent_id.is_none());
    let mut judged: Vec<Judged> = roots.map(|procedure| judge(procedure, catalog)).collect();
    judged.sort_by_key(|procedure| procedure.id);
    judged
}

fn judge(procedure: &proto::Procedure, catalog: &Catalog) -> Judged {
    let class = procedure.class_name.rsplit('.').next().unwrap_or_default().to_string();
    let state = ProcedureState::try_from(procedure.state);
    let fate = match state {
        Ok(ProcedureState::Success | ProcedureState::Rolledback) => Fate::Ended,
        _ if is_repeated_at_start(&class) => Fate::AtStart,
        Ok(ProcedureState::Failed) if has_not_acted(procedure) => Fate::Ended,
        Ok(ProcedureState::Failed) => Fate::Refused("it failed and is being rolled back".into()),
        _ => unfinished(&class, procedure, catalog).unwrap_or_else(Fate::Refused),
    };
    let state = state.map_or_else(|_| procedure.state.to_string(), |state| state.as_str_name().to_string());
    Judged { id: procedure.proc_id, class, state, submitted_ms: procedure.submitted_time, fate }
}

/// Whether at most the first state, which only checks, was executed.
fn has_not_acted(procedure: &proto::Procedure) -> bool {
    let states = message::<proto::StateMachineProcedureData>(procedure, "StateMachineProcedureData");
    states.is_ok_and(|data| data.state.iter().all(|state| *state <= 1))
}

fn unfinished(class: &str, procedure: &proto::Procedure, catalog: &Catalog) -> Result<Fate, String> {
    let continued = |work| Ok(Fate::Continued(Box::new(work)));
    match class {
        "EnableTableProcedure" => {
            let data: OfTable = message(procedure, "EnableTableStateData")?;
            continued(Work::EnableTable(table(data.table_name.as_ref())?))
        }
        "DisableTableProcedure" => {
            let data: OfTable = message(procedure, "DisableTableStateData")?;
            continued(Work::DisableTable(table(data.table_name.as_ref())?))
        }
        "DeleteTableProcedure" => {
            let data: OfTable = message(procedure, "DeleteTableStateData")?;
            continued(Work::DeleteTable(table(data.table_name.as_ref())?))
        }
        "CreateTableProcedure" => {
            let data: CreateTable = message(procedure, "CreateTableStateData")?;
            let plan =
                TablePlan { table: schema(data.table_schema.as_ref())?, regions: regions(&data.regions)? };
            match plan.regions.is_empty() {
                true => Err("it has no regions".into()),
                false => continued(Work::CreateTable(plan)),
            }
        }
        "ModifyTableProcedure" => modify(&message(procedure, "ModifyTableStateData")?),
        "CreateNamespaceProcedure" => {
            continued(Work::CreateNamespace(namespace(&message(procedure, "CreateNamespaceStateData")?)?))
        }
        "ModifyNamespaceProcedure" => {
            continued(Work::ModifyNamespace(namespace(&message(procedure, "ModifyNamespaceStateData")?)?))
        }
        "DeleteNamespaceProcedure" => {
            let data: DeleteNamespace = message(procedure, "DeleteNamespaceStateData")?;
            continued(Work::DeleteNamespace(data.namespace_name))
        }
        "SplitTableRegionProcedure" => {
            let data: SplitRegion = message(procedure, "SplitTableRegionStateData")?;
            Ok(uncommitted(regions(&data.daughters)?, catalog))
        }
        "MergeTableRegionsProcedure" => {
            let data: MergeRegions = message(procedure, "MergeTableRegionsStateData")?;
            Ok(uncommitted(regions(data.merged.as_slice())?, catalog))
        }
        _ => Err("let HBase finish it first, or bypass it with HBCK2".into()),
    }
}

/// The fate of a split or merge that creates `regions`. One write to `hbase:meta` commits it.
fn uncommitted(regions: Vec<RegionInfo>, catalog: &Catalog) -> Fate {
    match regions.iter().any(|region| catalog.has(region)) {
        true => Fate::AtStart,
        false => Fate::RolledBack(regions),
    }
}

fn modify(data: &ModifyTable) -> Result<Fate, String> {
    let new = schema(data.modified.as_ref())?;
    let old: Option<TableDescriptor> = data
        .unmodified
        .as_ref()
        .map(TableDescriptor::try_from)
        .transpose()
        .map_err(|error| error.to_string())?;
    let old_families = old.iter().flat_map(|table| table.families.keys());
    let removed: Vec<Bytes> =
        old_families.filter(|family| !new.families.contains_key(*family)).cloned().collect();
    Ok(Fate::Continued(Box::new(Work::ModifyTable {
        table: new.name.clone(),
        change: Change::Replace(new.clone()),
        reopen: true,
        target: Some(ChangedTable { table: new, removed }),
    })))
}

/// The message of this type among those of a procedure's state.
fn message<M: Message + Default>(procedure: &proto::Procedure, name: &str) -> Result<M, String> {
    let is_named = |type_url: &str| type_url.rsplit(['.', '/']).next() == Some(name);
    let found = procedure.state_message.iter().find(|any| is_named(&any.type_url));
    let found = found.ok_or_else(|| format!("it lacks its {name}"))?;
    M::decode(&*found.value).map_err(|error| format!("its {name} cannot be decoded: {error}"))
}

fn table(name: Option<&proto::TableName>) -> Result<TableName, String> {
    TableName::try_from(name.ok_or("it names no table")?).map_err(|error| error.to_string())
}

fn schema(schema: Option<&proto::TableSchema>) -> Result<Box<TableDescriptor>, String> {
    let schema = schema.ok_or("it has no table descriptor")?;
    TableDescriptor::try_from(schema).map(Box::new).map_err(|error| error.to_string())
}

fn regions(messages: &[proto::RegionInfo]) -> Result<Vec<RegionInfo>, String> {
    messages.iter().map(|region| RegionInfo::try_from(region).map_err(|error| error.to_string())).collect()
}

fn namespace(data: &OfNamespace) -> Result<NamespaceDescriptor, String> {
    let namespace = data.namespace.as_ref().ok_or("it names no namespace")?;
    NamespaceDescriptor::try_from(namespace).map_err(|error| error.to_string())
}

/// `EnableTableStateData`, `DisableTableStateData` and `DeleteTableStateData`.
#[derive(Clone, PartialEq, Message)]
struct OfTable {
    #[prost(message, optional, tag = "2")]
    table_name: Option<proto::TableName>,
}

#[derive(Clone, PartialEq, Message)]
struct CreateTable {
    #[prost(message, optional, tag = "2")]
    table_schema: Option<proto::TableSchema>,
    #[prost(message, repeated, tag = "3")]
    regions: Vec<proto::RegionInfo>,
}

#[derive(Clone, PartialEq, Message)]
struct ModifyTable {
    #[prost(message, optional, tag = "2")]
    unmodified: Option<proto::TableSchema>,
    #[prost(message, optional, tag = "3")]
    modified: Option<proto::TableSchema>,
}

/// `CreateNamespaceStateData` and `ModifyNamespaceStateData`.
#[derive(Clone, PartialEq, Message)]
struct OfNamespace {
    #[prost(message, optional, tag = "1")]
    namespace: Option<proto::NamespaceDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct DeleteNamespace {
    #[prost(string, tag = "1")]
    namespace_name: String,
}

#[derive(Clone, PartialEq, Message)]
struct SplitRegion {
    #[prost(message, repeated, tag = "3")]
    daughters: Vec<proto::RegionInfo>,
}

#[derive(Clone, PartialEq, Message)]
struct MergeRegions {
    #[prost(message, optional, tag = "3")]
    merged: Option<proto::RegionInfo>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::meta::MetaRow;

    fn region(start: &'static str, end: &'static str) -> RegionInfo {
        RegionInfo::new(TableName::parse("t").unwrap(), start.into(), end.into(), 7)
    }

    fn procedure(class: &str, state: ProcedureState, name: &str, data: &impl Message) -> proto::Procedure {
        let any = |name: &str, value: Vec<u8>| proto::Any {
            type_url: format!("type.googleapis.com/hbase.pb.{name}"),
            value: value.into(),
        };
        let states = proto::StateMachineProcedureData { state: vec![1, 2] };
        proto::Procedure {
            class_name: format!("org.example.{class}"),
            proc_id: 5,
            state: state as i32,
            state_message: vec![
                any("StateMachineProcedureData", states.encode_to_vec()),
                any(name, data.encode_to_vec()),
            ],
            ..proto::Procedure::default()
        }
    }

    fn fate(procedure: &proto::Procedure, catalog: &Catalog) -> Fate {
        judge_all(std::slice::from_ref(procedure), catalog).remove(0).fate
    }

    #[test]
    fn changes_of_tables_are_continued() {
        let name = TableName::parse("t").unwrap();
        let data = OfTable { table_name: Some((&name).into()) };
        let disable =
            procedure("DisableTableProcedure", ProcedureState::Waiting, "DisableTableStateData", &data);
        let expected = Work::DisableTable(name);
        assert_eq!(fate(&disable, &Catalog::default()), Fate::Continued(Box::new(expected.clone())));
        let judged = judge_all(&[disable], &Catalog::default()).remove(0);
        let record = judged.record().unwrap();
        assert_eq!((record.id, record.work, record.prepared), (5, expected, true));
    }

    #[test]
    fn a_split_is_rolled_back_until_meta_has_its_daughters() {
        let daughters = [region("", "m"), region("m", "")];
        let data = SplitRegion { daughters: daughters.iter().map(Into::into).collect() };
        let split = procedure(
            "SplitTableRegionProcedure",
            ProcedureState::Waiting,
            "SplitTableRegionStateData",
            &data,
        );
        let mut catalog = Catalog::default();
        assert_eq!(fate(&split, &catalog), Fate::RolledBack(daughters.to_vec()));
        let put = wire::meta::row::put_new_region(&daughters[0], &[]);
        catalog.regions.extend(MetaRow::parse(put.cells.iter().map(|cell| cell.view(0))));
        assert_eq!(fate(&split, &catalog), Fate::AtStart);
    }

    #[test]
    fn others_are_refused_by_name() {
        let data = OfTable { table_name: None };
        for (class, state) in [
            ("RestoreSnapshotProcedure", ProcedureState::Runnable),
            ("EnableTableProcedure", ProcedureState::Runnable),
            ("EnableTableProcedure", ProcedureState::Failed),
        ] {
            let unknown = procedure(class, state, "EnableTableStateData", &data);
            assert!(matches!(fate(&unknown, &Catalog::default()), Fate::Refused(_)), "{class}");
        }
        let ended = procedure("RestoreSnapshotProcedure", ProcedureState::Success, "x", &data);
        assert_eq!(fate(&ended, &Catalog::default()), Fate::Ended);
    }

    #[test]
    fn children_are_parts_of_their_parents() {
        let data = OfTable { table_name: None };
        let child = proto::Procedure {
            parent_id: Some(1),
            ..procedure("Unknown", ProcedureState::Runnable, "x", &data)
        };
        assert!(judge_all(&[child], &Catalog::default()).is_empty());
    }
}
