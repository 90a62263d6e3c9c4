import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.InvalidMetadataException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.message.ApiMessageType.ListenerType;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;

/** The tables beside the messages: which APIs in which versions, and the error codes. */
final class Facts {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Facts() {}

    /**
     * `apis` has every API that has a version; `broker` and `controller` what a node of that role answers to
     * ApiVersions; `messages` the versions of every message, APIs or not.
     */
    static JsonNode apiVersions(Map<String, MessageClass> messages) throws ReflectiveOperationException {
        ObjectNode root = JSON.createObjectNode();
        ArrayNode apis = root.putArray("apis");
        for (ApiKeys api : ApiKeys.values()) {
            if (api.hasValidVersion()) {
                apis.add(api(api));
            }
        }
        root.set("broker", advertised(ListenerType.BROKER));
        root.set("controller", advertised(ListenerType.CONTROLLER));
        ObjectNode all = root.putObject("messages");
        for (MessageClass message : messages.values()) {
            ObjectNode node = all.putObject(message.name());
            Message empty = message.create();
            if (empty instanceof ApiMessage keyed && keyed.apiKey() >= 0) {
                node.put("key", keyed.apiKey());
            }
            node.put("min", message.lowest()).put("max", message.highest());
        }
        return root;
    }

    private static ObjectNode api(ApiKeys api) {
        ObjectNode node = JSON.createObjectNode();
        node.put("key", api.id).put("name", api.name()).put("message", api.name);
        node.put("min", api.oldestVersion()).put("max", api.latestVersion(false));
        node.put("max_unstable", api.latestVersion(true));
        node.put("latest_version_unstable", api.messageType.latestVersionUnstable());
        ArrayNode listeners = node.putArray("listeners");
        api.messageType.listeners().forEach(listener -> listeners.add(listener.name().toLowerCase()));
        node.put("cluster_action", api.clusterAction).put("forwardable", api.forwardable);
        // One header version for each version of the API, from the lowest on.
        ArrayNode requests = node.putArray("request_header_versions");
        ArrayNode responses = node.putArray("response_header_versions");
        for (short version = api.oldestVersion(); version <= api.latestVersion(true); version++) {
            requests.add(api.requestHeaderVersion(version));
            responses.add(api.responseHeaderVersion(version));
        }
        return node;
    }

    private static ArrayNode advertised(ListenerType listener) {
        ArrayNode rows = JSON.createArrayNode();
        for (ApiKeys api : ApiKeys.apisForListener(listener)) {
            api.toApiVersionForApiResponse(false, listener).ifPresent(version -> rows.addObject()
                .put("key", version.apiKey())
                .put("name", api.name())
                .put("min", version.minVersion())
                .put("max", version.maxVersion()));
        }
        return rows;
    }

    static JsonNode errorCodes() {
        ArrayNode rows = JSON.createArrayNode();
        for (Errors error : Errors.values()) {
            ApiException exception = error.exception();
            rows.addObject()
                .put("code", error.code())
                .put("name", error.name())
                .put("retriable", exception instanceof RetriableException)
                .put("refreshes_metadata", exception instanceof InvalidMetadataException);
        }
        return rows;
    }
}
