import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.io.nativeio.NativeIO;

/**
 * A DataNode that uses directories of the type RAM_DISK. An ordinary one refuses them without Hadoop's
 * native library, which locks memory and is not among the jars.
 */
class UnlockedDataNode {
    public static void main(String[] arguments) {
        NativeIO.POSIX.setCacheManipulator(new NativeIO.POSIX.NoMlockCacheManipulator());
        DataNode.main(arguments);
    }
}
