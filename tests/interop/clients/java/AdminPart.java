import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** Java's Admin. Each question is asked of the broker anew. */
final class AdminPart implements Checklist.Part {
    private static final JsonNode DONE = Checklist.JSON.nullNode();

    private final Admin admin;

    AdminPart(JsonNode options) {
        admin = Admin.create(Settings.withTimeout(options));
    }

    @Override
    public JsonNode answer(String operation, JsonNode request) throws Exception {
        switch (operation) {
            case "create_topic":
                return createTopic(request);
            case "delete_topic":
                admin.deleteTopics(List.of(topic(request))).all().get();
                return DONE;
            case "add_partitions":
                NewPartitions total = NewPartitions.increaseTo(request.get("total").intValue());
                admin.createPartitions(Map.of(topic(request), total)).all().get();
                return DONE;
            case "delete_records":
                return deleteRecords(request);
            case "topic_settings":
                return settings(topicResource(request));
            case "broker_settings":
                return settings(brokerResource(request));
            case "change_topic":
                return change(topicResource(request), request);
            case "change_broker":
                return change(brokerResource(request), request);
            case "cluster":
                return cluster();
            case "topics":
                return topics();
            case "watermarks":
                long first = offset(request, OffsetSpec.earliest());
                return Checklist.JSON.arrayNode().add(first).add(offset(request, OffsetSpec.latest()));
            case "offset_for_time":
                long found = offset(request, OffsetSpec.forTimestamp(request.get("timestamp_ms").longValue()));
                return found < 0 ? DONE : Checklist.JSON.numberNode(found);
            default:
                throw new IllegalArgumentException("an admin cannot " + operation);
        }
    }

    private static String topic(JsonNode request) {
        return request.get("topic").textValue();
    }

    private static TopicPartition partition(JsonNode request) {
        return new TopicPartition(topic(request), request.get("partition").intValue());
    }

    private static ConfigResource topicResource(JsonNode request) {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic(request));
    }

    private static ConfigResource brokerResource(JsonNode request) {
        return new ConfigResource(ConfigResource.Type.BROKER, Integer.toString(request.get("broker").intValue()));
    }

    private static Map<String, String> texts(JsonNode object) {
        Map<String, String> found = new HashMap<>();
        object.fieldNames().forEachRemaining(name -> found.put(name, object.get(name).textValue()));
        return found;
    }

    private JsonNode createTopic(JsonNode request) throws Exception {
        Optional<Integer> partitions = Optional.of(request.get("partitions").intValue());
        NewTopic topic = new NewTopic(topic(request), partitions, Optional.empty());
        admin.createTopics(List.of(topic.configs(texts(request.get("settings"))))).all().get();
        return DONE;
    }

    private JsonNode deleteRecords(JsonNode request) throws Exception {
        TopicPartition partition = partition(request);
        RecordsToDelete before = RecordsToDelete.beforeOffset(request.get("before").longValue());
        long low = admin.deleteRecords(Map.of(partition, before)).lowWatermarks().get(partition).get().lowWatermark();
        return Checklist.JSON.numberNode(low);
    }

    private JsonNode settings(ConfigResource resource) throws Exception {
        ObjectNode described = Checklist.JSON.objectNode();
        for (ConfigEntry entry : admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()) {
            described.putObject(entry.name()).put("value", entry.value()).put("source", entry.source().name());
        }
        return described;
    }

    private JsonNode change(ConfigResource resource, JsonNode request) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        texts(request.get("wanted")).forEach((name, value) ->
            changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        request.get("removed").forEach(name ->
            changes.add(new AlterConfigOp(new ConfigEntry(name.textValue(), null), AlterConfigOp.OpType.DELETE)));
        admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
        return DONE;
    }

    private JsonNode cluster() throws Exception {
        DescribeClusterResult cluster = admin.describeCluster();
        ObjectNode found = Checklist.JSON.objectNode();
        found.put("cluster_id", cluster.clusterId().get());
        found.put("controller", cluster.controller().get().id());
        ObjectNode brokers = found.putObject("brokers");
        for (Node node : cluster.nodes().get()) {
            brokers.put(node.idString(), node.host() + ":" + node.port());
        }
        return found;
    }

    private JsonNode topics() throws Exception {
        ObjectNode found = Checklist.JSON.objectNode();
        for (TopicDescription topic : admin.describeTopics(admin.listTopics().names().get()).allTopicNames().get().values()) {
            found.put(topic.name(), topic.partitions().size());
        }
        return found;
    }

    private long offset(JsonNode request, OffsetSpec spec) throws Exception {
        TopicPartition partition = partition(request);
        ListOffsetsResultInfo found = admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get();
        return found.offset();
    }

    @Override
    public void close() {
        admin.close(Duration.ZERO);
    }
}
