import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Kafka's own consumer, by assignment: ADDRESS TOPIC PARTITIONS COUNT. Kafka's ConsumerPerformance needs a group.
 *
 * Prints "COUNT BYTES SECONDS", from the first record that came in to the last. All settings are the defaults.
 */
public class BrokerConsume {
    public static void main(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        long wanted = Long.parseLong(args[3]);
        long count = 0, bytes = 0, first = 0, last = 0;
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (int i = 0; i < Integer.parseInt(args[2]); i++)
                partitions.add(new TopicPartition(args[1], i));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            while (count < wanted) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                if (records.isEmpty())
                    continue;
                last = System.nanoTime();
                if (count == 0)
                    first = last;
                for (ConsumerRecord<byte[], byte[]> record : records)
                    bytes += record.value().length;
                count += records.count();
            }
        }
        System.out.printf("%d %d %.6f%n", count, bytes, (last - first) / 1e9);
    }
}
