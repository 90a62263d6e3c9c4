import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** KafkaConsumer, assigned some partitions of one topic; it is in no group. */
final class ConsumerPart implements Checklist.Part {
    private static final Duration POLL = Duration.ofMillis(200);

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final List<TopicPartition> partitions = new ArrayList<>();
    private final long waitMsMax;
    // What a poll brought and nobody has asked for yet.
    private final Queue<ConsumerRecord<byte[], byte[]>> unread = new ArrayDeque<>();

    ConsumerPart(JsonNode options) {
        waitMsMax = options.get("wait_ms_max").longValue();
        Properties settings = Settings.withTimeout(options);
        boolean fails = options.get("out_of_range").textValue().equals("fail");
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, fails ? "none" : "earliest");
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        boolean committed = options.get("committed").booleanValue();
        settings.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, committed ? "read_committed" : "read_uncommitted");
        if (!options.get("fetch_bytes_max").isNull()) {
            int limit = options.get("fetch_bytes_max").intValue();
            settings.put(ConsumerConfig.FETCH_MAX_BYTES_CONFIG, limit);
            settings.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, limit);
        }
        consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        for (JsonNode partition : options.get("partitions")) {
            partitions.add(new TopicPartition(options.get("topic").textValue(), partition.intValue()));
        }
        consumer.assign(partitions);
        startAt(options.get("start"));
    }

    private void startAt(JsonNode start) {
        switch (start.get("at").textValue()) {
            case "beginning":
                consumer.seekToBeginning(partitions);
                break;
            case "end":
                consumer.seekToEnd(partitions);
                break;
            case "offset":
                partitions.forEach(each -> consumer.seek(each, start.get("offset").longValue()));
                break;
            case "time":
                startAtTime(start.get("timestamp_ms").longValue());
                break;
            default:
                throw new IllegalArgumentException("start at " + start);
        }
    }

    private void startAtTime(long timestampMs) {
        Map<TopicPartition, Long> times = new HashMap<>();
        partitions.forEach(each -> times.put(each, timestampMs));
        for (Map.Entry<TopicPartition, OffsetAndTimestamp> found : consumer.offsetsForTimes(times).entrySet()) {
            if (found.getValue() == null) {
                consumer.seekToEnd(List.of(found.getKey()));
            } else {
                consumer.seek(found.getKey(), found.getValue().offset());
            }
        }
    }

    @Override
    public JsonNode answer(String operation, JsonNode request) {
        switch (operation) {
            case "settle":
                partitions.forEach(consumer::position);
                return Checklist.JSON.nullNode();
            case "read":
                return read(request.get("count").intValue());
            default:
                throw new IllegalArgumentException("a consumer cannot " + operation);
        }
    }

    private ArrayNode read(int count) {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(waitMsMax);
        while (unread.size() < count) {
            if (System.nanoTime() - deadline > 0) {
                throw new TimeoutException(unread.size() + " of " + count + " records came within " + waitMsMax + " ms");
            }
            consumer.poll(POLL).forEach(unread::add);
        }
        ArrayNode seen = Checklist.JSON.arrayNode();
        for (int number = 0; number < count; number++) {
            seen.add(described(unread.remove()));
        }
        return seen;
    }

    static ObjectNode described(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode seen = Checklist.JSON.objectNode();
        seen.put("partition", record.partition());
        seen.put("offset", record.offset());
        seen.put("timestamp_ms", record.timestamp());
        seen.put("timestamp_type", record.timestampType().id);
        seen.put("key", record.key());
        seen.put("value", record.value());
        ArrayNode headers = seen.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value());
        }
        return seen;
    }

    @Override
    public void close() {
        consumer.close(CloseOptions.timeout(Duration.ZERO));
    }
}
