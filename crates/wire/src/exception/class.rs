//! The Java classes that a client can be sent, and which of them end its retries.
//!
//! A client makes the exception again by its class's constructor of one text, so a class must exist in the client's
//! jar; and it stops retrying if and only if the class is a subclass of `DoNotRetryIOException`. That is what
//! [`JavaClass::do_not_retry`] says; the flag of the same name on the wire is set from it.
//!
//! Source: HBase 2.5.10 `hbase-client`, and what real servers answer.

/// A Java exception class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JavaClass {
    /// The full name.
    pub name: &'static str,
    /// Whether it is a subclass of `DoNotRetryIOException`: trying again is useless.
    pub do_not_retry: bool,
    /// Whether the client should wait longer before it tries again.
    pub server_overloaded: bool,
}

macro_rules! classes {
    ($($(#[$doc:meta])* $id:ident = $name:literal, $kind:ident;)*) => {
        $($(#[$doc])* pub const $id: JavaClass = classes!(@$kind concat!("org.apache.hadoop.hbase.", $name));)*
        /// Every class of HBase's own above.
        pub const ALL: &[JavaClass] = &[$($id),*];
    };
    (@retry $name:expr) => { JavaClass { name: $name, do_not_retry: false, server_overloaded: false } };
    (@overloaded $name:expr) => { JavaClass { name: $name, do_not_retry: false, server_overloaded: true } };
    (@give_up $name:expr) => { JavaClass { name: $name, do_not_retry: true, server_overloaded: false } };
}

/// Anything: the client drops the region's location and tries again. Not one of HBase's classes.
pub const IO_EXCEPTION: JavaClass =
    JavaClass { name: "java.io.IOException", do_not_retry: false, server_overloaded: false };

/// The class of a name, if it is one of those above.
pub fn by_name(name: &str) -> Option<JavaClass> {
    ALL.iter().chain([&IO_EXCEPTION]).find(|class| class.name == name).copied()
}

classes! {
    /// The region is not here: the client asks meta again.
    NOT_SERVING_REGION = "NotServingRegionException", retry;
    /// The region moved to a server that the message names. Made by `JavaException::region_moved`.
    REGION_MOVED = "exceptions.RegionMovedException", retry;
    /// The region is opening here.
    REGION_OPENING = "exceptions.RegionOpeningException", retry;
    /// The region's memstore is over its limit, or a row is locked for long.
    REGION_TOO_BUSY = "RegionTooBusyException", retry;
    /// The bytes of queued calls are over their limit.
    CALL_QUEUE_TOO_BIG = "CallQueueTooBigException", overloaded;
    /// The call was dropped from the queue.
    CALL_DROPPED = "CallDroppedException", overloaded;
    /// The client has gone: what is left of its call is not carried out.
    CALLER_DISCONNECTED = "ipc.CallerDisconnectedException", retry;
    /// A quota is used up; the message says how long to wait.
    RPC_THROTTLING = "quotas.RpcThrottlingException", retry;
    /// The answer of a multi grew too large and this action was not run.
    MULTI_ACTION_RESULT_TOO_LARGE = "MultiActionResultTooLarge", retry;
    /// A row is larger than a read of it in one piece may be.
    ROW_TOO_BIG = "regionserver.RowTooBigException", give_up;
    /// The frame was too large.
    REQUEST_TOO_BIG = "exceptions.RequestTooBigException", give_up;
    /// The row lies outside the region.
    WRONG_REGION = "regionserver.WrongRegionException", retry;
    /// The table has no such family.
    NO_SUCH_COLUMN_FAMILY = "regionserver.NoSuchColumnFamilyException", give_up;
    /// A timestamp too far in the future, or a row that does not belong.
    FAILED_SANITY_CHECK = "exceptions.FailedSanityCheckException", give_up;
    /// No such table.
    TABLE_NOT_FOUND = "TableNotFoundException", give_up;
    /// The table is not enabled.
    TABLE_NOT_ENABLED = "TableNotEnabledException", give_up;
    /// The table is not disabled.
    TABLE_NOT_DISABLED = "TableNotDisabledException", give_up;
    /// There is such a table already.
    TABLE_EXISTS = "TableExistsException", give_up;
    /// There is such a namespace already.
    NAMESPACE_EXISTS = "NamespaceExistException", give_up;
    /// No such namespace.
    NAMESPACE_NOT_FOUND = "NamespaceNotFoundException", give_up;
    /// The family is there already, is not there, or is the last one.
    INVALID_FAMILY_OPERATION = "InvalidFamilyOperationException", give_up;
    /// A rule of the server: exists in server jars, other clients see a plain `DoNotRetryIOException`.
    CONSTRAINT = "constraint.ConstraintException", give_up;
    /// No such scanner, or its lease ran out.
    UNKNOWN_SCANNER = "UnknownScannerException", give_up;
    /// The server closed the scanner after an error: the client opens it again.
    SCANNER_RESET = "exceptions.ScannerResetException", give_up;
    /// The call has not the number that was expected next.
    OUT_OF_ORDER_SCANNER_NEXT = "exceptions.OutOfOrderScannerNextException", give_up;
    /// Trouble with a lease.
    LEASE = "regionserver.LeaseException", give_up;
    /// The server is stopping.
    REGION_SERVER_STOPPED = "regionserver.RegionServerStoppedException", retry;
    /// The server is stopping after an error.
    REGION_SERVER_ABORTED = "regionserver.RegionServerAbortedException", retry;
    /// The server has not begun to serve.
    SERVER_NOT_RUNNING_YET = "ipc.ServerNotRunningYetException", retry;
    /// The master is initialising.
    PLEASE_HOLD = "PleaseHoldException", retry;
    /// The master has stopped.
    MASTER_STOPPED = "exceptions.MasterStoppedException", give_up;
    /// No master is running.
    MASTER_NOT_RUNNING = "MasterNotRunningException", retry;
    /// A server that counts as dead reports: it must stop.
    YOU_ARE_DEAD = "YouAreDeadException", retry;
    /// A region is in another state than the caller takes it to be in.
    UNEXPECTED_STATE = "exceptions.UnexpectedStateException", retry;
    /// The server's clock is too far from the master's.
    CLOCK_OUT_OF_SYNC = "ClockOutOfSyncException", retry;
    /// No such endpoint service or method; also the answer to a Get with closest_row_before.
    UNKNOWN_PROTOCOL = "exceptions.UnknownProtocolException", give_up;
    /// Anything final.
    DO_NOT_RETRY_IO = "DoNotRetryIOException", give_up;
    /// Anything of HBase's that may be tried again.
    HBASE_IO = "HBaseIOException", retry;
    /// The user may not do this.
    ACCESS_DENIED = "security.AccessDeniedException", give_up;
    /// No such region, in a call of the master.
    UNKNOWN_REGION = "UnknownRegionException", give_up;
    /// These regions cannot be merged.
    MERGE_REGION = "exceptions.MergeRegionException", give_up;
    /// A region that an operation of the master cannot be done on.
    DO_NOT_RETRY_REGION = "client.DoNotRetryRegionException", give_up;
    /// There is such a snapshot already.
    SNAPSHOT_EXISTS = "snapshot.SnapshotExistsException", give_up;
    /// No such snapshot.
    SNAPSHOT_DOES_NOT_EXIST = "snapshot.SnapshotDoesNotExistException", give_up;
    /// The snapshot could not be made.
    SNAPSHOT_CREATION = "snapshot.SnapshotCreationException", give_up;
    /// No such snapshot was asked for.
    UNKNOWN_SNAPSHOT = "snapshot.UnknownSnapshotException", give_up;
    /// Some regions of the table are not open.
    TABLE_PARTIALLY_OPEN = "snapshot.TablePartiallyOpenException", give_up;
    /// The snapshot's time to live has expired.
    SNAPSHOT_TTL_EXPIRED = "snapshot.SnapshotTTLExpiredException", give_up;
    /// A procedure was aborted; exists in server jars, other clients see a plain `IOException`.
    PROCEDURE_ABORTED = "procedure2.ProcedureAbortedException", retry;
    /// No such replication peer.
    REPLICATION_PEER_NOT_FOUND = "ReplicationPeerNotFoundException", give_up;
    /// A quota does not allow this.
    QUOTA_EXCEEDED = "quotas.QuotaExceededException", give_up;
    /// Stored bytes fail their check; exists in server jars, other clients see a plain `DoNotRetryIOException`.
    CORRUPT_HFILE = "io.hfile.CorruptHFileException", give_up;
    /// The connection cannot be used.
    FATAL_CONNECTION = "ipc.FatalConnectionException", give_up;
    /// The preamble names another version.
    WRONG_VERSION = "ipc.WrongVersionException", give_up;
    /// The preamble names an unknown way to log in.
    BAD_AUTH = "ipc.BadAuthException", give_up;
    /// The cell block compressor is not known.
    UNSUPPORTED_COMPRESSION_CODEC = "ipc.UnsupportedCompressionCodecException", give_up;
    /// The cell block codec is not known.
    UNSUPPORTED_CELL_CODEC = "ipc.UnsupportedCellCodecException", give_up;
    /// The service in the connection header is not known.
    UNKNOWN_SERVICE = "ipc.UnknownServiceException", give_up;
    /// The server has no login to tell about.
    SECURITY_NOT_ENABLED = "ipc.SecurityNotEnabledException", retry;
}
