//! HBase's keys that promise safety or locate data, and that this server does not support.
//!
//! A server that ignored one of them would be less safe than its operator believes, or would serve
//! other data. So it does not start.

/// A key, or a pattern with one `*` that matches several keys.
pub(super) struct UnsafeKey {
    pub(super) pattern: &'static str,
    /// Values that request nothing unsupported, compared case-insensitively. The empty value never
    /// does.
    pub(super) neutral: &'static [&'static str],
    /// What the operator would expect the key to provide.
    pub(super) promise: &'static str,
}

const OFF: &[&str] = &["false"];
const NONE: &[&str] = &[];
/// Endpoints that are always available.
const SERVED: &[&str] = &[
    "org.apache.hadoop.hbase.coprocessor.AggregateImplementation",
    "org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint",
];
/// HBase's own cleaners of old logs: they delete by age only and retain nothing for other systems.
const LOG_CLEANERS: &[&str] = &[
    "org.apache.hadoop.hbase.master.cleaner.TimeToLiveLogCleaner",
    "org.apache.hadoop.hbase.master.cleaner.TimeToLiveProcedureWALCleaner",
    "org.apache.hadoop.hbase.master.cleaner.TimeToLiveMasterLocalStoreWALCleaner",
];
/// HBase's own cleaners of archived files: they delete by age only and retain nothing for other
/// systems.
const FILE_CLEANERS: &[&str] = &[
    "org.apache.hadoop.hbase.master.cleaner.TimeToLiveHFileCleaner",
    "org.apache.hadoop.hbase.master.cleaner.TimeToLiveMasterLocalStoreHFileCleaner",
];

/// All unsafe keys, in the order of the documentation.
pub(super) const UNSAFE_KEYS: &[UnsafeKey] = &[
    UnsafeKey {
        pattern: "hbase.security.authentication",
        neutral: &["simple"],
        promise: "clients are authenticated",
    },
    UnsafeKey {
        pattern: "hadoop.security.authentication",
        neutral: &["simple"],
        promise: "clients are authenticated",
    },
    UnsafeKey { pattern: "hbase.security.authorization", neutral: OFF, promise: "users need permissions" },
    UnsafeKey { pattern: "hadoop.security.authorization", neutral: OFF, promise: "users need permissions" },
    UnsafeKey {
        pattern: "hbase.security.exec.permission.checks",
        neutral: OFF,
        promise: "endpoints need permissions",
    },
    UnsafeKey { pattern: "hbase.superuser", neutral: NONE, promise: "only some users are administrators" },
    UnsafeKey {
        pattern: "hbase.rpc.protection",
        neutral: &["authentication"],
        promise: "calls are signed or encrypted",
    },
    UnsafeKey {
        pattern: "hbase.rpc.crypto.encryption.aes.enabled",
        neutral: OFF,
        promise: "calls are encrypted",
    },
    UnsafeKey { pattern: "hbase.server.netty.tls.enabled", neutral: OFF, promise: "calls are encrypted" },
    UnsafeKey { pattern: "hbase.client.netty.tls.enabled", neutral: OFF, promise: "calls are encrypted" },
    UnsafeKey { pattern: "hbase.rpc.tls.*", neutral: OFF, promise: "calls are encrypted" },
    UnsafeKey { pattern: "hbase.ssl.enabled", neutral: OFF, promise: "status pages are encrypted" },
    UnsafeKey { pattern: "hadoop.ssl.enabled", neutral: OFF, promise: "status pages are encrypted" },
    UnsafeKey {
        pattern: "hbase.security.authentication.ui",
        neutral: &["simple"],
        promise: "readers of status pages are authenticated",
    },
    UnsafeKey {
        pattern: "hbase.security.authentication.spnego.*",
        neutral: NONE,
        promise: "readers of status pages are authenticated",
    },
    UnsafeKey {
        pattern: "hbase.thrift.ssl.enabled",
        neutral: OFF,
        promise: "the Thrift gateway is encrypted",
    },
    UnsafeKey {
        pattern: "hbase.thrift.security.qop",
        neutral: NONE,
        promise: "the Thrift gateway is protected",
    },
    UnsafeKey { pattern: "hbase.rest.ssl.enabled", neutral: OFF, promise: "the REST gateway is encrypted" },
    UnsafeKey {
        pattern: "hbase.rest.authentication.type",
        neutral: &["simple"],
        promise: "users of the REST gateway are authenticated",
    },
    UnsafeKey {
        pattern: "hbase.coprocessor.*.classes",
        neutral: SERVED,
        promise: "coprocessors check or change client requests",
    },
    UnsafeKey { pattern: "hbase.crypto.*", neutral: OFF, promise: "data on disk is encrypted" },
    UnsafeKey {
        pattern: "hbase.regionserver.wal.encryption",
        neutral: OFF,
        promise: "logs on disk are encrypted",
    },
    UnsafeKey {
        pattern: "hbase.regionserver.hlog.encryption",
        neutral: OFF,
        promise: "logs on disk are encrypted",
    },
    UnsafeKey {
        pattern: "hbase.zookeeper.property.ssl.*",
        neutral: OFF,
        promise: "ZooKeeper connections are encrypted",
    },
    UnsafeKey {
        pattern: "hbase.zookeeper.property.secureClientPort",
        neutral: NONE,
        promise: "ZooKeeper connections are encrypted",
    },
    UnsafeKey { pattern: "hbase.replication", neutral: OFF, promise: "writes are replicated" },
    UnsafeKey {
        pattern: "hbase.replication.bulkload.enabled",
        neutral: OFF,
        promise: "bulk loads are replicated",
    },
    UnsafeKey { pattern: "hbase.replication.cluster.id", neutral: NONE, promise: "writes are replicated" },
    UnsafeKey {
        pattern: "hbase.region.replica.replication.enabled",
        neutral: OFF,
        promise: "regions have replicas",
    },
    UnsafeKey { pattern: "hbase.meta.replica.count", neutral: &["1"], promise: "hbase:meta has replicas" },
    UnsafeKey {
        pattern: "hbase.master.logcleaner.plugins",
        neutral: LOG_CLEANERS,
        promise: "logs are retained for other systems",
    },
    UnsafeKey {
        pattern: "hbase.master.hfilecleaner.plugins",
        neutral: FILE_CLEANERS,
        promise: "files are retained for other systems",
    },
    UnsafeKey { pattern: "hbase.quota.default.*", neutral: NONE, promise: "users have a default quota" },
];

/// The entry for `key`, if `value` requests something unsupported.
pub(super) fn find_unsupported(key: &str, value: &str) -> Option<&'static UnsafeKey> {
    let is_requested = |entry: &&UnsafeKey| {
        let is_neutral = |part: &str| entry.neutral.iter().any(|neutral| neutral.eq_ignore_ascii_case(part));
        matches(entry.pattern, key) && !value.split(',').map(str::trim).all(is_neutral)
    };
    let is_empty = value.trim().is_empty();
    (!is_empty).then(|| UNSAFE_KEYS.iter().find(is_requested)).flatten()
}

fn matches(pattern: &str, key: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == key,
        Some((start, end)) => {
            key.len() >= start.len() + end.len() && key.starts_with(start) && key.ends_with(end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neutral_values_are_accepted() {
        for entry in UNSAFE_KEYS {
            let key = entry.pattern.replace('*', "region");
            assert!(find_unsupported(&key, "").is_none(), "{key}");
            for neutral in entry.neutral {
                assert!(find_unsupported(&key, neutral).is_none(), "{key} = {neutral}");
                assert!(find_unsupported(&key, &neutral.to_uppercase()).is_none(), "{key} = {neutral}");
            }
            assert!(find_unsupported(&key, "something").is_some(), "{key}");
        }
        assert!(find_unsupported("hbase.coprocessor.master.classes", "a.B").is_some());
        assert!(find_unsupported("hbase.coprocessor.enabled", "true").is_none());
        assert!(find_unsupported("hbase.security.authentications", "kerberos").is_none());
    }
}
