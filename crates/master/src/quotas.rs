//! Quotas. They are stored in `hbase:quota`, from which clients and region servers read them.
//!
//! A change reads the current quota, merges the request into it and writes the result. Changes run
//! one at a time. A quota without settings is removed. Source: HBase `MasterQuotaManager`,
//! `GlobalQuotaSettingsImpl`, `QuotaUtil`.

use cell::mutation::Mutation;
use cell::query::{CellSelection, FamilyColumns, Get};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use proto::exception::{Answer, JavaException};
use proto::{ThrottleType, TimeUnit};
use tracing::warn;
use wire::quota::{self, Subject};

use crate::assignment::RegionState;
use crate::context::Context;
use crate::meta::{cells_of, write_rows};

/// The procedure that makes region servers read the quotas immediately.
const READ_QUOTAS: &str = wire::service::SWITCH_RPC_THROTTLE;

/// The quotas of a cluster.
pub struct Quotas {
    enabled: bool,
    // Held from reading the current quota to writing the new one.
    change: tokio::sync::Mutex<()>,
}

impl Quotas {
    /// `enabled` is the value of `hbase.quota.enabled`.
    pub fn new(enabled: bool) -> Quotas {
        Quotas { enabled, change: tokio::sync::Mutex::default() }
    }

    /// Whether quotas are enabled.
    pub fn enabled(&self) -> bool {
        self.enabled
    }

    /// Sets, changes or removes the quota that a request names.
    ///
    /// # Errors
    /// `DoNotRetryIOException` for an invalid request, or the error of the table's server.
    pub async fn set(&self, context: &Context, request: &proto::SetQuotaRequest) -> Answer<()> {
        if !self.enabled {
            return Err(JavaException::unsupported("quota support disabled"));
        }
        let subject = Subject::of(request).map_err(|error| JavaException::do_not_retry(error.to_string()))?;
        let subject = subject.ok_or_else(|| {
            JavaException::unsupported("a user, a table, a namespace or region server must be specified")
        })?;
        let _guard = self.change.lock().await;
        let merged = match request.remove_all() {
            true => None,
            false => {
                let current = read(context, &subject).await?.unwrap_or_default();
                Some(merge(current, request)?).filter(is_set)
            }
        };
        if matches!(subject, Subject::Server(_)) && self.may_exceed(context).await? {
            require_both_kinds(merged.and_then(|quotas| quotas.throttle))?;
        }
        write(context, change_of(&subject, merged.as_ref())).await
    }

    /// Whether calls are throttled.
    ///
    /// # Errors
    /// The error of the table's server.
    pub async fn throttles(&self, context: &Context) -> Answer<bool> {
        match self.enabled {
            true => Ok(value_of(context, quota::UNTHROTTLED_ROW, quota::SETTINGS).await?.is_none()),
            false => Ok(false),
        }
    }

    /// Switches throttling on or off. Returns the previous setting.
    ///
    /// # Errors
    /// The error of the table's server.
    pub async fn switch_throttling(&self, context: &Context, on: bool) -> Answer<bool> {
        if !self.enabled {
            return Ok(false);
        }
        let _guard = self.change.lock().await;
        let before = self.throttles(context).await?;
        if before != on {
            let row = quota::UNTHROTTLED_ROW;
            let change = match on {
                true => Mutation::delete(row.to_vec(), Vec::new()),
                false => Mutation::put(row, vec![setting(row, quota::SETTINGS, CellType::Put, &[1])]),
            };
            write(context, change).await?;
            notify_servers(context).await;
        }
        Ok(before)
    }

    /// Sets whether quotas may be exceeded while servers have spare capacity. Returns the previous
    /// setting.
    ///
    /// # Errors
    /// `DoNotRetryIOException` unless servers have quotas for both reads and writes; or the error
    /// of the table's server.
    pub async fn switch_exceeding(&self, context: &Context, on: bool) -> Answer<bool> {
        if !self.enabled {
            return Ok(false);
        }
        let _guard = self.change.lock().await;
        let before = self.may_exceed(context).await?;
        if before != on {
            if on {
                let servers = Subject::Server(quota::ALL_SERVERS.to_string());
                require_both_kinds(read(context, &servers).await?.and_then(|quotas| quotas.throttle))?;
            }
            // HBase stores `true` as the byte 0xff.
            let value = [if on { 0xff } else { 0 }];
            let row = quota::EXCEED_ROW;
            let cell = setting(row, quota::SETTINGS, CellType::Put, &value);
            write(context, Mutation::put(row, vec![cell])).await?;
        }
        Ok(before)
    }

    async fn may_exceed(&self, context: &Context) -> Answer<bool> {
        let value = value_of(context, quota::EXCEED_ROW, quota::SETTINGS).await?;
        Ok(value.is_some_and(|value| value.first().is_some_and(|flag| *flag != 0)))
    }
}

fn is_set(quotas: &proto::Quotas) -> bool {
    quotas.bypass_globals.is_some() || quotas.throttle.is_some() || quotas.space.is_some()
}

/// Merges a request into a quota.
fn merge(mut quotas: proto::Quotas, request: &proto::SetQuotaRequest) -> Answer<proto::Quotas> {
    if request.bypass_globals.is_some() {
        quotas.bypass_globals = request.bypass_globals;
    }
    if let Some(change) = &request.throttle {
        quotas.throttle = match change.r#type {
            None => None,
            Some(_) => merge_throttle(quotas.throttle.unwrap_or_default(), change)?,
        };
    }
    if let Some(space) = request.space_limit.as_ref().and_then(|limit| limit.quota) {
        quotas.space = (!space.remove()).then_some(proto::SpaceQuota { remove: None, ..space });
    }
    Ok(quotas)
}

fn merge_throttle(
    mut throttle: proto::Throttle,
    change: &proto::ThrottleRequest,
) -> Answer<Option<proto::Throttle>> {
    if let Some(quota) = &change.timed_quota
        && quota.soft_limit() < 1
    {
        let limit = quota.soft_limit();
        return Err(JavaException::unsupported(format!(
            "The throttle limit must be greater then 0, got {limit}"
        )));
    }
    let field = match change.r#type() {
        ThrottleType::RequestNumber => &mut throttle.req_num,
        ThrottleType::RequestSize => &mut throttle.req_size,
        ThrottleType::WriteNumber => &mut throttle.write_num,
        ThrottleType::WriteSize => &mut throttle.write_size,
        ThrottleType::ReadNumber => &mut throttle.read_num,
        ThrottleType::ReadSize => &mut throttle.read_size,
        ThrottleType::RequestCapacityUnit => &mut throttle.req_capacity_unit,
        ThrottleType::WriteCapacityUnit => &mut throttle.write_capacity_unit,
        ThrottleType::ReadCapacityUnit => &mut throttle.read_capacity_unit,
        other => {
            let name = other.as_str_name();
            return Err(JavaException::unsupported(format!("throttles of the type {name}")));
        }
    };
    *field = change.timed_quota;
    Ok((throttle != proto::Throttle::default()).then_some(throttle))
}

/// Checks that the quotas of servers limit both reads and writes per second. Without them, quotas
/// may not be exceeded.
fn require_both_kinds(throttle: Option<proto::Throttle>) -> Answer<()> {
    let refuse = |message: &str| Err(JavaException::do_not_retry(message));
    let Some(of) = throttle else {
        return refuse("Please set region server quota before enable exceed throttle quota");
    };
    let both = [of.req_num, of.req_size, of.req_capacity_unit];
    let reads = [of.read_num, of.read_size, of.read_capacity_unit];
    let writes = [of.write_num, of.write_size, of.write_capacity_unit];
    let any = |kind: &[Option<proto::TimedQuota>; 3]| both.iter().chain(kind).any(Option::is_some);
    if !any(&reads) {
        return refuse(
            "Please set at least one read region server quota before enable exceed throttle quota",
        );
    }
    if !any(&writes) {
        return refuse(
            "Please set at least one write region server quota before enable exceed throttle quota",
        );
    }
    if both.iter().chain(&reads).chain(&writes).flatten().any(|quota| quota.time_unit() != TimeUnit::Seconds)
    {
        return refuse(
            "All region server quota must be in seconds time unit if enable exceed throttle quota",
        );
    }
    Ok(())
}

/// The mutation that stores a subject's quota. `None` removes it; for the general quota of a
/// subject this removes the whole row, including a user's quotas for tables and namespaces.
fn change_of(subject: &Subject, quotas: Option<&proto::Quotas>) -> Mutation {
    debug_assert!(quotas.is_none_or(is_set), "a quota without settings is not stored");
    let (row, qualifier) = (subject.row(), subject.qualifier());
    match quotas {
        Some(quotas) => {
            let cell = setting(&row, &qualifier, CellType::Put, &quota::encode(quotas));
            Mutation::put(row, vec![cell])
        }
        None if qualifier == quota::SETTINGS => Mutation::delete(row, Vec::new()),
        None => {
            let marker = setting(&row, &qualifier, CellType::DeleteColumn, &[]);
            Mutation::delete(row, vec![marker])
        }
    }
}

fn setting(row: &[u8], qualifier: &[u8], kind: CellType, value: &[u8]) -> KeyValue {
    KeyValue::new(row, quota::FAMILY, qualifier, LATEST_TIMESTAMP, kind, value)
}

async fn read(context: &Context, subject: &Subject) -> Answer<Option<proto::Quotas>> {
    let value = value_of(context, &subject.row(), &subject.qualifier()).await?;
    Ok(value.and_then(|value| quota::decode(&value)))
}

async fn value_of(context: &Context, row: &[u8], qualifier: &[u8]) -> Answer<Option<Vec<u8>>> {
    let columns = vec![FamilyColumns {
        family: quota::FAMILY.into(),
        qualifiers: Some(vec![bytes::Bytes::copy_from_slice(qualifier)]),
    }];
    let selection = CellSelection { columns, ..CellSelection::default() };
    let get =
        Get { row: bytes::Bytes::copy_from_slice(row), selection: selection.into(), existence_only: false };
    let (region, server) = locate_row(context, row)?;
    let request = proto::GetRequest {
        region: wire::convert::region_specifier(&region),
        get: wire::convert::to_proto::get(&get),
    };
    let reply = context.connections.client(&server).get(request.into()).await?;
    let cells = cells_of(reply.cells)?;
    Ok(cells.first().map(|cell| cell.view(0).value.to_vec()))
}

async fn write(context: &Context, change: Mutation) -> Answer<()> {
    let (region, server) = locate_row(context, &change.row)?;
    let (client, since_ms) = (context.connections.client(&server), context.assignment.active_since_ms());
    write_rows(&*client, &region, std::slice::from_ref(&change), since_ms).await
}

/// The region of the table that contains a row, and its server.
fn locate_row(context: &Context, row: &[u8]) -> Answer<(cell::region::RegionInfo, cell::region::ServerName)> {
    let mut regions = context.assignment.regions_of(&quota::table_name()).into_iter();
    match regions.find(|(region, _)| region.contains(row)) {
        Some((region, RegionState::Open(server))) => Ok((region, server)),
        _ => Err(JavaException::io("hbase:quota is not open")),
    }
}

/// Makes all servers read the quotas immediately. A server that cannot be reached reads them in its
/// next period.
async fn notify_servers(context: &Context) {
    for (server, _) in context.servers.live() {
        let procedure = proto::RemoteProcedureRequest {
            proc_class: READ_QUOTAS.to_string(),
            ..proto::RemoteProcedureRequest::default()
        };
        let request = proto::ExecuteProceduresRequest { proc: vec![procedure], ..Default::default() };
        if let Err(error) = context.connections.admin(&server).execute_procedures(request).await {
            warn!(%server, %error, "cannot notify region server of the throttling switch");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: ThrottleType, limit: Option<u64>) -> proto::SetQuotaRequest {
        let timed_quota = limit.map(|limit| proto::TimedQuota {
            time_unit: TimeUnit::Seconds.into(),
            soft_limit: Some(limit),
            ..Default::default()
        });
        let throttle = proto::ThrottleRequest { r#type: Some(kind.into()), timed_quota };
        proto::SetQuotaRequest { throttle: Some(throttle), ..Default::default() }
    }

    fn merged(requests: &[proto::SetQuotaRequest]) -> proto::Quotas {
        requests.iter().fold(proto::Quotas::default(), |quotas, request| merge(quotas, request).unwrap())
    }

    #[test]
    fn kinds_are_set_and_removed_one_by_one() {
        let (reads, writes) = (ThrottleType::ReadNumber, ThrottleType::WriteSize);
        let both = merged(&[request(reads, Some(1)), request(writes, Some(2)), request(reads, Some(3))]);
        let throttle = both.throttle.unwrap();
        assert_eq!(throttle.read_num.unwrap().soft_limit, Some(3));
        assert_eq!(throttle.write_size.unwrap().soft_limit, Some(2));
        let one = merge(both, &request(writes, None)).unwrap();
        assert!(is_set(&one));
        assert!(!is_set(&merge(one, &request(reads, None)).unwrap()));
        let all = proto::SetQuotaRequest { throttle: Some(Default::default()), ..Default::default() };
        assert!(!is_set(&merge(both, &all).unwrap()));
        assert!(merge(both, &request(reads, Some(0))).is_err());
    }

    #[test]
    fn unnamed_quotas_stay() {
        let space = |remove| {
            let quota = proto::SpaceQuota { soft_limit: Some(1), remove, ..Default::default() };
            let space_limit = Some(proto::SpaceLimitRequest { quota: Some(quota) });
            proto::SetQuotaRequest { space_limit, ..Default::default() }
        };
        let bypass = proto::SetQuotaRequest { bypass_globals: Some(false), ..Default::default() };
        let quotas = merged(&[request(ThrottleType::ReadNumber, Some(1)), space(None), bypass]);
        assert_eq!(quotas.bypass_globals, Some(false));
        assert!(quotas.throttle.is_some() && quotas.space.is_some());
        let quotas = merge(quotas, &space(Some(true))).unwrap();
        assert!(quotas.space.is_none() && quotas.throttle.is_some());
    }

    #[test]
    fn exceeding_requires_per_second_read_and_write_quotas() {
        let of = |requests: &[proto::SetQuotaRequest]| require_both_kinds(merged(requests).throttle);
        assert!(require_both_kinds(None).is_err());
        assert!(of(&[request(ThrottleType::ReadNumber, Some(1))]).is_err());
        assert!(of(&[request(ThrottleType::WriteNumber, Some(1))]).is_err());
        of(&[request(ThrottleType::RequestNumber, Some(1))]).unwrap();
        let mut by_the_hour = merged(&[request(ThrottleType::RequestNumber, Some(1))]).throttle.unwrap();
        by_the_hour.req_num.as_mut().unwrap().time_unit = TimeUnit::Hours.into();
        assert!(require_both_kinds(Some(by_the_hour)).is_err());
    }
}
