//! The Java exception classes that the server can send, and which of them end a client's retries.
//!
//! A client recreates the exception through the class's constructor with one string, so the class
//! must exist in the client's jar. It stops retrying if and only if the class is a subclass of
//! `DoNotRetryIOException`. [`JavaClass::do_not_retry`] records that; the flag of the same name on
//! the wire is set from it.
//!
//! Source: HBase 2.5.10 `hbase-client`, and responses of real servers.

/// A Java exception class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JavaClass {
    /// The full name.
    pub name: &'static str,
    /// Whether it is a subclass of `DoNotRetryIOException`: a retry cannot succeed.
    pub do_not_retry: bool,
    /// Whether the client should wait longer before it retries.
    pub server_overloaded: bool,
}

macro_rules! classes {
    ($($(#[$doc:meta])* $id:ident = $name:literal, $kind:ident;)*) => {
        $($(#[$doc])* pub const $id: JavaClass = classes!(@$kind concat!("org.apache.hadoop.hbase.", $name));)*
        /// Every HBase class above.
        pub const ALL: &[JavaClass] = &[$($id),*];
    };
    (@retry $name:expr) => { JavaClass { name: $name, do_not_retry: false, server_overloaded: false } };
    (@overloaded $name:expr) => { JavaClass { name: $name, do_not_retry: false, server_overloaded: true } };
    (@give_up $name:expr) => { JavaClass { name: $name, do_not_retry: true, server_overloaded: false } };
}

/// Any error: the client drops the region's location and retries. Not one of HBase's classes.
pub const IO_EXCEPTION: JavaClass =
    JavaClass { name: "java.io.IOException", do_not_retry: false, server_overloaded: false };

/// A server cannot be reached, or did not answer. Not one of HBase's classes.
pub const CONNECT_EXCEPTION: JavaClass =
    JavaClass { name: "java.net.ConnectException", do_not_retry: false, server_overloaded: false };

/// All attempts of a call failed. HBase's client throws it, no server does.
pub const RETRIES_EXHAUSTED: JavaClass = JavaClass {
    name: "org.apache.hadoop.hbase.client.RetriesExhaustedException",
    do_not_retry: false,
    server_overloaded: false,
};

/// Looks up a class that servers send by its full name.
pub fn by_name(name: &str) -> Option<JavaClass> {
    ALL.iter().chain([&IO_EXCEPTION, &CONNECT_EXCEPTION]).find(|class| class.name == name).copied()
}

classes! {
    /// The region is not online on this server: the client looks it up in meta again.
    NOT_SERVING_REGION = "NotServingRegionException", retry;
    /// The region moved to the server that the message names. See `JavaException::region_moved`.
    REGION_MOVED = "exceptions.RegionMovedException", retry;
    /// The region is opening on this server.
    REGION_OPENING = "exceptions.RegionOpeningException", retry;
    /// The region's memstore exceeds its limit, or a row stays locked for too long.
    REGION_TOO_BUSY = "RegionTooBusyException", retry;
    /// The bytes of queued calls exceed their limit.
    CALL_QUEUE_TOO_BIG = "CallQueueTooBigException", overloaded;
    /// The call was dropped from the queue.
    CALL_DROPPED = "CallDroppedException", overloaded;
    /// The client disconnected: the rest of its call is not executed.
    CALLER_DISCONNECTED = "ipc.CallerDisconnectedException", retry;
    /// A quota is exhausted; the message states how long to wait.
    RPC_THROTTLING = "quotas.RpcThrottlingException", retry;
    /// The response of a multi grew too large and this action was not executed.
    MULTI_ACTION_RESULT_TOO_LARGE = "MultiActionResultTooLarge", retry;
    /// A row exceeds the size that one read may return.
    ROW_TOO_BIG = "regionserver.RowTooBigException", give_up;
    /// The frame was too large.
    REQUEST_TOO_BIG = "exceptions.RequestTooBigException", give_up;
    /// The row lies outside the region.
    WRONG_REGION = "regionserver.WrongRegionException", retry;
    /// The table has no such family.
    NO_SUCH_COLUMN_FAMILY = "regionserver.NoSuchColumnFamilyException", give_up;
    /// A timestamp is too far in the future, or a cell's row differs from its mutation's row.
    FAILED_SANITY_CHECK = "exceptions.FailedSanityCheckException", give_up;
    /// No such table.
    TABLE_NOT_FOUND = "TableNotFoundException", give_up;
    /// The table is not enabled.
    TABLE_NOT_ENABLED = "TableNotEnabledException", give_up;
    /// The table is not disabled.
    TABLE_NOT_DISABLED = "TableNotDisabledException", give_up;
    /// The table exists already.
    TABLE_EXISTS = "TableExistsException", give_up;
    /// The namespace exists already.
    NAMESPACE_EXISTS = "NamespaceExistException", give_up;
    /// No such namespace.
    NAMESPACE_NOT_FOUND = "NamespaceNotFoundException", give_up;
    /// The family exists already, does not exist, or is the table's last one.
    INVALID_FAMILY_OPERATION = "InvalidFamilyOperationException", give_up;
    /// A server rule was violated. The class is only in server jars; other clients see a plain
    /// `DoNotRetryIOException`.
    CONSTRAINT = "constraint.ConstraintException", give_up;
    /// No such scanner, or its lease expired.
    UNKNOWN_SCANNER = "UnknownScannerException", give_up;
    /// The server closed the scanner after an error: the client reopens it.
    SCANNER_RESET = "exceptions.ScannerResetException", give_up;
    /// The call does not carry the expected sequence number.
    OUT_OF_ORDER_SCANNER_NEXT = "exceptions.OutOfOrderScannerNextException", give_up;
    /// A lease error.
    LEASE = "regionserver.LeaseException", give_up;
    /// The server is stopping.
    REGION_SERVER_STOPPED = "regionserver.RegionServerStoppedException", retry;
    /// The server is stopping after an error.
    REGION_SERVER_ABORTED = "regionserver.RegionServerAbortedException", retry;
    /// The server does not serve yet.
    SERVER_NOT_RUNNING_YET = "ipc.ServerNotRunningYetException", retry;
    /// The master is initialising.
    PLEASE_HOLD = "PleaseHoldException", retry;
    /// The master has stopped.
    MASTER_STOPPED = "exceptions.MasterStoppedException", give_up;
    /// No master is running.
    MASTER_NOT_RUNNING = "MasterNotRunningException", retry;
    /// A server that the master considers dead sent a report: the server must stop.
    YOU_ARE_DEAD = "YouAreDeadException", retry;
    /// A region is in a different state than the caller expects.
    UNEXPECTED_STATE = "exceptions.UnexpectedStateException", retry;
    /// The server's clock is too far from the master's.
    CLOCK_OUT_OF_SYNC = "ClockOutOfSyncException", retry;
    /// No such endpoint service or method; also the response to a Get with `closest_row_before`.
    UNKNOWN_PROTOCOL = "exceptions.UnknownProtocolException", give_up;
    /// Any error that a retry cannot fix.
    DO_NOT_RETRY_IO = "DoNotRetryIOException", give_up;
    /// Any HBase error that may be retried.
    HBASE_IO = "HBaseIOException", retry;
    /// The user may not do this.
    ACCESS_DENIED = "security.AccessDeniedException", give_up;
    /// No such region, in a call to the master.
    UNKNOWN_REGION = "UnknownRegionException", give_up;
    /// These regions cannot be merged.
    MERGE_REGION = "exceptions.MergeRegionException", give_up;
    /// The master cannot perform the operation on this region.
    DO_NOT_RETRY_REGION = "client.DoNotRetryRegionException", give_up;
    /// The snapshot exists already.
    SNAPSHOT_EXISTS = "snapshot.SnapshotExistsException", give_up;
    /// No such snapshot.
    SNAPSHOT_DOES_NOT_EXIST = "snapshot.SnapshotDoesNotExistException", give_up;
    /// The snapshot could not be created.
    SNAPSHOT_CREATION = "snapshot.SnapshotCreationException", give_up;
    /// No such snapshot was requested.
    UNKNOWN_SNAPSHOT = "snapshot.UnknownSnapshotException", give_up;
    /// Some regions of the table are not open.
    TABLE_PARTIALLY_OPEN = "snapshot.TablePartiallyOpenException", give_up;
    /// The snapshot's time to live has expired.
    SNAPSHOT_TTL_EXPIRED = "snapshot.SnapshotTTLExpiredException", give_up;
    /// A procedure was aborted. The class is only in server jars; other clients see a plain
    /// `IOException`.
    PROCEDURE_ABORTED = "procedure2.ProcedureAbortedException", retry;
    /// No such replication peer.
    REPLICATION_PEER_NOT_FOUND = "ReplicationPeerNotFoundException", give_up;
    /// A quota does not allow this.
    QUOTA_EXCEEDED = "quotas.QuotaExceededException", give_up;
    /// Stored bytes fail their checksum. The class is only in server jars; other clients see a
    /// plain `DoNotRetryIOException`.
    CORRUPT_HFILE = "io.hfile.CorruptHFileException", give_up;
    /// The connection cannot be used.
    FATAL_CONNECTION = "ipc.FatalConnectionException", give_up;
    /// The preamble names another version.
    WRONG_VERSION = "ipc.WrongVersionException", give_up;
    /// The preamble names an unknown authentication method.
    BAD_AUTH = "ipc.BadAuthException", give_up;
    /// The cell block compressor is unknown.
    UNSUPPORTED_COMPRESSION_CODEC = "ipc.UnsupportedCompressionCodecException", give_up;
    /// The cell block codec is unknown.
    UNSUPPORTED_CELL_CODEC = "ipc.UnsupportedCellCodecException", give_up;
    /// The service in the connection header is unknown.
    UNKNOWN_SERVICE = "ipc.UnknownServiceException", give_up;
    /// The client requested security information, but the server has no authentication.
    SECURITY_NOT_ENABLED = "ipc.SecurityNotEnabledException", retry;
}
