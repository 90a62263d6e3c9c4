import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** KafkaProducer, for one topic. */
final class ProducerPart implements Checklist.Part {
    private static final int REQUEST_TIMEOUT_MS_MAX = 30_000;

    private final KafkaProducer<byte[], byte[]> producer;
    private final String topic;
    private final long waitMsMax;
    // send() of KafkaProducer waits for the topic's metadata, and whoever asks us to send does not wait: so the
    // messages are handed over by one thread, in their order.
    private final ExecutorService sender = Executors.newSingleThreadExecutor(ProducerPart::daemon);
    private final List<Future<Future<RecordMetadata>>> sent = new ArrayList<>();

    ProducerPart(JsonNode options) {
        topic = options.get("topic").textValue();
        waitMsMax = options.get("wait_ms_max").longValue();
        int giveUpAfterMs = options.get("give_up_after_ms").intValue();
        int lingerMs = options.get("linger_ms").intValue();
        boolean idempotent = options.get("idempotent").booleanValue();
        Properties settings = Settings.common(options);
        settings.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, options.get("codec").textValue());
        settings.put(ProducerConfig.ACKS_CONFIG, Integer.toString(options.get("acks").intValue()));
        settings.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, idempotent);
        // Without idempotence a retry may pass its neighbour unless there is one at a time.
        settings.put(ProducerConfig.MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION, idempotent ? 5 : 1);
        settings.put(ProducerConfig.LINGER_MS_CONFIG, lingerMs);
        settings.put(ProducerConfig.BATCH_SIZE_CONFIG, options.get("batch_bytes_max").intValue());
        settings.put(ProducerConfig.MAX_BLOCK_MS_CONFIG, giveUpAfterMs);
        settings.put(ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, giveUpAfterMs);
        // A request has to end within the time of the message.
        settings.put(ProducerConfig.REQUEST_TIMEOUT_MS_CONFIG, Math.min(REQUEST_TIMEOUT_MS_MAX, giveUpAfterMs - lingerMs));
        producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static Thread daemon(Runnable work) {
        Thread thread = new Thread(work, "sender");
        thread.setDaemon(true);
        return thread;
    }

    @Override
    public JsonNode answer(String operation, JsonNode request) throws Exception {
        switch (operation) {
            case "send":
                ProducerRecord<byte[], byte[]> record = record(request);
                sent.add(sender.submit((Callable<Future<RecordMetadata>>) () -> producer.send(record)));
                return Checklist.JSON.nullNode();
            case "finish":
                return finish();
            default:
                throw new IllegalArgumentException("a producer cannot " + operation);
        }
    }

    private ProducerRecord<byte[], byte[]> record(JsonNode request) throws IOException {
        Integer partition = request.get("partition").isNull() ? null : request.get("partition").intValue();
        Long timestamp = request.get("timestamp_ms").isNull() ? null : request.get("timestamp_ms").longValue();
        List<Header> headers = new ArrayList<>();
        for (JsonNode header : request.get("headers")) {
            headers.add(new RecordHeader(header.get(0).textValue(), header.get(1).binaryValue()));
        }
        byte[] key = request.get("key").binaryValue();
        return new ProducerRecord<>(topic, partition, timestamp, key, request.get("value").binaryValue(), headers);
    }

    private ArrayNode finish() {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(waitMsMax);
        ArrayNode deliveries = Checklist.JSON.arrayNode();
        for (Future<Future<RecordMetadata>> each : sent) {
            try {
                RecordMetadata place = left(left(each, deadline), deadline);
                Long offset = place.hasOffset() ? place.offset() : null;
                deliveries.addObject().put("partition", place.partition()).put("offset", offset);
            } catch (Exception error) {
                deliveries.addObject().set("error", Checklist.described(error));
            }
        }
        return deliveries;
    }

    private static <T> T left(Future<T> future, long deadline) throws Exception {
        return future.get(Math.max(0, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
    }

    @Override
    public void close() {
        sender.shutdownNow();
        producer.close(Duration.ZERO);
    }
}
