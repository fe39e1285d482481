//! The stored form of a procedure: HBase's `Procedure` message. The kind of procedure is stored as
//! the name of the Java class that does the same in HBase. `state_data` contains everything that is
//! specific to this project.

use bytes::Bytes;
use cell::region::{RegionInfo, ServerName};
use cell::schema::{FamilyDescriptor, NamespaceDescriptor, TableDescriptor, TableName};
use prost::Message;

use super::{Change, ChangedTable, RegionTransition, Subject, TablePlan, Work};

macro_rules! classes {
    ($($id:ident = $name:literal;)*) => {
        $(const $id: &str = concat!("org.apache.hadoop.hbase.master.", $name);)*
    };
}

classes! {
    CREATE_TABLE = "procedure.CreateTableProcedure";
    DELETE_TABLE = "procedure.DeleteTableProcedure";
    ENABLE_TABLE = "procedure.EnableTableProcedure";
    DISABLE_TABLE = "procedure.DisableTableProcedure";
    FLUSH_TABLE = "procedure.FlushTableProcedure";
    TRUNCATE_TABLE = "procedure.TruncateTableProcedure";
    MODIFY_TABLE = "procedure.ModifyTableProcedure";
    CREATE_NAMESPACE = "procedure.CreateNamespaceProcedure";
    MODIFY_NAMESPACE = "procedure.ModifyNamespaceProcedure";
    DELETE_NAMESPACE = "procedure.DeleteNamespaceProcedure";
    SNAPSHOT = "procedure.SnapshotProcedure";
    CLONE_SNAPSHOT = "procedure.CloneSnapshotProcedure";
    RESTORE_SNAPSHOT = "procedure.RestoreSnapshotProcedure";
    SPLIT_REGION = "assignment.SplitTableRegionProcedure";
    MERGE_REGIONS = "assignment.MergeTableRegionsProcedure";
    CREATE_REGION = "assignment.CreateRegionProcedure";
    REGION_TRANSITION = "assignment.TransitRegionStateProcedure";
    SERVER_CRASH = "procedure.ServerCrashProcedure";
    GC_SPLIT_PARENT = "assignment.GCRegionProcedure";
    GC_MERGE_PARENTS = "assignment.GCMultipleMergedRegionsProcedure";
}

impl Work {
    /// The Java class that does this in HBase. Tools show it, and the journal stores it as the
    /// kind.
    pub fn class_name(&self) -> &'static str {
        match self {
            Work::CreateTable(_) => CREATE_TABLE,
            Work::DeleteTable(_) => DELETE_TABLE,
            Work::EnableTable(_) => ENABLE_TABLE,
            Work::DisableTable(_) => DISABLE_TABLE,
            Work::FlushTable(..) => FLUSH_TABLE,
            Work::TruncateTable { .. } => TRUNCATE_TABLE,
            Work::ModifyTable { .. } => MODIFY_TABLE,
            Work::CreateNamespace(_) => CREATE_NAMESPACE,
            Work::ModifyNamespace(_) => MODIFY_NAMESPACE,
            Work::DeleteNamespace(_) => DELETE_NAMESPACE,
            Work::Snapshot(..) => SNAPSHOT,
            Work::CloneSnapshot { .. } => CLONE_SNAPSHOT,
            Work::RestoreSnapshot { .. } => RESTORE_SNAPSHOT,
            Work::SplitRegion { .. } => SPLIT_REGION,
            Work::MergeRegions { .. } => MERGE_REGIONS,
            // HBase has no procedure of this kind.
            Work::CreateRegion(_) => CREATE_REGION,
            Work::RegionTransition(..) | Work::MoveRegion { .. } => REGION_TRANSITION,
            Work::ServerCrash { .. } => SERVER_CRASH,
            Work::GcSplitParent(_) => GC_SPLIT_PARENT,
            Work::GcMergeParents(_) => GC_MERGE_PARENTS,
        }
    }
}

/// A procedure as stored in the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its id, which is never reused.
    pub id: u64,
    /// What it does.
    pub work: Work,
    /// Whether its check has passed. If so, its steps are repeated until it ends.
    pub prepared: bool,
    /// When it was submitted, in milliseconds since the Unix epoch.
    pub submitted_ms: u64,
    /// The client's nonce group and nonce; 0 for none.
    pub nonce: (u64, u64),
}

/// The fields of a record that HBase's `Procedure` message lacks, stored in its `state_data`. The
/// field numbers are on disk and must not change.
#[derive(Clone, PartialEq, Message)]
struct StateData {
    #[prost(bool, tag = "1")]
    prepared: bool,
    #[prost(message, optional, tag = "2")]
    table_name: Option<proto::TableName>,
    // The created table, or the changed descriptor.
    #[prost(message, optional, tag = "3")]
    table_schema: Option<proto::TableSchema>,
    #[prost(message, repeated, tag = "4")]
    regions: Vec<proto::RegionInfo>,
    // Families to flush, or families that are removed.
    #[prost(bytes = "bytes", repeated, tag = "5")]
    families: Vec<Bytes>,
    #[prost(bool, tag = "6")]
    preserve_splits: bool,
    #[prost(message, optional, tag = "7")]
    change: Option<ChangeData>,
    #[prost(bool, tag = "8")]
    reopen: bool,
    // The namespace that is created, changed or deleted.
    #[prost(message, optional, tag = "9")]
    namespace: Option<proto::NamespaceDescriptor>,
    // The snapshot to take, or the name of the snapshot to use.
    #[prost(message, optional, tag = "10")]
    snapshot: Option<proto::SnapshotDescription>,
    #[prost(uint64, tag = "11")]
    token: u64,
    // Existing regions that the procedure changes. The regions that it creates are in `regions`.
    #[prost(message, repeated, tag = "12")]
    parents: Vec<proto::RegionInfo>,
    #[prost(bool, tag = "13")]
    forcible: bool,
    // What happens to a region: a code of `RegionTransition`, or `MOVE`.
    #[prost(uint32, tag = "14")]
    transition: u32,
    // The server to which a region moves, or a dead server.
    #[prost(message, optional, tag = "15")]
    server: Option<proto::ServerName>,
    // Whether a dead server had `hbase:meta`.
    #[prost(bool, tag = "16")]
    had_meta: bool,
    // Whether a merge repairs overlapping regions.
    #[prost(bool, tag = "40")]
    repair: bool,
    // The server that had a region when its move was planned. Older versions wrote none.
    #[prost(message, optional, tag = "41")]
    source: Option<proto::ServerName>,
    // Whether a truncation stages the new table first. Older versions archived the old one first.
    #[prost(bool, tag = "42")]
    stages_first: bool,
}

/// The code of a move in the field `transition`, after those of `RegionTransition`.
const MOVE: u32 = 4;

/// A [`Change`]: exactly one field is set.
#[derive(Clone, PartialEq, Message)]
struct ChangeData {
    #[prost(message, optional, tag = "1")]
    replace: Option<proto::TableSchema>,
    #[prost(message, optional, tag = "2")]
    add_family: Option<proto::ColumnFamilySchema>,
    #[prost(message, optional, tag = "3")]
    modify_family: Option<proto::ColumnFamilySchema>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    delete_family: Option<Bytes>,
}

/// A journal entry that this version cannot decode.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot decode procedure {id} ({class_name}): {reason}")]
pub struct UnreadableRecord {
    id: u64,
    class_name: String,
    reason: String,
}

impl Record {
    /// The message to store.
    pub fn to_message(&self) -> proto::Procedure {
        let data = StateData { prepared: self.prepared, ..StateData::from_work(&self.work) };
        proto::Procedure {
            class_name: self.work.class_name().to_string(),
            proc_id: self.id,
            submitted_time: self.submitted_ms,
            last_update: self.submitted_ms,
            state: proto::ProcedureState::Runnable as i32,
            state_data: Some(data.encode_to_vec().into()),
            nonce_group: Some(self.nonce.0),
            nonce: Some(self.nonce.1),
            ..proto::Procedure::default()
        }
    }

    /// Decodes a stored message.
    ///
    /// # Errors
    /// [`UnreadableRecord`] for damaged messages, and for kinds that this version does not support
    /// (HBase has more).
    pub fn from_message(message: &proto::Procedure) -> Result<Record, UnreadableRecord> {
        let unreadable = |reason: String| UnreadableRecord {
            id: message.proc_id,
            class_name: message.class_name.clone(),
            reason,
        };
        let data = StateData::decode(message.state_data.clone().unwrap_or_default())
            .map_err(|error| unreadable(error.to_string()))?;
        let prepared = data.prepared;
        Ok(Record {
            id: message.proc_id,
            work: data.into_work(&message.class_name).map_err(unreadable)?,
            prepared,
            submitted_ms: message.submitted_time,
            nonce: (message.nonce_group.unwrap_or(0), message.nonce.unwrap_or(0)),
        })
    }
}

impl StateData {
    fn from_work(work: &Work) -> StateData {
        let mut data = StateData::default();
        match work {
            Work::CreateTable(plan) => data.set_plan(plan),
            Work::FlushTable(_, families) => data.families.clone_from(families),
            Work::TruncateTable { preserve_splits, plan, stages_first, .. } => {
                data.preserve_splits = *preserve_splits;
                data.stages_first = *stages_first;
                plan.iter().for_each(|plan| data.set_plan(plan));
            }
            Work::ModifyTable { change, reopen, target, .. } => {
                data.change = Some(change.into());
                data.reopen = *reopen;
                if let Some(target) = target {
                    data.table_schema = Some((&*target.table).into());
                    data.families.clone_from(&target.removed);
                }
            }
            Work::CreateNamespace(namespace) | Work::ModifyNamespace(namespace) => {
                data.namespace = Some(namespace.into());
            }
            Work::Snapshot(_, snapshot) => data.snapshot = Some((**snapshot).clone()),
            Work::CloneSnapshot { snapshot, plan, .. } => {
                data.set_snapshot(snapshot);
                plan.iter().for_each(|plan| data.set_plan(plan));
            }
            Work::RestoreSnapshot { snapshot, plan, token, .. } => {
                data.set_snapshot(snapshot);
                plan.iter().for_each(|plan| data.set_plan(plan));
                data.token = *token;
            }
            Work::SplitRegion { parent, daughters } => {
                data.parents = vec![parent.into()];
                data.regions = daughters.iter().map(Into::into).collect();
            }
            Work::MergeRegions { parents, forcible, repair } => {
                data.parents = parents.iter().map(Into::into).collect();
                data.forcible = *forcible;
                data.repair = *repair;
            }
            Work::RegionTransition(region, transition) => {
                data.parents = vec![region.into()];
                data.transition = transition.code();
            }
            Work::MoveRegion { region, source, target } => {
                data.parents = vec![region.into()];
                data.transition = MOVE;
                data.server = Some(target.into());
                data.source = source.as_ref().map(Into::into);
            }
            Work::ServerCrash { server, had_meta, regions } => {
                data.server = Some(server.into());
                data.had_meta = *had_meta;
                data.regions = regions.iter().flatten().map(Into::into).collect();
            }
            Work::CreateRegion(region) | Work::GcSplitParent(region) | Work::GcMergeParents(region) => {
                data.parents = vec![region.into()];
            }
            Work::DeleteTable(_)
            | Work::EnableTable(_)
            | Work::DisableTable(_)
            | Work::DeleteNamespace(_) => {}
        }
        match work.subject() {
            Subject::Table(table) => data.table_name = Some(table.into()),
            Subject::Server(_) => {}
            Subject::Namespace(name) => {
                data.namespace.get_or_insert_with(|| proto::NamespaceDescriptor {
                    name: Bytes::copy_from_slice(name.as_bytes()),
                    configuration: Vec::new(),
                });
            }
        }
        data
    }

    fn into_work(self, class_name: &str) -> Result<Work, String> {
        let table = match class_name {
            CREATE_NAMESPACE => return self.namespace().map(Work::CreateNamespace),
            MODIFY_NAMESPACE => return self.namespace().map(Work::ModifyNamespace),
            SERVER_CRASH => {
                let regions = self.prepared.then(|| regions(&self.regions)).transpose()?;
                let had_meta = self.had_meta;
                return Ok(Work::ServerCrash { server: self.server()?, had_meta, regions });
            }
            DELETE_NAMESPACE => {
                return self.namespace().map(|namespace| Work::DeleteNamespace(namespace.name));
            }
            _ => self.table()?,
        };
        Ok(match class_name {
            SNAPSHOT => Work::Snapshot(table, Box::new(self.snapshot.ok_or(NO_SNAPSHOT)?)),
            CLONE_SNAPSHOT => {
                let plan = self.plan()?;
                Work::CloneSnapshot { table, snapshot: self.snapshot.ok_or(NO_SNAPSHOT)?.name, plan }
            }
            RESTORE_SNAPSHOT => {
                let (plan, token) = (self.plan()?, self.token);
                let snapshot = self.snapshot.ok_or(NO_SNAPSHOT)?.name;
                Work::RestoreSnapshot { table, snapshot, plan, token }
            }
            CREATE_TABLE => Work::CreateTable(self.plan()?.ok_or("missing table")?),
            DELETE_TABLE => Work::DeleteTable(table),
            ENABLE_TABLE => Work::EnableTable(table),
            DISABLE_TABLE => Work::DisableTable(table),
            FLUSH_TABLE => Work::FlushTable(table, self.families),
            TRUNCATE_TABLE => {
                let (plan, stages_first) = (self.plan()?, self.stages_first);
                Work::TruncateTable { table, preserve_splits: self.preserve_splits, plan, stages_first }
            }
            MODIFY_TABLE => {
                let change = self.change.as_ref().ok_or("missing change")?;
                Work::ModifyTable {
                    table,
                    change: change.to_change()?,
                    reopen: self.reopen,
                    target: self.schema()?.map(|table| ChangedTable { table, removed: self.families }),
                }
            }
            SPLIT_REGION => {
                let daughters: [RegionInfo; 2] =
                    regions(&self.regions)?.try_into().map_err(|_| "expected two daughters")?;
                Work::SplitRegion { parent: self.parent()?, daughters: Box::new(daughters) }
            }
            MERGE_REGIONS => {
                self.parent()?;
                let (forcible, repair) = (self.forcible, self.repair);
                Work::MergeRegions { parents: regions(&self.parents)?, forcible, repair }
            }
            REGION_TRANSITION if self.transition == MOVE => {
                let source = self.source.as_ref().map(ServerName::try_from).transpose().map_err(text)?;
                Work::MoveRegion { region: self.parent()?, source, target: self.server()? }
            }
            REGION_TRANSITION => {
                let transition =
                    RegionTransition::of_code(self.transition).ok_or("unknown transition code")?;
                Work::RegionTransition(self.parent()?, transition)
            }
            CREATE_REGION => Work::CreateRegion(self.parent()?),
            GC_SPLIT_PARENT => Work::GcSplitParent(self.parent()?),
            GC_MERGE_PARENTS => Work::GcMergeParents(self.parent()?),
            _ => return Err("unknown kind of procedure".into()),
        })
    }

    fn set_plan(&mut self, plan: &TablePlan) {
        self.table_schema = Some((&*plan.table).into());
        self.regions = plan.regions.iter().map(Into::into).collect();
    }

    fn set_snapshot(&mut self, name: &str) {
        self.snapshot = Some(proto::SnapshotDescription {
            name: name.to_string(),
            ..proto::SnapshotDescription::default()
        });
    }

    fn namespace(&self) -> Result<NamespaceDescriptor, String> {
        let message = self.namespace.as_ref().ok_or("missing namespace")?;
        NamespaceDescriptor::try_from(message).map_err(text)
    }

    fn table(&self) -> Result<TableName, String> {
        let name = self.table_name.as_ref().ok_or("missing table name")?;
        TableName::try_from(name).map_err(text)
    }

    fn server(&self) -> Result<ServerName, String> {
        ServerName::try_from(self.server.as_ref().ok_or("missing server")?).map_err(text)
    }

    fn schema(&self) -> Result<Option<Box<TableDescriptor>>, String> {
        let table = self.table_schema.as_ref().map(TableDescriptor::try_from).transpose().map_err(text)?;
        Ok(table.map(Box::new))
    }

    fn parent(&self) -> Result<RegionInfo, String> {
        regions(&self.parents)?.into_iter().next().ok_or_else(|| "missing region".into())
    }

    fn plan(&self) -> Result<Option<TablePlan>, String> {
        let regions = regions(&self.regions)?;
        Ok(self.schema()?.map(|table| TablePlan { table, regions }))
    }
}

const NO_SNAPSHOT: &str = "missing snapshot";

impl From<&Change> for ChangeData {
    fn from(change: &Change) -> ChangeData {
        let mut data = ChangeData::default();
        match change {
            Change::Replace(table) => data.replace = Some((&**table).into()),
            Change::AddFamily(family) => data.add_family = Some(family.into()),
            Change::ModifyFamily(family) => data.modify_family = Some(family.into()),
            Change::DeleteFamily(name) => data.delete_family = Some(name.clone()),
        }
        data
    }
}

impl ChangeData {
    fn to_change(&self) -> Result<Change, String> {
        if let Some(schema) = &self.replace {
            return Ok(Change::Replace(Box::new(TableDescriptor::try_from(schema).map_err(text)?)));
        }
        if let Some(family) = &self.add_family {
            return Ok(Change::AddFamily(FamilyDescriptor::try_from(family).map_err(text)?));
        }
        if let Some(family) = &self.modify_family {
            return Ok(Change::ModifyFamily(FamilyDescriptor::try_from(family).map_err(text)?));
        }
        let name = self.delete_family.clone().ok_or("unknown kind of change")?;
        Ok(Change::DeleteFamily(name))
    }
}

fn regions(messages: &[proto::RegionInfo]) -> Result<Vec<RegionInfo>, String> {
    messages.iter().map(RegionInfo::try_from).collect::<Result<_, _>>().map_err(text)
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TableDescriptor {
        TableDescriptor::new(name()).with_family(FamilyDescriptor::new("f").with("VERSIONS", "3"))
    }

    fn name() -> TableName {
        TableName::parse("n:t").unwrap()
    }

    fn region() -> RegionInfo {
        RegionInfo::new(name(), "a".into(), "b".into(), 7)
    }

    fn plan() -> TablePlan {
        TablePlan { table: Box::new(table()), regions: vec![region()] }
    }

    fn namespace() -> NamespaceDescriptor {
        let configuration = [("k".to_string(), "v".to_string())].into();
        NamespaceDescriptor { name: "n".into(), configuration }
    }

    fn works() -> Vec<Work> {
        let family = || table().families[&b"f"[..]].clone();
        let modify = |change, target| Work::ModifyTable { table: name(), change, reopen: true, target };
        let target = ChangedTable { table: Box::new(table()), removed: vec!["g".into()] };
        let snapshot = proto::SnapshotDescription {
            name: "s".into(),
            creation_time: Some(9),
            ..proto::SnapshotDescription::default()
        };
        vec![
            Work::CreateTable(plan()),
            Work::DeleteTable(name()),
            Work::EnableTable(name()),
            Work::DisableTable(name()),
            Work::FlushTable(name(), vec!["f".into()]),
            Work::TruncateTable { table: name(), preserve_splits: true, plan: None, stages_first: false },
            Work::TruncateTable {
                table: name(),
                preserve_splits: false,
                plan: Some(plan()),
                stages_first: true,
            },
            modify(Change::Replace(Box::new(table())), None),
            modify(Change::AddFamily(family()), None),
            modify(Change::ModifyFamily(family()), Some(target.clone())),
            modify(Change::DeleteFamily("g".into()), Some(target)),
            Work::CreateNamespace(namespace()),
            Work::ModifyNamespace(namespace()),
            Work::DeleteNamespace("n".into()),
            Work::Snapshot(name(), Box::new(snapshot)),
            Work::CloneSnapshot { table: name(), snapshot: "s".into(), plan: None },
            Work::RestoreSnapshot { table: name(), snapshot: "s".into(), plan: Some(plan()), token: 7 },
            Work::SplitRegion { parent: region(), daughters: Box::new([region(), region()]) },
            Work::MergeRegions { parents: vec![region(), region()], forcible: true, repair: false },
            Work::MergeRegions { parents: vec![region(), region()], forcible: false, repair: true },
            Work::CreateRegion(region()),
            Work::RegionTransition(region(), RegionTransition::Assign),
            Work::RegionTransition(region(), RegionTransition::Unassign),
            Work::RegionTransition(region(), RegionTransition::Reopen),
            Work::GcSplitParent(region()),
            Work::GcMergeParents(region()),
            Work::MoveRegion { region: region(), source: None, target: server() },
            Work::MoveRegion { region: region(), source: Some(server()), target: server() },
            Work::ServerCrash { server: server(), had_meta: true, regions: None },
        ]
    }

    fn server() -> ServerName {
        ServerName { host: "h".into(), port: 1, start_code: 2 }
    }

    #[test]
    fn the_regions_of_a_dead_server_are_read_back() {
        let work = Work::ServerCrash { server: server(), had_meta: false, regions: Some(vec![region()]) };
        let record = Record { id: 1, work, prepared: true, submitted_ms: 5, nonce: (0, 0) };
        assert_eq!(Record::from_message(&record.to_message()).unwrap(), record);
    }

    #[test]
    fn a_move_of_an_older_version_has_no_source() {
        let work = |source| Work::MoveRegion { region: region(), source, target: server() };
        let mut data = StateData::from_work(&work(Some(server())));
        data.source = None;
        assert_eq!(data.into_work(REGION_TRANSITION), Ok(work(None)));
    }

    #[test]
    fn stored_procedures_are_read_back() {
        for (id, work) in (1..).zip(works()) {
            // The regions of a dead server are stored when the procedure is prepared.
            let prepared = id % 2 == 0 && !matches!(work, Work::ServerCrash { .. });
            let record = Record { id, work, prepared, submitted_ms: 5, nonce: (1, 2) };
            assert_eq!(Record::from_message(&record.to_message()).unwrap(), record);
        }
    }

    #[test]
    fn damaged_and_unknown_records_are_reported() {
        let record =
            Record { id: 1, work: works().remove(7), prepared: true, submitted_ms: 5, nonce: (0, 0) };
        let message = record.to_message();
        let other = proto::Procedure { class_name: "a.B".into(), ..message.clone() };
        assert!(Record::from_message(&other).unwrap_err().to_string().contains("unknown kind"));
        for state_data in [None, Some(Bytes::from_static(b"\xff")), Some(Bytes::from_static(b"\x08\x01"))] {
            assert!(Record::from_message(&proto::Procedure { state_data, ..message.clone() }).is_err());
        }
    }
}
