import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** The journal of a member: tests/support/group_runs/journal.py says what its lines mean. */
final class GroupJournal {
    private final FileChannel file;
    /** What was read and is not committed yet, by partition. */
    final Map<Integer, Long> unsaved = new TreeMap<>();

    GroupJournal(String path) throws IOException {
        file = FileChannel.open(
            Path.of(path), StandardOpenOption.WRITE, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    void write(String word, String what) {
        Instant now = Instant.now();
        long micros = now.getEpochSecond() * 1_000_000 + now.getNano() / 1000;
        String line = micros + " " + word + (what.isEmpty() ? "" : " " + what.replace('\n', ' ')) + "\n";
        try {
            file.write(ByteBuffer.wrap(line.getBytes(StandardCharsets.UTF_8)));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    void given(String word, Collection<TopicPartition> partitions) {
        if (partitions.isEmpty()) {
            return;
        }
        partitions.forEach(each -> unsaved.remove(each.partition()));
        write(word, partitions.stream().map(each -> "" + each.partition()).collect(Collectors.joining(" ")));
    }

    void read(int partition, List<ConsumerRecord<byte[], byte[]>> records) {
        long first = -1;
        long last = -1;
        for (ConsumerRecord<byte[], byte[]> record : records) {
            String value = new String(record.value(), StandardCharsets.UTF_8);
            if (!value.equals(partition + "/" + record.offset())) {
                write("wrong", "partition " + partition + " offset " + record.offset() + ": " + value);
            }
            if (first < 0) {
                first = record.offset();
            } else if (record.offset() != last + 1) {
                write("read", partition + " " + first + " " + last);
                first = record.offset();
            }
            last = record.offset();
        }
        write("read", partition + " " + first + " " + last);
        unsaved.put(partition, last + 1);
    }

    void positions(String word, Map<Integer, Long> positions) {
        write(word, positions.entrySet().stream()
            .map(each -> each.getKey() + ":" + each.getValue()).collect(Collectors.joining(" ")));
    }
}
