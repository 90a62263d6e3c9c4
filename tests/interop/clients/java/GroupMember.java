import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member of a group with the published Java client; tests/support/group_runs/orders.py says what it is told. */
public final class GroupMember implements ConsumerRebalanceListener {
    private final JsonNode orders;
    private final String topic;
    private final GroupJournal journal;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final AtomicBoolean toldToLeave;
    private boolean leaves = false;

    public static void main(String[] args) throws Exception {
        new GroupMember(new ObjectMapper().readTree(args[0])).run();
    }

    private GroupMember(JsonNode orders) throws IOException {
        this.orders = orders;
        topic = orders.get("topic").textValue();
        journal = new GroupJournal(orders.get("journal").textValue());
        journal.write("ready", "");
        awaitLine();
        toldToLeave = watchInput();
        consumer = new KafkaConsumer<>(settings(orders), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static Properties settings(JsonNode orders) {
        Properties chosen = new Properties();
        boolean isClassic = orders.get("protocol").textValue().equals("classic");
        chosen.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, orders.get("address").textValue());
        chosen.put(ConsumerConfig.GROUP_ID_CONFIG, orders.get("group").textValue());
        chosen.put(ConsumerConfig.GROUP_PROTOCOL_CONFIG, orders.get("protocol").textValue());
        chosen.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        chosen.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        chosen.put(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, orders.get("poll_ms").intValue());
        chosen.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, orders.get("records_max").intValue());
        if (isClassic) {
            // The broker says them in the new protocol.
            chosen.put(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, orders.get("session_ms").intValue());
            chosen.put(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, orders.get("heartbeat_ms").intValue());
        }
        String assignor = orders.get("assignor").textValue();
        if (!assignor.isEmpty()) {
            chosen.put(isClassic ? ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG
                : ConsumerConfig.GROUP_REMOTE_ASSIGNOR_CONFIG, assignor);
        }
        if (!orders.get("instance").isNull()) {
            chosen.put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, orders.get("instance").textValue());
        }
        return chosen;
    }

    private void run() throws IOException {
        consumer.subscribe(List.of(topic), this);
        Duration wait = Duration.ofMillis(orders.get("poll_ms").longValue());
        long commitEvery = orders.get("commit_every_ms").longValue() * 1_000_000;
        long commitAt = System.nanoTime();
        while (!toldToLeave.get()) {
            ConsumerRecords<byte[], byte[]> found = consumer.poll(wait);
            for (TopicPartition place : found.partitions()) {
                journal.read(place.partition(), found.records(place));
            }
            if (System.nanoTime() >= commitAt) {
                commit();
                commitAt = System.nanoTime() + commitEvery;
            }
        }
        commit();
        leaves = true;
        journal.write("left", "");
        consumer.close();
    }

    /** It joins when it is told to. */
    private static void awaitLine() throws IOException {
        for (int letter = System.in.read(); letter >= 0 && letter != '\n'; letter = System.in.read()) {
        }
    }

    /** Nothing else is ever sent to it: the end of its input is what it waits for. */
    private static AtomicBoolean watchInput() {
        AtomicBoolean ended = new AtomicBoolean();
        Thread watcher = new Thread(() -> {
            try {
                System.in.readAllBytes();
            } catch (IOException gone) {
                // As good as its end.
            }
            ended.set(true);
        });
        watcher.setDaemon(true);
        watcher.start();
        return ended;
    }

    private void commit() {
        Map<Integer, Long> positions = new TreeMap<>(journal.unsaved);
        if (positions.isEmpty()) {
            return;
        }
        Map<TopicPartition, OffsetAndMetadata> places = new HashMap<>();
        positions.forEach((where, at) -> places.put(new TopicPartition(topic, where), new OffsetAndMetadata(at)));
        journal.positions("committing", positions);
        try {
            consumer.commitSync(places);
        } catch (KafkaException refused) {
            journal.write("refused", refused.toString());
            return;
        }
        journal.positions("committed", positions);
        journal.unsaved.clear();
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        journal.given("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        if (!leaves) {
            commit();
            journal.given("revoked", partitions);
        }
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        if (!leaves) {
            journal.given("lost", partitions);
        }
    }
}
