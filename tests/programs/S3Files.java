import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PositionedReadable;
import org.apache.hadoop.fs.Seekable;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/** A small client of the S3 protocol for Spark in tests, in place of the JAR hadoop-aws: small files, no real signatures. */
public class S3Files extends FileSystem {
    private static final Pattern ENTRY = Pattern.compile(
            "<Contents>.*?<Key>(.*?)</Key>.*?<LastModified>(.*?)</LastModified>.*?<Size>(\\d+)</Size>.*?</Contents>",
            Pattern.DOTALL);
    private static final String SIGNATURE = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, "
            + "SignedHeaders=host, Signature=0"; // the server of the tests asks for one and does not check it
    private final HttpClient client = HttpClient.newHttpClient();
    private URI uri;
    private String server;

    @Override
    public void initialize(URI name, Configuration conf) throws IOException {
        super.initialize(name, conf);
        setConf(conf);
        uri = URI.create(name.getScheme() + "://" + name.getAuthority());
        server = conf.get("test.s3.server");
    }

    @Override
    public URI getUri() {
        return uri;
    }

    @Override
    public void setWorkingDirectory(Path folder) {
    }

    @Override
    public Path getWorkingDirectory() {
        return new Path(uri + "/");
    }

    private String key(Path path) {
        return makeQualified(path).toUri().getPath().substring(1);
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    private HttpResponse<byte[]> send(String method, String key, String query, byte[] body) throws IOException {
        String url = server + "/" + uri.getAuthority() + "/" + encoded(key).replace("%2F", "/") + query;
        HttpRequest request = HttpRequest.newBuilder(URI.create(url)).header("Authorization", SIGNATURE).method(method,
                body == null ? BodyPublishers.noBody() : BodyPublishers.ofByteArray(body)).build();
        try {
            HttpResponse<byte[]> answer = client.send(request, HttpResponse.BodyHandlers.ofByteArray());
            if (answer.statusCode() >= 300) {
                throw new IOException(method + " " + url + ": " + answer.statusCode());
            }
            return answer;
        } catch (InterruptedException error) {
            throw new IOException(error);
        }
    }

    private void put(String key, byte[] body) throws IOException {
        send("PUT", key, "", body);
    }

    /** The size and time of every key with a prefix. */
    private Map<String, long[]> keys(String prefix) throws IOException {
        Map<String, long[]> found = new TreeMap<>();
        byte[] body = send("GET", "", "?list-type=2&max-keys=1000&prefix=" + encoded(prefix), null).body();
        Matcher entry = ENTRY.matcher(new String(body, StandardCharsets.UTF_8));
        while (entry.find()) {
            String key = entry.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
            long time = Instant.parse(entry.group(2)).toEpochMilli();
            found.put(key, new long[] {Long.parseLong(entry.group(3)), time});
        }
        return found;
    }

    private FileStatus file(Path path, long[] facts) {
        return new FileStatus(facts[0], false, 1, 32 << 20, facts[1], makeQualified(path));
    }

    private FileStatus folder(Path path) {
        return new FileStatus(0, true, 0, 0, 0, makeQualified(path));
    }

    @Override
    public FileStatus getFileStatus(Path path) throws IOException {
        String key = key(path);
        Map<String, long[]> found = keys(key);
        if (!key.isEmpty() && found.containsKey(key)) {
            return file(path, found.get(key));
        }
        if (key.isEmpty() || found.keySet().stream().anyMatch(name -> name.startsWith(key + "/"))) {
            return folder(path);
        }
        throw new FileNotFoundException(path.toString());
    }

    @Override
    public FileStatus[] listStatus(Path path) throws IOException {
        FileStatus self = getFileStatus(path);
        if (self.isFile()) {
            return new FileStatus[] {self};
        }
        String prefix = key(path).isEmpty() ? "" : key(path) + "/";
        Map<String, FileStatus> inside = new TreeMap<>();
        for (Map.Entry<String, long[]> entry : keys(prefix).entrySet()) {
            String rest = entry.getKey().substring(prefix.length());
            int slash = rest.indexOf('/');
            String name = slash < 0 ? rest : rest.substring(0, slash);
            if (!name.isEmpty()) {
                Path child = new Path(makeQualified(path), new Path(null, null, name));
                inside.put(name, slash < 0 ? file(child, entry.getValue()) : folder(child));
            }
        }
        return inside.values().toArray(new FileStatus[0]);
    }

    @Override
    public boolean mkdirs(Path path, FsPermission permission) throws IOException {
        put(key(path) + "/", new byte[0]);
        return true;
    }

    @Override
    public FSDataInputStream open(Path path, int bufferSize) throws IOException {
        getFileStatus(path);
        return new FSDataInputStream(new Bytes(send("GET", key(path), "", null).body()));
    }

    @Override
    public FSDataOutputStream create(Path path, FsPermission permission, boolean overwrite, int bufferSize,
            short replication, long blockSize, Progressable progress) throws IOException {
        if (!overwrite && exists(path)) {
            throw new FileAlreadyExistsException(path.toString());
        }
        String key = key(path);
        return new FSDataOutputStream(new ByteArrayOutputStream() {
            private boolean closed;

            @Override
            public void close() throws IOException {
                if (!closed) {
                    closed = true;
                    put(key, toByteArray());
                }
            }
        }, null);
    }

    @Override
    public FSDataOutputStream append(Path path, int bufferSize, Progressable progress) {
        throw new UnsupportedOperationException("append");
    }

    @Override
    public boolean rename(Path from, Path to) throws IOException {
        if (!exists(from)) {
            return false;
        }
        Path target = exists(to) && getFileStatus(to).isDirectory() ? new Path(to, from.getName()) : to;
        String old = key(from);
        for (String key : keys(old).keySet()) {
            if (key.equals(old) || key.startsWith(old + "/")) {
                put(key(target) + key.substring(old.length()), send("GET", key, "", null).body());
                send("DELETE", key, "", null);
            }
        }
        return true;
    }

    @Override
    public boolean delete(Path path, boolean recursive) throws IOException {
        if (!exists(path)) {
            return false;
        }
        String gone = key(path);
        for (String key : keys(gone).keySet()) {
            if (key.equals(gone) || key.startsWith(gone + "/")) {
                send("DELETE", key, "", null);
            }
        }
        return true;
    }

    private static class Bytes extends ByteArrayInputStream implements Seekable, PositionedReadable {
        Bytes(byte[] bytes) {
            super(bytes);
        }

        @Override
        public void seek(long position) {
            pos = (int) position;
        }

        @Override
        public long getPos() {
            return pos;
        }

        @Override
        public boolean seekToNewSource(long target) {
            return false;
        }

        @Override
        public int read(long position, byte[] buffer, int offset, int length) {
            int count = Math.min(length, this.count - (int) position);
            if (count <= 0) {
                return -1;
            }
            System.arraycopy(buf, (int) position, buffer, offset, count);
            return count;
        }

        @Override
        public void readFully(long position, byte[] buffer, int offset, int length) throws IOException {
            if (read(position, buffer, offset, length) < length) {
                throw new IOException("the end of the file");
            }
        }

        @Override
        public void readFully(long position, byte[] buffer) throws IOException {
            readFully(position, buffer, 0, buffer.length);
        }
    }
}
