import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Java's Admin for groups. Offsets are committed and read through a consumer, as users do. */
final class GroupAdminPart implements Checklist.Part {
    private static final JsonNode DONE = Checklist.JSON.nullNode();

    private final Admin admin;
    private final JsonNode options;

    GroupAdminPart(JsonNode options) {
        this.options = options;
        admin = Admin.create(Settings.withTimeout(options));
    }

    @Override
    public JsonNode answer(String operation, JsonNode request) throws Exception {
        String group = request.path("group").textValue();
        switch (operation) {
            case "commit":
                return commit(group, request);
            case "committed":
                return committed(group, request);
            case "groups":
                ArrayNode names = Checklist.JSON.arrayNode();
                for (GroupListing each : admin.listGroups().all().get()) {
                    names.add(each.groupId());
                }
                return names;
            case "describe":
                return described(admin.describeConsumerGroups(List.of(group)).describedGroups().get(group).get());
            case "delete":
                admin.deleteConsumerGroups(List.of(group)).all().get();
                return DONE;
            case "alter_offsets":
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                request.get("offsets").fields().forEachRemaining(each -> offsets.put(
                    place(request, each.getKey()), new OffsetAndMetadata(each.getValue().longValue())));
                admin.alterConsumerGroupOffsets(group, offsets).all().get();
                return DONE;
            case "delete_offsets":
                admin.deleteConsumerGroupOffsets(group, places(request)).all().get();
                return DONE;
            default:
                throw new IllegalArgumentException("an admin of groups cannot " + operation);
        }
    }

    private static TopicPartition place(JsonNode request, String partition) {
        return new TopicPartition(request.get("topic").textValue(), Integer.parseInt(partition));
    }

    private static Set<TopicPartition> places(JsonNode request) {
        Set<TopicPartition> found = new HashSet<>();
        request.get("partitions").forEach(each -> found.add(place(request, each.asText())));
        return found;
    }

    private JsonNode commit(String group, JsonNode request) {
        Map<TopicPartition, OffsetAndMetadata> commits = new HashMap<>();
        request.get("commits").fields().forEachRemaining(each -> {
            JsonNode told = each.getValue();
            commits.put(place(request, each.getKey()),
                new OffsetAndMetadata(told.get("offset").longValue(), told.get("metadata").textValue()));
        });
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(group)) {
            consumer.assign(commits.keySet());
            consumer.commitSync(commits);
        }
        return DONE;
    }

    private JsonNode committed(String group, JsonNode request) {
        ObjectNode found = Checklist.JSON.objectNode();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(group)) {
            consumer.committed(places(request)).forEach((place, told) -> {
                if (told != null) {
                    found.putObject(Integer.toString(place.partition()))
                        .put("offset", told.offset()).put("metadata", told.metadata());
                }
            });
        }
        return found;
    }

    private KafkaConsumer<byte[], byte[]> consumer(String group) {
        Properties settings = Settings.withTimeout(options);
        settings.put(ConsumerConfig.GROUP_ID_CONFIG, group);
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static JsonNode described(ConsumerGroupDescription group) {
        ObjectNode found = Checklist.JSON.objectNode();
        found.put("state", group.groupState().toString());
        ArrayNode members = found.putArray("members");
        for (MemberDescription member : group.members()) {
            ArrayNode has = members.addArray();
            member.assignment().topicPartitions().forEach(each -> has.add(each.partition()));
        }
        return found;
    }

    @Override
    public void close() {
        admin.close(Duration.ZERO);
    }
}
