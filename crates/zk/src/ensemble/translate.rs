//! The library's metadata and errors as those of a [`Coordinator`](crate::Coordinator).

use zookeeper_client::Error as ClientError;

use crate::coordinator::{EPHEMERAL_PARENT, Error, Stat, bad_path};

/// Metadata of a znode.
pub(super) fn stat(stat: &zookeeper_client::Stat) -> Stat {
    Stat {
        created_zxid: stat.czxid,
        modified_zxid: stat.mzxid,
        created_ms: stat.ctime,
        modified_ms: stat.mtime,
        version: stat.version,
        children_version: stat.cversion,
        acl_version: stat.aversion,
        ephemeral_owner: stat.ephemeral_owner,
        data_len: stat.data_length,
        children: stat.num_children,
        children_zxid: stat.pzxid,
    }
}

/// Whether the session cannot be used after this error.
pub(super) fn ends_session(error: &ClientError) -> bool {
    matches!(error, ClientError::SessionExpired | ClientError::AuthFailed | ClientError::ClientClosed)
}

/// Whether every repetition has the same error, until an operator changes permissions, quotas or
/// servers.
fn is_permanent(error: &ClientError) -> bool {
    use ClientError::{InvalidAcl, NoAuth, QuotaExceeded, Unimplemented};
    matches!(error, InvalidAcl | NoAuth | QuotaExceeded | Unimplemented)
}

/// The error of an action ("read", "create") at `path`.
pub(super) fn error(action: &str, path: &str, error: ClientError) -> Error {
    match error {
        ClientError::NoNode => Error::NoNode { path: path.to_string() },
        ClientError::NodeExists => Error::NodeExists { path: path.to_string() },
        ClientError::NotEmpty => Error::NotEmpty { path: path.to_string() },
        ClientError::NoChildrenForEphemerals => bad_path(path, EPHEMERAL_PARENT),
        ClientError::BadArguments(_) => bad_path(path, "ZooKeeper rejects it"),
        error if ends_session(&error) => Error::SessionExpired,
        ClientError::ConnectionLoss => {
            let outcome = if action == "read" { "retry" } else { "it may have succeeded; check and retry" };
            Error::Unavailable(format!("cannot {action} znode {path}: the connection was lost ({outcome})"))
        }
        error if is_permanent(&error) => Error::Refused(format!("cannot {action} znode {path}: {error}")),
        error => Error::Unavailable(format!("cannot {action} znode {path}: {error} (retry)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_transient_errors_are_worth_a_retry() {
        use ClientError::*;
        for permanent in [NoAuth, InvalidAcl, QuotaExceeded, Unimplemented] {
            let refused = error("create", "/a/b", permanent);
            assert!(matches!(&refused, Error::Refused(what) if what.contains("/a/b")), "{refused}");
        }
        for transient in [ConnectionLoss, Throttled, Timeout, SessionMoved] {
            let unavailable = error("create", "/a/b", transient);
            assert!(matches!(unavailable, Error::Unavailable(_)), "{unavailable}");
        }
    }
}
