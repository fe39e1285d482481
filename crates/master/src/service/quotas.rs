//! Calls for quotas. Calls for permissions are refused, as by an HBase without AccessController.

use proto::exception::{Answer, JavaException};

use crate::master::Master;

/// `SetQuota`.
pub(super) async fn set(master: &Master, request: proto::SetQuotaRequest) -> Answer<proto::SetQuotaResponse> {
    master.quotas().set(master.context(), &request).await?;
    Ok(proto::SetQuotaResponse {})
}

/// `IsRpcThrottleEnabled`.
pub(super) async fn throttles(
    master: &Master,
    _: proto::IsRpcThrottleEnabledRequest,
) -> Answer<proto::IsRpcThrottleEnabledResponse> {
    let rpc_throttle_enabled = master.quotas().throttles(master.context()).await?;
    Ok(proto::IsRpcThrottleEnabledResponse { rpc_throttle_enabled })
}

/// `SwitchRpcThrottle`.
pub(super) async fn switch_throttling(
    master: &Master,
    request: proto::SwitchRpcThrottleRequest,
) -> Answer<proto::SwitchRpcThrottleResponse> {
    let before = master.quotas().switch_throttling(master.context(), request.rpc_throttle_enabled).await?;
    Ok(proto::SwitchRpcThrottleResponse { previous_rpc_throttle_enabled: before })
}

/// `SwitchExceedThrottleQuota`.
pub(super) async fn switch_exceeding(
    master: &Master,
    request: proto::SwitchExceedThrottleQuotaRequest,
) -> Answer<proto::SwitchExceedThrottleQuotaResponse> {
    let on = request.exceed_throttle_quota_enabled;
    let before = master.quotas().switch_exceeding(master.context(), on).await?;
    Ok(proto::SwitchExceedThrottleQuotaResponse { previous_exceed_throttle_quota_enabled: before })
}

fn no_access_controller<T>() -> Answer<T> {
    Err(JavaException::unsupported("org.apache.hadoop.hbase.security.access.AccessController is not loaded"))
}

/// `Grant`.
pub(super) async fn grant(_: &Master, _: proto::GrantRequest) -> Answer<proto::GrantResponse> {
    no_access_controller()
}

/// `Revoke`.
pub(super) async fn revoke(_: &Master, _: proto::RevokeRequest) -> Answer<proto::RevokeResponse> {
    no_access_controller()
}

/// `GetUserPermissions`.
pub(super) async fn permissions(
    _: &Master,
    _: proto::GetUserPermissionsRequest,
) -> Answer<proto::GetUserPermissionsResponse> {
    no_access_controller()
}

/// `HasUserPermissions`.
pub(super) async fn has_permissions(
    _: &Master,
    _: proto::HasUserPermissionsRequest,
) -> Answer<proto::HasUserPermissionsResponse> {
    no_access_controller()
}
