//! HBase's znodes below its parent znode (`zookeeper.znode.parent`).

/// Paths of HBase's znodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    parent: String,
}

impl Default for Names {
    fn default() -> Names {
        Names::below("/hbase")
    }
}

impl Names {
    /// Names below `parent`, which must be absolute. Trailing slashes are removed.
    pub fn below(parent: &str) -> Names {
        Names { parent: parent.trim_end_matches('/').to_string() }
    }

    /// The parent itself.
    pub fn parent(&self) -> &str {
        if self.parent.is_empty() { "/" } else { &self.parent }
    }

    /// The cluster's id.
    pub fn hbaseid(&self) -> String {
        self.child("hbaseid")
    }

    /// The active master.
    pub fn master(&self) -> String {
        self.child("master")
    }

    /// The location of a replica of `hbase:meta`. The first replica's znode has the name without a
    /// number.
    pub fn meta_region_server(&self, replica_id: u32) -> String {
        match replica_id {
            0 => self.child("meta-region-server"),
            replica => self.child(&format!("meta-region-server-{replica}")),
        }
    }

    /// The region servers, one child each.
    pub fn rs(&self) -> String {
        self.child("rs")
    }

    /// One region server, by `host,port,start code`.
    pub fn region_server(&self, server_name: &str) -> String {
        format!("{}/{server_name}", self.rs())
    }

    /// Masters waiting to become active, one child each.
    pub fn backup_masters(&self) -> String {
        self.child("backup-masters")
    }

    /// One waiting master, by `host,port,start code`.
    pub fn backup_master(&self, server_name: &str) -> String {
        format!("{}/{server_name}", self.backup_masters())
    }

    /// Exists while the cluster is up.
    pub fn running(&self) -> String {
        self.child("running")
    }

    /// Region servers that are being drained, one child each.
    pub fn draining(&self) -> String {
        self.child("draining")
    }

    /// One region server that is being drained, by `host,port,start code`.
    pub fn draining_server(&self, server_name: &str) -> String {
        format!("{}/{server_name}", self.draining())
    }

    /// Table states, for clients before 2.0.
    pub fn table(&self) -> String {
        self.child("table")
    }

    /// Namespaces, for tools.
    pub fn namespace(&self) -> String {
        self.child("namespace")
    }

    /// Switches of the master (splits, merges, balancer).
    pub fn switch(&self) -> String {
        self.child("switch")
    }

    /// The child `name` of the parent.
    pub fn child(&self, name: &str) -> String {
        format!("{}/{name}", self.parent)
    }
}
