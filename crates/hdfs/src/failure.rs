//! Why a call to a NameNode failed, and the [`fs::Error`] for it.

use fs::{Error, FilePath};

/// Why a call failed.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The NameNode returned an exception.
    Remote { class: String, message: String },
    /// No active NameNode responded within the time limit.
    Unreachable { message: String },
}

impl Failure {
    /// Whether it is an exception of this class, given without its package, or of a class nested
    /// in it.
    pub(crate) fn is(&self, name: &str) -> bool {
        match self {
            Failure::Remote { class, .. } => class.rsplit(['.', '$']).next() == Some(name),
            Failure::Unreachable { .. } => false,
        }
    }

    /// Whether the file's lease belongs to another client now, or the file was removed.
    pub(crate) fn means_fenced(&self) -> bool {
        self.is("LeaseExpiredException") || self.is("FileNotFoundException")
    }

    /// Whether a parent of the path is a file. If permissions are not checked, HDFS still reports
    /// this as a lack of permission.
    pub(crate) fn means_parent_is_file(&self) -> bool {
        let says_so = |message: &str| message.contains("(is not a directory)");
        self.is("ParentNotDirectoryException")
            || matches!(self, Failure::Remote { message, .. } if says_so(message))
    }

    /// Whether the path or one of its parents does not exist.
    pub(crate) fn means_not_found(&self) -> bool {
        self.is("FileNotFoundException") || self.means_parent_is_file()
    }

    /// Whether a file was not created because its contents would have to be encrypted.
    pub(crate) fn means_encrypted(&self) -> bool {
        self.is("UnknownCryptoProtocolVersionException")
    }

    /// Whether no DataNode can store a block.
    pub(crate) fn means_no_datanode(&self) -> bool {
        matches!(self, Failure::Remote { message, .. } if message.contains("could only be written to"))
    }

    fn is_quota(&self) -> bool {
        matches!(self, Failure::Remote { class, .. } if class.contains("Quota") && class.contains("Exceeded"))
    }

    /// The message without the stack trace.
    pub(crate) fn message(&self) -> String {
        match self {
            Failure::Remote { class, message } => {
                let name = class.rsplit('.').next().unwrap_or_default();
                format!("{name}: {}", message.lines().next().unwrap_or_default())
            }
            Failure::Unreachable { message } => message.clone(),
        }
    }

    /// The error of `operation` on `path`.
    pub(crate) fn at(&self, path: &FilePath, operation: &'static str) -> Error {
        let path = path.clone();
        if self.means_not_found() {
            Error::NotFound { path }
        } else if self.is("FileAlreadyExistsException") || self.is("AlreadyBeingCreatedException") {
            Error::AlreadyExists { path }
        } else if self.is("LeaseExpiredException") {
            Error::TakenOver { path }
        } else if self.is_quota() || self.means_no_datanode() {
            Error::NoSpace { path }
        } else {
            Error::Io { path, operation, message: self.message() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(class: &str, message: &str) -> Error {
        let failure = Failure::Remote { class: class.to_owned(), message: message.to_owned() };
        failure.at(&FilePath::new("a"), "test")
    }

    #[test]
    fn exceptions_have_errors() {
        let protocol = "org.apache.hadoop.hdfs.protocol";
        assert!(matches!(error_of("java.io.FileNotFoundException", "x"), Error::NotFound { .. }));
        for quota in
            ["DSQuotaExceededException", "NSQuotaExceededException", "QuotaByStorageTypeExceededException"]
        {
            assert!(
                matches!(error_of(&format!("{protocol}.{quota}"), "x"), Error::NoSpace { .. }),
                "{quota}"
            );
        }
        let full = "File /a could only be written to 0 of the 1 minReplication nodes.";
        assert!(matches!(error_of("java.io.IOException", full), Error::NoSpace { .. }));
        let taken = error_of("org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException", "x");
        assert!(matches!(taken, Error::TakenOver { .. }));
        let other =
            error_of("org.apache.hadoop.security.AccessControlException", "Permission denied\n\tat x");
        assert_eq!(other.to_string(), "a: test failed: AccessControlException: Permission denied");
    }
}
