import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * The published Java client behind lines of JSON: tests/support/clients/remote.py says what they mean.
 *
 * A process opens one producer, one consumer, one admin, one member of a group or one admin of groups, and answers for
 * it until its input ends.
 */
public final class Checklist {
    static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final ObjectMapper MAPPER = new ObjectMapper();

    /** What a process was opened for. */
    interface Part {
        JsonNode answer(String operation, JsonNode request) throws Exception;

        /** Lets go of the client without waiting for what it has not done; a member leaves its group. */
        void close();
    }

    private Part part = null;

    public static void main(String[] args) throws Exception {
        // Whatever else is printed must not be taken for an answer.
        PrintStream answers = System.out;
        System.setOut(System.err);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Checklist checklist = new Checklist();
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.write(MAPPER.writeValueAsBytes(checklist.answer(MAPPER.readTree(line))));
            answers.write('\n');
            answers.flush();
        }
        if (checklist.part != null) {
            checklist.part.close();
        }
        // The client's threads, and those that still wait for it, are no reason to stay.
        System.exit(0);
    }

    private ObjectNode answer(JsonNode request) {
        try {
            return JSON.objectNode().set("ok", carryOut(request.get("op").textValue(), request));
        } catch (Throwable error) {
            return JSON.objectNode().set("error", described(error));
        }
    }

    private JsonNode carryOut(String operation, JsonNode request) throws Exception {
        switch (operation) {
            case "version":
                return TextNode.valueOf(AppInfoParser.getVersion());
            case "partitions_of_keys":
                return Keys.partitions(request);
            case "hashes_of_keys":
                return Keys.hashes(request);
            case "open_producer":
                part = new ProducerPart(request);
                return JSON.nullNode();
            case "open_consumer":
                part = new ConsumerPart(request);
                return JSON.nullNode();
            case "open_admin":
                part = new AdminPart(request);
                return JSON.nullNode();
            case "open_member":
                part = new MemberPart(request);
                return JSON.nullNode();
            case "open_group_admin":
                part = new GroupAdminPart(request);
                return JSON.nullNode();
            default:
                if (part == null) {
                    throw new IllegalArgumentException(operation + " before anything was opened");
                }
                return part.answer(operation, request);
        }
    }

    /** The broker's code, or null where the client gave up by itself: that is what its time-outs are. */
    static ObjectNode described(Throwable error) {
        Throwable cause = error;
        while ((cause instanceof ExecutionException || cause instanceof CompletionException) && cause.getCause() != null) {
            cause = cause.getCause();
        }
        // The consumer has an exception of its own for this one, which Kafka's table of errors does not know.
        boolean outOfRange = cause instanceof OffsetOutOfRangeException;
        short code = (outOfRange ? Errors.OFFSET_OUT_OF_RANGE : Errors.forException(cause)).code();
        ObjectNode found = JSON.objectNode();
        if (cause instanceof TimeoutException || code <= 0) {
            found.putNull("code");
        } else {
            found.put("code", code);
        }
        // Clients wrap what is wrong with their settings in words that do not say it.
        return found.put("text", cause.getCause() == null ? cause.toString() : cause + ": " + cause.getCause());
    }
}
