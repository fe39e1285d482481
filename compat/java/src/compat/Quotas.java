package compat;

import static compat.Rows.b;

import org.apache.hadoop.hbase.quotas.QuotaFilter;
import org.apache.hadoop.hbase.quotas.QuotaSettingsFactory;
import org.apache.hadoop.hbase.quotas.SpaceViolationPolicy;
import org.apache.hadoop.hbase.quotas.ThrottleType;
import java.util.concurrent.TimeUnit;

/** Quotas while they are off, which is the default. */
final class Quotas implements Suite {
  @Override
  public void run(Session s) throws Exception {
    s.out.doesMessage("of a table", () -> s.admin.setQuota(
        QuotaSettingsFactory.throttleTable(s.name("t"), ThrottleType.REQUEST_NUMBER, 10, TimeUnit.SECONDS)));
    s.out.doesMessage("removed", () -> s.admin.setQuota(QuotaSettingsFactory.unthrottleUser("someone")));
    s.out.doesMessage("of space", () -> s.admin.setQuota(
        QuotaSettingsFactory.limitTableSpace(s.name("t"), 1 << 20, SpaceViolationPolicy.NO_WRITES)));
    s.out.doesMessage("listed", () -> s.admin.getQuota(new QuotaFilter()));
    s.out.see("throttles on", () -> s.admin.isRpcThrottleEnabled());
    s.out.see("switched on", () -> s.admin.switchRpcThrottle(true));
    s.out.see("switched off", () -> s.admin.switchRpcThrottle(false));
    s.out.see("to be exceeded", () -> s.admin.exceedThrottleQuotaSwitch(true));
    s.out.see("exists", () -> s.admin.tableExists(org.apache.hadoop.hbase.TableName.valueOf("hbase:quota")));
  }
}
