package org.apache.hadoop.hbase.thrift2;

import compat.Gateways;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.security.UserProvider;
import org.apache.hadoop.hbase.thrift2.generated.THBaseService;
import org.apache.hadoop.hbase.thrift2.generated.TIOError;
import org.apache.thrift.TBase;
import org.apache.thrift.TException;
import org.apache.thrift.TFieldIdEnum;

/**
 * Replaces HBase's class of this name, which executes the calls of Thrift 2. The tests call it directly;
 * here each call goes to the gateway of the run.
 */
public class ThriftHBaseServiceHandler extends THBaseService.Client {
  /** The field of results that holds a TIOError, in all methods that declare one. */
  private static final int IO_ERROR_FIELD = 1;

  public ThriftHBaseServiceHandler(Configuration conf, UserProvider users) throws IOException {
    super(Gateways.connect(2, conf));
  }

  @Override
  protected void receiveBase(TBase<?, ?> result, String method) throws TException {
    super.receiveBase(result, method);
    restoreCause(result);
  }

  /** The tests check the class of the cause; of it, a response has only whether to retry. */
  private static <T extends TBase<T, F>, F extends TFieldIdEnum> void restoreCause(TBase<?, ?> result) {
    @SuppressWarnings("unchecked")
    TBase<T, F> typed = (TBase<T, F>) result;
    F field = typed.fieldForId(IO_ERROR_FIELD);
    if (field != null && typed.isSet(field) && typed.getFieldValue(field) instanceof TIOError error
        && error.isSetCanRetry() && !error.isCanRetry()) {
      error.initCause(new DoNotRetryIOException(error.getMessage()));
    }
  }
}
