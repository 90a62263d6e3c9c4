import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** KafkaConsumer as a member of a group: tests/support/clients/remote_groups.py says what it is asked. */
final class MemberPart implements Checklist.Part {
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Duration moment;
    private final long waitMsMax;
    // What a poll brought and nobody has asked for yet.
    private final Queue<ConsumerRecord<byte[], byte[]>> unread = new ArrayDeque<>();
    // After what was asked for.
    private final Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();

    MemberPart(JsonNode options) {
        waitMsMax = options.get("wait_ms_max").longValue();
        moment = Duration.ofMillis(options.get("moment_ms").longValue());
        consumer = new KafkaConsumer<>(settings(options), new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of(options.get("topic").textValue()));
    }

    private static Properties settings(JsonNode options) {
        Properties settings = Settings.withTimeout(options);
        String protocol = options.get("protocol").textValue();
        settings.put(ConsumerConfig.GROUP_ID_CONFIG, options.get("group").textValue());
        settings.put(ConsumerConfig.GROUP_PROTOCOL_CONFIG, protocol);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        if (protocol.equals("classic")) {
            settings.put(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, options.get("session_ms").intValue());
            settings.put(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, options.get("heartbeat_ms").intValue());
        }
        if (!options.get("instance").isNull()) {
            settings.put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, options.get("instance").textValue());
        }
        return settings;
    }

    @Override
    public JsonNode answer(String operation, JsonNode request) {
        switch (operation) {
            case "partitions":
                consumer.poll(moment).forEach(unread::add);
                ArrayNode found = Checklist.JSON.arrayNode();
                consumer.assignment().forEach(each -> found.add(each.partition()));
                return found;
            case "read":
                return read(request.get("count").intValue());
            case "commit":
                consumer.commitSync(positions);
                return Checklist.JSON.nullNode();
            default:
                throw new IllegalArgumentException("a member cannot " + operation);
        }
    }

    private ArrayNode read(int count) {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(waitMsMax);
        while (unread.size() < count) {
            if (System.nanoTime() - deadline > 0) {
                throw new TimeoutException(unread.size() + " of " + count + " records came within " + waitMsMax + " ms");
            }
            consumer.poll(moment).forEach(unread::add);
        }
        ArrayNode seen = Checklist.JSON.arrayNode();
        for (int number = 0; number < count; number++) {
            ConsumerRecord<byte[], byte[]> record = unread.remove();
            TopicPartition place = new TopicPartition(record.topic(), record.partition());
            positions.put(place, new OffsetAndMetadata(record.offset() + 1));
            seen.add(ConsumerPart.described(record));
        }
        return seen;
    }

    @Override
    public void close() {
        consumer.close();
    }
}
