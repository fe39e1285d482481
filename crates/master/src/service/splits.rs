//! Calls that split and merge regions. Each one makes HBase's immediate checks, then starts a
//! procedure.

use bytes::Bytes;
use cell::region::{RegionInfo, encoded_name_of};
use proto::MasterSwitchType;
use proto::exception::{Answer, JavaException};

use crate::master::Master;
use crate::procedure::{Work, check_merge_requested, daughters_of, split_row_of};
use crate::{limits, refusal};

/// `SplitRegion`.
pub(super) async fn split(
    master: &Master,
    request: proto::SplitTableRegionRequest,
) -> Answer<proto::SplitTableRegionResponse> {
    let nonce = (request.nonce_group(), request.nonce());
    let requested = RegionInfo::try_from(&request.region_info)
        .map_err(|error| JavaException::do_not_retry(error.to_string()))?;
    if let Some(earlier) = master.procedures().find_by_nonce(nonce).await {
        return Ok(proto::SplitTableRegionResponse { proc_id: Some(earlier) });
    }
    let proc_id = submit_split(master, &requested, request.split_row, nonce).await?;
    Ok(proto::SplitTableRegionResponse { proc_id: Some(proc_id) })
}

/// Starts to split a region, at the requested row or else in its middle.
pub(super) async fn submit_split(
    master: &Master,
    requested: &RegionInfo,
    split_row: Option<Bytes>,
    nonce: (u64, u64),
) -> Answer<u64> {
    let context = master.context();
    if !context.switches.is_on(MasterSwitchType::Split) {
        let name = refusal::printable(&requested.name());
        let message = format!("Split region {name} failed due to split switch off");
        return Err(JavaException::do_not_retry(message));
    }
    // Use the master's own record of the region, because the request may contain any range.
    let known = context.assignment.find(&requested.encoded_name());
    let parent = known.map_or_else(|| requested.clone(), |(region, _)| region);
    let split_row = split_row_of(context, &parent, split_row).await?;
    let daughters = Box::new(daughters_of(&parent, &split_row, context.env.clock.now_ms()));
    limits::check_regions(&*daughters)?;
    let work = Work::SplitRegion { parent, daughters };
    context.namespace_quotas.check(context, &work)?;
    master.submit(work, nonce).await
}

/// `MergeTableRegions`.
pub(super) async fn merge(
    master: &Master,
    request: proto::MergeTableRegionsRequest,
) -> Answer<proto::MergeTableRegionsResponse> {
    let nonce = (request.nonce_group(), request.nonce());
    if let Some(earlier) = master.procedures().find_by_nonce(nonce).await {
        return Ok(proto::MergeTableRegionsResponse { proc_id: Some(earlier) });
    }
    let context = master.context();
    let mut parents = Vec::with_capacity(request.region.len());
    for named in &request.region {
        parents.push(find(master, named)?);
    }
    if !context.switches.is_on(MasterSwitchType::Merge) {
        let names = refusal::format_regions(&parents);
        let message = format!("Merge of {names} failed because merge switch is off");
        return Err(JavaException::do_not_retry(message));
    }
    let forcible = request.forcible();
    check_merge_requested(context, &parents, forcible).await?;
    parents
        .sort_by(|left, right| (&left.start_key, left.region_id).cmp(&(&right.start_key, right.region_id)));
    let proc_id = master.submit(Work::MergeRegions { parents, forcible, repair: false }, nonce).await?;
    Ok(proto::MergeTableRegionsResponse { proc_id: Some(proc_id) })
}

/// Finds the region that a request names by its full or its encoded name.
pub(super) fn find(master: &Master, named: &proto::RegionSpecifier) -> Answer<RegionInfo> {
    let found = encoded_name_of(&named.value).and_then(|encoded| master.context().assignment.find(encoded));
    found.map(|(region, _)| region).ok_or_else(|| refusal::unknown_region(&named.value))
}
