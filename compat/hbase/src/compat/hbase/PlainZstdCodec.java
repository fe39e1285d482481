package compat.hbase;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdInputStreamNoFinalizer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import org.apache.hadoop.conf.Configurable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.CompressionInputStream;
import org.apache.hadoop.io.compress.CompressionOutputStream;
import org.apache.hadoop.io.compress.Compressor;
import org.apache.hadoop.io.compress.Decompressor;

/**
 * The stream of Hadoop's ZStandardCodec (a plain Zstandard frame) without Hadoop's native library.
 *
 * <p>The streams do all the work; the compressor and decompressor that HBase requires do nothing.
 */
public final class PlainZstdCodec implements CompressionCodec, Configurable {
  private static final int LEVEL = 3;

  private Configuration conf;

  @Override
  public void setConf(Configuration conf) {
    this.conf = conf;
  }

  @Override
  public Configuration getConf() {
    return conf;
  }

  @Override
  public CompressionOutputStream createOutputStream(OutputStream out) {
    return new FrameOutput(out);
  }

  @Override
  public CompressionOutputStream createOutputStream(OutputStream out, Compressor compressor) {
    return new FrameOutput(out);
  }

  @Override
  public CompressionInputStream createInputStream(InputStream in) throws IOException {
    return new FrameInput(in);
  }

  @Override
  public CompressionInputStream createInputStream(InputStream in, Decompressor decompressor) throws IOException {
    return new FrameInput(in);
  }

  @Override
  public Class<? extends Compressor> getCompressorType() {
    return Nothing.class;
  }

  @Override
  public Compressor createCompressor() {
    return new Nothing();
  }

  @Override
  public Class<? extends Decompressor> getDecompressorType() {
    return Nothing.class;
  }

  @Override
  public Decompressor createDecompressor() {
    return new Nothing();
  }

  @Override
  public String getDefaultExtension() {
    return ".zst";
  }

  /** Collects written bytes into one frame. */
  private static final class FrameOutput extends CompressionOutputStream {
    private final ByteArrayOutputStream plain = new ByteArrayOutputStream();
    private boolean finished;

    FrameOutput(OutputStream out) {
      super(out);
    }

    @Override
    public void write(int one) {
      plain.write(one);
    }

    @Override
    public void write(byte[] bytes, int offset, int length) {
      plain.write(bytes, offset, length);
    }

    @Override
    public void flush() {
      // Only a complete frame is written.
    }

    @Override
    public void finish() throws IOException {
      if (!finished) {
        finished = true;
        out.write(Zstd.compress(plain.toByteArray(), LEVEL));
        out.flush();
      }
    }

    @Override
    public void resetState() {
      plain.reset();
      finished = false;
    }
  }

  private static final class FrameInput extends CompressionInputStream {
    private final ZstdInputStreamNoFinalizer plain;

    FrameInput(InputStream in) throws IOException {
      super(in);
      plain = new ZstdInputStreamNoFinalizer(in);
    }

    @Override
    public int read() throws IOException {
      return plain.read();
    }

    @Override
    public int read(byte[] bytes, int offset, int length) throws IOException {
      return plain.read(bytes, offset, length);
    }

    @Override
    public void resetState() {
      // A stream is read once.
    }

    @Override
    public void close() throws IOException {
      plain.close();
      super.close();
    }
  }

  /** A placeholder for HBase's compressor or decompressor. */
  public static final class Nothing implements Compressor, Decompressor {
    @Override
    public void setInput(byte[] bytes, int offset, int length) {
    }

    @Override
    public boolean needsInput() {
      return true;
    }

    @Override
    public void setDictionary(byte[] bytes, int offset, int length) {
    }

    @Override
    public boolean needsDictionary() {
      return false;
    }

    @Override
    public long getBytesRead() {
      return 0;
    }

    @Override
    public long getBytesWritten() {
      return 0;
    }

    @Override
    public void finish() {
    }

    @Override
    public boolean finished() {
      return false;
    }

    @Override
    public int compress(byte[] bytes, int offset, int length) {
      return 0;
    }

    @Override
    public int decompress(byte[] bytes, int offset, int length) {
      return 0;
    }

    @Override
    public int getRemaining() {
      return 0;
    }

    @Override
    public void reset() {
    }

    @Override
    public void end() {
    }

    @Override
    public void reinit(Configuration conf) {
    }
  }
}
