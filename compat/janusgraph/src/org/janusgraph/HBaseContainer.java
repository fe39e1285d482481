package org.janusgraph;

import org.janusgraph.diskstorage.configuration.ModifiableConfiguration;
import org.janusgraph.diskstorage.configuration.WriteConfiguration;
import org.janusgraph.diskstorage.hbase.HBaseStoreManager;
import org.janusgraph.graphdb.configuration.GraphDatabaseConfiguration;
import org.janusgraph.graphdb.database.idassigner.placement.SimpleBulkPlacementStrategy;
import org.testcontainers.lifecycle.Startable;

/**
 * Replaces the class of this name in JanusGraph's test jar, which starts HBase in a container. The
 * server of the run is up already, and the property `compat.zookeeper` names its port.
 */
public class HBaseContainer implements Startable {
  public HBaseContainer() {}

  public HBaseContainer(boolean mounted) {}

  @Override
  public void start() {}

  @Override
  public void stop() {}

  public WriteConfiguration getWriteConfiguration() {
    return getModifiableConfiguration().getConfiguration();
  }

  public ModifiableConfiguration getModifiableConfiguration() {
    return getNamedConfiguration("", "");
  }

  /** The settings of JanusGraph's own tests; an empty name leaves the default. */
  public ModifiableConfiguration getNamedConfiguration(String table, String graph) {
    ModifiableConfiguration config = GraphDatabaseConfiguration.buildGraphConfiguration();
    config.set(GraphDatabaseConfiguration.STORAGE_BACKEND, "hbase");
    if (table != null && !table.isEmpty()) {
      config.set(HBaseStoreManager.HBASE_TABLE, table);
    }
    if (graph != null && !graph.isEmpty()) {
      config.set(GraphDatabaseConfiguration.GRAPH_NAME, graph);
    }
    config.set(GraphDatabaseConfiguration.TIMESTAMP_PROVIDER, HBaseStoreManager.PREFERRED_TIMESTAMPS);
    config.set(GraphDatabaseConfiguration.STORAGE_HOSTS, new String[] {"127.0.0.1"});
    config.set(GraphDatabaseConfiguration.STORAGE_PORT, Integer.getInteger("compat.zookeeper"));
    config.set(SimpleBulkPlacementStrategy.CONCURRENT_PARTITIONS, 1);
    config.set(GraphDatabaseConfiguration.DROP_ON_CLEAR, false);
    return config;
  }
}
