import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.KStream;

/**
 * Counts the words of a topic. Every count is written, so that the output has 1, 2, 3 and so on for each word, if
 * the guarantee that it is told is exactly_once_v2. tests/support/eos_runs/word_count.py says what it is told; it ends when its standard input does.
 */
public final class WordCount {
    private static final int FATAL = 3;
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(30);

    public static void main(String[] args) throws Exception {
        KafkaStreams streams = new KafkaStreams(topology(args[2], args[3]).build(), settings(args));
        CountDownLatch ended = new CountDownLatch(1);
        AtomicInteger code = new AtomicInteger();
        streams.setUncaughtExceptionHandler(problem -> {
            problem.printStackTrace();
            code.set(FATAL);
            ended.countDown();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> System.out.println("state " + now));
        streams.start();
        watchInput(ended);
        ended.await();
        streams.close(CLOSE_TIMEOUT);
        System.exit(code.get());
    }

    private static StreamsBuilder topology(String input, String output) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> lines = builder.stream(input);
        lines.flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word)
            .count()
            .toStream()
            .map((word, count) -> KeyValue.pair(word, word + ":" + count))
            .to(output);
        return builder;
    }

    private static Properties settings(String[] args) {
        Properties chosen = new Properties();
        chosen.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        chosen.put(StreamsConfig.APPLICATION_ID_CONFIG, args[1]);
        chosen.put(StreamsConfig.STATE_DIR_CONFIG, args[4]);
        chosen.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, args[5]);
        chosen.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        chosen.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        chosen.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        // Each count is an output of its own, and a transaction is short.
        chosen.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        chosen.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        chosen.put(StreamsConfig.POLL_MS_CONFIG, 50);
        chosen.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        chosen.put(StreamsConfig.mainConsumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), 4000);
        chosen.put(StreamsConfig.mainConsumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), 500);
        chosen.put(StreamsConfig.producerPrefix(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG), 5000);
        return chosen;
    }

    /** Nothing is ever sent to it: the end of its input is what it waits for. */
    private static void watchInput(CountDownLatch ended) {
        Thread watcher = new Thread(() -> {
            try {
                System.in.readAllBytes();
            } catch (IOException gone) {
                // As good as its end.
            }
            ended.countDown();
        });
        watcher.setDaemon(true);
        watcher.start();
    }
}
