//! Method tables: HBase's methods and their support here.

use crate::service::{
    ADMIN_METHODS, CLIENT_META_METHODS, CLIENT_METHODS, MASTER_METHODS, REGION_SERVER_STATUS_METHODS,
};
use proto::exception::{JavaClass, JavaException, class};

/// A method of one of HBase's services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Its name in request headers, case-sensitive.
    pub name: &'static str,
    /// The request message's name, in Rust's spelling.
    pub request: &'static str,
    /// The response message's name, in Rust's spelling.
    pub response: &'static str,
    /// Whether it works here.
    pub support: Support,
}

/// Whether a method works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It works.
    Works,
    /// Rejected with an exception of this class.
    Refused(JavaClass),
}

/// All services of HBase 2.6 and their methods.
pub const ALL: &[(&str, &[Method])] = &[
    ("ClientService", CLIENT_METHODS),
    ("AdminService", ADMIN_METHODS),
    ("MasterService", MASTER_METHODS),
    ("ClientMetaService", CLIENT_META_METHODS),
    ("RegionServerStatusService", REGION_SERVER_STATUS_METHODS),
    ("HbckService", HBCK_METHODS),
    ("LockService", LOCK_METHODS),
    ("BootstrapNodeService", BOOTSTRAP_NODE_METHODS),
    ("ConnectionRegistryService", CONNECTION_REGISTRY_METHODS),
];

/// The exception for a method that does not work here, or that no HBase version has.
pub fn refuse(methods: &[Method], name: &str) -> JavaException {
    match methods.iter().find(|method| method.name == name).map(|method| method.support) {
        Some(Support::Refused(class)) => {
            JavaException::new(class, format!("java.lang.UnsupportedOperationException: {name}"))
        }
        Some(Support::Works) | None => JavaException::unknown_method(name),
    }
}

const fn refused(name: &'static str, request: &'static str, response: &'static str) -> Method {
    Method { name, request, response, support: Support::Refused(class::DO_NOT_RETRY_IO) }
}

const HBCK_METHODS: &[Method] = &[
    refused("SetTableStateInMeta", "SetTableStateInMetaRequest", "GetTableStateResponse"),
    refused("SetRegionStateInMeta", "SetRegionStateInMetaRequest", "SetRegionStateInMetaResponse"),
    refused("Assigns", "AssignsRequest", "AssignsResponse"),
    refused("Unassigns", "UnassignsRequest", "UnassignsResponse"),
    refused("BypassProcedure", "BypassProcedureRequest", "BypassProcedureResponse"),
    refused(
        "ScheduleServerCrashProcedure",
        "ScheduleServerCrashProcedureRequest",
        "ScheduleServerCrashProcedureResponse",
    ),
    refused(
        "ScheduleSCPsForUnknownServers",
        "ScheduleSCPsForUnknownServersRequest",
        "ScheduleSCPsForUnknownServersResponse",
    ),
    refused("RunHbckChore", "RunHbckChoreRequest", "RunHbckChoreResponse"),
    refused("FixMeta", "FixMetaRequest", "FixMetaResponse"),
];

const LOCK_METHODS: &[Method] = &[
    refused("RequestLock", "LockRequest", "LockResponse"),
    refused("LockHeartbeat", "LockHeartbeatRequest", "LockHeartbeatResponse"),
];

const BOOTSTRAP_NODE_METHODS: &[Method] =
    &[refused("GetAllBootstrapNodes", "GetAllBootstrapNodesRequest", "GetAllBootstrapNodesResponse")];

/// Works as a preamble (`Regist`), which is how clients send it. Rejected as a call, which no
/// client sends.
const CONNECTION_REGISTRY_METHODS: &[Method] =
    &[refused("GetConnectionRegistry", "GetConnectionRegistryRequest", "GetConnectionRegistryResponse")];

#[cfg(test)]
mod tests {
    use super::*;

    /// The services as the .proto files declare them, without the methods that only 3.0 has.
    fn declared(service: &str, proto_file: &str) -> Vec<(String, String, String)> {
        let start = format!("service {service} {{");
        proto_file
            .lines()
            .skip_while(|line| *line != start)
            .skip(1)
            .take_while(|line| *line != "}")
            .filter(|line| !line.ends_with("// Since 3.0."))
            .map(|line| {
                let words: Vec<&str> =
                    line.split([' ', '(', ')', ';']).filter(|word| !word.is_empty()).collect();
                assert_eq!((words[0], words[3]), ("rpc", "returns"), "{line}");
                (words[1].to_string(), words[2].to_lowercase(), words[4].to_lowercase())
            })
            .collect()
    }

    #[test]
    fn tables_hold_every_method_of_hbase() {
        let files = [
            ("ClientService", include_str!("../../../proto/proto/Client.proto")),
            ("AdminService", include_str!("../../../proto/proto/Admin.proto")),
            ("MasterService", include_str!("../../../proto/proto/Master.proto")),
            ("ClientMetaService", include_str!("../../../proto/proto/Registry.proto")),
            ("RegionServerStatusService", include_str!("../../../proto/proto/RegionServerStatus.proto")),
            ("HbckService", include_str!("../../../proto/proto/Master.proto")),
            ("LockService", include_str!("../../../proto/proto/LockService.proto")),
            ("BootstrapNodeService", include_str!("../../../proto/proto/BootstrapNode.proto")),
            ("ConnectionRegistryService", include_str!("../../../proto/proto/Registry.proto")),
        ];
        assert_eq!(
            files.map(|(service, _)| service),
            ALL.iter().map(|(service, _)| *service).collect::<Vec<_>>()[..]
        );
        for ((service, file), (_, methods)) in files.iter().zip(ALL) {
            let mut declared = declared(service, file);
            let mut known: Vec<_> = methods
                .iter()
                .map(|method| {
                    (method.name.to_string(), method.request.to_lowercase(), method.response.to_lowercase())
                })
                .collect();
            assert!(!declared.is_empty());
            declared.sort();
            known.sort();
            assert_eq!(known, declared, "{service}");
        }
    }

    #[test]
    fn unsupported_methods_end_retries() {
        for (service, methods) in ALL {
            for method in *methods {
                let exception = refuse(methods, method.name);
                assert!(exception.do_not_retry, "{service}.{}", method.name);
                assert!(exception.message.contains(method.name));
            }
        }
        assert!(refuse(MASTER_METHODS, "NoSuchMethod").message.contains("NoSuchMethod"));
    }
}
