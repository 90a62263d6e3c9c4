import com.dynatrace.hash4j.hashing.Hashing;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.Utils;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;

/** The hashes of topics and groups, and the plain hash under them for every length that has its own way. */
final class Hashes {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final int EVERY_LENGTH_TO = 330;
    private static final int[] LONG = {511, 512, 513, 1023, 1024, 1025, 1088, 1089, 2048, 2049, 3000, 10000};
    private static final int TOPICS = 60;
    private static final int GROUPS = 30;
    // Of racks: a broker may have none, and Java's order and length of the last ones are not those of code points.
    private static final String[] RACKS = {null, null, "a", "b", "eu-west-1c", "\uff21", "\ud83c\udff0"};

    private Hashes() {}

    static List<JsonNode> cases() {
        List<JsonNode> cases = new ArrayList<>();
        for (int length = 0; length <= EVERY_LENGTH_TO; length++) {
            cases.add(plain(length));
        }
        for (int length : LONG) {
            cases.add(plain(length));
        }
        Random random = new Random(7);
        List<Long> topicHashes = new ArrayList<>();
        for (int number = 0; number < TOPICS; number++) {
            ObjectNode topic = topic(random, number);
            topicHashes.add(topic.get("hash").asLong());
            cases.add(topic);
        }
        for (int number = 0; number < GROUPS; number++) {
            cases.add(group(random, topicHashes, number));
        }
        return cases;
    }

    private static ObjectNode plain(int length) {
        byte[] data = new byte[length];
        for (int index = 0; index < length; index++) {
            data[index] = (byte) (index * index * 31 + index * 7 + length);
        }
        long hash = Hashing.xxh3_64().hashBytesToLong(data);
        return JSON.objectNode().put("kind", "plain").put("length", length).put("hash", hash);
    }

    private static ObjectNode topic(Random random, int number) {
        ObjectNode node = JSON.objectNode().put("kind", "topic");
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        ObjectNode brokers = node.putObject("brokers");
        int brokerCount = 1 + random.nextInt(6);
        for (int id = 0; id < brokerCount; id++) {
            String rack = number % 3 == 0 ? null : RACKS[random.nextInt(RACKS.length)];
            brokers.put(String.valueOf(id), rack);
            delta.replay(new RegisterBrokerRecord().setBrokerId(id).setRack(rack));
        }
        String name = "topic-" + "x".repeat(random.nextInt(20));
        Uuid id = new Uuid(random.nextLong(), random.nextLong());
        node.put("name", name).put("id", id.toString());
        delta.replay(new TopicRecord().setName(name).setTopicId(id));
        ArrayNode partitions = node.putArray("partitions");
        int partitionCount = 1 + random.nextInt(number % 10 == 0 ? 300 : 12);
        for (int partition = 0; partition < partitionCount; partition++) {
            // One of them is not registered any more.
            List<Integer> replicas = new ArrayList<>();
            for (int replica = 0; replica <= brokerCount; replica++) {
                replicas.add(replica);
            }
            Collections.shuffle(replicas, random);
            replicas = replicas.subList(0, 1 + random.nextInt(replicas.size()));
            ArrayNode ids = partitions.addArray();
            replicas.forEach(ids::add);
            delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(partition)
                .setReplicas(replicas).setIsr(replicas).setLeader(replicas.get(0)));
        }
        MetadataImage image = delta.apply(MetadataProvenance.EMPTY);
        return node.put("hash", Utils.computeTopicHash(name, new KRaftCoordinatorMetadataImage(image)));
    }

    private static ObjectNode group(Random random, List<Long> topicHashes, int topics) {
        Map<String, Long> hashes = new HashMap<>();
        for (int number = 0; number < topics; number++) {
            hashes.put("t" + random.nextInt(1000), topicHashes.get(random.nextInt(topicHashes.size())));
        }
        ObjectNode node = JSON.objectNode().put("kind", "group");
        ObjectNode hashNodes = node.putObject("topics");
        hashes.forEach(hashNodes::put);
        return node.put("hash", Utils.computeGroupHash(hashes));
    }
}
