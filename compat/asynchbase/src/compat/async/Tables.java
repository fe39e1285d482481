package compat.async;

import static compat.async.Table.b;

import java.util.ArrayList;
import java.util.List;
import org.hbase.async.RegionLocation;

/**
 * asynchbase's requests about tables: whether they and their families exist, and where their
 * regions are.
 */
final class Tables implements Suite {
  @Override
  public void run(Table t) throws Exception {
    t.topic("existence");
    t.does("of the table", () -> t.client.ensureTableExists(t.name));
    t.does("of a family", () -> t.client.ensureTableFamilyExists(t.name, b("f")));
    t.does("of another family", () -> t.client.ensureTableFamilyExists(t.name, b("nosuch")));
    t.does("of another table", () -> t.client.ensureTableExists("compat_async_nosuch"));
    t.topic("regions");
    t.see("all", () -> {
      List<String> regions = new ArrayList<>();
      for (RegionLocation region : Table.wait(t.client.locateRegions(t.name))) {
        regions.add("[" + Table.text(region.startKey()) + "," + Table.text(region.stopKey()) + ")");
      }
      return String.join(" ", regions);
    });
    t.does("ahead of their use", () -> t.client.prefetchMeta(t.name));
    t.does("ahead of their use, some", () -> t.client.prefetchMeta(t.name, b("r10"), b("r30")));
    t.see("known before they were asked", () -> {
      Table.wait(t.client.put(t.put("r25", "f:q", "v", 5)));
      return t.client.contendedMetaLookupCount() + t.client.uncontendedMetaLookupCount();
    });
  }
}
