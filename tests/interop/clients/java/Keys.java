import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.IOException;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.utils.Utils;

/** What the producer's own partitioner says of keys, without a broker: one request for many of them. */
final class Keys {
    private Keys() {}

    /** {"keys": [bytes...], "partitions": number} -> [number...] */
    static ArrayNode partitions(JsonNode request) throws IOException {
        int count = request.get("partitions").intValue();
        ArrayNode found = Checklist.JSON.arrayNode();
        for (JsonNode key : request.get("keys")) {
            found.add(BuiltInPartitioner.partitionForKey(key.binaryValue(), count));
        }
        return found;
    }

    /** {"keys": [bytes...]} -> [number...]: the hashes that the partitions are chosen by. */
    static ArrayNode hashes(JsonNode request) throws IOException {
        ArrayNode found = Checklist.JSON.arrayNode();
        for (JsonNode key : request.get("keys")) {
            found.add(Utils.murmur2(key.binaryValue()));
        }
        return found;
    }
}
